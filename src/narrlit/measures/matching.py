"""Matching of passages: each passage with the best passage at a similar position in the other story.

Letters in shapes: S and T passages of two stories, P passages of N stories, D dimension.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from narrlit.data.schema import Floats, IntArray
from narrlit.errors import OptionError


@dataclass(frozen=True)
class Matching:
    """Settings of the matching of passages.

    Attributes:
        spread: standard deviation of a Gaussian weight that decreases with the distance between the relative positions
            of two passages (every story has length 1); inf: positions are ignored.
        support: weight, 0 to 1, of the neighboring matches, which are those of the preceding and of the following
            passages.
    """

    spread: float = 0.4
    support: float = 0.3

    def __post_init__(self) -> None:
        if not self.spread > 0:
            raise OptionError("above_zero", option="spread", found=self.spread)
        if not 0 <= self.support <= 1:
            raise OptionError("share", option="support", found=self.support)


@dataclass(frozen=True, eq=False)
class PassageVectors:
    """Passages of N stories, concatenated in one array.

    Attributes:
        vectors: (P, D) unit vectors.
        starts: (N,) first passage of each story; every story has at least one passage.
    """

    vectors: Floats
    starts: IntArray

    @classmethod
    def of(cls, stories: Sequence[Floats]) -> "PassageVectors":
        """Concatenate the passages (S, D) of each story."""
        sizes = np.array([len(story) for story in stories])
        return cls(np.concatenate(stories), np.cumsum(sizes) - sizes)

    def __len__(self) -> int:
        """Count the stories."""
        return len(self.starts)

    @property
    def sizes(self) -> IntArray:
        """Number of passages of each story (N,)."""
        return np.diff(self.starts, append=len(self.vectors))

    @property
    def positions(self) -> Floats:
        """Relative position of each passage in its story (P,), between 0 and 1."""
        sizes = np.repeat(self.sizes, self.sizes)
        first = np.repeat(self.starts, self.sizes)
        passages_before = np.arange(len(self.vectors)) - first
        middles = (passages_before + 0.5) / sizes
        return middles.astype(np.float32)

    def story(self, number: int) -> Floats:
        """Return the passages (S, D) of a story."""
        end = self.starts[number + 1] if number + 1 < len(self) else len(self.vectors)
        return self.vectors[self.starts[number] : end]

    def __iter__(self) -> Iterator[Floats]:
        """Yield the passages (S, D) of each story."""
        for number in range(len(self)):
            yield self.story(number)

    def take(self, rows: IntArray) -> "PassageVectors":
        """Return the passages of some of the stories, in the order of the rows."""
        return PassageVectors.of([self.story(row) for row in rows.tolist()])


def matches(one: Floats, other: Floats, matching: Matching = Matching()) -> Floats:
    """Compute the weight of each pair of passages of two stories, (S, T).

    The weight is the cosine, mixed with those of neighboring pairs, times the closeness of the relative positions.

    Args:
        one: (S, D) unit vectors of a story's passages.
        other: (T, D) unit vectors of the other story's passages.
        matching: settings of matching.

    >>> matches(np.eye(2), np.eye(2), Matching(spread=0.5, support=0)).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    stories = PassageVectors(other, np.array([0]))
    return _weights(one, stories, matching)


def best_matches(weights: Floats) -> tuple[IntArray, IntArray]:
    """Find the best match of each passage of the first story, (S,), and of the second, (T,), by weights (S, T)."""
    return weights.argmax(axis=1), weights.argmax(axis=0)


def match_shares(weights: Floats) -> Floats:
    """Distribute the score of two stories over the pairs of their passages, (S, T); the sum is `match_score`.

    Each passage contributes its share to the pair with its best match, so that a pair has two shares, one or none.

    Args:
        weights: (S, T) weights from `matches`.

    >>> match_shares(np.array([[0.8, 0.4], [0.6, 0.2]])).round(2).tolist()
    [[0.4, 0.1], [0.15, 0.0]]
    """
    forth, back = best_matches(weights)
    first, second = weights.shape
    best_of_first, best_of_second = weights.max(axis=1), weights.max(axis=0)
    shares = np.zeros(weights.shape)
    shares[np.arange(first), forth] += best_of_first / (2 * first)
    shares[back, np.arange(second)] += best_of_second / (2 * second)
    return shares


def match_score(one: Floats, other: Floats, matching: Matching = Matching()) -> float:
    """Score two stories by the mean weight of the best matches of passages, averaged over both directions.

    >>> match_score(np.eye(3), np.eye(3)[:2], Matching(spread=float("inf"), support=0))
    0.8333333333333333
    """
    weights = matches(one, other, matching)
    forth = weights.max(axis=1).mean()
    back = weights.max(axis=0).mean()
    return float((forth + back) / 2)


def match_scores(one: Floats, stories: PassageVectors, matching: Matching = Matching()) -> Floats:
    """Score a story (S, D) against each of N stories, (N,), with the same result as `match_score`."""
    weights = _weights(one, stories, matching)
    best_by_story = np.maximum.reduceat(weights, stories.starts, axis=1)
    forth = best_by_story.mean(axis=0)
    best_of_passages = weights.max(axis=0)
    back = np.add.reduceat(best_of_passages, stories.starts) / stories.sizes
    scores: Floats = (forth + back) / 2
    return scores


def _weights(one: Floats, stories: PassageVectors, matching: Matching) -> Floats:
    """Compute the weights of a story's passages with all passages of N stories, (S, P)."""
    weights: Floats = one @ stories.vectors.T
    if matching.support > 0 and len(one) > 1:
        weights = _supported(weights, stories.starts, matching.support)
    if np.isfinite(matching.spread):
        weights *= _closeness(len(one), stories, matching.spread)
    return np.maximum(weights, 0, out=weights)


def _closeness(count: int, stories: PassageVectors, spread: float) -> Floats:
    """Compute the closeness of the positions of a story's S = `count` passages to those of N stories, (S, P), 0 to 1.

    A passage covers an interval of its story, which extends from 0 (beginning) to 1 (end). The distance of two passages
    is the gap between their intervals, 0 if these overlap. The only passage of a short text thus has distance 0 to
    every passage.
    """
    middles = (np.arange(count, dtype=np.float32) + 0.5) / count
    half_intervals = 0.5 / stories.sizes + 0.5 / count  # half of a passage of each story, plus half of one of this
    gaps = np.abs(middles[:, None] - stories.positions)
    gaps -= np.repeat(half_intervals, stories.sizes).astype(np.float32)
    np.maximum(gaps, 0, out=gaps)
    gaps *= gaps
    gaps *= -0.5 / spread**2
    closeness: Floats = np.exp(gaps, out=gaps)
    return closeness


def _supported(cosines: Floats, starts: IntArray, share: float) -> Floats:
    """Mix each cosine (S, P) with the mean of its diagonal neighbors, as far as they are within both stories.

    S is at least 2; a pair without neighbors is unchanged.
    """
    is_first = np.zeros(cosines.shape[1], dtype=bool)
    is_first[starts] = True
    has_before = ~is_first
    has_after = ~np.roll(is_first, -1)  # roll puts the first passage of all after the last, so that the last has none
    has_both = has_before & has_after
    has_any = has_before | has_after
    only_before, only_after = share * has_before, share * has_after
    weight_before = np.where(has_both, share / 2, only_before).astype(cosines.dtype)
    weight_after = np.where(has_both, share / 2, only_after).astype(cosines.dtype)
    own_weight = (1 - share * has_any).astype(cosines.dtype)
    mixed: Floats = cosines * own_weight
    mixed[1:-1, 1:] += cosines[:-2, :-1] * weight_before[1:]
    mixed[1:-1, :-1] += cosines[2:, 1:] * weight_after[:-1]
    # In the first row there is no passage before, in the last row none after.
    mixed[0] = cosines[0] * (1 - only_after)
    mixed[0, :-1] += cosines[1, 1:] * only_after[:-1]
    mixed[-1] = cosines[-1] * (1 - only_before)
    mixed[-1, 1:] += cosines[-2, :-1] * only_before[1:]
    return mixed
