"""Files appear whole or not at all: written beside their place under a temporary name, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from narrlit.errors import OptionError, reason

LOCK = ".lock"
"""Name of the file in a folder that the run which writes the folder has locked."""


@contextmanager
def exclusive(folder: str | Path, option: str = "--out", name: str = LOCK) -> Iterator[None]:
    """Hold a folder, which is made if needed, for the block: other runs that write it are refused.

    The operating system gives the lock back when the process ends in any way; a lock file that is left means nothing.

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
    """Find out before long work whether its result can be written; nothing is made.

    Args:
        target: the file to write.
        suffixes: of which its name must have one; none: any name will do.
        folder: the target is a folder, which must not exist or be empty.

    Raises:
        OptionError: for another suffix, or if something is in the target's place, or its parent can't be made or
            written to.
    """
    target = Path(target)
    if suffixes and target.suffix not in suffixes:
        raise OptionError(f"--out {target}: name a file that ends in {', '.join(suffixes)}")
    with _writing(target):
        _check_free(target, folder)
        nearest = next((parent for parent in target.parents if os.path.lexists(parent)), Path())
        with tempfile.TemporaryFile(dir=nearest):
            pass


def check_apart(written: Mapping[str, str | Path | None], read: Iterable[str | Path | None]) -> None:
    """Refuse to write a file over one that is read, or two files into the same place.

    Args:
        written: files by the option that names them; None: not written.
        read: files that are read; None: not given.

    Raises:
        OptionError: naming the option.
    """
    taken = {os.path.realpath(path) for path in read if path is not None}
    for option, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise OptionError(f"{option} {path}: this file is read, or written by another option; name another")
        taken.add(place)


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
        temporary.chmod(0o600 if private else 0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


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
        temporary.chmod(0o777 & ~_umask())
        temporary.replace(target)
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


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
