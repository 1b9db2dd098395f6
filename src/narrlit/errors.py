"""Errors that a user can mend: the command line prints them as one line and exits with 2, without a traceback."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_MESSAGE, LONGEST_WORD = 300, 150
"""Characters of a library's message, and of a file name or another word in it, that are repeated."""
UNSAFE_ADVICE = re.compile(r"weights_only|trust_remote_code|arbitrary code|trusted source", re.IGNORECASE)
"""Words of torch's and transformers' advice to run what is in a file."""


class NarrlitError(Exception):
    """A mistake outside the program; its message names where it is, what is wrong and what to do."""


class DataError(NarrlitError):
    """A data file is missing, broken or does not fit; the message names file and line or field."""


class OptionError(NarrlitError):
    """An option or argument is wrong; the message names it."""


class ModelError(NarrlitError):
    """A model can't be found, loaded or used in this way."""


class MissingExtraError(NarrlitError):
    """An optional package is absent; the message gives the pip command."""


@contextmanager
def reading(what: str, path: str | Path, remedy: str = "", error: type[NarrlitError] = DataError) -> Iterator[None]:
    """Turn any exception of the block, which reads `path`, into one line: what was read, what is wrong, what to do.

    Raises:
        NarrlitError: of class `error`; one that is raised inside passes unchanged.

    >>> with reading("config", "a.yaml", "mend the file"):
    ...     int("x")
    Traceback (most recent call last):
    narrlit.errors.DataError: config a.yaml: invalid literal for int() with base 10: 'x'; mend the file
    """
    try:
        yield
    except NarrlitError:
        raise
    except Exception as cause:
        mistake = mistake_behind(cause)
        if mistake is not None:
            raise mistake from cause
        advice = f"; {remedy}" if remedy else ""
        raise error(f"{what} {printable(path)}: {reason(cause)}{advice}") from cause


def reason(error: BaseException) -> str:
    """Describe a library's exception in a few words.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.json")), reason(KeyError("model"))
    ('no such file or directory', "'model' is missing")
    """
    text = printable(_without_unsafe_advice(str(error)))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start})"
    if isinstance(error, KeyError) and error.args:
        return f"{printable(repr(error.args[0]))} is missing"
    for kind, words in (
        (RecursionError, "nested too deeply"),
        (MemoryError, "too large for the memory"),
        (EOFError, "ends too early"),
    ):
        if isinstance(error, kind):
            return words
    unexpected = isinstance(error, TypeError | AttributeError | IndexError | AssertionError)
    return f"unexpected content ({text or type(error).__name__})" if unexpected else text or type(error).__name__


def _without_unsafe_advice(message: str) -> str:
    """Leave out the sentences in which a library advises to run code that comes with a file.

    >>> _without_unsafe_advice("Load failed. Re-run with `weights_only` set to `False`. Unsupported class os.system.")
    'Load failed. Unsupported class os.system.'
    """
    sentences = re.split(r"(?<=[.:!?])\s+", message[:100_000])
    return " ".join(text for text in sentences if not UNSAFE_ADVICE.search(text))


def printable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    r"""Put a text on one line, without control characters or terminal escapes, cut to `limit` characters.

    >>> printable("a\n b\x1b[31mc"), printable("abcdef", limit=4)
    ('a b [31mc', 'abc…')
    """
    beginning = str(text)[:100_000]
    longest = LONGEST_WORD if limit <= LONGEST_MESSAGE else limit  # of a text without spaces nothing is lost
    words = "".join(c if c.isprintable() else " " for c in beginning).split()
    line = " ".join(word if len(word) <= longest else f"{word[: longest - 1]}…" for word in words)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def mistake_behind(error: BaseException | None) -> NarrlitError | None:
    """Find the user's mistake that a library has wrapped in an exception of its own; None where there is none."""
    seen: set[int] = set()
    while error is not None and not isinstance(error, NarrlitError) and id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return error if isinstance(error, NarrlitError) else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is nearest to a mistyped one; empty where none is near.

    >>> did_you_mean("trian", ["train", "test"]), did_you_mean("x", ["train"])
    (' (did you mean train?)', '')
    """
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


@contextmanager
def on_interrupt(kept: str) -> Iterator[None]:
    """Give a KeyboardInterrupt inside the block a message, for the command line to print: what is kept of the work."""
    try:
        yield
    except KeyboardInterrupt as error:
        if error.args:
            raise
        raise KeyboardInterrupt(kept) from error
