"""Record of a reproduction: its settings, input files and finished cells."""

import json
import math
import shlex
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from narrlit import __version__
from narrlit.data.rows import file_digest
from narrlit.errors import OptionError
from narrlit.files import atomic_path, check_writable
from narrlit.json_records import changed_settings, read_json
from narrlit.models.run_file import Part
from narrlit.statistics.estimates import Estimate

REPRODUCTION_RECORD, VERSION = "record.json", 1


class RecordedCell(Part):
    """Accuracy of a cell in a record, or the reason why it has none.

    Attributes:
        not_run: reason why the cell was not computed; None if it was.
        system: run or model that was evaluated.
        n: number of triples.
        correct: number of right answers.
        accuracy: accuracy from 0 to 1; None if a score was NaN.
        interval: ends of the 95 % confidence interval.
        standard_deviation: standard deviation over seeds or folds.
        flags: contamination and provenance flags.
        seeds: results of single seeds, if this is their mean.
        stand_in: description of the encoder that replaces that of the paper.
    """

    not_run: str | None = None
    system: str | None = None
    n: int | None = None
    correct: int | None = None
    accuracy: float | None = None
    interval: list[float] | None = None
    standard_deviation: float | None = None
    flags: dict[str, bool | int | str] = Field(default_factory=dict)
    seeds: list["RecordedCell"] = Field(default_factory=list)
    stand_in: str | None = None

    @property
    def estimate(self) -> Estimate:
        """Accuracy with its interval; NaN if there is none."""
        low, high = self.interval or (math.nan, math.nan)
        return Estimate(math.nan if self.accuracy is None else self.accuracy, low, high, self.n or 0)


class ReproductionHead(BaseModel):
    """Fields that identify the version of narrlit that wrote a record."""

    model_config = ConfigDict(strict=True, extra="allow")

    version: int = VERSION
    narrlit: str = __version__


class ReproductionRecord(ReproductionHead):
    """Contents of a record.json.

    Attributes:
        system: system whose tables are computed.
        backbones: encoders used instead of the paper's.
        seeds: number of fits per trained row.
        options: configs and settings of the fits, in addition to those of the tables.
        files: digests of files by path.
        stand_ins: replacements of the paper's files, models and settings, by name.
        cells: results by key.
    """

    system: str
    backbones: list[str]
    seeds: int
    options: list[str | dict[str, Any]]
    files: dict[str, str] = {}
    stand_ins: dict[str, str] = {}
    cells: dict[str, RecordedCell] = {}

    @property
    def options_text(self) -> str:
        """Options of the fits, as on a command line."""
        words: list[str] = []
        for option in self.options:
            if isinstance(option, str):
                words += ["--config", option]
            else:
                words += chain.from_iterable((f"--{name}", str(value)) for name, value in option.items())
        return shlex.join(words)

    @classmethod
    def open(cls, folder: Path, begun: "ReproductionRecord") -> "ReproductionRecord":
        """Read the record in a folder, or begin a new one.

        Args:
            folder: folder of the record.
            begun: record without cells, with the settings that an existing record must have.

        Raises:
            DataError: if the record is damaged.
            OptionError: if it has other settings, or was written by another version of narrlit.
        """
        path = folder / REPRODUCTION_RECORD
        if not path.is_file():
            check_writable(folder, folder=True)
            return begun
        head = read_json(path, ReproductionHead, "broken_record_of_reproduction")
        if (head.version, head.narrlit) != (begun.version, begun.narrlit):
            raise OptionError(
                "record_of_other_release",
                path=path,
                written_by=head.narrlit,
                written_version=head.version,
                narrlit=begun.narrlit,
                version=begun.version,
            )
        record = read_json(path, cls, "broken_record_of_reproduction")
        settings = {"system", "backbones", "seeds", "options"}
        changes = changed_settings(record.model_dump(include=settings), begun.model_dump(include=settings))
        if changes:
            raise OptionError("other_configuration", path=path, change=changes[0], option="folder")
        return record

    def write(self, folder: Path) -> None:
        """Write the record to its folder, atomically."""
        content = self.model_dump(exclude={"cells"})
        cells = {key: cell.model_dump(exclude_unset=True) for key, cell in self.cells.items()}
        with atomic_path(folder / REPRODUCTION_RECORD) as temporary:
            temporary.write_text(json.dumps({**content, "cells": cells}, indent=2) + "\n", encoding="utf-8")

    def check_file(self, path: Path, folder: Path) -> None:
        """Record the digest of a file, or check it against the record.

        Raises:
            OptionError: if the file has changed since it was recorded.
        """
        digest = file_digest(path)
        if self.files.setdefault(str(path), digest) != digest:
            raise OptionError("input_changed", path=path, record=folder / REPRODUCTION_RECORD)

    def is_computed(self, key: str) -> bool:
        """Return True if a cell is finished; a cell that was not run is tried again."""
        return key in self.cells and self.cells[key].not_run is None
