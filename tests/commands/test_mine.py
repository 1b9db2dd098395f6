"""narrlit mine: files in, files out, and what it says."""

import json

import pytest
from command_lines import last_of

from narrlit.data.readers import read_examples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples


@pytest.fixture
def mined(narrlit, world_files, tiny):
    """mined(*options): mine the world's training rows into m.jsonl."""

    def run(*options, source=world_files / "train.jsonl", out="m.jsonl"):
        return narrlit(*last_of("mine", source, "--model", tiny(), "--out", out, *options))

    return run


def rows_of(path):
    """Texts (anchor, positive, negatives) and kinds of a file's examples."""
    examples = read_examples(path, strict=True)
    return [(texts, row.kinds) for texts, row in zip(examples.texts(), examples, strict=True)]


def chain(*pairs):
    stories = StoryTable()
    return TrainingExamples(stories, [TrainingExample(stories.add(a), stories.add(b)) for a, b in pairs])


def test_rows_get_mined_negatives_after_their_own(mined, world_files, tmp_path):
    found = mined("--per-example", 4, "--margin", 2)
    assert (found.code, found.out) == (0, "")
    before, after = rows_of(world_files / "train.jsonl"), rows_of(tmp_path / "m.jsonl")
    everything = {text for texts, _ in before for text in texts}
    for (texts, kinds), (more, more_kinds) in zip(before, after, strict=True):
        assert more[: len(texts)] == texts
        assert kinds == ("triple", "theme", "action", "outcome")
        assert more_kinds == (*kinds, *["mined"] * 4)
        assert set(more) <= everything
        assert len(set(more)) == 10
    assert "train.jsonl: 12 rows" in found.err
    assert "m.jsonl: 48 negatives mined for 12 examples; 0 got fewer than 4, 0 none" in found.err
    assert "the margin left out 0.0 % of dissimilar stories" in found.err


def test_the_margin_is_told_and_a_low_one_leaves_nothing(mined, tmp_path):
    found = mined("--margin", "-1.9")
    assert found.code == 0, found.err
    assert "0 negatives mined for 12 examples; 12 got fewer than 9, 12 none; the margin left out 100.0 %" in found.err
    assert all("mined" not in kinds for _, kinds in rows_of(tmp_path / "m.jsonl"))


def test_mining_twice_gives_the_same_file(mined, tmp_path):
    assert mined("--margin", 0).code == 0
    assert mined("--margin", 0, out="again.jsonl").code == 0
    assert mined("--margin", 0, source="m.jsonl", out="anew.jsonl").code == 0
    first = (tmp_path / "m.jsonl").read_bytes()
    assert first == (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "anew.jsonl").read_bytes()
    assert b'"mined"' in first


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
    (first, kinds), (_, others) = rows_of(tmp_path / "m.jsonl")
    assert (first[:3], kinds[0]) == (("A ship.", "A boat.", "A dog."), "triple")
    assert set(first[3:]) == {"A king.", "A queen.", "A tree."}
    assert others == ("triple", "mined", "mined", "mined")
    found = mined("--strict", source="t.csv")
    assert (found.code, "t.csv:4: empty text_a; correct the row" in found.err) == (2, True)


def test_rows_that_are_all_alike_are_written_as_they_were(mined, tmp_path):
    pairs = [("A ship.", "A boat."), ("A boat.", "A ferry."), ("A raft.", "A ferry.")]
    write_examples(tmp_path / "alike.jsonl", chain(*pairs))
    found = mined(source="alike.jsonl")
    assert found.code == 0, found.err
    assert (
        "0 negatives mined for 3 examples; 3 got fewer than 9, 3 none; no story is dissimilar to any anchor"
        in found.err
    )
    assert rows_of(tmp_path / "m.jsonl") == [(pair, ()) for pair in pairs]


def test_texts_over_the_limit_are_counted(mined, tmp_path):
    write_examples(tmp_path / "long.jsonl", chain(("A ship. " * 99, "A boat."), ("A dog.", "A cat.")))
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
        (json.dumps({"text": "a"}), "unknown columns: text"),
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
