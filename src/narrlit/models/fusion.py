"""How a story's vector is put together from those of its text and its views, as plain data; no torch.

Source: ttda704, section 4.2 and appendix A.4; its settings are those of Table 2.
"""

import math
from dataclasses import astuple, dataclass

from narrlit.errors import OptionError

PARTS = ("full", "theme", "plot", "outcome")
"""What a story's vector is fused from: the whole text, then its views."""


@dataclass(frozen=True)
class Fusion:
    """Weights of the unit vectors whose sum, brought to length 1, stands for a story.

    Attributes:
        full: of the story's text.
        theme: of its theme.
        plot: of its course of action.
        outcome: of its outcome.

    Raises:
        OptionError: for a weight below 0, or weights that are all 0.
    """

    full: float = 0.5
    theme: float = 0.1
    plot: float = 0.2
    outcome: float = 0.2

    def __post_init__(self) -> None:
        if not all(math.isfinite(weight) and weight >= 0 for weight in self.weights):
            raise OptionError(f"fusion {self}: every weight must be a number of at least 0")
        if not sum(self.weights) > 0:
            raise OptionError(f"fusion {self}: the weights sum to 0; give one of them at least a weight above 0")

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """The weights in the order of PARTS."""
        return astuple(self)

    def __str__(self) -> str:
        return ",".join(f"{weight:g}" for weight in self.weights)


PRESETS = {
    "submitted": Fusion(),
    "equal": Fusion(0.25, 0.25, 0.25, 0.25),
    "full_only": Fusion(1, 0, 0, 0),
    "higher_theme": Fusion(0.4, 0.3, 0.15, 0.15),
    "action_only": Fusion(0, 0, 1, 0),
}
"""ttda704's four settings, and the course of action alone, as COGNAC's system for Track B has it."""


def fusion_of(written: str) -> Fusion:
    """The fusion that a name of PRESETS or four numbers stand for.

    Raises:
        OptionError: if it is neither, or the numbers are no weights.

    >>> fusion_of("equal") == fusion_of("0.25, 0.25,0.25,0.25")
    True
    """
    if written in PRESETS:
        return PRESETS[written]
    known = f"give one of {', '.join(PRESETS)}, or weights of {', '.join(PARTS)} with commas between"
    try:
        full, theme, plot, outcome = (float(number) for number in written.split(","))
    except ValueError as error:  # no number, or not four of them
        raise OptionError(f"--fusion {written}: {known}") from error
    return Fusion(full, theme, plot, outcome)
