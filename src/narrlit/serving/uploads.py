"""Uploads: files of a multipart request, written to disk while they arrive."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from narrlit.data.row_file import JSON_SUFFIXES, STORY_SUFFIXES, TABLE_SUFFIXES
from narrlit.data.sources import ARCHIVE_SUFFIX, is_hidden
from narrlit.serving.import_models import FileRecord
from narrlit.serving.problems import RefusedError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

UPLOAD_SUFFIXES = (*STORY_SUFFIXES, *TABLE_SUFFIXES, *JSON_SUFFIXES, ARCHIVE_SUFFIX)
"""Suffixes of files that are read."""
LONGEST_NAME = 300
BLOCK = 2**20
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def clean_name(name: str) -> str:
    r"""Return the name of a file with its folders, without steps upwards and control characters.

    >>> clean_name("tales/../../etc/passwd"), clean_name("C:\\tales\\a.txt")
    ('tales/etc/passwd', 'tales/a.txt')
    """
    text = _CONTROL.sub("", name.encode("utf-8", "replace").decode()).replace("\\", "/")
    parts = []
    for part in map(str.strip, text.split("/")):
        is_drive = re.fullmatch("[A-Za-z]:", part)
        if part.strip(". ") and not is_drive:
            parts.append(part)
    return "/".join(parts)[-LONGEST_NAME:]


def stored_name(number: int, name: str) -> str | None:
    """Return the name of a file's copy: its number and suffix; None if files with this suffix are not read."""
    suffix = PurePosixPath(name).suffix.lower()
    return f"{number:05d}{suffix}" if suffix in UPLOAD_SUFFIXES else None


@dataclass
class Upload:
    """Files of a request, as they arrive.

    Attributes:
        folder: folder of their copies.
        most_files: number of files that are accepted.
        files: files that have arrived.
    """

    folder: Path
    most_files: int
    files: list[FileRecord] = field(default_factory=list)
    _header: bytearray = field(default_factory=bytearray)
    _value: bytearray = field(default_factory=bytearray)
    _file_name: str | None = None
    _opened: BinaryIO | None = None

    async def receive(self, content_type: str, chunks: AsyncIterator[bytes]) -> list[FileRecord]:
        """Write the files of a multipart body.

        Raises:
            RefusedError: if the body is no multipart form, or has no file or too many.
        """
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise RefusedError(400, "files: send a form (multipart/form-data) with fields `files`", "files")
        parser = MultipartParser(options[b"boundary"], self._callbacks())
        try:
            async for block in _blocks(chunks):
                await run_in_threadpool(parser.write, block)
            parser.finalize()
        except MultipartParseError as error:
            message = f"files: the form is broken ({error}); send it again"
            raise RefusedError(400, message, "files", code="broken_form") from error
        finally:
            self._close()
        if not self.files:
            message = "files: the form has no file; add one or more as field `files`"
            raise RefusedError(400, message, "files", code="no_file")
        return self.files

    def _callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_file,
            "on_part_data": self._data,
            "on_part_end": self._close,
        }

    def _begin_part(self) -> None:
        self._file_name = None

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(bytes(self._value))
            if options.get(b"filename"):
                self._file_name = clean_name(options[b"filename"].decode("utf-8", "replace"))
        self._header.clear()
        self._value.clear()

    def _begin_file(self) -> None:
        """Open the copy of a file; fields that are no files are not read."""
        if not self._file_name or is_hidden(self._file_name):
            return
        if len(self.files) >= self.most_files:
            message = f"files: more than {self.most_files:,} files: send fewer at once"
            raise RefusedError(413, message, "files", code="too_many_files", values={"limit": self.most_files})
        number = len(self.files) + 1
        stored = stored_name(number, self._file_name)
        self.files.append(FileRecord(number=number, name=self._file_name, stored=stored))
        if stored is not None:
            self._opened = (self.folder / stored).open("wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._opened is not None:
            self._opened.write(data[start:end])

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


async def _blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join chunks to blocks of about a megabyte."""
    block = bytearray()
    async for chunk in chunks:
        block += chunk
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)
