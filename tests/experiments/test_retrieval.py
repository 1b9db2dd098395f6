"""Evaluation of retrieval: judgments, versions of stories against plain loops, and the command."""

import json

import numpy as np
import pandas as pd
import pytest
from json_files import read_json

from narrlit.data.tales import sample_tales
from narrlit.errors import DataError, OptionError
from narrlit.experiments.relevance import Relevance, read_qrels
from narrlit.experiments.retrieval import retrieval
from narrlit.experiments.version_ranking import VersionedStories, rank_versions
from narrlit.explore.collection import Collection
from narrlit.explore.index import Index
from narrlit.metrics.diagnostics import similarity_diagnostics
from narrlit.metrics.retrieval import METRICS

pytestmark = pytest.mark.usefixtures("memoized_minilm")

STORIES = [
    {"id": "a1", "text": "A girl in a red hood meets a wolf, who eats her grandmother."},
    {"id": "b1", "text": "A sailor repairs his boat before the storm reaches the harbor."},
    {"id": "a2", "text": "A wolf meets a girl in a red hood, and eats her grandmother."},
    {"id": "b2", "text": "Before a storm reaches the port, a seaman mends his ship."},
    {"id": "c1", "text": "The central bank lowers its rates; markets hardly move."},
]
QRELS = "query-id\tcorpus-id\tscore\na1\ta2\t1\nb1\tb2\t1\nb1\tc1\t0\n"


def test_both_layouts_of_judgments_are_read(make):
    assert read_qrels(make("beir.tsv", QRELS)) == {"a1": {"a2": 1}, "b1": {"b2": 1}}
    assert read_qrels(make("trec.txt", "a1 0 a2 2\n\nb1 0 c1 0\nb1 Q0 b2 1\n")) == {"a1": {"a2": 2}, "b1": {"b2": 1}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a1\ta2\tyes\n", "q.tsv:1: 'a1 a2 yes' is not a relevance judgment; write query-id"),
        ("a1\ta2\t1\nb1\tb2\tinf\n", "q.tsv:2: the score inf is not a finite number"),
        ("a1 0 a2 nan\n", "q.tsv:1: the score nan is not a finite number"),
        ("a1\ta2\n", "q.tsv:1: 'a1 a2' is not a relevance judgment"),
        ("a1\ta2\t0\n", "contains no relevant story"),
    ],
)
def test_broken_judgments_are_refused_by_line(make, content, words):
    with pytest.raises(DataError, match=words):
        read_qrels(make("q.tsv", content))


def test_a_query_is_not_among_its_own_results_and_others_are_ranked_by_score():
    vectors = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]])

    def score(rows):
        return vectors[rows] @ vectors.T

    ids = ["x", "y", "z"]
    values = Relevance.of_qrels({"x": {"y": 1.0}}, None, ids).metrics(score)

    assert dict(zip(METRICS, values[0], strict=True))["mrr"] == 1 / 2

    other = Relevance.of_qrels({"x": {"y": 1.0}}, ["x"], ids).metrics(score)
    assert dict(zip(METRICS, other[0], strict=True))["mrr"] == 1 / 3
    with pytest.raises(DataError, match="the qrels contain story 'w', which does not exist"):
        Relevance.of_qrels({"x": {"w": 1.0}}, None, ids)
    with pytest.raises(DataError, match="the qrels contain query 'w'"):
        Relevance.of_qrels({"w": {"x": 1.0}}, ["x"], ids)
    with pytest.raises(DataError, match="'x' is relevant to itself in the qrels"):
        Relevance.of_qrels({"x": {"x": 1.0, "y": 1.0}}, None, ids)
    with pytest.raises(DataError, match="the qrels contain no query"):
        Relevance.of_qrels({}, None, ids)


def test_the_command_compares_collections_and_words(narrlit, make, tmp_path):
    make("stories.jsonl", STORIES)
    make("q.tsv", QRELS)
    retrieval = ["retrieval", "stories.jsonl", "--qrels"]
    found = narrlit(*retrieval, "q.tsv", "--model", "minilm", "--baseline", "bm25", "--out", "o")

    assert found.code == 0, found.err
    assert "## 2 queries among 5 stories" in found.out
    assert "| passages | 1.000 [" in found.out
    assert "| bm25     | 1.000 [" in found.out
    assert "| +0.000 (p = 1.000) |" in found.out

    content = read_json(tmp_path / "o/retrieval.json")
    assert content["measures"]["passages"]["recall@1"] == 1
    assert content["measures"]["bm25"]["details"]["mrr"]["p"] == 1
    assert (tmp_path / "o/answers.csv").read_text().splitlines()[1].startswith('"a1","1.0"')

    make("queries.jsonl", [{"id": "b1", "text": "rates of a bank"}])
    make("bank.tsv", "b1 0 c1 1\n")
    for measure in ("passages", "csls"):
        found = narrlit(*retrieval, "bank.tsv", "--queries", "queries.jsonl", "--measure", measure, "--json")
        assert json.loads(found.out)["measures"][measure]["mrr"] == 1


# Versions ------------------------------------------------------------------------------------------------------------


def versioned(count=40, seed=0):
    """Stories of a random number of words, in groups of up to three, some of which have no value."""
    generator = np.random.default_rng(seed)
    values = [None if number % 7 == 0 else f"type {number % 16}" for number in range(count)]
    texts = ["word " * int(generator.integers(5, 90)) for _ in range(count)]
    books = [f"book {number % 3}" for number in range(count)]
    return VersionedStories([f"s{n}" for n in range(count)], texts, "type", values, "book", books)


def by_hand(similarities, values):
    """Metrics of each story with another version, in plain loops."""
    rows = {}
    for i, value in enumerate(values):
        others = [j for j in range(len(values)) if j != i]
        partners = [j for j in others if value is not None and values[j] == value]
        if not partners:
            continue
        others.sort(key=lambda j: (-similarities[i, j], j))
        ranks = [rank for rank, j in enumerate(others, start=1) if j in partners]
        ideal = sum(1 / np.log2(place + 1) for place in range(1, min(len(partners), 10) + 1))
        gain = sum(1 / np.log2(rank + 1) for rank in ranks if rank <= 10)
        rows[i] = [ranks[0] == 1, ranks[0] <= 10, 1 / ranks[0], gain / ideal]
    return rows


def test_figures_of_versions_are_those_of_plain_loops():
    stories = versioned()
    systems = {name: np.random.default_rng(n).normal(size=(40, 40)) for n, name in enumerate(("one", "other"))}
    result = rank_versions(systems.items(), stories)
    expected = {name: by_hand(similarities, stories.values) for name, similarities in systems.items()}
    rows = [*expected["one"]]

    assert 20 < len(rows) < 40  # some have no value, some no partner
    assert result.queries == [f"s{row}" for row in rows]

    words = [len(stories.texts[row].split()) for row in rows]
    median = np.median(words)
    for system in result.systems:
        own = np.array([*expected[system.name].values()], dtype=float)
        np.testing.assert_allclose(system.values, own)
        means = [estimate.mean for estimate in system.estimates.values()]
        np.testing.assert_allclose(means, own.mean(axis=0))
        confounds = result.confounds[system.name]
        short = [row for row, number in zip(own, words, strict=True) if number < median]
        np.testing.assert_allclose([each.mean for each in confounds.short.values()], np.mean(short, axis=0))
        assert confounds.short["mrr"].n + confounds.long["mrr"].n == len(rows)
        assert [figures["mrr"].within for figures in confounds.permuted] == ["the collection", "length", "book"]
        assert confounds.diagnostics == similarity_diagnostics(systems[system.name])

    assert result.versions.median_words == median

    first, second = result.systems
    assert first.differences == {}

    difference = second.values[:, 2].mean() - first.values[:, 2].mean()
    assert second.differences["mrr"].difference == pytest.approx(difference)


def test_intervals_and_tests_are_over_values_of_the_column():
    values = ["a"] * 12 + ["b"] * 12
    stories = VersionedStories([str(n) for n in range(24)], ["word"] * 24, "type", values)
    is_a = np.array([value == "a" for value in values])
    right = np.outer(is_a, is_a).astype(float)
    wrong = np.not_equal.outer(is_a, is_a).astype(float)
    first, second = rank_versions([("right", right), ("wrong", wrong)], stories).systems

    # Two values, one always found and one never, tell hardly anything about others.
    assert first.estimates["recall@1"].low == pytest.approx(0, abs=0.01)
    assert first.estimates["recall@1"].high == pytest.approx(1, abs=0.01)
    assert second.differences["recall@1"].p == 1  # one value alone differs


def test_the_record_and_tables_have_every_figure():
    stories = versioned()
    result = rank_versions([("one", np.random.default_rng(0).normal(size=(40, 40)))], stories)
    figures = result.record["measures"]["one"]

    assert set(figures) == {*METRICS, "n", "details", "permuted", "short", "long", "diagnostics"}
    assert figures["n"] == len(result.queries)
    assert json.loads(json.dumps(result.record)) == result.record
    assert result.table().set_index("metric").loc["mrr", "mean"] == figures["mrr"]

    table = result.confound_table().set_index(["within", "metric"])
    assert table.loc[("book", "mrr"), "p"] == figures["permuted"]["book"]["mrr"]["p"]
    assert result.plot("ndcg@10").get_xlabel() == "nDCG@10, 95 % interval"

    text = str(result)
    for words in ("stories that share their type with another, among 40", "within book", "recall@1, short", "hubs"):
        assert words in text


def test_warnings_are_about_the_first_system():
    stories = versioned()
    hubs = np.random.default_rng(0).normal(size=(40, 40))
    plain = hubs.copy()
    hubs[:, :3] += 100
    assert str(rank_versions([("one", hubs)], stories)).splitlines()[-1].startswith("one: A few stories are close")
    assert "one: " not in str(rank_versions([("one", plain), ("two", hubs)], stories))[-30:]


TALES = [{"text": tale["text"], "atu": tale["atu"], "country": tale["country"]} for tale in sample_tales()]


@pytest.mark.long
def test_versions_of_tales_are_found_by_passages_and_not_by_words(make, narrlit):
    make("tales.jsonl", TALES)
    options = ["--model", "minilm", "--same", "atu", "--measure", "passages,cosine", "--control", "country"]
    found = narrlit("retrieval", "tales.jsonl", *options, "--out", "o")

    assert found.code == 0, found.err
    assert "## 24 stories that share their atu with another, among 24; 8 values" in found.out

    found = narrlit("retrieval", "tales.jsonl", *options, "--json")
    measures = json.loads(found.out)["measures"]
    assert json.loads(found.out)["stop_words"] == "english"
    assert [*measures] == ["passages", "cosine", "tfidf"]
    assert measures["tfidf"]["recall@1"] < measures["cosine"]["recall@1"] < measures["passages"]["recall@1"] - 0.2
    assert measures["passages"]["permuted"]["length"]["recall@1"]["p"] < 0.01
    assert measures["tfidf"]["permuted"]["length"]["recall@1"]["p"] > 0.05
    assert measures["passages"]["permuted"]["country"]["recall@1"]["movable"] == 10


def test_two_collections_of_the_same_stories_are_compared_by_each_measure():
    frame = pd.DataFrame(TALES)
    tales = Collection.of(frame)
    result = retrieval({"one": tales, "two": tales}, same="atu", measures=["csls", "cosine"], baseline=None)

    assert [system.name for system in result.systems] == ["one, csls", "one, cosine", "two, csls", "two, cosine"]
    assert result.systems[2].differences["mrr"].difference == 0
    with pytest.raises(DataError, match="has other stories than"):
        retrieval({"one": tales, "two": Collection.of(frame[::-1])}, same="atu")


def test_unknown_columns_and_columns_without_versions_are_refused():
    tales = Collection.of(pd.DataFrame([*TALES[:3], {"text": "A fox sleeps.", "atu": "", "country": "Peru"}]))
    with pytest.raises(OptionError, match="`same=type`: stories has no such column; available: atu, country"):
        retrieval(tales, same="type")
    with pytest.raises(OptionError, match="`control=book`: stories has no such column"):
        retrieval(tales, same="atu", control="book", measures=["cosine"])
    with pytest.raises(DataError, match="`same=country`: no two stories of stories have the same value"):
        retrieval(tales, same="country")
    with pytest.raises(
        OptionError, match="give either `same`, a column of the stories, or `qrels`, relevance judgments"
    ):
        retrieval(tales)
    with pytest.raises(OptionError, match="`control` needs versions"):
        retrieval(tales, {"a": {"b": 1.0}}, control="country")


def test_files_indexes_and_texts_are_accepted_as_collections(make, tmp_path):
    path = make("tales.jsonl", TALES)
    index = Index.create(tmp_path / "tales.index", pd.DataFrame(TALES))
    for stories in (path, str(index.path), pd.DataFrame(TALES)):
        result = retrieval(stories, same="atu", measures=["cosine"], baseline=None)

        # One of the 24 tales more or less: kernels differ.
        assert result.record["measures"]["cosine"]["recall@1"] == pytest.approx(17 / 24, abs=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--qrels", "q.tsv", "--baseline", "jaccard"], '"jaccard"'),
        ([], "give either --same, a column of the stories, or --qrels, relevance judgments"),
        (["--qrels", "none.tsv"], "none"),
        (["--same", "text"], "--same text: stories.jsonl has no such column; available: none"),
        (["--same", "kind", "--measure", "cosin"], "--measure cosin (did you mean cosine?): give one of"),
    ],
)
def test_wrong_options_cost_one_line(narrlit, make, options, words):
    make("stories.jsonl", STORIES)
    make("q.tsv", QRELS)
    found = narrlit("retrieval", "stories.jsonl", *options)
    assert found.code == 2, found.err
    assert words in found.err.splitlines()[-1], found.err
