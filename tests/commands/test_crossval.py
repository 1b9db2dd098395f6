"""narrlit crossval: folds run, recorded, resumed and refused."""

import json
import os
import shutil
from pathlib import Path
from statistics import mean, stdev

import pytest
import yaml
from run_helpers import fit_arguments

from narrlit.commands.crossval_report import report, table
from narrlit.data.records import Example, Negative
from narrlit.data.storyworld import StoryWorld, example
from narrlit.data.writers import write_examples
from narrlit.metrics.statistics import wilson_interval

pytestmark = pytest.mark.slow

ROWS = 10


@pytest.fixture
def crossval(narrlit, tiny, monkeypatch):
    """crossval(*options): cross-validate a tiny model on d.jsonl, in which every triple stands twice, into cv."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    paths = [str(Path(__file__).parents[1] / "helpers"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    triples = [example(triple) for triple in StoryWorld(3).triples(ROWS)]
    copies = [Example(row.positive, row.anchor, row.negatives) for row in triples]
    alone = [Example("A ship sails.", "A boat sails."), Example(triples[0].anchor, "A saint is born.")]
    write_examples("d.jsonl", [*triples, *copies, *alone])

    def run(*options, folds=2, data="d.jsonl"):
        files = ["--data", "FileData", "--data.train", data, "--data.loading.batch_size", 4]
        system = ["--config", "configs/baselines/triplet.yaml", "--config", "configs/hardware/cpu.yaml"]
        model = ["--model.init_args.encoder.model", tiny(), "--trainer.max_epochs", 2]
        own = ["--folds", folds, *([] if "--out" in options else ["--out", "cv"])]
        return narrlit("crossval", *system, *model, *files, *own, *options)

    return run


def read(path):
    return json.loads(Path(path).read_text())


def test_folds_run_are_recorded_and_go_on_after_a_kill(crossval):
    killer = ["--trainer.callbacks+=run_helpers.KillFold", "--trainer.callbacks.fold=1", "--trainer.callbacks.file=die"]
    Path("die").touch()
    found = crossval(*killer)
    assert found.code == 2
    assert "fold 1 failed (exit code -9)" in found.err.strip().splitlines()[-1]
    assert (read("cv/fold_0/run.json")["status"], read("cv/fold_1/run.json")["status"]) == ("finished", "running")
    assert not Path("cv/crossval.json").exists()
    Path("die").unlink()
    Path("cv/fold_1/left").touch()
    first = read("cv/fold_0/run.json")

    found = crossval(*killer)
    assert found.code == 0, found.err
    assert (
        "20 of 22 rows are judged, 2 synthetic or without a dissimilar story of their own only train; 11 groups"
        in found.err
    )
    assert "fold 0: finished before" in found.err
    assert read("cv/fold_0/run.json") == first
    assert not Path("cv/fold_1/left").exists()
    check_records(read("cv/crossval.json"))
    assert found.out == Path("cv/crossval.md").read_text()
    check_table(found.out, read("cv/crossval.json"))

    before = read("cv/crossval.json")
    shutil.rmtree("cv/fold_0")
    found = crossval(*killer)
    assert (found.code, "fold 1: finished before" in found.err) == (0, True), found.err
    assert read("cv/crossval.json") == before
    assert read("cv/fold_0/run.json")["validations"] == first["validations"]

    found = crossval(*killer, "--model.init_args.margin", "0.5")
    assert found.code == 2
    assert "cv/config.yaml is of another config (model.init_args.margin: " in found.err
    rows = Path("d.jsonl").read_text().splitlines(keepends=True)
    Path("d.jsonl").write_text("".join([*rows[1:], rows[0].replace("the", "a")]))
    found = crossval(*killer)
    assert (found.code, "cv/fold_0 was made of other rows" in found.err) == (2, True)
    assert read("cv/crossval.json") == before


def check_records(found):
    runs = [read(f"cv/fold_{fold}/run.json") for fold in (0, 1)]
    assert (found["folds"], found["rows"], found["never_judged"], found["groups"], found["ungrouped"]) == (
        *(2, 22, 2, 11),
        False,
    )
    for entry, run in zip(found["by_fold"], runs, strict=True):
        looks = run["validations"]
        assert (entry["judged"], entry["groups"], entry["looks"], entry["last_epoch"]["epoch"]) == (10, 5, 2, 1)
        assert entry["last_epoch"]["accuracy"] == looks[-1]["accuracy"]
        assert entry["best_epoch"]["accuracy"] == max(look["accuracy"] for look in looks)
        assert entry["stories_shared_with_training"] == 0
        assert run["marks"]["trained_on_validation"] is False
        assert run["data"]["validation"]["fold"]["fold"] == entry["fold"]
        assert run["data"]["train"]["files"][0]["rows"] == 22
    # One row alone trains in both folds, the other shares a story with the judged rows of one.
    assert sorted(entry["trained"] for entry in found["by_fold"]) == [11, 12]
    assert sorted(entry["left_out"] for entry in found["by_fold"]) == [0, 1]
    for name in ("last_epoch", "best_epoch"):
        pooled, over = found["pooled"][name], found["over_folds"][name]
        right = sum(entry[name]["correct"] for entry in found["by_fold"])
        assert (pooled["n"], pooled["correct"], pooled["accuracy"]) == (20, right, right / 20)
        assert pooled["interval"] == list(wilson_interval(right, 20))
        accuracies = [entry[name]["accuracy"] for entry in found["by_fold"]]
        assert (over["mean"], over["standard_deviation"]) == (mean(accuracies), stdev(accuracies))


def check_table(text, found):
    lines = text.splitlines()
    assert lines[2].startswith(f"| 0 | 5 | {found['by_fold'][0]['trained']} | 10 | ")
    low, high = found["pooled"]["last_epoch"]["interval"]
    assert f"| pooled | 11 |  | 20 | {found['pooled']['last_epoch']['accuracy']:.3f} [{low:.3f}, {high:.3f}] |" in text
    assert "mean ± standard deviation over folds" in text
    assert "Best epoch: accuracy in the epoch that the judged rows themselves chose, of 4 looks in all" in text
    assert "UNGROUPED" not in text


def test_a_fold_is_a_run_like_any_other_and_folds_by_row_are_marked(crossval, narrlit):
    found = crossval("--ungrouped", "--trainer.max_epochs", 1)
    assert found.code == 0, found.err
    assert "warning: folds by row" in found.err
    assert "UNGROUPED" in found.out
    assert read("cv/crossval.json")["ungrouped"] is True
    for fold in (0, 1):
        run = read(f"cv/fold_{fold}/run.json")
        assert run["data"]["validation"]["fold"]["ungrouped"] is True
        assert run["marks"]["trained_on_validation"] is True
        assert read("cv/crossval.json")["by_fold"][fold]["stories_shared_with_training"] > 0
    config = yaml.safe_load(Path("cv/fold_1/config.yaml").read_text())
    assert config["data"]["init_args"]["fold"] == 1
    assert narrlit("embed", "d.txt", "--model", "cv/fold_1", "--out", "v.npy").code == 2  # no file, but a model
    Path("d.txt").write_text("A ship sails.\n")
    assert narrlit("embed", "d.txt", "--model", "cv/fold_1", "--out", "v.npy").code == 0


def test_storyworld_is_cross_validated(narrlit, tiny, tmp_path):
    arguments = fit_arguments(tiny(), tmp_path, "--folds", 2, "--out", "cv", epochs=1)[1:]
    found = narrlit("crossval", *arguments)
    assert found.code == 0, found.err
    assert read("cv/crossval.json")["pooled"]["last_epoch"]["n"] == 16
    assert sorted(path.name for path in Path("cv").iterdir()) == [
        *("config.yaml", "crossval.json", "crossval.md", "fold_0", "fold_1")
    ]
    assert read("cv/fold_0/run.json")["data"]["train"]["storyworld"]["triples"] == 16


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--folds", "1"], "--folds 1: at least 2"),
        (["--folds", "11"], "--folds 11: rows that share stories stay together, and there are only 10 such groups"),
        (["--data.train", "alone.jsonl"], "no training row has a dissimilar story of its own"),
        (["--data.train", "none.jsonl"], "none.jsonl does not exist"),
        (["--config", "configs/none.yaml"], "none.yaml"),
        (["--out", "full"], "full exists and is not empty"),
        (["--ckpt_path", "x.ckpt"], "x.ckpt: no such file"),
        (["--trainer.limit_val_batches", "1"], "--trainer.limit_val_batches has no place in a cross-validation"),
        (["--trainer.check_val_every_n_epoch", "2"], "--trainer.check_val_every_n_epoch has no place"),
        (["--trainer.val_check_interval", "0.5"], "--trainer.val_check_interval has no place"),
        (["--trainer.fast_dev_run", "true"], "--trainer.fast_dev_run has no place"),
        (["--checkpoint.dirpath", "c"], "--checkpoint.dirpath has no place"),
        (["--model.init_args.scales", "1"], "scales"),
    ],
)
def test_mistakes_cost_one_line_and_no_fit(crossval, tmp_path, options, words):
    write_examples("alone.jsonl", [Example("a", "b", (Negative("c", "theme"),)), Example("d", "e")])
    Path("full").mkdir()
    Path("full/thesis.tex").touch()
    found = crossval(*options)
    assert found.code == 2
    assert words in found.err.strip().splitlines()[-1]
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.jsonl", "d.jsonl", "full"]


def test_help_is_of_the_command(narrlit):
    found = narrlit("crossval", "--help")
    assert (found.code, "--fold_seed" in found.out, "trainer" in found.out) == (0, True, False)


def entry(fold, last, best, looks=3):
    def look(correct):
        accuracy, interval = (None, None) if correct is None else (correct / 10, [0, 1])
        counts = {"n": 10, "correct": correct or 0, "ties": 0, **({"undefined": 4} if correct is None else {})}
        return {"epoch": 1, **counts, "accuracy": accuracy, "interval": interval}

    return {
        **dict.fromkeys(("groups", "trained", "judged", "left_out"), 10),
        "fold": fold,
        "looks": looks,
        "marks": [],
        "last_epoch": look(last),
        "best_epoch": look(best),
    }


DESCRIPTION = {
    "fold_seed": 0, "ungrouped": False, "all_rows": 20, "never_judged": 0, "all_groups": 10, "largest_group": 2
}  # fmt: skip


def test_a_fold_without_an_accuracy_leaves_the_whole_without_one():
    found = report([entry(0, 6, 8), entry(1, None, 7)], DESCRIPTION, [])
    assert found["pooled"]["last_epoch"]["accuracy"] is None
    assert found["over_folds"]["last_epoch"] == {"mean": None, "standard_deviation": None}
    assert found["pooled"]["best_epoch"]["accuracy"] == 0.75
    assert "none: scores are NaN" in table(found)


def test_marks_of_a_folds_run_are_told():
    found = report([entry(0, 6, 8), {**entry(1, 5, 7), "marks": ["transductive"]}], DESCRIPTION, [])
    assert "Marks of the folds' runs: transductive." in table(found)
    assert "Marks" not in table(report([entry(0, 6, 8), entry(1, 5, 7)], DESCRIPTION, []))


def test_what_decides_by_the_judged_rows_is_named():
    found = report([entry(0, 6, 8), entry(1, 5, 7)], DESCRIPTION, ["EarlyStopping"])
    assert "EarlyStopping decided by the judged rows" in found["meaning"]["last_epoch"]
    assert "EarlyStopping" in table(found)
