"""Map of a collection: a dendrogram of few stories, a plane of many, with groups, their names and linked passages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cut_tree, leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import silhouette_score

from narrlit.data.schema import FloatArray, Floats, IntArray
from narrlit.encoding.story_encoder import Passages
from narrlit.errors import DataError, OptionError, printable
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.corrections import centered
from narrlit.measures.matching import in_order, match_shares, matches
from narrlit.optional import require

IN_DENDROGRAM = 300
"""Largest number of stories in a dendrogram."""
FEWEST = 3
"""Least number of stories on a map."""
LABEL = 60
"""Characters of a label; the beginning of the text is that of a story without a title."""
WORDS = 3
"""Words that name a group."""
MARGIN = 0.05
"""Share of the range of similarities that a dendrogram leaves before its first join."""
UMAP_NEIGHBORS = 15
"""Stories, itself among them, whose similarities place a story in the plane."""
CENTRAL_SAMPLE = 200
"""Largest number of stories of a group that its stories are compared with, to find the most central one."""
Links = dict[tuple[int, int], list[tuple[int, int, float]]]
"""Linked passages (of i, of j, match from 0 to 1) of pairs of stories (i, j)."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Dendrogram of N stories.

    Attributes:
        linkage: (N - 1, 4) joins, as scipy writes them, at their distance from `top`.
        similarities: (N, N) of all stories with all.
        top: a similarity a little above the highest of two stories.
    """

    linkage: NDArray[np.float64]
    similarities: Floats
    top: float


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Order or places of N stories and their groups.

    Attributes:
        method: what orders the stories, in words.
        groups: (N,) number of each story's group, -1 for none.
        tree: None in a plane.
        points: (N, 2) in the plane; None in a dendrogram.
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
        labels: titles of the N stories; the beginning of the text where there is none.
        measure: by which stories are compared.
        neighbors: (N, k) nearest stories, the most similar first.
        similarities: (N, k) of the neighbors.
        arrangement: order or places, and groups.
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
        """List each story's group, counted from 1; empty where it is in none."""
        rows = []
        for id, title, group in zip(self.frame["id"], self.frame["title"], self.groups.tolist(), strict=True):
            number, name = (group + 1, self.names[group]) if group >= 0 else ("", "")
            rows.append({"id": id, "title": title, "group": number, "name": name})
        return rows


def arrange_stories(frame: pd.DataFrame, similarities: CollectionSimilarity, k: int = 10) -> StoryMap:
    """Order stories by similarity, find their groups and name these.

    Args:
        frame: N stories: id, title, text, metadata.
        similarities: of the stories.
        k: nearest stories of each.

    Raises:
        DataError: for less than three stories.
        MissingExtraError: for more than 300 stories without umap-learn.
    """
    if len(frame) < FEWEST:
        raise DataError(f"a map needs at least {FEWEST} stories, not {len(frame)}")
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
    pairs = squareform((matrix + matrix.T) / 2, checks=False).astype(np.float64)
    top = float(pairs.max() + MARGIN * max(np.ptp(pairs), 0.01))
    tree = linkage(top - pairs, "average", optimal_ordering=True)

    # Silhouettes differ little where all distances are large: distances begin at that of a story and its nearest.
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
    """Find the cut with the largest mean silhouette of those whose parts have a third of the stories at most.

    Args:
        tree: (N - 1, 4) joins.
        distances: (N, N) of the stories.

    Returns:
        The part (N,) of each story, and the mean silhouette.
    """
    n = len(distances)
    largest_part = max(2, n / 3)
    cuts = [cut for cut in cut_tree(tree, range(2, n)).T if np.bincount(cut).max() <= largest_part]
    silhouettes = [silhouette_score(distances, cut, metric="precomputed") for cut in cuts]
    best = int(np.argmax(silhouettes))
    return cuts[best], silhouettes[best]


def _numbered_groups(parts: IntArray, leaves: IntArray) -> IntArray:
    """Number groups in the order of the leaves (N); a part (N,) of one story is no group, -1."""
    sizes = np.bincount(parts)
    numbers = dict[int, int]()
    for leaf in leaves:
        part = int(parts[leaf])
        if sizes[part] > 1:
            numbers.setdefault(part, len(numbers))
    return np.array([numbers.get(int(part), -1) for part in parts])


def _plane(similarities: CollectionSimilarity, neighbors: IntArray, values: FloatArray) -> Arrangement:
    """Place stories in a plane by their nearest neighbors (N, k) and find dense regions in it."""
    require("umap", "explore")
    from umap import UMAP

    count = UMAP_NEIGHBORS - 1
    itself = np.arange(len(neighbors))[:, None]
    rows = np.hstack([itself, neighbors[:, :count]])
    distances = np.hstack([np.zeros_like(itself), values.max() - values[:, :count]]).astype(np.float32)
    projection = UMAP(
        n_neighbors=UMAP_NEIGHBORS,
        min_dist=0.05,
        metric="cosine",
        random_state=0,
        n_jobs=1,
        precomputed_knn=(rows, distances),
        force_approximation_algorithm=True,  # reads the neighbors also for few stories
    )
    points = np.asarray(projection.fit_transform(similarities.vectors), dtype=np.float64)
    least = max(5, len(points) // 70)
    # Leaves of the tree of densities: its largest branches may hold nine stories of ten.
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
        raise OptionError(f"`groups={count}`: must be from 2 to {len(story_map.frame) - 1}, one less than the stories")
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
    """Return points (N, 2) of stories: those of a plane, or of a tree by classical scaling of its distances.

    Source: Torgerson (1952), Multidimensional scaling: I. Theory and method.
    """
    if arrangement.tree is None:
        if arrangement.points is None:
            raise DataError("the stories have neither a tree nor points: arrange them first")
        return arrangement.points
    tree = arrangement.tree
    distances = np.maximum(tree.top - (tree.similarities + tree.similarities.T) / 2, 0).astype(np.float64)
    np.fill_diagonal(distances, 0)
    squared = distances**2
    products = -(squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()) / 2
    values, vectors = np.linalg.eigh(products)
    points: NDArray[np.float64] = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0))
    return points


def central_stories(similarities: CollectionSimilarity, groups: IntArray) -> list[int]:
    """Find the story of each group with the largest mean similarity to the others of the group, or 200 of them."""
    central = []
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        sample = np.random.default_rng(0).permutation(members)[:CENTRAL_SAMPLE]
        among = similarities.between(members, sample)
        others = members[:, None] != sample[None, :]
        means = np.where(others, among, 0).sum(axis=1) / np.maximum(others.sum(axis=1), 1)
        central.append(int(members[np.argmax(means)]))
    return central


def name_groups(texts: Sequence[str], groups: IntArray) -> list[str]:
    """Name groups by the words that more of their stories use than others do.

    Args:
        texts: N stories.
        groups: (N) number of each story's group; -1: none.

    Source: class-based TF-IDF of BERTopic (Grootendorst 2022), on stories that use a word instead of its occurrences,
        so that a hero's name does not name a group.
    """
    vectorizer = CountVectorizer(binary=True, stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{3,}\b")  # noqa: S106
    uses = vectorizer.fit_transform([*texts, "story"])[:-1]  # texts of stop words alone, too
    vocabulary = vectorizer.get_feature_names_out()
    rarity = np.log(len(texts) / np.maximum(uses.sum(axis=0).A1, 1))
    names: list[str] = []
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        stories = uses[rows].sum(axis=0).A1  # of the group that use each word
        weights = np.where(stories > max(1, min(3, len(rows) / 3)), stories * rarity, 0)
        strongest = np.argsort(-weights, kind="stable")[:WORDS]
        name = ", ".join(vocabulary[strongest[weights[strongest] > 0]])
        names.append(name or f"group {len(names) + 1}")
    return names


def link_passages(stories: Sequence[Passages], indices: IntArray) -> Links:
    """Link passages of each story with their best matches in its neighbors, in the order of both stories.

    Args:
        stories: passages of N stories.
        indices: (N, k) neighbors.

    Returns:
        For each pair i < j the linked passages (of i, of j, match from 0 to 1).
    """
    mean = np.concatenate([story.vectors for story in stories]).mean(axis=0, dtype=np.float32)
    vectors = [centered(story.vectors.astype(np.float32), mean) for story in stories]
    pairs = set[tuple[int, int]]()
    for story, neighbors in enumerate(indices.tolist()):
        pairs.update((min(story, neighbor), max(story, neighbor)) for neighbor in neighbors)
    links = {}
    for i, j in sorted(pairs):
        weights = matches(vectors[i], vectors[j])
        chosen = in_order(match_shares(weights))
        links[i, j] = [(first, second, float(weights[first, second])) for first, second in chosen]
    return links
