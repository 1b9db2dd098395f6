"""Whole fits: what a run leaves, what accepts it, and that a killed one goes on to the same numbers."""

import json
import shutil

import numpy as np
import pytest
import torch
from run_helpers import fit_arguments, run_apart

from narrlit.data.storyworld import StoryWorld, judged_triples
from narrlit.data.writers import write_triples

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def straight(tiny, tmp_path_factory):
    """A folder in which a fit of three epochs has run, in a process of its own."""
    folder = tmp_path_factory.mktemp("straight")
    done = run_apart(fit_arguments(tiny(), folder), folder)
    assert done.returncode == 0, done.stderr
    return folder


def record(run):
    return json.loads((run / "run.json").read_text())


def weights(checkpoint):
    return torch.load(checkpoint, weights_only=True)["state_dict"]


def test_a_run_keeps_its_record(straight):
    found = record(straight / "tiny")
    assert found["status"] == "finished"
    assert [look["n"] for look in found["validations"]] == [9, 9, 9]
    assert found["validation_looks"] == 3
    best = found["best"]
    assert best["accuracy"] == max(look["accuracy"] for look in found["validations"])
    assert best["interval"][0] <= best["accuracy"] <= best["interval"][1]
    assert found["model"]["encoder"]["dropout"] == 0.1
    assert found["data"]["train"]["storyworld"]["triples"] == 16
    assert found["data"]["train"]["stories"] == 48
    assert found["marks"]["trained_on_validation"] is False
    assert set(found["versions"]) >= {"torch", "lightning", "python"}
    assert (found["seed"], found["trainer"]["max_epochs"]) == (42, 3)
    for name in ("best", "last"):
        assert (straight / "tiny" / found["checkpoints"][name]).is_file()


def test_a_run_can_be_watched_in_tensorboard(straight):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(straight / "tiny"), size_guidance={"scalars": 0}).Reload()
    scalars = events.Tags()["scalars"]
    for name in (
        "train/loss",
        "validation/accuracy",
        "validation/accuracy_low",
        "lr-AdamW/pg1",
        "hp/validation_accuracy",
    ):
        assert name in scalars, scalars
    assert len(events.Scalars("train/loss")) == 12
    rates = [event.value for event in events.Scalars("lr-AdamW/pg1")]
    assert max(rates) == pytest.approx(0.001, rel=1e-3)
    assert rates[0] < max(rates) > rates[-1]
    assert "validation" in (straight / "tiny/projector_config.pbtxt").read_text()
    points = next((straight / "tiny").rglob("tensors.tsv")).read_text().strip().split("\n")
    labels = next((straight / "tiny").rglob("metadata.tsv")).read_text().strip().split("\n")
    assert len(points) == len(labels) == 27


def test_every_command_accepts_a_run(straight, narrlit, world_files, tmp_path):
    run = straight / "tiny"
    checkpoint = run / record(run)["checkpoints"]["best"]
    write_triples(tmp_path / "v.jsonl", judged_triples(StoryWorld(0).triples(9, "validation")))
    for source in (run, checkpoint):
        found = narrlit("evaluate", "v.jsonl", "--model", source, "--json")
        assert json.loads(found.out)["accuracy"] == record(run)["best"]["accuracy"]
    assert narrlit("export", run, "--out", "model").code == 0
    for source, out in ((run, "a.npy"), ("model", "b.npy")):
        assert narrlit("embed", world_files / "stories.jsonl", "--model", source, "--out", out).code == 0
    assert abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-6
    assert narrlit("submit", "--model", run, "--track-a", "v.jsonl", "--out", "s.zip").code == 0


def test_stages_judge_and_predict_with_a_checkpoint(straight, narrlit, tmp_path):
    run = straight / "tiny"
    checkpoint = run / record(run)["checkpoints"]["best"]
    common = fit_arguments("unused", tmp_path, "--ckpt_path", checkpoint)[1:]
    common[common.index("unused")] = record(run)["model"]["encoder"]["model"]
    found = run_apart(["validate", *common], tmp_path)
    assert found.returncode == 0, found.stderr
    assert f"validation accuracy {record(run)['best']['accuracy']:.3f} [" in found.stderr
    found = run_apart(["test", *common], tmp_path)
    assert "test accuracy " in found.stderr
    assert "of 5)" in found.stderr
    assert narrlit("predict", *common).code == 0
    rows = [json.loads(line) for line in (tmp_path / "tiny/predictions.jsonl").open()]
    assert len(rows) == 5
    assert all(row["text_a_is_closer"] == (row["score_a"] > row["score_b"]) for row in rows)


def test_the_command_line_beats_a_checkpoint(straight, tiny, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    more = ["--ckpt_path", last, "--model.init_args.scale", "7"]
    done = run_apart(fit_arguments(tiny(), tmp_path, *more, epochs=4), tmp_path)
    assert done.returncode == 0, done.stderr
    found = record(tmp_path / "tiny")
    assert found["model"]["scale"] == 7.0
    assert found["command"]["resumed_from"] == str(last)
    assert [look["epoch"] for look in found["validations"]] == [0, 1, 2, 3]


def test_a_killed_fit_resumes_to_the_same_weights(straight, tiny, tmp_path):
    killer = ["--trainer.callbacks+=run_helpers.KillAt", "--trainer.callbacks.step=6"]
    killed = run_apart(fit_arguments(tiny(), tmp_path, *killer), tmp_path)
    assert killed.returncode == -9
    assert record(tmp_path / "tiny")["status"] == "running"
    last = tmp_path / "last.ckpt"
    shutil.move(tmp_path / "tiny/checkpoints/last.ckpt", last)
    resumed = run_apart(fit_arguments(tiny(), tmp_path / "again", "--ckpt_path", last), tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    ours, theirs = (weights(f / "tiny/checkpoints/last.ckpt") for f in (tmp_path / "again", straight))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    ours, theirs = record(tmp_path / "again/tiny"), record(straight / "tiny")
    assert ours["validations"] == theirs["validations"]
    answers = [(f / "tiny/validation_answers.json").read_text() for f in (tmp_path / "again", straight)]
    assert answers[0] == answers[1]
    assert ours["best"] == theirs["best"]
    best = [
        weights(f / r["checkpoints"]["best"]) for f, r in ((tmp_path / "again/tiny", ours), (straight / "tiny", theirs))
    ]
    assert all(torch.equal(best[0][name], best[1][name]) for name in best[1])


def test_another_seed_trains_other_weights(straight, tiny, tmp_path):
    done = run_apart(fit_arguments(tiny(), tmp_path, "--seed_everything", 7), tmp_path)
    assert done.returncode == 0, done.stderr
    ours, theirs = (weights(f / "tiny/checkpoints/last.ckpt") for f in (tmp_path, straight))
    assert any(not torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--config", "configs/none.yaml"], "none.yaml"),
        (["--model.init_args.scale", "0"], "scale"),
        (["--model.init_args.scales", "1"], "Option 'scales' is not accepted"),
        (["--trainer.max_epochs", "many"], "many"),
        (["--model.init_args.encoder.model", "no/such"], "no/such"),
        (["--model.init_args.encoder.pooling", "median"], "pooling"),
        (["--ckpt_path", "nowhere.ckpt"], "nowhere.ckpt"),
    ],
)
def test_mistakes_in_a_fit_cost_a_line_and_no_traceback(narrlit, tiny, tmp_path, more, words):
    found = narrlit(*fit_arguments(tiny(), tmp_path, *more))
    assert found.code == 2
    assert words in found.err
    assert "Traceback" not in found.err
    assert "usage:" not in found.err
    assert found.err.strip().splitlines()[-1].startswith("narrlit: error: ")
    assert not (tmp_path / "tiny/run.json").exists()


def test_early_stopping_is_a_callback_of_the_config(tiny, tmp_path):
    stopping = ["EarlyStopping", "monitor=validation/accuracy", "mode=max", "patience=1", "min_delta=2.0"]
    more = ["--trainer.callbacks+=EarlyStopping", *(f"--trainer.callbacks.{option}" for option in stopping[1:])]
    done = run_apart(fit_arguments(tiny(), tmp_path, *more, epochs=9), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert record(tmp_path / "tiny")["validation_looks"] == 2  # nothing gains 2.0


def test_half_precision_trains(tiny, tmp_path):
    done = run_apart(fit_arguments(tiny(), tmp_path, "--trainer.precision", "bf16-true", epochs=1), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    kept = weights(tmp_path / "tiny/checkpoints/last.ckpt")
    assert {tensor.dtype for tensor in kept.values() if tensor.is_floating_point()} == {torch.bfloat16}


def test_files_train_without_validation_and_by_another_objective(tiny, narrlit, world_files, tmp_path):
    files = ["--data.init_args.train", world_files / "train.jsonl", "--data.init_args.loading.batch_size", "4"]
    encoder = ["--model.init_args.encoder.model", tiny(), "--trainer.max_epochs", "1", "--trainer.logger.save_dir", "."]
    config = ["--config", "configs/baselines/triplet.yaml", "--config", "configs/hardware/cpu.yaml"]
    done = run_apart(["fit", *config, *encoder, *files], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    run = tmp_path / "triplet/version_0"
    assert record(run)["model"]["objective"] == "Triplet"
    assert record(run)["validation_looks"] == 0
    assert list(record(run)["checkpoints"]) == ["last"]
    found = narrlit("evaluate", world_files / "validation.jsonl", "--model", run)
    assert found.code == 0, found.err
