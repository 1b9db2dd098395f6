"""Map of a collection: a dendrogram of few stories, a plane of many, with groups, their names and linked passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray, IntArray
from narrlit.data.tales import sample_tales
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, printable
from narrlit.explore.explanation import FEWEST_BACKGROUND, MOST_BACKGROUND, aligned_passages, chance_levels
from narrlit.explore.pairs import nearest

if TYPE_CHECKING:
    import pandas as pd

IN_DENDROGRAM, FEWEST = 300, 3
"""Stories in a dendrogram at most, and of a map at least."""
LABEL, WORDS = 60, 3
"""Characters of a story without a title; words that name a group."""
Links = dict[tuple[int, int], list[tuple[int, int, float]]]


@dataclass(frozen=True, eq=False)
class StoryMap:
    """N stories with their neighbors and groups, in the order of a dendrogram or in a plane.

    Attributes:
        frame: id, title, text and metadata columns of each story.
        labels: (N) titles; the beginning of the text where there is none.
        vectors: (N, D) unit vectors.
        indices: (N, k) nearest stories, the most similar first.
        cosines: (N, k) their similarities.
        method: what orders the stories, in words.
        groups: (N) number of each story's group, -1 for none.
        names: words that name each group.
        central: most central story of each group.
        tree: (N - 1, 4) linkage; None in a plane.
        points: (N, 2) in the plane; None in a dendrogram.
    """

    frame: "pd.DataFrame"
    labels: list[str]
    vectors: FloatArray
    indices: IntArray
    cosines: FloatArray
    method: str
    groups: IntArray
    names: list[str]
    central: list[int]
    tree: NDArray[np.float64] | None = None
    points: NDArray[np.float64] | None = None

    def neighbor_rows(self) -> list[dict[str, Any]]:
        """List each story's nearest stories."""
        ids, titles = self.frame["id"].tolist(), self.frame["title"].tolist()
        return [
            {"id": ids[i], "title": titles[i], "rank": rank, "neighbor_id": ids[j], "neighbor_title": titles[j]}
            | {"similarity": round(float(self.cosines[i, rank - 1]), 4)}
            for i, row in enumerate(self.indices.tolist())
            for rank, j in enumerate(row, 1)
        ]

    def group_rows(self) -> list[dict[str, Any]]:
        """List each story's group, counted from 1; empty where it is in none."""
        numbered = [(group + 1, self.names[group]) if group >= 0 else ("", "") for group in self.groups.tolist()]
        stories = zip(self.frame["id"], self.frame["title"], numbered, strict=True)
        return [{"id": id_, "title": title, "group": group, "name": name} for id_, title, (group, name) in stories]


def arrange_stories(frame: "pd.DataFrame", vectors: FloatArray, k: int = 10) -> StoryMap:
    """Order stories by similarity, find their groups and name these.

    Args:
        frame: N stories: id, title, text, metadata.
        vectors: (N, D) unit vectors.
        k: nearest stories of each.

    Raises:
        DataError: for less than three stories.
    """
    if len(frame) < FEWEST:
        raise DataError(f"a map needs at least {FEWEST} stories, not {len(frame)}")
    titles = zip(frame["title"], frame["text"], strict=True)
    labels = [printable(title or text, LABEL) for title, text in titles]
    parts = _dendrogram(vectors) if len(frame) <= IN_DENDROGRAM else _plane(vectors)
    names, central = name_groups(frame["text"].tolist(), vectors, parts["groups"])
    indices, cosines = nearest(vectors, min(k, len(frame) - 1))
    return StoryMap(frame, labels, vectors, indices, cosines, names=names, central=central, **parts)


def _dendrogram(vectors: FloatArray) -> dict[str, Any]:
    """Build a tree by average linkage and cut it into groups."""
    from scipy.cluster.hierarchy import cut_tree, leaves_list, linkage
    from scipy.spatial.distance import squareform
    from sklearn.metrics import silhouette_score

    n, distances = len(vectors), np.clip(1 - vectors @ vectors.T, 0, 2).astype(np.float64)
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    cuts = [each for each in cut_tree(tree, range(2, n)).T if np.bincount(each).max() <= max(2, n / 3)]
    scores = [silhouette_score(distances, each, metric="precomputed") for each in cuts]
    chosen, numbers = cuts[int(np.argmax(scores))], dict[int, int]()
    sizes = np.bincount(chosen)
    for leaf in leaves_list(tree):  # numbered from top to bottom; a story alone is in no group
        if sizes[chosen[leaf]] > 1:
            numbers.setdefault(int(chosen[leaf]), len(numbers))
    method = (
        "dendrogram by average linkage of cosine distances; groups by the cut with the largest mean silhouette "
        f"({max(scores):.2f}) of those that put no more than a third of the stories into one group"
    )
    return {"method": method, "groups": np.array([numbers.get(int(group), -1) for group in chosen]), "tree": tree}


def _plane(vectors: FloatArray) -> dict[str, Any]:
    """Project stories to a plane and find dense regions in it."""
    from sklearn.cluster import HDBSCAN
    from sklearn.decomposition import PCA

    if find_spec("umap") is not None:
        from umap import UMAP

        method, projection = "UMAP", UMAP(min_dist=0.05, metric="cosine", random_state=0, n_jobs=1)
    else:
        method, projection = "two principal components (PCA; pip install umap-learn separates more)", PCA(2)
    points = np.asarray(projection.fit_transform(vectors), dtype=np.float64)
    least = max(5, len(vectors) // 70)
    # Leaves of the tree of densities: its largest branches may hold nine stories of ten.
    clusters = HDBSCAN(min_cluster_size=least, min_samples=3, cluster_selection_method="leaf", copy=True)
    words = f"plane by {method}; groups of at least {least} stories by HDBSCAN in the plane"
    return {"method": words, "groups": clusters.fit_predict(points), "points": points}


def name_groups(texts: Sequence[str], vectors: FloatArray, groups: IntArray) -> tuple[list[str], list[int]]:
    """Name groups by the words that more of their stories use than others do, and find their most central stories.

    Args:
        texts: N stories.
        vectors: (N, D) unit vectors.
        groups: (N) number of each story's group; -1: none.

    Returns:
        Names, and stories with the largest mean similarity within their group.

    Source: class-based TF-IDF of BERTopic (Grootendorst 2022), on stories that use a word instead of its occurrences,
        so that a hero's name does not name a group.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    count = int(groups.max()) + 1
    members = [np.flatnonzero(groups == group) for group in range(count)]
    central = [int(rows[np.argmax(vectors[rows] @ vectors[rows].sum(axis=0))]) for rows in members]
    vectorizer = CountVectorizer(binary=True, stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{3,}\b")  # noqa: S106
    names, uses = list[str](), vectorizer.fit_transform([*texts, "story"])[:-1]  # texts of stop words alone, too
    rarity = np.log(len(texts) / np.maximum(uses.sum(axis=0).A1, 1))
    for rows in members:
        stories = uses[rows].sum(axis=0).A1  # of the group that use each word
        weights = np.where(stories > max(1, min(3, len(rows) / 3)), stories * rarity, 0)
        strongest = np.argsort(-weights, kind="stable")[:WORDS]
        name = ", ".join(vectorizer.get_feature_names_out()[[word for word in strongest if weights[word] > 0]])
        names.append(name or f"group {len(names) + 1}")
    return names, central


def link_passages(encoder: StoryEncoder, texts: Sequence[str], indices: IntArray) -> tuple[list[list[str]], Links]:
    """Split stories into sentences and link those of each story with those of its neighbors, as `explain` does.

    Args:
        encoder: embeds the sentences.
        texts: N stories.
        indices: (N, k) neighbors.

    Returns:
        Sentences of each story, and for each pair i < j the linked sentences (of i, of j, strength).
    """
    passages = encoder.passages(texts, progress=True)
    sentences = [each.texts for each in passages]
    vectors = [each.vectors for each in passages]
    rows = np.unique(np.linspace(0, len(texts) - 1, MOST_BACKGROUND + 2).astype(int)).tolist()
    pieces = [vectors[row] for row in rows]
    if len(texts) < FEWEST_BACKGROUND + 2:
        tales = encoder.passages([tale["text"] for tale in sample_tales()])
        rows, pieces = [-1], [np.concatenate([each.vectors for each in tales])]
    links = {}
    for i, j in sorted({(min(i, j), max(i, j)) for i, row in enumerate(indices.tolist()) for j in row}):
        background = np.concatenate([piece for row, piece in zip(rows, pieces, strict=True) if row not in (i, j)])
        links[i, j] = aligned_passages(vectors[i], vectors[j], chance_levels(vectors[i], vectors[j], background))
    return sentences, links
