"""Append-only JSON Lines: what was written is there after a kill, and at most the line being written is lost."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from narrlit.errors import DataError, OptionError


class Journal:
    """Lines of a file that one job at a time writes: `with Journal(path, take) as journal: journal.write({...})`."""

    def __init__(self, path: Path, take: Callable[[dict[str, Any]], None]) -> None:
        """Nothing is opened yet.

        Args:
            path: where; the folder is made.
            take: called with each line that is there when the file is opened; raises KeyError or TypeError where it is
                no such line.
        """
        self.path = path
        self._take = take
        self._file: BinaryIO | None = None

    def __enter__(self) -> "Journal":
        """Read the lines; half a line at the end, of a job that was killed, is cut off.

        Raises:
            OptionError: if the file can't be opened, or another job has it open.
            DataError: if a line is none of such a file, naming file and line.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+b")
        except OSError as error:
            raise OptionError(f"cannot write the log {self.path}: {error.strerror}; name another by --log") from error
        try:
            _lock(file, self.path)
            self._read(file)
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, file: BinaryIO) -> None:
        file.seek(0)
        end = 0
        for number, content in enumerate(file, 1):
            if not content.endswith(b"\n"):
                break
            try:
                self._take(json.loads(content))
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(
                    f"{self.path}:{number}: no line of such a log; name another file by --log, or delete this line"
                ) from error
            end += len(content)
        if end < file.seek(0, os.SEEK_END):
            file.truncate(end)

    def write(self, line: dict[str, Any]) -> None:
        """Append a line; when this returns, a kill of the process doesn't lose it.

        Raises:
            OptionError: if it can't be written.
        """
        if self._file is None:
            raise ValueError(f"{self.path} is not open")
        # An unpaired surrogate becomes its JSON escape.
        content = json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace")
        try:
            self._file.write(content + b"\n")
            self._file.flush()
        except OSError as error:
            raise OptionError(
                f"cannot write {self.path}: {error.strerror}; what it holds is not asked again"
            ) from error


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OptionError(f"another job writes {path}: wait for it, or name another log by --log") from None
    except OSError:  # a file system without locks
        return
