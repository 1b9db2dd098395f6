"""Two processes give what one gives: gradients of gathered batches, whole fits under DDP, FSDP2 and on two nodes."""

import contextlib
import os
import pickle
import socket
import sys
from pathlib import Path

import pytest
import torch
from json_files import read_json
from processes import (
    fork_under_torchrun,
    in_processes,
    launch_on_two_nodes,
    objectives,
    pseudonymized,
    train_each,
    train_sharded,
)
from refusals import refused
from run_helpers import (
    fit_arguments,
    fit_here,
    record_of,
    rounds_arguments,
    weights_of,
    without_folder,
)
from scoring import scores_of
from tiny_models import world_texts

import narrlit.cli
from narrlit.data.readers import read_triples
from narrlit.models.checkpoint_files import read_checkpoint
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.registry import load_encoder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.distributed,
    pytest.mark.skipif(sys.platform != "linux", reason="gloo over loopback is tried on Linux"),
]


@pytest.fixture(scope="module")
def objectives_by_world(tmp_path_factory):
    """What five steps make of every objective, in one process and in each of two with half of every batch."""
    return train_each(), in_processes(tmp_path_factory.mktemp("objectives"), train_each)


@pytest.mark.parametrize("name", objectives())
def test_five_steps_over_two_processes_equal_those_of_one(objectives_by_world, name):
    """With ragged negatives, and a step in which the second process has none: without gathering, or with a mean of
    each process's own mean, weights would differ by 0.05 and more."""
    one, two = objectives_by_world
    assert one[name]["moved"] > 0.05
    for process in two:
        for key, value in one[name]["weights"].items():
            assert torch.allclose(value, process[name]["weights"][key], atol=1e-5), key
        for ours, theirs in zip(one[name]["logged"], process[name]["logged"], strict=True):
            assert theirs == pytest.approx(ours, abs=1e-5)


def test_names_are_replaced_in_one_process_for_all(tmp_path):
    (calls, texts, error), (no_calls, same, failure) = in_processes(tmp_path, pseudonymized)
    assert calls == 2
    assert no_calls == 0
    assert len(texts) == 12
    assert texts == same
    assert error == failure == "missing_pipeline"


ADAPTERS = {"lora": LoRA(dropout=0.0)}
HALF = {**ADAPTERS, "dtype": "bfloat16", "gradient_checkpointing": True}


@pytest.mark.parametrize(
    ("model", "options"), [(("bert", "mean"), {}), (("qwen3", "lasttoken"), ADAPTERS), (("qwen3", "lasttoken"), HALF)]
)
def test_a_sharded_encoder_that_one_process_loads_equals_a_whole_one(tiny, tmp_path, model, options):
    config = EncoderConfig(tiny(*model), pooling=None, dropout=0.0, **options)
    one = train_sharded(config, world_texts()[:8])
    for sharded in in_processes(tmp_path, train_sharded, config, world_texts()[:8]):
        assert torch.equal(sharded["before"], one["before"])
        assert all(gradient.any() for gradient in sharded["gradients"].values())
        for part in ("gradients", "weights", "buffers"):
            assert sharded[part].keys() == one[part].keys()
            for name, value in one[part].items():
                # In bfloat16 weights that differ by 1e-6 give gradients, here up to 1.5, that differ by a rounding, and
                # five steps with a learning rate of 0.002 change the weights by up to 1e-4 accordingly.
                tolerances = {"gradients": 1e-2, "weights": 1e-4} if options is HALF else {}
                atol = tolerances.get(part, 1e-5)
                assert torch.allclose(sharded[part][name], value, atol=atol), name


@pytest.fixture
def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_rounds_on_two_nodes_without_a_shared_folder_are_refused_at_the_start(tiny, tmp_path, monkeypatch, unused_port):
    monkeypatch.setattr("narrlit.distributed.LAG", 0.3)
    nodes = [tmp_path / str(number) for number in range(2)]
    arguments = [*rounds_arguments(tiny(), "runs", epochs=2), "--trainer.strategy", "ddp", "--trainer.num_nodes", "2"]

    def main(number):
        nodes[number].mkdir()
        os.chdir(nodes[number])
        with Path("errors").open("w") as file, contextlib.redirect_stderr(file):
            return narrlit.cli.main([str(argument) for argument in arguments])

    assert fork_under_torchrun(main, unused_port, nodes=2) == [2, 2]

    for node in nodes:
        (error,) = [line for line in (node / "errors").read_text().splitlines() if "error" in line]
        assert f"{nodes[1] / 'runs'}" in error
        assert "trainer.logger.init_args.save_dir" in error
        assert not (node / "runs/tiny").exists()


FSDP2 = [
    *("--trainer.strategy", "ModelParallelStrategy"),
    *("--trainer.strategy.process_group_backend", "gloo"),
    *("--trainer.strategy.save_distributed_checkpoint", "false"),
]
TWO = ["--trainer.devices", "2", "--data.init_args.loading.batch_size", "2"]


@pytest.fixture
def fit_on_two(unused_port):
    """Under DDP or FSDP2, in forks that take themselves for torchrun's processes."""

    def fit(arguments, strategy, cwd, *more):
        words = [*arguments, *TWO, *(FSDP2 if strategy == "fsdp2" else ("--trainer.strategy", "ddp")), *more]

        def main(_):
            os.chdir(cwd)
            return narrlit.cli.main([str(word) for word in words])

        assert fork_under_torchrun(main, unused_port) == [0, 0]

    return fit


def assert_close_weights(folder, other="two"):
    ours = weights_of(folder / "one")
    theirs = weights_of(folder / other)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.allclose(value, theirs[name], atol=1e-5), name
    return ours


SGD = ["--model.init_args.encoder.dropout", "0", "--model.init_args.optimization.optimizer", "sgd"]


@pytest.fixture(scope="module")
def one(tiny, tmp_path_factory):
    """A folder in which a fit of one process has run, without dropout, in `one`."""
    folder = tmp_path_factory.mktemp("processes")
    fit_here(fit_arguments(tiny(), folder / "one", *SGD, epochs=2), folder)
    return folder


def test_a_fit_over_two_processes_equals_one_with_the_double_batch(tiny, one, fit_on_two):
    """Same global batches, no dropout: the same weights, but for rounding, also where gradients are cached in passes;
    each validation triple counts once."""
    caching = ["--model.encoder.gradient_caching", "true", "--model.encoder.token_budget", "100"]
    fit_on_two(fit_arguments(tiny(), one / "two", *SGD, *caching, epochs=2), "ddp", one)
    records = [record_of(one / name) for name in ("one", "two")]

    assert [record["trainer"]["world_size"] for record in records] == [1, 2]
    for ours, theirs in zip(*(record["validations"] for record in records), strict=True):
        assert ours["n"] == theirs["n"] == 9
        assert ours["accuracy"] == theirs["accuracy"]

    answers = [read_json(one / name / "tiny/validation_answers.json") for name in ("one", "two")]
    assert answers[0] == answers[1]

    correct = [validation["correct"] for validation in records[1]["validations"]]
    assert [9 - len(evaluation["wrong"]) for evaluation in answers[1]["evaluations"]] == correct
    assert_close_weights(one)


def test_processes_share_one_new_folder_and_end_together_when_one_diverges(tiny, tmp_path, unused_port):
    arguments = [*without_folder(fit_arguments(tiny(), tmp_path, *SGD)), *TWO, "--trainer.strategy", "ddp"]
    arguments += ["--trainer.callbacks+=run_helpers.SpoilAt", "--trainer.callbacks.step", "6"]
    arguments += ["--trainer.callbacks.rank", "1"]

    def main(number):
        os.chdir(tmp_path)
        with Path(f"errors{number}").open("w") as file, contextlib.redirect_stderr(file):
            return narrlit.cli.main([str(argument) for argument in arguments])

    assert fork_under_torchrun(main, unused_port) == [1, 1]

    (run,) = (tmp_path / "runs/quickstart").iterdir()
    assert read_json(run / "run.json")["status"] == "diverged"

    errors = [line for number in range(2) for line in (tmp_path / f"errors{number}").read_text().splitlines()]
    (error,) = [line for line in errors if line.startswith("narrlit: error: ")]
    assert str(Path("runs/quickstart/version_0/checkpoints/last.ckpt")) in error
    assert torch.load(run / "checkpoints/last.ckpt", weights_only=True)["global_step"] == 4


def test_two_nodes_equal_one_process_with_the_double_batch(tiny, one, unused_port):
    """Launched by torchrun's agent on each node, as configs/hardware/ddp.yaml says."""
    two = [*fit_arguments(tiny(), one / "nodes", *SGD, epochs=2), "--data.init_args.loading.batch_size", "2"]
    two += ["--trainer.strategy", "ddp", "--trainer.devices", "1", "--trainer.num_nodes", "2"]

    def main():
        torch.set_num_threads(1)
        os.chdir(one)
        with Path(f"errors{os.environ['RANK']}").open("w") as file, contextlib.redirect_stderr(file):
            assert narrlit.cli.main([str(word) for word in two]) == 0

    assert launch_on_two_nodes(main, unused_port) == {0: None, 1: None}
    assert record_of(one / "nodes")["trainer"]["world_size"] == 2
    assert "arning" not in "".join((one / f"errors{rank}").read_text() for rank in range(2))
    assert_close_weights(one, "nodes")


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_rounds_over_two_processes_equal_those_of_one_with_the_double_batch(tiny, tmp_path, strategy, fit_on_two):
    """The teacher's embeddings are shared out, candidates gathered, the student reset: the same weights in the end."""
    common = list(SGD)
    if strategy == "ddp":
        common += ["--model.init_args.encoder.lora.dropout", "0", "--model.init_args.optimization.learning_rate", "0.1"]
    else:  # every weight: what is sharded must be reset whole
        (tmp_path / "whole.yaml").write_text("model: {init_args: {encoder: {lora: null}}}")
        common += ["--config", tmp_path / "whole.yaml"]

    fit_here(rounds_arguments(tiny(), tmp_path / "one", *common, epochs=2), tmp_path)
    fit_on_two(rounds_arguments(tiny(), tmp_path / "two", *common, epochs=2), strategy, tmp_path)
    one = record_of(tmp_path / "one")
    two = record_of(tmp_path / "two")

    assert [entry["promoted"] for entry in one["rounds"]] == [entry["promoted"] for entry in two["rounds"]]
    assert one["rounds"][0]["promoted"]

    weights = assert_close_weights(tmp_path)
    assert all("lora_" in name for name in weights) == (strategy == "ddp")


@pytest.mark.long
def test_heads_of_views_are_trained_by_all_processes_whether_sharded_or_not(tiny, tmp_path, fit_on_two):
    """Both strategies share the batches alike: what one of them left out of the exchange of gradients would differ."""
    for folder, strategy in (("one", "ddp"), ("two", "fsdp2")):
        arguments = [
            *("fit", "--config", "configs/quickstart_ttda704.yaml", "--data.loading.pseudonyms.backend", "none"),
            *("--model.encoder.model", tiny(), "--model.encoder.max_length", "96", "--model.encoder.dropout", "0"),
            *("--model.optimization.optimizer", "sgd", "--model.optimization.learning_rate", "0.1"),
            *("--data.train", "12", "--data.validation", "4", "--trainer.enable_progress_bar", "false"),
            *("--trainer.max_epochs", "2", "--trainer.gradient_clip_val", "null"),
            *("--trainer.logger.init_args.save_dir", str(tmp_path / folder), "--trainer.logger.init_args.name", "tiny"),
            *("--trainer.logger.init_args.version", ""),
        ]
        fit_on_two(arguments, strategy, tmp_path)

    assert sum(name.startswith("views.") for name in assert_close_weights(tmp_path)) == 12


@pytest.mark.long
def test_a_sharded_checkpoint_resumes_and_is_read_by_commands(tiny, tmp_path, world_files, fit_on_two, narrlit):
    common = [*SGD, "--model.init_args.encoder.lora.rank", "4", "--model.init_args.encoder.lora.dropout", "0"]
    common += ["--model.init_args.optimization.learning_rate", "0.1", "--checkpoint.save_top_k", "-1"]
    fit_here(fit_arguments(tiny(), tmp_path / "one", *common, epochs=2), tmp_path)
    shards = ["--trainer.strategy.save_distributed_checkpoint", "true"]
    fit_on_two(fit_arguments(tiny(), tmp_path / "sharded", *common, epochs=2), "fsdp2", tmp_path, *shards)
    (first,) = (tmp_path / "sharded/tiny/checkpoints").glob("best-epoch=0*")
    resumed = fit_arguments(tiny(), tmp_path / "resumed", *common, "--ckpt_path", first, epochs=2)
    fit_on_two(resumed, "fsdp2", tmp_path, *shards)
    weights = weights_of(tmp_path / "one")
    for name in ("sharded", "resumed"):
        state = read_checkpoint(tmp_path / name / "tiny/checkpoints/last.ckpt")["state_dict"]
        assert all(torch.allclose(value, state[key], atol=1e-5) for key, value in weights.items())

    assert all(weights[key].any() for key in weights)

    triples = read_triples(world_files / "validation.jsonl")
    scores = []
    for name in ("one", "resumed"):
        folder = tmp_path / f"{name}_model"
        assert narrlit("export", tmp_path / name / "tiny/checkpoints/last.ckpt", "--out", folder).code == 0
        scores.append(scores_of(load_encoder(str(folder)), triples))

    assert abs(scores[0] - scores[1]).max() < 1e-5
    assert narrlit("evaluate", world_files / "validation.jsonl", "--model", tmp_path / "sharded/tiny").code == 0


def test_the_table_of_a_sharded_checkpoint_runs_no_code(tmp_path, tiny, narrlit):
    shards = tmp_path / "shards"
    shards.mkdir()
    (shards / ".metadata").write_bytes(pickle.dumps(os.getcwd))

    with refused("unsafe_checkpoint"):
        read_checkpoint(shards)

    found = narrlit(*fit_arguments(tiny(), tmp_path / "run", "--ckpt_path", shards))
    assert found.code == 2
    assert "more than tensors and plain data" in found.err
