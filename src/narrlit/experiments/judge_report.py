"""Figures of judging: accuracy of language model and similarities, alone and combined, overrides, margins, labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from narrlit.experiments.report import difference_cell
from narrlit.llm.judge import Judgement
from narrlit.metrics.significance import AccuracySummary, PairedComparison, paired, wilson_interval
from narrlit.tables import markdown_table

Choices = Sequence[bool | None]
"""Choices for N triples: True if A is closer; None if a system makes no choice, or a label is missing."""
Accuracies = Mapping[str, AccuracySummary]
"""Accuracies by system."""

NAMES = {
    "hybrid": "language model, else similarities",
    "similarities": "similarities alone",
    "model": "language model alone, on triples with a choice",
    "model_of_all": "language model alone, no choice counts as wrong",
    "as_given": "language model, A and B as in the file",
    "swapped": "language model, A and B swapped",
}
SYSTEMS = ("similarities", "model", "hybrid")
"""Systems with accuracies by margin and label."""


@dataclass(frozen=True)
class Share:
    """Count and total.

    >>> print(Share(1, 4))
    1 of 4 (25.0%)
    """

    count: int
    of: int

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values, with Wilson's 95 % interval."""
        counts = {"n": self.count, "of": self.of}
        if not self.of:
            return {**counts, "share": None}
        return {**counts, "share": self.count / self.of, "interval": list(wilson_interval(self.count, self.of))}

    def __str__(self) -> str:
        counts = f"{self.count} of {self.of}"
        return f"{counts} ({self.count / self.of:.1%})" if self.of else counts


@dataclass(frozen=True)
class Overrides:
    """Choices of the language model that differ from the similarities, and how many of them are right."""

    share: Share
    right: AccuracySummary

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {**self.share.as_dict(), "right": self.right.as_dict()}


@dataclass(frozen=True)
class MarginPart:
    """Accuracies on the triples with a difference of similarities from `low` to `high`."""

    low: float
    high: float
    accuracies: Accuracies

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {"margin": [self.low, self.high], "accuracy": _as_dicts(self.accuracies)}


@dataclass(frozen=True)
class LabelPart:
    """Accuracies on the triples with one label, A or B."""

    label: str
    accuracies: Accuracies

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {"label": self.label, "accuracy": _as_dicts(self.accuracies)}


@dataclass(frozen=True)
class JudgeFigures:
    """Figures of the judgements of N triples; accuracies refer to the triples with a label.

    Attributes:
        triples: number of triples.
        labeled: number of triples with a label.
        accuracies: accuracies by the keys of `NAMES`; empty without labels.
        difference: difference of the language model with similarities to the similarities alone; None without labels.
        fallbacks: triples that the similarities decide.
        reasons: number of fallbacks by reason, most frequent first.
        overrides: choices that differ from the similarities.
        swap_agreement: triples with the same choice when A and B are swapped; None if they were not swapped.
        shown_first: answers for the candidate that the request shows first.
        by_margin: accuracies by the difference of the similarities, largest first.
        by_label: accuracies by label.
    """

    triples: int
    labeled: int
    accuracies: Accuracies
    difference: PairedComparison | None
    fallbacks: Share
    reasons: Mapping[str, int]
    overrides: Overrides
    swap_agreement: Share | None
    shown_first: Share
    by_margin: Sequence[MarginPart]
    by_label: Sequence[LabelPart]

    @classmethod
    def of(cls, judgements: Sequence[Judgement], labels: Choices) -> "JudgeFigures":
        """Compute all figures of N judgements."""
        systems = _systems(judgements)
        labeled = [index for index, label in enumerate(labels) if label is not None]
        margins = [abs(judgement.scores[0] - judgement.scores[1]) for judgement in judgements]
        compared = {name: systems[name] for name in SYSTEMS}
        reasons = Counter(judgement.fallback for judgement in judgements if judgement.fallback)
        swap_agreement = None
        if "swapped" in systems:
            same = accuracy_of(systems["as_given"], systems["swapped"])
            swap_agreement = Share(same.correct, same.n)
        return cls(
            triples=len(judgements),
            labeled=len(labeled),
            accuracies=_accuracies_of_all(systems, margins, labels) if labeled else {},
            difference=_difference(systems, labels, labeled) if labeled else None,
            fallbacks=Share(reasons.total(), len(judgements)),
            reasons=dict(reasons.most_common()),
            overrides=overrides(systems["model"], systems["similarities"], labels),
            swap_agreement=swap_agreement,
            shown_first=_shown_first(judgements),
            by_margin=by_margin(margins, compared, labels),
            by_label=by_label(compared, labels),
        )

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "triples": self.triples,
            "labeled": self.labeled,
            "accuracy": _as_dicts(self.accuracies) if self.labeled else None,
            "hybrid_against_similarities": None if self.difference is None else self.difference.as_dict(),
            "fallbacks": {**self.fallbacks.as_dict(), "by_reason": self.reasons},
            "overrides": self.overrides.as_dict(),
            "swap_agreement": None if self.swap_agreement is None else self.swap_agreement.as_dict(),
            "shown_first": self.shown_first.as_dict(),
            "by_margin": [part.as_dict() for part in self.by_margin],
            "by_label": [part.as_dict() for part in self.by_label],
        }

    def __str__(self) -> str:
        """Format tables and notes in Markdown."""
        lines = [self._first_table(), *(f"- {note}." for note in self._notes()), ""]
        label_rows = [{"label": part.label, **_cells(part.accuracies)} for part in self.by_label]
        margin_rows = []
        for part in self.by_margin:
            margin = f"{part.low:.4f} to {part.high:.4f}"
            margin_rows.append({"difference of similarities": margin, **_cells(part.accuracies)})
        lines += [markdown_table("", rows) for rows in (label_rows, margin_rows) if rows]
        return "\n".join(lines)

    def _first_table(self) -> str:
        """Format the accuracies over all triples."""
        if not self.labeled:
            return f"{self.triples} triples without labels.\n"
        rows = []
        for name, cell in _cells(self.accuracies).items():
            rows.append({"judge": NAMES[name], "accuracy (95 % interval)": cell})
        return markdown_table("", rows)

    def _notes(self) -> list[str]:
        """Describe fallbacks, overrides and the effect of order."""
        reasons = "".join(f"; {count} {reason}" for reason, count in self.reasons.items())
        notes = [
            f"Fallbacks to the similarities: {self.fallbacks}{reasons}",
            f"Overrides of the similarities: {self.overrides.share}; accuracy of these {_cell(self.overrides.right)}",
        ]
        if self.swap_agreement is not None:
            notes.append(f"Same choice with A and B swapped: {self.swap_agreement}")
        notes.append(f"Choices of the candidate shown first: {self.shown_first}")
        if self.difference is not None:
            notes.append(f"Hybrid against similarities: {difference_cell(self.difference)}")
        return notes


def accuracy_of(choices: Choices, labels: Choices) -> AccuracySummary:
    """Compute the accuracy on the triples with a choice and a label (or a choice of another system).

    >>> print(accuracy_of([True, False, None, True], [True, True, True, None]))
    0.500 [0.095, 0.905] (1 of 2)
    """
    known = [x == y for x, y in zip(choices, labels, strict=True) if x is not None and y is not None]
    return AccuracySummary(n=len(known), correct=sum(known))


def overrides(model: Choices, similarities: Choices, labels: Choices) -> Overrides:
    """Count the choices that differ from the similarities, and how many of them are right."""
    agreed = accuracy_of(model, similarities)
    against: list[bool | None] = []
    for choice, similar in zip(model, similarities, strict=True):
        overridden = similar is not None and choice != similar
        against.append(choice if overridden else None)
    return Overrides(Share(agreed.n - agreed.correct, agreed.n), accuracy_of(against, labels))


def by_margin(
    margins: Sequence[float], systems: Mapping[str, Choices], labels: Choices, parts: int = 5
) -> list[MarginPart]:
    """Compute accuracies by the difference of the similarities, in parts of equal size, largest difference first."""
    labeled = [index for index, label in enumerate(labels) if label is not None]
    order = sorted(labeled, key=lambda index: -margins[index])
    ends = [len(order) * part // parts for part in range(parts + 1)]
    divided = []
    for start, end in pairwise(ends):
        if end > start:
            indices = order[start:end]
            low, high = margins[indices[-1]], margins[indices[0]]
            divided.append(MarginPart(low, high, _accuracies_at(indices, systems, labels)))
    return divided


def by_label(systems: Mapping[str, Choices], labels: Choices) -> list[LabelPart]:
    """Compute accuracies on the triples labeled A and on those labeled B (Comhis, section 6.3)."""
    parts = []
    for name, label in (("A", True), ("B", False)):
        indices = [index for index, known in enumerate(labels) if known is label]
        if indices:
            parts.append(LabelPart(name, _accuracies_at(indices, systems, labels)))
    return parts


def _systems(judgements: Sequence[Judgement]) -> dict[str, Choices]:
    """Collect the choices of language model and similarities, alone and combined, and by order of A and B."""
    systems: dict[str, Choices] = {
        "hybrid": [judgement.a_is_closer for judgement in judgements],
        "similarities": [judgement.by_similarity for judgement in judgements],
        "model": [judgement.choice for judgement in judgements],
    }
    if len(judgements[0].answers) > 1:
        systems["as_given"] = [judgement.answers[0].a_is_closer for judgement in judgements]
        systems["swapped"] = [judgement.answers[1].a_is_closer for judgement in judgements]
    return systems


def _accuracies_of_all(
    systems: Mapping[str, Choices], margins: Sequence[float], labels: Choices
) -> dict[str, AccuracySummary]:
    """Compute the accuracy of each system on all labeled triples, in the order of `NAMES`."""
    accuracies = {name: accuracy_of(choices, labels) for name, choices in systems.items()}
    ties = sum(margin == 0 and label is not None for margin, label in zip(margins, labels, strict=True))
    accuracies["similarities"] = replace(accuracies["similarities"], ties=ties)
    accuracies["model_of_all"] = replace(accuracies["model"], n=accuracies["hybrid"].n)
    return {name: accuracies[name] for name in NAMES if name in accuracies}


def _accuracies_at(
    indices: Sequence[int], systems: Mapping[str, Choices], labels: Choices
) -> dict[str, AccuracySummary]:
    """Compute the accuracy of each system on some of the triples."""
    known = [labels[index] for index in indices]
    accuracies = {}
    for name, choices in systems.items():
        accuracies[name] = accuracy_of([choices[index] for index in indices], known)
    return accuracies


def _difference(systems: Mapping[str, Choices], labels: Choices, labeled: Sequence[int]) -> PairedComparison:
    """Compare the language model with similarities to the similarities alone."""
    wrong = {index for index in labeled if systems["hybrid"][index] != labels[index]}
    other_wrong = {index for index in labeled if systems["similarities"][index] != labels[index]}
    return paired(wrong, other_wrong, len(labeled))


def _shown_first(judgements: Sequence[Judgement]) -> Share:
    """Count the answers for the candidate that the request shows first: A or, if swapped, B."""
    chosen = []
    for judgement in judgements:
        for order, answer in enumerate(judgement.answers):
            if answer.a_is_closer is not None:
                a_is_first = order == 0
                chosen.append(answer.a_is_closer == a_is_first)
    return Share(sum(chosen), len(chosen))


def _as_dicts(accuracies: Accuracies) -> dict[str, object]:
    return {name: accuracy.as_dict() for name, accuracy in accuracies.items()}


def _cells(accuracies: Accuracies) -> dict[str, str]:
    return {name: _cell(accuracy) for name, accuracy in accuracies.items()}


def _cell(accuracy: AccuracySummary) -> str:
    """Format an accuracy; ties are only in the JSON file."""
    return str(AccuracySummary(accuracy.n, accuracy.correct)) if accuracy.n else "unknown without labels"
