"""Whole fits: what a run leaves, what accepts it, and that a killed one resumes to the same numbers."""

import multiprocessing
import os
import re
import shutil
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from json_files import read_json, read_json_lines
from run_helpers import (
    assert_equal_weights,
    curves_of,
    exit_code_of_fork,
    fit_arguments,
    fit_here,
    record_of,
    weights_of,
    without_folder,
)
from scoring import scores_of

from narrlit.callbacks import RunLogger
from narrlit.cli import main
from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.exporting.folders import export
from narrlit.models import capabilities
from narrlit.models.registry import load_encoder
from narrlit.objectives.base import schedule_factor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def straight(tiny, tmp_path_factory):
    """A folder in which a fit of three epochs has run."""
    folder = tmp_path_factory.mktemp("straight")
    fit_here(fit_arguments(tiny(), folder), folder)
    return folder


def test_a_run_has_a_record(straight):
    record = record_of(straight)
    assert record["status"] == "finished"
    assert [validation["n"] for validation in record["validations"]] == [9, 9, 9]
    assert record["num_evaluations"] == 3

    triples = synthetic_triples(StoryWorld(0).triples(9, "validation"), StoryTable())
    scores = scores_of(load_encoder(record["model"]["encoder"]["model"], long="truncate"), triples)
    wrong = ((scores[:, 0] > scores[:, 1]) != (triples.labels == 1)).nonzero()[0].tolist()
    answers = read_json(straight / "tiny/validation_answers.json")

    assert answers["untrained"] == wrong
    assert record["untrained"]["correct"] == 9 - len(wrong)
    assert record["comparison"]["difference"] == pytest.approx((record["best"]["correct"] - 9 + len(wrong)) / 9)

    best = record["best"]
    assert best["accuracy"] == max(validation["accuracy"] for validation in record["validations"])
    assert best["interval"][0] <= best["accuracy"] <= best["interval"][1]
    assert record["model"]["encoder"]["dropout"] == 0.1
    assert record["data"]["train"]["storyworld"]["triples"] == 16
    assert record["flags"]["trained_on_validation"] is False
    assert record["data_check"]["shared"][0]["shared"] == 0
    assert {entry["probe"] for entry in record["data_check"]["probes"]} >= {"longer", "jaccard"}
    assert set(record["versions"]) >= {"torch", "lightning", "python"}
    assert record["seed"] == 42
    assert record["trainer"]["max_epochs"] == 3
    assert record["command"]["line"].startswith("narrlit fit --config configs/quickstart.yaml")
    for name in ("best", "last"):
        assert (straight / "tiny" / record["checkpoints"][name]).is_file()


def test_a_run_can_be_watched_in_tensorboard(straight):
    curves = curves_of(straight / "tiny")
    for name in ("validation/accuracy", "validation/accuracy_low", "hp/validation_accuracy"):
        assert name in curves, curves.keys()
    assert "epoch" not in curves
    assert len(curves["train/loss"]) == 12  # fewer than Lightning's interval of 50
    assert len(curves["validation/accuracy"]) == 3  # the untrained model is no point of the curve

    rates = curves["lr-AdamW/pg1"]
    assert max(rates) == pytest.approx(0.001, rel=1e-3)
    assert rates[0] < max(rates) > rates[-1]

    points = next((straight / "tiny").rglob("tensors.tsv")).read_text().strip().split("\n")
    header, *rows = next((straight / "tiny").rglob("metadata.tsv")).read_text().strip().split("\n")
    assert header.split("\t") == ["story", "role", "triple", "answer"]
    assert len(points) == len(rows) == 27

    roles = [row.split("\t")[1] for row in rows]
    assert {role: roles.count(role) for role in roles} == {"anchor": 9, "closer candidate": 9, "other candidate": 9}

    wrong = sum(row.split("\t")[3] == "wrong" for row in rows) / 3
    assert wrong == 9 - record_of(straight)["validations"][-1]["correct"]


def test_a_run_its_checkpoint_and_its_export_are_models(straight, tmp_path):
    run = straight / "tiny"
    checkpoint = run / record_of(straight)["checkpoints"]["best"]
    triples = synthetic_triples(StoryWorld(0).triples(9, "validation"), StoryTable())
    load_encoder(str(run)).save(tmp_path / "model")
    scores = [
        scores_of(load_encoder(str(source), long="truncate"), triples)
        for source in (run, checkpoint, tmp_path / "model")
    ]
    correct = ((scores[0][:, 0] > scores[0][:, 1]) == (triples.labels == 1)).sum()

    assert correct == record_of(straight)["best"]["correct"]
    assert np.array_equal(scores[0], scores[1])
    assert abs(scores[0] - scores[2]).max() < 1e-6


def test_the_card_of_an_exported_run_has_the_accuracy_of_its_best_checkpoint(straight, tmp_path):
    export(straight / "tiny", tmp_path / "model")
    card = ModelCard.load(tmp_path / "model" / "README.md")
    (result,) = card.data.eval_results

    assert result.metric_value == pytest.approx(record_of(straight)["best"]["accuracy"], abs=1e-4)
    assert "- Training data: StoryWorld (16 synthetic triples)\n" in card.text
    assert str(straight) not in str(card)


def test_stages_evaluate_and_predict_with_a_checkpoint(straight, tiny, narrlit, tmp_path):
    record = record_of(straight)
    checkpoint = straight / "tiny" / record["checkpoints"]["best"]
    common = fit_arguments(tiny(), tmp_path, "--ckpt_path", checkpoint)[1:]

    assert narrlit("validate", *common).code == 0
    assert record_of(tmp_path)["validation"]["correct"] == record["best"]["correct"]
    assert narrlit("test", *common).code == 0
    assert record_of(tmp_path)["stage"] == "test"
    assert record_of(tmp_path)["test"]["n"] == 5
    assert narrlit("predict", *common).code == 0

    rows = read_json_lines(tmp_path / "tiny/predictions.jsonl")
    assert len(rows) == 5
    assert all(row["text_a_is_closer"] == (row["score_a"] > row["score_b"]) for row in rows)

    predicted = record_of(tmp_path)
    assert predicted["stage"] == "predict"
    assert predicted["status"] == "finished"
    assert predicted["command"]["checkpoint"] == str(checkpoint)

    (tmp_path / "tiny/predictions.jsonl").write_text("mine\n")
    found = narrlit("predict", *common)
    assert found.code == 2
    assert "tiny/predictions.jsonl exists: move it away" in found.err
    assert (tmp_path / "tiny/predictions.jsonl").read_text() == "mine\n"


def test_the_command_line_overrides_a_checkpoint(straight, tiny, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    more = ["--ckpt_path", last, "--model.init_args.scale", "7"]
    fit_here(fit_arguments(tiny(), tmp_path, *more, epochs=4), tmp_path)
    record = record_of(tmp_path)

    assert record["model"]["scale"] == 7.0
    assert record["command"]["resumed_from"] == str(last)
    assert [validation["epoch"] for validation in record["validations"]] == [0, 1, 2, 3]


def optimizer_groups(folder):
    """Groups of the optimizer in the last checkpoint of the run in `folder`: matrices, then other weights."""
    checkpoint = torch.load(Path(folder) / "tiny/checkpoints/last.ckpt", weights_only=True)
    return checkpoint["optimizer_states"][0]["param_groups"]


OPTIMIZATION = "--model.init_args.optimization"


def test_a_resumed_fit_uses_the_optimization_that_it_records(straight, tiny, tmp_path):
    changed = {"learning_rate": 0.01, "weight_decay": 0.9, "warmup": 0.0, "decay": "none"}
    more = ["--ckpt_path", straight / "tiny/checkpoints/last.ckpt"]
    for name, value in changed.items():
        more += [f"{OPTIMIZATION}.{name}", value]
    fit_here(fit_arguments(tiny(), tmp_path, *more, epochs=4), tmp_path)

    assert record_of(tmp_path)["model"]["optimization"] == {"optimizer": "adamw", **changed}
    assert [group["weight_decay"] for group in optimizer_groups(tmp_path)] == [0.9, 0.0]
    assert curves_of(tmp_path / "tiny")["lr-AdamW/pg1"] == pytest.approx([0.01] * 4, rel=1e-6)  # float32


@pytest.mark.parametrize(
    ("more", "epochs", "steps"),
    [
        ([], 4, [(step, 16) for step in range(12, 16)]),
        (["--data.init_args.loading.batch_size", "8"], 5, [(step, 10) for step in range(6, 10)]),
        (["--trainer.accumulate_grad_batches", "2"], 4, [(step, 8) for step in range(6, 8)]),
    ],
    ids=["more epochs", "larger batches", "accumulated gradients"],
)
def test_a_resumed_schedule_continues_at_its_share_of_the_epochs(straight, tiny, tmp_path, more, epochs, steps):
    last = straight / "tiny/checkpoints/last.ckpt"
    fit_here(fit_arguments(tiny(), tmp_path, *more, "--ckpt_path", last, epochs=epochs), tmp_path)
    expected = [0.001 * schedule_factor(step, total, 0.1, "linear") for step, total in steps]

    assert expected[0] > 0
    rates = curves_of(tmp_path / "tiny")["lr-AdamW/pg1"]
    assert sorted(set(rates), reverse=True) == pytest.approx(expected, rel=1e-6)  # float32


@pytest.mark.parametrize(
    ("option", "value"),
    [("optimization.optimizer", "sgd"), ("optimization.optimizer", "adam"), ("encoder.frozen_layers", "0.5")],
)
def test_a_fit_is_not_resumed_with_another_optimizer_or_other_trained_weights(
    straight, tiny, narrlit, tmp_path, option, value
):
    more = [f"--model.init_args.{option}", value, "--ckpt_path", straight / "tiny/checkpoints/last.ckpt"]
    refused = narrlit(*fit_arguments(tiny(), tmp_path, *more, epochs=4))
    assert refused.code == 2
    assert f"--model.{option} {value}" in refused.err
    assert not (tmp_path / "tiny").exists()


def test_a_fit_is_not_resumed_from_a_checkpoint_of_another_model(straight, tiny, narrlit, tmp_path):
    shutil.copytree(tiny(), tmp_path / "other")
    more = ["--ckpt_path", straight / "tiny/checkpoints/last.ckpt"]
    assert narrlit(*fit_arguments(tmp_path / "other", tmp_path, *more, epochs=4)).code == 2
    moved = shutil.copytree(tiny(), tmp_path / "moved" / Path(tiny()).name)
    assert narrlit(*fit_arguments(moved, tmp_path, *more, epochs=4)).code == 0


STOPPING = ["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=validation/accuracy",
            "--trainer.callbacks.mode=max", "--trainer.callbacks.min_delta=2.0"]  # fmt: skip


def test_early_stopping_is_reported_and_resumes_with_its_new_patience(tiny, narrlit, tmp_path):
    stopped = narrlit(*fit_arguments(tiny(), tmp_path, *STOPPING, "--trainer.callbacks.patience=2", epochs=9))
    record = record_of(tmp_path)
    assert record["num_evaluations"] == 3  # the first improves on nothing
    assert record["early_stopping"].startswith("after epoch 2: ")
    assert f"early stopping {record['early_stopping']}" in stopped.out + stopped.err

    more = [*STOPPING, "--trainer.callbacks.patience=4", "--ckpt_path", tmp_path / "tiny/checkpoints/last.ckpt"]
    fit_here(fit_arguments(tiny(), tmp_path / "on", *more, epochs=9), tmp_path)
    assert record_of(tmp_path / "on")["num_evaluations"] == 5


@pytest.mark.parametrize("stage", ["fit", "validate", "test", "predict"])
def test_names_of_checkpoints_are_refused_with_a_file_to_give(straight, tiny, narrlit, tmp_path, stage):
    for name in ("last", "best", "hpc", "registry"):
        arguments = [stage, *fit_arguments(tiny(), straight, "--ckpt_path", name)[1:]]
        refused = narrlit(*arguments)
        assert refused.code == 2, name
        assert refused.err.count("narrlit: error: ") == 1
        if name in ("last", "best"):
            file = re.search(r"such as (.+\.ckpt)", refused.err)[1]
            assert Path(file).is_file()
            assert Path(file).name.startswith(name)
    assert sorted(path.name for path in tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "more",
    [
        ["--checkpoint.monitor", "validation/loss"],
        ["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=validation/loss"],
    ],
)
def test_a_monitor_that_is_not_logged_is_refused(tiny, narrlit, tmp_path, more):
    refused = narrlit(*fit_arguments(tiny(), tmp_path, *more, epochs=1))
    assert refused.code == 2
    assert "validation/accuracy_low" in refused.err.strip().splitlines()[-1]


SAVED = {
    "several evaluations": ["--trainer.val_check_interval=0.25"],
    "evaluations between the ends of epochs": ["--trainer.val_check_interval=3"],
    "loss": ["--checkpoint.monitor=train/loss", "--checkpoint.mode=min"],
    "loss within epochs": [
        *("--checkpoint.monitor=train/loss", "--checkpoint.mode=min", "--trainer.val_check_interval=0.5"),
    ],
    "loss between evaluations": [
        *("--checkpoint.monitor=train/loss", "--checkpoint.mode=min", "--trainer.check_val_every_n_epoch=2"),
    ],
    "the worst": ["--checkpoint.mode=min", "--trainer.val_check_interval=0.5"],
    "three": ["--checkpoint.save_top_k=3", "--trainer.val_check_interval=0.5"],
    "every second epoch": ["--checkpoint.every_n_epochs=2"],
    "some triples": ["--trainer.limit_val_batches=0.5", "--data.init_args.loading.evaluation_batch_size=2"],
    "no monitor": ["--checkpoint.monitor=null"],
    "only the last": ["--checkpoint.save_top_k=0"],
    "average": ["--trainer.callbacks+=EMAWeightAveraging", "--trainer.callbacks.decay=0.5"],
    "own callback": [
        *("--trainer.callbacks+=ModelCheckpoint", "--trainer.callbacks.monitor=train/loss"),
        *("--trainer.callbacks.filename=mine-{epoch}", "--trainer.val_check_interval=0.5"),
    ],
}


@pytest.mark.parametrize("more", SAVED.values(), ids=SAVED)
def test_the_recorded_best_is_the_saved_checkpoint(tiny, tmp_path, caplog, more):
    caplog.set_level("INFO", "lightning_utilities.core.rank_zero")
    fast = [f"{OPTIMIZATION}.learning_rate", "0.01", f"{OPTIMIZATION}.warmup", "0", *more]
    fit_here(fit_arguments(tiny(), tmp_path, *fast, epochs=4), tmp_path)
    record, best = record_of(tmp_path), record_of(tmp_path)["best"]
    checkpoint = tmp_path / "tiny" / record["checkpoints"].get("best", record["checkpoints"]["last"])
    triples = synthetic_triples(StoryWorld(0).triples(9, "validation"), StoryTable())
    scores = scores_of(load_encoder(str(checkpoint), long="truncate"), triples)
    wrong = ((scores[:, 0] > scores[:, 1]) != (triples.labels == 1)).nonzero()[0]
    wrong = set(wrong[wrong < best["n"]].tolist())

    assert best["correct"] == best["n"] - len(wrong)
    assert torch.load(checkpoint, weights_only=True)["global_step"] == best["step"]

    before = set(read_json(tmp_path / "tiny/validation_answers.json")["untrained"])
    assert (record["comparison"]["lost"], record["comparison"]["won"]) == (len(wrong - before), len(before - wrong))

    accuracies = [validation["accuracy"] for validation in record["validations"]]
    line = next(message for message in caplog.messages if re.match("(best )?validation accuracy", message))
    assert line.startswith("best ") == (
        best["accuracy"] == max(accuracies) and record["selected_by"] == "highest validation/accuracy"
    )
    assert f"], n = {best['n']}" in line
    assert f" in epoch {best['epoch']}" in line

    export(tmp_path / "tiny", tmp_path / "model")
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.eval_results[0].metric_value == pytest.approx(best["accuracy"], abs=1e-4)  # rounded
    assert ("the best of" in card.text) == line.startswith("best ")


@pytest.mark.long
def test_a_fit_resumes_from_a_checkpoint_saved_within_an_epoch_to_the_same_weights(tiny, tmp_path):
    often = ["--trainer.val_check_interval", "0.5", "--checkpoint.save_top_k", "-1"]
    fit_here(fit_arguments(tiny(), tmp_path, *often, epochs=2), tmp_path)
    within = next((tmp_path / "tiny/checkpoints").glob("best-epoch=1-step=6*.ckpt"))
    fit_here(fit_arguments(tiny(), tmp_path / "on", *often, "--ckpt_path", within, epochs=2), tmp_path)

    assert_equal_weights(weights_of(tmp_path / "on"), weights_of(tmp_path))
    assert record_of(tmp_path / "on")["validations"] == record_of(tmp_path)["validations"]


@pytest.mark.long
def test_a_killed_fit_resumes_to_the_same_weights(straight, tiny, tmp_path):
    killer = ["--trainer.callbacks+=run_helpers.KillAt", "--trainer.callbacks.step=6"]
    assert exit_code_of_fork(fit_arguments(tiny(), tmp_path, *killer), tmp_path) == -9
    assert record_of(tmp_path)["status"] == "running"

    last = tmp_path / "last.ckpt"
    shutil.move(tmp_path / "tiny/checkpoints/last.ckpt", last)
    fit_here(fit_arguments(tiny(), tmp_path / "again", "--ckpt_path", last), tmp_path)

    assert_equal_weights(weights_of(tmp_path / "again"), weights_of(straight))

    ours = record_of(tmp_path / "again")
    theirs = record_of(straight)
    for name in ("validations", "best", "untrained", "comparison"):
        assert ours[name] == theirs[name]

    answers = [(f / "tiny/validation_answers.json").read_text() for f in (tmp_path / "again", straight)]
    assert answers[0] == answers[1]

    best = [torch.load(f / "tiny" / r["checkpoints"]["best"], weights_only=True)["state_dict"]
            for f, r in ((tmp_path / "again", ours), (straight, theirs))]  # fmt: skip
    assert_equal_weights(*best)


@pytest.mark.long
def test_a_fit_killed_within_an_epoch_resumes_to_the_same_weights(straight, tiny, tmp_path):
    often = ["--last_checkpoint.every_n_train_steps", 1]
    killer = ["--trainer.callbacks+=run_helpers.KillAt", "--trainer.callbacks.step=7"]
    assert exit_code_of_fork(fit_arguments(tiny(), tmp_path, *often, *killer), tmp_path) == -9

    last = tmp_path / "tiny/checkpoints/last.ckpt"
    fit_here(fit_arguments(tiny(), tmp_path, *often, "--ckpt_path", last), tmp_path)
    assert_equal_weights(weights_of(tmp_path), weights_of(straight))


def test_a_terminated_fit_says_so(tiny, tmp_path):
    more = ["--trainer.callbacks+=run_helpers.TerminateAt"]
    assert exit_code_of_fork(fit_arguments(tiny(), tmp_path, *more), tmp_path) == 143
    assert record_of(tmp_path)["status"] == "interrupted"


def test_a_fit_writes_nothing_while_a_signal_interrupts_it(tiny, tmp_path, capfd):
    more = ["--trainer.callbacks+=run_helpers.TerminateAt"]
    assert exit_code_of_fork(fit_arguments(tiny(), tmp_path, *more), tmp_path) == 143
    assert "SIGTERM" not in capfd.readouterr().err


MISTAKES = [
    (["--config", "configs/quickstrat.yaml"], "did you mean quickstart.yaml"),
    (["--model.init_args.scale", "0"], "scale"),
    (["--model.init_args.scale", "inf"], "inf"),
    (["--model.init_args.optimization.learning_rate", "nan"], "nan"),
    (["--model.init_args.optimization.learning_rate", "null"], "learning_rate"),
    (["--model.init_args.scales", "1"], "Option 'scales' is not accepted"),
    (["--trainer.max_epochs", "many"], "many"),
    (["--trainer.precision", "12"], "precision"),
    (["--trainer.accelerator", "abacus"], "abacus"),
    (["--trainer.val_check_interval", "7.5"], "val_check_interval"),
    (["--seed_everything", "-1"], "-1"),
    (["--data.init_args.loading.batch_size", "null"], "batch_size"),
    (["--model.init_args.encoder.model", "no/such"], "no/such"),
    (["--model.init_args.encoder.pooling", "median"], "pooling"),
    (["--model.init_args.encoder.trust_remote_code", "true"], "trust_remote_code"),
    (["--ckpt_path", "nowhere.ckpt"], "nowhere.ckpt"),
    (["--ckpt_path", ""], "--ckpt_path is empty: give a checkpoint file"),
    (["--ckpt_path", "RUN"], "this is the folder of a run; give"),
    (["--trainer.callbacks+=LearningRateFinder"], "narrlit tune"),
    (["--trainer.callbacks", "lightning.pytorch.callbacks.BatchSizeFinder"], "--data.loading.batch_size"),
    (["--trainer.callbacks+=StochasticWeightAveraging", "--trainer.callbacks.swa_lrs=0.1"], "narrlit average"),
    (["--checkpoint.every_n_train_steps", "2"], "--trainer.val_check_interval"),
]


@pytest.mark.parametrize(("more", "words"), MISTAKES, ids=[" ".join(more) for more, _ in MISTAKES])
def test_mistakes_in_a_fit_cost_a_line_and_leave_no_run(straight, narrlit, tiny, tmp_path, more, words):
    more = [str(straight / "tiny") if option == "RUN" else option for option in more]
    refused = narrlit(*fit_arguments(tiny(), tmp_path, *more))
    assert refused.code == 2
    assert "Traceback" not in refused.err
    assert "usage:" not in refused.err

    last = refused.err.strip().splitlines()[-1]
    assert last.startswith("narrlit: error: ")
    assert words in last
    assert not (tmp_path / "tiny").exists()


def test_a_checkpoint_of_another_model_is_refused(straight, tiny, narrlit, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    other = fit_arguments(tiny("qwen3", "lasttoken"), tmp_path, "--ckpt_path", last)
    assert "it is from another model or has other adapters" in narrlit(*other).err
    triplet = fit_arguments(tiny(), tmp_path, "--ckpt_path", last, "--model", "Triplet")
    assert "the checkpoint is from MultipleNegativesRanking, this run has Triplet" in narrlit(*triplet).err


def yaml_bomb():
    """Seven lines of YAML that expand to a million numbers."""
    lines = ["a: &a [1, 1]"]
    for before, name in pairwise("abcdefg"):
        references = ", ".join([f"*{before}"] * 9)
        lines.append(f"{name}: &{name} [{references}]")
    return "\n".join(lines) + "\n"


ALIASES = yaml_bomb()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trainer:\n  logger:\n    init_args:\n      name: no\n", "no and off .* quotes"),
        ("trainer:\n  callbacks:\n  - class_path: BatchSizeFinder\n", "data.loading.batch_size"),
        ("seed_everything: 1\nseed_everything: 2\n", r"own.yaml:2: key 'seed_everything' is repeated"),
        ("model: " + "[" * 100_000, "own.yaml: nested too deeply"),
        (ALIASES, "own.yaml:4: more than 20 aliases"),
        ("model: [1\n", "own.yaml:2: "),
        ("- 1\n", "must be a mapping of options"),
        ("data:\n  init_args:\n    loading: 5\n", r"data.loading: 5 is not a mapping .*data.loading.batch_size"),
        ("data:\n  init_args:\n    loading:\n", "data.loading: None is not a mapping"),
        ("model:\n  init_args:\n    optimization: 3\n", "model.optimization: 3 is not a mapping"),
        ("model:\n  init_args:\n    encoder:\n      prompts: [1]\n", "model.encoder.prompts: .1. is not a mapping"),
        ("model:\n  init_args:\n    encoder:\n      trust_remote_code: true\n", "trust_remote_code"),
    ],
    ids=["no", "tuner", "duplicate", "deep", "aliases", "broken", "list", "5", "null", "3", "inner", "remote code"],
)
def test_configs_are_read_with_care(narrlit, tmp_path, text, words):
    (tmp_path / "own.yaml").write_text(text)
    refused = narrlit("fit", "--config", "configs/quickstart.yaml", "--config", "own.yaml")
    assert refused.code == 2
    assert re.search(words, refused.err.strip().splitlines()[-1])


def test_a_config_in_another_encoding_is_named(narrlit, tmp_path):
    (tmp_path / "own.yaml").write_bytes("a: \xe4".encode("latin-1"))
    refused = narrlit("fit", "--config", "own.yaml")
    assert refused.code == 2
    assert "own.yaml: not UTF-8 text" in refused.err


def test_weights_in_half_precision_are_refused_and_mixed_precision_trains(tiny, narrlit, tmp_path):
    for more in (["--trainer.precision", "bf16-true"], ["--model.init_args.encoder.dtype", "bfloat16"]):
        refused = narrlit(*fit_arguments(tiny(), tmp_path, *more, epochs=1))
        assert refused.code == 2
        assert "rounds small updates to 0" in refused.err

    mixed = ["--trainer.precision", "bf16-mixed", "--trainer.gradient_clip_val", "1.0"]
    fit_here(fit_arguments(tiny(), tmp_path, *mixed, epochs=1), tmp_path)

    assert {value.dtype for value in weights_of(tmp_path).values() if value.is_floating_point()} == {torch.float32}


def test_a_fit_in_bfloat16_on_a_processor_without_it_warns_in_one_line(tiny, narrlit, monkeypatch, tmp_path):
    for possible in (False, True):
        monkeypatch.setattr(capabilities, "has_bf16", lambda device, answer=possible: answer)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            precision = ("--trainer.precision", "bf16-mixed")
            done = narrlit(*fit_arguments(tiny(), tmp_path / str(possible), *precision, epochs=1))
        assert done.code == 0
        messages = [str(one.message) for one in caught if "bfloat16 instructions" in str(one.message)]
        assert len(messages) == (0 if possible else 1)
        assert all("trainer.precision bf16-mixed" in message and "32-true" in message for message in messages)


def test_files_train_without_validation_and_by_another_objective(tiny, narrlit, world_files, tmp_path):
    files = ["--data.init_args.train", world_files / "train.jsonl", "--data.init_args.loading.batch_size", "4"]
    encoder = ["--model.init_args.encoder.model", tiny(), "--trainer.max_epochs", "1", "--trainer.logger.save_dir", "."]
    config = ["--config", "configs/baselines/triplet.yaml", "--config", "configs/hardware/cpu.yaml"]
    done = narrlit("fit", *config, *encoder, *files)

    assert done.code == 0, done.err[-3000:]
    assert "monitored key" not in done.err

    record = read_json(tmp_path / "triplet/version_0/run.json")
    assert record["model"]["objective"] == "Triplet"
    assert record["num_evaluations"] == 0
    assert list(record["checkpoints"]) == ["last"]
    assert load_encoder(str(tmp_path / "triplet/version_0")).reads == "text"


def test_training_on_validation_triples_is_flagged_and_shown(tiny, narrlit, world_files, tmp_path):
    data = ["--data", "FileData", "--data.train", world_files / "validation.jsonl"]
    arguments = fit_arguments(tiny(), tmp_path, epochs=1)
    start = arguments.index("--data.init_args.train")
    end = arguments.index("--data.init_args.loading.batch_size")
    arguments[start:end] = [*data, "--data.validation", world_files / "validation.jsonl"]

    with pytest.warns(UserWarning, match="training data contain validation triples"):
        assert narrlit(*arguments).code == 0
    assert record_of(tmp_path)["flags"]["trained_on_validation"] is True


def files_of(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.suffix in (".ckpt", ".json", ".yaml")}


LOGGERS = {
    "none": ["--trainer.logger", "false"],
    "CSV": ["--trainer.logger", "CSVLogger", "--trainer.logger.save_dir", "logs", "--trainer.logger.version", "0"],
    "TensorBoard": [
        *("--trainer.logger", "TensorBoardLogger", "--trainer.logger.save_dir", "logs"),
        *("--trainer.logger.version", "0"),
    ],
    "own directory of checkpoints": ["--last_checkpoint.dirpath", "saved"],
}


@pytest.mark.parametrize("logger", LOGGERS.values(), ids=LOGGERS)
def test_a_fit_in_the_directory_of_another_is_refused(tiny, narrlit, tmp_path, logger):
    common = [*without_folder(fit_arguments(tiny(), tmp_path, epochs=1)), *logger]
    assert narrlit(*common).code == 0
    before = files_of(tmp_path)
    assert narrlit(*common, "--seed_everything", "7").code == 2
    if "--last_checkpoint.dirpath" not in logger:
        for stage in ("validate", "test", "predict"):
            assert narrlit(stage, *common[1:]).code == 2
    assert files_of(tmp_path) == before

    (last,) = tmp_path.rglob("last.ckpt")
    assert narrlit(*common, "--trainer.max_epochs", "2", "--ckpt_path", last).code == 0


def test_anchors_without_a_negative_are_counted_once(tiny, tmp_path, recwarn):
    alone = ["--data.init_args.loading.batch_size", "1", "--model.init_args.candidates", "pairs"]
    fit_here(fit_arguments(tiny(), tmp_path / "triples", *alone[:2], epochs=1), tmp_path)
    assert not [warning for warning in recwarn if "had no negative" in str(warning.message)]

    fit_here(fit_arguments(tiny(), tmp_path, *alone, epochs=2), tmp_path)
    (warning,) = [str(warning.message) for warning in recwarn if "had no negative" in str(warning.message)]
    assert warning.startswith("16 of 16 anchors of epoch 0 ")


def test_runs_go_under_the_trainers_root(tiny, tmp_path):
    arguments = without_folder(fit_arguments(tiny(), tmp_path, epochs=1))
    fit_here([*arguments, "--trainer.default_root_dir", tmp_path / "root"], tmp_path)
    fit_here([*arguments, "--trainer.default_root_dir", tmp_path / "root"], tmp_path)
    run = tmp_path / "root/quickstart/version_1"

    assert read_json(run / "run.json")["status"] == "finished"
    assert (run / "checkpoints/last.ckpt").is_file()
    assert list(run.glob("events.*"))
    assert not (tmp_path / "runs").exists()


def test_fits_at_once_have_a_folder_each(tiny, tmp_path):
    arguments = without_folder(fit_arguments(tiny(), tmp_path, epochs=1))
    context = multiprocessing.get_context("fork")
    begin = context.Barrier(2)

    def child():
        torch.set_num_threads(1)
        os.chdir(tmp_path)
        begin.wait(60)
        os._exit(main([str(argument) for argument in arguments]))

    fits = [context.Process(target=child) for _ in range(2)]
    for fit in fits:
        fit.start()
    for fit in fits:
        fit.join(300)

    assert [fit.exitcode for fit in fits] == [0, 0]

    runs = sorted((tmp_path / "runs/quickstart").iterdir())
    assert [run.name for run in runs] == ["version_0", "version_1"]

    for run in runs:
        record = read_json(run / "run.json")
        assert record["status"] == "finished"
        assert record["checkpoints"]["last"] == "checkpoints/last.ckpt"


def test_loggers_in_several_processes_never_share_a_folder(tmp_path):
    def claim(folder, name):
        Path(folder, name).write_text("\n".join(RunLogger(str(tmp_path / "runs")).log_dir for _ in range(50)))

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=claim, args=(tmp_path, str(number))) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    claimed = [line for number in range(4) for line in (tmp_path / str(number)).read_text().split()]

    assert len(claimed) == 200
    assert len(set(claimed)) == 200


def finite(state):
    return all(bool(value.isfinite().all()) for value in state.values())


@pytest.mark.parametrize("step", [6, 8], ids=["within an epoch", "at its end"])
def test_a_diverged_fit_fails_and_names_the_last_good_checkpoint(tiny, narrlit, tmp_path, step):
    more = ["--trainer.callbacks+=run_helpers.SpoilAt", "--trainer.callbacks.step", step]
    result = narrlit(*fit_arguments(tiny(), tmp_path, *more))
    assert result.code == 1

    (line,) = [line for line in result.err.splitlines() if "error" in line]
    fault = "step 7: the loss is nan" if step == 6 else "step 8: weights are not finite"
    assert line.startswith(f"narrlit: error: {fault}; last good checkpoint: ")

    last = tmp_path / "tiny/checkpoints/last.ckpt"
    assert str(last) in line
    assert "lower --model.optimization.learning_rate" in line
    assert torch.load(last, weights_only=True)["global_step"] == 4
    assert all(finite(weights_of(tmp_path, path.name)) for path in last.parent.iterdir())

    record = record_of(tmp_path)
    assert record["status"] == "diverged"
    assert (tmp_path / "tiny" / record["checkpoints"]["best"]).is_file()


def test_a_fit_that_diverges_at_once_has_no_good_checkpoint(tiny, narrlit, tmp_path):
    result = narrlit(*fit_arguments(tiny(), tmp_path, "--model.init_args.optimization.learning_rate", "1e30"))
    assert result.code == 1
    assert "last good checkpoint: none" in result.err
    assert not list((tmp_path / "tiny").rglob("*.ckpt"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("loops", None),
        ("loops", {"fit_loop": 3}),
        ("epoch", None),
        ("optimizer_states", [3]),
        ("lr_schedulers", 3),
        ("callbacks", "3 each"),
        ("pytorch-lightning_version", 3),
        ("state_dict", 3),
        ("hyper_parameters", [1]),
    ],
)
def test_a_checkpoint_with_damaged_fields_is_not_resumed(straight, tiny, narrlit, tmp_path, field, value):
    content = torch.load(straight / "tiny/checkpoints/last.ckpt", weights_only=True)
    if value is None:
        del content[field]
    else:
        content[field] = dict.fromkeys(content[field], 3) if value == "3 each" else value

    torch.save(content, tmp_path / "damaged.ckpt")
    result = narrlit(*fit_arguments(tiny(), tmp_path, "--ckpt_path", tmp_path / "damaged.ckpt", epochs=4))

    assert result.code == 2, result.err

    (line,) = [line for line in result.err.splitlines() if line.startswith("narrlit: error: ")]
    assert f"{tmp_path / 'damaged.ckpt'}" in line


def test_a_full_disk_leaves_the_last_good_checkpoint(tiny, tmp_path, straight, capfd):
    size = (straight / "tiny/checkpoints/last.ckpt").stat().st_size
    more = ["--trainer.callbacks+=run_helpers.FillDiskAt", "--trainer.callbacks.step", 6]
    arguments = fit_arguments(tiny(), tmp_path, *more, "--trainer.callbacks.size", size // 2)
    code = exit_code_of_fork(arguments, tmp_path)
    errors = capfd.readouterr().err

    assert code == 2, errors[-2000:]

    last = tmp_path / "tiny/checkpoints/last.ckpt"
    line = errors.strip().splitlines()[-1]
    assert line.startswith("narrlit: error: ")
    assert "file too large" in line
    assert torch.load(last, weights_only=True)["global_step"] == 4
    assert not list((tmp_path / "tiny").rglob(".*"))


def test_a_fit_without_validation_triples_ends_with_the_reason(tiny, narrlit, tmp_path, caplog):
    caplog.set_level("INFO", "lightning.pytorch.utilities.rank_zero")
    assert narrlit("data", "sample", "tales").code == 0
    configs = ("--config", "configs/versions.yaml", "--config", "configs/hardware/cpu.yaml")
    versions = ("--data.versions.files", "tales", "--data.versions.same", "atu")
    model = ("--model.encoder.model", tiny(), "--model.encoder.max_length", "64", "--trainer.max_steps", "1")
    done = narrlit("fit", *configs, *versions, *model)
    assert done.code == 0, done.err
    assert "no accuracy: the data have no validation triples" in caplog.messages
    assert "across ranks is zero" not in done.err
    assert read_json(tmp_path / "runs/versions/version_0/run.json")["best"] is None
