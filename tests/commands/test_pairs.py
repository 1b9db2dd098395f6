"""narrlit pairs and narrlit data diversity on files of stories."""

import json

import networkx as nx
import pytest

from narrlit.data.readers import read_rows

pytestmark = pytest.mark.usefixtures("memoized_minilm")

TALES = [
    {
        "id": "wolf",
        "title": "The Wolf",
        "text": "A girl in a red hood meets a wolf, who eats her grandmother.",
        "land": "FR",
    },
    {"id": "sea", "title": "", "text": "A sailor repairs his boat before the storm reaches the harbor.", "land": "PT"},
    {
        "id": "hood",
        "title": "The Hood",
        "text": "A wolf meets a girl in a red hood, and eats her grandmother.",
        "land": "DE",
    },
    {
        "id": "bank",
        "title": "The Bank",
        "text": "The central bank lowers its rates; markets hardly move.",
        "land": "US",
    },
]


def test_pairs_are_printed_and_written_with_their_groups(narrlit, make):
    make("tales.jsonl", TALES)
    options = ["--measure", "cosine", "--threshold", "0.9"]
    found = narrlit("pairs", "tales.jsonl", *options, "--k", "1", "--out", "pairs.csv")

    assert found.code == 0, found.err

    first = found.out.splitlines()[4]
    assert "The Wolf" in first
    assert "The Hood" in first
    assert "| 0.9" in first
    assert "Threshold 0.9, as requested." in found.out
    assert "1. The Wolf; The Hood\n\n1 group with 2 of 4 stories." in found.out

    rows = [row.value for row in read_rows("pairs.csv").rows]
    assert [rows[0][name] for name in ("id_a", "title_b", "mutual")] == ["wolf", "The Hood", "true"]

    groups = [row.value for row in read_rows("pairs-groups.csv").rows]
    assert [(row["group"], row["id"]) for row in groups] == [("1", "wolf"), ("1", "hood")]
    assert narrlit("pairs", "tales.jsonl", *options, "--out", "pairs.graphml").code == 0
    assert nx.read_graphml("pairs.graphml").nodes["hood"]["land"] == "DE"


def test_pairs_are_those_of_the_measure(narrlit, make):
    """The passages of the sailor and the bank have no words in common; by any measure the two wolves come first."""
    make("tales.jsonl", TALES)
    for measure in ("passages", "lexical"):
        found = narrlit("pairs", "tales.jsonl", "--measure", measure)
        assert found.code == 0, found.err
        assert f"(measure {measure}, median" in found.out, found.err
        assert "The Wolf" in found.out.splitlines()[4]

    wrong = narrlit("pairs", "tales.jsonl", "--measure", "words")

    assert wrong.code == 2
    assert "--measure" in wrong.err
    assert "lexical" in wrong.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "0"], "--k 0: must be at least 1"),
        (["--out", "pairs.png"], "pairs.png: name a file that ends in .csv"),
    ],
)
def test_mistakes_of_pairs_cost_one_line(narrlit, make, options, words):
    make("tales.jsonl", TALES)
    found = narrlit("pairs", "tales.jsonl", *options)
    assert found.code == 2
    assert words in found.err


def test_diversity_is_printed_or_one_json_object(narrlit, make):
    make("tales.jsonl", TALES)
    result = json.loads(narrlit("data", "diversity", "tales.jsonl", "--json").out)
    assert result["stories"] == 4
    assert result["alike"] == 2
    assert result["most_alike"]["ids"] == ["wolf", "hood"]
    assert 2.5 < result["vendi_score"] < 3.5

    shown = narrlit("data", "diversity", "tales.jsonl", "--cosine", "0.99").out
    assert f"Vendi score: {result['vendi_score']:.1f} of 4 stories (by narrlit-mini)" in shown
    assert "most alike: The Wolf and The Hood (0.9" in shown
    assert "(cosine of 0.99 or more): 0 stories" in shown


def test_no_escape_sequence_of_a_story_reaches_the_terminal_or_the_graph(narrlit, make):
    rows = [{**tale, "id": f"{tale['id']}\x1b[2J", "title": f"\x1b[31m{tale['id']}", "a\x1bb": 1} for tale in TALES]
    make("tales.jsonl", rows)
    found = narrlit("pairs", "tales.jsonl", "--threshold", "0.9", "--out", "pairs.graphml")

    assert found.code == 0, found.err
    assert "\x1b" not in found.out + found.err, found.err
    assert nx.read_graphml("pairs.graphml").nodes["sea [2J"]["a b"] == 1

    found = narrlit("data", "diversity", "tales.jsonl")
    assert found.code == 0
    assert "\x1b" not in found.out
    assert "most alike: [31mwolf" in found.out
