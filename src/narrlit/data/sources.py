"""Files of a folder or of a zip archive, in depth, with their names relative to it."""

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from narrlit.errors import DataError, reading

ARCHIVE_SUFFIX = ".zip"
NAME_ENCODINGS = ("cp932", "gbk", "cp866", "cp437")
"""Encodings of names in archives without the flag of UTF-8: Japanese, Chinese, Russian and Western systems."""
_LEFT_OUT = re.compile(r"(^|/)(\.|~\$|__MACOSX/|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
_UNICODE_PATH = 0x7075
_IS_UTF8, _IS_ENCRYPTED = 0x800, 0x1


@dataclass(frozen=True)
class SourceFile:
    """File of a folder or archive.

    Attributes:
        name: path relative to the folder or archive, with `/`.
        path: path for messages.
        read: function that returns the content.

    Raises:
        DataError: by `read`, if the file can't be read.
    """

    name: str
    path: Path
    read: Callable[[], bytes]

    @property
    def suffix(self) -> str:
        """Suffix in lower case."""
        return PurePosixPath(self.name).suffix.lower()


def is_hidden(name: str) -> bool:
    """Return True for hidden files and what systems and programs leave in folders.

    >>> is_hidden("tales/.DS_Store"), is_hidden("__MACOSX/a.txt"), is_hidden("tales/a.txt")
    (True, True, False)
    """
    return bool(_LEFT_OUT.search(name))


def is_source(path: Path) -> bool:
    """Return True for a folder or an archive."""
    return path.is_dir() or path.suffix.lower() == ARCHIVE_SUFFIX


def source_files(path: Path) -> list[SourceFile]:
    """List the files of a folder or archive and of all folders in it by name, without hidden ones.

    Raises:
        DataError: if the folder or archive can't be read.
    """
    files = _folder_files(path) if path.is_dir() else _archive_files(path)
    return sorted(files, key=lambda file: file.name)


def _folder_files(folder: Path) -> list[SourceFile]:
    names = []
    with reading("unreadable_folder", folder):
        next(os.scandir(folder), None)  # os.walk is silent on a folder that can't be read
        for parent, _, files in os.walk(folder):
            names += [Path(parent, name).relative_to(folder).as_posix() for name in files]
    sources = []
    for name in names:
        if not is_hidden(name) and (folder / name).is_file():
            sources.append(SourceFile(name, folder / name, lambda path=folder / name: _content(path)))  # type: ignore[misc]
    return sources


def _content(path: Path) -> bytes:
    with reading("unreadable_file", path):
        return path.read_bytes()


def _archive_files(path: Path) -> list[SourceFile]:
    with reading("broken_archive", path):
        archive = zipfile.ZipFile(io.BytesIO(path.read_bytes()))

    def content(part: zipfile.ZipInfo, name: str) -> bytes:
        if part.flag_bits & _IS_ENCRYPTED:
            raise DataError("encrypted", path=path / name)
        with reading("broken_archive", path):
            return archive.read(part)

    sources = []
    parts = [part for part in archive.infolist() if not part.is_dir()]
    for part, name in zip(parts, archive_names(parts), strict=True):
        if not is_hidden(name):
            sources.append(SourceFile(name, path / name, lambda part=part, name=name: content(part, name)))  # type: ignore[misc]
    return sources


# Names in archives ---------------------------------------------------------------------------------------------------


def archive_names(parts: Iterable[zipfile.ZipInfo]) -> list[str]:
    """Return the names of an archive's files, in the encoding in which they make the most sense.

    The flag of UTF-8 and the field with a name in Unicode decide; without them, names are UTF-8 if they are valid, and
    else in one of `NAME_ENCODINGS`, the same one for all.
    """
    parts = list(parts)
    raw = [b"" if part.flag_bits & _IS_UTF8 else part.orig_filename.encode("cp437") for part in parts]
    encoding = _best_encoding([name for name in raw if not name.isascii()])
    names = []
    for part, content in zip(parts, raw, strict=True):
        name = _unicode_path(part.extra) or (content.decode(encoding, "replace") if content else part.filename)
        names.append(name.replace("\\", "/"))
    return names


def _unicode_path(extra: bytes) -> str | None:
    """Return the name in an archive's extra field of Info-ZIP; None if there is none."""
    while len(extra) >= 4:
        kind, size = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        if kind == _UNICODE_PATH and size > 5:
            return extra[9 : 4 + size].decode("utf-8", "replace")
        extra = extra[4 + size :]
    return None


def _best_encoding(names: list[bytes]) -> str:
    try:
        b"".join(names).decode("utf-8")
    except UnicodeDecodeError:
        return max(NAME_ENCODINGS, key=lambda encoding: _plausibility(names, encoding))
    return "utf-8"


def _plausibility(names: list[bytes], encoding: str) -> float:
    """Score how much sense names make in an encoding: the share of usual letters that stand beside their like."""
    usual = all_characters = 0
    for name in names:
        try:
            text = name.decode(encoding)
        except UnicodeDecodeError:
            return -1.0
        for match in re.finditer(r"[^\W\d_]+|[^\w\s]", text):
            foreign = [character for character in match[0] if not character.isascii()]
            is_mixed = len(foreign) < len(match[0]) and encoding != "cp437"
            all_characters += len(foreign)
            if not is_mixed:
                usual += sum(_is_usual(character, encoding, match[0]) for character in foreign)
    return usual / max(all_characters, 1)


def _is_usual(character: str, encoding: str, word: str) -> bool:
    """Return True for a letter that is frequent in names of an encoding."""
    if encoding == "cp437":  # an accented letter in a word of Latin letters; box drawings are none
        return character.isalpha() and character < "\u0250" and 2 * sum(map(str.isascii, word)) >= len(word)
    if encoding == "cp866":
        return "\u0400" <= character <= "\u04ff"
    if encoding == "cp932" and "\u3041" <= character <= "\u30ff":
        return True
    first_byte = character.encode(encoding)[0]
    # The first level of each standard has the frequent characters.
    return 0x88 <= first_byte <= 0x98 if encoding == "cp932" else 0xB0 <= first_byte <= 0xD7
