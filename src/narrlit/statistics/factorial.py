"""Variance components of similarities in a factorial design: plot, world, length and rest.

Each plot is told in each world. Assume that a story's vector is the sum of a mean, effects of its plot, its world and
its length, and a rest, all independent. Then the expected product of two vectors is the sum of the variances of the
effects that the stories share, and the variances are the coefficients of a regression on pairs of stories.

Letters in shapes: N stories, M pairs of stories.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from narrlit.data.schema import Floats, IntArray
from narrlit.statistics.estimates import Estimate

SAMPLES = 1000
FEWEST_GROUPS = 4
"""Smallest number of plots, and of worlds, for which there is an interval."""
RANK_TOLERANCE = 1e-10
"""Relative size of singular values that count as zero, such as that of lengths if all are equal."""
VARIANCE_COMPONENTS = ("plot", "world", "length", "rest")


@dataclass(frozen=True, eq=False)
class Design:
    """N stories of a factorial design.

    Attributes:
        plots: (N,) number of each story's plot.
        worlds: (N,) number of each story's world.
        lengths: (N,) length of each story in words.
    """

    plots: IntArray
    worlds: IntArray
    lengths: IntArray

    def __len__(self) -> int:
        """Count the stories."""
        return len(self.plots)

    @property
    def num_plots(self) -> int:
        """Number of plots."""
        return int(self.plots.max()) + 1

    @property
    def num_worlds(self) -> int:
        """Number of worlds."""
        return int(self.worlds.max()) + 1


def variance_shares(similarities: Floats, design: Design, seed: int = 0) -> dict[str, Estimate]:
    """Estimate the shares of plot, world, length and rest in the variance of stories.

    Args:
        similarities: (N, N) similarities of the stories, symmetric, with those of each story with itself.
        design: plots, worlds and lengths of the stories.
        seed: seed of the bootstrap over plots and worlds.

    Returns:
        Shares of `plot`, `world`, `length` and `rest`, which sum to 1; n is the number of stories. Intervals are from
        1,000 bootstrap samples of plots and worlds; with fewer than FEWEST_GROUPS plots or worlds there are none.

    Source: Owen (2007), pigeonhole bootstrap of crossed factors, which is conservative.

    >>> plots, worlds = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    >>> vectors = np.hstack([np.eye(6)[plots], np.eye(4)[worlds]])
    >>> shares = variance_shares(vectors @ vectors.T, Design(plots, worlds, 90 + worlds + plots))
    >>> round(shares["plot"].value, 2), round(shares["world"].value, 2)
    (0.5, 0.5)
    """
    pairs = _Pairs.of(similarities, design)
    shares = pairs.shares(_Sample.of_all(design)).tolist()
    if min(design.num_plots, design.num_worlds) < FEWEST_GROUPS:
        return {
            name: Estimate(share, math.nan, math.nan, len(design))
            for name, share in zip(VARIANCE_COMPONENTS, shares, strict=True)
        }
    generator = np.random.default_rng(seed)
    resampled = [pairs.shares(_Sample.draw(design, generator)) for _ in range(SAMPLES)]
    ends = np.nanpercentile(resampled, (2.5, 97.5), axis=0).T.tolist()
    estimates = {}
    for name, share, (low, high) in zip(VARIANCE_COMPONENTS, shares, ends, strict=True):
        estimates[name] = Estimate(share, low, high, len(design), "bootstrap")
    return estimates


class _Sample(NamedTuple):
    """Bootstrap sample: number of times that each plot and each world was drawn."""

    plots: Floats
    worlds: Floats

    @classmethod
    def of_all(cls, design: Design) -> "_Sample":
        """Use each plot and each world once."""
        return cls(np.ones(design.num_plots), np.ones(design.num_worlds))

    @classmethod
    def draw(cls, design: Design, generator: np.random.Generator) -> "_Sample":
        """Draw plots and worlds with replacement."""
        return cls(_drawn(design.num_plots, generator), _drawn(design.num_worlds, generator))


def _drawn(count: int, generator: np.random.Generator) -> Floats:
    """Draw `count` values with replacement, and count how often each was drawn, (count,).

    At least two different values are drawn: without pairs of different worlds, for example, the similarity within a
    plot could not be estimated.
    """
    while True:
        counts = np.bincount(generator.integers(count, size=count), minlength=count)
        if np.count_nonzero(counts) > 1:
            return counts.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The M pairs of stories, as observations of a regression.

    Attributes:
        predictors: (M, 4) constant, same plot, same world, product of standardized log lengths.
        similarities: (M,) similarity of each pair.
        first: (M,) first story of each pair.
        second: (M,) second story of each pair.
        design: design of the stories.
        self_similarities: (N,) similarity of each story with itself.
    """

    predictors: Floats
    similarities: Floats
    first: IntArray
    second: IntArray
    design: Design
    self_similarities: Floats

    @classmethod
    def of(cls, similarities: Floats, design: Design) -> "_Pairs":
        """Pair each story with the stories after it."""
        first, second = np.triu_indices(len(design), k=1)
        constant = np.ones(len(first))
        same_plot = design.plots[first] == design.plots[second]
        same_world = design.worlds[first] == design.worlds[second]
        log_lengths = _standardized(np.log(design.lengths))
        length_product = log_lengths[first] * log_lengths[second]
        predictors = np.column_stack([constant, same_plot, same_world, length_product]).astype(np.float64)
        return cls(predictors, similarities[first, second], first, second, design, np.diag(similarities))

    def shares(self, sample: _Sample) -> Floats:
        """Estimate the shares (4,) from a sample of plots and worlds."""
        plots, worlds = self.design.plots, self.design.worlds
        pair_weights = self._weights(plots, sample.plots) * self._weights(worlds, sample.worlds)
        # Weighted least squares by the normal equations: four of them, however many pairs there are.
        weighted = self.predictors * pair_weights[:, None]
        gram = self.predictors.T @ weighted
        moments = weighted.T @ self.similarities
        coefficients, *_ = np.linalg.lstsq(gram, moments, rcond=RANK_TOLERANCE)
        mean, plot, world, length = coefficients
        story_weights = sample.plots[plots] * sample.worlds[worlds]
        total = np.average(self.self_similarities, weights=story_weights) - mean
        rest = total - plot - world - length
        variances = np.array([plot, world, length, rest])
        shares: Floats = variances / total
        return shares

    def _weights(self, factor: IntArray, drawn: Floats) -> Floats:
        """Compute the weights of pairs by a factor: the product of the counts of its two values, or their one count."""
        first, second = factor[self.first], factor[self.second]
        weights: Floats = np.where(first == second, drawn[first], drawn[first] * drawn[second])
        return weights


def _standardized(values: Floats) -> Floats:
    """Subtract the mean and divide by the standard deviation; equal values become 0."""
    standard: Floats = (values - values.mean()) / max(float(values.std()), 1e-12)
    return standard
