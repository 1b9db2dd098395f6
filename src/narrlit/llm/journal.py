"""Append-only JSON Lines: what was written is there after a kill, and at most the line being written is lost."""

import errno
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader, FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from narrlit.errors import DataError, OptionError

OPENINGS = (b'{"prompt": "', b'{"step": "')
"""How the first line of a file of ours begins: a log, and the records of batches."""

SYNC_SECONDS = 1.0
"""Between two calls that bring the file to the disk: a power cut loses no line that is older than the last."""


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
        self._file: FileIO | None = None
        self._synced = float("-inf")

    def __enter__(self) -> "Journal":
        """Read the lines; half a line at the end, of a job that was killed, or NULs, of a power cut, are cut off.

        Raises:
            OptionError: if the file can't be opened, or another job has it open.
            DataError: if a line is none of such a file, naming file and line; the file stays as it is.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = FileIO(self.path, "a+")  # unbuffered: closing it has nothing left to write
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
        file, self._file = self._file, None
        if file is None:
            return
        try:
            _sync(file)
            file.close()
        except OSError as failed:
            with suppress(OSError):
                file.close()
            if kind is None:  # else what ends the job says more
                raise self._unwritten(failed) from failed

    def _read(self, file: FileIO) -> None:
        file.seek(0)
        reader = BufferedReader(file)
        end = 0
        for number, content in enumerate(reader, 1):
            if not content.endswith(b"\n"):
                tail = content.rstrip(b"\0")
                if end or any(tail.startswith(opening) or opening.startswith(tail) for opening in OPENINGS):
                    break
                raise self._foreign(number)
            try:
                self._take(json.loads(content))
            except (ValueError, KeyError, TypeError) as error:
                raise self._foreign(number) from error
            end += len(content)
        reader.detach()
        if end < file.seek(0, os.SEEK_END):
            file.truncate(end)

    def _foreign(self, number: int) -> DataError:
        return DataError(
            f"{self.path}:{number}: no line of such a log; name another file by --log, or delete this line"
        )

    def _unwritten(self, error: OSError) -> OptionError:
        return OptionError(f"cannot write {self.path}: {error.strerror}; what it holds is not asked again")

    def write(self, line: dict[str, Any]) -> None:
        """Append a line; when this returns, a kill of the process doesn't lose it.

        Raises:
            OptionError: if it can't be written.
        """
        if self._file is None:
            raise ValueError(f"{self.path} is not open")
        # An unpaired surrogate becomes its JSON escape.
        content = json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace")
        end = self._file.seek(0, os.SEEK_END)
        try:
            _write(self._file, content + b"\n")
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                _sync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            with suppress(OSError):  # half a line must not stand before others
                self._file.truncate(end)
            raise self._unwritten(error) from error


def _write(file: FileIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def _sync(file: FileIO) -> None:
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a device, or a file system that can't
            raise


def _lock(file: FileIO, path: Path) -> None:
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
