"""narrlit data mine: files in, files out, and what it says."""

import pytest
from command_lines import last_of

from narrlit.data.readers import read_examples


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


def test_rows_get_mined_negatives_after_their_own(mined, world_files, tmp_path):
    found = mined("--per-example", 4, "--margin", 2)
    assert found.code == 0
    assert found.out == ""

    before = rows_of(world_files / "train.jsonl")
    after = rows_of(tmp_path / "m.jsonl")
    everything = {text for texts, _ in before for text in texts}

    for (texts, kinds), (more, more_kinds) in zip(before, after, strict=True):
        assert more[: len(texts)] == texts
        assert kinds == ("triple", "theme", "action", "outcome")
        assert more_kinds == (*kinds, *["mined"] * 4)
        assert set(more) <= everything
        assert len(set(more)) == 10
    assert "train.jsonl: 12 rows" in found.err
    assert "m.jsonl: 48 negatives mined for 12 examples; 0 got fewer than 4, 0 none" in found.err
    assert "the margin excluded 0.0 % of dissimilar stories" in found.err


def test_the_margin_is_printed_and_a_low_one_leaves_nothing(mined, tmp_path):
    found = mined("--margin", "-1.9")
    assert found.code == 0, found.err
    assert "0 negatives mined for 12 examples; 12 got fewer than 9, 12 none; the margin excluded 100.0 %" in found.err
    assert all("mined" not in kinds for _, kinds in rows_of(tmp_path / "m.jsonl"))


def test_mining_twice_gives_the_same_file(mined, tmp_path):
    assert mined("--margin", 0).code == 0
    assert mined("--margin", 0, out="again.jsonl").code == 0
    assert mined("--margin", 0, source="m.jsonl", out="anew.jsonl").code == 0

    first = (tmp_path / "m.jsonl").read_bytes()
    assert first == (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "anew.jsonl").read_bytes()
    assert b'"mined"' in first


def test_options_without_use_cost_one_line(mined, tmp_path):
    mistakes = {"--per-example 0": "--per-example", "--margin 3": "--margin 3", "--out m.csv": "m.csv: name a file"}
    for options, message in {**mistakes, "--device cuda": "--device cud"}.items():
        found = mined(*options.split())
        assert found.code == 2
        assert found.err.splitlines()[-1].startswith(f"narrlit: error: {message}")
        assert list(tmp_path.iterdir()) == []
