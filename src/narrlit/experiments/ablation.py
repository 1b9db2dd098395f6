"""Ablation: a system and its ablations, one fit each, compared on the same validation triples."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from narrlit.callbacks.answer_record import triples_digest
from narrlit.commands.training import find_config, packaged_configs, packaged_name, packaged_names
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.fitting import (
    Config,
    RunResult,
    config_changes,
    deciding_callbacks,
    keep_plan,
    parse_fit,
    run_fit,
)
from narrlit.experiments.report import Entry, Report

FULL = "full"


@dataclass(frozen=True)
class System:
    """One row of an ablation.

    Attributes:
        name: of the row: `full`, or the overlay's file name without the system's name in front.
        overlay: its file; None for the full system.
        config: its whole configuration.
        changes: options in which it differs from the full system.
        provenance: where training examples and validation triples come from.
        triples: digest of the validation triples.
    """

    name: str
    overlay: str | None
    config: Config
    changes: list[str]
    provenance: Entry
    triples: str


def ablate_system(fit: Sequence[str], folder: Path, ablations: str | None) -> Report:
    """Fit and evaluate a system and its ablations; finished rows are kept, an interrupted one is repeated.

    Args:
        fit: options of `narrlit fit`; the first --config is the system.
        folder: receives the rows' configurations and runs.
        ablations: overlay files or patterns, separated by commas; None: configs/ablations/SYSTEM_*.yaml.

    Raises:
        OptionError: if rows cannot be compared, or the folder holds another experiment.
    """
    systems = read_systems(fit, find_overlays(fit, ablations), drop_unchanged=ablations is None)
    for system in systems:
        keep_plan(folder / f"{system.name}.yaml", system.config, folder / system.name if system.overlay else folder)
    results = {system.name: RunResult.read(folder / system.name) for system in systems}
    for system in systems:
        if results[system.name].finished:
            _check_data(results[system.name], system)
    for index, system in enumerate(systems, 1):
        if results[system.name].finished:
            say(f"{system.name}: already finished")
            continue
        changes = "; ".join(system.changes[:8]) or "the config as given"
        say(f"\n{system.name}, row {index} of {len(systems)}: {changes}")
        results[system.name] = run_fit(folder / system.name, system.config)
        _check_data(results[system.name], system)  # files may have changed during the fit
    return ablation_report([_entry(system, results[system.name]) for system in systems])


def find_overlays(fit: Sequence[str], named: str | None) -> dict[str, str]:
    """Find the overlays of an ablation.

    Args:
        fit: options of `narrlit fit`; the first --config is the system.
        named: files or patterns, here or in the package, separated by commas; None: ablations/SYSTEM_*.yaml except
            those of a packaged system with a longer name.

    Returns:
        Files by the name of their row.

    Raises:
        OptionError: if there is none, or two have the same name.
    """
    system = Path(_first_config(fit)).stem
    parts = [part.strip() for part in named.split(",")] if named else [f"configs/ablations/{escape(system)}_*.yaml"]
    found = [path for part in parts for path in _matching(part)]
    if named is None:
        stems = [Path(name).stem for name in packaged_names() if Path(name).parent == Path()]
        longer = tuple(f"{stem}_" for stem in stems if stem.startswith(f"{system}_"))
        found = [path for path in found if not (longer and Path(path).name.startswith(longer))]
    if not found:
        raise OptionError(
            f"no overlay of {system} in {', '.join(parts)}: name overlays with --ablations; packaged are "
            + ", ".join(packaged_names("ablations"))
        )
    overlays: dict[str, str] = {}
    for path in found:
        name = Path(path).stem.removeprefix(f"{system}_") or Path(path).stem
        if name in (FULL, *overlays):
            raise OptionError(f"--ablations {path}: two rows are named {name}; rename the file")
        overlays[name] = path
    return overlays


def _first_config(fit: Sequence[str]) -> str:
    for index, argument in enumerate(fit):
        flag, equals, value = argument.partition("=")
        if flag in ("--config", "-c") and (equals or index + 1 < len(fit)):
            return value if equals else fit[index + 1]
    raise OptionError("give --config FILE, the system whose ablations are compared")


def _matching(part: str) -> list[str]:
    if not any(sign in part for sign in "*?["):
        return [find_config(part, "--ablations")]
    path = Path(part)
    found = list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not found and not path.is_absolute():
        found = list(packaged_configs().glob(str(packaged_name(part))))
    return sorted(map(str, found))


def read_systems(fit: Sequence[str], overlays: dict[str, str], drop_unchanged: bool) -> list[System]:
    """Parse every row and read its data before the first fit.

    Args:
        fit: options of `narrlit fit`.
        overlays: files by name; each comes last and so wins over all other options.
        drop_unchanged: leave out an overlay that changes nothing instead of refusing it.

    Raises:
        OptionError: if rows cannot be compared.
    """
    systems: list[System] = []
    data: dict[str, tuple[Entry, str]] = {}
    for name, overlay in {FULL: None, **overlays}.items():
        parsed = parse_fit([*fit, *(("--config", overlay) if overlay else ())], "an ablation")
        key = json.dumps(parsed.config["data"])
        if key not in data:
            data[key] = _read(parsed.data)
        changes = [] if not systems else config_changes(systems[0].config, parsed.config)
        system = System(name, overlay, parsed.config, changes, *data[key])
        twin = next((other.name for other in systems if other.config == system.config), None)
        if twin and not drop_unchanged:
            raise OptionError(f"--ablations {overlay} changes nothing compared with {twin}: leave it out")
        if twin:
            say(f"{name} is left out: {overlay} changes nothing compared with {twin}")
            continue
        if systems and system.triples != systems[0].triples:
            raise OptionError(f"--ablations {overlay} changes the validation triples: rows must share them")
        systems.append(system)
    return systems


def _read(data: Any) -> tuple[Entry, str]:
    """Provenance of the data, and the digest of the validation triples."""
    data.setup("fit")
    triples = data.triples_as_read("validation")
    if not triples:
        raise OptionError("an ablation needs validation triples: give --data.validation FILE")
    return json.loads(json.dumps(data.provenance)), triples_digest(triples)


def _check_data(result: RunResult, system: System) -> None:
    """Check that a finished run used the data as they are now."""
    changed = _changed_data(result.record["data"], system.provenance)
    if changed is None and result.evaluations and result.answers()["triples"] != system.triples:
        changed = "the validation triples or their labels"
    if changed is not None:
        raise OptionError(f"{result.run}: {changed} changed since: choose another --out or remove {result.run}")


def _changed_data(before: Entry, now: Entry) -> str | None:
    """Name the first data file with other content, or the stage with other data."""
    for stage, here in now.items():
        there = before.get(stage, {})
        for one, other in zip(there.get("files", []), here.get("files", []), strict=False):
            if one["sha256"] != other["sha256"]:
                return str(other["path"])
        # The record also counts stories and tokens, which are unknown before the model is built.
        if any(there.get(name) != value for name, value in here.items()):
            return f"the {stage} data"
    return None


def _entry(system: System, result: RunResult) -> Entry:
    return {
        "system": system.name,
        "overlay": system.overlay,
        "changes": system.changes,
        **result.accuracies(),
        "wrong": result.wrong(),
        "flags": result.flags,
        "deciding": deciding_callbacks(system.config),
        "seed": system.config["seed_everything"],
    }


def ablation_report(entries: Sequence[Entry]) -> Report:
    """Compare every row with the full system, which comes first, on the same triples."""
    full, count = entries[0], len(entries) - 1
    named = [f"{', '.join(entry['deciding'])} in {entry['system']}" for entry in entries if entry["deciding"]]
    notes = {
        "best_epoch": "accuracy in the epoch that these triples selected, out of the number of evaluations shown: too "
        "high by this selection",
        "last_epoch": "accuracy after the last epoch; not selected by any evaluation"
        + (f", but these decided by the triples: {'; '.join(named)}" if named else ""),
        "difference_to_full": "accuracy minus that of the full system on the same triples; lost: only the full system "
        f"has them right, won: only the row has; p is not corrected for {count} comparison{'s' * (count != 1)}",
        "seed": f"each row is one fit, the full system's with seed {full['seed']}: intervals contain no variation "
        "between trainings",
    }
    systems, rows = [], []
    for entry in entries:
        systems.append({name: value for name, value in entry.items() if name != "wrong"})
        compared = None if entry is full else {e: _compare(entry, full, e) for e in report.EVALUATIONS}
        systems[-1]["difference_to_full"] = compared
        row = {"system": entry["system"], "n": entry["best_epoch"]["n"]}
        for name in report.EVALUATIONS:
            row[f"accuracy, {name.replace('_', ' ')}"] = report.accuracy_cell(entry[name])
            row[f"difference, {name.replace('_', ' ')}"] = report.difference_cell(compared and compared[name])
        selected = f"epoch {entry['best_epoch']['epoch']} of {entry['num_evaluations']}"
        rows.append({**row, "selected": selected, "flags": ", ".join(entry["flags"])})
    return Report(
        content={"notes": notes, "systems": systems},
        tables={"": rows},
        notes=[*report.note_lines(notes), report.INDEPENDENCE],
        records=systems,
        intervals={entry["system"]: entry["last_epoch"] for entry in entries},
    )


def _compare(entry: Entry, full: Entry, name: str) -> Entry:
    wrong, wrong_full = (None if one["wrong"][name] is None else set(one["wrong"][name]) for one in (entry, full))
    return report.paired(wrong, wrong_full, entry[name]["n"])
