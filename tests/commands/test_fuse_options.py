"""narrlit fuse: what its models read of stories, and whether they were trained on them."""

import json
import shutil
from pathlib import Path

import pytest

from narrlit.data.readers import file_digest
from narrlit.errors import ModelError
from narrlit.options import seen_in_training

QUICK = ["--grid", "1", "--folds", "2", "--missing-views", "positional", "--out", "o"]
SEEN = "trained on these triples: no result"


@pytest.fixture
def fuse(narrlit, world_files, tiny):
    """fuse(*options): fuse.json of triples whose views are cut by position, and what was printed."""

    def run(*options):
        models = () if "--models" in options else ("--models", tiny())
        found = narrlit("fuse", world_files / "validation.jsonl", *models, *QUICK, *options)
        assert found.code == 0, found.err
        return json.loads(Path("o/fuse.json").read_text()), found

    return run


@pytest.mark.parametrize("options", [["--max-length", "5"], ["--pseudonymize", "rules", "--scope", "triple"]])
def test_stories_are_read_as_evaluate_reads_them(fuse, narrlit, world_files, tiny, options):
    kept, found = fuse(*options)
    full = next(s for s in kept["models"][0]["settings"] if s["name"] == "full_only")
    alone = json.loads(narrlit("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--json", *options).out)
    assert (full["correct"], full["ties"]) == (alone["correct"], alone["ties"])
    if "--max-length" in options:
        assert kept["models"][0]["max_length"] == 5
        assert kept["models"][0]["truncated"] > 20
        assert (kept["pseudonyms"], "Names:" in found.out) == (None, False)
    else:
        assert (kept["pseudonyms"]["backend"], kept["pseudonyms"]["scope"]) == ("rules", "triple")
        assert "Names: placeholders, found by rules, the same within a triple." in found.out
    assert "views: triples, " in found.err
    assert found.err.count("cut by position") == 1


def record(folder, train, validation="v", **marks):
    """run.json of a run that trained on a file with the digest `train`."""
    data = {"train": {"files": [{"path": "t.jsonl", "sha256": train}]}}
    data["validation"] = {"files": [{"path": "v.jsonl", "sha256": validation}]}
    (folder / "run/checkpoints").mkdir(parents=True)
    (folder / "run/run.json").write_text(json.dumps({"data": data, "marks": marks}))
    return str(folder / "run")


@pytest.mark.parametrize("place", ["", "/checkpoints/last.ckpt", "/last.ckpt"])
def test_a_run_knows_what_it_trained_on(tmp_path, place):
    run = record(tmp_path, "abc", trained_on_validation=False)
    assert seen_in_training(run + place, "abc") == f"{SEEN} (run trained on t.jsonl)"
    # Validated by them it was, which is not training.
    assert seen_in_training(run + place, "v") is None
    assert seen_in_training(run + place, "other") is None


def test_a_marked_run_was_trained_on_its_validation_triples(tmp_path):
    run = record(tmp_path, "abc", trained_on_validation=True)
    assert seen_in_training(run, "v") == f"{SEEN} (run is flagged trained_on_validation)"
    told = seen_in_training(run, "other")
    assert told == "trained on triples that it was validated by (v.jsonl): no result where these are among them"


def test_a_model_without_a_record_says_nothing_and_a_broken_one_is_named(tmp_path):
    assert seen_in_training("minilm", "abc") is None
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(ModelError, match=r"run\.json: it is no run record"):
        seen_in_training(str(tmp_path / "last.ckpt"), "abc")
    (tmp_path / "run.json").write_text('{"data": {"train": {"storyworld": {"seed": 1}}, "validation": {}}}')
    assert seen_in_training(str(tmp_path), "abc") is None


def test_the_block_and_the_report_say_so(fuse, narrlit, world_files, tiny, monkeypatch, tmp_path):
    kept, found = fuse()
    assert (kept["models"][0]["seen_in_training"], SEEN in found.out) == (None, False)
    run = record(tmp_path, file_digest(world_files / "validation.jsonl"))
    shutil.copytree(tiny(), run, dirs_exist_ok=True)
    monkeypatch.setattr("narrlit.models.source.find_checkpoint", lambda source: None)  # the folder is the model
    kept, found = fuse("--models", f"{run},{tiny()}")
    assert [entry["seen_in_training"] for entry in kept["models"]] == [f"{SEEN} (run trained on t.jsonl)", None]
    first, second = found.out.split(f"## {tiny()}")
    assert f"{run}: {SEEN} (run trained on t.jsonl).\n" in first
    assert SEEN not in second
    assert SEEN in Path("o/fuse.md").read_text()
