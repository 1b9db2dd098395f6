"""Calibrated probabilities that a story has the value of a column that its neighbors have.

Letters in shapes: N stories, M stories with a value, C candidates (a story with a value of one of its neighbors).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from narrlit.data.schema import IntArray
from narrlit.explore.pairs import unrelated_similarity
from narrlit.measures.collection import CollectionSimilarity, Nearest, highest

FOLDS = 10
"""Largest number of folds of the cross-validation."""


@dataclass(frozen=True, eq=False)
class LabeledNeighbors:
    """The k nearest neighbors of each of N stories among M stories with a value, itself left out.

    Attributes:
        rows: (N, k) of the neighbors among all stories, nearest first.
        similarities: (N, k).
        votes: (N, k) weights of the neighbors' votes, with the sum 1.
        strengths: (N, k) similarities above the median of unrelated stories, in units of their deviation.
    """

    rows: IntArray
    similarities: NDArray[np.float64]
    votes: NDArray[np.float64]
    strengths: NDArray[np.float64]

    @classmethod
    def of(cls, similarities: CollectionSimilarity, labeled: IntArray, k: int) -> "LabeledNeighbors":
        """Find the neighbors of all stories.

        Args:
            similarities: of N stories.
            labeled: (M,) rows of the stories with a value, in order.
            k: number of neighbors, less than M.
        """
        column_of = np.full(len(similarities), -1)
        column_of[labeled] = np.arange(len(labeled))
        blocks = []
        for block, compared in similarities.blocks():
            with_labeled = compared[:, labeled]
            own_columns = column_of[block]
            is_labeled = own_columns >= 0
            with_labeled[is_labeled, own_columns[is_labeled]] = -np.inf
            blocks.append(highest(with_labeled, k))
        nearest = Nearest.join(blocks)
        nearest_similarities = nearest.similarities.astype(np.float64)
        median, deviation = unrelated_similarity(similarities)
        strengths = (nearest_similarities - median) / max(deviation, 1e-6)
        weights = np.exp(strengths - strengths[:, :1])
        votes = weights / weights.sum(axis=1, keepdims=True)
        return cls(labeled[nearest.rows], nearest_similarities, votes, strengths)


@dataclass(frozen=True, eq=False)
class CandidateValues:
    """Values that a story may have: those of its neighbors.

    Attributes:
        stories: (C,) rows of the stories, ascending.
        codes: (C,) numbers of the values.
        features: (C, 2) sum of the votes for the value, and the strength of its nearest story.
    """

    stories: IntArray
    codes: IntArray
    features: NDArray[np.float64]

    @classmethod
    def of(cls, neighbors: LabeledNeighbors, codes: IntArray) -> "CandidateValues":
        """List the values of each story's neighbors.

        Args:
            neighbors: of N stories.
            codes: (N,) number of each story's value; -1: it has none.
        """
        stories, values, features = [], [], []
        for story, near in enumerate(codes[neighbors.rows]):
            for code in dict.fromkeys(near.tolist()):
                has_value = near == code
                votes, strengths = neighbors.votes[story, has_value], neighbors.strengths[story, has_value]
                stories.append(story)
                values.append(code)
                features.append((votes.sum(), strengths.max()))
        return cls(np.array(stories), np.array(values), np.array(features))

    def take(self, chosen: NDArray[np.bool_] | IntArray) -> "CandidateValues":
        """Return some of the candidates, by a mask (C,) or by their indices."""
        return CandidateValues(self.stories[chosen], self.codes[chosen], self.features[chosen])


@dataclass(frozen=True, eq=False)
class CalibratedCandidates:
    """Candidates of all stories with their probabilities.

    Attributes:
        candidates: C candidates.
        probabilities: (C,) that the value is right. For a story with a value they are cross-validated: neither the
            votes nor the calibration have seen it.
    """

    candidates: CandidateValues
    probabilities: NDArray[np.float64]

    def best(self) -> IntArray:
        """Indices of the most probable candidate of each story, in the order of the stories."""
        order = np.lexsort((-self.probabilities, self.candidates.stories))
        _, first = np.unique(self.candidates.stories[order], return_index=True)
        return np.asarray(order[first])


def calibrate(candidates: CandidateValues, codes: IntArray, seed: int = 0) -> CalibratedCandidates:
    """Estimate the probability of each candidate by logistic regression (Platt scaling) of its two features.

    Stories with a value are predicted by the other stories, so that their features are those of an unknown story. The
    regression of all of them gives the probabilities of stories without a value. For each story with a value, the
    regression is fitted on the other folds of a cross-validation in up to ten folds of stories.

    Args:
        candidates: C candidates of N stories.
        codes: (N,) number of each story's value; -1: it has none.
        seed: seed of the folds.

    Raises:
        ValueError: if fewer than two stories have a neighbor with the right value, or with a wrong one.
    """
    is_known = codes[candidates.stories] >= 0
    known, unknown = candidates.take(is_known), candidates.take(~is_known)
    is_right = known.codes == codes[known.stories]
    for outcome, name in ((True, "right"), (False, "wrong")):
        if len(np.unique(known.stories[is_right == outcome])) < 2:
            raise ValueError(f"fewer than two stories have a neighbor with the {name} value")
    folds = GroupKFold(min(FOLDS, len(np.unique(known.stories))), shuffle=True, random_state=seed)
    held_out = np.empty(len(known.stories))
    for others, fold in folds.split(known.features, groups=known.stories):
        held_out[fold] = _predict(known.features[others], is_right[others], known.features[fold])
    probabilities = np.empty(len(candidates.stories))
    probabilities[is_known] = held_out
    if len(unknown.stories):
        probabilities[~is_known] = _predict(known.features, is_right, unknown.features)
    return CalibratedCandidates(candidates, probabilities)


def _predict(
    known: NDArray[np.float64], is_right: NDArray[np.bool_], features: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit a logistic regression on known candidates, and predict the probabilities of others.

    Few candidates are easily separated, which would give probabilities near 0 and 1. Therefore the regression is fitted
    to smoothed targets: (r + 1) / (r + 2) for r right candidates, and 1 / (w + 2) for w wrong ones. Probabilities are
    multiplied by (r + 1) / (r + 2), the rule of succession: r right values do not exclude that the next is wrong.

    Args:
        known: (K, 2) features of known candidates.
        is_right: (K,) True for those that are right.
        features: (C, 2) features of the others.

    Returns:
        (C,) probabilities.

    Source: Platt (1999), "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
        methods".
    """
    right, wrong = int(is_right.sum()), int((~is_right).sum())
    highest_probability = (right + 1) / (right + 2)
    targets = np.where(is_right, highest_probability, 1 / (wrong + 2))
    twice = np.concatenate([known, known])  # once as right, once as wrong, with the target as weight
    outcomes = np.repeat([True, False], len(known))
    weights = np.concatenate([targets, 1 - targets])
    # By scikit-learn's tolerance, how far the fit goes depends on rounding, and with it the fifth digit.
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8))
    model.fit(twice, outcomes, logisticregression__sample_weight=weights)
    probabilities: NDArray[np.float64] = model.predict_proba(features)[:, 1] * highest_probability
    return probabilities
