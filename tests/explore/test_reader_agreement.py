"""Krippendorff's alpha of readers, with its interval."""

import numpy as np
import pytest

from narrlit.explore.pair_decisions import PairDecision, StoryPair
from narrlit.explore.reader_agreement import LABELS, nominal_alphas, reader_agreement

agreement = pytest.importorskip("nltk.metrics.agreement")


def decisions_of(**labels):
    """Decisions of readers on the pairs (story, 0), (story, 1), ...; None: not decided."""
    made = []
    for reader, values in labels.items():
        for number, value in enumerate(values):
            if value is not None:
                made.append(PairDecision(StoryPair.of("story", str(number)), value, reader))
    return made


def random_labels(count, error, seed=0):
    """Labels of two readers who differ in a share of the pairs."""
    rng = np.random.default_rng(seed)
    first = rng.choice(LABELS[:2], count)
    flipped = np.where(first == "same", "different", "same")
    return first.tolist(), np.where(rng.random(count) < error, flipped, first).tolist()


def test_perfect_agreement_is_one_and_chance_about_zero():
    first, second = random_labels(400, 0.0)
    assert reader_agreement(decisions_of(anna=first, ben=second)).alpha == 1

    first, second = random_labels(400, 0.5)
    result = reader_agreement(decisions_of(anna=first, ben=second))
    assert abs(result.alpha) < 0.15
    assert result.low < 0 < result.high


def test_alpha_of_a_worked_example():
    """Two readers, eight pairs with two differing: 1 - 15 * 4 / (2 * 8 * 8) = 17 / 32."""
    first = ["same", "same", "same", "same", "different", "different", "different", "different"]
    second = ["same", "same", "same", "different", "same", "different", "different", "different"]
    result = reader_agreement(decisions_of(anna=first, ben=second))

    assert result.alpha == pytest.approx(17 / 32)
    assert (result.pairs, result.equal) == (8, 6)
    assert result.readers == ["anna", "ben"]


def test_pairs_of_one_reader_do_not_count():
    first = ["same", "different", "same", "different"]
    result = reader_agreement(decisions_of(anna=first, ben=[*first[:3], None], cleo=[None] * 4))

    assert result.pairs == 3
    assert result.alpha == 1


def test_alpha_is_undefined_without_variation_or_a_second_reader():
    alike = reader_agreement(decisions_of(anna=["same"] * 3, ben=["same"] * 3))
    alone = reader_agreement(decisions_of(anna=["same", "different"]))

    assert (alike.alpha, alike.low, alike.high, alike.pairs) == (None, None, None, 3)
    assert (alone.alpha, alone.pairs) == (None, 0)
    assert "undefined where all decisions are equal" in str(alike)
    assert "no pair was decided by two readers" in str(alone)
    assert reader_agreement([]).record["readers"] == []


def test_resamples_are_compared_as_the_library_does():
    """With three readers, some of whom left pairs out."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, size=(30, 3))
    is_decided = rng.random((30, 3)) < 0.8
    is_decided[:, :2] = True
    counts = np.zeros((30, 3), dtype=np.int64)
    for pair, reader in np.argwhere(is_decided):
        counts[pair, labels[pair, reader]] += 1
    weights = rng.multinomial(30, np.full(30, 1 / 30), size=5)
    expected = []
    for row in weights:
        drawn = np.repeat(np.arange(30), row)
        task = agreement.AnnotationTask(
            [
                (reader, item, labels[pair, reader])
                for item, pair in enumerate(drawn)
                for reader in range(3)
                if is_decided[pair, reader]
            ]
        )
        expected.append(task.alpha())

    assert nominal_alphas(counts, weights) == pytest.approx(expected)


@pytest.mark.long
def test_the_interval_covers_the_alpha_of_the_population():
    """Two readers who differ in a fifth of the pairs: alpha is 1 - 0.2 / 0.5 = 0.6."""
    covered = 0
    for seed in range(60):
        first, second = random_labels(80, 0.2, seed)
        result = reader_agreement(decisions_of(anna=first, ben=second))
        covered += result.low <= 0.6 <= result.high
    assert covered >= 52


def test_the_table_shows_where_readers_differ():
    table = reader_agreement(decisions_of(anna=["same", "same"], ben=["same", "unsure"])).table()

    assert table.to_dict("records") == [
        {"id_a": "0", "id_b": "story", "anna": "same", "ben": "same", "equal": True},
        {"id_a": "1", "id_b": "story", "anna": "same", "ben": "unsure", "equal": False},
    ]
