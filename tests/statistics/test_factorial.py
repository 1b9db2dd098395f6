"""Variance components of stories in a factorial design, against designs whose components are known."""

import numpy as np
import pytest

from narrlit.statistics import factorial
from narrlit.statistics.factorial import VARIANCE_COMPONENTS, Design, variance_shares

PLOTS, WORLDS, DIMENSION = 20, 8, 400


def similarities_of(plot, world, length, rest, mean=2.0, seed=0):
    """Products of vectors made of parts with these variances, and their design."""
    generator = np.random.default_rng(seed)

    def part(rows, variance):
        return generator.normal(size=(rows, DIMENSION)) * np.sqrt(variance / DIMENSION)

    plots = np.repeat(np.arange(PLOTS), WORLDS)
    worlds = np.tile(np.arange(WORLDS), PLOTS)
    lengths = generator.integers(80, 140, size=PLOTS * WORLDS)
    logs = np.log(lengths)
    standard = (logs - logs.mean()) / logs.std()
    vectors = part(1, mean) + part(PLOTS, plot)[plots] + part(WORLDS, world)[worlds]
    vectors = vectors + standard[:, None] * part(1, length) + part(PLOTS * WORLDS, rest)
    return vectors @ vectors.T, Design(plots, worlds, lengths)


def test_shares_match_the_variances_of_the_effects():
    shares = variance_shares(*similarities_of(plot=0.5, world=0.3, length=0.05, rest=0.15))
    assert list(shares) == list(VARIANCE_COMPONENTS)

    found = [share.value for share in shares.values()]
    assert sum(found) == pytest.approx(1)
    assert found == pytest.approx([0.5, 0.3, 0.05, 0.15], abs=0.06)  # products of random parts are not quite 0
    for share, true in zip(shares.values(), (0.5, 0.3, 0.05, 0.15), strict=True):
        assert share.low - 0.02 < true < share.high + 0.02


def test_plot_and_world_are_distinguished():
    similarities, design = similarities_of(plot=0.6, world=0.1, length=0.0, rest=0.3)
    shares = variance_shares(similarities, design)
    turned = variance_shares(similarities, Design(design.worlds, design.plots, design.lengths))

    assert shares["plot"].value > 0.5
    assert shares["world"].value < 0.2
    assert turned["world"].value == pytest.approx(shares["plot"].value, abs=1e-6)


def test_the_common_mean_has_no_share():
    parts = {"plot": 0.5, "world": 0.3, "length": 0.0, "rest": 0.2}
    near, far = (variance_shares(*similarities_of(**parts, mean=mean))["plot"].value for mean in (0.0, 9.0))
    assert near == pytest.approx(far, abs=0.08)


@pytest.mark.parametrize(("plots", "worlds"), [(20, 2), (20, 3), (3, 8), (2, 2)])
def test_fewer_than_four_plots_or_worlds_give_no_interval(plots, worlds):
    similarities, design = similarities_of(plot=0.2, world=0.3, length=0.0, rest=0.5)
    few = (design.plots < plots) & (design.worlds < worlds)
    design = Design(design.plots[few], design.worlds[few], design.lengths[few])
    shares = variance_shares(similarities[np.ix_(few, few)], design)

    assert all(np.isnan([share.low, share.high]).all() for share in shares.values())
    assert {share.method for share in shares.values()} == {"none"}


def test_a_sample_never_draws_one_world_alone():
    # Four worlds are drawn alike in 1 of 64 samples; the share of plots would then count as 0.
    generator = np.random.default_rng(0)
    for _ in range(500):
        assert np.count_nonzero(factorial._drawn(4, generator)) > 1
    similarities, design = similarities_of(plot=0.5, world=0.1, length=0.0, rest=0.4)
    few = design.worlds < 4
    design = Design(design.plots[few], design.worlds[few], design.lengths[few])
    assert variance_shares(similarities[np.ix_(few, few)], design)["plot"].low > 0.2


def test_few_worlds_give_a_wide_interval():
    similarities, design = similarities_of(plot=0.5, world=0.3, length=0.0, rest=0.2)
    few = design.worlds < 4
    design_of_few = Design(design.plots[few], design.worlds[few], design.lengths[few])
    part = variance_shares(similarities[np.ix_(few, few)], design_of_few)
    whole = variance_shares(similarities, design)

    assert part["world"].high - part["world"].low > whole["world"].high - whole["world"].low


def shares_by_hand(similarities, design, plots_drawn, worlds_drawn):
    """The same regression, pair by pair: each counts as often as its plots and worlds were drawn."""
    plots, worlds = design.plots, design.worlds
    logs = np.log(design.lengths)
    standard = (logs - logs.mean()) / logs.std()
    rows, values = [], []
    for second in range(len(design)):
        for first in range(second):
            weight = 1.0
            for factor, drawn in ((plots, plots_drawn), (worlds, worlds_drawn)):
                weight *= np.prod([drawn[value] for value in {factor[first], factor[second]}])
            same_plot, same_world = plots[first] == plots[second], worlds[first] == worlds[second]
            row = np.array([1, same_plot, same_world, standard[first] * standard[second]], dtype=float)
            rows.append(row * np.sqrt(weight))
            values.append(similarities[first, second] * np.sqrt(weight))
    mean, plot, world, length = np.linalg.lstsq(np.array(rows), np.array(values), rcond=1e-10)[0]
    own = np.average(np.diag(similarities), weights=plots_drawn[plots] * worlds_drawn[worlds])
    return np.array([plot, world, length, own - mean - plot - world - length]) / (own - mean)


def test_shares_and_intervals_agree_with_a_regression_pair_by_pair(monkeypatch):
    monkeypatch.setattr(factorial, "SAMPLES", 20)
    similarities, design = similarities_of(plot=0.5, world=0.3, length=0.05, rest=0.15)
    few = (design.plots < 6) & (design.worlds < 4)
    similarities = similarities[np.ix_(few, few)]
    design = Design(design.plots[few], design.worlds[few], design.lengths[few])
    shares = variance_shares(similarities, design, seed=5)

    generator = np.random.default_rng(5)
    samples = []
    for _ in range(20):
        plots = np.bincount(generator.integers(6, size=6), minlength=6)
        worlds = np.bincount(generator.integers(4, size=4), minlength=4)
        samples.append(shares_by_hand(similarities, design, plots, worlds))
    lows, highs = np.percentile(samples, (2.5, 97.5), axis=0)
    # The normal equations square the condition number, and lose about half of the digits.
    assert [share.value for share in shares.values()] == pytest.approx(
        shares_by_hand(similarities, design, np.ones(6), np.ones(4)), abs=1e-6
    )
    assert [share.low for share in shares.values()] == pytest.approx(lows, abs=1e-6)
    assert [share.high for share in shares.values()] == pytest.approx(highs, abs=1e-6)
