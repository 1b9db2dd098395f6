"""What similarities of stories in a factorial design are made of: plot, world, length and the rest.

Each plot is told in each world. If a story's vector is the sum of a mean, a part of its plot, a part of its world, a
part that grows with its length and a rest, all independent of each other, then the mean product of two stories is the
sum of the variances of the parts that they share. So the variances are coefficients of a regression of the
similarities of pairs.

Letters in shapes: N stories, M pairs of stories.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from narrlit.data.schema import Floats, IntArray

SAMPLES = 1000
COMPONENTS = ("plot", "world", "length", "rest")


@dataclass(frozen=True, eq=False)
class Design:
    """N stories of a factorial design.

    Attributes:
        plots: (N,) number of each story's plot.
        worlds: (N,) of its world.
        lengths: (N,) in words.
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


@dataclass(frozen=True)
class Share:
    """Share of the variance of stories, with its 95 % interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        """The share with its interval, in percent."""
        return f"{100 * self.share:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def variance_shares(similarities: Floats, design: Design, seed: int = 0) -> dict[str, Share]:
    """Divide what distinguishes stories into the shares of plot, world, length and the rest.

    Args:
        similarities: (N, N) of the stories, symmetric; on the diagonal those of each story with itself.
        design: their plots, worlds and lengths.
        seed: of the bootstrap over plots and worlds.

    Returns:
        Shares by `plot`, `world`, `length` and `rest`, which add up to 1. An interval is of 1,000 samples of plots and
        of worlds, drawn with replacement.

    >>> plots, worlds = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    >>> vectors = np.hstack([np.eye(6)[plots], np.eye(4)[worlds]])
    >>> shares = variance_shares(vectors @ vectors.T, Design(plots, worlds, 90 + worlds + plots))
    >>> round(shares["plot"].share, 2), round(shares["world"].share, 2)
    (0.5, 0.5)
    """
    pairs = _Pairs.of(similarities, design)
    estimates = pairs.shares(_Sample.of_all(design))
    generator = np.random.default_rng(seed)
    resampled = [pairs.shares(_Sample.draw(design, generator)) for _ in range(SAMPLES)]
    lows, highs = np.nanpercentile(resampled, (2.5, 97.5), axis=0)
    shares = {}
    for name, share, low, high in zip(COMPONENTS, estimates, lows, highs, strict=True):
        shares[name] = Share(float(share), float(low), float(high))
    return shares


class _Sample(NamedTuple):
    """How often each plot and each world was drawn."""

    plots: Floats
    worlds: Floats

    @classmethod
    def of_all(cls, design: Design) -> "_Sample":
        """Take each plot and each world once."""
        return cls(np.ones(design.num_plots), np.ones(design.num_worlds))

    @classmethod
    def draw(cls, design: Design, generator: np.random.Generator) -> "_Sample":
        """Draw plots and worlds with replacement."""
        return cls(_drawn(design.num_plots, generator), _drawn(design.num_worlds, generator))


def _drawn(count: int, generator: np.random.Generator) -> Floats:
    """Draw as often as there are values, with replacement; returns how often each was drawn (count,)."""
    drawn = generator.integers(count, size=count)
    return np.bincount(drawn, minlength=count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The M pairs of stories, as rows of a regression.

    Attributes:
        predictors: (M, 4) one, same plot, same world, product of standardized log lengths.
        similarities: (M,).
        first: (M,) stories.
        second: (M,) stories.
        design: of the stories.
        own: (N,) similarity of each story with itself.
    """

    predictors: Floats
    similarities: Floats
    first: IntArray
    second: IntArray
    design: Design
    own: Floats

    @classmethod
    def of(cls, similarities: Floats, design: Design) -> "_Pairs":
        first, second = np.triu_indices(len(design), k=1)
        same_plot = design.plots[first] == design.plots[second]
        same_world = design.worlds[first] == design.worlds[second]
        logs = np.log(design.lengths)
        standard = (logs - logs.mean()) / max(float(logs.std()), 1e-12)
        lengths = standard[first] * standard[second]
        predictors = np.column_stack([np.ones(len(first)), same_plot, same_world, lengths]).astype(np.float64)
        return cls(predictors, similarities[first, second], first, second, design, np.diag(similarities))

    def shares(self, sample: _Sample) -> Floats:
        """Estimate the shares (4,) from a sample of plots and worlds."""
        plots, worlds = self.design.plots, self.design.worlds
        # Least squares with weights: both sides times the root of the weights.
        root = np.sqrt(self._weights(plots, sample.plots) * self._weights(worlds, sample.worlds))
        coefficients, *_ = np.linalg.lstsq(self.predictors * root[:, None], self.similarities * root, rcond=None)
        mean, plot, world, length = coefficients
        weights_of_stories = sample.plots[plots] * sample.worlds[worlds]
        total = np.average(self.own, weights=weights_of_stories) - mean
        parts = np.array([plot, world, length, total - plot - world - length])
        shares: Floats = parts / total
        return shares

    def _weights(self, factor: IntArray, drawn: Floats) -> Floats:
        """Weigh pairs by a factor: how often both of its values were drawn, or the one that they share."""
        first, second = factor[self.first], factor[self.second]
        weights: Floats = np.where(first == second, drawn[first], drawn[first] * drawn[second])
        return weights
