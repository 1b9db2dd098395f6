"""Alignment against every possible one, and what explanations say of stories."""

import itertools

import numpy as np
import pytest

from narrlit.explore.explanation import aligned_passages, chance_level, free_passages


def unit(*shape, seed=0):
    vectors = np.random.default_rng(seed).normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def every_link(a, b, chance):
    cosines = a @ b.T - chance
    return [(i, j, cosines[i, j]) for i in range(len(a)) for j in range(len(b)) if cosines[i, j] > 0]


@pytest.mark.parametrize("seed", range(6))
def test_alignment_is_the_best_of_all(seed):
    a, b = unit(4, 3, seed=seed), unit(5, 3, seed=seed + 50)
    best = {"in order": 0.0, "free": 0.0}
    for size in range(1, 5):
        for links in itertools.combinations(every_link(a, b, 0.2), size):
            lefts, rights = [x[0] for x in links], [x[1] for x in links]
            if len(set(lefts)) == len(set(rights)) == size:
                total = sum(link[2] for link in links)
                best["free"] = max(best["free"], total)
                if sorted(rights) == [r for _, r in sorted(zip(lefts, rights, strict=True))]:
                    best["in order"] = max(best["in order"], total)
    for name, function in (("in order", aligned_passages), ("free", free_passages)):
        links = function(a, b, 0.2)
        assert sum(strength for *_, strength in links) == pytest.approx(best[name])
        assert all(strength == pytest.approx(a[i] @ b[j] - 0.2) and strength > 0 for i, j, strength in links)
    ordered = aligned_passages(a, b, 0.2)
    assert ordered == sorted(ordered)
    assert [j for _, j, _ in ordered] == sorted({j for _, j, _ in ordered})


def test_chance_rises_with_the_length_of_the_other_story():
    a, background = unit(3, 8), unit(200, 8, seed=1)
    levels = [chance_level(a, unit(n, 8, seed=2), background) for n in (1, 5, 40)]
    assert levels == sorted(levels)
    assert levels[0] < levels[1] < levels[2]
    best = (a @ background.T).max()
    assert chance_level(a, a, background, quantile=1.0) == pytest.approx(best)
