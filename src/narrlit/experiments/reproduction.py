"""Tables of the papers computed again: a record keeps finished cells, a report compares them with published figures."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from narrlit import __version__
from narrlit.console import say
from narrlit.data.readers import read_examples, read_triples
from narrlit.data.rows import file_digest
from narrlit.data.schema import FloatArray, StoryTable, TrainingExamples, Triples
from narrlit.data.writers import write_examples
from narrlit.encoding.loading import load
from narrlit.errors import DataError, ModelError, NarrlitError, OptionError, did_you_mean, on_interrupt, reading
from narrlit.experiments.crossval import crossval
from narrlit.experiments.fitting import Options, fit_arguments, parse_fit
from narrlit.experiments.fusion_weights import fused_scores
from narrlit.experiments.paper_tables import Backbone, find_files, model_name, read_tables
from narrlit.experiments.plan import Plan, PlannedFit, keep_config
from narrlit.experiments.report import Entry, Report, Row
from narrlit.experiments.run import Run
from narrlit.experiments.systems import SystemAnswers, answers_of, flags_of
from narrlit.files import atomic_path, check_writable
from narrlit.llm.client import LLM, LLMOptions
from narrlit.llm.judge import ScoredTriple, judge_triples
from narrlit.measures import open_measure
from narrlit.metrics.significance import AccuracySummary, difference_interval, seed_spread, wilson_interval
from narrlit.models.config import parse_fusion
from narrlit.models.registry import pseudonyms_of
from narrlit.options import CACHE, LoadOptions, StoryOptions
from narrlit.prompts import load_prompt

if TYPE_CHECKING:
    import pandas as pd

RECORD, VERSION = "record.json", 1
FIRST_SEED = 42
UNLABELED = "labels not given"
NOT_RUN = "not run"
TRAINED = "trained on validation: no result"
PUBLISHED_N = {"dev A": 200, "dev B": 200, "test A": 400, "test B": 400}
"""Triples of the task's splits; of how many the papers' cross-validations (CV) evaluate, none says."""


@dataclass(frozen=True, eq=False)
class PaperComparison:
    """Tables of a system's paper computed again, beside the published figures.

    Attributes:
        folder: of the record and the runs.
        report: of the tables that were asked for.
        recorded: report of all tables that the record has.
    """

    folder: Path
    report: Report
    recorded: Report

    def table(self) -> "pd.DataFrame":
        """Tabulate the cells: table, row, column, published, accuracy, low, high, n, difference, why there is none."""
        return self.report.table()

    def plot(self) -> Any:
        """Plot the accuracies with their 95 % intervals; returns a matplotlib axis."""
        return self.report.plot()

    def write(self, folder: str | Path | None = None) -> None:
        """Write reproduce.json, .md, .csv, .tex and (with matplotlib) .svg of all recorded tables."""
        self.recorded.write(self.folder if folder is None else Path(folder), "reproduce")

    def __str__(self) -> str:
        """Tables and notes in Markdown."""
        return self.report.markdown().rstrip("\n")


def reproduce(  # noqa: PLR0913 (options)
    system: str,
    *,
    tables: Sequence[str] | None = None,
    backbones: Sequence[str] = (),
    data: str | Path = "narrative-similarity-dataset",
    labels_a: str | Path | None = None,
    labels_b: str | Path | None = None,
    seeds: int = 1,
    folder: str | Path = "runs/reproduce",
    options: Options | None = None,
) -> PaperComparison:
    """Compute the tables of a system's paper and compare each cell with the published figure.

    Finished cells are kept: repeat the call to continue.

    Args:
        system: hits, ttda704, nlp_fsdm, mendel292 or comhis.
        tables: their numbers; None: all of the paper.
        backbones: encoders in place of the paper's: names in configs/backbones, folders or hub ids, recognized by their
            names; none: the paper's own.
        data: folder with the layout of the task's repository.
        labels_a: labels of the test triples of Track A; None: those in the data folder.
        labels_b: labeled test triples of Track B; None: those in the data folder.
        seeds: number of fits of each trained row, with seeds 42, 43, ...; the row is their mean.
        folder: SYSTEM/record.json and the runs are written into it.
        options: settings of the fits, as `narrlit.fit` takes them, to shorten these.

    Returns:
        A `PaperComparison`: `.table()` with a row a cell, `.plot()`, `.write()`. It prints the tables.

    Raises:
        DataError: if the development triples are missing.
        ModelError: if the paper's encoder is absent, and no other is given.
        OptionError: for a setting that is wrong, or a folder of other settings.
    """
    labels = {
        name: None if file is None else str(file) for name, file in (("labels_a", labels_a), ("labels_b", labels_b))
    }
    place, words = Path(folder) / system, fit_arguments([], options)
    reproduction = Reproduction(system, tables or (), backbones, Path(data), labels, seeds, place, words)
    with on_interrupt(f"finished cells are in {place / RECORD}; repeat the command to continue"):
        report = reproduction.run()
    return PaperComparison(place, report, reproduction.report())


class Cell(NamedTuple):
    """A published figure: of a table's row in a column (split and track, `dev A`), and how the row is computed."""

    table: str
    name: str
    column: str
    published: float | None
    published_n: int | None
    row: Entry

    @property
    def key(self) -> str:
        """Name in the record."""
        return f"{self.table} | {self.name} | {self.column}"

    @property
    def needs_encoder(self) -> bool:
        """True if the row reads stories with an encoder."""
        return "fit" in self.row or "{encoder}" in self.row.get("evaluate", "")


@dataclass
class Reproduction:
    """Cells of a system's tables, and the record of those that are finished; the fields are the command's options."""

    system: str
    numbers: Sequence[str]
    backbones: Sequence[str]
    data: Path
    labels: Mapping[str, str | None]
    seeds: int
    folder: Path
    options: Sequence[str] = ()
    record: Entry = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.content = read_tables(self.system)
        tables = self.content["tables"]
        published_n = PUBLISHED_N | self.content.get("published_n", {})
        for number in self.numbers:
            if number not in tables:
                hint = f"{did_you_mean(number, tables)}; there are {', '.join(tables)}"
                raise OptionError(f"table {number}: no such table of {self.system}{hint}")
            if "unavailable" in tables[number]:
                raise OptionError(f"table {number}: not computed: {tables[number]['unavailable']}")
        if self.seeds < 1:
            raise OptionError(f"`seeds={self.seeds}`: at least 1 fit a row is needed")
        self.cells = [
            Cell(number, name, column, published, published_n.get(column), row)
            for number, table in tables.items()
            for name, row in table.get("rows", {}).items()
            for column, published in row["published"].items()
        ]
        self._parts: dict[Any, FloatArray] = {}
        self.wanted = [cell for cell in self.cells if cell.table in (self.numbers or tables)]
        for name, file in self.labels.items():
            if file is not None and not Path(file).is_file():
                raise OptionError(f"`{name}` {file}: no such file; check the path")

    def run(self) -> Report:
        """Compute the cells that the record lacks, each written to the record when it is finished.

        Raises:
            NarrlitError: if the development triples or the paper's encoder are missing, or an option is wrong.
        """
        find_files(self.data, "dev")
        self._open_record()
        if self.options and not any("fit" in cell.row for cell in self.wanted):
            raise OptionError(f"{self.options[0]}: unknown option; as one of narrlit fit it needs a table with fits")
        done: Entry = self.record["cells"]
        if any(cell.needs_encoder and "encoder" not in cell.row for cell in self.wanted):
            self.backbone({}).require("; give --backbone minilm, another encoder, or a folder of that name")
        for position, cell in enumerate(self.wanted, 1):
            if "accuracy" in done.get(cell.key, {}):
                continue
            say(f"{self.system}, table {cell.key} ({position} of {len(self.wanted)})")
            try:
                done[cell.key] = self._compute(cell)
            except OptionError:  # of narrlit fit, and so of every fit
                raise
            except NarrlitError as error:
                done[cell.key] = {"not_run": str(error)}
            with atomic_path(self.folder / RECORD) as temporary:
                temporary.write_text(json.dumps(self.record, indent=2) + "\n", encoding="utf-8")
        return self.report(self.wanted)

    def backbone(self, row: Row) -> Backbone:
        """Return the encoder of a row."""
        return Backbone.of(row.get("encoder"), self.content["encoder"], self.backbones)

    def _open_record(self) -> None:
        """Read the record, or begin one; refuse one of another version or other settings."""
        path = self.folder / RECORD
        settings = {"backbones": list(self.backbones), "seeds": self.seeds, "options": list(self.options)}
        begun = {"version": VERSION, "narrlit": __version__, "system": self.system, **settings}
        self.record = {**begun, "files": {}, "stand_ins": {}, "cells": {}}
        if not path.is_file():
            check_writable(self.folder, folder=True)
            return
        with reading("record", path, "remove it, or choose another `folder`"):
            before = json.loads(path.read_text(encoding="utf-8"))
            for name, value in begun.items():
                if before[name] != value:
                    raise OptionError(f"{path}: {name} is {before[name]}, not {value}: choose another `folder`")
            self.record |= before

    def _files(self, name: str, row: Row = MappingProxyType({})) -> list[Path]:
        """Find files by the name that tables have for them, or what stands in for them; record their digests."""
        extractor = row.get("views", "o3-mini") if name == "views" else ""
        try:
            given = self.labels.get(name)
            paths = [Path(given)] if given else find_files(self.data, name, extractor)
        except DataError:
            if name.startswith("labels"):
                raise DataError(UNLABELED) from None
            if name == "augmented":
                paths, text = self._files("dev"), "dev triples without back-translations"
            elif name == "negatives":
                paths = [self._mined(row)]
                text = f"mined by {model_name(self.backbone(row).model)}, for those that a language model generated"
            elif extractor == "o3-mini":
                paths = find_files(self.data, name)
                text = f"{', '.join(path.name for path in paths)} for those extracted by o3-mini"
            else:
                raise
            self.record["stand_ins"][name] = text
        for path in paths:
            digest = file_digest(path)
            if self.record["files"].setdefault(str(path), digest) != digest:
                raise OptionError(f"{path} changed since {self.folder / RECORD} was begun: choose another `folder`")
        return paths

    def _mined(self, row: Row) -> Path:
        """Mine nine negatives for each synthetic triple, once."""
        from narrlit.encoding.mining import mine_negatives

        target = self.folder / "negatives.jsonl"
        if not target.is_file():
            stories = StoryTable()
            rows = [one for path in self._files("synthetic") for one in read_examples(path, stories=stories)]
            encoder = load(self.backbone(row).model, long="truncate", cache=CACHE)
            write_examples(target, mine_negatives(encoder, TrainingExamples(stories, rows), 9).examples)
        return target

    def triples(self, column: str) -> Triples:
        """Read the labeled triples of a column."""
        split, track = column.lower().split()
        if split == "dev":
            return read_triples(self._files("dev")[0])
        labels = self._files(f"labels_{track}")[0]
        # Those of Track B, whose test file holds single stories, are whole triples.
        read = read_triples(labels) if track == "b" else read_triples(self._files("test_a")[0], labels)
        if (read.labels < 0).any():
            raise DataError(f"{labels} lacks labels")
        return read

    def _compute(self, cell: Cell) -> Entry:
        """Compute a cell: counts, accuracy, interval and flags; several seeds are averaged."""
        row, backbone = cell.row, self.backbone(cell.row)
        if "unavailable" in row:
            raise DataError(row["unavailable"])
        about = {}
        if cell.needs_encoder:
            backbone.require()
            about = {"stand_in": backbone.stand_in}
        if cell.column.startswith("CV"):
            return self._cross_validated(row) | about
        judged = row.get("judge") and cell.column.endswith("A")
        if judged and not os.environ.get("NARRLIT_LLM_MODEL"):
            remedy = "serve it, and set NARRLIT_LLM_MODEL and OPENAI_BASE_URL"
            raise ModelError(f"{model_name(self.content['judge'])} decides in this column: {remedy}")
        labeled, entries = self.triples(cell.column), []
        for seed in range(FIRST_SEED, FIRST_SEED + (self.seeds if "fit" in row else 1)):
            spec = str(self._fitted(row, seed)) if "fit" in row else row["evaluate"].format(encoder=backbone.model)
            best = Run.read(spec).record.best if "fit" in row else None
            if best and cell.column.startswith("dev") and not (judged or "fusion" in row):
                # The fit has evaluated these very triples.
                entry = {**best.model_dump(exclude_unset=True), "flags": flags_of(spec, None)}
            else:
                answers = self._answers(spec, row, labeled)
                summary = self._judged(answers, labeled) if judged else answers.summary
                entry = {**summary.as_dict(), "flags": answers.flags}
            entries.append({"system": spec, **entry})
        return (entries[0] if len(entries) == 1 else averaged(entries)) | about

    def _arguments(self, row: Entry, *further: str) -> list[str]:
        """Resolve the options of a row's fit."""

        def value(match: re.Match[str]) -> str:
            paths = [str(path) for path in self._files(match[1], row)]
            return paths[0] if len(paths) == 1 else json.dumps(paths)

        words = [re.sub(r"{(\w+)}", value, word) for word in shlex.split(self.content["fits"][row["fit"]])]
        return [*words, *self.backbone(row).options, *further, *self.options]

    def _run_folder(self, row: Entry, ending: str) -> Path:
        """Return the folder of a row's run; rows with the same fit, encoder and views share it."""
        parts = (row["fit"], row.get("encoder"), row.get("views"), ending)
        return self.folder / "-".join(Path(part).name for part in parts if part)

    def _fitted(self, row: Entry, seed: int) -> Path:
        """Return the run of a row, fitted unless it is finished."""
        run = self._run_folder(row, f"seed{seed}")
        dev = str(self._files("dev")[0])
        arguments = self._arguments(row, "--data.validation", dev, "--seed_everything", str(seed))
        config, _ = parse_fit(arguments, "a reproduction")
        keep_config(run.with_name(f"{run.name}.yaml"), config, run)
        if not Run.at(run).finished:
            Plan(self.folder, [PlannedFit(run.name, config, row["fit"])], {}).run_fits()
        return run

    def _cross_validated(self, row: Entry) -> Entry:
        """Cross-validate a row's fit; accuracy after the last epoch, pooled over the folds."""
        folder = self._run_folder(row, "cv")
        content = crossval([], self._arguments(row), folder=folder).report.content
        spread = content["over_folds"]["last_epoch"]["standard_deviation"]
        return {**content["pooled"]["last_epoch"], "standard_deviation": spread, "system": str(folder), "flags": {}}

    def _answers(self, spec: str, row: Entry, labeled: Triples) -> SystemAnswers:
        """Evaluate a system on triples as its fit read them."""
        fusion, viewed = row.get("fusion"), "fusion" in row or row.get("fit") == "views"
        trained = pseudonyms_of(spec) if "fit" in row else None
        replaced = {"pseudonymize": True, **trained.model_dump(exclude={"backend"})} if trained else {}
        views = ",".join(map(str, self._files("views", row))) if viewed else None
        read = StoryOptions(views=views, fusion=fusion, **replaced)
        use = LoadOptions(long="truncate")
        if fusion is None:
            system = open_measure(spec, lambda model: read.load(model, use), texts=read.texts)
            return answers_of(system, labeled, name=spec, progress=True)
        prepared = read.texts.prepare_triples(labeled)
        key = (spec, views, labeled.report and labeled.report.path)
        if key not in self._parts:  # embedded once for all weights
            self._parts[key], _ = read.load(spec, use).embed_parts(prepared.stories)
        weights = np.array([parse_fusion(fusion).weights])
        scores = fused_scores(self._parts[key], prepared.indices, weights)[0]
        return SystemAnswers.scored(spec, "model", labeled.labels == 1, scores, flags=flags_of(spec, None))

    def _judged(self, answers: SystemAnswers, labeled: Triples) -> AccuracySummary:
        """Let the language model that the environment names decide, as `narrlit judge` does."""
        scores: Any = answers.scores
        scored = [ScoredTriple(texts, (a, b)) for texts, (a, b) in zip(labeled.texts(), scores.tolist(), strict=True)]
        llm = LLM(LLMOptions(temperature=self.content["temperature"]), self.folder / "judge.answers.sqlite")
        judgements = judge_triples(llm, scored, load_prompt("judge"))
        if failed := sum(judgement.failed for judgement in judgements):
            raise ModelError(f"{failed} of {len(judgements)} requests failed: repeat the command")
        right = sum(one.a_is_closer == label for one, label in zip(judgements, answers.labels.tolist(), strict=True))
        return AccuracySummary(len(judgements), right)

    def report(self, cells: Sequence[Cell] | None = None) -> Report:
        """Compare cells with the published figures; by default all that the record has."""
        records: list[Entry] = []
        tables: dict[str, list[Entry]] = {}
        for cell in self.cells if cells is None else cells:
            if cell.key not in self.record["cells"]:
                continue
            about = {"table": cell.table, "row": cell.name, "column": cell.column, "published": cell.published}
            entry = {**about, "published_n": cell.published_n, **self.record["cells"][cell.key]}
            entry["incomparable"] = incomparable(entry)
            if entry["incomparable"] is None:
                entry |= difference_to_paper(entry)
            records.append(entry)
            title = f"{self.system}, table {cell.table}: {self.content['tables'][cell.table]['shows']}"
            tables.setdefault(title, []).append(_formatted(entry))
        flagged = any(entry.get("flags") for entry in records)
        for row in (row for rows in tables.values() for row in rows if not flagged):
            del row["flags"]
        known = [entry for entry in records if entry.get("accuracy") is not None]
        return Report(
            content={**self.record, "cells": records},
            tables=tables,
            notes=self._notes(records),
            records=records,
            intervals={f"{entry['row']}, {entry['column']}": entry for entry in known},
        )

    def _notes(self, records: Sequence[Entry]) -> list[str]:
        encoders = sorted({entry["stand_in"] for entry in records if entry.get("stand_in")})
        notes = [f"Encoder: {', '.join(encoders)}."] if encoders else []
        notes += [f"{name.capitalize()}: {text}." for name, text in self.record["stand_ins"].items()]
        notes += (
            [f"Options of the fits, beside those of the tables: {shlex.join(self.options)}."] if self.options else []
        )
        if self.seeds > 1:
            notes.append(f"Trained rows: mean ± standard deviation of {self.seeds} seeds; interval of one evaluation.")
        if any(entry["column"].startswith("CV") for entry in records):
            notes.append(
                "CV: folds that share no story and evaluate no synthetic triple, after the last epoch; the paper says "
                "neither which triples its folds evaluate nor how many."
            )
        if any("num_evaluations" in entry.get("flags", {}) for entry in records if entry["column"].startswith("dev")):
            notes.append("Dev: of trained rows the best epoch on these very triples, too high by this selection.")
        reasons = [entry["incomparable"] or "" for entry in records]
        notes += [f"{each[:1].upper()}{each[1:]}." for each in dict.fromkeys(reasons) if each.startswith(NOT_RUN)]
        if any(each.endswith("is absent") for each in reasons):
            notes.append("Absent encoders: --backbone A,B names folders of them, which are recognized by their names.")
        if UNLABELED in reasons:
            notes.append("Test labels: test/labels/ below --data, or --labels-a FILE and --labels-b FILE.")
        if any("difference" in entry for entry in records):
            notes.append(
                "Ours - published: with the 95 % interval of a difference between independent answers (Newcombe), as a "
                "rule too wide where both answer the same triples. With 0 in it neither a difference nor equality is "
                "shown."
            )
        return notes


def averaged(entries: Sequence[Entry]) -> Entry:
    """Average the evaluations of a cell over seeds; the interval is that of one evaluation with their mean accuracy."""
    n, (average, spread) = entries[0]["n"], seed_spread([one["accuracy"] for one in entries])
    flags = {name: value for one in entries for name, value in one["flags"].items()}
    interval = list(wilson_interval(round(average * n), n))
    about = {"n": n, "accuracy": average, "interval": interval, "standard_deviation": spread}
    return {**about, "flags": flags, "seeds": list(entries)}


def _formatted(entry: Entry) -> Entry:
    """Format a cell as a row of the report."""
    known, spread = entry.get("accuracy") is not None, entry.get("standard_deviation")
    flags = [name if value is True else f"{name} {value}" for name, value in entry.get("flags", {}).items()]
    return {
        "row": entry["row"],
        "column": entry["column"],
        "published": "" if entry["published"] is None else f"{entry['published']:.4f}".removesuffix("0"),
        "ours": (f"{entry['accuracy']:.3f}" + (f" ± {spread:.3f}" if spread is not None else "")) if known else "",
        "95 % interval": "[{:.3f}, {:.3f}]".format(*entry["interval"]) if known else "",
        "n": str(entry["n"]) if known else "",
        "ours - published": _difference_cell(entry),
        "flags": ", ".join(flags),
    }


def _difference_cell(entry: Entry) -> str:
    """Format the difference to the published figure, or why there is none."""
    if entry["incomparable"]:
        return NOT_RUN if entry["incomparable"].startswith(NOT_RUN) else str(entry["incomparable"])
    if entry["difference_interval"] is None:
        return f"{entry['difference']:+.3f} (the paper's n is unknown)"
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(entry["difference"], *entry["difference_interval"])


def incomparable(entry: Mapping[str, Any]) -> str | None:
    """Say why a cell has no difference to the published figure; None if it has one.

    >>> incomparable({"not_run": "minilm is absent"})
    'not run: minilm is absent'
    """
    if "not_run" in entry:
        return UNLABELED if entry["not_run"] == UNLABELED else f"{NOT_RUN}: {entry['not_run']}"
    if entry.get("accuracy") is None:
        return "none: scores are NaN"
    flags = entry.get("flags", {})
    if entry["column"].startswith("dev") and ("trained_on_validation" in flags or "mined_validation" in flags):
        return TRAINED
    return "no published figure" if entry["published"] is None else None


def difference_to_paper(entry: Mapping[str, Any]) -> Entry:
    """Compute our accuracy minus the published one, and its 95 % interval; None if the paper's n is unknown.

    >>> cell = difference_to_paper({"published": 0.55, "published_n": 200, "accuracy": 0.6, "n": 200})
    >>> [round(end, 3) for end in cell["difference_interval"]]
    [-0.047, 0.145]
    """
    n = entry["published_n"]
    interval = list(difference_interval(entry["accuracy"], entry["n"], entry["published"], n)) if n else None
    return {"difference": entry["accuracy"] - entry["published"], "difference_interval": interval}
