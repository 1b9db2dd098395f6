"""Reports: cells, tables, files and plots."""

import csv
from xml.etree import ElementTree

import pytest
from json_files import read_json

from narrlit.experiments import report
from narrlit.experiments.report import Report
from narrlit.metrics.significance import paired
from narrlit.tables import markdown_table

GOOD = {"n": 200, "correct": 110, "accuracy": 0.55, "interval": [0.481, 0.617], "ties": 0}
NONE = {"n": 200, "correct": 0, "accuracy": None, "interval": None, "ties": 0, "undefined": 7}


@pytest.fixture
def made():
    rows = [{"system": "full", "n": 200, "accuracy": "0.550"}, {"system": "50 % & more", "accuracy": "none"}]
    records = [{"system": "full", "last_epoch": GOOD}, {"system": "broken", "last_epoch": NONE}]
    return Report({"a": 1}, {"": rows}, ["A note."], records, {"full": GOOD, "broken": NONE})


def test_a_report_is_written_in_every_format(made, tmp_path):
    made.write(tmp_path, "r")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.json", "r.md", "r.svg", "r.tex"]
    assert read_json(tmp_path / "r.json") == {"a": 1}
    assert (tmp_path / "r.md").read_text() == made.markdown()

    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        full, broken = csv.DictReader(file)
    ends = full["last_epoch.accuracy"], full["last_epoch.low"], full["last_epoch.high"]

    assert ends == ("0.55", "0.481", "0.617")
    assert broken["last_epoch.low"] == ""
    assert r"50 \% \& more" in (tmp_path / "r.tex").read_text()

    text = "".join(ElementTree.parse(tmp_path / "r.svg").getroot().itertext())
    assert "full" in text
    assert "broken" not in text  # without an accuracy there is nothing to plot


def test_without_matplotlib_there_is_no_plot(made, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    made.write(tmp_path, "r")
    assert not (tmp_path / "r.svg").exists()


def test_markdown_columns_are_aligned_and_missing_cells_empty(made):
    lines = made.markdown().splitlines()
    assert lines[1] == "|-------------|----:|----------|"
    assert lines[3] == "| 50 % & more |     | none     |"
    assert len({len(line) for line in lines[:4]}) == 1
    assert markdown_table("Title", [{"a": 1}]).startswith("## Title\n\n| a |\n")
    assert r"| x\|y |" in markdown_table("", [{"a": "x|y"}])


def test_without_scores_there_is_no_comparison():
    assert report.accuracy_cell(NONE) == "none: scores are NaN"
    assert paired(None, {1}, 5) == paired({1}, None, 5)
    assert report.difference_cell(paired(None, {1}, 5)) == "none: scores are NaN"
