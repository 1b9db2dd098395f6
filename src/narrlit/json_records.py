"""JSON records that narrlit writes next to its results, validated when they are read."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from narrlit.errors import DataError, NarrlitError, reading

Record = TypeVar("Record", bound=BaseModel)


def read_json(
    path: Path,
    model: type[Record],
    code: str,
    *,
    error: type[NarrlitError] = DataError,
    **values: object,
) -> Record:
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
