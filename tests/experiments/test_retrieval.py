"""Evaluation of retrieval: judgments, versions of stories against plain loops, and the command."""

import json

import numpy as np
import pandas as pd
import pytest
from refusals import assert_refusal, refused
from results import check_result

from narrlit.data.tales import sample_tales
from narrlit.experiments.relevance import Relevance, read_qrels
from narrlit.experiments.retrieval import retrieval
from narrlit.experiments.version_ranking import rank_versions
from narrlit.library.collection import Collection
from narrlit.library.index import Index
from narrlit.results import Result
from narrlit.statistics.diagnostics import similarity_diagnostics
from narrlit.statistics.retrieval import METRICS

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
    ("content", "code", "values"),
    [
        ("a1\ta2\tyes\n", "broken_judgment", {"place": "q.tsv:1", "text": "a1 a2 yes"}),
        ("a1\ta2\t1\nb1\tb2\tinf\n", "score_of_judgment", {"place": "q.tsv:2", "score": "inf"}),
        ("a1 0 a2 nan\n", "score_of_judgment", {"place": "q.tsv:1", "score": "nan"}),
        ("a1\ta2\n", "broken_judgment", {"place": "q.tsv:1", "text": "a1 a2"}),
        ("a1\ta2\t0\n", "no_relevant_story", {"path": "q.tsv"}),
    ],
)
def test_broken_judgments_are_refused_by_line(make, content, code, values):
    with refused(code, **values):
        read_qrels(make("q.tsv", content))


def test_a_query_is_not_among_its_own_results_and_others_are_ranked_by_score():
    vectors = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]])

    def score(rows):
        return vectors[rows] @ vectors.T

    ids = ["x", "y", "z"]
    values = Relevance.of_qrels({"x": {"y": 1.0}}, None, ids).metrics(score)

    assert dict(zip(METRICS, values[0], strict=True))["MRR"] == 1 / 2

    other = Relevance.of_qrels({"x": {"y": 1.0}}, ["x"], ids).metrics(score)
    assert dict(zip(METRICS, other[0], strict=True))["MRR"] == 1 / 3
    with refused("unknown_story_of_qrels", id="w"):
        Relevance.of_qrels({"x": {"w": 1.0}}, None, ids)
    with refused("unknown_query_of_qrels", id="w"):
        Relevance.of_qrels({"w": {"x": 1.0}}, ["x"], ids)
    with refused("relevant_to_itself", id="x"):
        Relevance.of_qrels({"x": {"x": 1.0, "y": 1.0}}, None, ids)
    with refused("qrels_without_query"):
        Relevance.of_qrels({}, None, ids)


def test_the_command_compares_collections_and_words(narrlit, make, tmp_path):
    make("stories.jsonl", STORIES)
    make("q.tsv", QRELS)
    retrieval = ["retrieval", "stories.jsonl", "--qrels"]
    found = narrlit(*retrieval, "q.tsv", "--model", "minilm", "--baseline", "bm25", "--out", "o")
    assert found.code == 0, found.err

    result = Result.read(tmp_path / "o/retrieval.json")
    assert f"{result}\n" == found.out
    assert result.estimate("passages", "recall@1").value == 1
    assert set(result.differences["metric"]) == {*METRICS}
    assert (result.differences[["system", "against", "value", "p"]] == ["bm25", "passages", 0, 1]).all().all()
    assert result.answers["query"].tolist() == ["a1", "b1"]
    assert result.answers["passages.MRR"].tolist() == [1, 1]
    assert result.settings == {"qrels": "q.tsv", "queries": 2, "stories": 5, "stop_words": "english"}
    assert {note.code for note in result.notes} >= {"judgments", "stop_words", "interval_score", "test_permutation"}
    check_result(result, tmp_path / "again")

    make("queries.jsonl", [{"id": "b1", "text": "rates of a bank"}])
    make("bank.tsv", "b1 0 c1 1\n")
    for measure in ("passages", "csls"):
        found = narrlit(*retrieval, "bank.tsv", "--queries", "queries.jsonl", "--measure", measure, "--json")
        first = json.loads(found.out)["figures"][0]
        assert (first["system"], first["value"]) == (measure, 1)


# Versions ------------------------------------------------------------------------------------------------------------


def versioned(count=40, seed=0):
    """Stories of a random number of words, in groups of up to three, some of which have no value."""
    generator = np.random.default_rng(seed)
    columns = {
        "id": [f"s{number}" for number in range(count)],
        "text": ["word " * int(generator.integers(5, 90)) for _ in range(count)],
        "type": [None if number % 7 == 0 else f"type {number % 16}" for number in range(count)],
        "book": [f"book {number % 3}" for number in range(count)],
    }
    return pd.DataFrame(columns)


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


def values_of(result, system, subset="all"):
    """Figures of a system by metric."""
    figures = result.figures[(result.figures["system"] == system) & (result.figures["subset"] == subset)]
    return figures.set_index("metric")["value"]


def test_figures_of_versions_are_those_of_plain_loops(tmp_path):
    stories = versioned()
    systems = {name: np.random.default_rng(n).normal(size=(40, 40)) for n, name in enumerate(("one", "other"))}
    result = rank_versions(systems.items(), stories, "type", "book")
    expected = {name: by_hand(similarities, stories["type"].tolist()) for name, similarities in systems.items()}
    rows = [*expected["one"]]

    assert 20 < len(rows) < 40  # some have no value, some no partner
    assert result.answers["query"].tolist() == [f"s{row}" for row in rows]

    words = np.array([len(stories["text"][row].split()) for row in rows])
    is_short = words < np.median(words)
    for name, by_row in expected.items():
        own = np.array([*by_row.values()], dtype=float)
        np.testing.assert_allclose(result.answers[[f"{name}.{metric}" for metric in METRICS]], own)
        for subset, queries in (("all", own), ("length: short", own[is_short]), ("length: long", own[~is_short])):
            figures = values_of(result, name, subset)
            assert figures.index.tolist() == [*METRICS]
            np.testing.assert_allclose(figures.astype(float), queries.mean(axis=0))
            assert result.estimate(name, "MRR", subset).n == len(queries)
        skewness = similarity_diagnostics(systems[name]).hub_skewness
        assert values_of(result, name, "hubs: skewness").tolist() == [skewness]

    assert result.settings == {
        "same": "type",
        "control": "book",
        "queries": len(rows),
        "stories": 40,
        "values": len({stories["type"][row] for row in rows}),
        "median_words": np.median(words),
        "stop_words": "english",
    }
    check_result(result, tmp_path)


def test_systems_are_compared_with_the_first_and_with_permuted_values():
    systems = [(name, np.random.default_rng(seed).normal(size=(40, 40))) for seed, name in enumerate(("one", "two"))]
    result = rank_versions(systems, versioned(), "type", "book")
    differences = result.differences.set_index(["system", "against", "subset", "metric"])

    for metric in METRICS:
        means = [result.estimate(name, metric).value for name in ("one", "two")]
        change = differences.loc[("two", "one", "all", metric)]
        assert change["value"] == pytest.approx(means[1] - means[0])
        assert change["test"] == "permutation_by_group"
    for name in ("one", "two"):
        for within in ("the collection", "length", "book"):
            subset = f"permuted within: {within}"
            change = differences.loc[(name, f"{name}, not permuted", subset, "MRR")]
            real, permuted = result.estimate(name, "MRR"), result.estimate(name, "MRR", subset)
            assert change["value"] == pytest.approx(permuted.value - real.value)
            assert change["test"] == "permuted"
            assert change["p"] == change["p_adjusted"]  # each system is a question of its own
    movable = result.figures.set_index(["system", "subset", "metric"])["movable"]
    assert movable[("one", "permuted within: the collection", "MRR")] == 34  # all with a value


def test_intervals_and_tests_are_over_values_of_the_column():
    values = ["a"] * 12 + ["b"] * 12
    stories = pd.DataFrame({"id": [str(n) for n in range(24)], "text": "word", "type": values})
    is_a = np.array([value == "a" for value in values])
    right = np.outer(is_a, is_a).astype(float)
    wrong = np.not_equal.outer(is_a, is_a).astype(float)
    result = rank_versions([("right", right), ("wrong", wrong)], stories, "type")

    # Two values, one always found and one never, tell hardly anything about others.
    recall = result.estimate("right", "recall@1")
    assert recall.method == "by_group"
    assert (recall.low, recall.high) == pytest.approx((0, 1), abs=0.01)
    compared = result.differences.query("metric == 'recall@1' and against == 'right'")
    assert compared["p"].tolist() == [1]  # one value alone differs
    assert "length: short" not in set(result.figures["subset"])  # all are of the median length


def test_hubs_of_the_first_system_are_noted():
    stories = versioned()
    plain = np.random.default_rng(0).normal(size=(40, 40))
    hubs = plain.copy()
    hubs[:, :3] += 100
    noted = [note for note in rank_versions([("one", hubs)], stories, "type").notes if note.code == "hubs"]
    assert [note.values["system"] for note in noted] == ["one"]
    result = rank_versions([("one", plain), ("two", hubs)], stories, "type")
    assert "hubs" not in {note.code for note in result.notes}


TALES = [{"text": tale["text"], "atu": tale["atu"], "country": tale["country"]} for tale in sample_tales()]


@pytest.mark.long
def test_versions_of_tales_are_found_by_passages_and_not_by_words():
    tales = Collection.of(pd.DataFrame(TALES), "minilm")
    result = retrieval(tales, same="atu", measures=["passages", "cosine"], control="country")
    recall = {name: result.estimate(name, "recall@1").value for name in ("passages", "cosine", "tfidf")}
    p = result.differences.query("metric == 'recall@1'").set_index(["system", "subset"])["p"]

    assert {name: result.settings[name] for name in ("queries", "stories", "values", "stop_words")} == {
        "queries": 24,
        "stories": 24,
        "values": 8,
        "stop_words": "english",
    }
    assert recall["tfidf"] < recall["cosine"] < recall["passages"] - 0.2
    assert p["passages", "permuted within: length"] < 0.01
    assert p["tfidf", "permuted within: length"] > 0.05
    assert result.figures.query("subset == 'permuted within: country'")["movable"].eq(10).all()


def test_two_collections_of_the_same_stories_are_compared_by_each_measure():
    frame = pd.DataFrame(TALES)
    tales = Collection.of(frame)
    result = retrieval({"one": tales, "two": tales}, same="atu", measures=["csls", "cosine"], baseline=None)

    names = ["one, csls", "one, cosine", "two, csls", "two, cosine"]
    assert list(dict.fromkeys(result.figures["system"])) == names
    assert (result.differences.query("system == 'two, csls' and against == 'one, csls'")["value"] == 0).all()
    with refused("other_stories"):
        retrieval({"one": tales, "two": Collection.of(frame[::-1])}, same="atu")


def test_unknown_columns_and_columns_without_versions_are_refused():
    tales = Collection.of(pd.DataFrame([*TALES[:3], {"text": "A fox sleeps.", "atu": "", "country": "Peru"}]))
    with refused("unknown_column", option="same", column="type", known=["atu", "country"]):
        retrieval(tales, same="type")
    with refused("unknown_column", option="control", column="book"):
        retrieval(tales, same="atu", control="book", measures=["cosine"])
    with refused("no_same_value", option="same", column="country"):
        retrieval(tales, same="country")
    with refused("same_or_qrels"):
        retrieval(tales)
    with refused("control_needs_same"):
        retrieval(tales, {"a": {"b": 1.0}}, control="country")


def test_files_indexes_and_texts_are_accepted_as_collections(make, tmp_path):
    path = make("tales.jsonl", TALES)
    index = Index.create(tmp_path / "tales.index", pd.DataFrame(TALES))
    for stories in (path, str(index.path), pd.DataFrame(TALES)):
        result = retrieval(stories, same="atu", measures=["cosine"], baseline=None)

        # One of the 24 tales more or less: kernels differ.
        assert result.estimate("cosine", "recall@1").value == pytest.approx(17 / 24, abs=0.05)


@pytest.mark.parametrize(
    ("options", "code", "values"),
    [
        (["--qrels", "q.tsv", "--baseline", "jaccard"], "invalid_arguments", {}),
        ([], "same_or_qrels", {}),
        (["--qrels", "none.tsv"], "unreadable_qrels", {"path": "none.tsv"}),
        (["--same", "text"], "unknown_column", {"option": "same", "column": "text", "known": "none"}),
    ],
)
def test_wrong_options_cost_one_line(narrlit, make, options, code, values):
    make("stories.jsonl", STORIES)
    make("q.tsv", QRELS)
    found = narrlit("retrieval", "stories.jsonl", *options)
    assert found.code == 2, found.err
    assert_refusal(found.error, code, **values)


def test_an_unknown_measure_is_named_with_its_option(narrlit, make):
    found = narrlit("retrieval", make("stories.jsonl", STORIES), "--same", "kind", "--measure", "cosin")
    assert found.code == 2
    assert "--measure cosin (did you mean cosine?): give one of" in found.err.splitlines()[-1]
