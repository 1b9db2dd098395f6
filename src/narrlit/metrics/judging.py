"""Figures of a judge that has similarities and a language model: each alone, both together, and where they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from narrlit.metrics.triples import AccuracySummary

Choices = Sequence[bool | None]
"""For each of N triples whether A is closer; None where a system, or the file of labels, does not say."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Where a language model chose against the similarities.

    Attributes:
        chosen: triples for which both have a choice.
        overridden: how many of them the language model decided otherwise.
        right: how often it was right there, over the labelled ones; the similarities were right on the others.
    """

    chosen: int
    overridden: int
    right: AccuracySummary

    @property
    def share(self) -> float | None:
        """Share of triples that were overridden; None where nothing was chosen."""
        return self.overridden / self.chosen if self.chosen else None


@dataclass(frozen=True, slots=True)
class MarginPart:
    """Labelled triples of like margins, and all those of margins at least as large.

    Attributes:
        smallest: the least margin of the part.
        largest: its largest.
        coverage: share of all labelled triples that have a margin as in this part or in one before it.
        within: accuracy in this part, by system, of the triples that the system answered.
        covered: the same in this part and those before it.
    """

    smallest: float
    largest: float
    coverage: float
    within: dict[str, AccuracySummary]
    covered: dict[str, AccuracySummary]


def accuracy_of(choices: Choices, labels: Choices) -> AccuracySummary:
    """Accuracy over the triples that have both a choice and a label.

    Raises:
        ValueError: if there are not as many labels as choices.

    >>> print(accuracy_of([True, False, None, True], [True, True, True, None]))
    0.500 [0.095, 0.905] (1 of 2)
    """
    known = [(x, y) for x, y in zip(choices, labels, strict=True) if x is not None and y is not None]
    return AccuracySummary(n=len(known), correct=sum(x == y for x, y in known))


def overrides(model: Choices, similarities: Choices, labels: Choices) -> Overrides:
    """How often a language model decided against the similarities, and how often rightly.

    Raises:
        ValueError: if the three are not of one length.

    >>> found = overrides([True, True, None], [False, True, True], [True, False, False])
    >>> found.chosen, found.overridden, str(found.right)
    (2, 1, '1.000 [0.207, 1.000] (1 of 1)')
    """
    rows = list(zip(model, similarities, labels, strict=True))
    chosen = [(x, s, y) for x, s, y in rows if x is not None and s is not None]
    against = [(x, y) for x, s, y in chosen if x != s]
    right = accuracy_of([x for x, _ in against], [y for _, y in against])
    return Overrides(len(chosen), len(against), right)


def agreement(first: Choices, second: Choices) -> tuple[int, int]:
    """How many triples two systems answered alike, and how many both answered.

    Raises:
        ValueError: if the two are not of one length.

    >>> agreement([True, False, None, True], [True, True, True, None])
    (1, 2)
    """
    both = [(x, y) for x, y in zip(first, second, strict=True) if x is not None and y is not None]
    return sum(x == y for x, y in both), len(both)


def by_margin(
    margins: Sequence[float], systems: Mapping[str, Choices], labels: Choices, parts: int = 5
) -> list[MarginPart]:
    """Accuracy by how far apart the similarities are, and of the most distinct triples alone (coverage).

    Args:
        margins: for each triple |similarity of A - similarity of B|, from 0 to 2 for cosines.
        systems: choices by the system's name.
        labels: triples without one are left out.
        parts: into how many parts of equal size, or one more, the labelled triples are divided.

    Returns:
        The parts, the one of the largest margins first; equal margins keep the order of the triples. Fewer than
        `parts` where there are fewer labelled triples.

    Raises:
        ValueError: if the lengths differ.
    """
    if len({len(margins), len(labels), *map(len, systems.values())}) > 1:
        raise ValueError("margins, choices and labels are not of one length")
    labelled = [place for place, label in enumerate(labels) if label is not None]
    ordered = sorted(labelled, key=lambda place: -margins[place])
    ends = [len(ordered) * part // parts for part in range(parts + 1)]

    def accuracies(places: list[int]) -> dict[str, AccuracySummary]:
        known = [labels[place] for place in places]
        return {name: accuracy_of([choices[place] for place in places], known) for name, choices in systems.items()}

    return [
        MarginPart(
            smallest=margins[ordered[end - 1]],
            largest=margins[ordered[start]],
            coverage=end / len(ordered),
            within=accuracies(ordered[start:end]),
            covered=accuracies(ordered[:end]),
        )
        for start, end in pairwise(ends)
        if end > start
    ]
