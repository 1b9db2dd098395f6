"""Records that narrlit keeps as JSON beside its results, read with a check of their fields."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from narrlit.errors import DataError, NarrlitError, reading

Record = TypeVar("Record", bound=BaseModel)


def read_json(path: Path, model: type[Record], what: str, remedy: str, error: type[NarrlitError] = DataError) -> Record:
    """Read a record of a JSON file.

    Args:
        path: the file.
        model: fields of the record.
        what: the record's name for messages.
        remedy: what to do about a damaged one.
        error: class of what is raised.

    Raises:
        NarrlitError: of class `error`, if the file can't be read or a field is missing or wrong.
    """
    with reading(what, path, remedy, error):
        content = json.loads(path.read_text(encoding="utf-8"))
        try:
            return model.model_validate(content)
        except ValidationError as invalid:
            raise ValueError(first_problem(invalid)) from invalid


def json_digest(content: object) -> str:
    """Compute the SHA-256, in hex, of plain data.

    >>> json_digest({"k": 1, "long": None}) == json_digest({"long": None, "k": 1})
    True
    """
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def first_problem(error: ValidationError) -> str:
    """Name the first field that is missing or wrong, and what is wrong with it."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"])) or "content"
    return f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}"
