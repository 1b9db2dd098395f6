"""narrlit mine: files in, files out, and what it says."""

import json

import pytest
from command_lines import last_of

from narrlit.data.readers import read_examples
from narrlit.data.records import Example, Negative
from narrlit.data.writers import write_examples


@pytest.fixture
def mined(narrlit, world_files, tiny):
    """mined(*options): mine the world's training rows into m.jsonl."""

    def run(*options, source=world_files / "train.jsonl", out="m.jsonl"):
        return narrlit(*last_of("mine", source, "--model", tiny(), "--out", out, *options))

    return run


def kinds(example):
    return [negative.kind for negative in example.negatives]


def test_rows_get_mined_negatives_after_their_own(mined, world_files, tmp_path):
    found = mined("--per-example", 4, "--margin", 2)
    assert (found.code, found.out) == (0, "")
    before = read_examples(world_files / "train.jsonl").records
    after = read_examples(tmp_path / "m.jsonl", strict=True).records
    texts = {text for example in before for text in example.texts}
    for one, other in zip(before, after, strict=True):
        assert (one.anchor, one.positive, one.negatives) == (other.anchor, other.positive, other.negatives[:4])
        assert kinds(other) == ["triple", "theme", "structure", "outcome", *["mined"] * 4]
        assert {negative.text for negative in other.negatives} <= texts
        assert len(set(other.texts)) == 10
    assert "train.jsonl: 12 rows" in found.err
    assert "m.jsonl: 48 negatives mined for 12 rows; 0 got fewer than 4, 0 of them none" in found.err
    assert "the margin left out 0.0 % of the wrong stories" in found.err


def test_the_margin_is_told_and_a_low_one_leaves_nothing(mined, tmp_path):
    found = mined("--margin", "-1.9")
    assert found.code == 0, found.err
    assert (
        "0 negatives mined for 12 rows; 12 got fewer than 9, 12 of them none; the margin left out 100.0 %" in found.err
    )
    assert all("mined" not in kinds(example) for example in read_examples(tmp_path / "m.jsonl").records)


def test_mining_twice_gives_the_same_file(mined, tmp_path):
    assert mined("--margin", 0).code == 0
    assert mined("--margin", 0, out="again.jsonl").code == 0
    assert mined("--margin", 0, source="m.jsonl", out="anew.jsonl").code == 0
    first = (tmp_path / "m.jsonl").read_bytes()
    assert first == (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "anew.jsonl").read_bytes()
    assert b'"mined"' in first


def test_mined_negatives_are_replaced_and_not_added_to(mined, tmp_path):
    assert mined("--per-example", 5, "--margin", 2).code == 0
    assert mined("--per-example", 2, "--margin", 2, source="m.jsonl", out="n.jsonl").code == 0
    for more, fewer in zip(*(read_examples(tmp_path / name).records for name in ("m.jsonl", "n.jsonl")), strict=True):
        assert fewer.negatives == more.negatives[:6]


def test_triples_of_any_layout_will_do_and_dropped_rows_are_told(mined, tmp_path):
    rows = [
        "anchor_text,text_a,text_b,text_a_is_closer",
        "A ship.,A dog.,A boat.,false",
        "A king.,A queen.,A tree.,true",
    ]
    (tmp_path / "t.csv").write_text("\n".join([*rows, "x,,z,1"]))
    found = mined("--margin", 2, source="t.csv")
    assert found.code == 0, found.err
    assert "t.csv: 2 of 3 rows, dropped 1 (1 empty text_a)" in found.err
    first, second = read_examples(tmp_path / "m.jsonl").records
    assert (first.anchor, first.positive, first.negatives[0]) == ("A ship.", "A boat.", Negative("A dog.", "triple"))
    assert {negative.text for negative in first.negatives[1:]} == {"A king.", "A queen.", "A tree."}
    assert kinds(second) == ["triple", "mined", "mined", "mined"]
    found = mined("--strict", source="t.csv")
    assert (found.code, "t.csv:4: empty text_a; mend the row" in found.err) == (2, True)


def test_rows_that_are_all_alike_are_written_as_they_were(mined, tmp_path):
    chain = [Example("A ship.", "A boat."), Example("A boat.", "A ferry."), Example("A raft.", "A ferry.")]
    write_examples(tmp_path / "alike.jsonl", chain)
    found = mined(source="alike.jsonl")
    assert found.code == 0, found.err
    assert (
        "0 negatives mined for 3 rows; 3 got fewer than 9, 3 of them none; no story is wrong for any anchor"
        in found.err
    )
    assert read_examples(tmp_path / "m.jsonl").records == chain


def test_texts_over_the_limit_are_counted(mined, tmp_path):
    write_examples(tmp_path / "long.jsonl", [Example("A ship. " * 99, "A boat."), Example("A dog.", "A cat.")])
    found = mined(source="long.jsonl")
    assert (found.code, "1 story was longer than 96 tokens and truncated" in found.err) == (0, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--per-example", "0"], "--per-example 0: at least 1 is needed"),
        (["--margin", ".nan"], "--margin"),
        (["--margin", "3"], "--margin 3.0: "),
        (["--out", "m.csv"], "--out m.csv: name a file that ends in .jsonl"),
        (["--out", "folder.jsonl"], "folder.jsonl is a folder: name a file"),
        (["--out", "file.txt/m.jsonl"], "cannot write file.txt/m.jsonl"),
        (["--model", "nowhere.ckpt"], "nowhere.ckpt"),
        (["--device", "cuda"], "--device cuda"),
    ],
)
def test_options_without_use_cost_one_line(mined, tmp_path, options, words):
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "file.txt").touch()
    found = mined(*options)
    assert found.code == 2
    lines = [line for line in found.err.splitlines() if not line.startswith("train.jsonl: ")]
    assert len(lines) == 1
    assert lines[0].startswith("narrlit: error: ")
    assert words in lines[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.txt", "folder.jsonl"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "in.jsonl does not exist"),
        ("", "in.jsonl is empty"),
        (json.dumps({"text": "a"}), "unknown layout"),
        (json.dumps({"anchor": "a", "positive": "a"}), "anchor is its positive"),
    ],
)
def test_files_without_use_cost_one_line(mined, tmp_path, content, words):
    if content is not None:
        (tmp_path / "in.jsonl").write_text(content)
    found = mined(source="in.jsonl")
    assert found.code == 2
    assert found.err.startswith("narrlit: error: ")
    assert len(found.err.strip().splitlines()) == 1
    assert words in found.err
    assert not (tmp_path / "m.jsonl").exists()
