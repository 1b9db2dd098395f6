"""Private names of cyclopts, checked with 5.1 to 5.4."""

import math

from cyclopts._convert import _converters


def refuse_inexact_numbers() -> None:
    """Refuse `1.5` where a whole number is needed, and `nan` and `inf` where any number is, in every parser.

    cyclopts rounds 1.5 to 2. Its public `Parameter(converter=...)` gets the type of an optional value without its
    None, so that `--option none` would be an error; once it gets the whole type, it replaces this.
    """
    _converters.update({int: int, float: _finite})


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number
