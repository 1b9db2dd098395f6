"""narrlit map on the sample tales: its files, what it prints, and what it refuses."""

import json

import pandas as pd
import pytest
from page_files import carried

from narrlit.explore.mapping import recorded_accuracy

pytestmark = pytest.mark.usefixtures("memoized_minilm")


@pytest.fixture
def tales(narrlit):
    assert narrlit("data", "sample", "tales").code == 0


def test_tales_are_drawn_and_compared_with_their_types(narrlit, tales, tmp_path):
    result = narrlit("map", "tales", "--model", "minilm", "--out", "map.html", "--group", "atu", "--k", "2")
    assert result.code == 0, result.err
    assert "24 stories" in result.out

    near = pd.read_csv(tmp_path / "map-neighbors.csv")
    assert len(near) == 48

    groups = pd.read_csv(tmp_path / "map-groups.csv")
    assert set(groups.columns) == {"id", "title", "group", "name"}

    types = pd.read_csv(tmp_path / "tales/tales.csv", dtype=str).set_index("title")["atu"]
    first = near[near["rank"] == 1]
    share = (types[first["title"]].to_numpy() == types[first["neighbor_title"]].to_numpy()).mean()
    line = f"Of the 24 stories that share their atu with another, {100 * share:.0f} % have such a story as nearest"

    assert line in result.out

    data = carried((tmp_path / "map.html").read_text(encoding="utf-8"))
    assert data["answers"]["agreement"]["atu"]["shares"][0]["share"] == pytest.approx(share)
    facts = data["answers"]["map"]["facts"]
    assert f"Hubs: {facts['hubs']}" in result.out
    assert facts["accuracy"] == "not measured on labeled triples"
    assert "Grandaunt Tiger" in [story["title"] for story in data["stories"]]
    assert "Grandaunt Tiger" in (tmp_path / "map.svg").read_text()


def test_the_head_states_an_accuracy_that_was_measured(narrlit, tales, make, tmp_path):
    king = "A king loses his crown."
    again = "A king has lost the crown."
    bank = "The bank lowers its rates again."
    rows = [
        {"anchor_text": king, "text_a": again, "text_b": bank, "text_a_is_closer": label} for label in (True, False)
    ]
    triples = make("triples.jsonl", rows)
    result = narrlit("map", "tales", "--model", "minilm", "--out", "map.html", "--triples", triples)

    assert result.code == 0, result.err
    assert "n = 2 on the triples of triples.jsonl" in (tmp_path / "map.html").read_text()


def test_the_head_states_the_accuracy_of_a_run(make, tmp_path):
    make("run.json", json.dumps({"best": {"n": 200, "correct": 122, "accuracy": 0.61, "interval": [0.54, 0.67]}}))
    assert recorded_accuracy(str(tmp_path)).startswith("0.610 [0.540, 0.670], n = 200 on the validation triples")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "map.html", "--group", "atv"], "no such column"),
        (["--out", "map.txt"], ".html"),
        (["--out", "map.html", "--k", "0"], "at least 1"),
        (["--out", "map.html", "--triples", "map-groups.csv"], "is read"),
    ],
)
def test_options_that_do_not_fit_are_refused_and_nothing_is_written(narrlit, tales, tmp_path, options, message):
    result = narrlit("map", "tales", "--model", "minilm", *options)
    assert result.code == 2
    assert message in result.err
    assert not list(tmp_path.glob("map*"))
