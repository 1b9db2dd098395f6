"""Pairs of similar stories and groups of retellings in a collection."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from narrlit.console import counted
from narrlit.data.writers import write_table
from narrlit.errors import DataError, OptionError, printable
from narrlit.files import atomic_path, check_writable
from narrlit.measures.collection import CollectionSimilarity
from narrlit.tables import markdown_table

if TYPE_CHECKING:
    import pandas as pd

    from narrlit.explore.collection import Collection

SAMPLE, SAMPLE_OF_LARGE = 2000, 500
"""Size of the sample of stories whose similarities describe those of all pairs, and that of a large collection."""
ROUNDING = 1e-5
"""Difference below which similarities are equal: sums of float32 in another order."""
SUFFIXES = (".csv", ".tsv", ".xlsx", ".jsonl", ".parquet", ".graphml")
SHOWN = 20
"""Pairs, and groups, that are printed."""
WIDTH = 60
"""Characters of a title that are printed."""
NEAR_COPY = 0.01
"""Difference to a story's similarity with itself up to which another one is its copy."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of similar stories of a collection, and its groups of retellings.

    Attributes:
        collection: N stories.
        frame: what `similar_pairs` returns.
        grouped: what `retelling_groups` returns: a row a story of a group.
        threshold: similarity above which mutual neighbors are retellings.
        reason: a sentence that explains the threshold.
    """

    collection: "Collection"
    frame: "pd.DataFrame"
    grouped: "pd.DataFrame"
    threshold: float
    reason: str

    def table(self) -> "pd.DataFrame":
        """Return the pairs, the most similar first: ids and titles of both, similarity, mutual."""
        return self.frame.copy()

    def groups(self) -> "pd.DataFrame":
        """Return the stories of groups: group from 1, id, title, similarity to the nearest story of the group."""
        return self.grouped.copy()

    def write(self, path: str | Path) -> list[Path]:
        """Write the pairs, with NAME-groups beside them if there is a group; or all as a graph (.graphml).

        Args:
            path: .csv, .tsv, .xlsx, .jsonl, .parquet or .graphml.

        Returns:
            The files that were written.
        """
        target = Path(path)
        check_writable(target, *SUFFIXES)
        if target.suffix == ".graphml":
            write_graph(target, self.collection, self.frame, self.grouped)
            return [target]
        write_table(target, self.frame.to_dict("records"))
        beside = target.with_name(f"{target.stem}-groups{target.suffix}")
        if not len(self.grouped):
            beside.unlink(missing_ok=True)  # of pairs that were replaced
            return [target]
        write_table(beside, self.grouped.to_dict("records"))
        return [target, beside]

    def __str__(self) -> str:
        """The most similar pairs and the largest groups, in Markdown."""
        rows = [
            {
                "similarity": f"{row.similarity:.3f}",
                "story": printable(row.title_a or row.id_a, WIDTH),
                "with": printable(row.title_b or row.id_b, WIDTH),
            }
            for row in self.frame.head(SHOWN).itertuples()
        ]
        lines = [markdown_table("Most similar pairs", rows), f"## Groups of retellings\n\n{self.reason}\n"]
        names = self.grouped["title"].where(self.grouped["title"] != "", self.grouped["id"])
        members = self.grouped.assign(name=names).groupby("group")["name"].agg(list)
        for number, own in members.head(SHOWN).items():
            lines.append(f"{number}. {'; '.join(printable(name, 60) for name in own)}")
        if not len(members):
            return "\n".join([*lines, "\nNo group: no pair of mutual neighbors is above the threshold."])
        more = f", of which {SHOWN} are shown" if len(members) > SHOWN else ""
        stories = f"{len(self.grouped):,} of {len(self.collection):,} stories"
        return "\n".join([*lines, f"\n{counted(len(members), 'group')} with {stories}{more}."])


def pairs(collection: "Collection", k: int = 10, threshold: float | None = None) -> Pairs:
    """Find the most similar pairs of a collection, and groups of retellings: mutual neighbors above a threshold.

    Args:
        collection: N stories, N > 1.
        k: nearest neighbors of each story that it is paired with.
        threshold: similarity above which mutual neighbors are retellings; None: chosen from the similarities of all
            pairs, and explained.

    Raises:
        DataError: for one story alone.
        OptionError: if k is below 1.

    >>> from narrlit.explore.collection import Collection
    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> pairs(tales).table()[["id_a", "id_b"]].values.tolist()[0]
    ['1', '2']
    """
    if k < 1:
        raise OptionError(f"`k={k}`: at least 1 is needed")
    table = similar_pairs(collection, k)
    grouped, level, reason = retelling_groups(collection, threshold, table)
    return Pairs(collection, table, grouped, level, reason)


def similar_pairs(collection: "Collection", k: int = 10) -> "pd.DataFrame":
    """Pair each story with its k nearest neighbors.

    Returns:
        A row a pair, the most similar first: `id_a`, `title_a`, `id_b`, `title_b`, `similarity` by the collection's
        measure, and `mutual`: neither story has k neighbors that are nearer.
    """
    import pandas as pd

    if len(collection.frame) < 2:
        raise DataError("one story has no pair: give two stories or more")
    rows, similarities = collection.similarities.nearest(k)
    # By similarity, not by place among the k: of more copies of a text than k, each is a neighbor of all.
    mutual = similarities >= similarities[rows, -1] - ROUNDING
    ends = np.sort(np.stack([np.repeat(np.arange(len(rows)), rows.shape[1]), rows.ravel()]), axis=0)
    pairs = pd.DataFrame({"a": ends[0], "b": ends[1], "similarity": similarities.ravel(), "mutual": mutual.ravel()})
    pairs = pairs.sort_values(["similarity", "a", "b"], ascending=[False, True, True])
    pairs = pairs.drop_duplicates(["a", "b"], ignore_index=True)
    for place, (name, end) in enumerate([("id", "a"), ("title", "a"), ("id", "b"), ("title", "b")]):
        pairs.insert(place, f"{name}_{end}", collection.frame[name].to_numpy()[pairs[end]])
    return pairs.drop(columns=["a", "b"])


def retelling_groups(
    collection: "Collection", threshold: float | None = None, pairs: "pd.DataFrame | None" = None
) -> tuple["pd.DataFrame", float, str]:
    """Group stories that chains of mutual nearest neighbors join whose similarity is above a threshold.

    Args:
        collection: N stories.
        threshold: similarity; None: chosen by `chance_threshold`, and copies of a story are in its group in any case.
        pairs: what `similar_pairs` returned for the collection.

    Returns:
        A row a story of a group, largest groups first: `group` (from 1), `id`, `title`, and `similarity` to the nearest
        story of its group; the threshold; and a sentence that explains it.
    """
    import pandas as pd
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = similar_pairs(collection) if pairs is None else pairs
    row_of = pd.Series(np.arange(len(collection.frame)), index=collection.frame["id"])
    if threshold is None:
        threshold, reason = chance_threshold(collection.similarities)
        # Of many copies each is a hub, and their similarity less hubness is low.
        of_copies = collection.similarities.with_themselves() - NEAR_COPY
        lowest = np.minimum(of_copies[row_of[pairs["id_a"]]], of_copies[row_of[pairs["id_b"]]])
        alike = (pairs["similarity"] > threshold) | (pairs["similarity"] >= lowest)
    else:
        reason = f"Threshold {threshold:g}, as chosen."
        alike = pairs["similarity"] > threshold
    links = pairs[pairs["mutual"] & alike]
    ends = row_of[links["id_a"]].to_numpy(), row_of[links["id_b"]].to_numpy()
    graph = coo_array((np.ones(len(links), dtype=np.int8), ends), shape=(len(row_of), len(row_of)))
    groups = collection.frame[["id", "title"]].assign(group=connected_components(graph, directed=False)[1])
    both = pd.concat([links.set_index(name)["similarity"] for name in ("id_a", "id_b")])
    groups["similarity"] = groups["id"].map(both.groupby(level=0).max())
    groups = groups.dropna(subset="similarity")  # a story of no pair is alone
    sizes = groups["group"].map(groups["group"].value_counts())
    groups = groups.assign(size=-sizes).sort_values(["size", "group"], kind="stable", ignore_index=True)
    groups["group"] = pd.factorize(groups["group"])[0] + 1
    return groups[["group", "id", "title", "similarity"]], threshold, reason


def chance_threshold(similarities: CollectionSimilarity) -> tuple[float, str]:
    """Choose the similarity that unrelated stories would exceed in less than one of all pairs, and explain it.

    Most pairs of a collection are unrelated: median and median absolute deviation of all similarities describe them,
    whatever share is retold, and a normal distribution gives the level that the most similar of P such pairs reaches.

    Args:
        similarities: of N stories, N > 1.
    """
    from scipy.stats import median_abs_deviation, norm

    size = SAMPLE_OF_LARGE if similarities.is_large else SAMPLE
    rows = np.random.default_rng(0).permutation(len(similarities))[:size]
    sample = similarities.between(rows, rows)[np.triu_indices(len(rows), 1)]
    median, deviation = float(np.median(sample)), float(median_abs_deviation(sample, scale="normal"))
    pairs = len(similarities) * (len(similarities) - 1) // 2
    threshold = median + float(norm.isf(1 / (pairs + 1))) * deviation
    reason = (
        f"Threshold {threshold:.3f}: of {pairs:,} pairs of unrelated stories less than one would be above it "
        f"(measure {similarities.fit.measure}, median {median:.3f}, deviation {deviation:.3f})."
    )
    return threshold, reason


def write_graph(path: Path, collection: "Collection", pairs: "pd.DataFrame", groups: "pd.DataFrame") -> None:
    """Write stories and their pairs as GraphML: nodes with title, group and metadata, edges with their similarity."""
    import networkx as nx

    graph = nx.Graph()
    group_of = dict(zip(groups["id"], groups["group"], strict=True))
    for story in collection.frame.drop(columns="text").to_dict("records"):
        values = {**story, "label": story["title"] or story["id"], "group": group_of.get(story["id"], 0)}
        # XML has no control characters; GraphML has neither lists nor missing values.
        node = {
            printable(n): v if isinstance(v, int | float) else printable(v) for n, v in values.items() if v is not None
        }
        graph.add_node(printable(story["id"]), **node)
    for a, b, similarity in pairs[["id_a", "id_b", "similarity"]].itertuples(index=False):
        graph.add_edge(printable(a), printable(b), weight=similarity, similarity=similarity)
    with atomic_path(path) as temporary:
        nx.write_graphml(graph, temporary)
