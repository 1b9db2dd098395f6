"""`narrlit.pairs_to_check`: likely versions of one story, for readers to decide."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from narrlit.console import counted
from narrlit.data.schema import normal_text
from narrlit.data.writers import write_table
from narrlit.errors import OptionError
from narrlit.explore.pair_decisions import PairDecision, StoryPair
from narrlit.explore.pairs import near_copies, pair_rows, similar_pairs
from narrlit.files import FRAME_SUFFIXES, check_writable
from narrlit.library.collection import Collection
from narrlit.library.story_frame import texts_by_id
from narrlit.markdown import markdown_table


@dataclass(frozen=True, eq=False)
class PairsToCheck:
    """Pairs of stories that may be versions of one story, and that readers have not decided.

    Attributes:
        collection: N stories.
        frame: one row per pair, most similar first: id_a, title_a, id_b, title_b, similarity.
        copies: number of pairs that are left out because one story is a near-copy of the other.
        decided: number of pairs that are left out because they have been decided.
    """

    collection: Collection
    frame: pd.DataFrame
    copies: int
    decided: int = 0

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.frame)

    def undecided(self, decisions: Iterable[PairDecision], reader: str | None = None) -> "PairsToCheck":
        """Leave out the pairs that have been decided.

        Args:
            decisions: decisions of all readers.
            reader: only decisions of this reader count; None: those of any reader.
        """
        decided = {made.pair for made in decisions if reader in (None, made.reader)}
        pairs = map(StoryPair.of, self.frame["id_a"], self.frame["id_b"])
        is_decided = pd.Series([pair in decided for pair in pairs], dtype=bool)
        remaining = self.frame[~is_decided].reset_index(drop=True)
        return replace(self, frame=remaining, decided=self.decided + int(is_decided.sum()))

    def first(self, limit: int) -> "PairsToCheck":
        """Return the most similar pairs alone."""
        return replace(self, frame=self.frame.head(limit))

    def table(self) -> pd.DataFrame:
        """Tabulate the pairs for a reader, who fills in the columns `decision` and `reader`.

        Returns:
            One row per pair, most similar first: id_a, title_a, id_b, title_b, similarity, decision, reader (both
            empty), text_a, text_b.
        """
        text_of = texts_by_id(self.collection.frame)
        return self.frame.assign(
            decision="",
            reader="",
            text_a=self.frame["id_a"].map(text_of),
            text_b=self.frame["id_b"].map(text_of),
        )

    def write(self, path: str | Path) -> None:
        """Write the table; `read_decisions` reads it when the column `decision` is filled in.

        Raises:
            DataError: if there is no pair.
            OptionError: if the suffix is not one of .csv, .tsv, .xlsx, .jsonl, .parquet, or a text is too long for
                Excel.
        """
        check_writable(path, *FRAME_SUFFIXES)
        write_table(path, self.table().to_dict("records"))

    def __str__(self) -> str:
        """The first pairs, in Markdown, and what was left out."""
        decided, copies = counted(self.decided, "decided pair"), counted(self.copies, "pair")
        left_out = f"{decided} and {copies} of near-copies left out."
        if self.frame.empty:
            return f"No pair to check: {left_out}"
        table = markdown_table("Pairs to check", pair_rows(self.frame))
        return f"{table}\n{counted(len(self), 'pair')}; {left_out}"


def pairs_to_check(
    collection: Collection,
    decisions: Iterable[PairDecision] = (),
    *,
    reader: str | None = None,
    k: int = 10,
    limit: int | None = None,
) -> PairsToCheck:
    """List likely versions of one story for readers to decide: the most similar pairs first, each once.

    Each story is paired with its k nearest neighbors by the measure of the collection. A pair of near-copies is left
    out: it is as similar as a story is to itself, or both texts are equal except for case and white space.

    Args:
        collection: N stories, N > 1.
        decisions: decisions that have been made, such as a `PairDecisions`; their pairs are left out.
        reader: only decisions of this reader are left out; None: those of all readers.
        k: number of nearest neighbors with which each story is paired.
        limit: largest number of pairs; None: all.

    Returns:
        A `PairsToCheck`: `.table()`, `.write(path)`, `.undecided(decisions)`.

    Raises:
        DataError: if there is only one story.
        OptionError: if k or the limit is below 1.

    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> pairs_to_check(tales, limit=1).table()[["id_a", "id_b"]].values.tolist()
    [['1', '2']]
    """
    if k < 1:
        raise OptionError("at_least", option="k", found=k, least=1)
    if limit is not None and limit < 1:
        raise OptionError("at_least", option="limit", found=limit, least=1)
    pairs = similar_pairs(collection, k)
    normal_text_of = dict(zip(collection.frame["id"], map(normal_text, collection.frame["text"]), strict=True))
    has_equal_texts = pairs["id_a"].map(normal_text_of) == pairs["id_b"].map(normal_text_of)
    is_copy = near_copies(collection, pairs) | has_equal_texts
    frame = pairs[~is_copy].drop(columns="mutual").reset_index(drop=True)
    undecided = PairsToCheck(collection, frame, copies=int(is_copy.sum())).undecided(decisions, reader)
    return undecided if limit is None else undecided.first(limit)
