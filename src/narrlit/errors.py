"""User errors: the command line prints them as one line, without a traceback, and exits with 2."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from narrlit.english import SENTENCES
from narrlit.sentences import SentenceFormatter

LONGEST_MESSAGE, LONGEST_WORD, LONGEST_VALUE = 300, 150, 1000
"""Maximum length in characters of a quoted library message, of a single word in it, such as a file name, and of a value
with characters that are not printable."""
UNSAFE_ADVICE = re.compile(r"weights_only|trust_remote_code|arbitrary code|trusted source", re.IGNORECASE)
"""Words with which torch and transformers advise running code from a file."""
_SYSTEM_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENAMETOOLONG)
_RUST_CODE = re.compile(r"\(os error (\d+)\)")
_LIBRARY_MESSAGES = {
    "database or disk is full": errno.ENOSPC,
    "attempt to write a readonly database": errno.EROFS,
    "unable to open database file": errno.EACCES,
    "can't allocate memory": errno.ENOMEM,
}
"""Messages with which SQLite and PyTorch report errors of the operating system."""
_REASONS: dict[type[Exception], str] = {
    RecursionError: "nested too deeply",
    MemoryError: "too large for the memory",
    EOFError: "ends too early",
}
"""Reasons for exceptions whose own messages do not help."""
WriteOption = Callable[[str, str], str]
"""Function that writes an option, given its name and its value, which may be empty."""


def as_parameter(name: str, value: str) -> str:
    """Write an option as a parameter of the library.

    >>> as_parameter("k", "0"), as_parameter("overwrite", "")
    ('`k=0`', '`overwrite`')
    """
    return f"`{name}={value}`" if value else f"`{name}`"


class NarrlitError(Exception):
    """Base class of errors that the user can correct.

    Its sentence, which names place, problem and remedy, is in `narrlit.english`.

    Args:
        code: code of the error, a key of `narrlit.english.SENTENCES`.
        values: values that the sentence names, such as `path`, `line` or `column`.

    Attributes:
        code: short name of what is wrong.
        values: values by name.
        write_option: function that writes the options in the sentence; the command line replaces it.

    >>> error = OptionError("at_least", option="k", found=0, least=1)
    >>> print(error)
    `k=0`: must be at least 1
    >>> error.code, error.options
    ('at_least', ['k'])
    """

    write_option: WriteOption = staticmethod(as_parameter)

    def __init__(self, code: str, /, **values: Any) -> None:
        super().__init__(code)
        self.code, self.values = code, values

    def __str__(self) -> str:
        return sentence(self.code, self.values, self.write_option)

    @property
    def options(self) -> Sequence[str]:
        """Names of the options in the sentence."""
        names = []

        def note(name: str, value: str) -> str:
            names.append(name)
            return ""

        sentence(self.code, self.values, note)
        return names


class DataError(NarrlitError):
    """Missing, damaged or inconsistent data file; its values name the file and the line or field."""


class OptionError(NarrlitError):
    """Invalid parameter; its values name it."""


class ModelError(NarrlitError):
    """Model that can't be found, loaded or used in this way."""


class MissingExtraError(NarrlitError):
    """Missing optional package; the sentence gives the pip command."""


def sentence(code: str, values: Mapping[str, Any], write_option: WriteOption = as_parameter) -> str:
    """Fill values into the sentence of a code.

    Args:
        code: key of `SENTENCES`.
        values: values that the sentence names; an error is replaced by its sentence.
        write_option: function that writes an option.
    """
    return _ErrorWords(write_option).format(SENTENCES[code], **values)


class _Option(str):
    """Name of an option in a sentence."""


class _ErrorWords(SentenceFormatter):
    """Formatter of the sentences of errors.

    Options are `{--name:value}`, and, where values name them, `{option!o:{value}}`, `{options!o}` for a list of names,
    and `{settings!o}` for a mapping of values by name.
    """

    def __init__(self, write_option: WriteOption) -> None:
        self.write_option = write_option

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if field_name.startswith("--"):
            return _Option(field_name[2:]), field_name
        return super().get_field(field_name, args, kwargs)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion != "o":
            return super().convert_field(value, conversion)
        if isinstance(value, Mapping):
            return " ".join(self.write_option(name, str(set_to)) for name, set_to in value.items())
        if isinstance(value, list):
            return ", ".join(self.write_option(name, "") for name in value)
        return _Option(value)

    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, _Option):
            return self.write_option(value, format_spec)
        if isinstance(value, NarrlitError):
            return sentence(value.code, value.values, self.write_option)
        text = super().format_field(value, format_spec)
        return text if text.isprintable() else printable(text, limit=LONGEST_VALUE)


@contextmanager
def reading(code: str, path: str | Path, *, error: type[NarrlitError] = DataError, **values: object) -> Iterator[None]:
    """Convert exceptions of the block, which reads `path`, to an error.

    Args:
        code: code of the error; its sentence names `path` and `reason`.
        path: what is read.
        error: class of the error.
        values: other values that the sentence names.

    Raises:
        NarrlitError: of class `error`; a NarrlitError raised in the block passes unchanged.

    >>> with reading("unreadable_config", "a.yaml"):
    ...     int("x")
    Traceback (most recent call last):
    narrlit.errors.DataError: a.yaml: invalid literal for int() with base 10: 'x'
    """
    try:
        yield
    except NarrlitError:
        raise
    except Exception as cause:
        mistake = mistake_behind(cause)
        if mistake is not None:
            raise mistake from cause
        raise error(code, path=str(path), reason=reason(cause), **values) from cause


def system_error(error: BaseException) -> str | None:
    """Describe an error of the operating system, even if a library reports it in its own words; None for other errors.

    >>> system_error(PermissionError(13, "Permission denied", "a.csv"))
    'a.csv: permission denied'
    >>> system_error(RuntimeError("LanceError(IO): No space left on device (os error 28)"))
    'reading or writing: no space left on device'
    >>> system_error(RuntimeError("IO_ENOSPC"))
    'reading or writing: no space left on device'
    >>> system_error(ValueError("k must be positive"))
    """
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, UnicodeEncodeError):
        return reason(error)
    if isinstance(error, OSError):
        names = [printable(name) for name in (error.filename, error.filename2) if name is not None]
        return f"{' and '.join(names) or 'reading or writing'}: {reason(error)}"
    code = _system_code(error)
    if code is None:
        return None
    return "not enough memory" if code == errno.ENOMEM else f"reading or writing: {_words(os.strerror(code))}"


def _system_code(error: BaseException) -> int | None:
    """Find the error code of the operating system in a library's message, or in the exception that caused it."""
    context = error.__context__  # torch.save raises its own error after a failed write
    if isinstance(context, OSError) and context.errno in _SYSTEM_CODES:
        return context.errno
    message = str(error)
    rust = _RUST_CODE.search(message)
    if rust:
        return int(rust[1])
    descriptions = {os.strerror(code): code for code in _SYSTEM_CODES}
    names = {f"IO_{errno.errorcode[code]}": code for code in _SYSTEM_CODES}  # libxml2, used for Excel files
    known = _LIBRARY_MESSAGES | descriptions | names
    for words, code in known.items():
        if words.lower() in message.lower():
            return code
    return None


def _words(text: str) -> str:
    """Write a sentence so that it can follow a colon."""
    return text[:1].lower() + text[1:]


def reason(error: BaseException) -> str:
    """Describe the exception of a library in a few words.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.json")), reason(KeyError("model"))
    ('no such file or directory', "'model' is missing")
    """
    if isinstance(error, OSError) and error.strerror:
        return _words(error.strerror)
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start})"
    if isinstance(error, UnicodeEncodeError):
        near = error.object[max(0, error.start - 20) : error.end + 20].encode("ascii", "backslashreplace").decode()
        return f"a name or text that is not Unicode, {printable(near)}: rename the file, or correct the text"
    if isinstance(error, KeyError) and error.args:
        return f"{printable(repr(error.args[0]))} is missing"
    for kind, words in _REASONS.items():
        if isinstance(error, kind):
            return words
    text = printable(_without_unsafe_advice(str(error))) or type(error).__name__
    is_unexpected = isinstance(error, TypeError | AttributeError | IndexError | AssertionError)
    return f"unexpected content ({text})" if is_unexpected else text


def _without_unsafe_advice(message: str) -> str:
    """Remove sentences in which a library advises running code that comes with a file.

    >>> _without_unsafe_advice("Load failed. Re-run with `weights_only` set to `False`. Unsupported class os.system.")
    'Load failed. Unsupported class os.system.'
    """
    sentences = re.split(r"(?<=[.:!?])\s+", message[:100_000])
    return " ".join(text for text in sentences if not UNSAFE_ADVICE.search(text))


def printable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    r"""Format a text as one line, without control characters or terminal escapes, cut to `limit` characters.

    >>> printable("a\n b\x1b[31mc"), printable("abcdef", limit=4)
    ('a b [31mc', 'abc…')
    """
    beginning = str(text)[:100_000]
    longest = LONGEST_WORD if limit <= LONGEST_MESSAGE else limit  # a text without spaces is kept whole
    beginning = beginning.encode("utf-8", "backslashreplace").decode()  # lone surrogates, as in some file names
    characters = [character if character.isprintable() else " " for character in beginning]
    words = [_shorten(word, longest) for word in "".join(characters).split()]
    return _shorten(" ".join(words), limit)


def _shorten(text: str, limit: int) -> str:
    """Cut a text to `limit` characters; the last one shows that it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def mistake_behind(error: BaseException | None) -> NarrlitError | None:
    """Find a NarrlitError that a library has wrapped in another exception; None if there is none."""
    seen: set[int] = set()
    while error is not None and not isinstance(error, NarrlitError) and id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return error if isinstance(error, NarrlitError) else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Find the known name nearest to a mistyped one; empty if none is close.

    >>> nearest("trian", ["train", "test"]), nearest("x", ["train"])
    ('train', '')
    """
    return next(iter(get_close_matches(name, list(known), n=1)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to a mistyped one; empty if none is close.

    >>> did_you_mean("trian", ["train", "test"]), did_you_mean("x", ["train"])
    (' (did you mean train?)', '')
    """
    return SentenceFormatter().format("{near:?}", near=nearest(name, known))


@contextmanager
def on_interrupt(kept: str) -> Iterator[None]:
    """Add a message about saved results to a KeyboardInterrupt in the block; the command line prints it."""
    try:
        yield
    except KeyboardInterrupt as error:
        if error.args:
            raise
        raise KeyboardInterrupt(kept) from error
