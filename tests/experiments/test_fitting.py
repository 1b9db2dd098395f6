"""One fit of an experiment: run, recorded, pruned, ended, and refused."""

import gc
import signal
import subprocess

import pytest
import torch
from refusals import refused
from run_helpers import fit_arguments, fit_settings

from narrlit import lightning_cli
from narrlit.errors import OptionError
from narrlit.experiments import fitting
from narrlit.experiments.fitting import parse_experiment_fit, run_fit
from narrlit.experiments.run import Run
from narrlit.models.encoder import Encoder


@pytest.fixture
def settings(tiny, tmp_path, monkeypatch):
    """settings(name=value, ...): those of a tiny fit of two epochs on StoryWorld, and these."""
    monkeypatch.chdir(tmp_path)
    layers = fit_settings(fit_arguments(tiny(), tmp_path, epochs=2))
    return lambda **more: [*layers, more]


@pytest.fixture
def config(settings):
    return parse_experiment_fit(settings(), "a test")[0]


def test_a_fit_is_a_run_with_record_answers_and_checkpoint(config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/left").touch()
    result = run_fit(tmp_path / "run", config)

    assert result.finished
    assert not (tmp_path / "run/left").exists()

    evaluations = result.record.validations
    assert [evaluation.epoch for evaluation in evaluations] == [0, 1]

    accuracies = result.answers().groupby("metric")["right"].mean()
    assert accuracies["last_epoch"] == pytest.approx(evaluations[-1].accuracy)
    assert accuracies["best_epoch"] == pytest.approx(max(evaluation.accuracy for evaluation in evaluations))
    assert accuracies["reference"] == pytest.approx(result.record.untrained.accuracy)
    assert list((tmp_path / "run/checkpoints").glob("best*.ckpt"))

    again = run_fit(tmp_path / "again", config)  # a fit before in the same process changes nothing
    assert again.record.validations == evaluations


def test_pruning_ends_a_fit_and_leaves_no_checkpoint(config, tmp_path):
    seen = []

    def prune(epoch, accuracy):
        seen.append((epoch, accuracy))
        return True

    result = run_fit(tmp_path / "run", {**config, "trainer": {**config["trainer"], "max_epochs": 3}}, prune)

    assert result.status == "pruned"
    assert result.reason == "after epoch 0, below the median"
    assert seen == [(0, pytest.approx(result.record.validations[0].accuracy))]
    assert not list((tmp_path / "run").rglob("*.ckpt"))

    result = run_fit(tmp_path / "one", {**config, "trainer": {**config["trainer"], "max_epochs": 1}}, prune)
    assert result.finished  # a fit at its end costs nothing more


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried 3 GiB."), "failed"),
        (OptionError("no_triples", name="x"), "failed"),
    ],
)
def test_what_ends_a_fit(config, tmp_path, error, status):
    def fail(epoch, accuracy):
        raise error

    if isinstance(error, OptionError):
        with refused("no_triples"):
            run_fit(tmp_path / "run", config, fail)
    else:
        assert run_fit(tmp_path / "run", config, fail).reason == "out of memory: CUDA out of memory"

    assert Run.read(tmp_path / "run").status == status


def test_ctrl_c_ends_the_experiment(config, tmp_path):
    def interrupt(epoch, accuracy):
        raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as stopped:  # the trainer's answer, which the command line understands
            run_fit(tmp_path / "run", config, interrupt)
    finally:
        signal.signal(signal.SIGINT, handler)

    assert isinstance(stopped.value.__context__, KeyboardInterrupt)
    assert Run.read(tmp_path / "run").status == "interrupted"


def test_a_diverged_trial_is_recorded(settings, tmp_path):
    config = parse_experiment_fit(settings(**{"model.init_args.optimization.learning_rate": 1e30}), "a test")[0]
    result = run_fit(tmp_path / "run", config, lambda epoch, accuracy: False)
    assert result.status == "diverged"
    assert "the loss is" in result.reason


def test_fits_free_their_memory(config, tmp_path):
    def living():
        gc.collect()
        return sum(type(one) is Encoder for one in gc.get_objects())

    before = living()
    run_fit(tmp_path / "run", config)

    assert living() <= before


def test_several_processes_run_a_separate_command(config, tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda command, **options: commands.append(command))
    several = {**config, "trainer": {**config["trainer"], "devices": 2, "strategy": "ddp"}}

    with refused("fit_failed", name="run"):  # nothing was recorded
        run_fit(tmp_path / "run", several)
    assert commands[0][1:5] == ["-m", "narrlit", "fit", "--config"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trainer.limit_val_batches", 1),
        ("trainer.check_val_every_n_epoch", 2),
        ("trainer.val_check_interval", 0.5),
        ("trainer.overfit_batches", 1),
        ("trainer.fast_dev_run", True),
        ("checkpoint.dirpath", "c"),
        ("checkpoint.monitor", "train/loss"),
        ("checkpoint.mode", "min"),
        ("checkpoint.save_top_k", 0),
        ("checkpoint.every_n_epochs", 2),
        ("last_checkpoint.dirpath", "c"),
    ],
)
def test_settings_of_partial_fits_are_refused(settings, name, value):
    with refused("unusable_setting", option=name, purpose="a test"):
        parse_experiment_fit(settings(**{name: value}), "a test")


@pytest.mark.parametrize(
    ("written", "expected"), [("10", 10), ("1", 1), ("0.25", 0.25), ("1.0", 1.0), ("00:01:00:00", "00:01:00:00")]
)
def test_intervals_of_validation_are_numbers_or_times(settings, tiny, tmp_path, written, expected):
    words = fit_arguments(tiny(), tmp_path, "--trainer.val_check_interval", written)[1:]
    given = [settings(**{"trainer.val_check_interval": value}) for value in (written, expected)]
    for parsed in map(lightning_cli.parse_fit, [words, *given]):
        assert repr(parsed.config.trainer.val_check_interval) == repr(expected)


TYPED = [
    ["--config", "configs/quickstart_hits.yaml", "--data", "FileData", "--data.train", "[a.jsonl, b.jsonl]"],
    ["--config=configs/quickstart_hits.yaml", "--trainer.callbacks.patience=7", "--model.encoder.dropout", "2e-1"],
    ["-c", "configs/quickstart_hits.yaml", "--trainer.callbacks+", "EarlyStopping", "--trainer.callbacks.monitor", "x"],
    ["--config", "configs/hits.yaml", "--data.train", "t", "--config", "ablations/hits_baseline.yaml"],
    [
        "--config",
        "configs/quickstart.yaml",
        "--model",
        "Triplet",
        "--model.margin",
        "0.3",
        "--trainer.max_time",
        "null",
    ],
    [
        "--config",
        "configs/comhis.yaml",
        "--data.train",
        "t",
        "--trainer.logger",
        "CSVLogger",
        "--trainer.logger.save_dir=x",
    ],
]


@pytest.mark.parametrize("words", TYPED, ids=" ".join)
def test_settings_have_the_meaning_that_they_have_on_the_command_line(words, monkeypatch):
    assert parse_experiment_fit(fit_settings(["fit", *words]), "a test")[0] == parse_experiment_fit(words, "a test")[0]


def test_a_config_may_be_given_as_its_content(settings):
    whole = parse_experiment_fit(settings(), "a test")[0]
    assert parse_experiment_fit([whole], "a test")[0] == whole
    assert parse_experiment_fit([whole, {"trainer": {"max_epochs": 7}}], "a test")[0]["trainer"]["max_epochs"] == 7


def test_callbacks_that_affect_a_fit_are_named():
    names = ("lightning.pytorch.callbacks.EarlyStopping", "narrlit.callbacks.RunRecord")
    config = {"trainer": {"callbacks": [{"class_path": name} for name in names]}}
    assert fitting.deciding_callbacks(config) == ["EarlyStopping"]
    assert fitting.deciding_callbacks({"trainer": {"callbacks": None}}) == []
    assert fitting.deciding_callbacks({"trainer": {"callbacks": {"class_path": "a.TeacherPromotion"}}}) == [
        "TeacherPromotion"
    ]
