"""Two stories with matched passages: the links that make up their similarity.

Letters in shapes: S and T passages of two stories, R background stories, D dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import numpy as np
import pandas as pd

from narrlit.console import counted
from narrlit.data.schema import ASPECTS, FloatArray, Floats, Story
from narrlit.data.tales import sample_tales
from narrlit.encoding.story_encoder import Passages, StoryEncoder
from narrlit.explore.faithfulness import DeletionCurve
from narrlit.library.collection import Collection
from narrlit.library.story_frame import centered_passages, passage_vectors
from narrlit.measures.collection import sample_rows
from narrlit.measures.corrections import centered, hubness
from narrlit.measures.matching import Matching, PassageVectors, best_matches, match_scores, match_shares, matches
from narrlit.measures.names import MeasureName
from narrlit.measures.readers import PassageReader

Likeness = Literal["much", "rather", "little", "not"]
"""Words for a similarity: much alike, rather alike, a little alike, not alike."""
LIMITS: tuple[tuple[float, Likeness], ...] = ((0.05, "much"), (0.25, "rather"), (0.5, "little"), (1.0, "not"))
"""Words for a similarity, by the maximum share of background stories that match better."""
EXPLAINED: MeasureName = "passages"
"""The only measure that can be explained, because its similarity is a sum of links."""
FEWEST_BACKGROUND = 10
"""Minimum number of background stories for describing a similarity in words."""

DIRECTIONS = {(True, True): "both", (True, False): "a to b", (False, True): "b to a"}
"""Direction of a link; keys: is it the best match of the first story's passage, and of the second story's?"""
LINK_COLUMNS = ["passage_a", "passage_b", "share", "match", "direction", "text_a", "text_b"]


def likeness(closer: tuple[int, int], count: int) -> Likeness | None:
    """Describe the similarity of two stories by the share of other stories that match each of them better.

    Args:
        closer: numbers of stories that match the first story better than the second does, and the second better than
            the first does.
        count: number of other stories; of fewer than ten, the result is None.

    >>> likeness((0, 1), 148), likeness((100, 60), 148), likeness((0, 0), 5)
    ('much', 'not', None)
    """
    if count < FEWEST_BACKGROUND:
        return None
    share_closer = sum(closer) / (2 * count)
    return next(word for limit, word in LIMITS if share_closer <= limit)


@dataclass(frozen=True, eq=False)
class Background:
    """Background stories, with which two stories are compared.

    Attributes:
        passages: passages of R stories, minus their mean.
        mean: (D,) mean of the passages.
        texts: R texts.
        label: noun for the stories.
        hubs: hubness of each story of a collection, by its text; None without a collection: hubness is not subtracted.
    """

    passages: PassageVectors
    mean: Floats
    texts: Sequence[str]
    label: str
    hubs: Mapping[str, float] | None = None

    @classmethod
    def of_collection(cls, collection: Collection) -> "Background":
        """Use the stories of a collection, or a random sample of 1,000, with the mean and hubness of its measure."""
        is_measured = collection.measure == EXPLAINED
        similarities = collection.similarities if is_measured else collection.similarities_by(EXPLAINED)
        reader = cast("PassageReader", similarities.fit.reader)
        texts = collection.frame["text"]
        hubs = dict(zip(texts, similarities.hubs.tolist(), strict=True))
        rows = sample_rows(len(collection))
        sample = [collection.passages[row] for row in rows]
        passages = centered_passages(passage_vectors(sample), reader.mean)
        return cls(passages, reader.mean, texts.iloc[rows].tolist(), "other stories of the collection", hubs)

    @cached_property
    def half_hubs(self) -> Floats:
        """Half of the hubness of each background story (R,), the part that a similarity subtracts; else zeros."""
        hubs = self.hubs or {}
        return np.array([hubs.get(text, 0.0) for text in self.texts], dtype=np.float32) / 2

    @classmethod
    def of_tales(cls, encoder: StoryEncoder, stories: Sequence[Story]) -> "Background":
        """Use the sample tales; if a story is one of them, all tales of its type are excluded."""
        tales = sample_tales()
        compared_texts = {story.text for story in stories}
        compared_types = {tale["atu"] for tale in tales if tale["text"] in compared_texts}
        texts = [tale["text"] for tale in tales if tale["atu"] not in compared_types]
        passages = passage_vectors(encoder.passages(texts))
        mean = passages.vectors.mean(axis=0, dtype=np.float32)
        return cls(centered_passages(passages, mean), mean, texts, "sample tales")


@dataclass(frozen=True, eq=False)
class ComparedStory:
    """Story as the measure reads it.

    Attributes:
        story: the story.
        texts: texts of its S passages.
        vectors: (S, D) vectors of the passages, minus the mean of the background.
        closeness: (R,) scores with the background stories, minus half of their hubness; -inf with the story itself.
        hubness: hubness in the collection; for a story outside it, the mean score with the ten nearest stories.
    """

    story: Story
    texts: list[str]
    vectors: Floats
    closeness: Floats
    hubness: float

    @classmethod
    def of(cls, story: Story, passages: Passages, background: Background) -> "ComparedStory":
        """Compare a story with the background."""
        vectors = centered(passages.vectors.astype(np.float32), background.mean)
        scores = match_scores(vectors, background.passages).astype(np.float64)
        if story.text in background.texts:
            scores[background.texts.index(story.text)] = -np.inf
        hub = None if background.hubs is None else background.hubs.get(story.text)
        if hub is None:
            hub = float(hubness(scores[None])[0])
        return cls(story, passages.texts, vectors, scores - background.half_hubs, hub)


@dataclass(frozen=True, eq=False)
class MatchedPair:
    """Two stories and the matches of their passages, which are numbered from 1.

    Attributes:
        stories: the two stories; messages name them by their ids.
        passages: texts of the passages of both stories.
        weights: (S, T) matches of all pairs of passages, 0 to 1.
        hubness: hubness of both stories, the mean of which is subtracted from the score; None without a collection.
        background: number of background stories, and a noun for them.
        closer: numbers of background stories that are more similar to the first story than the second story is, and to
            the second story than the first is.
        deletion: similarities after removing passages; None if they were not computed.
    """

    stories: tuple[Story, Story]
    passages: tuple[list[str], list[str]]
    weights: Floats
    hubness: tuple[float, float] | None
    background: tuple[int, str]
    closer: tuple[int, int]
    deletion: DeletionCurve | None = None

    @classmethod
    def of(cls, first: ComparedStory, second: ComparedStory, background: Background) -> "MatchedPair":
        """Match the passages of two stories."""
        weights = matches(first.vectors, second.vectors, Matching())
        score = match_shares(weights).sum()
        compared_texts = (first.story.text, second.story.text)
        others = np.array([text not in compared_texts for text in background.texts], dtype=bool)
        # The half that a story itself has in all its similarities changes no order, and is left out on both sides.
        half_hubs = (0.0, 0.0) if background.hubs is None else (first.hubness / 2, second.hubness / 2)
        closer_to_first = int((first.closeness[others] > score - half_hubs[1]).sum())
        closer_to_second = int((second.closeness[others] > score - half_hubs[0]).sum())
        return cls(
            stories=(first.story, second.story),
            passages=(first.texts, second.texts),
            weights=weights,
            hubness=None if background.hubs is None else (first.hubness, second.hubness),
            background=(int(others.sum()), background.label),
            closer=(closer_to_first, closer_to_second),
        )

    @property
    def ids(self) -> tuple[str, str]:
        """Ids of both stories, by which messages name them."""
        first, second = self.stories
        return first.id, second.id

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of the score, (S, T): 0 for all pairs of passages except best matches."""
        return match_shares(self.weights)

    @property
    def score(self) -> float:
        """Sum of the shares, 0 to 1."""
        return float(self.shares.sum())

    @property
    def similarity(self) -> float:
        """Score, in a collection minus the mean hubness of both stories."""
        if self.hubness is None:
            return self.score
        mean_hubness = sum(self.hubness) / 2
        return self.score - mean_hubness

    @cached_property
    def links(self) -> pd.DataFrame:
        """Links, largest share first.

        Columns: passage_a, passage_b, share (share of the score), match (match of the two passages, 0 to 1), direction
        (`a to b`: b is the best match of a; `b to a`; `both`), text_a, text_b.
        """
        best_of_first, best_of_second = best_matches(self.weights)
        rows = []
        for i, j in np.argwhere(self.shares > 0).tolist():
            rows.append(
                {
                    "passage_a": i + 1,
                    "passage_b": j + 1,
                    "share": float(self.shares[i, j]),
                    "match": float(self.weights[i, j]),
                    "direction": DIRECTIONS[best_of_first[i] == j, best_of_second[j] == i],
                    "text_a": self.passages[0][i],
                    "text_b": self.passages[1][j],
                }
            )
        table = pd.DataFrame(rows, columns=LINK_COLUMNS)
        return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    @property
    def views(self) -> list[tuple[str, tuple[str, str]]]:
        """Texts of theme, action and outcome side by side; empty unless both stories have views."""
        first, second = self.stories
        if first.views is None or second.views is None:
            return []
        texts = zip(first.views.texts, second.views.texts, strict=True)
        return list(zip(ASPECTS, texts, strict=True))

    def verdict(self, model: str) -> str:
        """Describe the similarity, with words for its rank among the background stories."""
        first, second = self.ids
        word = self.likeness
        if word is None:
            return f"{model} gives {first} and {second} the similarity {self.similarity:.3f}."
        alike = "a little alike" if word == "little" else f"{word} alike"
        return f"{model} finds {first} and {second} {alike}: similarity {self.similarity:.3f}."

    @property
    def likeness(self) -> Likeness | None:
        """Word for the similarity, by its rank among the background stories; None of fewer than ten."""
        count, _ = self.background
        return likeness(self.closer, count)

    @property
    def rank(self) -> str:
        """Sentence with the number of background stories that are more similar to each story than the other one is."""
        first, second = self.ids
        count, label = self.background
        return f"Better matches among {count:,} {label}: {self.closer[0]} for {first}, {self.closer[1]} for {second}."

    @property
    def terms(self) -> list[tuple[float, str]]:
        """Terms of the similarity and their names; if there are two terms, followed by the similarity."""
        links = counted(int((self.shares > 0).sum()), "link")
        sizes = f"{len(self.passages[0])} and {len(self.passages[1])} passages"
        terms = [(self.score, f"score, the sum of the shares of {links} between {sizes}")]
        if self.hubness is not None:
            first, second = self.hubness
            subtracted = f"hubness: score of each story with its ten nearest, {first:.3f} and {second:.3f}, averaged"
            terms += [(-(first + second) / 2, subtracted), (self.similarity, "similarity")]
        return terms
