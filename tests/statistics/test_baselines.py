import random
import string
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from narrlit.data.readers import read_triples
from narrlit.statistics.baselines import BASELINES

DATA = Path(__file__).parents[2].parent / "shared/data/nsnrl"
SYNTHETIC = "synthetic/synthetic_data_for_classification_830of1900.jsonl"


def made_up(n):
    rng = random.Random(0)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 6))) for _ in range(40)]
    texts = [" ".join(rng.choices(words, k=12)) for _ in range(3 * n)]
    return [tuple(texts[i : i + 3]) for i in range(0, 3 * n, 3)]


def accuracy(name, file):
    triples = read_triples(DATA / file)
    scores = BASELINES[name](triples.texts())
    labels = [triple.a_is_closer for triple in triples]
    return np.mean((scores[:, 0] > scores[:, 1]) == labels)


@pytest.mark.parametrize("name", BASELINES)
def test_scores_belong_to_their_triples(name):
    triples = made_up(20)
    scores = BASELINES[name](triples)
    assert scores.shape == (20, 2)
    assert scores.dtype == np.float64
    assert BASELINES[name](triples[::-1]) == pytest.approx(scores[::-1])
    assert (BASELINES[name](triples) == scores).all()
    assert len(BASELINES[name]([])) == 0


@pytest.mark.parametrize("name", ["jaccard", "tfidf", "bm25"])
def test_word_overlap_scores_the_candidate_with_common_words_higher(name):
    [(a, b)] = BASELINES[name]([("The king dies.", "a KING who\ndies.", "ships sail west")])
    assert a > 0 == b
    [(a, b)] = BASELINES[name]([("the king dies", "the king dies", "the king dies")])
    assert a == b > 0
    assert name == "bm25" or a == pytest.approx(1)
    assert BASELINES[name]([("!", "?", "...")]).tolist() == [[0.0, 0.0]]


def test_random_is_a_fair_coin_without_ties():
    scores = BASELINES["random"](made_up(1000))
    a, b = scores.T

    assert (a != b).all()
    assert (a.astype(np.float32) != b.astype(np.float32)).all()
    assert (a + b == 1).all()
    assert 440 < (a > b).sum() < 560
    assert len(set(a)) > 950


def test_random_depends_only_on_the_texts():
    first, second = made_up(2)
    [alone], [_, among] = BASELINES["random"]([second]), BASELINES["random"]([first, second])
    assert (alone == among).all()
    # The same throw in any process: a value written down, not one from a salted hash.
    assert BASELINES["random"]([("x", "y", "z")])[0][0] == pytest.approx(0.34836626052856445)

    joined = [("a", "b c", "d"), ("a b", "c", "d"), ("a", "b", "c d"), ("\ud800", "a", "b")]
    assert len(set(BASELINES["random"](joined)[:, 0])) == 4


def test_jaccard_uses_the_words_of_the_organizers():
    """`set(text.lower().split())`: punctuation belongs to words."""
    assert BASELINES["jaccard"]([("Don't go!", "DON'T go", "don t go!")]).tolist() == [[1 / 3, 1 / 4]]


def test_tfidf_matches_its_formula_over_all_texts_of_the_file():
    triples = [("aa bb", "aa cc", "bb dd"), ("aa bb", "aa cc cc", "ee")]
    stories = [text for triple in triples for text in triple]
    frequency = Counter(word for text in stories for word in set(text.split()))

    def vector(text):
        weights = {
            w: (1 + np.log(n)) * (np.log((1 + len(stories)) / (1 + frequency[w])) + 1)
            for w, n in Counter(text.split()).items()
        }
        norm = np.sqrt(sum(x * x for x in weights.values()))
        return {word: x / norm for word, x in weights.items()}

    def cosine(x, y):
        return sum(weight * vector(y).get(word, 0.0) for word, weight in vector(x).items())

    expected = [(cosine(anchor, a), cosine(anchor, b)) for anchor, a, b in triples]

    for pair, wanted in zip(BASELINES["tfidf"](triples), expected, strict=True):
        assert tuple(pair) == pytest.approx(wanted)


@pytest.mark.skipif(not DATA.is_dir(), reason="the task's data is not here")
@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("jaccard", "dev/dev_track_a.jsonl", 0.45),
        ("tfidf", "dev/dev_track_a.jsonl", 0.53),
        ("bm25", "dev/dev_track_a.jsonl", 0.535),
        ("longer", "dev/dev_track_a.jsonl", 0.585),
        ("random", "dev/dev_track_a.jsonl", 0.49),
        ("jaccard", SYNTHETIC, 0.976),
    ],
)
def test_baselines_have_the_known_accuracies_on_the_tasks_data(name, file, expected):
    assert accuracy(name, file) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("name", ["jaccard", "tfidf"])
def test_decomposed_words_are_the_same_words(name):
    triple = ("Der König weinte.", "Der König von Thule", "Ein Fuchs lief.")
    mixed = (triple[0], unicodedata.normalize("NFD", triple[1]), triple[2])
    assert BASELINES[name]([mixed]) == pytest.approx(BASELINES[name]([triple]), abs=1e-12)
