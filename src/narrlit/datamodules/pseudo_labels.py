"""Pseudo-labels of stories from clusters of segment embeddings, or true labels; saved for resumed runs.

Letters in shapes: N stories, D dimension, K clusters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal

import lightning as L
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types

from narrlit.compat.lightning import undeclared
from narrlit.data.schema import ASPECTS, FloatArray, IntArray
from narrlit.errors import DataError, OptionError, reading
from narrlit.files import atomic_path
from narrlit.preprocessing.sentences import Rounding, positional_segments, split_sentences

LABELS_FILE = "pseudo_labels.npz"


@dataclass(frozen=True)
class Clusters:
    """Number of K-means clusters of each aspect.

    Attributes:
        theme: number of clusters of first segments.
        action: number of clusters of middle segments.
        outcome: number of clusters of last segments.
        seed: seed of K-means.
    """

    theme: int = 8
    action: int = 5
    outcome: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for aspect in ASPECTS:
            if getattr(self, aspect) < 2:
                raise OptionError(
                    "config_value",
                    option=f"clusters.{aspect}",
                    found=getattr(self, aspect),
                    needed="an integer of at least 2",
                )


@dataclass(frozen=True)
class PseudoLabels:
    """Pseudo-labels of theme, action and outcome for the training stories.

    Attributes:
        source: `positional`: clusters of the embeddings of first, middle and last segments; `truth`: true labels of
            StoryWorld; `none`: no labels.
        clusters: numbers of clusters for positional labels.
        transductive: also cluster and train on the stories of `extra.unlabelled`. The run is flagged.
        rounding: rounding of segments if the number of sentences is not a multiple of four: `down` rounds the beginning
            of segments down, so that with ten sentences the first segment has 2 and the last one 3; `symmetric` gives 2
            to both.
    """

    source: Literal["positional", "truth", "none"] = "none"
    clusters: Clusters = field(default_factory=Clusters)
    transductive: bool = False
    rounding: Rounding = "down"

    def __post_init__(self) -> None:
        if self.transductive and self.source != "positional":
            raise OptionError("transductive_needs_positional")


@dataclass(frozen=True)
class ClusterRecord:
    """Sizes of an aspect's clusters in stories, in descending order, and the inertia of K-means."""

    sizes: list[int]
    inertia: float


@dataclass(frozen=True)
class PseudoLabelRecord:
    """Origin of pseudo-labels, for run.json.

    Attributes:
        source: source as in `PseudoLabels`.
        rounding: rounding of segments; None for labels from a file.
        seed: seed of K-means; None for labels from a file.
        clusters: clusters of each aspect; None for labels from a file.
        resumed_from: folder of the run from which the labels were read; None if they were computed.
        transductive: True if unlabeled stories also have labels.
    """

    source: str = "positional"
    rounding: Rounding | None = None
    seed: int | None = None
    clusters: dict[str, ClusterRecord] | None = None
    resumed_from: str | None = None
    transductive: bool = False


def run_labels(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], FloatArray],
    settings: PseudoLabels,
    trainer: L.Trainer,
) -> tuple[IntArray, PseudoLabelRecord]:
    """Label N stories for a fit, and write the labels to its folder.

    A resumed fit reads the labels of the run that it resumes; otherwise, the stories are clustered.

    Args:
        texts: texts of the stories.
        embed: function that embeds texts as vectors (N, D).
        settings: settings of positional labels.
        trainer: trainer of the fit.

    Returns:
        Labels (N, 3), the same in every process, and their origin.

    Raises:
        DataError: if the labels of the resumed run belong to other stories.
        OptionError: if there are fewer distinct segments than clusters.
    """
    resumed = Path(trainer.ckpt_path).parents[1] if trainer.ckpt_path else None
    if resumed is not None and (resumed / LABELS_FILE).is_file():
        labels, record = read_labels(resumed, texts), PseudoLabelRecord(resumed_from=str(resumed))
    else:
        labels, record = positional_labels(texts, embed, settings.clusters, settings.rounding)
    # All processes use the labels of the first, because K-means can give different results on different processors.
    labels = trainer.strategy.broadcast(labels, 0)
    folder = trainer.log_dir  # a collective call; without a logger it is the working directory
    if folder and trainer.loggers and not undeclared(trainer).fast_dev_run and trainer.is_global_zero:
        write_labels(Path(folder), texts, labels)
    return labels, record


def positional_labels(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], FloatArray],
    clusters: Clusters,
    rounding: Rounding = "down",
) -> tuple[IntArray, PseudoLabelRecord]:
    """Cluster N stories by the embeddings of their first, middle and last segments, aspect by aspect.

    Args:
        texts: texts of the stories.
        embed: function that embeds texts as vectors (N, D).
        clusters: number of clusters of each aspect.
        rounding: rounding of segments.

    Returns:
        Labels (N, 3), 0 for the largest cluster of an aspect, and their origin.

    Raises:
        OptionError: if there are fewer distinct segments than clusters.

    Source:
        Mendel292, section 2.6.
    """
    columns = []
    details: dict[str, ClusterRecord] = {}
    segments_by_story = [positional_segments(split_sentences(text), rounding=rounding) for text in texts]
    segments_by_aspect = zip(*segments_by_story, strict=True)
    for aspect, segments in zip(ASPECTS, segments_by_aspect, strict=True):
        count = getattr(clusters, aspect)
        num_distinct = len(set(segments))
        if count > num_distinct:
            raise OptionError("few_segments", aspect=aspect, clusters=count, segments=num_distinct)
        labels, inertia = cluster(embed(segments).astype(np.float64), count, clusters.seed)
        columns.append(labels)
        details[aspect] = ClusterRecord(np.bincount(labels).tolist(), inertia)
    return np.stack(columns, axis=1), PseudoLabelRecord("positional", rounding, clusters.seed, details)


def cluster(embeddings: NDArray[np.float64], count: int, seed: int) -> tuple[IntArray, float]:
    """Cluster embeddings (N, D) by K-means.

    Returns:
        Clusters (N,), numbered from the largest to the smallest (ties by their first story), and the inertia.
    """
    # With several threads, the order of summation and thus the result would vary between runs.
    with threadpool_limits(1):
        model = KMeans(count, n_init=10, random_state=seed).fit(embeddings)
    labels = model.labels_
    sizes = np.bincount(labels, minlength=count)
    first_stories = np.array([(labels == number).argmax() for number in range(count)])
    largest_first = np.lexsort((first_stories, -sizes))  # the last key is the primary one
    rank = np.empty(count, dtype=np.int64)
    rank[largest_first] = np.arange(count)
    return rank[labels], float(model.inertia_)


def truth_labels(truths: Sequence[tuple[str, str, str]]) -> IntArray:
    """Number the true names of theme, action and outcome (N, 3), alphabetically within each aspect.

    >>> truth_labels([("loss", "chase", "death"), ("envy", "chase", "rescue")]).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    columns = []
    for names in zip(*truths, strict=True):
        _, numbers = np.unique(names, return_inverse=True)
        columns.append(numbers)
    return np.stack(columns, axis=1).astype(np.int64)


def write_labels(folder: Path, texts: Sequence[str], labels: IntArray) -> None:
    """Write the labels (N, 3) of texts, with a digest of the texts, to a file in the folder."""
    with atomic_path(folder / LABELS_FILE) as path, path.open("wb") as file:
        np.savez_compressed(file, texts=np.array(_digest(texts)), labels=labels)


def read_labels(folder: Path, texts: Sequence[str]) -> IntArray:
    """Read the labels (N, 3) of texts from a folder.

    Raises:
        DataError: if the file can't be read, or its labels belong to other texts.
    """
    path = folder / LABELS_FILE
    with reading("unreadable_pseudo_labels", path), np.load(path, allow_pickle=False) as content:
        digest, labels = str(content["texts"]), content["labels"]
    if digest != _digest(texts):
        raise DataError("labels_of_other_stories", path=path)
    return np.asarray(labels, dtype=np.int64)


def _digest(texts: Sequence[str]) -> str:
    """Compute the SHA-256 of texts, in hex."""
    return sha256("\0".join(texts).encode()).hexdigest()
