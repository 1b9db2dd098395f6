"""Variance components of stories in a factorial design, against designs whose components are known."""

import numpy as np
import pytest

from narrlit.metrics.factorial import COMPONENTS, Design, variance_shares

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
    assert list(shares) == list(COMPONENTS)

    found = [share.share for share in shares.values()]
    assert sum(found) == pytest.approx(1)
    assert found == pytest.approx([0.5, 0.3, 0.05, 0.15], abs=0.06)  # products of random parts are not quite 0
    for share, true in zip(shares.values(), (0.5, 0.3, 0.05, 0.15), strict=True):
        assert share.low - 0.02 < true < share.high + 0.02


def test_plot_and_world_are_distinguished():
    similarities, design = similarities_of(plot=0.6, world=0.1, length=0.0, rest=0.3)
    shares = variance_shares(similarities, design)
    turned = variance_shares(similarities, Design(design.worlds, design.plots, design.lengths))

    assert shares["plot"].share > 0.5
    assert shares["world"].share < 0.2
    assert turned["world"].share == pytest.approx(shares["plot"].share, abs=1e-6)


def test_the_common_mean_has_no_share():
    parts = {"plot": 0.5, "world": 0.3, "length": 0.0, "rest": 0.2}
    near, far = (variance_shares(*similarities_of(**parts, mean=mean))["plot"].share for mean in (0.0, 9.0))
    assert near == pytest.approx(far, abs=0.08)


def test_few_worlds_give_a_wide_interval():
    similarities, design = similarities_of(plot=0.5, world=0.3, length=0.0, rest=0.2)
    few = design.worlds < 3
    design_of_few = Design(design.plots[few], design.worlds[few], design.lengths[few])
    part = variance_shares(similarities[np.ix_(few, few)], design_of_few)
    whole = variance_shares(similarities, design)

    assert part["world"].high - part["world"].low > whole["world"].high - whole["world"].low


def test_a_share_is_printed_in_percent():
    shares = variance_shares(*similarities_of(plot=1.0, world=0.0, length=0.0, rest=0.0))
    assert str(shares["plot"]).startswith(f"{100 * shares['plot'].share:.1f} % [")
