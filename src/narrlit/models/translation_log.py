"""Finished translations in an append-only file: what a killed job has made stays, and is not made again."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from narrlit.errors import DataError, OptionError


class Translation(NamedTuple):
    """What a model made of a text."""

    text: str
    ended: bool
    """Whether the model came to an end, and was not stopped in what most often is a loop."""


class TranslationLog:
    """Translations by key, in a JSON Lines file that only ever grows.

    A line that a power cut has left broken is skipped, and what it told is made anew.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there.

        Raises:
            DataError: if the file holds lines, and none of a log.
            OptionError: if it can't be read or written.
        """
        self.path = path
        self.broken = 0
        self._found: dict[str, Translation] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: a batch is one write at the end of the file, so that it is there when the process dies.
            self._file = path.open("a+b", buffering=0)
            self._file.seek(0)
            lines = self._file.read().split(b"\n")
        except OSError as error:
            raise OptionError(f"cannot write {path}: {error.strerror}") from error
        for line in filter(None, lines):
            self._read(line)
        if self.broken and not self._found:
            raise DataError(f"{path} is no log of translations: move it away, or name another --out")
        if lines[-1]:
            self._file.write(b"\n")

    def _read(self, line: bytes) -> None:
        try:
            row = json.loads(line)
            key, text, ended = row["key"], row["translation"], row["ended"]
        except (ValueError, TypeError, KeyError):
            key = text = ended = None
        if isinstance(key, str) and isinstance(text, str) and isinstance(ended, bool):
            self._found[key] = Translation(text, ended)
        else:
            self.broken += 1

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __getitem__(self, key: str) -> Translation:
        return self._found[key]

    def __len__(self) -> int:
        return len(self._found)

    def add(self, made: Iterable[tuple[str, Translation, Mapping[str, object]]]) -> None:
        """Keep translations.

        Args:
            made: of each its key, itself, and what a reader of the file wants to know: model, languages, text.

        Raises:
            OptionError: if the file can't be written any more.
        """
        made = list(made)
        rows = ({"key": key, **told, "translation": found.text, "ended": found.ended} for key, found, told in made)
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        try:
            self._file.write(content.encode("utf-8"))
        except OSError as error:
            raise OptionError(f"cannot write {self.path}: {error.strerror}; what it holds is kept") from error
        self._found.update((key, found) for key, found, _ in made)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
