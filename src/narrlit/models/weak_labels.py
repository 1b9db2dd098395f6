"""Labels of theme, action and outcome that nobody gave: clusters of stories by the vectors of their slices.

Source: Mendel292, section 2.6: slices by position, encoded, clustered by K-means with 8, 5 and 4 clusters.

Letters of the shapes: N stories, D dimension of a vector, K clusters.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.data.rows import file_digest
from narrlit.data.table import PADDING, IntArray
from narrlit.errors import ModelError, OptionError
from narrlit.files import atomic_path
from narrlit.models.embedding import Vectors
from narrlit.models.weights import read_weights

ASPECTS = ("theme", "action", "outcome")
LABELS = "weak_labels.json"
CENTRES = "weak_labels.safetensors"
FORMAT = "narrlit weak labels 1"


@dataclass(frozen=True)
class Clusters:
    """How many clusters each aspect has.

    Attributes:
        theme: clusters of beginnings.
        action: clusters of middles.
        outcome: clusters of endings.
        seed: of K-means; the same stories, model and seed give the same labels.

    Raises:
        OptionError: if an aspect has fewer than two, or the seed is out of range.
    """

    theme: int = 8
    action: int = 5
    outcome: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for aspect in ASPECTS:
            if getattr(self, aspect) < 2:
                raise OptionError(f"clusters.{aspect} is {getattr(self, aspect)}: a whole number from 2 is needed")
        if not 0 <= self.seed < 2**32:
            raise OptionError(f"clusters.seed is {self.seed}: a whole number from 0 to {2**32 - 1} is needed")

    def require(self, stories: int) -> None:
        """See that so many different stories can be clustered.

        Raises:
            OptionError: naming the aspect that has more clusters.
        """
        for aspect in ASPECTS:
            if getattr(self, aspect) > stories:
                raise OptionError(
                    f"clusters.{aspect} is {getattr(self, aspect)}, but there are only {stories} different stories to "
                    "fit on: name fewer clusters, or give more stories"
                )


# eq=False: arrays have no single truth value, so the comparison that dataclass writes would fail.
@dataclass(frozen=True, eq=False)
class WeakLabels:
    """Labels of N stories, and what gives others theirs."""

    labels: IntArray
    """(N, 3), a column for each of ASPECTS, from 0 to K - 1."""
    centres: dict[str, Vectors]
    """(K, D) for each of ASPECTS; cluster 0 held the most stories."""
    provenance: dict[str, Any]
    """Plain JSON data: what the labels were made of."""


def fit_weak_labels(
    vectors: Mapping[str, NDArray[np.floating]],
    fitted: int | IntArray,
    clusters: Clusters,
    provenance: Mapping[str, Any],
) -> WeakLabels:
    """Find clusters of some of the stories by K-means, aspect by aspect, and label all by the nearest centre.

    Args:
        vectors: for each of ASPECTS, (N, D) of the stories' slices.
        fitted: the rows that clusters are found on, by number; a number alone means that many from the first.
        clusters: how many, and the seed.
        provenance: plain JSON data that is kept beside what is found.

    Raises:
        OptionError: if there are fewer different stories to fit on than clusters.
        ModelError: if a vector is not finite.
    """
    import sklearn

    rows = np.arange(fitted) if isinstance(fitted, int) else fitted
    centres: dict[str, Vectors] = {}
    described: dict[str, Any] = {}
    for aspect in ASPECTS:
        known = _finite(vectors, aspect)[rows]
        count, different = getattr(clusters, aspect), len(np.unique(known, axis=0))
        if count > different:
            raise OptionError(
                f"clusters.{aspect} is {count}, but there are only {different} different stories to fit on: "
                "name fewer clusters, or give more stories"
            )
        centres[aspect], described[aspect] = _cluster(known, count, clusters.seed)
    kept = {"fitted_on": len(rows), "seed": clusters.seed, "scikit_learn": sklearn.__version__, "clusters": described}
    return WeakLabels(_labels(centres, vectors), centres, {**provenance, **kept})


def truth_labels(truths: Sequence[tuple[str, str, str] | None]) -> IntArray:
    """Number names of theme, action and outcome that are known, each aspect's by alphabet.

    Returns:
        (N, 3), PADDING where a story has none.

    >>> truth_labels([("loss", "chase", "death"), None, ("envy", "chase", "rescue")]).tolist()
    [[1, 0, 0], [-1, -1, -1], [0, 0, 1]]
    """
    known = [truth for truth in truths if truth is not None]
    numbers = [{name: i for i, name in enumerate(sorted(set(names)))} for names in zip(*known, strict=True)]
    labels = np.full((len(truths), len(ASPECTS)), PADDING, dtype=np.int64)
    for row, truth in enumerate(truths):
        if truth is not None:
            labels[row] = [number[name] for number, name in zip(numbers, truth, strict=True)]
    return labels


def write_weak_labels(folder: Path, found: WeakLabels, texts: Sequence[str]) -> None:
    """Keep labels, by their stories' digests, and centres in two files of a folder; no text is written.

    Args:
        folder: is made if it is not there; what it held of this kind is replaced.
        found: labels of N stories.
        texts: the N stories, different ones, in the order of the labels.

    Raises:
        OptionError: if the folder can't be written to.
        ValueError: if the texts are not N different ones.
    """
    from safetensors.numpy import save_file

    if not len(set(texts)) == len(texts) == len(found.labels):
        raise ValueError(f"{len(found.labels)} rows of labels need as many different texts")
    stories = [
        {"sha256": _digest(text), **dict(zip(ASPECTS, labels, strict=True))}
        for text, labels in zip(texts, found.labels.tolist(), strict=True)
    ]
    with atomic_path(folder / CENTRES) as centres, atomic_path(folder / LABELS) as labels_file:
        save_file(found.centres, centres)
        # The digest ties the files together: labels of one fit are never read with the centres of another.
        kept = {"format": FORMAT, "provenance": found.provenance, CENTRES: file_digest(centres), "stories": stories}
        labels_file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def read_weak_labels(folder: Path, texts: Sequence[str]) -> WeakLabels:
    """Find again what `write_weak_labels` kept.

    Args:
        folder: with the two files.
        texts: stories in any order, all of which were labelled; the labels come in their order.

    Raises:
        ModelError: naming the file, if it is missing or broken, of another fit, or a story has no label in it.
    """
    path = folder / LABELS
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        labels = {story["sha256"]: [story[aspect] for aspect in ASPECTS] for story in kept["stories"]}
        provenance, written, kind = dict(kept["provenance"]), kept[CENTRES], kept["format"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{path}: it holds no weak labels ({error}); make them anew") from error
    centres = {aspect: tensor.numpy() for aspect, tensor in read_weights(folder / CENTRES).items()}
    if kind != FORMAT or written != file_digest(folder / CENTRES) or set(centres) != set(ASPECTS):
        raise ModelError(f"{path}: it does not belong to {CENTRES} beside it; make the weak labels anew")
    sizes = [len(centres[aspect]) for aspect in ASPECTS]
    if not all(type(n) is int and 0 <= n < k for row in labels.values() for n, k in zip(row, sizes, strict=True)):
        raise ModelError(f"{path}: a label is no cluster of {CENTRES}; make the weak labels anew")
    rows = [labels.get(_digest(text)) for text in texts]
    if None in rows:
        raise ModelError(
            f"{path}: {rows.count(None)} of {len(texts)} stories have no label in it, the first of them "
            f"{texts[rows.index(None)][:60]!r}; make the weak labels anew with these stories"
        )
    return WeakLabels(np.array(rows, dtype=np.int64).reshape(-1, len(ASPECTS)), centres, provenance)


def _cluster(vectors: NDArray[np.float64], count: int, seed: int) -> tuple[Vectors, dict[str, Any]]:
    """Centres (K, D), largest cluster first, equal ones by their first story; and what is to be told of them."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Several threads would add up a centre's stories in the order in which they happen to finish.
    with threadpool_limits(1):
        model = KMeans(count, n_init=10, random_state=seed).fit(vectors)
    centres = model.cluster_centers_.astype(np.float32)
    labels = _nearest(vectors, centres)
    sizes = np.bincount(labels, minlength=count).tolist()
    order = sorted(range(count), key=lambda i: (-sizes[i], int((labels == i).argmax())))
    return centres[order], {"k": count, "sizes": [sizes[i] for i in order], "inertia": float(model.inertia_)}


def _labels(centres: Mapping[str, Vectors], vectors: Mapping[str, NDArray[np.floating]]) -> IntArray:
    columns = []
    for aspect in ASPECTS:
        columns.append(_nearest(_finite(vectors, aspect), centres[aspect]))
    return np.stack(columns, axis=1)


def _nearest(vectors: NDArray[np.float64], centres: Vectors) -> IntArray:
    # Row by row, and by no matrix product: a story's label does not depend on which others are asked for beside it.
    apart = np.stack([np.square(vectors - centre).sum(1) for centre in centres], axis=1)
    nearest: IntArray = apart.argmin(1).astype(np.int64)
    return nearest


def _finite(vectors: Mapping[str, NDArray[np.floating]], aspect: str) -> NDArray[np.float64]:
    found = np.asarray(vectors[aspect], dtype=np.float64)
    if not np.isfinite(found).all():
        raise ModelError(f"{aspect}: the model gives vectors that are no finite numbers: name another model")
    return found


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
