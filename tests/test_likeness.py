"""The benchmark of measures: settings of passages are those that it names, and it runs."""

import importlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from narrlit.data.tales import sample_tales
from narrlit.library.collection import Collection
from narrlit.measures import MEASURES
from narrlit.measures.matching import Matching

pytestmark = pytest.mark.usefixtures("memoized_minilm")

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def likeness(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("likeness")


def test_the_first_setting_is_the_measure_of_passages_and_others_are_not(likeness):
    tales = Collection.of([tale["text"] for tale in sample_tales()[:6]])
    settings = [likeness.Setting(), likeness.Setting(Matching(support=0.6)), likeness.Setting(words=50)]
    found = dict(likeness.sweep(tales, settings))
    default, *others = found.values()
    expected = tales.similarities_by("passages").matrix()

    np.testing.assert_allclose(default, expected, atol=1e-4)  # a collection has passages in half precision
    assert all(np.abs(other - expected).max() > 1e-3 for other in others)
    assert next(iter(found)) == "spread 0.4, support 0.3, 25 words"


def test_stories_of_the_world_are_in_pairs_with_one_that_is_like_neither(likeness):
    stories = likeness.story_world(4)
    assert stories["pair"].value_counts().tolist() == [2] * 4
    assert len(stories) == 12
    assert isinstance(likeness.tales(), pd.DataFrame)


def test_all_measures_of_a_file(likeness, make, monkeypatch, tmp_path, tiny, capsys):
    monkeypatch.chdir(tmp_path)
    tellers = ("Anna told it.", "Once, as Bert has it.")
    plots = ("A fox won the long race.", "Two ships sank.", "She slept.")
    rows = [{"text": f"{teller} {plot} {plot}", "type": plot} for teller in tellers for plot in plots]
    rows += [{"text": f"Word{number} alone.", "type": f"other {number}"} for number in range(9)]
    make("s.jsonl", rows)
    likeness.main(["s.jsonl", "--same", "type", "--model", tiny(), "--json"])
    (record,) = json.loads(capsys.readouterr().out).values()

    recalls = [row for row in record["figures"] if (row["subset"], row["metric"]) == ("all", "recall@1")]
    assert [row["system"] for row in recalls] == [*MEASURES, "tfidf"]
    assert {row["n"] for row in recalls} == {6}
    assert recalls[-1]["value"] == 1

    likeness.main(["s.jsonl", "--same", "type", "--model", tiny(), "--sweep"])
    assert "| spread inf, support 0.3, 25 words | " in capsys.readouterr().out
