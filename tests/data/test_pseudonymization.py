"""Placeholders for names in texts, rows and files, without the command line."""

import stat

import pytest
from json_files import read_json_lines
from refusals import refused

import narrlit
from narrlit.data.text_rows import TextRows

NAMES = {"Anna": "PERSON", "Bob": "PERSON", "Paris": "PLACE"}
TRIPLE = {"anchor_text": "Anna left Paris.", "text_a": "Bob left Paris.", "text_b": "Paris fell.", "year": 1900}


def test_texts_are_changed_each_by_itself_and_restored():
    texts = ["Anna meets Bob in Paris.", "Bob stays.", "Nobody."]
    result = narrlit.pseudonymize(texts, names=NAMES)
    assert result.rows == ["Character_A meets Character_B in Location_1.", "Character_A stays.", "Nobody."]
    assert str(result) == "3 rows, 4 names replaced"
    assert result.table()[["row", "original"]].to_numpy().tolist() == [
        [0, "Anna"],
        [0, "Bob"],
        [0, "Paris"],
        [1, "Bob"],
    ]
    assert narrlit.restore_names(result.rows, result.replacements).rows == texts


@pytest.mark.parametrize(
    ("scope", "text_a"), [("story", "Character_A left Location_1."), ("triple", "Character_B left Location_1.")]
)
def test_texts_of_a_triple_share_a_mapping_where_it_is_wanted(scope, text_a):
    [row] = narrlit.pseudonymize([TRIPLE], scope=scope, names=NAMES).rows
    assert row["text_a"] == text_a
    assert row["year"] == 1900


def test_a_story_and_its_views_share_a_mapping():
    row = {"id": 7, "text": "Anna meets Bob.", "theme": "Love", "plot_events": ["Bob meets Anna."], "outcome": "None"}
    result = narrlit.pseudonymize([row], names=NAMES)
    assert result.rows[0]["plot_events"] == ["Character_B meets Character_A."]
    assert [(text.row, text.id, text.field) for text in result.replacements if text.replacements] == [
        (0, 7, "text"),
        (0, 7, "plot_events/0"),
    ]
    with refused("scope_of_stories", path="texts"):
        narrlit.pseudonymize([row], scope="triple", names=NAMES)


def test_files_keep_rows_and_the_map_is_private(make, tmp_path):
    source = make("s.jsonl", [TRIPLE, TRIPLE])
    names = make("n.jsonl", [{"text": TRIPLE["text_b"], "names": {"Paris": "PLACE"}}])
    result = narrlit.pseudonymize(source, names=names)

    assert [row["text_b"] for row in result.rows] == ["Location_1 fell."] * 2
    assert result.rows[0]["anchor_text"] == TRIPLE["anchor_text"]  # of which no names are known

    result.write(tmp_path / "p.jsonl")
    result.write_map(tmp_path / "m.jsonl")
    assert stat.S_IMODE((tmp_path / "m.jsonl").stat().st_mode) == 0o600

    restored = narrlit.restore_names(tmp_path / "p.jsonl", tmp_path / "m.jsonl")
    restored.write(tmp_path / "r.jsonl")
    assert read_json_lines(tmp_path / "r.jsonl") == [TRIPLE, TRIPLE]
    assert str(restored) == "2 rows with their original names"


def test_a_map_of_other_rows_is_refused():
    result = narrlit.pseudonymize(["Anna ran.", "Bob ran."], names=NAMES)
    with refused("map_of_other_rows", map="the map", path="texts"):
        narrlit.restore_names(result.rows[:1], result.replacements)
    with refused("map_does_not_fit", path="texts", line=2):
        narrlit.restore_names([result.rows[0], "He ran."], result.replacements)


def test_files_that_cannot_hold_the_rows_are_refused_before_any_work():
    rows = TextRows.read([{"anchor": "a", "positive": "b", "negatives": ["c"]}])
    rows.check_output("p.jsonl")
    with refused("lists_of_texts", path="p.csv", source="texts"):
        rows.check_output("p.csv")
    with refused("text_output_suffix", path="p.docx"):
        rows.check_output("p.docx")
    with refused("no_text"):
        narrlit.pseudonymize([])
