"""Atomic writes, folder locks, and checks that outputs overwrite neither inputs nor earlier results."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from narrlit.errors import OptionError, reason

LOCK = ".lock"
"""Name of the lock file in the folder of a run."""
PAGE_SUFFIXES = (".html", ".htm")
FRAME_SUFFIXES = (".csv", ".tsv", ".xlsx", ".jsonl", ".parquet")
"""Suffixes of tables that are written."""
NOT_READ = (".html", ".htm", ".npy", ".svg", ".zip")
"""Suffixes of outputs that are never read as stories in a folder of stories."""


class Output:
    """Declaration of the files that a command writes, as metadata of a parameter: `out: Annotated[str, Output()]`.

    The command line refuses such a file if the command also reads it, or if it exists and `--overwrite` is not given.
    """

    def __init__(
        self,
        *names: str,
        written: Callable[[Mapping[str, Any]], Iterable[str | Path]] | None = None,
        suffixes: Sequence[str] = (),
        continued: bool = False,
        required: bool = False,
    ) -> None:
        """Declare the files that an option names.

        Args:
            names: templates of their paths, with {path} for the value of the option, {stem} for the path without
                suffix, and {suffix}; default: {path}.
            written: function from all arguments of the command to the paths, if they depend on other options as well.
            suffixes: allowed suffixes; empty: any.
            continued: the command itself resumes an earlier run, or refuses to overwrite its files.
            required: the option must be given; only for results that have nothing to print.
        """
        self.names = names or ("{path}",)
        self.written = written
        self.suffixes = tuple(suffixes)
        self.continued = continued
        self.required = required

    @classmethod
    def folder(cls, *names: str) -> "Output":
        """Declare files in the folder that the option names."""
        return cls(*(f"{{path}}/{name}" for name in names))

    @classmethod
    def result(cls, name: str) -> "Output":
        """Declare the files that a `Result` writes into the folder that the option names."""
        return cls.folder(*result_files(name))

    def files(self, path: str | None, arguments: Mapping[str, Any]) -> list[Path]:
        """List the files, from the option's value and all arguments of the command."""
        if self.written is not None:
            return [Path(file) for file in self.written(arguments)]
        if path is None:
            return []
        stem, suffix = os.path.splitext(path)  # noqa: PTH122  (Path has no stem with its folder)
        return [Path(name.format(path=path, stem=stem, suffix=suffix)) for name in self.names]


def result_files(name: str) -> list[str]:
    """List the files of a `Result`; not all of them are written: .svg needs matplotlib, answers.csv answers."""
    return [*(f"{name}.{suffix}" for suffix in ("json", "csv", "md", "tex", "svg")), "answers.csv"]


@contextmanager
def exclusive(folder: str | Path, option: str = "out", name: str = LOCK) -> Iterator[None]:
    """Lock a folder during the block, so that other runs can't write to it; the folder is created if needed.

    The operating system releases the lock when the process ends, for whatever reason; a leftover lock file is harmless.

    Args:
        folder: folder to lock.
        option: option that names the folder, for the error message.
        name: name of the lock file; processes that share a folder have one each.

    Raises:
        OptionError: if another run writes to the folder, or the folder is not writable.
    """
    folder = Path(folder)
    new = not folder.exists()
    lock = FileLock(folder / name)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise OptionError("folder_in_use", folder=folder, option=option) from None
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / name).unlink()  # before the release, after which it may be another run's
        lock.release()
        if new:
            with suppress(OSError):  # the block may have written to it
                folder.rmdir()


def check_writable(
    target: str | Path, *suffixes: str, folder: bool = False, replaces: str = "", overwrite: bool = False
) -> None:
    """Check before a long computation that its result can be written; nothing is created.

    Args:
        target: the file to write.
        *suffixes: allowed suffixes; empty: any.
        folder: True if the target is a folder, which must be new or empty.
        replaces: name of the file by which an earlier folder is recognized that `overwrite` may replace; empty: none.
        overwrite: an earlier folder may be replaced.

    Raises:
        OptionError: if the suffix is not allowed, the path is taken by a folder or a device, or the parent can't be
            created or written to.
    """
    target = Path(target)
    check_suffix(target, suffixes)
    with _writing(target):
        if not (overwrite and _is_earlier(target, replaces)):
            _check_free(target, folder, replaces)
        nearest = next((parent for parent in target.parents if os.path.lexists(parent)), Path())
        with tempfile.TemporaryFile(dir=nearest):
            pass


def check_suffix(target: str | Path, suffixes: Sequence[str]) -> None:
    """Refuse a file name without one of the allowed suffixes; an empty list allows any.

    >>> check_suffix("map.png", [".html", ".htm"])
    Traceback (most recent call last):
    narrlit.errors.OptionError: map.png: name a file that ends in .html, .htm
    """
    if suffixes and Path(target).suffix not in suffixes:
        raise OptionError("wrong_suffix", path=target, suffixes=suffixes)


def check_free(files: Iterable[str | Path], overwrite: bool, note: str = "", kind: str = "file") -> None:
    """Refuse to overwrite existing files unless `overwrite` is given.

    Args:
        files: files to be written.
        overwrite: existing files may be overwritten.
        note: remark about the existing file, for the error message.
        kind: what the option names: file or folder.

    Raises:
        OptionError: naming the first file that exists.
    """
    existing = next((path for path in files if os.path.lexists(path)), None)
    if existing is not None and not overwrite:
        raise OptionError("output_exists", path=existing, note=note, kind=kind)


def check_apart(written: Iterable[tuple[str, str | Path]], read: Iterable[str | Path]) -> None:
    """Refuse to write over a file that is also read, or to write two files to the same path.

    Links are resolved. An existing file inside a folder that is read counts as read.

    Args:
        written: files to write, each with the option that names it.
        read: files and folders that are read; words that name no file are ignored.

    Raises:
        OptionError: naming the option.
    """
    taken: set[object] = set()
    folders: set[object] = set()
    for path in read:
        identities = _identities(path)
        taken |= identities
        if os.path.isdir(path):  # noqa: PTH112
            folders |= identities
    for option, path in written:
        identities = _identities(path)
        if taken & identities:
            raise OptionError("output_is_input", option=option, path=path)
        inside = folders & _identities(Path(path).parent)
        if inside and Path(path).is_file() and Path(path).suffix.lower() not in NOT_READ:
            raise OptionError("output_in_input", option=option, path=path)
        taken |= identities


def made_with(record: str | Path, settings: str) -> bool:
    """Return True if the JSON record of an earlier run has the given digest of its settings."""
    try:
        content = json.loads(Path(record).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    kept = content.get("settings") if isinstance(content, dict) else None
    return settings == (kept.get("digest") if isinstance(kept, dict) else kept)


def check_continued(files: Sequence[str | Path], record: str | Path, settings: str, overwrite: bool) -> None:
    """Refuse to overwrite files of an earlier run with other settings; a run with the same settings is resumed.

    Args:
        files: files to be written.
        record: the JSON record among them, with the digest of the run's settings in the field `settings`, or as their
            `digest` in the record of a result.
        settings: digest of the settings of this run.
        overwrite: existing files may be overwritten.

    Raises:
        OptionError: naming the first file that exists or can't be written.
    """
    for path in files:
        check_writable(path)
    if not made_with(record, settings):
        check_free(files, overwrite, ", made with other settings")


@contextmanager
def atomic_path(target: str | Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path next to `target`, which is renamed to `target` if the block ends without an error.

    The temporary name has the suffix of `target`, for writers that choose their format by it. Only its owner can read
    and write a private file.

    Raises:
        OptionError: if the folder can't be created or written to, or `target` is a folder.
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
            sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def encodable(text: str) -> str:
    r"""Escape lone surrogates, which UTF-8 can't encode; file names that are not UTF-8 have them.

    >>> print(encodable("Caf\udce9"))
    Caf\udce9
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_text(target: str | Path, text: str) -> None:
    """Write a text file in UTF-8 atomically.

    Lone surrogates, as in file names that are not UTF-8, are escaped; in JSON this loses nothing.

    Raises:
        OptionError: as `atomic_path` does.
    """
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


@contextmanager
def atomic_folder(target: str | Path, *, replaces: str = "", overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary folder next to `target`, which is renamed to `target` if the block ends without an error.

    Args:
        target: the folder to write; must be new or empty.
        replaces: name of the file by which an earlier folder is recognized that `overwrite` may replace; empty: none.
        overwrite: an earlier folder may be replaced; it is removed after the new one is complete.

    Raises:
        OptionError: if `target` exists and is neither empty nor may be replaced, or its parent can't be written to.
    """
    target = Path(target)
    earlier = overwrite and _is_earlier(target, replaces)
    with _writing(target):
        if not earlier:
            _check_free(target, True, replaces)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield temporary
        with _writing(target):
            temporary.chmod(0o777 & ~_umask())
            for folder, _, files in os.walk(temporary):
                for file in files:
                    _sync(Path(folder, file))
                sync_folder(Path(folder))
            if earlier:
                with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as removed:
                    target.rename(Path(removed, target.name))
                    temporary.rename(target)
            else:
                temporary.replace(target)
            sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OptionError("cannot_write", path=target, reason=reason(error)) from error


def _is_earlier(target: Path, replaces: str) -> bool:
    """Return True for a folder with the file by which an earlier result of the same kind is recognized."""
    return bool(replaces) and not target.is_symlink() and (target / replaces).is_file()


def _check_free(target: Path, folder: bool, replaces: str = "") -> None:
    if folder:
        if _is_earlier(target, replaces):
            raise OptionError("output_exists", path=target, note="", kind="folder")
        if os.path.lexists(target) and (not target.is_dir() or any(path.name != LOCK for path in target.iterdir())):
            raise OptionError("output_not_empty", path=target)
    elif target.is_dir():
        raise OptionError("output_is_folder", path=target)
    elif target.exists() and not target.is_file():
        raise OptionError("output_is_device", path=target)


def _identities(path: str | Path) -> set[object]:
    """Return the resolved path and, for an existing file, its device and inode, which hard links share."""
    identities: set[object] = {os.path.realpath(path)}
    with suppress(OSError, ValueError):  # the word is not a path
        status = os.stat(path)  # noqa: PTH116  (words may be longer than Path accepts)
        identities.add((status.st_dev, status.st_ino))
    return identities


def _sync(file: Path) -> None:
    """Flush a file to the disk, so that a crash after the renaming leaves no empty file."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, if the operating system supports it."""
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
