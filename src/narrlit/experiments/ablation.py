"""Ablation: a system and its ablations, one fit each, compared on the same validation triples."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from itertools import pairwise
from pathlib import Path

from narrlit.callbacks.triple_answers import triples_digest
from narrlit.configuration import find_config, packaged_configs, packaged_name, packaged_names
from narrlit.console import say
from narrlit.datamodules import StoryData
from narrlit.errors import OptionError
from narrlit.experiments import fitting, report
from narrlit.experiments.fitting import Config, RunResult, parse_fit, run_fit
from narrlit.experiments.report import Entry, Report
from narrlit.files import exclusive
from narrlit.metrics.significance import paired

FULL = "full"


@dataclass(frozen=True)
class System:
    """One row of an ablation: `full`, or an overlay's file name without the system's name in front."""

    name: str
    overlay: str | None
    config: Config
    changes: list[str]
    """Options in which it differs from the full system."""
    provenance: Entry
    """Where training examples and validation triples come from."""
    triples: str
    """Digest of the validation triples."""


def ablate_system(fit: Sequence[str], folder: Path, ablations: str | None) -> Report:
    """Fit and evaluate a system and its ablations; finished rows are kept, an interrupted one is repeated."""
    return ablation_report(fit_systems(read_systems(fit, find_overlays(fit, ablations)), folder))


def fit_systems(systems: Sequence[System], folder: Path, option: str = "--out") -> list[Entry]:
    """Fit and evaluate systems, each in a run of its name; finished runs are kept. `option` names the folder."""
    with exclusive(folder, option):
        return _fit_systems(systems, folder, option)


def _fit_systems(systems: Sequence[System], folder: Path, option: str) -> list[Entry]:
    new = not any((folder / f"{system.name}.yaml").is_file() for system in systems)
    for index, system in enumerate(systems):
        empty = folder if new and not index else folder / system.name
        fitting.keep_plan(folder / f"{system.name}.yaml", system.config, empty, option)
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
    return [_entry(system, results[system.name]) for system in systems]


def find_overlays(fit: Sequence[str], patterns: str | None) -> dict[str, str]:
    """Find the overlays of an ablation, by the name of their row.

    Without `patterns` these are ablations/SYSTEM_*.yaml, except those of a packaged system with a longer name.
    """
    words = [word for argument in fit for word in argument.split("=", 1)]
    configs = [value for option, value in pairwise(words) if option in ("--config", "-c")]
    if not configs:
        raise OptionError("give --config FILE, the system whose ablations are compared")
    system = Path(configs[0]).stem
    parts = [part.strip() for part in (patterns or f"configs/ablations/{escape(system)}_*.yaml").split(",")]
    paths = [path for part in parts for path in _matching(part)]
    if patterns is None:
        stems = [Path(name).stem for name in packaged_names() if Path(name).parent == Path()]
        longer = tuple(f"{stem}_" for stem in stems if stem.startswith(f"{system}_"))
        paths = [path for path in paths if not (longer and Path(path).name.startswith(longer))]
    if not paths:
        raise OptionError(
            f"no overlay of {system} in {', '.join(parts)}: name overlays with --ablations; packaged are "
            + ", ".join(packaged_names("ablations"))
        )
    overlays: dict[str, str] = {}
    for path in paths:
        name = Path(path).stem.removeprefix(f"{system}_") or Path(path).stem
        if name in (FULL, *overlays):
            raise OptionError(f"--ablations {path}: two rows are named {name}; rename the file")
        overlays[name] = path
    return overlays


def _matching(part: str) -> list[str]:
    if not any(sign in part for sign in "*?["):
        return [find_config(part, "--ablations")]
    path = Path(part)
    paths = list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not paths and not path.is_absolute():
        paths = list(packaged_configs().glob(str(packaged_name(part))))
    return sorted(map(str, paths))


def read_systems(fit: Sequence[str], overlays: dict[str, str], purpose: str = "an ablation") -> list[System]:
    """Parse every row and read its data before the first fit; overlays come last and so win over all other options."""
    systems: list[System] = []
    sources: dict[str, tuple[Entry, str]] = {}
    for name, overlay in {FULL: None, **overlays}.items():
        config, data = parse_fit([*fit, *(("--config", overlay) if overlay else ())], purpose)
        key = json.dumps(config["data"])
        if key not in sources:
            sources[key] = _read(data, purpose)
        changes = fitting.config_changes(systems[0].config, config) if systems else []
        twin = next((other.name for other in systems if other.config == config), None)
        if twin:
            say(f"{name} is left out: {overlay} changes nothing compared with {twin}")
            continue
        systems.append(System(name, overlay, config, changes, *sources[key]))
        if systems[-1].triples != systems[0].triples:
            raise OptionError(f"--ablations {overlay} changes the validation triples: rows must share them")
    return systems


def _read(data: StoryData, purpose: str) -> tuple[Entry, str]:
    """Provenance of the data, and the digest of the validation triples."""
    data.setup("fit")
    if not data.triples["validation"]:
        raise OptionError(f"{purpose} needs validation triples: give --data.validation FILE")
    return json.loads(json.dumps(data.provenance)), triples_digest(data.triples["validation"])


def _check_data(result: RunResult, system: System) -> None:
    """Check that a finished run used the data as they are now."""
    before, changed = result.record["data"], None
    for stage, now in system.provenance.items():
        files = zip(before.get(stage, {}).get("files", []), now.get("files", []), strict=False)
        changed = changed or next((new["path"] for old, new in files if old["sha256"] != new["sha256"]), None)
        # The record also has what is known only after the model is built.
        if any(before.get(stage, {}).get(name) != value for name, value in now.items()):
            changed = changed or f"the {stage} data"
    if changed is None and result.evaluations and result.answers()["triples"] != system.triples:
        changed = "the validation triples or their labels"
    if changed is not None:
        raise OptionError(f"{result.run}: {changed} changed since: choose another --out or remove {result.run}")


def _entry(system: System, result: RunResult) -> Entry:
    return {
        "system": system.name,
        "overlay": system.overlay,
        "changes": system.changes,
        **result.summary(),
        "deciding": fitting.deciding_callbacks(system.config),
        "seed": system.config["seed_everything"],
    }


def ablation_report(entries: Sequence[Entry]) -> Report:
    """Compare every row with the full system, which comes first, on the same triples."""
    full, count = entries[0], len(entries) - 1
    decided = "; ".join(f"{', '.join(one['deciding'])} in {one['system']}" for one in entries if one["deciding"])
    notes = {
        "best_epoch": "accuracy in the epoch that these triples selected, out of the number of evaluations shown: too "
        "high by this selection",
        "last_epoch": "accuracy after the last epoch; not selected by any evaluation"
        + (f", but these decided by the triples: {decided}" if decided else ""),
        "difference_to_full": "accuracy minus that of the full system on the same triples; lost: only the full system "
        f"has them right, won: only the row has; p is not corrected for {count} comparison{'s' * (count != 1)}",
        "seed": f"each row is one fit, the full system's with seed {full['seed']}: intervals contain no variation "
        "between trainings",
    }
    systems, rows = [], []
    for entry in entries:
        compared = None if entry is full else {name: _compare(entry, full, name) for name in report.EVALUATIONS}
        systems.append({**entry, "difference_to_full": compared})
        del systems[-1]["wrong"]
        row = {"system": entry["system"], "n": entry["best_epoch"]["n"]}
        for name, (title, cell) in zip(report.EVALUATIONS, report.accuracy_cells(entry).items(), strict=True):
            difference = report.difference_cell(compared and compared[name])
            row |= {title: cell, title.replace("accuracy", "difference"): difference}
        rows.append({**row, "selected": report.selected_cell(entry), "flags": ", ".join(entry["flags"])})
    return Report(
        content={"notes": notes, "systems": systems},
        tables={"": rows},
        notes=[*report.note_lines(notes), report.INDEPENDENCE],
        records=systems,
        intervals={entry["system"]: entry["last_epoch"] for entry in entries},
    )


def _compare(entry: Entry, full: Entry, name: str) -> Entry:
    wrong, wrong_full = (None if one["wrong"][name] is None else set(one["wrong"][name]) for one in (entry, full))
    return paired(wrong, wrong_full, entry[name]["n"])
