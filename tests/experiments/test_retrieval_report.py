"""Evaluation of retrieval: judgments, ranks without the query itself, and the command."""

import json

import numpy as np
import pytest

from narrlit.errors import DataError
from narrlit.experiments.retrieval_report import measure, read_qrels
from narrlit.metrics.retrieval import MEASURES

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
        ("a1\ta2\tyes\n", "q.tsv:1: 'a1 a2 yes' is no judgment; write query-id"),
        ("a1\ta2\t1\nb1\tb2\tinf\n", "q.tsv:2: the score inf is no finite number"),
        ("a1 0 a2 nan\n", "q.tsv:1: the score nan is no finite number"),
        ("a1\ta2\n", "q.tsv:1: 'a1 a2' is no judgment"),
        ("a1\ta2\t0\n", "names no relevant story"),
    ],
)
def test_broken_judgments_are_refused_by_line(make, content, words):
    with pytest.raises(DataError, match=words):
        read_qrels(make("q.tsv", content))


def test_a_query_is_not_among_its_own_results_and_others_are_ranked_by_cosine():
    vectors = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]])
    values = measure({"x": {"y": 1.0}}, vectors, vectors, None, ["x", "y", "z"])
    assert dict(zip(MEASURES, values[0], strict=True))["MRR"] == 1 / 2
    other = measure({"x": {"y": 1.0}}, vectors[:1], vectors, ["x"], ["x", "y", "z"])
    assert dict(zip(MEASURES, other[0], strict=True))["MRR"] == 1 / 3
    with pytest.raises(DataError, match="there is no story 'w', which the qrels name"):
        measure({"x": {"w": 1.0}}, vectors, vectors, None, ["x", "y", "z"])
    with pytest.raises(DataError, match="the qrels call 'x' relevant to itself"):
        measure({"x": {"x": 1.0, "y": 1.0}}, vectors, vectors, None, ["x", "y", "z"])


def test_the_command_compares_collections_and_words(narrlit, make, tmp_path):
    make("stories.jsonl", STORIES)
    make("q.tsv", QRELS)
    retrieval = ["retrieval", "stories.jsonl", "--qrels"]
    found = narrlit(*retrieval, "q.tsv", "--model", "minilm", "--baseline", "bm25", "--out", "o")
    assert found.code == 0, found.err
    assert "## 2 queries among 5 stories" in found.out
    assert "| MRR       | minilm | 1.000 [" in found.out
    assert "| MRR       | bm25   | 1.000 [" in found.out
    assert "+0.000 (p = 1.000)" in found.out
    content = json.loads((tmp_path / "o/retrieval.json").read_text())
    assert content["measures"]["recall@1"]["minilm"]["mean"] == 1
    assert (tmp_path / "o/answers.csv").read_text().splitlines()[1].startswith('"a1","1.0"')
    make("queries.jsonl", [{"id": "b1", "text": "rates of a bank"}])
    make("bank.tsv", "b1 0 c1 1\n")
    found = narrlit(*retrieval, "bank.tsv", "--queries", "queries.jsonl", "--json")
    assert json.loads(found.out)["measures"]["MRR"]["minilm"]["mean"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--qrels", "q.tsv", "--baseline", "jaccard"], '"jaccard"'), ([], "--qrels"), (["--qrels", "none.tsv"], "none")],
)
def test_wrong_options_cost_one_line(narrlit, make, options, words):
    make("stories.jsonl", STORIES)
    make("q.tsv", QRELS)
    found = narrlit("retrieval", "stories.jsonl", *options)
    assert (found.code, words in found.err.splitlines()[-1]) == (2, True), found.err
