"""Record of a reproduction: its settings, the files that it read, and the cells that are finished."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from narrlit import __version__
from narrlit.data.rows import file_digest
from narrlit.errors import OptionError
from narrlit.files import atomic_path, check_writable
from narrlit.json_records import read_json
from narrlit.models.run_file import Part

RECORD, VERSION = "record.json", 1
OTHER_FOLDER = "choose another `folder`"
REMEDY = f"remove it, or {OTHER_FOLDER}"


class CellResult(Part):
    """Accuracy of a cell, or why it has none.

    Attributes:
        not_run: why the cell was not computed; None: it was.
        system: run or model that was evaluated.
        n: number of triples.
        correct: number of right answers.
        accuracy: from 0 to 1; None where a score was NaN.
        interval: ends of the 95 % confidence interval.
        standard_deviation: over seeds or folds.
        flags: what else the accuracy depends on.
        seeds: results of single seeds, where this is their mean.
        stand_in: which encoder of the paper another one replaces.
    """

    not_run: str | None = None
    system: str | None = None
    n: int | None = None
    correct: int | None = None
    accuracy: float | None = None
    interval: list[float] | None = None
    standard_deviation: float | None = None
    flags: dict[str, bool | int | str] = Field(default_factory=dict)
    seeds: list["CellResult"] = Field(default_factory=list)
    stand_in: str | None = None


class RecordHead(BaseModel):
    """The fields that say which narrlit wrote a record."""

    model_config = ConfigDict(strict=True, extra="allow")

    version: int = VERSION
    narrlit: str = __version__


class Record(RecordHead):
    """Contents of a record.json.

    Attributes:
        system: whose tables are computed.
        backbones: encoders instead of the paper's.
        seeds: number of fits of each trained row.
        options: of the fits, beside those of the tables.
        files: digests by path.
        stand_ins: what replaces absent files, by their name in the tables.
        cells: by key.
    """

    system: str
    backbones: list[str]
    seeds: int
    options: list[str]
    files: dict[str, str] = {}
    stand_ins: dict[str, str] = {}
    cells: dict[str, CellResult] = {}

    @classmethod
    def open(cls, folder: Path, begun: "Record") -> "Record":
        """Read the record of a folder, or begin one.

        Args:
            folder: of the record.
            begun: a record without cells, with the settings that the folder's must have.

        Raises:
            DataError: if the record is damaged.
            OptionError: if it is of other settings, or another version of narrlit wrote it.
        """
        path = folder / RECORD
        if not path.is_file():
            check_writable(folder, folder=True)
            return begun
        head = read_json(path, RecordHead, "record", REMEDY)
        if (head.version, head.narrlit) != (begun.version, begun.narrlit):
            raise OptionError(
                f"{path}: narrlit {head.narrlit} wrote it in version {head.version}, and this is narrlit "
                f"{begun.narrlit} with version {begun.version}: {OTHER_FOLDER}, or install that narrlit"
            )
        record = read_json(path, cls, "record", REMEDY)
        for name in ("system", "backbones", "seeds", "options"):
            before, now = getattr(record, name), getattr(begun, name)
            if before != now:
                raise OptionError(f"{path}: {name} is {before}, not {now}: {OTHER_FOLDER}")
        return record

    def write(self, folder: Path) -> None:
        """Write the record into its folder, or leave the earlier one."""
        content = self.model_dump(exclude={"cells"})
        cells = {key: cell.model_dump(exclude_unset=True) for key, cell in self.cells.items()}
        with atomic_path(folder / RECORD) as temporary:
            temporary.write_text(json.dumps({**content, "cells": cells}, indent=2) + "\n", encoding="utf-8")

    def check_file(self, path: Path, folder: Path) -> None:
        """Record the digest of a file.

        Raises:
            OptionError: if the file has changed since it was recorded.
        """
        digest = file_digest(path)
        if self.files.setdefault(str(path), digest) != digest:
            raise OptionError(f"{path} changed since {folder / RECORD} was begun: {OTHER_FOLDER}")

    def is_computed(self, key: str) -> bool:
        """True if a cell is finished; one that was not run is tried again."""
        return key in self.cells and self.cells[key].not_run is None
