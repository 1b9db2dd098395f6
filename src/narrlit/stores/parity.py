"""Is it the same encoder there: vectors of a few texts compared with those that are known."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.data.fields import RowError, mapping_of, text_of
from narrlit.data.rows import read_raw
from narrlit.errors import DataError, ModelError
from narrlit.models.embedding import Vectors
from narrlit.stores.answers import as_vector

LEAST_COSINE = 0.999


def check_parity(
    embed: Callable[[Sequence[str]], Vectors],
    texts: Sequence[str],
    known: NDArray[np.floating[Any]],
    where: str,
    least: float = LEAST_COSINE,
) -> float:
    """Embed texts and compare each vector with the known one.

    Different texts go out together, so that answers in a wrong order show.

    Args:
        embed: gives (N, D) for N texts.
        texts: N stories; of repeated ones the first counts.
        known: their vectors (N, D).
        where: what the known vectors are, for messages.
        least: cosine that every vector must reach, up to 1; half precision and other kernels stay above 0.999.

    Returns:
        The smallest cosine.

    Raises:
        ModelError: if a cosine is below `least`, the dimension is another one, or the known vectors can't tell one
            text from another.
    """
    if known.ndim != 2 or len(known) != len(texts):
        raise ModelError(f"{where}: vectors of shape {known.shape} are not those of {len(texts)} texts; make them anew")
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
    rows = list(first.values())
    expected = _unit(known[rows])
    if not can_tell(expected, least):
        raise ModelError(
            f"{where}: two texts at least with vectors that differ (cosine below {least:g}) are needed to check "
            "another encoder by; name more stories"
        )
    found = embed([texts[row] for row in rows])
    if found.shape != expected.shape:
        raise ModelError(
            f"{where}: {len(expected)} vectors of {expected.shape[1]} numbers are expected, those made now are "
            f"{len(found)} of {found.shape[-1]}: it is another model, or vectors are cut to another dimension"
        )
    unit = _unit(found)
    cosines = np.einsum("nd,nd->n", unit, expected)
    worst = int(np.argmin(cosines))
    if not cosines[worst] >= least:
        raise ModelError(_difference(where, rows, worst, expected @ unit[worst], least))
    return float(cosines[worst])


def can_tell(known: NDArray[np.floating[Any]], least: float = LEAST_COSINE) -> bool:
    """Whether vectors (N, D) differ enough to check others by: were all nearly equal, a wrong order would pass."""
    unit = _unit(known)
    return len(unit) > 1 and not bool((unit @ unit[0] >= least).all())


def _difference(where: str, rows: list[int], worst: int, to_all: NDArray[np.float64], least: float) -> str:
    """What is wrong, given the cosines of the worst text's vector to every known one."""
    said = f"{where}: the vector made now of text {rows[worst]} has cosine {to_all[worst]:.4f} to the known one"
    nearest = int(np.argmax(to_all))
    if to_all[nearest] >= least:
        return f"{said}, but {to_all[nearest]:.4f} to that of text {rows[nearest]}: answers come in a wrong order"
    return (
        f"{said}, {least:g} is needed: look for another model or revision, another pooling, another prompt, another "
        "length at which texts are cut, or answers in a wrong order"
    )


def _unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    unit: NDArray[np.float64] = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    return unit


def read_known(path: Path) -> tuple[list[str], Vectors]:
    """Read what `narrlit embed --out known.jsonl` wrote.

    Returns:
        N texts and their vectors (N, D).

    Raises:
        DataError: naming file and line, if it is missing or a line is broken.
    """
    if path.suffix != ".jsonl":
        raise DataError(f"{path}: known vectors stand in a .jsonl file; `narrlit embed --out known.jsonl` writes one")
    raw = read_raw(path)
    texts: list[str] = []
    vectors: list[Vectors] = []
    for row in raw.rows:
        try:
            text, vector = _known(row.value, len(vectors[0]) if vectors else None)
        except RowError as fault:
            raise DataError(f"{raw.at(row.line)}: {fault}; write it anew: narrlit embed --out {path.name}") from fault
        texts.append(text)
        vectors.append(vector)
    return texts, np.stack(vectors)


def _known(value: object, dimension: int | None) -> tuple[str, Vectors]:
    record = mapping_of(value)
    text = text_of(record, "text")
    try:
        vector = as_vector(record.get("embedding"))
    except ValueError as fault:
        raise RowError(f"embedding {fault}") from fault
    if dimension is not None and len(vector) != dimension:
        raise RowError(f"embedding has {len(vector)} numbers, the first one {dimension}")
    return text, vector
