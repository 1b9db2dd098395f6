"""Figures of judging: accuracy of language model and similarities, alone and combined, overrides, margins, labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from narrlit.data.schema import IntArray
from narrlit.experiments.report import difference_cell, method_note
from narrlit.llm.judge import Judgement
from narrlit.metrics.significance import AccuracySummary, PairedComparison, paired, wilson_interval
from narrlit.tables import markdown_table

Choices = Sequence[bool | None]
"""Choices for N triples: True if A is closer; None if a system makes no choice, or a label is missing."""
Stories = IntArray | None
"""Numbers (N, 3) of the stories of N triples; None: the triples share no stories."""
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

    def row(self) -> dict[str, str]:
        """Format a row of a table."""
        return {"difference of similarities": f"{self.low:.4f} to {self.high:.4f}", **_cells(self.accuracies)}


@dataclass(frozen=True)
class LabelPart:
    """Accuracies on the triples with one label, A or B."""

    label: str
    accuracies: Accuracies

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {"label": self.label, "accuracy": _as_dicts(self.accuracies)}

    def row(self) -> dict[str, str]:
        """Format a row of a table."""
        return {"label": self.label, **_cells(self.accuracies)}


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
    def of(cls, judgements: Sequence[Judgement], labels: Choices, stories: Stories = None) -> "JudgeFigures":
        """Compute all figures of N judgements, given the labels and the stories of the triples."""
        systems = _systems(judgements)
        labeled = _labeled(labels)
        margins = [abs(judgement.scores[0] - judgement.scores[1]) for judgement in judgements]
        compared = {name: systems[name] for name in SYSTEMS}
        reasons = Counter(judgement.fallback for judgement in judgements if judgement.fallback)
        return cls(
            triples=len(judgements),
            labeled=len(labeled),
            accuracies=_accuracies_of_all(systems, margins, labels, stories) if labeled else {},
            difference=_difference(systems, labels, labeled, stories) if labeled else None,
            fallbacks=Share(reasons.total(), len(judgements)),
            reasons=dict(reasons.most_common()),
            overrides=overrides(systems["model"], systems["similarities"], labels, stories),
            swap_agreement=_swap_agreement(systems),
            shown_first=_shown_first(judgements),
            by_margin=by_margin(margins, compared, labels, stories=stories),
            by_label=by_label(compared, labels, stories),
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
        lines = [self._first_table()]
        for note in self._notes():
            lines.append(f"- {note}.")
        lines.append("")
        for parts in (self.by_label, self.by_margin):
            if parts:
                lines.append(markdown_table("", [part.row() for part in parts]))
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
        fallbacks = [str(self.fallbacks)]
        for reason, count in self.reasons.items():
            fallbacks.append(f"{count} {reason}")
        notes = [
            f"Fallbacks to the similarities: {'; '.join(fallbacks)}",
            f"Overrides of the similarities: {self.overrides.share}; accuracy of these {_cell(self.overrides.right)}",
        ]
        if self.swap_agreement is not None:
            notes.append(f"Same choice with A and B swapped: {self.swap_agreement}")
        notes.append(f"Choices of the candidate shown first: {self.shown_first}")
        if self.difference is not None:
            notes.append(f"Hybrid against similarities: {difference_cell(self.difference)}")
            if self.difference.test == "mcnemar_by_story":
                notes.append(method_note(by_story=True).rstrip("."))
        return notes


def accuracy_of(choices: Choices, labels: Choices, stories: Stories = None) -> AccuracySummary:
    """Compute the accuracy on the triples with a choice and a label (or a choice of another system).

    Args:
        choices: choices for N triples.
        labels: labels of the triples.
        stories: (N, 3) numbers of their stories; None: the triples share no stories.

    >>> print(accuracy_of([True, False, None, True], [True, True, True, None]))
    0.500 [0.095, 0.905] (1 of 2)
    """
    rows: list[int] = []
    correct: list[bool] = []
    for row, (choice, label) in enumerate(zip(choices, labels, strict=True)):
        if choice is not None and label is not None:
            rows.append(row)
            correct.append(choice == label)
    return AccuracySummary.of(correct, None if stories is None else stories[rows])


def overrides(model: Choices, similarities: Choices, labels: Choices, stories: Stories = None) -> Overrides:
    """Count the choices that differ from the similarities, and how many of them are right."""
    agreed = accuracy_of(model, similarities)
    against: list[bool | None] = []
    for choice, similar in zip(model, similarities, strict=True):
        overridden = similar is not None and choice != similar
        against.append(choice if overridden else None)
    return Overrides(Share(agreed.n - agreed.correct, agreed.n), accuracy_of(against, labels, stories))


def by_margin(
    margins: Sequence[float],
    systems: Mapping[str, Choices],
    labels: Choices,
    parts: int = 5,
    stories: Stories = None,
) -> list[MarginPart]:
    """Compute accuracies by the difference of the similarities, in parts of equal size, largest difference first."""
    order = sorted(_labeled(labels), key=lambda index: -margins[index])
    n = len(order)
    divided = []
    for part in range(parts):
        indices = order[n * part // parts : n * (part + 1) // parts]
        if indices:
            low, high = margins[indices[-1]], margins[indices[0]]
            divided.append(MarginPart(low, high, _accuracies_at(indices, systems, labels, stories)))
    return divided


def by_label(systems: Mapping[str, Choices], labels: Choices, stories: Stories = None) -> list[LabelPart]:
    """Compute accuracies on the triples labeled A and on those labeled B (Comhis, section 6.3)."""
    parts = []
    for name, label in (("A", True), ("B", False)):
        indices = [index for index, known in enumerate(labels) if known is label]
        if indices:
            parts.append(LabelPart(name, _accuracies_at(indices, systems, labels, stories)))
    return parts


def _systems(judgements: Sequence[Judgement]) -> dict[str, Choices]:
    """Collect the choices of language model and similarities, alone and combined, and by order of A and B."""
    rows = [_choices(judgement) for judgement in judgements]
    systems: dict[str, Choices] = {}
    for name in rows[0]:
        systems[name] = [row[name] for row in rows]
    return systems


def _choices(judgement: Judgement) -> dict[str, bool | None]:
    """List the choices for a triple by system."""
    choices: dict[str, bool | None] = {
        "hybrid": judgement.a_is_closer,
        "similarities": judgement.by_similarity,
        "model": judgement.choice,
    }
    if len(judgement.answers) > 1:
        as_given, swapped = judgement.answers
        choices |= {"as_given": as_given.a_is_closer, "swapped": swapped.a_is_closer}
    return choices


def _labeled(labels: Choices) -> list[int]:
    """List the triples with a label."""
    return [index for index, label in enumerate(labels) if label is not None]


def _swap_agreement(systems: Mapping[str, Choices]) -> Share | None:
    """Count the triples with the same choice when A and B are swapped; None if they were not swapped."""
    if "swapped" not in systems:
        return None
    same = accuracy_of(systems["as_given"], systems["swapped"])
    return Share(same.correct, same.n)


def _accuracies_of_all(
    systems: Mapping[str, Choices], margins: Sequence[float], labels: Choices, stories: Stories
) -> dict[str, AccuracySummary]:
    """Compute the accuracy of each system on all labeled triples, in the order of `NAMES`."""
    accuracies = {name: accuracy_of(choices, labels, stories) for name, choices in systems.items()}
    ties = sum(margins[index] == 0 for index in _labeled(labels))
    accuracies["similarities"] = replace(accuracies["similarities"], ties=ties)
    # A choice that is never a label counts as wrong.
    chosen = [(choice is not None and choice == label) for choice, label in zip(systems["model"], labels, strict=True)]
    rows = _labeled(labels)
    correct = [chosen[row] for row in rows]
    accuracies["model_of_all"] = AccuracySummary.of(correct, None if stories is None else stories[rows])
    return {name: accuracies[name] for name in NAMES if name in accuracies}


def _accuracies_at(
    indices: Sequence[int], systems: Mapping[str, Choices], labels: Choices, stories: Stories
) -> dict[str, AccuracySummary]:
    """Compute the accuracy of each system on some of the triples."""
    known = [labels[index] for index in indices]
    stories_of_known = None if stories is None else stories[[*indices]]
    accuracies = {}
    for name, choices in systems.items():
        accuracies[name] = accuracy_of([choices[index] for index in indices], known, stories_of_known)
    return accuracies


def _difference(
    systems: Mapping[str, Choices], labels: Choices, labeled: Sequence[int], stories: Stories
) -> PairedComparison:
    """Compare the language model with similarities to the similarities alone."""
    wrong = _wrong(systems["hybrid"], labels, labeled)
    wrong_by_similarity = _wrong(systems["similarities"], labels, labeled)
    return paired(wrong, wrong_by_similarity, len(labeled), None if stories is None else stories[[*labeled]])


def _wrong(choices: Choices, labels: Choices, labeled: Sequence[int]) -> set[int]:
    """Collect the labeled triples with a wrong choice, by their number among the labeled ones."""
    return {number for number, index in enumerate(labeled) if choices[index] != labels[index]}


def _shown_first(judgements: Sequence[Judgement]) -> Share:
    """Count the answers for the candidate that the request shows first: A or, if swapped, B."""
    count = total = 0
    for judgement in judgements:
        for order, answer in enumerate(judgement.answers):
            a_is_first = order == 0
            if answer.a_is_closer is not None:
                total += 1
                count += answer.a_is_closer == a_is_first
    return Share(count, total)


def _as_dicts(accuracies: Accuracies) -> dict[str, object]:
    """Convert accuracies to JSON values."""
    return {name: accuracy.as_dict() for name, accuracy in accuracies.items()}


def _cells(accuracies: Accuracies) -> dict[str, str]:
    """Format accuracies by system."""
    return {name: _cell(accuracy) for name, accuracy in accuracies.items()}


def _cell(accuracy: AccuracySummary) -> str:
    """Format an accuracy."""
    return str(accuracy) if accuracy.n else "unknown without labels"
