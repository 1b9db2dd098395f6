"""Tables of the five papers: data files with the published figures, and how each row is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from narrlit.configuration import read_yaml
from narrlit.errors import OptionError, nearest
from narrlit.experiments.reproduction.backbones import model_name

TABLES = Path(__file__).parents[2] / "published"
SYSTEMS = sorted(file.stem for file in TABLES.glob("*.yaml"))
PUBLISHED_N = {"dev A": 200, "dev B": 200, "test A": 400, "test B": 400}
"""Number of triples in the task's splits; the papers don't say how many their cross-validations (CV) evaluate."""


class PaperPart(BaseModel):
    """Part of a paper's data file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperRow(PaperPart):
    """Row of a table; one of `fit`, `evaluate` and `unavailable` is given.

    Attributes:
        published: figures by column; None if the row is ours.
        fit: name of the row's fit.
        evaluate: system that is evaluated without training; `{encoder}` is replaced with the encoder.
        unavailable: reason why the row is not computed.
        encoder: overlay of configs/backbones or hub id; None: that of the paper.
        views: extractor of the views.
        fusion: weights of text and views.
        judge: a language model decides Track A.
        published_n: number of triples of the published figures, if it differs from that of other rows.
    """

    published: dict[str, float | None]
    fit: str | None = None
    evaluate: str | None = None
    unavailable: str | None = None
    encoder: str | None = None
    views: str | None = None
    fusion: str | None = None
    judge: bool = False
    published_n: int | None = None

    @property
    def needs_encoder(self) -> bool:
        """True if the row reads stories with an encoder."""
        return self.fit is not None or "{encoder}" in (self.evaluate or "")

    @property
    def reads_views(self) -> bool:
        """True if the row reads views of stories."""
        return self.fusion is not None or self.fit == "views"


class PaperTable(PaperPart):
    """Table or figure; it is not computed if it has no rows.

    Attributes:
        shows: subject of the table.
        time: approximate times on two CPU cores and on a GPU.
        rows: rows by name.
        unavailable: reason why it is not computed.
    """

    shows: str
    time: list[str] = []
    rows: dict[str, PaperRow] = {}
    unavailable: str | None = None


class PaperFit(PaperPart):
    """Fit of a row.

    Attributes:
        configs: configs, of which later ones override earlier ones.
        files: names of files in the data folder, by setting.
    """

    configs: list[str]
    files: dict[str, str]


class PaperTables(BaseModel):
    """Tables and figures of a system's paper.

    Attributes:
        paper: authors and title.
        encoder: encoder of the paper.
        fits: fits by name.
        tables: tables by number.
        published_n: number of triples of the published figures by column, if it differs from that of the split.
        judge: language model that decides Track A.
        temperature: sampling temperature of the judge.
        pseudonyms: settings of the paper's pseudonymization, as in `data.loading.pseudonyms`.
    """

    model_config = ConfigDict(frozen=True)

    paper: str
    encoder: str
    fits: dict[str, PaperFit]
    tables: dict[str, PaperTable]
    published_n: dict[str, int] = {}
    judge: str | None = None
    temperature: float = 0.0
    pseudonyms: dict[str, str | bool] = {}

    def cells(self) -> list["TableCell"]:
        """List the published figures of all tables, in order."""
        published_n = {**PUBLISHED_N, **self.published_n}
        cells: list[TableCell] = []
        for number, table in self.tables.items():
            for name, row in table.rows.items():
                for column, published in row.published.items():
                    n = row.published_n or published_n.get(column)
                    cells.append(TableCell(number, name, column, published, n, row))
        return cells


@dataclass(frozen=True)
class TableCell:
    """Cell of a table.

    Attributes:
        table: number of the table.
        name: name of the row.
        column: split and track, such as `dev A`; the split `CV` is a cross-validation.
        published: published figure; None if the row is ours.
        published_n: number of triples of the published figure; None if unknown.
        row: row of the cell.
    """

    table: str
    name: str
    column: str
    published: float | None
    published_n: int | None
    row: PaperRow

    @property
    def key(self) -> str:
        """Name of the cell in the record."""
        return f"{self.table} | {self.name} | {self.column}"

    @property
    def split(self) -> str:
        """Split of the triples: dev, test or CV."""
        return self.column.split()[0]

    @property
    def is_judged(self) -> bool:
        """True if a language model decides."""
        return self.row.judge and self.column.endswith("A")

    @property
    def is_of_the_fit(self) -> bool:
        """True if the fit of the row itself evaluates the triples of the column."""
        return self.split == "dev" and not self.is_judged and self.row.fusion is None


@cache
def read_tables(system: str) -> PaperTables:
    """Read the tables of a system's paper; raise OptionError if there is no such system."""
    if system not in SYSTEMS:
        raise OptionError("no_tables", system=system, near=nearest(system, SYSTEMS), known=SYSTEMS)
    return PaperTables.model_validate(read_yaml(TABLES / f"{system}.yaml"))


def choose_cells(system: str, numbers: Sequence[str]) -> list[TableCell]:
    """List the cells of some tables of a paper; without numbers, of all tables.

    Raises:
        OptionError: if there is no such table, or it is not computed.
    """
    content = read_tables(system)
    for number in numbers:
        _check_number(system, number, content.tables)
    return [cell for cell in content.cells() if not numbers or cell.table in numbers]


def _check_number(system: str, number: str, tables: Mapping[str, PaperTable]) -> None:
    """Check that a table exists and is computed."""
    if number not in tables:
        raise OptionError(
            "unknown_table", number=number, system=system, near=nearest(number, tables), known=list(tables)
        )
    reason = tables[number].unavailable
    if reason is not None:
        raise OptionError("table_not_computed", number=number, explanation=reason)


def list_tables(names: Sequence[str]) -> str:
    """List every table and figure of papers with its subject, and its cost or the reason why it is not computed."""
    lines = ["Approximate times: two CPU cores with MiniLM / one GPU with the paper's encoder.", ""]
    for name in names:
        content = read_tables(name)
        lines.append(f"{name}: {content.paper}; encoder {model_name(content.encoder)}")
        for number, table in content.tables.items():
            title = number if number.startswith("figure") else f"table {number}"
            lines.append(f"  {title}: {table.shows}")
            lines.append(f"      {_cost(table)}")
        lines.append("")
    return "\n".join(lines)


def _cost(table: PaperTable) -> str:
    """Describe the cost of a table: evaluations, fits, cross-validations and time."""
    if table.unavailable is not None:
        return f"not computed: {table.unavailable}"
    evaluations = crossvals = 0
    fits = set()
    for row in table.rows.values():
        if row.unavailable is not None:
            continue
        if row.fit is not None:
            fits.add((row.fit, row.encoder, row.views))
        for column in row.published:
            if column.startswith("CV"):
                crossvals += 1
            else:
                evaluations += 1
    counts = {"evaluations": evaluations, "fits": len(fits), "cross-validations": crossvals}
    parts = [_counted(count, unit) for unit, count in counts.items() if count]
    return f"{', '.join(parts)}; {' / '.join(table.time)}"


def _counted(count: int, unit: str) -> str:
    """Format a number with its unit, singular or plural."""
    return f"{count} {unit.removesuffix('s') if count == 1 else unit}"
