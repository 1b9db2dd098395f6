"""Results of experiments: one tidy table of figures, one of differences, notes, and the answers behind them.

>>> from narrlit.results import Result, difference, estimate
>>> right, better = [True] * 110 + [False] * 90, [True] * 130 + [False] * 70
>>> figures = [estimate(right).row("minilm"), estimate(better).row("mine")]
>>> print(Result.of("compare", figures, [difference(better, right).row("mine", "minilm")]))
| system |   n | accuracy             | difference to minilm               |
|--------|----:|----------------------|------------------------------------|
| minilm | 200 | 0.550 [0.481, 0.617] |                                    |
| mine   | 200 | 0.650 [0.582, 0.713] | +0.100 [+0.056, +0.142], p < 0.001 |
<BLANKLINE>
Intervals are 95 % (Wilson) and assume independent items.
p is from the exact paired McNemar test, which assumes independent items; intervals of differences are 95 %.
"""

from narrlit.results.notes import Note
from narrlit.results.result import Result
from narrlit.statistics.estimates import Difference, Estimate, Row, adjusted, difference, estimate, estimate_count

__all__ = ["Difference", "Estimate", "Note", "Result", "Row", "adjusted", "difference", "estimate", "estimate_count"]
