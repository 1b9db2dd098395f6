"""narrlit tune: a search run, pruned, interrupted, resumed, and evaluated on examples that did not select it."""

import json
import re
import sys
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import pytest
import yaml
from command_lines import last_of
from interruptions import Killed
from json_files import read_json
from refusals import assert_refusal, refused
from run_helpers import fit_arguments, fit_settings

from narrlit.configuration import packaged_configs
from narrlit.errors import OptionError
from narrlit.experiments import trials as module
from narrlit.experiments.crossval import Division, divided_config
from narrlit.experiments.run import Run
from narrlit.experiments.search_space import SearchSpace
from narrlit.experiments.trials import (
    ask,
    best_of,
    ended_trials,
    open_study,
    run_trial,
    settings_text,
    winner_of,
)
from narrlit.models.run_file import RunFile
from narrlit.results import Result
from narrlit.statistics.significance import mcnemar, wilson_interval

ROWS = 24
SPACE = """
model.init_args.optimization.learning_rate: {low: 1e-4, high: 1e-1, log: true}
model.init_args.scale: {low: 5, high: 30}
data.init_args.loading.batch_size: {choices: [4, 8]}
"""
ONE = "model.init_args.scale: {low: 5, high: 30}"


@pytest.fixture
def arguments(tiny, tmp_path, monkeypatch):
    """arguments(*options): `narrlit tune` on a few StoryWorld stories in two folds, into t."""
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text(SPACE)

    def run(*options, trials=4):
        fit = fit_arguments(tiny(), tmp_path, "--data.init_args.train", ROWS, "--seed_everything", 42, epochs=2)[1:]
        own = ["--folds", 2, "--trials", trials, "--trials-before-pruning", 3]
        return ["tune", *fit, *last_of(*own, "--space", "space.yaml", "--out", "t", *options)]

    return run


@pytest.mark.long
@pytest.mark.slow
def test_a_search_is_killed_and_resumed(arguments, narrlit, monkeypatch):
    options = arguments(trials=4)
    run_fit = module.run_fit

    def killed(run, config, prune=None):
        result = run_fit(run, config, prune)
        if run.name == "trial_0002":
            (run / "run.json").write_text(json.dumps({**read_json(run / "run.json"), "status": "running"}))
            raise Killed
        return result

    monkeypatch.setattr(module, "run_fit", killed)

    with pytest.raises(Killed):
        narrlit(*options)

    monkeypatch.setattr(module, "run_fit", run_fit)
    before = records()
    assert [found["status"] for found in before.values()] == ["finished", "finished", "running"]

    found = narrlit(*options)
    assert found.code == 0, found.err
    assert "fold 0: 12 training examples and 12 evaluated examples in every trial" in found.err
    assert "trial 1:" not in found.err
    assert "trial 3: " in found.err

    after = records()
    assert {name: after[name] for name in before} == before  # what was there stays

    check_trials(Result.read("t/tune.json"), after)
    check_held_out(Result.read("t/tune.json"), after)
    check_examples(after, options)

    assert found.out == Path("t/tune.md").read_text()
    assert not list(Path("t").glob("trial_*/**/*.ckpt"))

    check_again(narrlit, options, found.out)


def records():
    return {path.parent.name: read_json(path) for path in sorted(Path("t").glob("*/run.json"))}


def check_trials(result, runs):
    trials = {trial["trial"]: trial for trial in result.settings["trials"]}
    assert list(trials) == [0, 1, 3, 4]
    assert trials[3]["repeats"] == 2
    assert trials[1]["repeats"] is None
    assert trials[3]["settings"] != trials[1]["settings"]
    assert runs["trial_0002"]["model"]["scale"] == trials[3]["settings"]["model.init_args.scale"]
    best = {}
    for number, trial in trials.items():
        name = f"trial_{number:04d}"
        assert trial["status"] == runs[name]["status"]
        assert trial["evaluations"] == runs[name]["validations"]
        size, rate, scale = (trial["settings"][setting] for setting in sorted(result.settings["space"]))
        assert runs[name]["model"]["optimization"]["learning_rate"] == pytest.approx(rate, rel=1e-12)
        assert runs[name]["model"]["scale"] == scale
        assert runs[name]["loading"]["batch_size"] == size
        assert len(trial["evaluations"]) == (2 if trial["status"] == "finished" else 1)
        if trial["status"] == "finished":
            best[number] = result.estimate(name, subset="trials").value
            assert best[number] == max(evaluation["accuracy"] for evaluation in trial["evaluations"])
    assert result.settings["winner"]["trial"] == max(best, key=best.get)
    rows = result.figures[result.figures["subset"] == "trials"].set_index("system")
    assert rows["scale"].to_dict() == {
        f"trial_{number:04d}": trial["settings"]["model.init_args.scale"] for number, trial in trials.items()
    }


def check_held_out(result, runs):
    winner = runs[f"winner_{result.settings['winner']['trial']:04d}_fold_1"]
    given = runs["given_fold_1"]
    assert winner["model"]["scale"] == result.settings["winner"]["settings"]["model.init_args.scale"]
    assert given["model"]["scale"] == 20.0
    for name, run in (("winner", winner), ("given", given)):
        for metric, of in (("accuracy_last_epoch", run["validations"][-1]), ("accuracy_best_epoch", run["best"])):
            accuracy = result.estimate(name, metric)
            assert (accuracy.value, accuracy.n) == (pytest.approx(of["correct"] / 12), 12)
            assert (accuracy.low, accuracy.high) == pytest.approx(wilson_interval(of["correct"], 12))

    last = result.answers[result.answers["metric"] == "last_epoch"]
    first, second = (last.loc[last["system"] == name, "right"].tolist() for name in ("winner", "given"))
    difference = result.differences.iloc[0]
    assert difference["value"] == pytest.approx((sum(first) - sum(second)) / 12)
    assert difference["won"] - difference["lost"] == sum(first) - sum(second)
    assert difference["p"] == pytest.approx(mcnemar(first, second))


def check_examples(runs, options):
    """No example that the winner is evaluated on was in a trial's evaluation, nor shares a story with one that was."""
    _, data = divided_config(fit_settings(options[: options.index("--folds")]), Division(2), "a")
    folds = [data.rows(0), data.rows(1)]
    for name, run in runs.items():
        assert run["data"]["validation"]["fold"] == asdict(folds[not name.startswith("trial")][2])

    (_, first, _), (_, second, _) = folds
    assert set(chain.from_iterable(first.texts())).isdisjoint(chain.from_iterable(second.texts()))
    assert len(first) + len(second) == ROWS


def check_again(narrlit, options, text):
    times = {path: path.stat().st_mtime_ns for path in Path("t").glob("*/run.json")}
    found = narrlit(*options)
    assert found.code == 0
    assert found.out == text
    assert {path: path.stat().st_mtime_ns for path in Path("t").glob("*/run.json")} == times
    Path("other.yaml").write_text(SPACE.replace("30", "31"))
    for more, change in (
        (["--model.init_args.optimization.warmup", "0.2"], "fit.model.init_args.optimization.warmup: 0.1 -> 0.2"),
        (["--space", "other.yaml"], "space.model.init_args.scale.high: 30 -> 31"),
    ):
        found = narrlit(
            "tune", *options[1 : options.index("--folds")], *last_of(*options[options.index("--folds") :], *more)
        )
        assert found.code == 2, found.err
        assert_refusal(found.error, "other_configuration", path="plan.yaml", change=change)
        assert "choose another --out or remove t/plan.yaml" in found.err, found.err


@pytest.mark.parametrize(
    ("options", "space", "code", "values"),
    [
        (["--trials", "0"], ONE, "at_least", {"option": "trials", "found": 0}),
        (["--epochs-before-pruning", "0"], ONE, "at_least", {"option": "epochs_before_pruning", "found": 0}),
        (["--folds", "25"], ONE, "few_groups", {"groups": 24}),
        (["--out", "full"], ONE, "output_not_empty", {"path": "full"}),
        (["--space", "none.yaml"], ONE, "no_such_config", {"option": "space", "path": "none.yaml"}),
        (["--trainer.fast_dev_run", "true"], ONE, "unusable_setting", {"option": "trainer.fast_dev_run"}),
        (["--trainer.devices", "2"], ONE, "search_on_several_devices", {}),
        ([], "model.a: {low: 2, high: 1}", "broken_range", {"path": "space.yaml", "name": "model.a"}),
        ([], "model.init_args.sale: {low: 1, high: 2}", "refused_value", {"name": "model.init_args.sale", "value": 1}),
        ([], "trainer.max_epochs: {low: 1, high: 2.5}", "refused_value", {"name": "trainer.max_epochs", "value": 1.0}),
        ([], "model.init_args.optimization.warmup: {low: 0.5, high: 1.5}", "refused_value", {"value": 1.5}),
        ([], "trainer.devices: {choices: [1, 2]}", "refused_value", {"name": "trainer.devices", "value": 2}),
        (
            [],
            "trainer.logger.init_args.name: {choices: [a, b]}",
            "range_without_effect",
            {"name": "trainer.logger.init_args.name"},
        ),
        ([], "data.init_args.train: {low: 30, high: 40}", "range_of_examples", {"name": "data.init_args.train"}),
    ],
)
def test_mistakes_cost_one_line_and_no_trial(arguments, narrlit, tmp_path, options, space, code, values):
    Path("space.yaml").write_text(space)
    Path("full").mkdir()
    Path("full/thesis.tex").touch()
    found = narrlit(*arguments(*options))

    assert found.code == 2
    assert_refusal(found.error, code, **values)
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "space.yaml"]


@pytest.mark.long
def test_the_sampling_of_hard_examples_may_vary(arguments, narrlit, monkeypatch):
    def killed(*_, **__):
        raise Killed

    Path("space.yaml").write_text("data.init_args.hard_examples.weight: {choices: [1.0, 2.0]}")
    monkeypatch.setattr("lightning.pytorch.Trainer.fit", killed)

    with pytest.raises(Killed):
        narrlit(*arguments())


@pytest.mark.long
def test_a_search_without_any_accuracy_prints_one_line(arguments, narrlit):
    rate = "model.init_args.optimization.learning_rate"
    Path("space.yaml").write_text(f"{rate}: {{choices: [1.0e+30, 1.0e+31]}}")
    found = narrlit(*arguments(trials=2))
    assert found.code == 2, found.err
    assert_refusal(found.error, "no_finished_trial")
    assert "the loss is nan" in found.error.values["reasons"]


@pytest.mark.long
def test_a_trial_without_an_evaluation_ends_the_search(arguments, narrlit):
    Path("space.yaml").write_text("trainer.max_steps: {choices: [1, 2]}")
    found = narrlit(*arguments(trials=2))
    assert found.code == 2, found.err
    assert_refusal(found.error, "trial_failed", trial=0)
    assert_refusal(found.error.values["problem"], "fit_without_evaluation", folder="t/trial_0000")
    assert "choose another --out" in found.err


def test_optuna_is_an_extra(arguments, narrlit, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    found = narrlit(*arguments())
    assert found.code == 2
    assert "pip install 'narrlit[tune]'" in found.err


@pytest.mark.parametrize(
    ("content", "code", "name", "reason"),
    [
        ("", "no_ranges", None, ""),
        ("a: [1", "broken_config", None, ""),
        ("model.a: 1", "broken_range", "model.a", "mapping"),
        ("model.a: {low: 1}", "broken_range", "model.a", "high"),
        ("model.a: {low: 1, high: 2, steps: 1}", "broken_range", "model.a", "steps"),
        ("model.a: {low: 0, high: 1.5, log: true}", "broken_range", "model.a", "log"),
        ("model.a: {low: 1, high: 9, log: true, step: 2}", "broken_range", "model.a", "step"),
        ("model.a: {low: x, high: 2}", "broken_range", "model.a", "could not convert string to float"),
        ("model.a: {choices: [1]}", "single_value", "model.a", ""),
        ("model.a: {choices: []}", "broken_range", "model.a", ""),
        ("--model.a: {low: 1, high: 2}", "not_a_setting", "--model.a", ""),
        ("config: {choices: [a.yaml, b.yaml]}", "not_a_setting", "config", ""),
    ],
)
def test_broken_spaces_are_named(tmp_path, monkeypatch, content, code, name, reason):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(content)
    with refused(code) as caught:
        SearchSpace.read("s.yaml")
    values = caught.value.values
    assert "s.yaml" in (values.get("source"), values.get("path"))
    assert values.get("name") == name
    assert reason in values.get("reason", "")


def test_a_space_may_be_a_mapping():
    space = SearchSpace.read({"model.b": {"low": 1, "high": 3}, "model.a": {"choices": [1, 2]}})
    assert list(space.distributions) == list(space.written) == ["model.a", "model.b"]
    with refused("broken_range", path="", name="model.a", reason="'high' is missing"):
        SearchSpace.read({"model.a": {"low": 1}})
    with refused("single_value", source="", name="model.a"):
        SearchSpace.read({"model.a": {"choices": [1]}})


@pytest.fixture
def search(tmp_path):
    """search(name): the study of that folder, created or resumed, and its space."""
    (tmp_path / "s.yaml").write_text("model.rate: {low: 1e-5, high: 1e-1, log: true}\nmodel.scale: {low: 1, high: 30}")
    space = SearchSpace.read(tmp_path / "s.yaml").distributions

    def run(name="s"):
        (tmp_path / name).mkdir(exist_ok=True)
        return open_study(tmp_path / name, {"n_warmup_steps": 1, "n_startup_trials": 2}), space

    return run


def fake_fit(monkeypatch, accuracies, reason=None, status="finished"):
    """Replace fits by accuracies by epoch, a list or a function of the settings."""

    def run_fit(run, config, prune=None):
        values = accuracies(config) if callable(accuracies) else accuracies
        evaluations = []
        for epoch, accuracy in enumerate(values):
            counts = {"n": 10, "correct": round(10 * (accuracy or 0)), "accuracy": accuracy, "interval": [0.0, 1.0]}
            evaluations.append({"epoch": epoch, **counts})
            if accuracy is not None and prune(epoch, accuracy):
                return Run(run, RunFile.model_validate({"status": "pruned", "validations": evaluations}), "pruned")
        return Run(run, RunFile.model_validate({"status": status, "validations": evaluations}), reason)

    monkeypatch.setattr(module, "run_fit", run_fit)


def go_on(study, space, until):
    while len(ended_trials(study)) < until:
        run_trial(study, ask(study, space, 42), Path("unused"), dict)


@pytest.mark.long
def test_a_resumed_study_has_the_trials_of_an_uninterrupted_one(search, monkeypatch):
    fake_fit(monkeypatch, lambda settings: [0.1, 1 - abs(settings["model.scale"] - 12) / 30])
    whole, space = search("whole")
    go_on(whole, space, 12)  # more than the sampler's random ones
    tried = [trial.params for trial in whole.trials]

    assert len({tuple(one.values()) for one in tried[:10]}) == 10

    for stop in (3, 11, 12):
        broken, _ = search("broken")
        go_on(broken, space, stop)
        killed = ask(broken, space, 42).params  # its process ends here
        assert stop == 12 or killed == tried[stop]

    assert [trial.params for trial in ended_trials(broken)] == tried


@pytest.mark.long
def test_settings_of_a_killed_process_are_tried_again_once(search, monkeypatch):
    fake_fit(monkeypatch, [0.3, 0.5])
    study, space = search()
    go_on(study, space, 1)
    killed = ask(study, space, 42)
    search()
    study, _ = search()  # twice: the settings wait, and are not queued again
    repeat = ask(study, space, 42)

    assert repeat.number == 2
    assert repeat.params == killed.params
    assert len(ended_trials(study)) == 1

    study, _ = search()  # the repeat is killed, too
    go_on(study, space, 2)
    last = ended_trials(study)[-1]

    assert last.number == 3
    assert last.params == killed.params
    assert last.user_attrs["repeats"] == 2
    assert ask(study, space, 42).params != killed.params


def test_pruned_and_failed_trials_count(search, monkeypatch):
    study, space = search()
    for accuracies in ([0.1, 0.5, 0.6], [0.3, 0.7, 0.8], [0.2, 0.2, 0.2], [0.0, 0.6, 0.75]):
        fake_fit(monkeypatch, accuracies)
        go_on(study, space, len(ended_trials(study)) + 1)

    fake_fit(monkeypatch, [], "out of memory", "failed")
    go_on(study, space, 5)
    trials = ended_trials(study)
    entries = [trial.user_attrs["entry"] for trial in trials]

    assert [entry["status"] for entry in entries] == ["finished", "finished", "pruned", "finished", "failed"]
    assert len(entries[2]["evaluations"]) == 2  # the first epoch warms up
    assert entries[4]["reason"] == "out of memory"
    assert not best_of(trials[4]).known
    assert winner_of(trials).number == 1
    assert best_of(winner_of(trials)).value == 0.8
    assert entries[1]["best"]["epoch"] == 2


def test_a_trial_without_an_accuracy_never_wins(search, monkeypatch):
    study, space = search()
    fake_fit(monkeypatch, [None])  # it ran to its end, and all scores were NaN
    go_on(study, space, 1)
    fake_fit(monkeypatch, [0.3, 0.5])
    go_on(study, space, 2)

    assert winner_of(ended_trials(study)).number == 1


def test_a_trial_that_ended_when_its_process_was_killed_keeps_its_accuracy(search, monkeypatch):
    fake_fit(monkeypatch, [0.3, 0.5])
    study, space = search()
    with monkeypatch.context() as killed:
        killed.setattr(module, "tell", lambda *_: None)  # the process ends before the study knows
        go_on(study, space, 1)
    study, _ = search()

    (trial,) = study.trials
    assert (trial.state.name, trial.value) == ("COMPLETE", 0.5)
    assert len(study.trials) == 1  # its settings are not tried again


def test_short_names_of_settings_are_no_columns_of_a_result():
    assert settings_text({"model.n": 1, "model.a.rate": 2, "data.rate": 3}) == "model.n=1, a.rate=2, data.rate=3"


def test_a_mistake_in_a_trial_names_its_settings(search, monkeypatch):
    def refuse(run, config, prune):
        raise OptionError("no_triples", name="x")

    monkeypatch.setattr(module, "run_fit", refuse)
    study, space = search()

    with refused("trial_failed", trial=0) as caught:
        go_on(study, space, 1)
    assert re.fullmatch(r"rate=.*, scale=\d+", caught.value.values["settings"])
    assert_refusal(caught.value.values["problem"], "no_triples", name="x")


def test_packaged_spaces_are_read():
    files = list(packaged_configs().glob("*spaces/*.yaml"))
    assert files

    for path in files:
        space = SearchSpace.read(path)
        assert space.written == yaml.safe_load(path.read_text())
        assert set(space.distributions) == set(space.written)
