"""Report on fits with several seeds: mean and standard deviation over seeds, and tests over triples."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.outcome import EVALUATIONS, Outcome
from narrlit.experiments.report import Entry, Report, Spread
from narrlit.metrics.significance import (
    SharedStories,
    interval_by_story,
    p_text,
    permutation_test,
    permutation_test_by_story,
)

BySeed = Mapping[int, Outcome]
TRAINED, FROZEN = "trained", "frozen"
NOTES = {
    "mean": "mean over the seeds ± standard deviation between them, which is the variation of training only; the "
    "interval is for other triples",
    "difference": "seed by seed on the same triples; p is from the paired permutation test over triples, with the "
    "number of seeds that answer each correctly: it generalizes to other triples",
    "last_epoch": "accuracy after the last epoch; not selected by any evaluation",
    "best_epoch": "accuracy in the epoch that these triples selected in each fit: too high because of this selection",
    FROZEN: "encoder before training, without a new head",
}
INDEPENDENT = "Triples are assumed to be independent."
BY_STORY = "p accounts for stories that triples share (variance robust to shared stories, Student's t)."


@dataclass(frozen=True)
class SeedDifference:
    """Difference of a system to the reference over seeds, and p over triples.

    Attributes:
        spread: mean and standard deviation of the difference.
        p: p of the test; None if scores are NaN.
        test: permutation test, or that by story if the triples share stories.
    """

    spread: Spread
    p: float | None = None
    test: Literal["permutation", "permutation_by_story"] = "permutation"

    def as_dict(self) -> Entry:
        """Convert to JSON values."""
        return {**self.spread.as_dict(), "p": self.p, "test": None if self.p is None else self.test}

    def __str__(self) -> str:
        return f"{self.spread.text('+')}, {p_text(self.p)}"


@dataclass(frozen=True)
class SeedSummary:
    """One evaluation of a system over seeds.

    Attributes:
        by_seed: accuracy of each seed; None if scores are NaN.
        interval: 95 % interval of their mean over triples, as wide as that of one seed; None if scores are NaN.
        difference: difference to the reference; None for the reference itself, and without a reference.
        is_compared: there is a reference.
    """

    by_seed: Mapping[int, float | None]
    interval: tuple[float, float] | None
    difference: SeedDifference | None = None
    is_compared: bool = False

    @property
    def spread(self) -> Spread:
        """Mean and standard deviation over the seeds."""
        return Spread.of(list(self.by_seed.values()))

    def as_dict(self) -> Entry:
        """Convert to JSON values."""
        content = {"by_seed": dict(self.by_seed), **self.spread.as_dict(), "interval": self.interval}
        if self.is_compared:
            content["difference"] = None if self.difference is None else self.difference.as_dict()
        return content


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds of a plan.

    Raises:
        OptionError: if there are fewer than two, or one is negative or repeated.
    """
    if len(seeds) < 2 or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise OptionError(f"`seeds`: {list(seeds)}; give two or more different whole numbers, such as [1, 2, 3]")
    return list(seeds)


def with_frozen(outcomes: BySeed) -> dict[str, BySeed]:
    """Add the frozen encoder, which is the same in every epoch, as a system if every fit evaluated it."""
    frozen: dict[int, Outcome] = {}
    for seed, outcome in outcomes.items():
        if outcome.reference is None:
            return {TRAINED: outcomes}
        frozen[seed] = Outcome(dict.fromkeys(EVALUATIONS, outcome.reference), outcome.num_evaluations)
    return {FROZEN: frozen, TRAINED: outcomes}


def seeds_report(results: Mapping[str, BySeed], reference: str) -> Report:
    """Summarize systems over seeds, and compare each with the reference, if there is one.

    Args:
        results: outcomes by system and seed.
        reference: name of the system with which the others are compared.
    """
    base = results.get(reference)
    systems: dict[str, Entry] = {}
    tables: dict[str, list[Entry]] = {}
    for system, outcomes in results.items():
        systems[system] = {}
        for name in EVALUATIONS:
            summary = _summary(outcomes, base, name)
            systems[system][name] = summary.as_dict()
            rows = tables.setdefault(report.spoken(name).capitalize(), [])
            rows.append(_row(system, summary, reference))
    flags = _flags(results)
    notes = dict(NOTES)
    if FROZEN not in results:
        del notes[FROZEN]
    return Report(
        content={
            "seeds": list(next(iter(results.values()))),
            "notes": notes,
            "systems": systems,
            "flags": flags,
        },
        tables=tables,
        notes=[*report.note_lines(notes), *_assumption(results), *_warnings(flags)],
        records=[],
        intervals=_intervals(results),
    )


def _summary(outcomes: BySeed, base: BySeed | None, name: str) -> SeedSummary:
    """Summarize one evaluation of a system over seeds."""
    by_seed = {seed: outcome.scores[name].accuracy for seed, outcome in outcomes.items()}
    interval = _interval(outcomes, name)
    if base is None:
        return SeedSummary(by_seed, interval)
    if outcomes is base:
        return SeedSummary(by_seed, interval, is_compared=True)
    return SeedSummary(by_seed, interval, _difference(outcomes, base, name), is_compared=True)


def _interval(outcomes: BySeed, name: str) -> tuple[float, float] | None:
    """Compute the interval of the mean accuracy of the seeds, from the share of them that answer a triple correctly."""
    wrong = _wrong(outcomes, name)
    if wrong is None:
        return None
    first = next(iter(outcomes.values())).scores[name]
    stories = first.stories
    positions = range(first.summary.n) if stories is None else stories
    shares = 1 - np.array(_counts(wrong, positions)) / len(wrong)
    shared = SharedStories(np.arange(len(shares))[:, None] if stories is None else [*stories.values()])
    return interval_by_story(shares, shared)


def _row(system: str, summary: SeedSummary, reference: str) -> Entry:
    """Format a system's accuracies, and its difference to the reference."""
    row: Entry = {"system": system}
    for seed, accuracy in summary.by_seed.items():
        row[f"seed {seed}"] = "none" if accuracy is None else f"{accuracy:.3f}"
    row["mean"] = summary.spread.text()
    row["95 % interval"] = "none" if summary.interval is None else "[{:.3f}, {:.3f}]".format(*summary.interval)
    if summary.is_compared:
        row[f"difference to {reference}"] = "" if summary.difference is None else str(summary.difference)
    return row


def _difference(outcomes: BySeed, base: BySeed, name: str) -> SeedDifference:
    """Compute a system's difference over seeds, and p over triples."""
    wrong, base_wrong = _wrong(outcomes, name), _wrong(base, name)
    if wrong is None or base_wrong is None:
        return SeedDifference(Spread())
    differences = []
    for seed, outcome in outcomes.items():
        accuracy = outcome.scores[name].summary.accuracy
        differences.append(accuracy - base[seed].scores[name].summary.accuracy)
    stories = next(iter(base.values())).scores[name].stories
    if stories is not None:
        shared = SharedStories([*stories.values()])
        if shared.num_sharing:
            p = permutation_test_by_story(_counts(base_wrong, stories), _counts(wrong, stories), shared)
            return SeedDifference(Spread.of(differences), p, "permutation_by_story")
    # A triple that all fits answer correctly has a difference of 0, which does not affect the test.
    triples = sorted(set().union(*wrong, *base_wrong))
    p = permutation_test(_counts(base_wrong, triples), _counts(wrong, triples))
    return SeedDifference(Spread.of(differences), p)


def _wrong(outcomes: BySeed, name: str) -> list[Set[Any]] | None:
    """Collect the wrong answers of each seed; None if a score is NaN."""
    wrong: list[Set[Any]] = []
    for outcome in outcomes.values():
        positions = outcome.scores[name].wrong
        if positions is None:
            return None
        wrong.append(positions)
    return wrong


def _counts(wrong: Sequence[Set[Any]], triples: Iterable[Any]) -> list[int]:
    """Count the seeds that answer each triple incorrectly."""
    counts = Counter(chain.from_iterable(wrong))
    return [counts[triple] for triple in triples]


def _flags(results: Mapping[str, BySeed]) -> list[str]:
    """Collect the flags of all fits."""
    flags: set[str] = set()
    for outcomes in results.values():
        for outcome in outcomes.values():
            flags.update(outcome.flags)
    return sorted(flags)


def _assumption(results: Mapping[str, BySeed]) -> list[str]:
    """Describe what the test assumes about the triples; empty without a comparison."""
    if len(results) < 2:
        return []
    outcomes = chain.from_iterable(by_seed.values() for by_seed in results.values())
    return [BY_STORY if any(outcome.is_by_story for outcome in outcomes) else INDEPENDENT]


def _warnings(flags: Sequence[str]) -> list[str]:
    """Format flags and warnings about the accuracies."""
    lines = []
    if flags:
        lines.append(f"Flags of the runs: {', '.join(flags)}.")
    if "trained_on_validation" in flags:
        lines.append("NOT A RESULT: the fits were trained on validation triples.")
    return lines


def _intervals(results: Mapping[str, BySeed]) -> dict[str, Entry]:
    """Collect the accuracies after the last epoch, for the plot."""
    intervals = {}
    for system, outcomes in results.items():
        for seed, outcome in outcomes.items():
            intervals[f"{system}, seed {seed}"] = outcome.last.as_dict()
    return intervals
