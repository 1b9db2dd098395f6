"""`narrlit.reproduce`: compute the tables of papers; finished cells are kept in a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrlit.configuration import Configs, FitSettings, list_configs
from narrlit.console import say
from narrlit.errors import NarrlitError, OptionError, on_interrupt
from narrlit.experiments.reproduction.cells import Computation
from narrlit.experiments.reproduction.inputs import ReproductionInputs, find_files
from narrlit.experiments.reproduction.record import REPRODUCTION_RECORD, RecordedCell, ReproductionRecord
from narrlit.experiments.reproduction.report import reproduction_result
from narrlit.experiments.reproduction.tables import TableCell, choose_cells, read_tables
from narrlit.results import Result


@dataclass(frozen=True, eq=False)
class PaperResult(Result):
    """Reproduced tables of a system's paper, next to the published figures.

    Attributes:
        folder: folder of the record and the runs.
        recorded: result with all tables in the record.
    """

    folder: Path
    recorded: Result

    def write(self, folder: str | Path | None = None) -> None:
        """Write the result with all recorded tables, by default next to the runs."""
        self.recorded.write(self.folder if folder is None else folder)


def reproduce(  # noqa: PLR0913 (options)
    system: str,
    *,
    tables: Sequence[str] | None = None,
    backbones: Sequence[str] = (),
    data: str | Path = "narrative-similarity-dataset",
    labels_a: str | Path | None = None,
    labels_b: str | Path | None = None,
    seeds: int = 1,
    out: str | Path = "runs/reproduce",
    config: Configs = (),
    settings: FitSettings | None = None,
) -> PaperResult:
    """Compute the tables of a system's paper and compare each cell with the published figure.

    Repeat the call to resume: finished cells are kept.

    Args:
        system: hits, ttda704, nlp_fsdm, mendel292 or comhis.
        tables: numbers of tables; None: all tables of the paper.
        backbones: encoders to use instead of the paper's: names in configs/backbones, folders or hub ids, matched by
            name to those of the paper; empty: the paper's own.
        data: folder with the layout of the task's repository.
        labels_a: file with the labels of the test triples of Track A; None: that in the data folder.
        labels_b: file of the labeled test triples of Track B; None: that in the data folder.
        seeds: number of fits per trained row, with seeds 42, 43, ...; the row gives their mean.
        out: folder for SYSTEM/record.json, the runs and the result (reproduce.json, ...).
        config: a config, or several, that override those of the fits, as in `narrlit.fit`.
        settings: settings that override the configs of the fits, for instance to shorten them.

    Returns:
        A `Result` with a figure for each cell, next to the published one; `.write()` writes all recorded tables.

    Raises:
        DataError: if the development triples are missing.
        ModelError: if the paper's encoder is not available, and no other is given.
        OptionError: if a setting is invalid, or the folder has a record with other settings.

    >>> from narrlit.data.schema import StoryTable
    >>> from narrlit.data.storyworld import StoryWorld, synthetic_triples
    >>> from narrlit.data.writers import write_triples
    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> write_triples("dev/dev_track_a.jsonl", synthetic_triples(StoryWorld(0).triples(4, "validation"), StoryTable()))
    >>> result = reproduce("mendel292", tables=["1"], data=".")
    >>> result.table().query("system == 'L6'")[["system", "subset", "published", "n"]]
      system                      subset published  n
    0     L6   mendel292, table 1: dev A      0.55  4
    1     L6  mendel292, table 1: test A     0.598  0
    """
    begun = ReproductionRecord(
        system=system, backbones=list(backbones), seeds=seeds, options=list_configs(config, settings)
    )
    cells = choose_cells(system, tables or ())
    labels = {"labels_a": labels_a, "labels_b": labels_b}
    reproduction = Reproduction.begin(begun, cells, Path(data), labels, Path(out) / system)
    with on_interrupt(
        f"finished cells are kept in {reproduction.folder / REPRODUCTION_RECORD}: repeat the command to resume"
    ):
        reproduction.compute()
    recorded = reproduction.result(read_tables(system).cells())
    result = PaperResult(**vars(reproduction.result(cells)), folder=reproduction.folder, recorded=recorded)
    result.write()
    return result


@dataclass(frozen=True)
class Reproduction:
    """Computation of cells of a paper's tables, with a record.

    Attributes:
        cells: cells to compute.
        inputs: files and encoders, and the record.
    """

    cells: Sequence[TableCell]
    inputs: ReproductionInputs

    @classmethod
    def begin(
        cls,
        settings: ReproductionRecord,
        cells: Sequence[TableCell],
        data: Path,
        labels: Mapping[str, str | Path | None],
        folder: Path,
    ) -> "Reproduction":
        """Begin a reproduction in a new folder, or resume the one in an existing folder.

        Args:
            settings: record without cells.
            cells: cells to compute.
            data: folder with the layout of the task's repository.
            labels: files of test labels by `labels_a` and `labels_b`; None: those in the data folder.
            folder: folder of the record and the runs.

        Raises:
            DataError: if the development triples are missing.
            ModelError: if the paper's encoder is not available, and no other is given.
            OptionError: if a setting is invalid, or the folder has a record with other settings.
        """
        _check_settings(settings, labels)
        files = {name: None if file is None else Path(file) for name, file in labels.items()}
        tables = read_tables(settings.system)
        find_files(data, "dev")
        inputs = ReproductionInputs(tables, data, files, ReproductionRecord.open(folder, settings), folder)
        _check_cells(settings, cells, inputs)
        return cls(cells, inputs)

    @property
    def folder(self) -> Path:
        """Folder of the record and the runs."""
        return self.inputs.folder

    @property
    def record(self) -> ReproductionRecord:
        """Settings, files and finished cells."""
        return self.inputs.record

    def compute(self) -> None:
        """Compute the unfinished cells; each is written to the record as soon as it is finished.

        Raises:
            OptionError: if an option of `narrlit fit` is invalid.
        """
        computation = Computation(self.inputs)
        for number, cell in enumerate(self.cells, 1):
            if self.record.is_computed(cell.key):
                continue
            say(f"{self.record.system}, table {cell.key} ({number} of {len(self.cells)})")
            self.record.cells[cell.key] = _result(computation, cell)
            self.record.write(self.folder)

    def result(self, cells: Sequence[TableCell]) -> Result:
        """Compare cells with the published figures; cells that are not in the record are omitted."""
        return reproduction_result(self.inputs.tables, self.record, cells)


def _result(computation: Computation, cell: TableCell) -> RecordedCell:
    """Compute a cell, or return the reason why it was not run."""
    try:
        return computation.compute(cell)
    except OptionError:  # an invalid option of narrlit fit, which affects every fit
        raise
    except NarrlitError as error:
        return RecordedCell(not_run=str(error))


def _check_settings(settings: ReproductionRecord, labels: Mapping[str, str | Path | None]) -> None:
    """Check settings independently of the folder."""
    if settings.seeds < 1:
        raise OptionError("at_least", option="seeds", found=settings.seeds, least=1)
    for name, file in labels.items():
        if file is not None and not Path(file).is_file():
            raise OptionError("no_file_of_option", option=name, path=file)


def _check_cells(settings: ReproductionRecord, cells: Sequence[TableCell], inputs: ReproductionInputs) -> None:
    """Check that a cell uses the options of fits, and that the paper's encoder is available if a cell needs it."""
    if settings.options and not any(cell.row.fit for cell in cells):
        raise OptionError("options_need_fits", argument=settings.options_text.partition(" ")[0])
    for cell in cells:
        if cell.row.needs_encoder and cell.row.encoder is None:
            inputs.backbone(cell.row).require("paper_encoder_not_available")
