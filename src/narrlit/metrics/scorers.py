"""Settings of scorers that judge by a model without training; no torch, so that a command line knows them at once."""

from dataclasses import dataclass
from typing import Literal

from narrlit.errors import OptionError

Reading = Literal["max_similarity", "pooled"]


@dataclass(frozen=True)
class MeanMax:
    """Settings of Mean-Max with structural alignment; what is not given is as Mendel292 has it (their appendix B).

    Attributes:
        reading: what Mean-Max is: the mean of an anchor's best cosines (max_similarity), or the cosine of vectors
            pooled by mean and by maximum (pooled).
        gamma: candidates whose scores differ by no more than this are judged by windows, 0 to 2.
        windows: how many windows a story is cut into, 1 to 1000.
        tau: weight of the last window, where the others have 1; above 0.

    Raises:
        OptionError: if a value is out of its range.
    """

    reading: Reading = "max_similarity"
    gamma: float = 0.0183
    windows: int = 2
    tau: float = 1.0168

    def __post_init__(self) -> None:
        # Each written so that NaN is refused, too.
        if not 0 <= self.gamma <= 2:
            raise OptionError(f"--gamma {self.gamma}: a difference of cosines, from 0 to 2, is needed")
        if not 1 <= self.windows <= 1000:
            raise OptionError(f"--windows {self.windows}: a whole number from 1 to 1000 is needed")
        if not 0 < self.tau < float("inf"):
            raise OptionError(f"--tau {self.tau}: a weight above 0 is needed")
