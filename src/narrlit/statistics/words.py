"""Words of stories, as every lexical baseline and measure counts them, and their weights by TF-IDF and BM25.

Letters in shapes: N stories, Q queries, V words.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import normal_form
from narrlit.preprocessing.languages import detect_languages
from narrlit.preprocessing.words import index_words

WeightedBaseline = Literal["tfidf", "bm25"]
WEIGHTED: tuple[WeightedBaseline, ...] = get_args(WeightedBaseline)
"""Baselines that weight words, and leave stop words out."""
StopWords = Literal["english"]
"""Name of a list of stop words in scikit-learn."""
K1, B = 1.2, 0.75
"""Parameters of BM25: saturation of word counts, and influence of a story's length."""


def stop_words_of(texts: Sequence[str]) -> StopWords | None:
    """Choose the stop words of texts: scikit-learn's list for English, its only one, or None for another language.

    The language is that of most texts, or of a sample. Texts whose language is unclear count as English.

    >>> stop_words_of(["A wolf ate the girl and her grandmother in a house in the wood."])
    'english'
    >>> stop_words_of(["Der Wolf fraß das Mädchen und die Großmutter in einem Haus im Wald."]) is None
    True
    """
    languages = detect_languages(texts)
    return "english" if 2 * languages["en"] >= languages.total() else None


def stop_words_text(stop_words: StopWords | None) -> str:
    """Describe stop words in a report."""
    if stop_words is None:
        return "none are left out, because most stories are not in English"
    return "scikit-learn's English ones are left out"


def vectorizer_for(stories: Sequence[str], kind: WeightedBaseline = "tfidf") -> Any:
    """Return scikit-learn's vectorizer for stories, not fitted yet; None if they have no words, which it rejects.

    A word has two or more characters, in lower case, and is no stop word; in scripts without spaces, each character and
    each two neighbors are words. TF-IDF has sublinear counts; BM25 begins with plain ones.

    >>> vectorizer_for(["A wolf ate the girl."]).fit(["A wolf ate the girl."]).get_feature_names_out().tolist()
    ['ate', 'girl', 'wolf']
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer  # searches by vectors need none

    stop_words = stop_words_of(stories)
    vectorizer: Any = TfidfVectorizer(sublinear_tf=True, stop_words=stop_words, **ANALYSIS)
    if kind == "bm25":
        vectorizer = CountVectorizer(stop_words=stop_words, dtype=np.float64, **ANALYSIS)
    has_words = any(map(vectorizer.build_analyzer(), stories))
    return vectorizer if has_words else None


def _lower_case(text: str) -> str:
    """Convert a text to the form in which words are compared, in lower case, as scikit-learn does."""
    return normal_form(text).lower()


ANALYSIS: dict[str, Any] = {
    "preprocessor": _lower_case,
    "tokenizer": partial(index_words, shortest=2),
    "token_pattern": None,
}
"""Options of scikit-learn's vectorizers that divide texts into words."""


def lexical_vectors(kind: WeightedBaseline, queries: Sequence[str], stories: Sequence[str]) -> tuple[Any, Any]:
    """Compute sparse vectors of queries (Q, V) and stories (N, V), whose products are TF-IDF cosines or BM25 scores.

    Vocabulary, document frequencies and stop words come from the stories. TF-IDF is that of scikit-learn's
    `TfidfVectorizer(sublinear_tf=True, stop_words="english")`, or `stop_words=None`; BM25 counts the same words. A
    cosine is symmetric. BM25 scores a story for a query, in which a repeated word counts as often as it occurs.

    Source of BM25: Robertson and Zaragoza (2009), k1 = 1.2, b = 0.75, with the weight of a word in Lucene, log(1 +
    (N - n + 0.5) / (n + 0.5)), which is never negative.
    """
    from scipy.sparse import csr_array

    vectorizer = vectorizer_for(stories, kind)
    if vectorizer is None:
        return csr_array((len(queries), 1)), csr_array((len(stories), 1))
    story_vectors = csr_array(vectorizer.fit_transform(stories))
    query_vectors = csr_array(vectorizer.transform(queries))
    if kind == "bm25":
        story_vectors.data = _bm25_weights(story_vectors)
    return query_vectors, story_vectors


def _bm25_weights(counts: Any) -> NDArray[np.float64]:
    """Compute the BM25 weights of the words of stories, in the order of the values of their sparse counts (N, V)."""
    num_stories, num_words = counts.shape
    document_frequencies = np.bincount(counts.indices, minlength=num_words)
    word_weights = np.log(1 + (num_stories - document_frequencies + 0.5) / (document_frequencies + 0.5))
    lengths = counts.sum(axis=1)
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    norm_of_count = np.repeat(norms, np.diff(counts.indptr))
    weight_of_count = word_weights[counts.indices]
    weights: NDArray[np.float64] = weight_of_count * counts.data * (K1 + 1) / (counts.data + norm_of_count)
    return weights
