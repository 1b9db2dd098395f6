"""narrlit catalog: proposals, their table, and the filled column."""

import csv
import json
from pathlib import Path

import pytest

from narrlit.data.rows import read_rows
from narrlit.data.tales import sample_tales
from narrlit.data.writers import write_table

pytestmark = pytest.mark.usefixtures("memoized_minilm")

TALES = sample_tales()
LACKING = {tale["title"]: tale["atu"] for tale in TALES[::3]}
"""Titles of the tales whose type is removed, one of each, with the type."""


@pytest.fixture
def tales(tmp_path):
    """tales.csv, in which the first tale of each type has none."""
    rows = [{**tale, "id": tale["title"], "atu": "" if tale["title"] in LACKING else tale["atu"]} for tale in TALES]
    write_table(tmp_path / "tales.csv", rows)
    return "tales.csv"


@pytest.mark.long
def test_proposals_are_printed_written_and_accepted(narrlit, tales):
    found = narrlit("catalog", tales, "--column", "atu", "--out", "proposals.csv")

    assert found.code == 0, found.err
    assert "Of 16 stories with a value in the column atu, the others propose the right one for 0." in found.out
    assert "8 stories without a value." in found.out

    with Path("proposals.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["title"] for row in rows} == set(LACKING)
    for row in rows:
        row["accepted"] = "x" if LACKING[row["title"]] == row["value"] else ""
    write_table("marked.csv", rows)
    found = narrlit("catalog", tales, "--column", "atu", "--accepted", "marked.csv", "--filled", "filled.csv")

    assert found.code == 0, found.err
    filled = {row.value["title"]: row.value for row in read_rows("filled.csv").rows}
    accepted = {title for title, row in filled.items() if row["atu_source"] == "accepted"}
    assert len(accepted) >= 5
    assert all(filled[title]["atu"] == LACKING[title] for title in accepted)


def test_probable_values_are_filled_in_and_the_record_is_one_json_object(narrlit, tales):
    options = ("--column", "atu", "--at-least", "0.3", "--filled", "filled.jsonl", "--json")
    found = narrlit("catalog", tales, *options)

    assert found.code == 0, found.err
    record = json.loads(found.out)
    probable = [row for row in record["proposals"] if row["values"][0]["probability"] >= 0.3]
    filled = [json.loads(line) for line in Path("filled.jsonl").read_text(encoding="utf-8").splitlines()]
    assert record["baseline"]["n"] == 16
    assert sum(row["atu_source"] == "accepted" for row in filled) == len(probable) > 0
    assert f"filled.jsonl: {len(probable)} accepted value" in found.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--column", "type"], "--column type: tales.csv has no such column"),
        (["--column", "atu", "--k", "0"], "--k 0: must be at least 1"),
        (["--column", "atu", "--filled", "f.csv"], "--filled needs either --accepted or --at-least"),
        (["--column", "atu", "--at-least", "0.5"], "--filled needs either --accepted or --at-least"),
        (["--column", "atu", "--at-least", "2", "--filled", "f.csv"], "--at-least 2.0: must be from 0 to 1"),
        (["--column", "title"], "--column title: tales.csv has no such column"),
    ],
)
def test_mistakes_cost_one_line(narrlit, tales, options, words):
    found = narrlit("catalog", tales, *options)

    assert found.code == 2
    assert words in found.err
