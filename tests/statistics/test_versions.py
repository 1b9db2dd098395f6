"""Versions of stories, strata and permutations within them, against plain loops."""

import numpy as np
import pytest

from narrlit.statistics.versions import Strata, Versions, permuted_figures

VALUES = ["a", "b", None, "a", "c", "b", "a", None]


def best_rank(ranks, values, row):
    """The best rank, for this story, of another with the same value."""
    return min(ranks[row, other] for other in range(len(values)) if other != row and values[other] == values[row])


def random_ranks(count, seed=0):
    """Ranks of each story for each, the story itself last."""
    scores = np.random.default_rng(seed).normal(size=(count, count))
    scores[np.diag_indices(count)] = -np.inf
    return (-scores).argsort(axis=1).argsort(axis=1) + 1


def test_versions_are_the_other_stories_with_the_same_known_value():
    versions = Versions(VALUES)
    assert versions.queries.tolist() == [0, 1, 3, 5, 6]  # 4 is alone, 2 and 7 have no value
    assert [versions.partners(row).tolist() for row in range(8)] == [[3, 6], [5], [], [0, 6], [], [1], [0, 3], []]
    assert versions.groups.tolist() == [0, 1, 0, 1, 0]


def test_the_best_rank_is_that_of_the_nearest_version():
    versions = Versions(VALUES)
    ranks = random_ranks(8)
    expected = [best_rank(ranks, VALUES, row) for row in (0, 1, 3, 5, 6)]
    assert versions.best_ranks(ranks).tolist() == expected


def test_a_permutation_is_equivalent_to_shuffling_the_column():
    versions = Versions(VALUES)
    ranks = random_ranks(8)
    rows = np.array([3, 6, 2, 5, 0, 1, 4, 7])
    shuffled = [None] * 8
    for place, row in enumerate(rows):
        shuffled[row] = VALUES[place]
    expected = Versions(shuffled).best_ranks(ranks)

    assert sorted(versions.best_ranks(ranks, rows)) == sorted(expected)
    assert sorted(versions.best_ranks(ranks, rows)) != sorted(versions.best_ranks(ranks))


def test_permutations_stay_within_strata_and_do_not_move_unknown_values():
    books = ["x", "y", "x", "y", "x", None, None, "y"]
    versions = Versions(VALUES)
    strata = Strata.of_values("book", books)
    generator = np.random.default_rng(0)
    drawn = np.array([strata.permutation(versions, generator) for _ in range(200)])
    for row in range(8):
        stands_in = set(drawn[:, row].tolist())
        known = [r for r in range(8) if books[r] == books[row] and VALUES[r] is not None]
        assert stands_in == (set(known) if VALUES[row] is not None else {row})

    assert all(sorted(rows) == list(range(8)) for rows in drawn.tolist())


def test_stories_in_a_stratum_with_several_values_are_movable():
    versions = Versions(["a", "b", "a", "a", None, "c"])
    assert Strata.of_values("book", ["x", "x", "y", "y", "z", "z"]).movable(versions) == 2
    assert Strata.of_values("book", ["x"] * 6).movable(versions) == 5


def test_strata_of_lengths_are_ordered_and_of_similar_size():
    texts = ["word " * number for number in (9, 1, 5, 3, 7, 2, 8, 4, 6, 10, 12)]
    numbers = Strata.of_lengths(texts, 5).numbers
    assert sorted(np.bincount(numbers).tolist()) == [2, 2, 2, 2, 3]
    assert numbers[1] == 0
    assert numbers[10] == 4


def collection(seed=0):
    """Similarities of 60 stories of 20 values: stories of a book are alike, versions are not."""
    generator = np.random.default_rng(seed)
    values = [number % 20 for number in range(60)]
    books = [value % 6 for value in values]
    scores = generator.normal(size=(60, 60))
    for i in range(60):
        scores[i] += [5 * (books[i] == books[j]) for j in range(60)]
        scores[i, i] = -np.inf
    return scores, values, books


def rank_all(scores):
    return (-scores).argsort(axis=1, kind="stable").argsort(axis=1) + 1


def test_versions_found_by_their_book_are_no_better_than_values_permuted_within_books():
    scores, values, books = collection()
    versions = Versions(values)
    everywhere = Strata.of_values("all", ["same"] * 60)
    anywhere, to_real = permuted_figures(rank_all(scores), versions, everywhere)["recall@1"]
    within, within_to_real = permuted_figures(rank_all(scores), versions, Strata.of_values("book", books))["recall@1"]
    observed = (versions.best_ranks(rank_all(scores)) == 1).mean()

    assert to_real.p < 0.01  # seems to find versions
    assert within_to_real.p > 0.2  # yet finds books
    assert anywhere.high < observed < within.high

    for i in range(60):  # now versions are alike besides
        for j in range(60):
            scores[i, j] += 3 * (values[i] == values[j])

    _, to_real = permuted_figures(rank_all(scores), versions, Strata.of_values("book", books))["recall@1"]
    assert to_real.p == 0.001


def test_metrics_of_permutations_match_plain_loops():
    scores, values, books = collection(1)
    ranks = rank_all(scores)
    versions = Versions(values)
    strata = Strata.of_values("book", books)
    found = permuted_figures(ranks, versions, strata, samples=40, seed=5)
    generator = np.random.default_rng(5)
    recalls, reciprocals = [], []
    for _ in range(40):
        rows = strata.permutation(versions, generator)
        shuffled = np.empty(60, dtype=int)
        shuffled[rows] = values
        best = np.array([best_rank(ranks, shuffled, row) for row in range(60)])
        recalls.append((best == 1).mean())
        reciprocals.append((1 / best).mean())

    best = versions.best_ranks(ranks)
    for name, drawn, observed in (("recall@1", recalls, (best == 1).mean()), ("MRR", reciprocals, (1 / best).mean())):
        figure, to_real = found[name]
        low, high = np.quantile(drawn, (0.025, 0.975))
        at_least = sum(value >= observed - 1e-12 for value in drawn)
        assert (figure.value, figure.low, figure.high) == pytest.approx((np.mean(drawn), low, high))
        assert figure.n == to_real.n == 60
        changed = (np.mean(drawn) - observed, low - observed, high - observed)
        assert (to_real.value, to_real.low, to_real.high) == pytest.approx(changed)
        assert to_real.p == (at_least + 1) / 41


def test_nothing_is_movable_if_each_stratum_has_one_value():
    versions, strata = Versions(VALUES), Strata.of_values("type", VALUES)
    figure, to_real = permuted_figures(random_ranks(8), versions, strata, samples=20)["MRR"]

    assert strata.movable(versions) == 0
    assert to_real.p == 1.0
    assert to_real.value == pytest.approx(0)
    assert figure.low == figure.high
