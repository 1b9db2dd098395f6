"""Comparison of systems on the same labeled triples: paired tests, accuracy by subset, agreement and combinations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.console import counted
from narrlit.data.readers import TRIPLES_KNOWN, TripleRow, collect
from narrlit.data.rows import read_rows
from narrlit.data.schema import IntArray, TrainingExamples, Triples, example_of
from narrlit.data.splits import grouped_folds, story_groups, story_numbers
from narrlit.errors import OptionError, did_you_mean, printable
from narrlit.experiments import report
from narrlit.experiments.fusion_weights import best_elsewhere, simplex_grid
from narrlit.experiments.report import Entry, Report
from narrlit.experiments.systems import SystemAnswers
from narrlit.metrics.baselines import jaccard_scores
from narrlit.metrics.significance import (
    AccuracySummary,
    SharedStories,
    holm,
    interval_by_story,
    mcnemar_by_story,
    paired,
    smallest_difference,
)

LEVEL = 0.05
SEEN = "seen_in_training"
FOLDS = 5
MOST_VALUES = 8
"""Different numbers, up to which a column is divided by value and not by quartile."""
MOST_ROWS = 12
"""Rows of a table by the values of a column; the rarest make the last one."""
MOST_WEIGHTS = 3003
FACETS = {
    "overlap": "word overlap (Jaccard index) with the anchor, the right candidate's minus the wrong one's: below 0, "
    "words mislead",
    "length": "mean number of words of a triple's stories",
    "margin": "distance of a system's two scores, its own quartiles: how sure it is",
}
Values = Sequence[Any] | NDArray[np.float64]


def read_facets(names: Sequence[str], labeled: Triples) -> dict[str, Values | None]:
    """Find the value of each of N triples for the names in FACETS and columns of their file; None for `margin`.

    Raises:
        OptionError: if the file has no such column.
    """
    facets: dict[str, Values | None] = {}
    own = [name for name in names if name not in FACETS]
    if own and labeled.report is None:
        raise OptionError(f"`by={own[0]}`: a column needs a file of triples; or give {', '.join(FACETS)}")
    triples = None if labeled.report is None else labeled.report.path
    read = collect(read_rows(triples), [TripleRow], TRIPLES_KNOWN, strict=False)[0] if own and triples else []
    rows = [row.value for row, _ in read]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for name in names:
        if name == "overlap":
            scores = jaccard_scores(labeled.texts())
            facets[name] = SystemAnswers.scored(name, "baseline", labeled.labels == 1, scores).margin
        elif name == "length":
            facets[name] = [sum(len(text.split()) for text in texts) / 3 for texts in labeled.texts()]
        elif name == "margin":
            facets[name] = None
        elif name in columns:
            facets[name] = [row.get(name) for row in rows]
        else:
            raise OptionError(
                f"`by={name}`: {triples} has no such column{did_you_mean(name, columns)}; found: "
                f"{', '.join(printable(column, 30) for column in columns[:12])}; or give {', '.join(FACETS)}"
            )
    return facets


def divide(values: Values, most: int = MOST_VALUES) -> tuple[IntArray, list[str]]:
    """Divide N values into quartiles if they are numbers, more than `most` different ones, else by value.

    Returns each one's bin and the bins' names. Equal numbers are in the same bin, so that bins may differ in size.

    >>> divide([1.0, 2, 3, 4, 5, 6, 7, 8, 9])[1]
    ['1 to 3', '4 to 5', '6 to 7', '8 to 9']
    >>> divide(["b", "a", "b", None])
    (array([0, 1, 0, 2]), ['b', 'a', 'none'])
    """
    try:
        numbers = np.array([float("x" if isinstance(value, bool) else value) for value in values])
        quartiles = len(set(numbers.tolist())) > most and bool(np.isfinite(numbers).all())
    except (TypeError, ValueError):
        quartiles = False
    if quartiles:
        edges = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75]))
        _, bins = np.unique(np.searchsorted(edges, numbers), return_inverse=True)
        ends = [(numbers[bins == number].min(), numbers[bins == number].max()) for number in range(bins.max() + 1)]
        return bins, [f"{_end(low)} to {_end(high)}" for low, high in ends]
    names = ["none" if value in (None, "") else printable(value, 40) for value in values]
    ordered = [name for name, _ in Counter(names).most_common()]
    shown = ordered if len(ordered) <= MOST_ROWS else [*ordered[: MOST_ROWS - 1], "others"]
    return np.array([min(ordered.index(name), MOST_ROWS - 1) for name in names]), shown


def _end(number: float) -> str:
    """Format an end of a quartile; years and other large numbers keep their digits."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"


def compare_systems(
    systems: Sequence[SystemAnswers], labeled: Triples, facets: Mapping[str, Values | None], about: Entry
) -> Report:
    """Compare systems with the first of them on N labeled triples; `facets` as `read_facets` finds them."""
    groups = story_groups(TrainingExamples(labeled.stories, [example_of(triple) for triple in labeled]))
    shared = SharedStories(story_numbers(labeled))
    entries = [_entry(system, systems[0], shared) for system in systems]
    differences = [entry["difference"] for entry in entries[1:]]
    for difference, p in zip(differences, holm([one.get("p_by_story", one["p"]) for one in differences]), strict=True):
        difference["adjusted_p"] = p
    together, weights = combine([system for system in systems if system.kind != "baseline"], groups)
    # The oracle is an upper bound: a test against it would mean nothing.
    combined = [_entry(system, together[0] if system is together[0] else systems[0], shared) for system in together]
    by = {name: _by_facet(systems, values) for name, values in facets.items()}
    first, others, count = systems[0].name, len(systems) - 1, len(np.unique(groups))
    agreement = {a.name: {b.name: float((a.answers == b.answers).mean()) for b in systems} for a in systems}
    tables = {"": _rows(entries, first), "Combined": _rows(combined, first)}
    tables |= {f"Accuracy by {name}": _facet_rows(name, bins) for name, bins in by.items()}
    if others:
        cells = {name: {other: f"{share:.2f}" for other, share in row.items()} for name, row in agreement.items()}
        tables["Same answers"] = [{"system": name, **row} for name, row in cells.items()]
    notes = {}
    if others:
        notes["difference"] = f"accuracy minus that of {first}; lost: only {first} is right, won: only the other system"
        of = "p by story" if shared.num_sharing else "p"
        notes["adjusted_p"] = f"{of}, corrected for {counted(others, 'comparison')} (Holm)"
    if shared.num_sharing:
        notes["by_story"] = by_story_note(shared)
    if weights:
        notes["weighted_mean"] = (
            "of the distances between both scores, each system's in its own unit, with weights (as in the table) that "
            f"were best on the other folds: {'; '.join(', '.join(f'{w:g}' for w in fold) for fold in weights)}"
        )
    notes |= {f"by_{name}": FACETS[name] for name in by if name in FACETS}
    seen = [f"{system.name}: {system.flags[SEEN]}." for system in systems if SEEN in system.flags]
    sentence = [conclusion(entries, shared)] if others else []
    return Report(
        content={
            **about,
            "conclusion": sentence[0] if sentence else None,
            "groups": count,
            "triples_sharing_stories": shared.num_sharing,
            "degrees_of_freedom": shared.degrees_of_freedom if shared.num_sharing else None,
            "systems": entries,
            "combined": combined,
            "weights_by_fold": weights,
            "by": by,
            "same_answers": agreement,
        },
        tables={title: rows for title, rows in tables.items() if rows},
        notes=[*sentence, *report.note_lines(notes), report.INDEPENDENCE, *seen],
        records=[*entries, *combined],
        intervals={entry["system"]: entry for entry in [*entries, *combined]},
    )


def by_story_note(shared: SharedStories) -> str:
    """Say how many triples share stories, and which test and interval count with it."""
    count = f"{shared.num_sharing} of {shared.num_triples} triples share a story with others"
    if not shared.degrees_of_freedom:
        return f"{count}, and so much that neither a difference nor its absence can be shown"
    return (
        f"{count}; interval and p by story count with it (score interval and McNemar's test, variance robust to shared "
        f"stories, Student's t with {shared.degrees_of_freedom:.0f} degrees of freedom). n divided by the design "
        "effect is the number of independent triples that would tell as much of the difference"
    )


def _entry(system: SystemAnswers, first: SystemAnswers, shared: SharedStories) -> Entry:
    """Accuracy of a system, its intervals, and its difference to the first."""
    entry: Entry = {"system": system.name, "kind": system.kind, **system.summary.as_dict()}
    testable = shared.num_sharing > 0 and shared.degrees_of_freedom > 0
    if shared.num_sharing:
        entry["by_story"] = {"interval": list(interval_by_story(system.correct, shared))}
        if testable:
            entry["by_story"]["design_effect"] = shared.design_effect(system.correct)
    if system is not first:
        wrong, other = (set(np.flatnonzero(~one.correct).tolist()) for one in (system, first))
        difference = paired(wrong, other, shared.num_triples)
        difference["discordance"] = (difference["lost"] + difference["won"]) / shared.num_triples
        if shared.num_sharing:
            difference["p_by_story"] = mcnemar_by_story(system.correct, first.correct, shared)
        if testable:
            steps = system.correct.astype(np.float64) - first.correct
            difference["design_effect"] = shared.design_effect(steps)
        entry["difference"] = difference
    return {**entry, "flags": system.flags}


def _rows(entries: Sequence[Entry], first: str) -> list[Entry]:
    """Rows of a table of systems, without columns that are empty."""
    rows = []
    for entry in entries:
        difference, interval = entry.get("difference"), entry.get("by_story", {}).get("interval")
        flags = [name if value is True else f"{name} {value}" for name, value in entry["flags"].items() if name != SEEN]
        row = {
            "system": entry["system"],
            "n": entry["n"],
            "accuracy, 95 % interval": report.accuracy_cell(entry),
            "interval by story": "[{:.3f}, {:.3f}]".format(*interval) if interval else "",
            f"difference to {first}": report.difference_cell(difference),
            "p by story": _p_cell(difference, "p_by_story"),
            "design effect": _effect_cell(difference),
            "adjusted p": _p_cell(difference, "adjusted_p"),
            "flags": ", ".join(flags + [SEEN] * (SEEN in entry["flags"])),
        }
        rows.append(row)
    return [{name: cell for name, cell in row.items() if any(other[name] for other in rows)} for row in rows]


def _p_cell(difference: Entry | None, name: str) -> str:
    p = (difference or {}).get(name)
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _effect_cell(difference: Entry | None) -> str:
    effect = (difference or {}).get("design_effect")
    return "" if effect is None else f"{effect:.2f}"


def conclusion(entries: Sequence[Entry], shared: SharedStories) -> str:
    """Say in one sentence which systems are better or worse than the first, and what is needed to show it of others.

    >>> difference = {"difference": 0.06, "adjusted_p": 0.12, "discordance": 0.33}
    >>> independent = SharedStories([[n] for n in range(200)])
    >>> conclusion([{"system": "minilm", "n": 200}, {"system": "other", "difference": difference}], independent)
    'other: a difference to minilm cannot be shown at n = 200; about 8 points would be needed.'
    """
    first, n = entries[0]["system"], entries[0]["n"]
    better: list[Entry] = []
    worse: list[Entry] = []
    open_ones: list[Entry] = []
    # A run that may have seen them, by its record, is only noted.
    seen = [e["system"] for e in entries if str(e.get("flags", {}).get(SEEN)).startswith("trained on these triples")]
    if first in seen:
        return f"{first} was trained on these triples: differences to it are no result."
    for entry in entries[1:]:
        if entry["system"] in seen:
            continue
        difference = entry["difference"]
        shown = difference["adjusted_p"] < LEVEL
        (open_ones if not shown else better if difference["difference"] > 0 else worse).append(entry)
    parts = [
        f"{', '.join(entry['system'] for entry in chosen)}: {word} than {first}"
        for word, chosen in (("better", better), ("worse", worse))
        if chosen
    ]
    if open_ones:
        names = ", ".join(entry["system"] for entry in open_ones)
        # Holm compares the smallest p left with the level divided by the comparisons left.
        level = LEVEL / sum(entry["difference"]["adjusted_p"] >= LEVEL for entry in entries[1:])
        needed = _points_needed([entry["difference"] for entry in open_ones], level, shared)
        parts.append(f"{names}: a difference to {first} cannot be shown at n = {n}; {needed}")
    if seen:
        parts.append(f"{', '.join(seen)}: no result, trained on these triples")
    return f"{'. '.join(parts)}."


def _points_needed(differences: Sequence[Entry], level: float, shared: SharedStories) -> str:
    """Say how large differences must be for p to reach a level, each with as many differing answers as it has."""
    from scipy.stats import norm, t

    if shared.num_sharing and not shared.degrees_of_freedom:
        return "triples that share so many stories show none, however large"
    if shared.num_sharing:
        level = 2 * norm.sf(t.isf(level / 2, shared.degrees_of_freedom))
    n = shared.num_triples
    points = []
    for difference in differences:
        share = difference["discordance"] * difference.get("design_effect", 1)
        points.append(100 * (smallest_difference(n, share, alpha=level) + 1 / n))  # exact tests need 1/n more
    if min(points) >= 100:
        return "these triples show none, however large"
    needed = " to ".join(dict.fromkeys(f"{min(end, 100):.0f}" for end in (min(points), max(points))))
    return f"about {needed} points would be needed"


def _by_facet(systems: Sequence[SystemAnswers], values: Values | None) -> list[Entry]:
    """Accuracies by bin, {"bin": name, "systems": {name: accuracy}}; without values by quartile of each margin."""
    entries: list[Entry] = []
    for system in systems:
        if values is not None:
            bins, names = divide(values)
        elif system.margin is not None:
            bins, own = divide(np.abs(system.margin).tolist(), 0)
            names = [f"quartile {number}" for number in range(1, len(own) + 1)]
        else:
            continue
        entries += [{"bin": name, "systems": {}} for name in names[len(entries) :]]
        for number in range(len(names)):
            right = system.correct[bins == number]
            entries[number]["systems"][system.name] = AccuracySummary(len(right), int(right.sum())).as_dict()
    return entries


def _facet_rows(name: str, bins: Sequence[Entry]) -> list[Entry]:
    rows = []
    for entry in bins:
        systems = entry["systems"]
        sizes = {one["n"] for one in systems.values()}
        cells = {system: report.accuracy_cell(one) for system, one in systems.items()}
        rows.append({name: entry["bin"], **({"n": sizes.pop()} if len(sizes) == 1 else {}), **cells})
    return rows


def combine(systems: Sequence[SystemAnswers], groups: IntArray) -> tuple[list[SystemAnswers], list[list[float]]]:
    """Combine systems: oracle, majority vote of three or more, weighted mean; also the weights by fold."""
    if len(systems) < 2:
        return [], []
    seen = {name: value for system in systems for name, value in system.flags.items() if name == SEEN}
    one, answers = replace(systems[0], flags=seen, scores=None, vectors=None), np.stack([s.answers for s in systems])
    any_right = (answers == one.labels).any(axis=0)
    results = [replace(one, name="at least one right (oracle)", answers=any_right == one.labels)]
    if len(systems) > 2:
        votes = 2 * answers.sum(axis=0) - len(systems)
        majority = np.where(votes == 0, one.answers, votes > 0)
        results.append(replace(one, name="majority vote", answers=majority))
    scored = [system for system in systems if system.scores is not None]
    folds = min(FOLDS, len(np.unique(groups)))
    if len(scored) < 2 or folds < 2:
        return results, []
    scores, weights = weighted_mean([system.scores for system in scored], one.labels, grouped_folds(groups, folds))
    return [*results, replace(one, name="weighted mean", answers=scores > 0)], weights


def weighted_mean(
    scores: Sequence[NDArray[np.float64] | None], labels: NDArray[np.bool_], folds: Sequence[IntArray]
) -> tuple[NDArray[np.float64], list[list[float]]]:
    """Average the score differences A minus B (N,) of systems with weights chosen on other folds; also return these.

    Each system's differences are divided by their root mean square: scales of different models differ.
    """
    differences = np.stack([one[:, 0] - one[:, 1] for one in scores if one is not None])
    differences /= np.maximum(np.sqrt(np.square(differences).mean(axis=1, keepdims=True)), 1e-12)
    count = len(differences)
    steps = next(n for n in (10, 5, 2, 1) if n == 1 or comb(n + count - 1, count - 1) <= MOST_WEIGHTS)
    grid = simplex_grid(1 / steps, count)
    means = grid @ differences
    chosen = best_elsewhere((means > 0) == labels, grid, folds)
    result = np.empty(len(labels))
    for rows, setting in zip(folds, chosen, strict=True):
        result[rows] = means[setting, rows]
    return result, [grid[setting].tolist() for setting in chosen]
