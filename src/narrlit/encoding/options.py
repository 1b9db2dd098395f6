"""Options of loading a model: device, number format, and length of its texts."""

from dataclasses import dataclass
from typing import Literal

from narrlit.errors import OptionError
from narrlit.models.config import Long, Precision

Device = Literal["auto", "cpu", "cuda", "mps"]
CACHE = "runs/embeddings"
"""Folder in which commands and reproductions cache vectors."""
FEWEST_TOKENS = 3


@dataclass(frozen=True)
class Loading:
    """Settings by which a model is loaded.

    Attributes:
        max_length: tokens of a text that are read at once; None: as it was trained.
        long: treatment of longer texts.
        precision: number format to compute in; None: the model's own.
        device: where to compute; `auto` is a GPU where there is one.
        trust_remote_code: run Python files that come with the model.
    """

    max_length: int | None = None
    long: Long = "windows"
    precision: Precision | None = None
    device: Device = "auto"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < FEWEST_TOKENS:
            raise OptionError(f"`max_length={self.max_length}`: at least {FEWEST_TOKENS} tokens are needed")
