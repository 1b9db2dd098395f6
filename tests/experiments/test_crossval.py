"""narrlit crossval: folds fitted, recorded, resumed and refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
import pytest
import yaml
from command_lines import last_of
from finished_fits import finished_fit, in_all_epochs
from folds import described_fold
from interruptions import Killed
from json_files import read_json
from refusals import assert_refusal, refused
from results import check_result

import narrlit
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.storyworld import StoryWorld, synthetic_examples
from narrlit.data.writers import write_examples
from narrlit.experiments import plan as module
from narrlit.experiments.crossval import Division, crossval_result
from narrlit.results import Result

ROWS = 10


@pytest.fixture
def crossval(narrlit, tiny):
    """crossval(*options): cross-validate a tiny model on d.jsonl, in which every triple occurs twice, into cv."""
    stories = StoryTable()
    world = StoryWorld(3).triples(ROWS)
    triples = synthetic_examples(world, [[] for _ in world], stories).rows
    copies = [TrainingExample(row.positive, row.anchor, row.negatives, row.kinds) for row in triples]
    ship, boat, saint = map(stories.add, ("A ship sails.", "A boat sails.", "A saint is born."))
    alone = [TrainingExample(ship, boat), TrainingExample(triples[0].anchor, saint)]
    write_examples("d.jsonl", TrainingExamples(stories, [*triples, *copies, *alone]))

    def run(*options, folds=2):
        files = ["--data", "FileData", "--data.train", "d.jsonl", "--data.loading.batch_size", 4]
        system = ["--config", "configs/baselines/triplet.yaml", "--config", "configs/hardware/cpu.yaml"]
        model = ["--model.init_args.encoder.model", tiny(), "--trainer.max_epochs", 2]
        own = last_of("--folds", folds, "--out", "cv", *options)
        return narrlit("crossval", *system, *model, *files, *own)

    return run


def write_status(run, status):
    (run / "run.json").write_text(json.dumps({**read_json(run / "run.json"), "status": status}))


@pytest.mark.long
@pytest.mark.slow
def test_folds_run_are_recorded_and_resume_after_a_kill(crossval, monkeypatch):
    run_fit = module.run_fit

    def killed(run, config):
        result = run_fit(run, config)
        if run.name == "fold_1":
            write_status(run, "running")
            (run / "left").touch()
            raise Killed
        return result

    monkeypatch.setattr(module, "run_fit", killed)

    with pytest.raises(Killed):
        crossval()
    assert not Path("cv/crossval.json").exists()

    monkeypatch.setattr(module, "run_fit", run_fit)
    first = read_json("cv/fold_0/run.json")

    found = crossval()

    assert found.code == 0, found.err
    assert "20 of 22 examples are evaluated; 2, which are synthetic or have no dissimilar story, are only" in found.err
    assert "fold_0: already finished" in found.err
    assert read_json("cv/fold_0/run.json") == first
    assert not Path("cv/fold_1/left").exists()

    check_result_of_folds(Result.read("cv/crossval.json"))
    assert found.out == Path("cv/crossval.md").read_text()
    assert len(pd.read_csv("cv/crossval.csv")) == 9  # of two folds, and pooled; the frozen encoder is one of three

    before = read_json("cv/crossval.json")
    shutil.rmtree("cv/fold_0")
    found = crossval()

    assert found.code == 0, found.err
    assert "fold_1: already finished" in found.err, found.err
    assert read_json("cv/crossval.json") == before
    assert read_json("cv/fold_0/run.json")["validations"] == first["validations"]

    found = crossval("--model.init_args.margin", "0.5")
    assert found.code == 2
    assert_refusal(found.error, "other_configuration", path="cv/config.yaml")
    assert "choose another --out or remove cv/config.yaml" in found.err

    rows = Path("d.jsonl").read_text().splitlines(keepends=True)
    Path("d.jsonl").write_text("".join([*rows[1:], rows[0].replace("the", "a")]))
    found = crossval()

    assert found.code == 2
    assert_refusal(found.error, "other_examples", path="cv/fold_0", folder="cv")
    assert read_json("cv/crossval.json") == before


def check_result_of_folds(result):
    settings = result.settings
    names = ("folds", "examples", "never_evaluated", "groups", "ungrouped")
    assert [settings[name] for name in names] == [2, 22, 2, 11, False]
    fits = settings["fits"]
    for fold, fit in enumerate(fits):
        run = read_json(f"cv/{fit['run']}/run.json")
        assert (fit["fold"], fit["evaluated"], fit["groups"], fit["num_evaluations"]) == (fold, 10, 5, 2)
        assert fit["flags"] == []
        assert run["data"]["validation"]["fold"]["fold"] == fold
        last = result.estimate(metric="accuracy_last_epoch", fold=fold)
        assert last.value == pytest.approx(run["validations"][-1]["accuracy"])
        best = result.estimate(metric="accuracy_best_epoch", fold=fold)
        assert best.value == pytest.approx(max(evaluation["accuracy"] for evaluation in run["validations"]))
    # One example trains in both folds, the other shares a story with the evaluated ones of one fold.
    assert sorted(fit["trained"] for fit in fits) == [11, 12]
    assert sorted(fit["left_out"] for fit in fits) == [0, 1]
    for metric in ("accuracy_last_epoch", "accuracy_best_epoch"):
        accuracies = [result.estimate(metric=metric, fold=fold).value for fold in (0, 1)]
        pooled = result.estimate(metric=metric)
        assert pooled.n == 20
        assert pooled.value == pytest.approx(mean(accuracies))  # of equal size
        assert pooled.method == "by_story"  # a group is three stories in several examples
        row = result.figures[result.figures["metric"] == metric].iloc[0]
        assert row["deviation"] == pytest.approx(stdev(accuracies))


@pytest.mark.long
@pytest.mark.slow
def test_folds_by_example_are_flagged_and_a_fold_is_a_model(crossval, narrlit):
    found = crossval("--ungrouped", "--trainer.max_epochs", 1)
    assert found.code == 0, found.err
    assert "warning: folds by example" in found.err
    result = Result.read("cv/crossval.json")
    assert result.settings["ungrouped"] is True
    assert {"ungrouped", "no_result", "flags"} <= {note.code for note in result.notes}

    config = yaml.safe_load(Path("cv/fold_1/config.yaml").read_text())
    assert config["data"]["init_args"]["fold"] == 1

    Path("d.txt").write_text("A ship sails.\n")
    assert narrlit("embed", "d.txt", "--model", "cv/fold_1", "--out", "v.npy").code == 0


@pytest.mark.parametrize(
    ("options", "code", "values"),
    [
        (["--folds", "1"], "few_folds", {"folds": 1}),
        (["--folds", "11"], "few_groups", {"groups": 10}),
        (["--data.train", "alone.jsonl"], "no_triple_to_evaluate", {}),
        (["--data.train", "none.jsonl"], "no_such_file", {"path": "none.jsonl"}),
        (["--config", "configs/none.yaml"], "mistyped_config", {"path": "configs/none.yaml"}),
        (["--out", "full"], "output_not_empty", {"path": "full"}),
        (["--trainer.limit_val_batches", "1"], "unusable_setting", {"purpose": "a cross-validation"}),
        (["--model.init_args.scales", "1"], "invalid_settings", {}),
    ],
)
def test_mistakes_cost_one_line_and_no_fit(crossval, tmp_path, options, code, values):
    rows = [TrainingExample(0, 1, (2,), ("theme",)), TrainingExample(3, 4)]
    write_examples("alone.jsonl", TrainingExamples(StoryTable.of("abcde"), rows))
    Path("full").mkdir()
    Path("full/thesis.tex").touch()
    found = crossval(*options)

    assert found.code == 2
    assert_refusal(found.error, code, **values)
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.jsonl", "d.jsonl", "full"]


def test_synthetic_examples_are_pooled_separately(tmp_path):
    def fits(name, synthetic):
        made = []
        for fold, wrong in enumerate(([0, 1, 9], [1, 2])):
            description = replace(described_fold(fold), synthetic=synthetic[fold])
            answers = in_all_epochs(wrong) | {"reference": wrong}
            made.append(finished_fit(tmp_path / name, f"fold_{fold}", answers, fold=description))
        return made

    result = crossval_result(tmp_path, fits("a", [6, 8]), Division(2))
    for metric in ("accuracy_last_epoch", "accuracy_best_epoch", "accuracy_reference"):
        synthetic = result.estimate(metric=metric, subset="origin: synthetic")
        other = result.estimate(metric=metric, subset="origin: other")
        assert (synthetic.n, synthetic.value) == (14, pytest.approx(12 / 14))
        assert (other.n, other.value) == (6, 0.5)
    assert result.estimate(metric="accuracy_last_epoch").value == 15 / 20
    assert "synthetic_evaluated" in [note.code for note in result.notes]
    assert set(result.answers["origin"]) == {"synthetic", "other"}
    assert result.figures.loc[result.figures["subset"] != "all", "ties"].isna().all()
    check_result(result, tmp_path / "out")

    without = crossval_result(tmp_path, fits("b", [0, 0]), Division(2))
    assert set(without.figures["subset"]) == {"all"}


@pytest.mark.long
@pytest.mark.slow
def test_python_cross_validates_with_seeds(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stories = StoryTable()
    world = StoryWorld(3).triples(4)
    write_examples("d.jsonl", synthetic_examples(world, [[] for _ in world], stories))
    settings = {"data": "FileData", "data.train": "d.jsonl", "trainer.max_epochs": 1, "model.encoder.model": tiny()}
    configs = ["configs/baselines/triplet.yaml", "configs/hardware/cpu.yaml"]
    result = narrlit.crossval(configs, settings, out="cv", folds=2, seeds=[1, 2])

    assert list(result.runs) == ["seed_1_fold_0", "seed_1_fold_1", "seed_2_fold_0", "seed_2_fold_1"]
    assert {run.record.seed for run in result.runs.values()} == {1, 2}

    last = result.table().query("metric == 'accuracy_last_epoch'")
    pooled = last[last.fold.isna() & last.seed.notna()].set_index("seed")
    folds = last[last.fold.notna()].groupby("seed")

    assert pooled.value.to_dict() == pytest.approx(folds.value.mean().to_dict())  # of equal size
    assert pooled.n.tolist() == [4, 4]
    assert last.value.iloc[0] == pytest.approx(pooled.value.mean())
    assert last.deviation.iloc[0] == pytest.approx(pooled.value.std())
    check_result(result, tmp_path / "cv")
    with refused("few_folds", folds=1):
        narrlit.crossval(configs, settings, out="cv", folds=1)
    with refused("invalid_seeds", seeds=[1, 1]):
        narrlit.crossval(configs, settings, out="cv", folds=2, seeds=[1, 1])
