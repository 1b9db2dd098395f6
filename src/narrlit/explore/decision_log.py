"""File of decisions that only grows: one JSON object per line, each written at once."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Generic, Protocol, TypeVar

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from narrlit.errors import DataError, OptionError, reading, reason
from narrlit.files import sync_folder
from narrlit.json_records import first_problem

Entry = TypeVar("Entry", bound=BaseModel)
CHUNK = 4096
"""Bytes that are read at once in search of the last line."""


class EntryLog(Protocol[Entry]):
    """Entries in the order in which they were made, and the file that holds them."""

    path: Path

    def __iter__(self) -> Iterator[Entry]:
        """Read all entries."""

    def append(self, entry: Entry) -> None:
        """Write an entry to the disk."""


class DecisionLog(Generic[Entry]):
    """Entries in a JSON Lines file, in the order in which they were made.

    An entry is on the disk when `append` returns. If the process is killed while it writes, all earlier entries can
    still be read, and the unfinished line is removed by the next `append`. Several processes and threads may append.

    Attributes:
        path: the file, which need not exist.
        entry: pydantic model of an entry.
    """

    def __init__(self, path: str | Path, entry: type[Entry]) -> None:
        self.path = Path(path)
        self.entry = entry

    def __iter__(self) -> Iterator[Entry]:
        """Read all entries.

        Raises:
            DataError: if the file can't be read, or a line is no entry; an unfinished last line is left out.
        """
        if not self.path.exists():
            return
        with reading("unreadable_decisions", self.path):
            *lines, last = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield self._parse(line, number)
        if _is_finished(last):
            yield self._parse(last, len(lines) + 1)

    def append(self, entry: Entry) -> None:
        """Write an entry to the disk.

        Raises:
            OptionError: if the file can't be written.
        """
        line = entry.model_dump_json().encode() + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_name(f".{self.path.name}.lock")), self.path.open("ab+", buffering=0) as file:
                _end_last_line(file)
                file.write(line)
                os.fsync(file.fileno())
            sync_folder(self.path.parent)
        except OSError as error:
            raise OptionError("cannot_write", path=self.path, reason=reason(error)) from error

    def _parse(self, line: bytes, number: int) -> Entry:
        """Validate a line."""
        try:
            return self.entry.model_validate_json(line)
        except ValidationError as error:
            raise DataError("broken_decision", path=self.path, line=number, problem=first_problem(error)) from error


def _end_last_line(file: IO[bytes]) -> None:
    """Add the end of the last line, if only that is missing, or remove a line that is unfinished."""
    last = _last_line(file)
    if _is_finished(last):
        file.write(b"\n")
    elif last:
        file.truncate(file.seek(0, os.SEEK_END) - len(last))


def _last_line(file: IO[bytes]) -> bytes:
    """Return what follows the last line break."""
    end = file.seek(0, os.SEEK_END)
    last = b""
    while end and b"\n" not in last:
        start = max(0, end - CHUNK)
        file.seek(start)
        last = file.read(end - start) + last
        end = start
    return last.rpartition(b"\n")[2]


def _is_finished(line: bytes) -> bool:
    """Return True for a whole JSON object: no beginning of one ends with its brace."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
