"""Pairs of similar stories and groups of retellings in a collection."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy.stats import median_abs_deviation, norm

from narrlit.console import counted
from narrlit.data.schema import connected
from narrlit.data.writers import write_table
from narrlit.errors import DataError, OptionError, printable
from narrlit.explore.graph import write_graph
from narrlit.files import check_writable
from narrlit.library.collection import Collection
from narrlit.library.options import PAIR_SUFFIXES
from narrlit.markdown import markdown_table
from narrlit.measures.collection import CollectionSimilarity

SAMPLE, SAMPLE_OF_LARGE = 2000, 500
"""Number of stories whose pairs estimate the similarities of all pairs; the second number is for large collections."""
ROUNDING = 1e-5
"""Difference below which similarities count as equal: the rounding of float32 sums in a different order."""
SHOWN = 20
"""Maximum number of pairs, and of groups, that are printed."""
WIDTH = 60
"""Maximum number of characters of a title that are printed."""
NEAR_COPY = 0.01
"""Maximum difference between a story's similarity with its copy and with itself."""


class ComparedStories(Protocol):
    """Stories with their similarities, such as a collection or a selection from one."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per story: id, title, text, then the metadata columns."""

    @property
    def similarities(self) -> CollectionSimilarity:
        """Similarities of the stories, in the order of the frame."""


class Retellings(NamedTuple):
    """Groups of retellings in a collection.

    Attributes:
        groups: one row per grouped story, largest groups first: `group` (from 1), `id`, `title`, and `similarity` to
            the nearest story of its group.
        threshold: similarity above which mutual neighbors are retellings.
        reason: a sentence that explains the threshold.
    """

    groups: pd.DataFrame
    threshold: float
    reason: str


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of similar stories of a collection, and its groups of retellings.

    Attributes:
        collection: N stories.
        frame: the pairs, as `similar_pairs` returns them.
        grouped: the grouped stories, as in `Retellings`.
        threshold: similarity above which mutual neighbors are retellings.
        reason: a sentence that explains the threshold.
    """

    collection: Collection
    frame: pd.DataFrame
    grouped: pd.DataFrame
    threshold: float
    reason: str

    def table(self) -> pd.DataFrame:
        """Return the pairs, most similar first: ids and titles of both, similarity, mutual."""
        return self.frame.copy()

    def groups(self) -> pd.DataFrame:
        """Return the grouped stories: group from 1, id, title, similarity to the nearest story of the group."""
        return self.grouped.copy()

    def write(self, path: str | Path) -> list[Path]:
        """Write the pairs, and NAME-groups if there is a group; or both in one file as a graph (.graphml).

        Args:
            path: .csv, .tsv, .xlsx, .jsonl, .parquet or .graphml.

        Returns:
            The files that were written.
        """
        target = Path(path)
        check_writable(target, *PAIR_SUFFIXES)
        if target.suffix == ".graphml":
            write_graph(target, self.collection.frame, self.frame, self.grouped)
            return [target]
        write_table(target, self.frame.to_dict("records"))
        groups_file = target.with_name(f"{target.stem}-groups{target.suffix}")
        if self.grouped.empty:
            groups_file.unlink(missing_ok=True)  # left by pairs that were replaced
            return [target]
        write_table(groups_file, self.grouped.to_dict("records"))
        return [target, groups_file]

    def __str__(self) -> str:
        """Format the most similar pairs and the largest groups in Markdown."""
        table = markdown_table("Most similar pairs", pair_rows(self.frame))
        lines = [table, f"## Groups of retellings\n\n{self.reason}\n"]
        names = self.grouped["title"].where(self.grouped["title"] != "", self.grouped["id"])
        members = self.grouped.assign(name=names).groupby("group")["name"].agg(list)
        for number, titles in members.head(SHOWN).items():
            shown = [printable(title, WIDTH) for title in titles]
            lines.append(f"{number}. {'; '.join(shown)}")
        if not len(members):
            return "\n".join([*lines, "\nNo group: no pair of mutual neighbors is above the threshold."])
        more = f", of which {SHOWN} are shown" if len(members) > SHOWN else ""
        stories = f"{len(self.grouped):,} of {len(self.collection):,} stories"
        return "\n".join([*lines, f"\n{counted(len(members), 'group')} with {stories}{more}."])


def pairs(collection: Collection, *, k: int = 10, threshold: float | None = None) -> Pairs:
    """Find the most similar pairs of a collection, and groups of retellings: mutual neighbors above a threshold.

    Args:
        collection: N stories, N > 1.
        k: number of nearest neighbors with which each story is paired.
        threshold: similarity above which mutual neighbors count as retellings; None: chosen from the similarities of
            all pairs, with an explanation.

    Raises:
        DataError: if there is only one story.
        OptionError: if k is below 1.

    >>> from narrlit.library.collection import Collection
    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> pairs(tales).table()[["id_a", "id_b"]].values.tolist()[0]
    ['1', '2']
    """
    if k < 1:
        raise OptionError("at_least", option="k", found=k, least=1)
    table = similar_pairs(collection, k)
    retellings = retelling_groups(collection, threshold, table)
    return Pairs(collection, table, retellings.groups, retellings.threshold, retellings.reason)


def pair_rows(pairs: pd.DataFrame) -> list[dict[str, str]]:
    """Format the first pairs as rows of a Markdown table: similarity, and the titles of both stories."""
    rows = []
    for pair in pairs.head(SHOWN).itertuples():
        rows.append(
            {
                "similarity": f"{pair.similarity:.3f}",
                "story": printable(pair.title_a or pair.id_a, WIDTH),
                "with": printable(pair.title_b or pair.id_b, WIDTH),
            }
        )
    return rows


def similar_pairs(collection: ComparedStories, k: int = 10) -> pd.DataFrame:
    """Pair each story with its k nearest neighbors.

    Args:
        collection: N stories, N > 1.
        k: number of neighbors.

    Returns:
        One row per pair, most similar first: `id_a`, `title_a`, `id_b`, `title_b`, `similarity` by the measure of the
        collection, and `mutual`: neither story has k neighbors that are nearer than the other story.
    """
    if len(collection.frame) < 2:
        raise DataError("no_pair")
    neighbors, similarities = collection.similarities.nearest(k)
    # Compared by similarity, not by rank: if a text has more than k copies, all of them are mutual neighbors.
    mutual = similarities >= similarities[neighbors, -1] - ROUNDING
    stories = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
    pairs = pd.DataFrame(
        {
            "a": np.minimum(stories, neighbors.ravel()),
            "b": np.maximum(stories, neighbors.ravel()),
            "similarity": similarities.ravel(),
            "mutual": mutual.ravel(),
        }
    )
    pairs = pairs.sort_values(["similarity", "a", "b"], ascending=[False, True, True])
    pairs = pairs.drop_duplicates(["a", "b"], ignore_index=True)
    ids, titles = collection.frame["id"].to_numpy(), collection.frame["title"].to_numpy()
    return pd.DataFrame(
        {
            "id_a": ids[pairs["a"]],
            "title_a": titles[pairs["a"]],
            "id_b": ids[pairs["b"]],
            "title_b": titles[pairs["b"]],
            "similarity": pairs["similarity"],
            "mutual": pairs["mutual"],
        }
    )


def retelling_groups(
    collection: ComparedStories, threshold: float | None = None, pairs: pd.DataFrame | None = None
) -> Retellings:
    """Group stories that are joined by chains of mutual nearest neighbors with a similarity above a threshold.

    Args:
        collection: N stories.
        threshold: similarity; None: chosen by `chance_threshold`, and copies of a story are always in its group.
        pairs: pairs of the collection, from `similar_pairs`; None: computed.
    """
    pairs = similar_pairs(collection) if pairs is None else pairs
    if threshold is None:
        threshold, reason = chance_threshold(collection.similarities)
        alike = (pairs["similarity"] > threshold) | near_copies(collection, pairs)
    else:
        reason = f"Threshold {threshold:g}, as requested."
        alike = pairs["similarity"] > threshold
    links = pairs[pairs["mutual"] & alike]
    row_of = pd.Series(np.arange(len(collection.frame)), index=collection.frame["id"])
    linked_rows = list(zip(row_of[links["id_a"]], row_of[links["id_b"]], strict=True))
    stories = collection.frame[["id", "title"]].assign(
        group=connected(linked_rows, len(row_of)),
        similarity=collection.frame["id"].map(_strongest_links(links)),
    )
    groups = _largest_first(stories.dropna(subset="similarity"))  # a story without a link is in no group
    return Retellings(groups[["group", "id", "title", "similarity"]], threshold, reason)


def _strongest_links(links: pd.DataFrame) -> pd.Series:
    """Return the largest similarity of each story's links, by id; stories without a link are omitted."""
    of_first, of_second = links.set_index("id_a")["similarity"], links.set_index("id_b")["similarity"]
    return pd.concat([of_first, of_second]).groupby(level=0).max()


def near_copies(collection: ComparedStories, pairs: pd.DataFrame) -> pd.Series:
    """Mark pairs that are as similar as a story is to itself.

    After subtraction of hubness, this similarity is low for stories with many copies, because each copy is a hub.
    """
    lowest = pd.Series(collection.similarities.with_themselves() - NEAR_COPY, index=collection.frame["id"])
    of_first, of_second = lowest[pairs["id_a"]].to_numpy(), lowest[pairs["id_b"]].to_numpy()
    return pairs["similarity"] >= np.minimum(of_first, of_second)


def _largest_first(stories: pd.DataFrame) -> pd.DataFrame:
    """Order stories by the size of their group, and number the groups in this order from 1."""
    sizes = stories.groupby("group")["id"].transform("size")
    ordered = stories.assign(size=sizes).sort_values(["size", "group"], ascending=[False, True], ignore_index=True)
    numbers, _ = pd.factorize(ordered["group"])
    return ordered.assign(group=numbers + 1)


def unrelated_similarity(similarities: CollectionSimilarity) -> tuple[float, float]:
    """Estimate the median similarity of unrelated stories, and its deviation, by the pairs of a random sample.

    Most pairs of a collection are unrelated, so that the median and the median absolute deviation of all similarities
    describe them. The deviation is scaled to the standard deviation of a normal distribution.

    Args:
        similarities: similarities of N stories, N > 1.
    """
    size = SAMPLE_OF_LARGE if similarities.is_large else SAMPLE
    rows = np.random.default_rng(0).permutation(len(similarities))[:size]
    distinct_pairs = np.triu_indices(len(rows), 1)
    sample = similarities.between(rows, rows)[distinct_pairs]
    return float(np.median(sample)), float(median_abs_deviation(sample, scale="normal"))


def chance_threshold(similarities: CollectionSimilarity) -> tuple[float, str]:
    """Choose the similarity that less than one pair of unrelated stories would exceed, and explain it.

    A normal distribution with the parameters of `unrelated_similarity` gives the highest similarity expected among P
    unrelated pairs.

    Args:
        similarities: of N stories, N > 1.
    """
    median, deviation = unrelated_similarity(similarities)
    pairs = len(similarities) * (len(similarities) - 1) // 2
    deviations = float(norm.isf(1 / (pairs + 1)))
    threshold = median + deviations * deviation
    reason = (
        f"Threshold {threshold:.3f}: of {pairs:,} pairs of unrelated stories, less than one would be above it "
        f"(measure {similarities.fit.measure}, median {median:.3f}, deviation {deviation:.3f})."
    )
    return threshold, reason
