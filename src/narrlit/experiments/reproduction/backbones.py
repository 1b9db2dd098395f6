"""Encoders of the rows of a paper's tables: the paper's own encoder or a stand-in."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from narrlit.configuration import FitSettings, packaged_configs, packaged_names, read_yaml
from narrlit.errors import ModelError, reading


@dataclass(frozen=True)
class Backbone:
    """Encoder of a row.

    Attributes:
        model: name of the model for `narrlit.load`.
        configs: configs that put it into a fit.
        stand_in: description of the encoder of the paper that it replaces; None if it is the paper's.
    """

    model: str
    configs: tuple[str | FitSettings, ...] = ()
    stand_in: str | None = None

    @classmethod
    def of(cls, row: str | None, paper: str, given: Sequence[str]) -> "Backbone":
        """Find the encoder of a row.

        Args:
            row: encoder in the row: an overlay of configs/backbones or a hub id; None: that of the paper.
            paper: encoder of the paper, which is in the configs.
            given: encoders of the user; one with the same name is used, else the first replaces `paper`.

        >>> Backbone.of(None, "Qwen/Qwen3-Embedding-8B", ["minilm"]).stand_in
        'minilm for Qwen3-Embedding-8B'
        """
        models = overlay_models()
        wanted = paper if row is None else models.get(row, row)
        same = _same_name(wanted, given)
        used = wanted
        if same is not None:
            used = same
        elif given and row is None:
            used = given[0]
        stand_in = None
        if used not in (same, wanted):
            stand_in = f"{_shown(used)} for {model_name(wanted)}"
        model = models.get(used, used)
        if row is None and stand_in is None:
            return cls(model, _model_config(paper, model))  # as the config reads it
        overlay = _overlay(used, row)
        return cls(model, (str(_overlay_path(overlay)), *_model_config(models[overlay], model)), stand_in)

    def require(self, code: str = "encoder_not_available") -> None:
        """Raise ModelError with the code if the encoder is neither a folder nor available from the hub."""
        if not _present(self.model):
            raise ModelError(code, model=self.model)


@cache
def overlay_models() -> dict[str, str]:
    """Read the encoders of configs/backbones by the names of their overlays."""
    models = {}
    for name in packaged_names("backbones"):
        overlay = Path(name).stem
        config = read_yaml(_overlay_path(overlay))
        models[overlay] = config["model"]["init_args"]["encoder"]["model"]
    return models


def _overlay_path(overlay: str) -> Path:
    """Return the file of an overlay."""
    return packaged_configs() / "backbones" / f"{overlay}.yaml"


def _overlay(used: str, row: str | None) -> str:
    """Return the name of the overlay that sets an encoder; `any` for an encoder without its own overlay."""
    models = overlay_models()
    for name in (used, row):
        if name in models:
            return name
    return "any"


def _model_config(read: str, model: str) -> tuple[FitSettings, ...]:
    """Return the setting that replaces the model of a config; empty if it is the same."""
    return () if model == read else ({"model.encoder.model": model},)


def _same_name(wanted: str, given: Sequence[str]) -> str | None:
    """Find the encoder with the same name as the wanted one; None if there is none."""
    models = overlay_models()
    for encoder in given:
        if model_name(models.get(encoder, encoder)) == model_name(wanted):
            return encoder
    return None


def model_name(model: str) -> str:
    """Return the last part of a model's name; for the packaged MiniLM, that of its hub id.

    >>> model_name("Qwen/Qwen3-Embedding-8B"), model_name("minilm")
    ('Qwen3-Embedding-8B', 'all-MiniLM-L6-v2')
    """
    return "all-MiniLM-L6-v2" if model == "minilm" else os.path.basename(model.rstrip("/"))  # noqa: PTH119 (of an id)


def _shown(model: str) -> str:
    """Format the name of an encoder for a report; for a folder, the last part of its path."""
    return model_name(model) if Path(model).exists() else model


@cache
def _present(model: str) -> bool:
    """Return True if an encoder is a folder, or available from the hub."""
    if model == "minilm" or Path(model).exists():
        return True
    from huggingface_hub import hf_hub_download  # imported here, because --help must be fast

    try:
        with reading("no_such_model", model, error=ModelError):
            hf_hub_download(model, "config.json")
    except ModelError:
        return False
    return True
