"""Every different story once, and examples and triples as rows of that table: what is embedded, embedded once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from narrlit.data.records import KINDS, Example, Triple

IntArray = npt.NDArray[np.int64]

PADDING = -1
"""Stands where an example has fewer negatives than another, where a kind is unknown, and for no label."""


class StoryTable:
    """Different texts, numbered in the order in which they came.

    >>> table = StoryTable()
    >>> table.rows(["a", "b", "a"]), len(table)
    ([0, 1, 0], 2)
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._row_of: dict[str, int] = {}
        self.rows(texts)

    def add(self, text: str) -> int:
        """The row of a text, which is added if it is new."""
        row = self._row_of.setdefault(text, len(self._texts))
        if row == len(self._texts):
            self._texts.append(text)
        return row

    def rows(self, texts: Iterable[str]) -> list[int]:
        """The rows of texts, each of which is added if it is new."""
        return [self.add(text) for text in texts]

    @property
    def texts(self) -> list[str]:
        """A copy of the texts in their order."""
        return list(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: int) -> str:
        return self._texts[row]

    def __repr__(self) -> str:
        return f"StoryTable({len(self)} texts)"


# eq=False: arrays have no single truth value, so the comparison that dataclass writes would fail.
@dataclass(frozen=True, eq=False)
class IndexedExamples:
    """N examples as rows of a table; K is the largest number of negatives, and PADDING fills the shorter rows."""

    table: StoryTable
    anchors: IntArray
    """(N,)"""
    positives: IntArray
    """(N,)"""
    negatives: IntArray
    """(N, K), PADDING where there is none."""
    kinds: IntArray
    """(N, K), indexes into KINDS, PADDING where unknown or no negative."""

    def __len__(self) -> int:
        return len(self.anchors)


@dataclass(frozen=True, eq=False)
class IndexedTriples:
    """N triples as rows of a table; labels are 1 where A is closer, 0 where B is, PADDING where unknown."""

    table: StoryTable
    anchors: IntArray
    """(N,)"""
    a: IntArray
    """(N,)"""
    b: IntArray
    """(N,)"""
    labels: IntArray
    """(N,)"""

    def __len__(self) -> int:
        return len(self.anchors)


def index_examples(examples: Sequence[Example], table: StoryTable | None = None) -> IndexedExamples:
    """Put the examples' texts into the table, a new one if none is given, and name them by row.

    Raises:
        ValueError: if a negative's kind is not one of KINDS.
    """
    table = StoryTable() if table is None else table
    widest = max((len(example.negatives) for example in examples), default=0)
    ends = np.empty((len(examples), 2), dtype=np.int64)
    negatives = np.full((len(examples), widest), PADDING, dtype=np.int64)
    kinds = np.full_like(negatives, PADDING)
    for i, example in enumerate(examples):
        anchor, positive, *others = table.rows(example.texts)
        ends[i] = anchor, positive
        negatives[i, : len(others)] = others
        kinds[i, : len(others)] = [_kind_index(negative.kind) for negative in example.negatives]
    return IndexedExamples(table, ends[:, 0].copy(), ends[:, 1].copy(), negatives, kinds)


def index_triples(triples: Sequence[Triple], table: StoryTable | None = None) -> IndexedTriples:
    """Put the triples' texts into the table, a new one if none is given, and name them by row."""
    table = StoryTable() if table is None else table
    rows = np.array([table.rows(triple.texts) for triple in triples], dtype=np.int64).reshape(-1, 3)
    labels = [PADDING if triple.a_is_closer is None else int(triple.a_is_closer) for triple in triples]
    a, b = rows[:, 1].copy(), rows[:, 2].copy()
    return IndexedTriples(table, rows[:, 0].copy(), a, b, np.array(labels, dtype=np.int64))


def _kind_index(kind: str | None) -> int:
    if kind is None:
        return PADDING
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; one of {', '.join(KINDS)}")
    return KINDS.index(kind)
