"""Pseudo-labels of stories: clusters of segments' embeddings, or known truth; kept on disk for a resumed run.

Letters of the shapes: N stories, D dimension, K clusters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from narrlit.data.schema import ASPECTS, FloatArray, IntArray
from narrlit.errors import DataError, OptionError, reading
from narrlit.files import atomic_path
from narrlit.preprocessing.sentences import Rounding, positional_segments, split_sentences

LABELS_FILE = "pseudo_labels.npz"


@dataclass(frozen=True)
class Clusters:
    """Number of K-means clusters of each aspect.

    Attributes:
        theme: clusters of first segments.
        action: clusters of middle segments.
        outcome: clusters of last segments.
        seed: of K-means.
    """

    theme: int = 8
    action: int = 5
    outcome: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for aspect in ASPECTS:
            if getattr(self, aspect) < 2:
                raise OptionError(f"clusters.{aspect} is {getattr(self, aspect)}: a whole number from 2 is needed")


@dataclass(frozen=True)
class PseudoLabels:
    """Labels of theme, action and outcome for the training stories.

    Attributes:
        source: `positional` clusters the embeddings of each story's first, middle and last segments; `truth` takes
            StoryWorld's; `none`: no labels.
        clusters: of the positional labels.
        transductive: also cluster, and train on, stories of `extra.unlabelled`. The run is flagged.
        rounding: of segments, where sentences can't be quartered: `down` rounds where a segment begins, so that of ten
            sentences the first has 2 and the last 3; `symmetric` gives both 2.
    """

    source: Literal["positional", "truth", "none"] = "none"
    clusters: Clusters = field(default_factory=Clusters)
    transductive: bool = False
    rounding: Rounding = "down"

    def __post_init__(self) -> None:
        if self.transductive and self.source != "positional":
            raise OptionError("pseudo_labels.transductive needs pseudo_labels.source: positional")


def positional_labels(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], FloatArray],
    clusters: Clusters,
    rounding: Rounding = "down",
) -> tuple[IntArray, dict[str, Any]]:
    """Cluster N stories by the embeddings of their first, middle and last segments, aspect by aspect.

    Returns labels (N, 3), 0 for an aspect's largest cluster, and plain data for run.json.
    Source: Mendel292, section 2.6.
    """
    columns, details = [], {}
    stories = [positional_segments(split_sentences(text), rounding=rounding) for text in texts]
    segments = zip(*stories, strict=True)
    for aspect, segment in zip(ASPECTS, segments, strict=True):
        count = getattr(clusters, aspect)
        different = len(set(segment))
        if count > different:
            raise OptionError(
                f"clusters.{aspect} is {count}, but there are only {different} different segments: give fewer clusters "
                "or more stories"
            )
        labels, inertia = cluster(embed(segment).astype(np.float64), count, clusters.seed)
        columns.append(labels)
        details[aspect] = {"sizes": np.bincount(labels).tolist(), "inertia": inertia}
    description = {"source": "positional", "rounding": rounding, "seed": clusters.seed, "clusters": details}
    return np.stack(columns, axis=1), description


def cluster(embeddings: np.ndarray[Any, np.dtype[np.float64]], count: int, seed: int) -> tuple[IntArray, float]:
    """Return K-means clusters (N,), numbered by size and then by their first story, and the inertia."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Several threads would add up a center's stories in the order in which they happen to finish.
    with threadpool_limits(1):
        model = KMeans(count, n_init=10, random_state=seed).fit(embeddings)
    labels = model.labels_
    sizes = np.bincount(labels, minlength=count)
    order = sorted(range(count), key=lambda i: (-sizes[i], int((labels == i).argmax())))
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    return rank[labels], float(model.inertia_)


def truth_labels(truths: Sequence[tuple[str, str, str]]) -> IntArray:
    """Number known names of theme, action and outcome (N, 3), those of each aspect alphabetically.

    >>> truth_labels([("loss", "chase", "death"), ("envy", "chase", "rescue")]).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    columns = [np.unique(names, return_inverse=True)[1] for names in zip(*truths, strict=True)]
    return np.stack(columns, axis=1).astype(np.int64)


def write_labels(folder: Path, texts: Sequence[str], labels: IntArray) -> None:
    """Write labels (N, 3) of texts, with the texts' digest, to a file of the folder."""
    with atomic_path(folder / LABELS_FILE) as path, path.open("wb") as file:
        np.savez_compressed(file, texts=np.array(_digest(texts)), labels=labels)


def read_labels(folder: Path, texts: Sequence[str]) -> IntArray:
    """Read the labels (N, 3) of texts; a file of other texts' labels is refused."""
    path = folder / LABELS_FILE
    with reading("pseudo-labels", path, "start a new run"), np.load(path, allow_pickle=False) as content:
        digest, labels = str(content["texts"]), content["labels"]
    if digest != _digest(texts):
        raise DataError(f"{path}: labels of other stories; resume with the run's own data")
    return np.asarray(labels, dtype=np.int64)


def _digest(texts: Sequence[str]) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()
