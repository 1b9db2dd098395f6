"""Files appear whole or not at all: written beside their place under a temporary name, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from narrlit.errors import OptionError, reason


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


def encodable(text: str) -> str:
    r"""Escape halves of surrogate pairs, which UTF-8 has no bytes for; names of files that are not UTF-8 have them.

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
        if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
            raise OptionError(f"{target} exists and is not empty: name a new folder or remove it")
    elif target.is_dir():
        raise OptionError(f"{target} is a folder: name a file")
    elif target.exists() and not target.is_file():
        raise OptionError(f"{target} is a device or pipe, which a finished file would replace: name a file")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
