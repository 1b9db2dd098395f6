"""What other programs answer as vectors: as many as texts, in their order, of one dimension and finite, or refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrlit.errors import ModelError
from narrlit.models.embedding import Vectors


def in_order(answer: object, count: int, who: str) -> list[Any]:
    """The embeddings of an answer to `POST /embeddings` in the order of its `index` fields.

    Servers may answer out of order: https://platform.openai.com/docs/api-reference/embeddings/object.

    Args:
        answer: the answer's JSON.
        count: how many texts were sent.
        who: the server, for messages.

    Raises:
        ModelError: if it is no such answer, or there isn't one embedding for each text.
    """
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        raise ModelError(f"{who} answered without a list of embeddings: does its URL lead to an OpenAI interface?")
    _check_count(len(data), count, who)
    by_index = {entry["index"]: entry.get("embedding") for entry in data if type(entry.get("index")) is int}
    if set(by_index) != set(range(count)):
        raise ModelError(
            f"{who} answered vectors whose index fields are not 0 to {count - 1}, each once: which text they belong to "
            "can't be told; use another release of the server"
        )
    return [by_index[place] for place in range(count)]


def check_vectors(vectors: Sequence[Any], count: int, who: str, first: int = 0) -> Vectors:
    """Vectors (count, D) as an array, when they can be the vectors of `count` texts.

    Args:
        vectors: lists of D numbers, in the texts' order.
        count: how many texts there are, at least 1.
        who: where they come from, for messages.
        first: the first text's number, for messages.

    Raises:
        ModelError: if their number is another one, their dimensions differ, or a number is not finite.
    """
    _check_count(len(vectors), count, who)
    rows = [_row(vector, first + place, who) for place, vector in enumerate(vectors)]
    for place, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ModelError(
                f"{who} answered vectors of {len(rows[0])} and of {len(row)} numbers (vector {first + place}): several "
                "models answer under one name; let one alone serve it"
            )
    return np.stack(rows)


def _check_count(found: int, count: int, who: str) -> None:
    if found != count:
        raise ModelError(
            f"{who} answered {found} vectors for {count} texts: which text has none can't be told; use another release "
            "of the server"
        )


def as_vector(value: object) -> Vectors:
    """A list of D numbers as a vector (D,).

    Raises:
        ValueError: saying what the value is instead; it goes on from "the vector ...".
    """
    try:
        with np.errstate(over="ignore"):  # becomes infinite, and is refused below
            vector = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0, dtype=np.float32)
    if vector.ndim != 1 or not len(vector):
        raise ValueError("is no list of numbers")
    if not np.isfinite(vector).all():
        raise ValueError("holds numbers that are not finite")
    return vector


def _row(value: object, number: int, who: str) -> Vectors:
    try:
        return as_vector(value)
    except ValueError as fault:
        raise ModelError(
            f"{who}: vector {number} {fault}; is the model there one for embeddings, and does it run in bfloat16 or "
            "float32? float16 overflows with some"
        ) from fault
