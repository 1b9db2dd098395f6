"""`narrlit.ablate`: a system and its ablations, one fit each, compared on the same validation triples."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import chain
from pathlib import Path

from narrlit.callbacks.triple_answers import triples_digest
from narrlit.configuration import (
    Configs,
    FitSettings,
    find_config,
    list_configs,
    packaged_configs,
    packaged_name,
    packaged_names,
    read_config,
    read_configs,
)
from narrlit.console import say
from narrlit.datamodules import StoryData
from narrlit.errors import OptionError
from narrlit.experiments.fit_figures import fit_answers, fit_differences, fits_result
from narrlit.experiments.fitting import Config, parse_experiment_fit
from narrlit.experiments.plan import FinishedFit, FitsResult, Plan, PlannedFit, check_seeds
from narrlit.experiments.run import Run
from narrlit.json_records import changed_settings
from narrlit.models.run_file import DataPart
from narrlit.results import Note

FULL = "full"
CHANGES = 8
"""Maximum number of changed options that are printed before a fit."""
WILDCARDS = frozenset("*?[")
"""Characters that make a path a glob pattern."""


def ablate(
    config: Configs,
    settings: FitSettings | None = None,
    *,
    out: str | Path,
    ablations: Sequence[str | Path] | None = None,
    seeds: Sequence[int] | None = None,
) -> FitsResult:
    """Fit and evaluate a system and its ablations; finished rows are kept, an interrupted row is repeated.

    The first row, full, is the unchanged config. Each further row adds an overlay config, which overrides all configs
    and settings before it.

    Args:
        config: a config, or several, as in `narrlit.fit`; the first names the system.
        settings: settings that override the config, as in `narrlit.fit`.
        out: folder for the configs and runs of the rows (full.yaml, full, ...) and the result (ablations.json, ...);
            new, or that of the same ablation.
        ablations: overlay configs or glob patterns, looked up on disk and among the packaged configs; None:
            configs/ablations/SYSTEM_*.yaml.
        seeds: two or more seeds; every row is fitted once per seed (full_seed_1, ...).

    Returns:
        A `Result` with the accuracies of each row and its differences to the full system; also `.runs` and `.folder`.

    Raises:
        DataError: if a file can't be read.
        OptionError: if a setting is invalid, rows do not share their validation triples, or the folder belongs to
            another ablation.
        NarrlitError: if a fit fails; finished fits are kept.

    >>> from pathlib import Path
    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> _ = Path("margin.yaml").write_text("model: {init_args: {margin: 0.5}}")
    >>> settings = {"data": "StoryWorldData", "data.train": 4, "data.validation": 4, "trainer.max_epochs": 1}
    >>> config = "configs/mendel292_linear.yaml"
    >>> result = ablate(config, settings, out="runs/ablation", ablations=["margin.yaml"])
    >>> result.table().query("metric == 'accuracy_last_epoch'")[["system", "n"]]
       system  n
    0    full  4
    3  margin  4
    """
    overlays = find_overlays(_system_of(config), ablations)
    systems = read_systems(read_configs(config, settings), overlays)
    if seeds is None:
        fits = [system.fit(system.name) for system in systems]
    else:
        fits = []
        for seed in check_seeds(seeds):
            fits += [system.fit(f"{system.name}_seed_{seed}", seed) for system in systems]
    finished = Plan(Path(out), fits, {fit.name: fit.config for fit in fits}).run()
    result = ablation_result(Path(out), systems, finished)
    result.write()
    return result


def ablation_result(folder: Path, systems: "Sequence[AblatedSystem]", fits: Sequence[FinishedFit]) -> FitsResult:
    """Compare the fits of systems with those of the full one, which comes first, on the same triples."""
    answers = fit_answers(fits)
    changes = []
    for system in systems:
        changes.append({"system": system.name, "overlay": system.overlay, "changes": list(system.changes)})
    notes = [Note.of("single_fits", system=FULL, seed=fits[0].planned.seed)] if len(fits) == len(systems) else []
    differences = fit_differences(answers, FULL)
    return fits_result("ablations", folder, fits, answers, differences, settings={"systems": changes}, notes=notes)


@dataclass(frozen=True)
class AblatedSystem:
    """One row of an ablation.

    Attributes:
        name: `full`, or the file name of the overlay without the name of the system.
        overlay: file of the overlay; None for the full system.
        config: whole configuration.
        changes: options in which it differs from the full system.
        data: origin of training examples and validation triples, by stage.
        triples: digest of the validation triples.
    """

    name: str
    overlay: str | None
    config: Config
    changes: Sequence[str]
    data: Mapping[str, DataPart]
    triples: str

    def fit(self, name: str, seed: int | None = None, system: str | None = None) -> PlannedFit:
        """Plan a fit, with the given seed or that of the config."""
        config = self.config
        changes = list(self.changes)
        if seed is not None:
            config = {**config, "seed_everything": seed}
            changes.insert(0, f"seed_everything: {seed}")
        about = "; ".join(changes[:CHANGES]) or "the unchanged config"
        return PlannedFit(name, config, about, system or self.name, check=self.check)

    def check(self, run: Run) -> None:
        """Check that a finished run used the current data.

        Raises:
            OptionError: if data have changed.
        """
        for stage, current in self.data.items():
            recorded = run.record.data_of(stage)
            for old, new in zip(recorded.files, current.files, strict=False):
                if old.sha256 != new.sha256:
                    raise OptionError("file_of_fit_changed", folder=run.folder, path=new.path)
            if not _contains(recorded, current):
                raise OptionError("data_of_fit_changed", folder=run.folder, stage=stage)
        if run.record.validations and run.answers_file().triples != self.triples:
            raise OptionError("triples_of_fit_changed", folder=run.folder)


def _contains(recorded: DataPart, known: DataPart) -> bool:
    """Return True if a record agrees with what is known before a fit; it may contain further fields."""
    recorded_fields = recorded.model_dump(exclude_unset=True)
    known_fields = known.model_dump(exclude_unset=True)
    return all(recorded_fields.get(name) == value for name, value in known_fields.items())


def find_overlays(system: str | None, patterns: Sequence[str | Path] | None = None) -> dict[str, str]:
    """Find the overlays of an ablation, by the names of their rows.

    Without `patterns` these are ablations/SYSTEM_*.yaml, except overlays of packaged systems with longer names.

    Raises:
        OptionError: if there are none, or two have the same name; or if both `system` and `patterns` are None.
    """
    if system is None and patterns is None:
        raise OptionError("no_system_of_ablations")
    if system is not None and patterns is None:
        wanted = [f"configs/ablations/{escape(system)}_*.yaml"]
        paths = _own_overlays(system, _matching(wanted[0]))
    else:
        wanted = [str(pattern) for pattern in patterns or ()]
        paths = list(chain.from_iterable(map(_matching, wanted)))
    if not paths:
        raise OptionError("no_overlay", system=system or FULL, patterns=wanted, known=packaged_names("ablations"))
    overlays: dict[str, str] = {}
    for path in paths:
        name = Path(path).stem.removeprefix(f"{system}_") or Path(path).stem
        if name in (FULL, *overlays):
            raise OptionError("two_rows", path=path, name=name)
        overlays[name] = path
    return overlays


def _system_of(configs: Configs) -> str | None:
    """Return the name of the system: that of the first config file; None without a file."""
    for config in list_configs(configs):
        if isinstance(config, str):
            return Path(config).stem
    return None


def _matching(pattern: str) -> list[str]:
    """List the files that match a path or a pattern, on disk or among the packaged configs."""
    if WILDCARDS.isdisjoint(pattern):
        return [find_config(pattern, "ablations")]
    path = Path(pattern)
    paths = list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not paths and not path.is_absolute():
        paths = list(packaged_configs().glob(str(packaged_name(pattern))))
    return sorted(map(str, paths))


def _own_overlays(system: str, paths: Sequence[str]) -> list[str]:
    """Exclude overlays of packaged systems with names that begin with the name of this system."""
    longer_systems: list[str] = []
    for name in packaged_names():
        config = Path(name)
        if config.parent == Path() and config.stem.startswith(f"{system}_"):
            longer_systems.append(f"{config.stem}_")
    return [path for path in paths if not Path(path).name.startswith(tuple(longer_systems))]


def read_systems(
    layers: Sequence[FitSettings], overlays: Mapping[str, str] | None = None, purpose: str = "an ablation"
) -> list[AblatedSystem]:
    """Parse every row and read its data before the first fit; overlays come last, and so override all settings."""
    rows: dict[str, str | None] = {FULL: None}
    rows.update(overlays or {})
    systems: list[AblatedSystem] = []
    sources: dict[str, KnownData] = {}
    for name, overlay in rows.items():
        config, data = parse_experiment_fit(layers if overlay is None else [*layers, read_config(overlay)], purpose)
        key = json.dumps(config["data"])
        if key not in sources:
            sources[key] = KnownData.read(data, purpose)
        equal = _find_equal(config, systems)
        if equal is not None:
            say(f"{name} is left out: {overlay} changes nothing compared with {equal.name}")
            continue
        changes = changed_settings(systems[0].config, config) if systems else []
        known = sources[key]
        systems.append(AblatedSystem(name, overlay, config, changes, known.parts, known.triples))
        if known.triples != systems[0].triples:
            raise OptionError("overlay_of_other_triples", path=overlay)
    return systems


def _find_equal(config: Config, systems: Sequence[AblatedSystem]) -> AblatedSystem | None:
    """Find the first system with the same configuration; None if there is none."""
    for system in systems:
        if system.config == config:
            return system
    return None


@dataclass(frozen=True)
class KnownData:
    """Data of a config, as known before its fit.

    Attributes:
        parts: origin of training examples and validation triples, by stage.
        triples: digest of the validation triples.
    """

    parts: Mapping[str, DataPart]
    triples: str

    @classmethod
    def read(cls, data: StoryData, purpose: str) -> "KnownData":
        """Read the data of a fit; raise OptionError if there are no validation triples."""
        data.setup("fit")
        if not data.triples["validation"]:
            raise OptionError("no_validation_triples", purpose=purpose)
        provenance = json.loads(json.dumps(data.provenance))  # in the types of a JSON record
        parts = {stage: DataPart.model_validate(part) for stage, part in provenance.items()}
        return cls(parts, triples_digest(data.triples["validation"]))
