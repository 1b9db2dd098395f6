"""Whole fits in rounds: promotion, records, curves, and that a fit killed at any point goes on to the same weights."""

import json
import shutil

import numpy as np
import pytest
import torch
from run_helpers import rounds_arguments, run_apart
from safetensors.torch import load_file

pytestmark = pytest.mark.slow

STEPS = 4
"""Of an epoch: 16 examples in batches of 4; a round has two epochs."""


@pytest.fixture(scope="module")
def straight(tiny, tmp_path_factory):
    """A folder in which a fit of two rounds has run, in a process of its own."""
    folder = tmp_path_factory.mktemp("rounds")
    done = run_apart(rounds_arguments(tiny(), folder), folder)
    assert done.returncode == 0, done.stderr
    return folder


def record(folder):
    return json.loads((folder / "tiny/run.json").read_text())


def weights(folder):
    return torch.load(folder / "tiny/checkpoints/last.ckpt", weights_only=True)["state_dict"]


def assert_same_end(ours, theirs):
    """The same last weights, rounds, looks and promoted folders."""
    assert weights(ours).keys() == weights(theirs).keys()
    assert all(torch.equal(weights(ours)[name], weights(theirs)[name]) for name in weights(theirs))
    a, b = record(ours), record(theirs)
    assert (a["rounds"], a["validations"], a["best"]) == (b["rounds"], b["validations"], b["best"])
    for entry in b["rounds"]:
        if entry["promoted"]:
            files = [load_file(f / "tiny/rounds" / entry["folder"] / "weights.safetensors") for f in (ours, theirs)]
            assert all(torch.equal(files[0][name], files[1][name]) for name in files[1])


def test_the_record_says_who_was_promoted_and_why(straight):
    found = record(straight)
    assert [entry["round"] for entry in found["rounds"]] == [0, 1]
    first, second = found["rounds"]
    assert first["promoted"]
    assert first["teacher"] is None
    assert second["teacher"] == "round_0"
    assert second["reason"]
    assert second["promoted"] == (second["student"]["accuracy"] > first["student"]["accuracy"])
    looks = [look["accuracy"] for look in found["validations"]]
    assert first["student"]["accuracy"] == max(looks[:2])
    assert second["student"]["accuracy"] == max(looks[2:])
    assert first["student"]["n"] == 9
    assert len(first["student"]["interval"]) == 2
    assert first["kept"] == {}
    assert set(second["kept"]) == {"theme", "structure", "outcome", "in_batch"}
    assert all(0 < found["share"] < 1 for name, found in second["kept"].items() if name != "in_batch")
    assert second["kept"]["theme"]["of"] == 2 * 16  # one for each example of each epoch
    kept = json.loads((straight / "tiny/rounds/round_0/teacher.json").read_text())
    assert kept["student"] == first["student"]


def test_every_term_of_every_round_can_be_watched(straight):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(straight / "tiny"), size_guidance={"scalars": 0}).Reload()
    curves = {tag: [e.value for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert len(curves["train/round_0/ce"]) == len(curves["train/round_1/ce"]) == 2 * STEPS
    assert "train/round_0/kl" not in curves
    assert min(curves["train/round_1/kl"]) > 0
    weight = curves["train/round_1/kl_weight"]
    assert (weight[0], weight[-1]) == (pytest.approx(0.7), pytest.approx(0.05))
    assert np.allclose(np.diff(weight), -0.65 / 7, atol=1e-6)
    for name in ("theme", "structure", "outcome", "in_batch"):
        assert all(0 <= share <= 1 for share in curves[f"train/round_1/kept_{name}"])
    assert min(np.mean(curves[f"train/round_1/kept_{name}"]) for name in ("theme", "structure", "outcome")) < 1


def test_each_round_begins_with_the_first_weights(straight):
    """The first step of both rounds is taken from the same weights: adapters whose second factor is 0."""
    first = load_file(straight / "tiny/rounds/first.safetensors")
    assert all("lora_" in name for name in first)
    assert not any(value.any() for name, value in first.items() if "lora_B" in name)
    assert all(value.any() for name, value in first.items() if "lora_A" in name)


def test_a_promoted_student_is_a_model_for_every_command(straight, narrlit, world_files):
    teacher = straight / "tiny/rounds/round_0"
    assert narrlit("export", teacher, "--out", "model").code == 0
    for source, out in ((teacher, "a.npy"), ("model", "b.npy")):
        assert narrlit("embed", world_files / "stories.jsonl", "--model", source, "--out", out).code == 0
    assert abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-6
    assert narrlit("evaluate", world_files / "validation.jsonl", "--model", straight / "tiny").code == 0


def test_checkpoints_hold_adapters_alone(straight):
    assert weights(straight)
    assert all("lora_" in name for name in weights(straight))
    assert not (straight / "tiny/rounds/students").exists()


def killed_and_resumed(model, folder, killer, *more, again=None):
    """Run until the killer strikes, go on from the last checkpoint, in the same folder or another; the folder."""
    name, option = killer
    strikes = [f"--trainer.callbacks+=run_helpers.{name}", f"--trainer.callbacks.{option}"]
    killed = run_apart(rounds_arguments(model, folder, *more, *strikes), folder)
    assert killed.returncode == -9, killed.stderr
    last = folder / "tiny/checkpoints/last.ckpt"
    resumed = run_apart(rounds_arguments(model, again or folder, *more, "--ckpt_path", last), folder)
    assert resumed.returncode == 0, resumed.stderr
    return again or folder


@pytest.mark.parametrize("step", [STEPS + 2, 2 * STEPS, 3 * STEPS + 2])
def test_a_killed_fit_in_rounds_resumes_to_the_same_end(straight, tiny, tmp_path, step):
    """In round 0, right at the boundary (before its last epoch is kept), and in round 1."""
    assert_same_end(killed_and_resumed(tiny(), tmp_path, ("KillAt", f"step={step}")), straight)


@pytest.mark.parametrize("point", ["promote", "fill"])
def test_a_fit_killed_while_it_promotes_resumes_to_the_same_end(straight, tiny, tmp_path, point):
    assert_same_end(killed_and_resumed(tiny(), tmp_path, ("KillWithin", f"function={point}")), straight)


@pytest.mark.parametrize("step", [2 * STEPS, 2 * STEPS + 3])
def test_a_fit_resumes_within_an_epoch_and_in_another_folder(straight, tiny, tmp_path, step):
    """Saved after every step: killed at a round's last step, and within the next one's first epoch."""
    often = ["--last_checkpoint.every_n_train_steps", 1]
    killer = ("KillAt", f"step={step}")
    assert_same_end(killed_and_resumed(tiny(), tmp_path, killer, *often, again=tmp_path / "again"), straight)


def test_a_teacher_that_is_gone_is_named(straight, tiny, narrlit, tmp_path):
    shutil.copytree(straight / "tiny", tmp_path / "tiny")
    shutil.rmtree(tmp_path / "tiny/rounds/round_0")
    last = tmp_path / "tiny/checkpoints/last.ckpt"
    shutil.move(straight / "tiny/rounds", straight / "elsewhere")
    try:
        found = narrlit(*rounds_arguments(tiny(), tmp_path, "--ckpt_path", last, epochs=6, rounds=3))
    finally:
        shutil.move(straight / "elsewhere", straight / "tiny/rounds")
    assert found.code == 2
    assert "round_0: this round's teacher is gone" in found.err
    assert "Traceback" not in found.err


def test_a_fit_begins_with_a_given_teacher(straight, tiny, narrlit, tmp_path):
    given = ["--trainer.callbacks.init_args.teacher", straight / "tiny/rounds/round_0"]
    done = run_apart(rounds_arguments(tiny(), tmp_path, *given, epochs=1, rounds=1), tmp_path)
    assert done.returncode == 0, done.stderr
    entry = record(tmp_path)["rounds"][0]
    assert entry["teacher"] == "given"
    accuracy = record(straight)["rounds"][0]["student"]["accuracy"]
    assert f"{accuracy:.4f}" in entry["reason"] or "equals" in entry["reason"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--trainer.max_steps", "5"], "leave trainer.max_steps out"),
        (["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=train/loss"], "leave EarlyStopping out"),
        (["--trainer.limit_val_batches", "0"], "validation triples"),
        (["--trainer.logger", "false"], "no logger"),
        (["--trainer.max_epochs", "5"], "2 rounds do not divide trainer.max_epochs, 5"),
        (["--trainer.callbacks.init_args.rounds", "0"], "rounds 0"),
        (["--data.init_args.negatives_per_dimension", "0"], "narrlit mine"),
        (["--data.init_args.validation", "0"], "validation"),
        (["--trainer.callbacks.init_args.teacher", "minilm"], "384 numbers, the student of 32"),
    ],
)
def test_mistakes_cost_a_line_and_no_traceback(tiny, narrlit, tmp_path, more, words):
    found = narrlit(*rounds_arguments(tiny(), tmp_path, *more))
    assert found.code == 2
    assert words in found.err.strip().splitlines()[-1]
    assert "Traceback" not in found.err


def test_a_fit_does_not_write_over_anothers_rounds(straight, tiny, narrlit):
    before = sorted((straight / "tiny/rounds").rglob("*"))
    found = narrlit(*rounds_arguments(tiny(), straight))
    assert found.code == 2
    assert "holds the rounds of another fit" in found.err
    assert sorted((straight / "tiny/rounds").rglob("*")) == before


def test_rounds_of_another_length_are_refused(straight, tiny, narrlit, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    found = narrlit(*rounds_arguments(tiny(), tmp_path, "--ckpt_path", last, epochs=6))
    assert found.code == 2
    assert "rounds of 2 epochs" in found.err


def test_judging_a_fit_in_rounds_writes_nothing(straight, tiny, narrlit, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    arguments = rounds_arguments(tiny(), tmp_path, "--ckpt_path", last)[1:]
    found = narrlit("validate", *arguments, "--trainer.logger", "false")
    assert found.code == 0, found.err
    assert not list(tmp_path.rglob("*.safetensors"))


def test_the_fit_ends_when_patience_is_out(tiny, tmp_path):
    """A student that does not move only equals its teacher: the second of three rounds is the last."""
    still = ["--model.init_args.optimization.learning_rate", "1e-12", "--trainer.callbacks.init_args.patience", "1"]
    done = run_apart(rounds_arguments(tiny(), tmp_path, *still, epochs=3, rounds=3), tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = record(tmp_path)["rounds"]
    assert (first["promoted"], second["promoted"]) == (True, False)
    assert "only equals" in second["reason"]
    assert record(tmp_path)["validation_looks"] == 2


def test_a_fit_that_diverges_promotes_nobody_and_says_so(tiny, tmp_path):
    wild = ["--model.init_args.optimization.learning_rate", "1e38"]
    done = run_apart(rounds_arguments(tiny(), tmp_path, *wild, epochs=2), tmp_path)
    assert done.returncode == 0, done.stderr
    found = record(tmp_path)
    assert [entry["promoted"] for entry in found["rounds"]] == [False, False]
    assert "no look" in found["rounds"][0]["reason"]
    assert [(look["accuracy"], look["undefined"]) for look in found["validations"]] == [(None, 9), (None, 9)]
    assert found["best"] is None
