"""The benchmark of measures: its figures are those of plain loops, and it runs."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def likeness(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("likeness")


def test_figures_are_those_of_the_stories_with_another_version(likeness):
    versions = likeness.Versions("four", ["a " * length for length in (2, 4, 8, 16)], ["x", "y", "x", "z"])
    found = np.array([[1, 0.9, 0.5, 0.1], [0.9, 1, 0.2, 0.3], [0.5, 0.2, 1, 0.4], [0.1, 0.3, 0.4, 1]])
    figures = likeness.figures_of("cosine", found, versions)
    assert (figures.n, figures.recall_at_1, figures.mrr) == (2, 0.5, 0.75)  # ranks 2 and 1
    means = [(0.9 + 0.5 + 0.1) / 3, (0.9 + 0.2 + 0.3) / 3, (0.5 + 0.2 + 0.4) / 3, (0.1 + 0.3 + 0.4) / 3]
    assert figures.length == pytest.approx(np.corrcoef(means, [1, 2, 3, 4])[0, 1])
    assert figures.length < -0.9


def test_all_measures_of_a_file(likeness, make, monkeypatch, tmp_path, tiny, capsys):
    monkeypatch.chdir(tmp_path)
    tellers, plots = (
        ("Anna told it.", "Once, as Bert has it."),
        ("A fox won the long race.", "Two ships sank.", "She slept."),
    )
    rows = [{"text": f"{teller} {plot} {plot}", "type": plot} for teller in tellers for plot in plots]
    rows += [{"text": f"Word{number} alone.", "type": f"other {number}"} for number in range(9)]
    make("s.jsonl", rows)
    likeness.main(["s.jsonl", "--same", "type", "--model", tiny(), "--json"])
    (figures,) = json.loads(capsys.readouterr().out).values()
    assert len(figures) == 36
    assert all(0 <= each["recall_at_1"] <= each["mrr"] <= 1 for each in figures)
    assert {each["n"] for each in figures} == {6}
    assert figures[0]["measure"] == "TF-IDF"
    assert figures[0]["recall_at_1"] == 1
