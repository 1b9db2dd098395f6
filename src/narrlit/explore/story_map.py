"""Map of a collection: a dendrogram of few stories or a plane of many, with named groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cut_tree, leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score

from narrlit.data.schema import FloatArray, Floats, IntArray, normal_form
from narrlit.errors import DataError, OptionError, printable
from narrlit.measures.collection import CollectionSimilarity
from narrlit.optional import require

IN_DENDROGRAM = 300
"""Maximum number of stories in a dendrogram."""
FEWEST = 3
"""Minimum number of stories on a map."""
LABEL = 60
"""Maximum number of characters in a label: the title or, without a title, the beginning of the text."""
WORDS = 3
"""Maximum number of words in the name of a group."""
MARGIN = 0.05
"""Margin before the first join of a dendrogram, as a share of the range of similarities."""
UMAP_NEIGHBORS = 15
"""Number of nearest stories, including the story itself, that determine the position of a story in the plane."""
PERPLEXITY = 10
"""Number of near stories, smoothly counted, that determine the position of a story of a tree in the plane."""
START = 1e-4
"""Standard deviation of the first positions, as the authors of t-SNE recommend."""
CENTRAL_SAMPLE = 200
"""Maximum number of stories with which those of a group are compared to find the most central one."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Dendrogram of N stories.

    Attributes:
        linkage: (N - 1, 4) joins in scipy's format, with distances from `top`.
        similarities: (N, N) similarities of all pairs.
        top: similarity slightly above the highest one of two stories.
    """

    linkage: NDArray[np.float64]
    similarities: Floats
    top: float


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Order or positions of N stories, and their groups.

    Attributes:
        method: description of how stories are arranged and grouped.
        groups: (N,) number of each story's group, -1 for none.
        tree: dendrogram; None for a plane.
        points: (N, 2) positions in the plane; None for a dendrogram.
    """

    method: str
    groups: IntArray
    tree: Tree | None = None
    points: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class StoryMap:
    """N stories with their neighbors and groups, in the order of a dendrogram or in a plane.

    Attributes:
        frame: id, title, text and metadata columns of each story.
        labels: titles of the N stories or, without a title, the beginning of the text.
        measure: name of the measure of similarity.
        neighbors: (N, k) nearest stories, most similar first.
        similarities: (N, k) similarities of the neighbors.
        arrangement: order or positions, and groups.
        names: words that name each group.
        central: most central story of each group.
    """

    frame: pd.DataFrame
    labels: list[str]
    measure: str
    neighbors: IntArray
    similarities: FloatArray
    arrangement: Arrangement
    names: list[str]
    central: list[int]

    @property
    def groups(self) -> IntArray:
        """Number of each story's group (N,), -1 for none."""
        return self.arrangement.groups

    def neighbor_rows(self) -> list[dict[str, object]]:
        """List each story's nearest stories."""
        ids, titles = self.frame["id"].tolist(), self.frame["title"].tolist()
        rows = []
        for story, neighbors in enumerate(self.neighbors.tolist()):
            for rank, neighbor in enumerate(neighbors, start=1):
                rows.append(
                    {
                        "id": ids[story],
                        "title": titles[story],
                        "rank": rank,
                        "neighbor_id": ids[neighbor],
                        "neighbor_title": titles[neighbor],
                        "similarity": round(float(self.similarities[story, rank - 1]), 4),
                    }
                )
        return rows

    def group_rows(self) -> list[dict[str, object]]:
        """List each story's group, counted from 1, and its name; both are empty for a story without a group."""
        rows = []
        for id, title, group in zip(self.frame["id"], self.frame["title"], self.groups.tolist(), strict=True):
            row: dict[str, object] = {"id": id, "title": title, "group": "", "name": ""}
            if group >= 0:
                row |= {"group": group + 1, "name": self.names[group]}
            rows.append(row)
        return rows


def arrange_stories(frame: pd.DataFrame, similarities: CollectionSimilarity, k: int = 10) -> StoryMap:
    """Arrange stories by similarity, and find and name their groups.

    Args:
        frame: N stories: id, title, text, metadata.
        similarities: similarities of the stories.
        k: number of nearest stories per story.

    Raises:
        DataError: if there are fewer than three stories.
        MissingExtraError: if there are more than 300 stories and umap-learn is not installed.
    """
    if len(frame) < FEWEST:
        raise DataError("few_for_map", limit=FEWEST, stories=len(frame))
    labels = []
    for title, text in zip(frame["title"], frame["text"], strict=True):
        labels.append(printable(title or text, LABEL))
    if len(frame) <= IN_DENDROGRAM:
        arrangement = _dendrogram(similarities)
        neighbors, values = similarities.nearest(k)
    else:
        neighbors, values = similarities.nearest(max(k, UMAP_NEIGHBORS - 1))
        arrangement = _plane(similarities, neighbors, values)
        neighbors, values = neighbors[:, :k], values[:, :k]
    names = name_groups(frame["text"].tolist(), arrangement.groups)
    central = central_stories(similarities, arrangement.groups)
    return StoryMap(frame, labels, similarities.fit.measure, neighbors, values, arrangement, names, central)


def _dendrogram(similarities: CollectionSimilarity) -> Arrangement:
    """Build a tree by average linkage and cut it into groups."""
    matrix = similarities.matrix()
    symmetric = (matrix + matrix.T) / 2
    pairs = squareform(symmetric, checks=False).astype(np.float64)
    spread = max(np.ptp(pairs), 0.01)
    top = float(pairs.max() + MARGIN * spread)
    tree = linkage(top - pairs, "average", optimal_ordering=True)

    # Distances start at that of nearest stories, because silhouettes differ little if all distances are large.
    nearest = similarities.nearest(1).similarities.mean()
    distances = squareform(np.maximum(nearest - pairs, 0))
    cut, silhouette = _best_cut(tree, distances)
    method = (
        f"dendrogram by average linkage of similarities (measure {similarities.fit.measure}); groups by the cut with "
        f"the largest mean silhouette ({silhouette:.2f}) of those that put no more than a third of the stories into "
        "one group"
    )
    return Arrangement(method, _numbered_groups(cut, leaves_list(tree)), Tree(tree, matrix, top))


def _best_cut(tree: NDArray[np.float64], distances: NDArray[np.float64]) -> tuple[IntArray, float]:
    """Find the cut with the largest mean silhouette among cuts into parts of at most a third of the stories.

    Args:
        tree: (N - 1, 4) joins.
        distances: (N, N) distances of the stories.

    Returns:
        The part (N,) of each story, and the mean silhouette.
    """
    n = len(distances)
    largest_part = max(2, n / 3)
    cuts, silhouettes = [], []
    for cut in cut_tree(tree, range(2, n)).T:
        if np.bincount(cut).max() <= largest_part:
            cuts.append(cut)
            silhouettes.append(silhouette_score(distances, cut, metric="precomputed"))
    best = int(np.argmax(silhouettes))
    return cuts[best], silhouettes[best]


def _numbered_groups(parts: IntArray, leaves: IntArray) -> IntArray:
    """Number groups in the order of the leaves (N,); a part (N,) with a single story is not a group, -1."""
    sizes = np.bincount(parts)
    numbers = dict[int, int]()
    for leaf in leaves:
        part = int(parts[leaf])
        if sizes[part] > 1:
            numbers.setdefault(part, len(numbers))
    return np.array([numbers.get(int(part), -1) for part in parts])


def _plane(similarities: CollectionSimilarity, neighbors: IntArray, values: FloatArray) -> Arrangement:
    """Place stories in a plane by their nearest neighbors (N, k), and find dense regions in it."""
    require("umap", "explore")
    from umap import UMAP

    count = UMAP_NEIGHBORS - 1
    itself = np.arange(len(neighbors))[:, None]
    rows = np.hstack([itself, neighbors[:, :count]])
    distances_of_neighbors = values.max() - values[:, :count]
    distances = np.hstack([np.zeros_like(itself), distances_of_neighbors]).astype(np.float32)
    projection = UMAP(
        n_neighbors=UMAP_NEIGHBORS,
        min_dist=0.05,
        metric="cosine",
        random_state=0,
        n_jobs=1,
        precomputed_knn=(rows, distances),
        force_approximation_algorithm=True,  # otherwise neighbors are ignored for few stories
    )
    points = np.asarray(projection.fit_transform(similarities.vectors), dtype=np.float64)
    least = max(5, len(points) // 70)
    # Leaves of the density tree, because its largest branches may contain nine tenths of the stories.
    clusters = HDBSCAN(min_cluster_size=least, min_samples=3, cluster_selection_method="leaf", copy=True)
    method = (
        f"plane by UMAP of similarities (measure {similarities.fit.measure}); groups of at least {least} stories by "
        "HDBSCAN in the plane"
    )
    return Arrangement(method, clusters.fit_predict(points), points=points)


def in_groups(story_map: StoryMap, similarities: CollectionSimilarity, count: int) -> StoryMap:
    """Divide a map into another number of groups: cut its tree, or cluster the points of its plane by k-means.

    Args:
        story_map: map of N stories.
        similarities: similarities of the stories.
        count: number of groups, 2 to N - 1; a part of a tree with one story is no group.

    Raises:
        OptionError: if the number is out of range.
    """
    if not 2 <= count < len(story_map.frame):
        raise OptionError("number_of_groups", groups=count, most=len(story_map.frame) - 1)
    arrangement = story_map.arrangement
    if arrangement.tree is not None:
        joins = arrangement.tree.linkage
        groups = _numbered_groups(cut_tree(joins, count).ravel(), leaves_list(joins))
    else:
        groups = KMeans(count, random_state=0, n_init=10).fit_predict(arrangement.points).astype(np.int64)
    return replace(
        story_map,
        arrangement=replace(arrangement, groups=groups),
        names=name_groups(story_map.frame["text"].tolist(), groups),
        central=central_stories(similarities, groups),
    )


def plane_points(arrangement: Arrangement) -> NDArray[np.float64]:
    """Return points (N, 2) of stories: those of a plane, or of a tree by t-SNE of its distances.

    It begins with classical scaling, so that a map is the same each time. On 137 fables and 61 Norse tales in several
    versions, trustworthiness (5 neighbors) was 0.97 and 0.93, that of classical scaling 0.78 and 0.82, of non-metric
    scaling 0.81 and 0.84, of UMAP 0.98 and 0.93; of as many nearest points as a story has versions, 94 % and 79 % were
    versions (32 % and 21 %; 29 % and 31 %; 91 % and 55 %).

    Source: van der Maaten, Hinton (2008), Visualizing data using t-SNE; Torgerson (1952), Multidimensional scaling: I.
        Theory and method.
    """
    if arrangement.tree is None:
        if arrangement.points is None:
            raise DataError("not_arranged")
        return arrangement.points
    tree = arrangement.tree
    similarities = (tree.similarities + tree.similarities.T) / 2
    distances = np.maximum(tree.top - similarities, 0).astype(np.float64)
    np.fill_diagonal(distances, 0)
    squared = distances**2
    products = -(squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()) / 2
    values, vectors = np.linalg.eigh(products)
    largest = [-1, -2]
    lengths = np.sqrt(np.maximum(values[largest], 0))
    scaled = vectors[:, largest] * lengths
    start = (scaled * START / max(scaled[:, 0].std(), 1e-12)).astype(np.float32)
    perplexity = min(PERPLEXITY, (len(scaled) - 1) / 3)
    projection = TSNE(2, perplexity=perplexity, metric="precomputed", init=start, random_state=0)
    points: NDArray[np.float64] = projection.fit_transform(distances).astype(np.float64)
    return points


def central_stories(similarities: CollectionSimilarity, groups: IntArray) -> list[int]:
    """Find the story of each group with the largest mean similarity to the others, or to 200 of them."""
    central = []
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        sample = np.random.default_rng(0).permutation(members)[:CENTRAL_SAMPLE]
        among = similarities.between(members, sample)
        is_other = members[:, None] != sample[None, :]
        sums = np.where(is_other, among, 0).sum(axis=1)
        means = sums / np.maximum(is_other.sum(axis=1), 1)
        central.append(int(members[np.argmax(means)]))
    return central


def name_groups(texts: Sequence[str], groups: IntArray) -> list[str]:
    """Name groups by words that occur in more of their stories than in others.

    Args:
        texts: N stories.
        groups: (N,) number of each story's group; -1: none.

    Source: class-based TF-IDF of BERTopic (Grootendorst 2022), which counts stories with a word here instead of
        occurrences, so that the name of a hero does not become the name of a group.
    """
    vectorizer = CountVectorizer(binary=True, stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{3,}\b")  # noqa: S106
    uses = vectorizer.fit_transform([*map(normal_form, texts), "story"])[
        :-1
    ]  # "story", in case all texts consist of stop words
    vocabulary = vectorizer.get_feature_names_out()
    rarity = np.log(len(texts) / np.maximum(uses.sum(axis=0).A1, 1))
    names: list[str] = []
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        stories = uses[rows].sum(axis=0).A1  # number of stories with each word
        is_frequent = stories > max(1, min(3, len(rows) / 3))
        weights = np.where(is_frequent, stories * rarity, 0)
        strongest = np.argsort(-weights, kind="stable")[:WORDS]
        words = vocabulary[strongest[weights[strongest] > 0]]
        names.append(", ".join(words) or f"group {len(names) + 1}")
    return names
