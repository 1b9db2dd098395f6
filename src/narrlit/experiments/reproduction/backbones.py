"""Encoders of the rows of a paper's tables: the paper's own, or one that stands in for it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from narrlit.configuration import packaged_configs, packaged_names, read_yaml
from narrlit.errors import ModelError, reading


@dataclass(frozen=True)
class Backbone:
    """An encoder of a row.

    Attributes:
        model: as `narrlit.load` names it.
        options: of `narrlit fit`, which put it into a config.
        stand_in: which encoder of the paper it replaces; None: it is the paper's.
    """

    model: str
    options: tuple[str, ...] = ()
    stand_in: str | None = None

    @classmethod
    def of(cls, row: str | None, paper: str, given: Sequence[str]) -> "Backbone":
        """Find the encoder of a row.

        Args:
            row: encoder that the row names: an overlay of configs/backbones or a hub id; None: that of the paper.
            paper: the paper's encoder, which the configs name.
            given: encoders that the user has: one of the same name is used, else the first in place of `paper`.

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
            return cls(model, _options(paper, model))  # as the config reads it
        overlay = _overlay(used, row)
        return cls(model, ("--config", str(_overlay_path(overlay)), *_options(models[overlay], model)), stand_in)

    def require(self, remedy: str = "") -> None:
        """Raise ModelError if the encoder is neither a folder nor on a hub in reach."""
        if not _present(self.model):
            raise ModelError(f"{self.model} is absent{remedy}")


@cache
def overlay_models() -> dict[str, str]:
    """Read the encoders of configs/backbones, by the name of their overlay."""
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
    """Name the overlay by which a config takes an encoder; `any` for one without its own."""
    models = overlay_models()
    for name in (used, row):
        if name in models:
            return name
    return "any"


def _options(read: str, model: str) -> tuple[str, ...]:
    """Return the options that replace the model that a config reads, if it is another."""
    return () if model == read else ("--model.encoder.model", model)


def _same_name(wanted: str, given: Sequence[str]) -> str | None:
    """Find the encoder that has the name of the wanted one; None if there is none."""
    models = overlay_models()
    for each in given:
        if model_name(models.get(each, each)) == model_name(wanted):
            return each
    return None


def model_name(model: str) -> str:
    """Return the last part of a model's name; that of the packaged MiniLM is its hub's.

    >>> model_name("Qwen/Qwen3-Embedding-8B"), model_name("minilm")
    ('Qwen3-Embedding-8B', 'all-MiniLM-L6-v2')
    """
    return "all-MiniLM-L6-v2" if model == "minilm" else os.path.basename(model.rstrip("/"))  # noqa: PTH119 (of an id)


def _shown(model: str) -> str:
    """Write an encoder's name for a report; of a folder the last part."""
    return model_name(model) if Path(model).exists() else model


@cache
def _present(model: str) -> bool:
    """True if an encoder is a folder, or on a hub in reach."""
    if model == "minilm" or Path(model).exists():
        return True
    from huggingface_hub import hf_hub_download  # help does without it

    try:
        with reading("encoder", model, error=ModelError):
            hf_hub_download(model, "config.json")
    except ModelError:
        return False
    return True
