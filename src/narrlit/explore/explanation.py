"""`narrlit.explain`: the similarity of two stories as the sum of its links between passages.

All numbers describe a model, not causal relations between the stories.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from narrlit.console import say
from narrlit.data.schema import Story, StoryTable
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.data.writers import write_table
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import Passages, StoryEncoder
from narrlit.errors import DataError, OptionError
from narrlit.explore.alignment import write_alignment
from narrlit.explore.explanation_page import explanation_page
from narrlit.explore.explanation_text import columns, pair_lines, wrap
from narrlit.explore.faithfulness import deletion_curve
from narrlit.explore.matched_pair import EXPLAINED, Background, ComparedStory, MatchedPair
from narrlit.files import FRAME_SUFFIXES, atomic_path, check_writable
from narrlit.library.collection import Collection
from narrlit.library.options import EXPLANATION_SUFFIXES
from narrlit.measures.names import MeasureName
from narrlit.models.config import DEFAULT_MODEL
from narrlit.pages import in_frame

NUMBERS = (
    "A link joins a passage to its best match in the other story (→, ←; ↔: each is the other's). Its share is the "
    "match divided by twice the number of passages of the story that it starts from; the shares add up to the score. "
    "The numbers describe this model, and claim no cause."
)
STRONGEST = 3
"""Number of passages of an anchor that are printed."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Similarity of two stories, or of an anchor with A and with B, as a sum of links between passages.

    Attributes:
        model: name of the model.
        pair: the two stories; for a triple, the anchor and A.
        other: for a triple, the anchor and B.
        measure: measure of the collection; only `passages` can be explained.
    """

    model: str
    pair: MatchedPair
    other: MatchedPair | None = None
    measure: MeasureName = EXPLAINED

    @property
    def pairs(self) -> list[MatchedPair]:
        """The pair, or both pairs of a triple."""
        return [self.pair] if self.other is None else [self.pair, self.other]

    @property
    def similarity(self) -> float:
        """Similarity of the two stories; for a triple, of the anchor and A."""
        return self.pair.similarity

    @property
    def margin(self) -> float:
        """Similarity of the anchor with A minus its similarity with B; NaN without a third story."""
        if self.other is None:
            return float("nan")
        return self.pair.similarity - self.other.similarity

    def table(self) -> pd.DataFrame:
        """Tabulate the links, largest share first.

        Returns:
            One row per link: passage_a, passage_b (numbers from 1), share (shares add up to the score), match (match of
            the two passages, 0 to 1), direction (`a to b`: b is the best match of a; `b to a`; `both`), text_a, text_b.
            For a triple, the links of both pairs; a first column, story, contains the id of the second story, and
            shares with B are negative.
        """
        if self.other is None:
            return self.pair.links.copy()
        with_a, with_b = self.pair.links.copy(), self.other.links.copy()
        with_b["share"] = -with_b["share"]
        with_a.insert(0, "story", self.pair.ids[1])
        with_b.insert(0, "story", self.other.ids[1])
        return pd.concat([with_a, with_b], ignore_index=True)

    @property
    def margins(self) -> pd.DataFrame:
        """Tabulate the passages of the anchor by their contribution to the margin, largest first.

        Columns: passage, share_a and share_b (sums of the shares of its links with A and with B), difference, text. The
        differences add up to the difference of the scores.

        Raises:
            DataError: without a third story.
        """
        if self.other is None:
            raise DataError("margins_need_third")
        table = pd.DataFrame(
            {
                "passage": range(1, len(self.pair.passages[0]) + 1),
                "share_a": self.pair.shares.sum(axis=1),
                "share_b": self.other.shares.sum(axis=1),
                "text": self.pair.passages[0],
            }
        )
        table.insert(3, "difference", table["share_a"] - table["share_b"])
        return table.sort_values("difference", ascending=False, kind="stable", ignore_index=True)

    @property
    def findings(self) -> list[str]:
        """Sentences about the result, most important first; for a triple, the first says which story is closer."""
        notes = []
        if self.measure != EXPLAINED:
            notes.append(f"The collection compares by {self.measure}; this is its similarity by {EXPLAINED}.")
        if self.other is None:
            return [self.pair.verdict(self.model), self.pair.rank, *notes]
        near, far = (self.pair, self.other) if self.margin >= 0 else (self.other, self.pair)
        verdict = f"{self.model} finds {near.ids[0]} closer to {near.ids[1]} than to {far.ids[1]}"
        return [f"{verdict}: similarity {near.similarity:.3f} against {far.similarity:.3f}.", *notes]

    def write(self, path: str | Path) -> None:
        """Write the explanation: as a self-contained page, as TEI with the links, or the links as a table.

        Args:
            path: .html, .xml (TEI), .csv, .tsv, .xlsx, .jsonl or .parquet.

        Raises:
            OptionError: if the file can't be written, or a triple is to be written as TEI, which aligns two stories.
        """
        target = Path(path)
        check_writable(target, *EXPLANATION_SUFFIXES)
        if target.suffix == ".xml":
            if self.other is not None:
                raise OptionError("alignment_of_two", path=path)
            write_alignment(target, self.pair, self.model)
        elif target.suffix in FRAME_SUFFIXES:
            write_table(target, self.table().to_dict("records"))
        else:
            with atomic_path(target) as temporary:
                temporary.write_text(self.html, encoding="utf-8")

    @property
    def html(self) -> str:
        """The explanation as a self-contained HTML page."""
        return explanation_page(self.pairs, self.model, self.measure)

    def _repr_html_(self) -> str:
        return in_frame(self.html)

    def __str__(self) -> str:
        """Format the explanation for a terminal with 100 columns."""
        lines: list[str] = []
        for finding in self.findings:
            lines += wrap(finding)
        if self.other is None:
            lines += ["", *pair_lines(self.pair)]
        else:
            lines += ["", *self._margin_lines()]
            for pair in self.pairs:
                lines += ["", *wrap(pair.verdict(self.model)), *wrap(pair.rank), "", *pair_lines(pair)]
        lines += ["", *wrap(NUMBERS)]
        return "\n".join(lines)

    def _margin_lines(self) -> list[str]:
        """List the passages of the anchor that contribute most to the margin."""
        first_is_closer = self.margin >= 0
        sign = 1 if first_is_closer else -1
        table = self.margins.iloc[::sign].head(STRONGEST)
        contributing = table[sign * table["difference"] > 0]
        anchor, closer = self.pairs[0 if first_is_closer else 1].ids
        lines = wrap(f"Passages of {anchor} that contribute most to the margin of {closer}, by difference of shares:")
        for row in contributing.itertuples():
            lines += columns((f"{sign * row.difference:+.3f}", 7), (f"{row.passage} {row.text}", 91))
        return lines


def explain(
    a: str | Story,
    b: str | Story,
    other: str | Story | None = None,
    *,
    stories: Collection | None = None,
    encoder: str | Path | StoryEncoder | None = None,
    views: str | Path | None = None,
    check: bool = False,
    progress: bool = False,
) -> Explanation:
    """Explain the similarity of two stories, or why an anchor is closer to one story than to another.

    Both stories are split into passages, and each passage is matched with the best one of the other story. The
    similarity by the measure `passages` is the sum of the shares of these matches, in a collection minus the mean
    hubness of both stories, as in `search`, `pairs` and `map_stories`.

    Args:
        a: a text, the id of a story of the collection, or a `Story`, which is shown with its id and its views, if any;
            with `other`, the anchor.
        b: the story to compare it with; with `other`, candidate A.
        other: candidate B.
        stories: collection that provides passages, encoder, mean and hubness; None: the mean of the sample tales is
            subtracted from the passages, and hubness is not corrected.
        encoder: a model folder, a run folder, a checkpoint, a hub id, `narrlit-mini`, `minilm`, or an encoder
            from `narrlit.load`; None: the encoder of `stories`, or the default model.
        views: a file of views, or several, comma-separated, which are shown side by side.
        check: also remove the passages with the largest shares, and compare the remaining similarity with that after
            removing random passages; the encoder embeds both stories about thirty times.
        progress: show a progress bar on stderr for long computations.

    Returns:
        The `Explanation`: `.similarity`, `.table()` of the links, `.write(path)`. It is printed as text, and displayed
        as a page in notebooks.

    Raises:
        DataError: if a story is blank or lacks views.
        ModelError: if the model can't embed single texts.
        OptionError: if both a model and a collection are given.

    >>> grail = "A knight sought the grail for years. He asked a hermit the way. He died in the forest, alone."
    >>> pearl = "For years a diver looked for a pearl. An old woman told her where it lay. She drowned."
    >>> result = explain(grail, pearl)
    >>> links = result.table()
    >>> bool(abs(links["share"].sum() - result.similarity) < 1e-6)
    True
    """
    if stories is not None and encoder is not None:
        raise OptionError("collection_has_model")
    if other is None:
        compared = [_story(a, "A", stories), _story(b, "B", stories)]
    else:
        compared = [_story(a, "anchor", stories), _story(b, "A", stories), _story(other, "B", stories)]
    compared = _with_distinct_ids(compared)
    if views is not None:
        compared = _with_views(compared, str(views), progress)
    encoder = _encoder(stories, encoder)
    encoder.require_text()
    background = Background.of_tales(encoder, compared) if stories is None else Background.of_collection(stories)
    passages = _passages(compared, encoder, stories, progress)
    first, *others = [ComparedStory.of(story, own, background) for story, own in zip(compared, passages, strict=True)]
    pairs = []
    for second in others:
        pair = MatchedPair.of(first, second, background)
        if check:
            vectors = (first.vectors, second.vectors)
            pair = replace(pair, deletion=deletion_curve(encoder, pair.passages, vectors, progress))
        pairs.append(pair)
    measure = EXPLAINED if stories is None else stories.measure
    return Explanation(encoder.name, pairs[0], None if other is None else pairs[1], measure)


def _story(word: str | Story, letter: str, stories: Collection | None) -> Story:
    """Look up a story by its id in the collection, or make one from a text.

    Raises:
        DataError: for a blank text.
    """
    if isinstance(word, Story):
        story = word
    elif stories is not None and word in set(stories.frame["id"]):
        story = stories[word]
    else:
        story = Story(letter, word)
    if not story.text.strip():
        raise DataError("blank_text", id=story.id)
    return story


def _with_distinct_ids(stories: list[Story]) -> list[Story]:
    """Return the stories; if two ids are equal, all are numbered."""
    ids = {story.id for story in stories}
    if len(ids) == len(stories):
        return stories
    numbered = []
    for number, story in enumerate(stories, start=1):
        numbered.append(Story(f"{story.id} ({number})", story.text, story.views))
    return numbered


def _with_views(stories: Sequence[Story], files: str, progress: bool) -> list[Story]:
    """Attach the views of files to stories; every story must have views."""
    table, views = StoryTable(stories), StoryViews(ViewFiles.parse(files))
    if progress:
        say(f"views: {views.summary()}")
    views.attach(table, range(len(table)), "stories")
    return table.rows


def _encoder(stories: Collection | None, encoder: str | Path | StoryEncoder | None) -> StoryEncoder:
    """Return the encoder of a collection, or load the named model."""
    if stories is not None:
        return stories.encoder
    return encoder if isinstance(encoder, StoryEncoder) else load(encoder or DEFAULT_MODEL)


def _passages(
    compared: Sequence[Story], encoder: StoryEncoder, stories: Collection | None, progress: bool
) -> list[Passages]:
    """Return the passages of stories, from the collection if it has them, else embedded."""
    passages_of: dict[str, Passages] = {}
    if stories is not None:
        passages_of.update(zip(stories.frame["text"], stories.passages, strict=True))
    missing = [story for story in compared if story.text not in passages_of]
    if missing:
        texts = [story.text for story in missing]
        passages_of.update(zip(texts, encoder.passages(missing, progress=progress), strict=True))
    return [passages_of[story.text] for story in compared]
