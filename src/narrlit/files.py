"""Atomic files, locked folders, and checks that outputs replace no inputs and no earlier results."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from narrlit.errors import OptionError, reason

LOCK = ".lock"
"""Name of the lock file in a folder that a run writes."""
PAGE_SUFFIXES = (".html", ".htm")
NOT_READ = (".html", ".htm", ".npy", ".svg", ".zip")
"""Suffixes of outputs that are never stories in a folder of stories."""


@dataclass(frozen=True)
class OutputOptions:
    """Options of files that are written.

    Attributes:
        overwrite: replace existing files, which are refused by default.
    """

    overwrite: bool = False


class Output:
    """Files that a command writes, as metadata of the parameter that names them: `out: Annotated[str, Output()]`.

    The command line refuses such a file if the command also reads it, or if it exists and `--overwrite` is missing.
    """

    def __init__(
        self,
        *names: str,
        written: Callable[[Mapping[str, Any]], Iterable[str | Path]] | None = None,
        suffixes: Sequence[str] = (),
        continued: bool = False,
        parameter: str | None = None,
    ) -> None:
        """Declare the files.

        Args:
            names: their paths, made of the option's {path}, its {stem} (the path without its suffix) and its {suffix};
                default: the path alone.
            written: function from all arguments of the command to their paths, if the option alone does not name them.
            suffixes: that the option's value may end in; none: any.
            continued: the command itself resumes or refuses files of an earlier run.
            parameter: name of the library's parameter, for its errors; None: that of the option.
        """
        self.names = names or ("{path}",)
        self.written = written
        self.suffixes = tuple(suffixes)
        self.continued = continued
        self.parameter = parameter

    @classmethod
    def folder(cls, *names: str) -> "Output":
        """Declare files in the folder that the option names."""
        return cls(*(f"{{path}}/{name}" for name in names))

    def files(self, path: str | None, arguments: Mapping[str, Any]) -> list[Path]:
        """List the files, from the option's value and all arguments of the command."""
        if self.written is not None:
            return [Path(file) for file in self.written(arguments)]
        if path is None:
            return []
        stem, suffix = os.path.splitext(path)  # noqa: PTH122  (Path has no stem with its folder)
        return [Path(name.format(path=path, stem=stem, suffix=suffix)) for name in self.names]


@contextmanager
def exclusive(folder: str | Path, option: str = "`out`", name: str = LOCK) -> Iterator[None]:
    """Lock a folder, which is created if needed, during the block: other runs that write it are refused.

    The operating system releases the lock when the process ends in any way; a remaining lock file is no lock.

    Args:
        folder: where the lock file is.
        option: that names the folder, for the message.
        name: of the lock file; processes that share a folder have one each.

    Raises:
        OptionError: if another run writes the folder, or this one can't.
    """
    folder = Path(folder)
    new = not folder.exists()
    lock = FileLock(folder / name)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise OptionError(
                f"{folder}: another run is writing this folder; wait until it ends, or name another folder ({option})"
            ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / name).unlink()  # first: nobody else's file
        lock.release()
        if new:
            with suppress(OSError):  # it holds what the block wrote
                folder.rmdir()


def check_writable(target: str | Path, *suffixes: str, folder: bool = False) -> None:
    """Check before long work that its result can be written; nothing is created.

    Args:
        target: the file to write.
        suffixes: of which its name must have one; none: any name will do.
        folder: the target is a folder, which must be new or empty.

    Raises:
        OptionError: for another suffix, or if something is in the target's place, or its parent can't be made or
            written to.
    """
    target = Path(target)
    check_suffix(target, suffixes)
    with _writing(target):
        _check_free(target, folder)
        nearest = next((parent for parent in target.parents if os.path.lexists(parent)), Path())
        with tempfile.TemporaryFile(dir=nearest):
            pass


def check_suffix(target: str | Path, suffixes: Sequence[str]) -> None:
    """Refuse a file whose name ends in none of the suffixes, if there are any.

    >>> check_suffix("map.png", [".html", ".htm"])
    Traceback (most recent call last):
    narrlit.errors.OptionError: map.png: name a file that ends in .html, .htm
    """
    if suffixes and Path(target).suffix not in suffixes:
        raise OptionError(f"{target}: name a file that ends in {', '.join(suffixes)}")


def check_free(files: Iterable[str | Path], overwrite: bool, note: str = "", kind: str = "file") -> None:
    """Refuse to replace existing files without `overwrite`.

    Args:
        files: files to be written.
        overwrite: existing files may be replaced.
        note: about those that exist, for the message.
        kind: file or folder, which the option names.

    Raises:
        OptionError: naming the first file that exists.
    """
    existing = next((path for path in files if os.path.lexists(path)), None)
    if existing is not None and not overwrite:
        raise OptionError(f"{existing} exists{note}: give `overwrite` to replace it, or name another {kind}")


def check_apart(written: Iterable[tuple[str, str | Path]], read: Iterable[str | Path]) -> None:
    """Refuse to write a file over one that is read, or two files into the same place.

    Links count as what they point to. An existing file inside a folder that is read counts as read.

    Args:
        written: files with the option that names each.
        read: files and folders that are read, and other words, which name no file.

    Raises:
        OptionError: naming the option.
    """
    read = list(read)
    taken = {identity for path in read for identity in _identities(path)}
    folders = {identity for path in read if os.path.isdir(path) for identity in _identities(path)}  # noqa: PTH112
    for option, path in written:
        identities = _identities(path)
        if taken & identities:
            raise OptionError(f"{option} {path}: this file is read, or written by another option; name another")
        inside = folders & _identities(Path(path).parent)
        if inside and Path(path).is_file() and Path(path).suffix.lower() not in NOT_READ:
            raise OptionError(f"{option} {path}: this file is read, with its folder; name another")
        taken |= identities


def made_with(record: str | Path, settings: str) -> bool:
    """Return True if the JSON record of an earlier run has this digest as `settings`."""
    try:
        content = json.loads(Path(record).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("settings") == settings


def check_continued(files: Sequence[str | Path], record: str | Path, settings: str, overwrite: bool) -> None:
    """Refuse to replace the files of an earlier run with other settings; one with the same is resumed.

    Args:
        files: files to be written.
        record: the JSON record among them, which has the digest of its run's settings as `settings`.
        settings: digest of this run's.
        overwrite: existing files may be replaced.

    Raises:
        OptionError: naming the first file that exists or can't be written.
    """
    for path in files:
        check_writable(path)
    if not made_with(record, settings):
        check_free(files, overwrite, ", made with other settings")


@contextmanager
def atomic_path(target: str | Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `target`; it takes target's name when the block ends without an error.

    The temporary name keeps target's suffix, for writers that choose their format by it. A private file can be read and
    written by its owner only.

    Raises:
        OptionError: if the folder can't be made or written to, or `target` is a folder.
    """
    target = Path(target)
    with _writing(target):
        _check_free(target, folder=False)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with _writing(target):
            temporary.chmod(0o600 if private else 0o666 & ~_umask())
            _sync(temporary)
            temporary.replace(target)
            _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def encodable(text: str) -> str:
    r"""Escape lone surrogates, which UTF-8 can't encode; file names that are not UTF-8 have them.

    >>> print(encodable("Caf\udce9"))
    Caf\udce9
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_text(target: str | Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all.

    Halves of surrogate pairs, as in the name of a file that is not UTF-8, are escaped, in JSON without loss.

    Raises:
        OptionError: as `atomic_path` does.
    """
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


@contextmanager
def atomic_folder(target: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside `target`; it takes target's name when the block ends without an error.

    Raises:
        OptionError: if `target` is there already and is not an empty folder, or its parent can't be written to.
    """
    target = Path(target)
    with _writing(target):
        _check_free(target, folder=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield temporary
        with _writing(target):
            temporary.chmod(0o777 & ~_umask())
            for folder, _, files in os.walk(temporary):
                for file in files:
                    _sync(Path(folder, file))
                _sync_folder(Path(folder))
            temporary.replace(target)
            _sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OptionError(f"cannot write {target}: {reason(error)}") from error


def _check_free(target: Path, folder: bool) -> None:
    if folder:
        if os.path.lexists(target) and (not target.is_dir() or any(path.name != LOCK for path in target.iterdir())):
            raise OptionError(f"{target} exists and is not empty: name a new folder or remove it")
    elif target.is_dir():
        raise OptionError(f"{target} is a folder: name a file")
    elif target.exists() and not target.is_file():
        raise OptionError(f"{target} is a device or pipe, which a finished file would replace: name a file")


def _identities(path: str | Path) -> set[Any]:
    """Return the resolved path and, where there is a file, its device and number, which hard links share."""
    identities: set[Any] = {os.path.realpath(path)}
    with suppress(OSError, ValueError):  # words that are no path
        status = os.stat(path)  # noqa: PTH116  (of words longer than Path accepts)
        identities.add((status.st_dev, status.st_ino))
    return identities


def _sync(file: Path) -> None:
    """Flush a file to the disk, so that a crash after the renaming leaves no empty file."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, where the operating system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
