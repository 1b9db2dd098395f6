"""Words and their weights by TF-IDF and BM25: against scikit-learn and plain loops, on real stories."""

from collections import Counter
from math import log

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfVectorizer

from narrlit.data.tales import sample_tales
from narrlit.statistics.baselines import BASELINES
from narrlit.statistics.words import lexical_vectors, stop_words_of

TALES = [tale["text"] for tale in sample_tales()]
TRIPLES = [tuple(TALES[row : row + 3]) for row in range(0, 24, 3)]
GERMAN = [
    "Ein Wolf traf im Wald das Mädchen, das der Großmutter Kuchen brachte, und er war listig und hungrig.",
    "Das Mädchen brachte der Mutter einen Kuchen, und der Vater war auf dem Hof und kam erst am Abend zurück.",
]


def bm25_by_hand(query, story, stories):
    """BM25 of a story for a query, word by word."""
    words_of = CountVectorizer(stop_words="english").build_analyzer()
    documents = [words_of(text) for text in stories]
    mean_length = sum(map(len, documents)) / len(documents)
    counts, length = Counter(words_of(story)), len(words_of(story))
    score = 0.0
    for word in words_of(query):
        containing = sum(word in document for document in documents)
        if not containing:
            continue
        weight = log(1 + (len(stories) - containing + 0.5) / (containing + 0.5))
        norm = 1.2 * (1 - 0.75 + 0.75 * length / mean_length)
        score += weight * counts[word] * 2.2 / (counts[word] + norm)
    return score


def scores_of(kind, queries, stories):
    query_vectors, story_vectors = lexical_vectors(kind, queries, stories)
    return (query_vectors @ story_vectors.T).toarray()


def test_tfidf_of_triples_is_that_of_scikit_learn():
    texts = [text for triple in TRIPLES for text in triple]
    vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts).toarray()
    anchors, a, b = vectors[0::3], vectors[1::3], vectors[2::3]
    expected = np.column_stack([(anchors * a).sum(axis=1), (anchors * b).sum(axis=1)])

    np.testing.assert_allclose(BASELINES["tfidf"](TRIPLES), expected, atol=1e-9)  # sums of float64 in another order


def test_tfidf_of_retrieval_is_that_of_scikit_learn():
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    stories, queries = vectorizer.fit_transform(TALES[:16]), vectorizer.transform(TALES[16:])

    np.testing.assert_allclose(scores_of("tfidf", TALES[16:], TALES[:16]), (queries @ stories.T).toarray(), atol=1e-9)


def test_bm25_is_that_of_a_plain_loop():
    texts = [text for triple in TRIPLES for text in triple]
    expected = [[bm25_by_hand(anchor, a, texts), bm25_by_hand(anchor, b, texts)] for anchor, a, b in TRIPLES]

    np.testing.assert_allclose(BASELINES["bm25"](TRIPLES), expected, rtol=1e-9)  # sums in another order

    queries, stories = TALES[20:], TALES[:20]
    expected = [[bm25_by_hand(query, story, stories) for story in stories] for query in queries]
    np.testing.assert_allclose(scores_of("bm25", queries, stories), expected, rtol=1e-9)


def test_bm25_of_short_stories_matches_a_computation_by_hand():
    stories = ["the wolf ate the girl", "the wolf slept", "a girl in a wood, with a basket for her grandmother"]
    scores = scores_of("bm25", ["WOLF", "nothing known", "girl wood"], stories)
    weight = log(1 + 1.5 / 2.5)
    mean_length = (3 + 2 + 4) / 3  # wolf ate girl, wolf slept, girl wood basket grandmother

    assert scores[0, 1] == pytest.approx(weight * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / mean_length)))
    assert (scores[0, 2], *scores[1]) == (0, 0, 0, 0)
    assert scores[2].argmax() == 2
    assert scores[0, 1] > scores[0, 0] > 0


def test_bm25_counts_a_repeated_word_once_more_on_both_sides():
    stories = ["wolf wolf hid", "quick wolf hid", "young girl hid"]
    scores = scores_of("bm25", ["wolf", "wolf wolf"], stories)
    weight = log(1 + 1.5 / 2.5)

    # All stories are as long as their mean, so that the norm is k1 = 1.2.
    assert scores[0] == pytest.approx([weight * 2 * 2.2 / (2 + 1.2), weight * 2.2 / (1 + 1.2), 0])
    assert scores[1] == pytest.approx(2 * scores[0])


def test_stop_words_are_those_of_the_language_of_most_stories():
    assert stop_words_of(TALES) == "english"
    assert stop_words_of([*TALES[:2], GERMAN[0]]) == "english"
    assert stop_words_of([*GERMAN, TALES[0]]) is None
    assert stop_words_of(["too short to tell", "ein kurzer Satz"]) == "english"  # the default
    assert stop_words_of([]) == "english"


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_words_of_another_language_are_all_counted(kind):
    found, _ = lexical_vectors(kind, ["war"], GERMAN)  # a form of `sein`: to be

    assert found.sum() > 0
    assert "was" in ENGLISH_STOP_WORDS
    assert lexical_vectors(kind, ["was"], TALES)[0].sum() == 0


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
@pytest.mark.parametrize("stories", [[], ["!", "..."], ["it was", "and the"]])
def test_stories_without_words_are_like_none(kind, stories):
    assert scores_of(kind, ["a wolf"], stories).tolist() == [[0.0] * len(stories)]
