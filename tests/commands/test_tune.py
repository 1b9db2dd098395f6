"""narrlit tune: a search run, pruned, killed, gone on with, and judged on rows that it was not chosen by."""

import gc
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
import torch
from run_helpers import fit_arguments, run_apart

from narrlit.commands.folded import folded
from narrlit.errors import OptionError
from narrlit.metrics.statistics import mcnemar, wilson_interval

slow = pytest.mark.slow

ROWS = 40
# Below 0.01 the tiny model learns nothing in three epochs.
SPACE = """
model.init_args.optimization.learning_rate: {low: 1.0e-4, high: 1.0e-1, log: true}
model.init_args.scale: {low: 5, high: 30}
data.init_args.loading.batch_size: {choices: [4, 8]}
"""
ONE = "model.init_args.scale: {low: 5, high: 30}"


@pytest.fixture
def arguments(tiny, tmp_path, monkeypatch):
    """arguments(*options): `narrlit tune` on a few invented stories in two folds, into t."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text(SPACE)

    def run(*options, trials=4):
        fit = fit_arguments(tiny(), tmp_path, "--data.init_args.train", ROWS, "--seed_everything", 42)[1:]
        own = ["--folds", 2, "--trials", trials, "--trials_before_pruning", 3]
        given = ["--space", "space.yaml", "--out", "t"]
        return ["tune", *fit, *own, *given, *options]

    return run


def read(path):
    return json.loads(Path(path).read_text())


def records():
    return {path.parent.name: read(path) for path in sorted(Path("t").glob("*/run.json"))}


@slow
def test_a_search_is_killed_and_goes_on(arguments, narrlit, tmp_path):
    killer = ["--trainer.callbacks+=run_helpers.KillRun", "--trainer.callbacks.file=die"]
    options = arguments(*killer, trials=5)
    Path("die").write_text("trial_0002")
    killed = run_apart(options, tmp_path)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "fold 0: 20 rows train, 20 are judged in every trial; fold 1 left for the winner" in killed.stderr
    before = records()
    assert [found["status"] for found in before.values()] == ["finished", "finished", "running"]
    assert len(before["trial_0002"]["validations"]) == 1
    Path("die").unlink()
    Path("t/trial_0002/left").touch()
    encoders = living_encoders()

    found = narrlit(*options)
    assert found.code == 0, found.err
    assert living_encoders() <= encoders
    assert "trial 1:" not in found.err
    assert "trial 3: " in found.err
    after = records()
    assert {name: after[name] for name in before} == before  # what was there stays
    check_trials(read("t/tune.json"), after)
    check_held_out(read("t/tune.json"), after)
    check_rows(after, options)
    assert found.out == Path("t/tune.md").read_text()
    assert not list(Path("t").glob("trial_*/**/*.ckpt"))

    check_a_trial_is_a_fit_like_any_other(narrlit, after)
    check_again(narrlit, arguments, options, found.out)


def living_encoders():
    from narrlit.models.encoder import Encoder

    return sum(type(one) is Encoder for one in gc.get_objects())


def check_trials(found, runs):
    trials = {trial["trial"]: trial for trial in found["trials"]}
    assert list(trials) == [0, 1, 2, 3, 4, 5]
    assert (trials[2]["status"], trials[3]["repeats"]) == ("interrupted", 2)
    assert trials[3]["settings"] == trials[2]["settings"] != trials[1]["settings"]
    for number, trial in trials.items():
        run = runs[f"trial_{number:04d}"]
        assert trial["status"] == (run["status"] if number != 2 else "interrupted")
        assert [look["accuracy"] for look in trial["looks"]] == [look["accuracy"] for look in run["validations"]]
        assert run["trial"] == {"number": number, "settings": trial["settings"]}
        size, rate, scale = (trial["settings"][name] for name in found["space"])
        assert run["model"]["optimization"]["learning_rate"] == pytest.approx(rate, rel=1e-12)
        assert (run["model"]["scale"], run["loading"]["batch_size"]) == (scale, size)
    assert {trial["status"] for trial in trials.values()} >= {"finished", "pruned"}
    assert all(len(trial["looks"]) == 3 for trial in trials.values() if trial["status"] == "finished")
    assert all(1 <= len(trial["looks"]) < 3 for trial in trials.values() if trial["status"] == "pruned")
    assert found["looks"] == sum(len(run["validations"]) for name, run in runs.items() if name.startswith("trial"))
    best = {n: max(look["accuracy"] for look in t["looks"]) for n, t in trials.items() if t["status"] == "finished"}
    assert (found["winner"]["trial"], found["winner"]["accuracy"]) == (max(best, key=best.get), max(best.values()))
    assert found["winner"]["accuracy"] > 0


def check_held_out(found, runs):
    winner, given = runs[f"winner_{found['winner']['trial']:04d}_fold_1"], runs["given_fold_1"]
    assert winner["model"]["scale"] == found["winner"]["settings"]["model.init_args.scale"]
    assert given["model"]["scale"] == 20.0
    for name, run in (("winner", winner), ("given", given)):
        side = found["held_out"][name]
        (entry,) = side["by_fold"]
        for look, of in (("last_epoch", run["validations"][-1]), ("best_epoch", run["best"])):
            assert (side["pooled"][look]["n"], side["pooled"][look]["correct"]) == (20, of["correct"])
            assert side["pooled"][look]["interval"] == list(wilson_interval(of["correct"], 20))
            assert len(entry["wrong"][look]) == 20 - of["correct"]
    wrong = [found["held_out"][name]["by_fold"][0]["wrong"]["last_epoch"] for name in ("winner", "given")]
    first, second = ([place not in places for place in range(20)] for places in wrong)
    last = found["comparison"]["last_epoch"]
    assert last["difference"] == pytest.approx((sum(first) - sum(second)) / 20)
    assert last["won"] - last["lost"] == sum(first) - sum(second) != 0
    assert last["p"] == mcnemar(first, second)


def check_rows(runs, options):
    """No row that the winner is judged by has been judged by a trial, nor shares a story with one that has."""
    fit = options[1 : options.index("--folds")]
    _, data = folded(fit, {"fold": 0, "folds": 2, "fold_seed": 0, "ungrouped": False}, "a test")
    search, held_out = data.rows(0), data.rows(1)
    for name, run in runs.items():
        rows = search if name.startswith("trial") else held_out
        assert run["data"]["validation"]["fold"] == rows.description
        assert run["marks"]["stories_shared_with_validation"] == 0
    stories = [{text for triple in rows.triples for text in triple.texts} for rows in (search, held_out)]
    assert stories[0].isdisjoint(stories[1])
    assert len(search.triples) + len(held_out.triples) == ROWS


def check_a_trial_is_a_fit_like_any_other(narrlit, runs):
    logger = "--trainer.logger.init_args"
    found = narrlit("fit", "--config", "t/trial_0001/config.yaml", f"{logger}.save_dir", "a", f"{logger}.name", "b")
    assert found.code == 0, found.err
    assert read("a/b/run.json")["validations"] == runs["trial_0001"]["validations"]
    assert read("a/b/run.json")["data"] == runs["trial_0001"]["data"]


def check_again(narrlit, arguments, options, text):
    times = {path: path.stat().st_mtime_ns for path in Path("t").glob("*/run.json")}
    found = narrlit(*options)
    assert (found.code, found.out) == (0, text)
    assert {path: path.stat().st_mtime_ns for path in Path("t").glob("*/run.json")} == times
    Path("other.yaml").write_text(SPACE.replace("30", "31"))
    for more, words in (
        (
            ["--model.init_args.optimization.warmup", "0.2"],
            "fit.model.init_args.optimization.warmup: 0.1 there, 0.2 here",
        ),
        (["--space", "other.yaml"], "space.model.init_args.scale.high: 30 there, 31 here"),
    ):
        found = narrlit(*options, *more)
        assert found.code == 2
        assert f"t/plan.yaml is of another config ({words})" in found.err


@slow
@pytest.mark.parametrize(
    ("options", "space", "words"),
    [
        (["--trials", "0"], ONE, "--trials 0: at least 1"),
        (["--epochs_before_pruning", "0"], ONE, "--epochs_before_pruning 0: at least 1"),
        (["--folds", "1"], ONE, "--folds 1: at least 2"),
        (["--folds", "41"], ONE, "there are only 40 such groups"),
        (["--out", "full"], ONE, "full exists and is not empty"),
        (["--space", "none.yaml"], ONE, "--space none.yaml: no such file; with narrlit come spaces/comhis.yaml"),
        (["--trainer.fast_dev_run", "true"], ONE, "--trainer.fast_dev_run has no place in a search"),
        (["--trainer.devices", "2"], ONE, "a search's fits run on one device each"),
        ([], "a: {low: 2, high: 1}", "--space space.yaml: a: low 2 is not below high 1"),
        ([], "model.init_args.sale: {low: 1, high: 2}", "space.yaml: model.init_args.sale: 1: "),
        ([], "optimizer.lr: {low: 1, high: 2}", "--space space.yaml: optimizer.lr: 1: unrecognized arguments"),
        ([], "trainer.max_epochs: {low: 1, high: 2.5}", "trainer.max_epochs: 2.5: "),
        (
            [],
            "model.init_args.optimization.warmup: {low: 0.5, high: 1.5}",
            "optimization.warmup: 1.5: optimization.warmup is 1.5: a share",
        ),
        ([], "trainer.devices: {choices: [1, 2]}", "trainer.devices: 2: a search's fits run on one device each"),
        ([], "trainer.logger.init_args.name: {choices: [a, b]}", "trainer.logger.init_args.name changes nothing here"),
        ([], "data.init_args.train: {low: 30, high: 40}", "data.init_args.train changes the rows"),
    ],
)
def test_mistakes_cost_one_line_and_no_trial(arguments, narrlit, tmp_path, options, space, words):
    Path("space.yaml").write_text(space)
    Path("full").mkdir()
    Path("full/thesis.tex").touch()
    found = narrlit(*arguments(*options))
    assert found.code == 2
    assert words in found.err.strip().splitlines()[-1]
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "space.yaml"]


@slow
def test_without_any_accuracy_there_is_no_winner(arguments, narrlit):
    Path("space.yaml").write_text("model.init_args.optimization.learning_rate: {choices: [1.0e+30, 1.0e+31]}")
    found = narrlit(*arguments(trials=2))
    assert found.code == 2
    said = found.err.strip().splitlines()[-1]
    assert "no trial has finished (no accuracy after epoch 0: scores are NaN): give more --trials" in said
    assert [run["status"] for run in records().values()] == ["failed", "failed"]


@slow
def test_settings_that_do_not_go_together_stop_the_search_and_are_named(arguments, narrlit):
    Path("space.yaml").write_text("trainer.max_steps: {choices: [1, 2]}")
    found = narrlit(*arguments())
    assert found.code == 2
    said = found.err.strip().splitlines()[-1]
    assert said.startswith("narrlit: error: trial 0 (max_steps=")
    assert "t/trial_0000: the fit judged nothing; let it train a whole epoch at least" in said


def test_optuna_is_asked_for_by_its_extra(arguments, narrlit, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    found = narrlit(*arguments())
    assert (found.code, "pip install 'narrlit[tune]'" in found.err) == (2, True)


@slow
@pytest.mark.parametrize(("error", "status"), [("memory", "failed"), ("ctrl-c", "interrupted"), ("mistake", "failed")])
def test_what_ends_a_trial(arguments, tmp_path, error, status):
    from narrlit.commands.trials import run_trial

    errors = {
        "memory": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB."),
        "ctrl-c": KeyboardInterrupt(),
        "mistake": OptionError("a mistake"),
    }
    options = arguments()
    fit = options[1 : options.index("--folds")]
    config, _ = folded(fit, {"fold": 0, "folds": 2, "fold_seed": 0, "ungrouped": False}, "a test")

    def fail(epoch, accuracy):
        raise errors[error]

    handler = signal.getsignal(signal.SIGINT)
    try:
        if error == "memory":
            outcome = run_trial(tmp_path / "r", config, {}, fail)
            assert (outcome.status, outcome.reason, len(outcome.looks)) == (
                "failed",
                "out of memory: CUDA out of memory",
                1,
            )
        else:
            with pytest.raises(type(errors[error])):
                run_trial(tmp_path / "r", config, {}, fail)
    finally:
        signal.signal(signal.SIGINT, handler)  # the trainer shuts it off
    assert read("r/run.json")["status"] == status
    shutil.rmtree("r")


def test_help_says_which_figure_is_too_high(narrlit):
    found = narrlit("tune", "--help")
    assert (found.code, "--space" in found.out, "trainer" in found.out) == (0, True, False)
    assert "too high" in found.out
