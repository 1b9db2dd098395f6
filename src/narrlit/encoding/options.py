"""Options for loading a model: device, number format, and maximum length of texts."""

from dataclasses import dataclass
from typing import Literal

from narrlit.errors import OptionError
from narrlit.models.config import Long, Precision

Device = Literal["auto", "cpu", "cuda", "mps"]
CACHE = "runs/embeddings"
"""Default folder of the embedding cache for commands and reproductions."""
FEWEST_TOKENS = 3


@dataclass(frozen=True)
class Loading:
    """Settings for loading a model.

    Attributes:
        max_length: maximum length of a text in tokens; None: that of the model's training.
        long: treatment of longer texts.
        precision: number format of computations; None: the model's own.
        device: device for computations; `auto` is a GPU if there is one.
        trust_remote_code: run Python files that come with the model.
    """

    max_length: int | None = None
    long: Long = "windows"
    precision: Precision | None = None
    device: Device = "auto"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < FEWEST_TOKENS:
            raise OptionError("max_length_too_small", max_length=self.max_length, least=FEWEST_TOKENS)
