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
from folds import described_fold
from interruptions import Killed
from json_files import read_json

import narrlit
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.storyworld import StoryWorld, synthetic_examples
from narrlit.data.writers import write_examples
from narrlit.errors import OptionError
from narrlit.experiments import plan as module
from narrlit.experiments.crossval import crossval_report
from narrlit.experiments.outcome import Outcome, Scored
from narrlit.experiments.plan import FinishedFit, PlannedFit
from narrlit.metrics.significance import AccuracySummary

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

    check_report(read_json("cv/crossval.json"))
    assert found.out == Path("cv/crossval.md").read_text()

    low, high = read_json("cv/crossval.json")["pooled"]["last_epoch"]["interval"]
    assert f"[{low:.3f}, {high:.3f}]" in next(line for line in found.out.splitlines() if line.startswith("| pooled"))

    check_table(read_json("cv/crossval.json"))

    before = read_json("cv/crossval.json")
    shutil.rmtree("cv/fold_0")
    found = crossval()

    assert found.code == 0, found.err
    assert "fold_1: already finished" in found.err, found.err
    assert read_json("cv/crossval.json") == before
    assert read_json("cv/fold_0/run.json")["validations"] == first["validations"]

    found = crossval("--model.init_args.margin", "0.5")
    assert found.code == 2
    assert "cv/config.yaml has another configuration (model.init_args.margin: " in found.err

    rows = Path("d.jsonl").read_text().splitlines(keepends=True)
    Path("d.jsonl").write_text("".join([*rows[1:], rows[0].replace("the", "a")]))
    found = crossval()

    assert found.code == 2
    assert "cv/fold_0 used other examples" in found.err
    assert read_json("cv/crossval.json") == before


def check_table(found):
    """The CSV file has a row for each accuracy: of two folds, and pooled; the frozen encoder is one of three."""
    table = pd.read_csv("cv/crossval.csv")
    assert list(table) == ["system", "fold", "seed", "metric", "value", "n", "low", "high"]
    assert len(table) == 9
    last = table[table.metric == "accuracy_last_epoch"]
    pooled = found["pooled"]["last_epoch"]
    expected = [entry["last_epoch"]["accuracy"] for entry in found["by_fold"]] + [pooled["accuracy"]]
    assert last.value.tolist() == pytest.approx(expected)
    assert last.iloc[-1][["low", "high"]].tolist() == pytest.approx(pooled["interval"])
    assert last.fold.tolist()[:2] == [0, 1]


def check_report(found):
    runs = [read_json(f"cv/fold_{fold}/run.json") for fold in (0, 1)]
    assert [found[name] for name in ("folds", "examples", "never_evaluated", "groups", "ungrouped")] == [
        *(2, 22, 2, 11),
        False,
    ]
    for entry, run in zip(found["by_fold"], runs, strict=True):
        evaluations = run["validations"]
        assert entry["evaluated"] == 10
        assert entry["groups"] == 5
        assert entry["num_evaluations"] == 2
        assert entry["last_epoch"]["accuracy"] == evaluations[-1]["accuracy"]
        assert entry["best_epoch"]["accuracy"] == max(e["accuracy"] for e in evaluations)
        assert entry["flags"] == []
        assert run["data"]["validation"]["fold"]["fold"] == entry["fold"]
    # One example trains in both folds, the other shares a story with the evaluated ones of one fold.
    assert sorted(entry["trained"] for entry in found["by_fold"]) == [11, 12]
    assert sorted(entry["left_out"] for entry in found["by_fold"]) == [0, 1]
    for name in ("last_epoch", "best_epoch"):
        pooled = found["pooled"][name]
        over = found["over_folds"][name]
        right = sum(entry[name]["correct"] for entry in found["by_fold"])
        assert pooled["n"] == 20
        assert pooled["accuracy"] == right / 20
        assert pooled["interval_method"] == "by_story"  # a group is three stories in several examples
        assert pooled["interval"][0] < pooled["accuracy"] < pooled["interval"][1]
        accuracies = [entry[name]["accuracy"] for entry in found["by_fold"]]
        assert over["mean"] == mean(accuracies)
        assert over["standard_deviation"] == stdev(accuracies)


@pytest.mark.long
@pytest.mark.slow
def test_folds_by_example_are_flagged_and_a_fold_is_a_model(crossval, narrlit):
    found = crossval("--ungrouped", "--trainer.max_epochs", 1)
    assert found.code == 0, found.err
    assert "warning: folds by example" in found.err
    assert "UNGROUPED" in found.out
    assert "Flags of the folds' runs: trained_on_validation." in found.out
    assert read_json("cv/crossval.json")["ungrouped"] is True

    config = yaml.safe_load(Path("cv/fold_1/config.yaml").read_text())
    assert config["data"]["init_args"]["fold"] == 1

    Path("d.txt").write_text("A ship sails.\n")
    assert narrlit("embed", "d.txt", "--model", "cv/fold_1", "--out", "v.npy").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--folds", "1"], "--folds 1: at least 2"),
        (["--folds", "11"], "only 10 such groups"),
        (["--data.train", "alone.jsonl"], "no training row can be evaluated"),
        (["--data.train", "none.jsonl"], "none.jsonl does not exist"),
        (["--config", "configs/none.yaml"], "none.yaml"),
        (["--out", "full"], "full exists and is not empty"),
        (["--trainer.limit_val_batches", "1"], "trainer.limit_val_batches cannot be used in a cross-validation"),
        (["--model.init_args.scales", "1"], "scales"),
    ],
)
def test_mistakes_cost_one_line_and_no_fit(crossval, tmp_path, options, words):
    rows = [TrainingExample(0, 1, (2,), ("theme",)), TrainingExample(3, 4)]
    write_examples("alone.jsonl", TrainingExamples(StoryTable.of("abcde"), rows))
    Path("full").mkdir()
    Path("full/thesis.tex").touch()
    found = crossval(*options)

    assert found.code == 2
    assert words in found.err.strip().splitlines()[-1]
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.jsonl", "d.jsonl", "full"]


def fit_of(fold, last, best):
    """A fit on a fold of 10 examples, of which so many are right; None: scores are NaN."""

    def scored(correct):
        undefined = 4 if correct is None else 0
        return Scored(AccuracySummary(10, correct or 0, undefined=undefined), None if undefined else set(), 1)

    class Fit(FinishedFit):
        outcome = Outcome({"last_epoch": scored(last), "best_epoch": scored(best)}, 3)

    return Fit(PlannedFit(f"fold_{fold}", {}, "", fold=described_fold(fold)), None)


def test_without_the_accuracy_of_a_fold_there_is_no_pooled_one():
    made = crossval_report([fit_of(0, 6, 8), fit_of(1, None, 7)], [])
    assert made.content["pooled"]["last_epoch"]["accuracy"] is None
    assert made.content["over_folds"]["last_epoch"] == {"mean": None, "standard_deviation": None}
    assert made.content["pooled"]["best_epoch"]["accuracy"] == 0.75
    assert made.markdown().splitlines()[-5].count("none: scores are NaN") == 1  # mean ± standard deviation
    assert made.markdown().count("none: scores are NaN") == 3


def test_synthetic_examples_are_pooled_separately():
    def fit(fold, synthetic, wrong):
        scored = Scored(AccuracySummary(10, 10 - len(wrong)), set(wrong), 1)

        class Fit(FinishedFit):
            outcome = Outcome({"last_epoch": scored, "best_epoch": scored, "reference": scored}, 1)

        return Fit(PlannedFit("", {}, "", fold=replace(described_fold(fold), synthetic=synthetic)), None)

    fits = [fit(0, 6, [0, 1, 9]), fit(1, 8, [1, 2])]
    content = crossval_report(fits, []).content
    pooled = content["pooled_by_origin"]

    for name in ("last_epoch", "best_epoch", "reference"):
        counts = {origin: (scores[name]["n"], scores[name]["correct"]) for origin, scores in pooled.items()}
        assert counts == {"synthetic": (14, 12), "other": (6, 3)}
    assert content["pooled"]["last_epoch"]["correct"] == 15
    assert crossval_report([fit(0, 0, []), fit(1, 0, [])], []).content["pooled_by_origin"] == {}


@pytest.mark.long
@pytest.mark.slow
def test_python_cross_validates_with_seeds(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stories = StoryTable()
    world = StoryWorld(3).triples(4)
    write_examples("d.jsonl", synthetic_examples(world, [[] for _ in world], stories))
    options = {"data": "FileData", "data.train": "d.jsonl", "trainer.max_epochs": 1, "model.encoder.model": tiny()}
    configs = ["configs/baselines/triplet.yaml", "configs/hardware/cpu.yaml"]
    result = narrlit.crossval(configs, options, folder="cv", folds=2, seeds=[1, 2])

    assert list(result.runs) == ["seed_1_fold_0", "seed_1_fold_1", "seed_2_fold_0", "seed_2_fold_1"]
    assert {run.record.seed for run in result.runs.values()} == {1, 2}

    last = result.table().query("metric == 'accuracy_last_epoch'")
    pooled = last[last.fold.isna()].set_index("seed")
    folds = last[last.fold.notna()].groupby("seed")

    assert pooled.value.to_dict() == pytest.approx(folds.value.mean().to_dict())  # of equal size
    assert pooled.n.tolist() == [4, 4]
    assert "| trained |" in str(result)
    assert len(result.plot().get_yticklabels()) == 4

    result.write()
    assert Path("cv/crossval.md").read_text() == f"{result}\n"
    with pytest.raises(OptionError, match=r"`folds=1`: at least 2 are needed"):
        narrlit.crossval(configs, options, folder="cv", folds=1)
    with pytest.raises(OptionError, match="give two or more different whole numbers"):
        narrlit.crossval(configs, options, folder="cv", folds=2, seeds=[1, 1])
