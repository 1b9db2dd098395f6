"""Comparison of systems on the same labeled triples: paired tests, accuracy by subset, agreement and combinations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrlit.console import counted
from narrlit.data.readers import TRIPLES_KNOWN, TripleRow, collect
from narrlit.data.rows import column_names, read_rows
from narrlit.data.schema import IntArray, TrainingExamples, Triples, example_of, normal_form
from narrlit.data.splits import grouped_folds, story_groups, story_numbers
from narrlit.errors import OptionError, did_you_mean, printable
from narrlit.experiments import report
from narrlit.experiments.fusion_weights import best_elsewhere, simplex_grid
from narrlit.experiments.report import Entry, Report
from narrlit.experiments.systems import Flags, SystemAnswers, flag_words
from narrlit.metrics.baselines import jaccard_scores
from narrlit.metrics.significance import (
    AccuracySummary,
    PairedComparison,
    PairedTest,
    SharedStories,
    holm,
    paired,
    smallest_difference,
)
from narrlit.metrics.words import stop_words_text

LEVEL = 0.05
SEEN = "seen_in_training"
FOLDS = 5
MOST_VALUES = 8
"""Maximum number of different numbers for which a column is divided by value instead of by quartile."""
MOST_ROWS = 12
"""Maximum number of rows in a table by the values of a column; the rarest values share the last row."""
MOST_WEIGHTS = 3003
FACETS = {
    "overlap": "word overlap (Jaccard index) with the anchor: that of the right candidate minus that of the wrong one; "
    "below 0, words mislead",
    "length": "mean number of words in the stories of a triple",
    "margin": "difference of a system's two scores, by its own quartiles: how certain it is",
}
Values = Sequence[Any] | NDArray[np.float64]


# Facets --------------------------------------------------------------------------------------------------------------


def read_facets(names: Sequence[str], labeled: Triples) -> dict[str, Values | None]:
    """Return the values of N triples for names in FACETS or columns of their file; None for `margin`.

    Raises:
        OptionError: if the file has no such column.
    """
    columns = [name for name in names if name not in FACETS]
    cells = _read_columns(columns, labeled) if columns else {}
    facets: dict[str, Values | None] = {}
    for name in names:
        if name == "overlap":
            scores = jaccard_scores(labeled.texts())
            facets[name] = SystemAnswers.scored(name, "baseline", labeled.labels == 1, scores).margin
        elif name == "length":
            facets[name] = [_mean_length(texts) for texts in labeled.texts()]
        else:
            facets[name] = cells.get(name)
    return facets


def _mean_length(texts: Sequence[str]) -> float:
    """Compute the mean number of words in the stories of a triple."""
    return len(" ".join(texts).split()) / len(texts)


def _read_columns(names: Sequence[str], labeled: Triples) -> dict[str, list[Any]]:
    """Read columns of the file of the triples."""
    if labeled.report is None:
        raise OptionError(f"`by={names[0]}`: a column needs a file of triples; or give {', '.join(FACETS)}")
    path = labeled.report.path
    results, _ = collect(read_rows(path), [TripleRow], TRIPLES_KNOWN, strict=False)
    rows = [{normal_form(column): cell for column, cell in row.value.items()} for row, _ in results]
    columns = column_names(rows)
    cells = {}
    for name in names:
        if normal_form(name) not in columns:
            shown = ", ".join(printable(column, 30) for column in columns[:12])
            raise OptionError(
                f"`by={name}`: {path} has no such column{did_you_mean(name, columns)}; found: {shown}; "
                f"or give {', '.join(FACETS)}"
            )
        values = [row.get(normal_form(name)) for row in rows]
        cells[name] = [normal_form(value) if isinstance(value, str) else value for value in values]
    return cells


class Bins(NamedTuple):
    """Bins of N values.

    Attributes:
        numbers: (N,) bin of each value, from 0.
        names: names of the bins.
    """

    numbers: IntArray
    names: list[str]


def divide(values: Values, most: int = MOST_VALUES) -> Bins:
    """Divide N values into quartiles if they are numbers with more than `most` different values, else by value.

    Equal numbers are in the same bin, so that bins may differ in size.

    >>> divide([1.0, 2, 3, 4, 5, 6, 7, 8, 9]).names
    ['1 to 3', '4 to 5', '6 to 7', '8 to 9']
    >>> divide(["b", "a", "b", None])
    Bins(numbers=array([0, 1, 0, 2]), names=['b', 'a', 'none'])
    """
    numbers = _finite_numbers(values)
    if numbers is not None and len(set(numbers.tolist())) > most:
        return _divide_by_quartile(numbers)
    return _divide_by_value(values)


def _finite_numbers(values: Values) -> NDArray[np.float64] | None:
    """Convert values to numbers; return None if one is not a finite number, or is a boolean."""
    if any(isinstance(value, bool) for value in values):
        return None
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _divide_by_quartile(numbers: NDArray[np.float64]) -> Bins:
    """Divide numbers into quartiles, named by their smallest and largest number."""
    edges = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75]))
    _, bins = np.unique(np.searchsorted(edges, numbers), return_inverse=True)
    names = []
    for number in range(bins.max() + 1):
        in_bin = numbers[bins == number]
        names.append(f"{_end(in_bin.min())} to {_end(in_bin.max())}")
    return Bins(bins, names)


def _end(number: float) -> str:
    """Format a limit of a quartile; years and other large numbers keep their digits."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"


def _divide_by_value(values: Values) -> Bins:
    """Divide values by equality, most frequent first; the rarest of many values become `others`."""
    names = [_value_name(value) for value in values]
    bin_of: dict[str, int] = {}
    for rank, (name, _) in enumerate(Counter(names).most_common()):
        bin_of[name] = min(rank, MOST_ROWS - 1)
    bin_names = list(bin_of)
    if len(bin_names) > MOST_ROWS:
        bin_names[MOST_ROWS - 1 :] = ["others"]
    return Bins(np.array([bin_of[name] for name in names]), bin_names)


def _value_name(value: object) -> str:
    """Format a value as the name of its bin."""
    return "none" if value in (None, "") else printable(value, 40)


def _by_facet(systems: Sequence[SystemAnswers], values: Values | None) -> list[Entry]:
    """Compute accuracies by bin, {"bin": name, "systems": {name: accuracy}}; without values, by quartile of margin."""
    entries: list[Entry] = []
    for system in systems:
        if values is not None:
            bins = divide(values)
        elif system.margin is not None:
            bins = _margin_quartiles(system.margin)
        else:
            continue
        for number, name in enumerate(bins.names):
            if number == len(entries):
                entries.append({"bin": name, "systems": {}})
            in_bin = np.flatnonzero(bins.numbers == number)
            entries[number]["systems"][system.name] = system.summary_at(in_bin).as_dict()
    return entries


def _margin_quartiles(margin: NDArray[np.float64]) -> Bins:
    """Divide triples into quartiles of a system's margin; scales of different systems can't be compared."""
    numbers, ends = divide(np.abs(margin).tolist(), 0)
    return Bins(numbers, [f"quartile {number}" for number in range(1, len(ends) + 1)])


def _facet_rows(name: str, bins: Sequence[Entry]) -> list[Entry]:
    """Format the accuracies by bin; n is a column if it is the same for all systems."""
    rows = []
    for entry in bins:
        accuracies = entry["systems"]
        row = {name: entry["bin"]}
        sizes = {accuracy["n"] for accuracy in accuracies.values()}
        if len(sizes) == 1:
            row["n"] = sizes.pop()
        for system, accuracy in accuracies.items():
            row[system] = report.accuracy_cell(accuracy)
        rows.append(row)
    return rows


# Differences ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Difference of two systems on n triples.

    Attributes:
        value: accuracy of the system minus that of the first system.
        lost: number of triples that only the first system answers correctly.
        won: number of triples that only the other system answers correctly.
        n: number of triples.
        p: p of McNemar's test, exact or by story.
        test: test that was used.
        design_effect: factor by which shared stories multiply the variance; None if no triples share stories, or the
            triples allow no test.
        adjusted_p: p, corrected for the number of comparisons; None without a test.
    """

    value: float
    lost: int
    won: int
    n: int
    p: float
    test: PairedTest = "mcnemar"
    design_effect: float | None = None
    adjusted_p: float | None = None

    @classmethod
    def of(cls, system: SystemAnswers, first: SystemAnswers, shared: SharedStories) -> "Difference":
        """Compare a system with the first one."""
        counts = paired(_wrong(system), _wrong(first), shared.num_triples, shared)
        return cls(
            value=counts.difference,
            lost=counts.lost,
            won=counts.won,
            n=shared.num_triples,
            p=counts.p,
            test=counts.test,
            design_effect=counts.design_effect,
        )

    @property
    def counts(self) -> PairedComparison:
        """Comparison of the two systems."""
        return PairedComparison(self.value, self.lost, self.won, self.p, self.test, self.design_effect)

    @property
    def discordance(self) -> float:
        """Share of triples that only one of the systems answers correctly."""
        return (self.lost + self.won) / self.n

    @property
    def is_significant(self) -> bool:
        """True if the adjusted p is below the level."""
        return self.adjusted_p is not None and self.adjusted_p < LEVEL

    def points_needed(self, level: float, shared: SharedStories) -> float:
        """Compute the smallest difference, in points of accuracy, for which p is below a level."""
        if self.design_effect is None:
            return 100 * smallest_difference(self.n, self.discordance, level)
        return 100 * smallest_difference(self.n, self.discordance, level, self.design_effect, shared.degrees_of_freedom)

    def record(self) -> Entry:
        """Return all known values as plain data."""
        record: Entry = {**self.counts.as_dict(), "discordance": self.discordance}
        if self.adjusted_p is not None:
            record["adjusted_p"] = self.adjusted_p
        return record


def _wrong(system: SystemAnswers) -> set[int]:
    """Collect the triples that a system answers wrongly."""
    return set(np.flatnonzero(~system.correct).tolist())


@dataclass(frozen=True)
class ComparedSystem:
    """Accuracy of a system and its difference to the first one.

    Attributes:
        answers: answers of the system.
        accuracy: accuracy with its interval.
        design_effect: factor by which shared stories multiply the variance of the accuracy; None if no triples share
            stories, or the triples allow no test.
        difference: difference to the first system; None for the first.
    """

    answers: SystemAnswers
    accuracy: AccuracySummary
    design_effect: float | None = None
    difference: Difference | None = None

    @classmethod
    def of(cls, system: SystemAnswers, shared: SharedStories, difference: Difference | None = None) -> "ComparedSystem":
        """Compute the interval of a system; `difference` is that to the first system."""
        is_testable = shared.num_sharing > 0 and shared.degrees_of_freedom > 0
        design_effect = shared.design_effect(system.correct) if is_testable else None
        return cls(
            answers=system,
            accuracy=AccuracySummary.of(system.correct, shared, int(system.ties.sum())),
            design_effect=design_effect,
            difference=difference,
        )

    @property
    def name(self) -> str:
        """Name of the system."""
        return self.answers.name

    @property
    def is_trained_on_triples(self) -> bool:
        """True if the record of the system names these triples; possible training on them is only noted."""
        return str(self.answers.flags.get(SEEN)).startswith("trained on these triples")

    def record(self) -> Entry:
        """Return accuracy, intervals, difference and flags as plain data."""
        record: Entry = {"system": self.name, "kind": self.answers.kind, **self.accuracy.as_dict()}
        if self.design_effect is not None:
            record["design_effect"] = self.design_effect
        if self.difference is not None:
            record["difference"] = self.difference.record()
        record["flags"] = self.answers.flags
        return record | self.answers.settings

    def row(self, first: str) -> Entry:
        """Format a row of a table; cells without a value are empty."""
        summary = self.accuracy.as_dict()
        row = {
            "system": self.name,
            "n": summary["n"],
            "accuracy, 95 % interval": report.accuracy_cell(summary),
            f"difference to {first}": "",
            "design effect": "",
            "adjusted p": "",
            "flags": self._flags_cell(),
        }
        difference = self.difference
        if difference is not None:
            row[f"difference to {first}"] = report.difference_cell(difference.counts)
            row["design effect"] = "" if difference.design_effect is None else f"{difference.design_effect:.2f}"
            row["adjusted p"] = _p_cell(difference.adjusted_p)
        return row

    def _flags_cell(self) -> str:
        """List the flags; details about the training are in the notes."""
        flags = dict(self.answers.flags)
        seen = flags.pop(SEEN, None)
        words = flag_words(flags)
        if seen is not None:
            words.append(SEEN)
        return ", ".join(words)


def _p_cell(p: float | None) -> str:
    """Format p; empty without one."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _rows(compared: Sequence[ComparedSystem], first: str) -> list[Entry]:
    """Format a table of systems, without columns that are empty."""
    rows = [system.row(first) for system in compared]
    for column in column_names(rows):
        if not any(row[column] for row in rows):
            for row in rows:
                del row[column]
    return rows


def _compare_with_first(systems: Sequence[SystemAnswers], shared: SharedStories) -> list[ComparedSystem]:
    """Compare systems with the first one, with p corrected for the number of comparisons."""
    first, *others = systems
    differences = [Difference.of(system, first, shared) for system in others]
    adjusted = holm([difference.p for difference in differences])
    compared = [ComparedSystem.of(first, shared)]
    for system, difference, p in zip(others, differences, adjusted, strict=True):
        compared.append(ComparedSystem.of(system, shared, replace(difference, adjusted_p=p)))
    return compared


def _compare_combinations(
    combinations: Sequence[SystemAnswers], first: SystemAnswers, shared: SharedStories
) -> list[ComparedSystem]:
    """Compare combinations with the first system, except the oracle, which is the first combination."""
    if not combinations:
        return []
    oracle, *others = combinations
    # The oracle is an upper bound, for which a test would be meaningless.
    compared = [ComparedSystem.of(oracle, shared)]
    for combination in others:
        compared.append(ComparedSystem.of(combination, shared, Difference.of(combination, first, shared)))
    return compared


# Report --------------------------------------------------------------------------------------------------------------


def compare_systems(
    systems: Sequence[SystemAnswers], labeled: Triples, facets: Mapping[str, Values | None], about: Entry
) -> Report:
    """Compare systems with the first one on N labeled triples.

    Args:
        systems: one or more systems.
        labeled: the triples.
        facets: values of the triples by name, from `read_facets`.
        about: plain data with which the report begins.
    """
    groups = story_groups(TrainingExamples(labeled.stories, [example_of(triple) for triple in labeled]))
    stories = story_numbers(labeled)
    systems = [replace(system, stories=stories) for system in systems]
    shared = SharedStories(stories)
    combinations, weights = combine([system for system in systems if system.kind != "baseline"], groups)
    figures = ComparisonFigures(
        systems=systems,
        shared=shared,
        num_groups=len(np.unique(groups)),
        compared=_compare_with_first(systems, shared),
        combined=_compare_combinations(combinations, systems[0], shared),
        weights=weights,
        by={name: _by_facet(systems, values) for name, values in facets.items()},
        agreement=_agreement(systems),
    )
    return figures.report(about)


@dataclass(frozen=True, eq=False)
class ComparisonFigures:
    """Figures of a comparison of systems on the same triples.

    Attributes:
        systems: the systems; each is compared with the first.
        shared: dependence of the triples.
        num_groups: number of groups of triples without common stories.
        compared: accuracies and differences of the systems.
        combined: accuracies and differences of their combinations.
        weights: weights of the weighted mean, by fold.
        by: accuracies by bin, by the name of the facet.
        agreement: shares of equal answers, by the names of both systems.
    """

    systems: Sequence[SystemAnswers]
    shared: SharedStories
    num_groups: int
    compared: Sequence[ComparedSystem]
    combined: Sequence[ComparedSystem]
    weights: Sequence[Sequence[float]]
    by: Mapping[str, Sequence[Entry]]
    agreement: Mapping[str, Mapping[str, float]]

    def report(self, about: Entry) -> Report:
        """Report the figures, after plain data about the comparison."""
        sentence = conclusion(self.compared, self.shared) if len(self.systems) > 1 else None
        systems = [system.record() for system in self.compared]
        combined = [system.record() for system in self.combined]
        content = {
            **about,
            "conclusion": sentence,
            "groups": self.num_groups,
            "triples_sharing_stories": self.shared.num_sharing,
            "degrees_of_freedom": self.shared.degrees_of_freedom if self.shared.num_sharing else None,
            "systems": systems,
            "combined": combined,
            "weights_by_fold": self.weights,
            "by": self.by,
            "same_answers": self.agreement,
        }
        records = systems + combined
        intervals = {record["system"]: record for record in records}
        return Report(content, self._tables(), self._notes(sentence), records, intervals)

    def _tables(self) -> dict[str, list[Entry]]:
        """Format systems, combinations, accuracies by facet and agreement, by title; empty tables are left out."""
        first = self.systems[0].name
        tables = {"": _rows(self.compared, first), "Combined": _rows(self.combined, first)}
        for name, bins in self.by.items():
            tables[f"Accuracy by {name}"] = _facet_rows(name, bins)
        if len(self.systems) > 1:
            tables["Same answers"] = _agreement_rows(self.agreement)
        return {title: rows for title, rows in tables.items() if rows}

    def _notes(self, sentence: str | None) -> list[str]:
        """List the conclusion, explanations of columns and rows, and systems that may have been trained on triples."""
        notes = [] if sentence is None else [sentence]
        notes += report.note_lines(self._explanations())
        by_story = self.shared.num_sharing > 0
        notes.append(report.method_note(by_story, tested=len(self.systems) > 1))
        for system in self.systems:
            if SEEN in system.flags:
                notes.append(f"{system.name}: {system.flags[SEEN]}.")
        return notes

    def _explanations(self) -> dict[str, str]:
        """Explain the columns and rows of the tables, by name."""
        first, num_comparisons = self.systems[0].name, len(self.systems) - 1
        notes = {}
        if num_comparisons:
            notes["difference"] = f"accuracy minus that of {first}; lost: only {first} is right, won: only the other is"
            notes["adjusted_p"] = f"p, corrected for {counted(num_comparisons, 'comparison')} (Holm)"
        if self.shared.num_sharing:
            notes["by_story"] = by_story_note(self.shared)
        if any(system.accuracy.ties for system in (*self.compared, *self.combined)):
            notes["ties"] = "equal scores of A and B, which count as an answer for B"
        if self.weights:
            notes["weighted_mean"] = (
                "mean of the systems' score differences, each divided by its root mean square, with weights (in the "
                f"order of the table) that were best on the other folds: {'; '.join(map(_weights_text, self.weights))}"
            )
        for system in self.systems:
            if "stop_words" in system.settings:  # the same for all baselines, which read the same stories
                notes["stop_words"] = stop_words_text(system.settings["stop_words"])
        for name in self.by:
            if name in FACETS:
                notes[f"by_{name}"] = FACETS[name]
        return notes


def _agreement(systems: Sequence[SystemAnswers]) -> dict[str, dict[str, float]]:
    """Compute the share of equal answers for each pair of systems."""
    agreement: dict[str, dict[str, float]] = {}
    for system in systems:
        shares = agreement[system.name] = {}
        for other in systems:
            shares[other.name] = float((system.answers == other.answers).mean())
    return agreement


def _agreement_rows(agreement: Mapping[str, Mapping[str, float]]) -> list[Entry]:
    """Format the shares of equal answers."""
    rows = []
    for name, shares in agreement.items():
        row = {"system": name}
        for other, share in shares.items():
            row[other] = f"{share:.2f}"
        rows.append(row)
    return rows


def _weights_text(weights: Sequence[float]) -> str:
    """Format the weights of a fold."""
    return ", ".join(f"{weight:g}" for weight in weights)


def by_story_note(shared: SharedStories) -> str:
    """Describe how many triples share stories, and which test and interval account for this."""
    count = f"{shared.num_sharing} of {shared.num_triples} triples share a story with others"
    if not shared.degrees_of_freedom:
        return f"{count}, so many that neither a difference nor its absence can be shown"
    return (
        f"{count}; intervals and p account for this (score interval and McNemar's test, variance robust to "
        f"shared stories, Student's t with {shared.degrees_of_freedom:.0f} degrees of freedom). n divided by the "
        "design effect is the number of independent triples that would tell as much about the difference"
    )


def conclusion(compared: Sequence[ComparedSystem], shared: SharedStories) -> str:
    """Describe which systems are better or worse than the first, and how large a difference the others would need.

    >>> labels = np.ones(200, dtype=bool)
    >>> minilm, other = (SystemAnswers(name, "model", labels, labels) for name in ("minilm", "other"))
    >>> difference = Difference(0.06, lost=27, won=39, n=200, p=0.12, adjusted_p=0.12)
    >>> independent = SharedStories([[n] for n in range(200)])
    >>> compared = [ComparedSystem.of(minilm, independent), ComparedSystem.of(other, independent, difference)]
    >>> conclusion(compared, independent)
    'other: a difference to minilm cannot be shown at n = 200; about 9 points would be needed.'
    """
    first, *others = compared
    if first.is_trained_on_triples:
        return f"{first.name} was trained on these triples: differences to it are not valid results."
    better: list[str] = []
    worse: list[str] = []
    undecided: dict[str, Difference] = {}
    trained: list[str] = []
    num_undecided = 0  # including systems that were trained on the triples
    for system in others:
        difference = system.difference
        if difference is not None and not difference.is_significant:
            num_undecided += 1
        if difference is None or system.is_trained_on_triples:
            trained.append(system.name)
        elif not difference.is_significant:
            undecided[system.name] = difference
        elif difference.value > 0:
            better.append(system.name)
        else:
            worse.append(system.name)
    parts = []
    if better:
        parts.append(f"{', '.join(better)}: better than {first.name}")
    if worse:
        parts.append(f"{', '.join(worse)}: worse than {first.name}")
    if undecided:
        # Holm compares the smallest remaining p with the level divided by the number of remaining comparisons.
        needed = _points_needed(list(undecided.values()), LEVEL / num_undecided, shared)
        n = first.accuracy.n
        parts.append(f"{', '.join(undecided)}: a difference to {first.name} cannot be shown at n = {n}; {needed}")
    if trained:
        parts.append(f"{', '.join(trained)}: no result, trained on these triples")
    return f"{'. '.join(parts)}."


def _points_needed(differences: Sequence[Difference], level: float, shared: SharedStories) -> str:
    """Describe how large differences must be for p to be below a level, given the number of differing answers."""
    if shared.num_sharing and not shared.degrees_of_freedom:
        return "triples that share so many stories can't show any difference"
    points = [difference.points_needed(level, shared) for difference in differences]
    possible = [value for value in points if not isinf(value)]
    if not possible:
        return "these triples can't show any difference"
    least, most = f"{min(possible):.3g}", f"{max(possible):.3g}"
    needed = least if least == most else f"{least} to {most}"
    return f"about {needed} points would be needed"


# Combinations --------------------------------------------------------------------------------------------------------


def combine(systems: Sequence[SystemAnswers], groups: IntArray) -> tuple[list[SystemAnswers], list[list[float]]]:
    """Combine systems by oracle, majority vote (of three or more) and weighted mean; also return weights by fold."""
    if len(systems) < 2:
        return [], []
    first, labels = systems[0], systems[0].labels
    combined = replace(first, flags=_training_flag(systems), scores=None, vectors=None)
    answers = np.stack([system.answers for system in systems])
    any_right = (answers == labels).any(axis=0)
    results = [replace(combined, name="at least one right (oracle)", answers=any_right == labels)]
    if len(systems) > 2:
        results.append(replace(combined, name="majority vote", answers=_majority(answers)))
    scores = [system.scores for system in systems if system.scores is not None]
    num_folds = min(FOLDS, len(np.unique(groups)))
    if len(scores) < 2 or num_folds < 2:
        return results, []
    means, weights = weighted_mean(scores, labels, grouped_folds(groups, num_folds))
    scores_of_means = np.stack([means, np.zeros_like(means)], axis=1)  # 0 is a tie
    results.append(replace(combined, name="weighted mean", answers=means > 0, scores=scores_of_means))
    return results, weights


def _majority(answers: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the most frequent answer (N,) of K systems (K, N), with an equal vote that of the first system."""
    votes_a = answers.sum(axis=0)
    votes_b = len(answers) - votes_a
    majority: NDArray[np.bool_] = np.where(votes_a == votes_b, answers[0], votes_a > votes_b)
    return majority


def _training_flag(systems: Sequence[SystemAnswers]) -> Flags:
    """Return the flag of a combination of systems, if one of them may have been trained on the triples."""
    flags: Flags = {}
    for system in systems:
        if SEEN in system.flags:
            flags[SEEN] = system.flags[SEEN]
    return flags


def weighted_mean(
    scores: Sequence[NDArray[np.float64]], labels: NDArray[np.bool_], folds: Sequence[IntArray]
) -> tuple[NDArray[np.float64], list[list[float]]]:
    """Average the score differences A minus B (N,) of systems, with weights chosen on other folds.

    The differences of each system are divided by their root mean square, because scales differ between models.

    Args:
        scores: (N, 2) scores of A and B, by system.
        labels: (N,) True where A is closer.
        folds: triples of each fold.

    Returns:
        The means (N,), and the weights of each fold.
    """
    by_system = np.stack(scores)
    differences = by_system[:, :, 0] - by_system[:, :, 1]
    differences /= np.maximum(np.sqrt(np.square(differences).mean(axis=1, keepdims=True)), 1e-12)
    grid = simplex_grid(_grid_step(len(differences)), len(differences))
    means = grid @ differences
    settings = best_elsewhere((means > 0) == labels, grid, folds)
    result = np.empty(len(labels))
    for rows, setting in zip(folds, settings, strict=True):
        result[rows] = means[setting, rows]
    return result, grid[settings].tolist()


def _grid_step(num_systems: int) -> float:
    """Choose the finest step, 0.1 or larger, for a grid with at most MOST_WEIGHTS weights."""
    for steps in (10, 5, 2):
        if comb(steps + num_systems - 1, num_systems - 1) <= MOST_WEIGHTS:
            return 1 / steps
    return 1.0
