"""Errors of the library, by code and values."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Formatter

import pytest

from narrlit.english import SENTENCES
from narrlit.errors import NarrlitError


@contextmanager
def refused(code: str, **values: object) -> Iterator[pytest.ExceptionInfo[NarrlitError]]:
    """Expect an error with this code and, among others, these values; a path may be given by its name alone."""
    with pytest.raises(NarrlitError) as caught:
        yield caught
    assert_refusal(caught.value, code, **values)


def assert_refusal(error: NarrlitError, code: str, **values: object) -> None:
    """Check the code of an error and some of its values; its sentence names all values that it needs."""
    assert code in SENTENCES
    assert error.code == code, error
    for name, value in values.items():
        actual = error.values[name]
        alternatives = (str(actual), Path(str(actual)).name, str(list(actual)) if isinstance(actual, tuple) else "")
        assert actual == value or str(value) in alternatives, (name, actual)
    assert str(error)


def names_in(sentence: str) -> set[str]:
    """Names of the values in a sentence, without options that it names itself."""
    names = set()
    for _, name, format, _ in Formatter().parse(sentence):
        if name and not name.startswith("--"):
            names.add(name)
        names |= names_in(format or "")
    return names
