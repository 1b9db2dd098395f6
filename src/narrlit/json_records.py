"""JSON records that narrlit writes next to its results, validated when they are read."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from narrlit.errors import DataError, NarrlitError, printable, reading

R = TypeVar("R", bound=BaseModel)
LONGEST_SETTING = 80
"""Maximum length in characters of a setting in a message; lists of files are longer."""


def read_json(
    path: Path,
    model: type[R],
    code: str,
    *,
    error: type[NarrlitError] = DataError,
    **values: object,
) -> R:
    """Read and validate a record from a JSON file.

    Args:
        path: the file.
        model: pydantic model of the record.
        code: code of the error; its sentence names `path` and `reason`.
        error: class of the exception to raise.
        values: other values that the sentence names.

    Raises:
        NarrlitError: of class `error`, if the file can't be read or a field is missing or wrong.
    """
    with reading(code, path, error=error, **values):
        content = json.loads(path.read_text(encoding="utf-8"))
        try:
            return model.model_validate(content)
        except ValidationError as invalid:
            raise ValueError(first_problem(invalid)) from invalid


def changed_settings(before: object, after: object, name: str = "") -> list[str]:
    """List the settings in which an earlier job differs from this one; empty if a folder of the one is of the other.

    >>> changed_settings({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}})
    ['b.c: 2 -> 3']
    """
    if before == after:
        return []
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return [f"{name}: {printable(before, LONGEST_SETTING)} -> {printable(after, LONGEST_SETTING)}"]
    changes: list[str] = []
    for key in {**before, **after}:
        inner = f"{name}.{key}" if name else str(key)
        changes += changed_settings(before.get(key), after.get(key), inner)
    return changes


def json_digest(content: object) -> str:
    """Compute the SHA-256 of plain data as a hexadecimal string.

    >>> json_digest({"k": 1, "long": None}) == json_digest({"long": None, "k": 1})
    True
    """
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def first_problem(error: ValidationError) -> str:
    """Describe the first field that is missing or invalid."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"])) or "content"
    return f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}"
