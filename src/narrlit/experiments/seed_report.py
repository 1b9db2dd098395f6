"""Fits with several seeds: mean and standard deviation over them, and tests over triples."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.outcome import EVALUATIONS, Outcome
from narrlit.experiments.report import Entry, Report
from narrlit.metrics.significance import p_text, permutation_test

BySeed = Mapping[int, Outcome]
TRAINED, FROZEN = "trained", "frozen"
NOTES = {
    "mean": "over the seeds, ± the standard deviation between them: the variation of training alone",
    "difference": "seed by seed on the same triples; p is of the paired permutation test over triples, by the number "
    "of seeds that answer each rightly: it is about other triples, and takes them as independent",
    "last_epoch": "after the last epoch; not selected by any evaluation",
    "best_epoch": "in the epoch that these triples selected in each fit: too high by this selection",
    FROZEN: "the encoder before training, without a new head",
}


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds of a plan.

    Raises:
        OptionError: if they are fewer than two, negative, or one is repeated.
    """
    if len(seeds) < 2 or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise OptionError(f"`seeds`: {list(seeds)}; give two or more different whole numbers, such as [1, 2, 3]")
    return list(seeds)


def with_frozen(outcomes: BySeed) -> dict[str, BySeed]:
    """Set the frozen encoder, the same in every epoch, beside the trained system, if each fit evaluated it."""
    frozen: dict[int, Outcome] = {}
    for seed, outcome in outcomes.items():
        if outcome.reference is None:
            return {TRAINED: outcomes}
        frozen[seed] = Outcome(dict.fromkeys(EVALUATIONS, outcome.reference), outcome.num_evaluations)
    return {FROZEN: frozen, TRAINED: outcomes}


def seeds_report(results: Mapping[str, BySeed], reference: str) -> Report:
    """Summarize systems over seeds, and compare each with the reference if that is among them.

    Args:
        results: the fits of each system by seed.
        reference: name of the system that the others are compared with.
    """
    base = results.get(reference)
    systems: dict[str, Entry] = {system: {} for system in results}
    tables: dict[str, list[Entry]] = {}
    for name in EVALUATIONS:
        rows = tables[report.spoken(name).capitalize()] = []
        for system, outcomes in results.items():
            summary = systems[system][name] = _summary(outcomes, name)
            row = _row(system, summary)
            if base is not None:
                summary["difference"] = None if outcomes is base else _difference(outcomes, base, name)
                row[f"difference to {reference}"] = _difference_cell(summary["difference"])
            rows.append(row)
    flags = _flags(results)
    notes = {name: text for name, text in NOTES.items() if name != FROZEN or name in results}
    return Report(
        content={"seeds": list(next(iter(results.values()))), "notes": notes, "systems": systems, "flags": flags},
        tables=tables,
        notes=[*report.note_lines(notes), *_warnings(flags)],
        records=[],
        intervals=_intervals(results),
    )


def _summary(outcomes: BySeed, name: str) -> Entry:
    """Summarize one evaluation of a system over seeds."""
    accuracies = {seed: outcome.scores[name].accuracy for seed, outcome in outcomes.items()}
    return {"by_seed": accuracies, **report.spread(list(accuracies.values()))}


def _row(system: str, summary: Entry) -> Entry:
    """Format a system's accuracies."""
    row: Entry = {"system": system}
    for seed, accuracy in summary["by_seed"].items():
        row[f"seed {seed}"] = "none" if accuracy is None else f"{accuracy:.3f}"
    return {**row, "mean": report.spread_cell(summary)}


def _difference(outcomes: BySeed, base: BySeed, name: str) -> Entry:
    """Mean and standard deviation of the difference over seeds, and p over triples; None where scores are NaN."""
    ours, theirs = _wrong(outcomes, name), _wrong(base, name)
    if ours is None or theirs is None:
        return {**report.spread([None]), "p": None}
    # A triple that no fit answers wrongly differs by 0, which decides nothing.
    triples = sorted(set().union(*ours, *theirs))
    differences = []
    for seed, outcome in outcomes.items():
        differences.append(outcome.scores[name].summary.accuracy - base[seed].scores[name].summary.accuracy)
    p = permutation_test(_counts(theirs, triples), _counts(ours, triples))
    return {**report.spread(differences), "p": p}


def _wrong(outcomes: BySeed, name: str) -> list[Set[Any]] | None:
    """Collect the wrong answers of each seed; None where one has a score that is NaN."""
    wrong: list[Set[Any]] = []
    for outcome in outcomes.values():
        positions = outcome.scores[name].wrong
        if positions is None:
            return None
        wrong.append(positions)
    return wrong


def _counts(wrong: Sequence[Set[Any]], triples: Sequence[Any]) -> list[int]:
    """Count the seeds that answer each triple wrongly."""
    return [sum(triple in positions for positions in wrong) for triple in triples]


def _difference_cell(difference: Entry | None) -> str:
    """Format a difference; empty for the reference itself."""
    if difference is None:
        return ""
    return f"{report.spread_cell(difference, '+')}, {p_text(difference['p'])}"


def _flags(results: Mapping[str, BySeed]) -> list[str]:
    """Collect the flags of all fits."""
    flags: set[str] = set()
    for outcomes in results.values():
        for outcome in outcomes.values():
            flags.update(outcome.flags)
    return sorted(flags)


def _warnings(flags: Sequence[str]) -> list[str]:
    """Name what the accuracies depend on."""
    lines = [f"Flags of the runs: {', '.join(flags)}."] if flags else []
    if "trained_on_validation" in flags:
        lines.append("No result: validation triples were trained on.")
    return lines


def _intervals(results: Mapping[str, BySeed]) -> dict[str, Entry]:
    """Collect the accuracies after the last epoch, for the plot."""
    intervals = {}
    for system, outcomes in results.items():
        for seed, outcome in outcomes.items():
            intervals[f"{system}, seed {seed}"] = outcome.last.as_dict()
    return intervals
