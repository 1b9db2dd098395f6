"""Accuracies of fits: of a single fit, pooled over folds, and compared on the same triples."""

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass

from narrlit.metrics.significance import AccuracySummary, PairedComparison, paired, summary_of
from narrlit.models.run_file import Evaluation, RunFile

LAST, BEST, REFERENCE = "last_epoch", "best_epoch", "reference"
EVALUATIONS = (LAST, BEST)
"""Evaluations that reports compare: after the last epoch, and the best one."""


@dataclass(frozen=True)
class Scored:
    """Accuracy of one evaluation, and the triples that were answered incorrectly.

    Attributes:
        summary: the accuracy.
        wrong: positions of the triples, or pairs of fold and position; None if a score was NaN.
        epoch: epoch, from 0, after which they were evaluated; None before training, and for several fits.
        stories: stories of each triple, by its position; None if they are unknown: triples then count as independent.
    """

    summary: AccuracySummary
    wrong: Set[Hashable] | None = None
    epoch: int | None = None
    stories: Mapping[Hashable, Sequence[int]] | None = None

    @classmethod
    def of(
        cls, evaluation: Evaluation, wrong: Sequence[int] | None, stories: Sequence[Sequence[int]] | None = None
    ) -> "Scored":
        """Combine an evaluation in a record with its wrong answers, and the stories of the triples."""
        positions = None if wrong is None else frozenset(wrong)
        stories_of: dict[Hashable, Sequence[int]] | None = None
        if stories is not None and len(stories) == evaluation.n:  # else only some of the triples were evaluated
            stories_of = dict(enumerate(stories))
        return cls(summary_of(evaluation), positions, evaluation.epoch, stories_of)

    @property
    def accuracy(self) -> float | None:
        """Share of right answers; None if a score was NaN."""
        return self.summary.accuracy if self.summary.known else None

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values, without the answers."""
        epoch = {} if self.epoch is None else {"epoch": self.epoch}
        return epoch | self.summary.as_dict()


@dataclass(frozen=True)
class Outcome:
    """Result of a fit.

    Attributes:
        scores: evaluations by name: `last_epoch`, `best_epoch` and, if the fit evaluated it, `reference`: the frozen
            encoder or, without a new head, the model before training.
        num_evaluations: number of evaluations on the validation triples.
        flags: contamination and provenance flags of the accuracies.
    """

    scores: Mapping[str, Scored]
    num_evaluations: int
    flags: Sequence[str] = ()

    @property
    def last(self) -> Scored:
        """Evaluation after the last epoch."""
        return self.scores[LAST]

    @property
    def best(self) -> Scored:
        """Best evaluation."""
        return self.scores[BEST]

    @property
    def is_by_story(self) -> bool:
        """True if an interval accounts for stories that triples share."""
        return any(score.summary.by_story is not None for score in self.scores.values())

    @property
    def reference(self) -> Scored | None:
        """Evaluation of the encoder before training; None if the fit did not evaluate it."""
        return self.scores.get(REFERENCE)

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values, without the answers."""
        accuracies = {name: self.scores[name].as_dict() for name in EVALUATIONS}
        reference = None if self.reference is None else self.reference.as_dict()
        return {
            "num_evaluations": self.num_evaluations,
            **accuracies,
            REFERENCE: reference,
            "flags": list(self.flags),
        }


def comparison_of(record: RunFile) -> PairedComparison | None:
    """Return the comparison of the best evaluation with the frozen encoder from a record; None if there is none."""
    stored = record.comparison
    if stored is None:
        return None
    return PairedComparison(stored.difference, stored.lost, stored.won, stored.p, stored.test)


def pooled(outcomes: Mapping[int, Outcome]) -> Outcome:
    """Pool the outcomes of several folds, which were evaluated on different triples.

    Wrong answers become pairs of fold and position. If a fold has no accuracy, the result has none.

    Args:
        outcomes: outcomes by fold.
    """
    fits = list(outcomes.values())
    names = [*EVALUATIONS]
    if all(fit.reference is not None for fit in fits):
        names.append(REFERENCE)
    scores = {}
    for name in names:
        by_fold = {fold: fit.scores[name] for fold, fit in outcomes.items()}
        scores[name] = _pooled(by_fold)
    num_evaluations = sum(fit.num_evaluations for fit in fits)
    flags: set[str] = set()
    for fit in fits:
        flags.update(fit.flags)
    return Outcome(scores, num_evaluations, sorted(flags))


def _pooled(scores: Mapping[int, Scored]) -> Scored:
    """Add up one evaluation of every fold."""
    summaries = [score.summary for score in scores.values()]
    summary = AccuracySummary(
        n=sum(fold.n for fold in summaries),
        correct=sum(fold.correct for fold in summaries),
        ties=sum(fold.ties for fold in summaries),
        undefined=sum(fold.undefined for fold in summaries),
    )
    wrong: set[Hashable] = set()
    for fold, score in scores.items():
        if score.wrong is None:
            return Scored(summary)
        wrong.update((fold, position) for position in score.wrong)
    stories: dict[Hashable, Sequence[int]] = {}
    for fold, score in scores.items():
        if score.stories is None:
            return Scored(summary, wrong)
        stories.update(((fold, position), triple) for position, triple in score.stories.items())
    correct = [position not in wrong for position in stories]
    summary = AccuracySummary.of(correct, [*stories.values()], summary.ties)
    return Scored(summary, wrong, stories=stories)


def compared(score: Scored, other: Scored) -> PairedComparison:
    """Compare two evaluations of the same triples."""
    if score.stories is None or score.wrong is None or other.wrong is None:
        return paired(score.wrong, other.wrong, score.summary.n)
    row_of = {position: row for row, position in enumerate(score.stories)}
    wrong = {row_of[position] for position in score.wrong}
    other_wrong = {row_of[position] for position in other.wrong}
    return paired(wrong, other_wrong, score.summary.n, [*score.stories.values()])
