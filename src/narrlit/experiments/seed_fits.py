"""Fits, ablations and cross-validations with several seeds: mean and standard deviation, and tests over all seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from narrlit import lightning_cli
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.ablation import FULL, System, find_overlays, fit_systems, read_systems
from narrlit.experiments.crossval import fit_folds, plan_folds
from narrlit.experiments.fitting import quiet
from narrlit.experiments.report import EVALUATIONS, Entry, Report
from narrlit.files import exclusive
from narrlit.metrics.significance import p_text, permutation_test

BySeed = dict[int, Entry]
TRAINED, FROZEN = "trained", "frozen"
NOTES = {
    "mean": "over the seeds, ± the standard deviation between them: the variation of training alone",
    "difference": "seed by seed on the same triples; p is of the paired permutation test over triples, by the number "
    "of seeds that answer each rightly: it is about other triples, and takes them as independent",
    "last_epoch": "after the last epoch; not selected by any evaluation",
    "best_epoch": "in the epoch that these triples selected in each fit: too high by this selection",
    FROZEN: "the encoder before training, without a new head",
}


def read_seeds(text: str) -> list[int]:
    """Read seeds with commas between.

    >>> read_seeds("1,2,3")
    [1, 2, 3]
    """
    words = [word.strip() for word in text.split(",")]
    if len(words) < 2 or len(set(words)) < len(words) or not all(word.isdecimal() for word in words):
        raise OptionError(f"--seeds {text}: give two or more different whole numbers, such as 1,2,3")
    return [int(word) for word in words]


def fit_seeds(fit: Sequence[str], seeds: Sequence[int]) -> tuple[Report, Path]:
    """Fit a config with each seed; return the report and its folder, in which a finished seed_N is kept.

    The folder is that of the config's logger: its version, or `seeds`.
    """
    purpose, option = "a fit with several seeds", "--trainer.logger.init_args.version"
    (system,) = read_systems(fit, {}, purpose)
    with quiet():
        place = dict(getattr(lightning_cli.parse_fit(fit).config.trainer.logger, "init_args", {}))
    if "save_dir" not in place:
        raise OptionError(f"{purpose} needs a folder: leave --trainer.logger to the config")
    folder = Path(place["save_dir"]) / (place.get("name") or "") / str(place.get("version") or "seeds")
    entries = dict(zip(seeds, fit_systems(_repeated([system], "seed_{seed}", seeds), folder, option), strict=True))
    return seeds_report(_with_frozen(entries), FROZEN), folder


def ablate_seeds(fit: Sequence[str], folder: Path, ablations: str | None, seeds: Sequence[int]) -> Report:
    """Fit a system and its ablations with each seed, in runs such as full_seed_1; finished runs are kept."""
    systems = read_systems(fit, find_overlays(fit, ablations))
    entries = fit_systems(_repeated(systems, "{name}_seed_{seed}", seeds), folder)
    by_row = (dict(zip(seeds, entries[row :: len(systems)], strict=True)) for row in range(len(systems)))
    return seeds_report(dict(zip((system.name for system in systems), by_row, strict=True)), FULL)


def crossval_seeds(fit: Sequence[str], folder: Path, division: dict[str, Any], seeds: Sequence[int]) -> Report:
    """Cross-validate a config with each seed on the same folds, in runs such as seed_1_fold_0; finished runs stay."""
    entries = {}
    with exclusive(folder):
        config, descriptions = plan_folds(fit, folder, division)
        for seed in seeds:
            runs = fit_folds(folder, f"seed_{seed}_", {**config, "seed_everything": seed}, descriptions)
            entries[seed] = _pooled(runs)
    return seeds_report(_with_frozen(entries), FROZEN)


def _repeated(systems: Sequence[System], name: str, seeds: Sequence[int]) -> list[System]:
    """Copy systems with each seed: all systems with the first, then all with the second."""
    return [
        replace(
            system,
            name=name.format(name=system.name, seed=seed),
            config={**system.config, "seed_everything": seed},
            changes=[f"seed_everything: {seed}", *system.changes],
        )
        for seed in seeds
        for system in systems
    ]


def _pooled(entries: Sequence[Entry]) -> Entry:
    """Pool a seed's folds into one entry, whose wrong answers are pairs of fold and position."""
    names = [*EVALUATIONS, *(["reference"] if all(entry["reference"] for entry in entries) else [])]
    wrong: dict[str, list[tuple[int, int]] | None] = {}
    for name in names:
        known = all(entry["wrong"][name] is not None for entry in entries)
        wrong[name] = [(entry["fold"], i) for entry in entries for i in entry["wrong"][name]] if known else None
    flags = {flag for entry in entries for flag in entry["flags"]}
    return {"reference": None, **report.pooled(entries, names), "wrong": wrong, "flags": flags}


def _with_frozen(entries: BySeed) -> dict[str, BySeed]:
    """Set the frozen encoder, the same in every epoch, beside the trained system, if each fit evaluated it."""
    if not all(entry["reference"] for entry in entries.values()):
        return {TRAINED: entries}
    frozen: BySeed = {
        seed: {
            **dict.fromkeys(EVALUATIONS, entry["reference"]),
            "wrong": dict.fromkeys(EVALUATIONS, entry["wrong"]["reference"]),
            "flags": [],
        }
        for seed, entry in entries.items()
    }
    return {FROZEN: frozen, TRAINED: entries}


def seeds_report(results: Mapping[str, BySeed], reference: str) -> Report:
    """Summarize systems over seeds, and compare each with the reference if that is among them.

    Args:
        results: the entries of each system by seed.
        reference: name of the system that the others are compared with.
    """
    base = results.get(reference)
    tables: dict[str, list[Entry]] = {name.replace("_", " ").capitalize(): [] for name in EVALUATIONS}
    systems: dict[str, Entry] = {system: {} for system in results}
    for name, rows in zip(EVALUATIONS, tables.values(), strict=True):
        for system, by_seed in results.items():
            accuracies = {seed: entry[name]["accuracy"] for seed, entry in by_seed.items()}
            summary = systems[system][name] = {"by_seed": accuracies, **report.spread([*accuracies.values()])}
            cells = {
                f"seed {seed}": "none" if accuracy is None else f"{accuracy:.3f}"
                for seed, accuracy in accuracies.items()
            }
            rows.append({"system": system, **cells, "mean": report.spread_cell(summary)})
            if base is not None:
                compared = summary["difference"] = None if by_seed is base else _compare(by_seed, base, name)
                cell = f"{report.spread_cell(compared, '+')}, {p_text(compared['p'])}" if compared else ""
                rows[-1][f"difference to {reference}"] = cell
    fits = [(system, seed, entry) for system, by_seed in results.items() for seed, entry in by_seed.items()]
    flags = sorted({flag for _, _, entry in fits for flag in entry["flags"]})
    notes = {name: text for name, text in NOTES.items() if name != FROZEN or name in results}
    lines = report.note_lines(notes) + ([f"Flags of the runs: {', '.join(flags)}."] if flags else [])
    lines += ["No result: validation triples were trained on."] if "trained_on_validation" in flags else []
    return Report(
        content={"seeds": list(next(iter(results.values()))), "notes": notes, "systems": systems, "flags": flags},
        tables=tables,
        notes=lines,
        records=[{"system": one, "seed": seed, **{k: entry[k] for k in EVALUATIONS}} for one, seed, entry in fits],
        intervals={f"{system}, seed {seed}": entry["last_epoch"] for system, seed, entry in fits},
    )


def _compare(by_seed: BySeed, base: BySeed, name: str) -> Entry:
    """Mean and standard deviation of the difference over seeds, and p over triples; None where scores are NaN."""
    wrong = [[entries[seed]["wrong"][name] for seed in by_seed] for entries in (by_seed, base)]
    if any(positions is None for side in wrong for positions in side):
        return {**report.spread([None]), "p": None}
    # A triple that no fit answers wrongly differs by 0, which decides nothing.
    triples = sorted({position for side in wrong for positions in side for position in positions})
    ours, theirs = ([sum(triple in one for one in map(set, side)) for triple in triples] for side in wrong)
    differences = [one[name]["accuracy"] - base[seed][name]["accuracy"] for seed, one in by_seed.items()]
    return {**report.spread(differences), "p": permutation_test(theirs, ours)}
