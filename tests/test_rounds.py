"""Whole fits in rounds: promotion, records, curves, and that a fit killed at any point resumes to the same weights."""

import shutil

import numpy as np
import pytest
from json_files import read_json
from run_helpers import (
    assert_equal_weights,
    curves_of,
    exit_code_of_fork,
    fit_here,
    record_of,
    rounds_arguments,
    weights_of,
)
from safetensors.torch import load_file
from scoring import scores_of

from narrlit.data.schema import ASPECTS, StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.models.registry import load_encoder

pytestmark = [pytest.mark.slow, pytest.mark.long]

STEPS = 4
"""Of an epoch: 16 examples in batches of 4; a round has two epochs."""


@pytest.fixture(scope="module")
def straight(tiny, tmp_path_factory):
    """A folder in which a fit of two rounds has run."""
    folder = tmp_path_factory.mktemp("rounds")
    fit_here(rounds_arguments(tiny(), folder), folder)
    return folder


def assert_same_end(ours, theirs):
    """The same last weights, rounds, validations and promoted folders."""
    assert_equal_weights(weights_of(ours), weights_of(theirs))
    a, b = record_of(ours), record_of(theirs)
    assert a["rounds"] == b["rounds"]
    assert a["validations"] == b["validations"]
    assert a["best"] == b["best"]
    for entry in b["rounds"]:
        if entry["promoted"]:
            assert_equal_weights(
                *(load_file(f / "tiny/rounds" / entry["folder"] / "weights.safetensors") for f in (ours, theirs))
            )


def test_the_record_says_who_was_promoted_and_why(straight):
    record = record_of(straight)
    assert [entry["round"] for entry in record["rounds"]] == [0, 1]

    first, second = record["rounds"]
    assert first["promoted"]
    assert first["teacher"] is None
    assert second["teacher"] == "round_0"
    assert second["reason"]
    assert second["promoted"] == (second["student"]["accuracy"] > first["student"]["accuracy"])

    accuracies = [validation["accuracy"] for validation in record["validations"]]
    assert first["student"]["accuracy"] == max(accuracies[:2])
    assert second["student"]["accuracy"] == max(accuracies[2:])
    assert first["student"]["n"] == 9
    assert len(first["student"]["interval"]) == 2
    assert first["kept"] == {}
    assert set(second["kept"]) == {*ASPECTS, "in_batch"}
    assert all(0 < kept["share"] < 1 for name, kept in second["kept"].items() if name != "in_batch")
    assert second["kept"]["theme"]["total"] == 2 * 16  # one for each example of each epoch

    teacher = read_json(straight / "tiny/rounds/round_0/teacher.json")
    assert teacher["student"] == first["student"]


def test_every_term_of_every_round_can_be_watched(straight):
    curves = curves_of(straight / "tiny")
    assert len(curves["train/round_0/ce"]) == len(curves["train/round_1/ce"]) == 2 * STEPS
    assert "train/round_0/kl" not in curves
    assert min(curves["train/round_1/kl"]) > 0

    weight = curves["train/round_1/kl_weight"]
    assert weight[0] == pytest.approx(0.7)
    assert weight[-1] == pytest.approx(0.05)
    assert np.allclose(np.diff(weight), -0.65 / 7, atol=1e-6)
    for name in (*ASPECTS, "in_batch"):
        assert all(0 <= share <= 1 for share in curves[f"train/round_1/kept_{name}"])
    assert min(np.mean(curves[f"train/round_1/kept_{name}"]) for name in ASPECTS) < 1


def test_each_round_begins_with_the_first_weights(straight):
    """The first step of both rounds is taken from the same weights: adapters whose second factor is 0."""
    first = load_file(straight / "tiny/rounds/first.safetensors")
    assert all("lora_" in name for name in first)
    assert not any(value.any() for name, value in first.items() if "lora_B" in name)
    assert all(value.any() for name, value in first.items() if "lora_A" in name)


def test_a_promoted_student_is_a_model_and_checkpoints_hold_adapters_alone(straight, tmp_path):
    student = record_of(straight)["rounds"][0]["student"]
    triples = synthetic_triples(StoryWorld(0).triples(9, "validation"), StoryTable())
    encoder = load_encoder(str(straight / "tiny/rounds/round_0"), long="truncate")
    scores = scores_of(encoder, triples)

    assert ((scores[:, 0] > scores[:, 1]) == (triples.labels == 1)).sum() == student["correct"]

    encoder.merge()
    encoder.save(tmp_path / "model")
    assert abs(scores_of(load_encoder(str(tmp_path / "model"), long="truncate"), triples) - scores).max() < 1e-6
    assert weights_of(straight)
    assert all("lora_" in name for name in weights_of(straight))
    assert not (straight / "tiny/rounds/students").exists()


def resume_after(tiny, folder, strikes, *more, again=None):
    """Run until the callback kills the process, resume from the last checkpoint, in the same folder or another."""
    callback, option = strikes
    killer = [f"--trainer.callbacks+=run_helpers.{callback}", f"--trainer.callbacks.{option}"]
    assert exit_code_of_fork(rounds_arguments(tiny(), folder, *more, *killer), folder) == -9
    last = folder / "tiny/checkpoints/last.ckpt"
    fit_here(rounds_arguments(tiny(), again or folder, *more, "--ckpt_path", last), folder)
    return again or folder


@pytest.mark.long
@pytest.mark.parametrize("step", [2 * STEPS, 3 * STEPS + 2])
def test_a_killed_fit_in_rounds_resumes_to_the_same_end(straight, tiny, tmp_path, step):
    """Right at the boundary (before the round's last epoch is saved), and in round 1."""
    assert_same_end(resume_after(tiny, tmp_path, ("KillAt", f"step={step}")), straight)


@pytest.mark.long
@pytest.mark.parametrize("point", ["promote", "fill_teacher"])
def test_a_fit_killed_while_it_promotes_resumes_to_the_same_end(straight, tiny, tmp_path, point):
    assert_same_end(resume_after(tiny, tmp_path, ("KillWithin", f"function={point}")), straight)


@pytest.mark.long
def test_a_fit_resumes_within_an_epoch_and_in_another_folder(straight, tiny, tmp_path):
    """Saved after every step: killed within the second round's first epoch."""
    often = ["--last_checkpoint.every_n_train_steps", 1]
    strikes = ("KillAt", f"step={2 * STEPS + 3}")
    assert_same_end(resume_after(tiny, tmp_path, strikes, *often, again=tmp_path / "again"), straight)


def test_a_teacher_that_is_gone_is_named(straight, tiny, narrlit, tmp_path):
    shutil.copytree(straight / "tiny", tmp_path / "tiny")
    shutil.rmtree(tmp_path / "tiny/rounds/round_0")
    last = tmp_path / "tiny/checkpoints/last.ckpt"
    shutil.move(straight / "tiny/rounds", straight / "elsewhere")
    try:
        refused = narrlit(*rounds_arguments(tiny(), tmp_path, "--ckpt_path", last, epochs=6, rounds=3))
    finally:
        shutil.move(straight / "elsewhere", straight / "tiny/rounds")

    assert refused.code == 2
    assert "round_0: the teacher of this round is missing" in refused.err
    assert "Traceback" not in refused.err


def test_a_fit_begins_with_a_given_teacher(straight, tiny, tmp_path):
    given = ["--trainer.callbacks.init_args.teacher", straight / "tiny/rounds/round_0"]
    fit_here(rounds_arguments(tiny(), tmp_path, *given, epochs=1, rounds=1), tmp_path)
    entry = record_of(tmp_path)["rounds"][0]

    assert entry["teacher"] == "given"

    accuracy = record_of(straight)["rounds"][0]["student"]["accuracy"]
    assert f"{accuracy:.4f}" in entry["reason"] or "equals" in entry["reason"]


MISTAKES = [
    (["--trainer.max_steps", "5"], "remove trainer.max_steps"),
    (["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=train/loss"], "remove EarlyStopping"),
    (["--trainer.limit_val_batches", "0"], "validation triples"),
    (["--trainer.logger", "false"], "needs a logger"),
    (["--trainer.max_epochs", "5"], "trainer.max_epochs 5 is not a multiple of 2 rounds"),
    (["--trainer.callbacks.init_args.rounds", "0"], "rounds 0"),
    (["--data.init_args.negatives_per_aspect", "0"], "narrlit data mine"),
    (["--data.init_args.validation", "0"], "validation"),
    (["--trainer.callbacks.init_args.teacher", "minilm"], "dimension 384, but the student has dimension 32"),
]


@pytest.mark.parametrize(("more", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_cost_a_line_and_no_traceback(tiny, narrlit, tmp_path, more, words):
    refused = narrlit(*rounds_arguments(tiny(), tmp_path, *more))
    assert refused.code == 2
    assert words in refused.err.strip().splitlines()[-1]
    assert "Traceback" not in refused.err


def test_a_fit_does_not_overwrite_anothers_rounds(straight, tiny, narrlit):
    files = [path for path in (straight / "tiny").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    refused = narrlit(*rounds_arguments(tiny(), straight))

    assert refused.code == 2
    assert "tiny contains another fit: use a different directory" in refused.err
    assert {path: path.read_bytes() for path in (straight / "tiny").rglob("*") if path.is_file()} == before


def test_rounds_of_another_length_are_refused(straight, tiny, narrlit, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    refused = narrlit(*rounds_arguments(tiny(), tmp_path, "--ckpt_path", last, epochs=6))
    assert refused.code == 2
    assert "rounds of 2 epochs" in refused.err


def test_evaluating_a_fit_in_rounds_writes_nothing(straight, tiny, narrlit, tmp_path):
    last = straight / "tiny/checkpoints/last.ckpt"
    arguments = rounds_arguments(tiny(), tmp_path, "--ckpt_path", last)[1:]
    done = narrlit("validate", *arguments, "--trainer.logger", "false")
    assert done.code == 0, done.err
    assert not list(tmp_path.rglob("*.safetensors"))


def test_the_fit_ends_when_patience_is_out(tiny, tmp_path):
    """A student that does not move only equals its teacher: the second of three rounds is the last."""
    still = ["--model.init_args.optimization.learning_rate", "1e-12", "--trainer.callbacks.init_args.patience", "1"]
    fit_here(rounds_arguments(tiny(), tmp_path, *still, epochs=3, rounds=3), tmp_path)
    first, second = record_of(tmp_path)["rounds"]

    assert first["promoted"] is True
    assert second["promoted"] is False
    assert "only equals" in second["reason"]
    assert record_of(tmp_path)["num_evaluations"] == 2


def test_a_fit_that_diverges_promotes_nobody_and_says_so(tiny, tmp_path, narrlit):
    wild = ["--model.init_args.optimization.learning_rate", "1e38"]
    found = narrlit(*rounds_arguments(tiny(), tmp_path, *wild, epochs=2))
    assert found.code == 1, found.err
    assert "the loss is nan; last good checkpoint: none" in found.err, found.err

    record = record_of(tmp_path)
    assert record["status"] == "diverged"
    assert record["best"] is None
    assert not any(entry.get("promoted") for entry in record["rounds"])
    assert not list(tmp_path.glob("**/rounds/round_*"))
