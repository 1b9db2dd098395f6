"""The fields of run.json that commands read, and their types."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from narrlit.json_records import first_problem


class _Part(BaseModel):
    """Part of a record; fields that are not listed are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Evaluation(_Part):
    n: int
    correct: int
    accuracy: float | None
    interval: list[float] | None = Field(min_length=2, max_length=2)
    epoch: int | None = None
    step: int | None = None


class _File(_Part):
    path: str
    sha256: str
    rows: int | None = None


class _Data(_Part):
    files: list[_File] = []
    pseudonyms: dict[str, Any] | None = None


class _Encoder(_Part):
    model: str


class _Model(_Part):
    encoder: _Encoder | None = None


class _Record(_Part):
    status: str | None = None
    checkpoints: dict[str, str] = {}
    model: _Model | None = None
    data: dict[str, _Data] | None = None
    flags: dict[str, Any] | None = None
    command: dict[str, Any] | None = None
    best: _Evaluation | None = None
    untrained: _Evaluation | None = None
    frozen: _Evaluation | None = None
    validations: list[_Evaluation] = []
    num_evaluations: int | None = None


def check_record(content: Any) -> dict[str, Any]:
    """Return a record unchanged after a check of its fields.

    Raises:
        ValueError: naming the first field that is missing or of another type.

    >>> check_record({"status": "finished", "checkpoints": {"best": 3}})
    Traceback (most recent call last):
    ValueError: checkpoints.best: input should be a valid string
    """
    try:
        _Record.model_validate(content)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    return dict(content)
