"""Two processes give what one gives: gradients of gathered batches, whole fits under DDP, FSDP2 and on two nodes."""

import json
import subprocess
import sys

import pytest
import torch
import torch.multiprocessing as mp
from gathered import gradient, work
from run_helpers import (
    apart_environment,
    exit_code_of_fork,
    fit_arguments,
    fit_here,
    record_of,
    rounds_arguments,
    run_apart,
    weights_of,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="gloo over loopback is tried on Linux"),
]


def test_gathered_gradients_equal_those_of_one_process(tmp_path, unused_port):
    mp.start_processes(work, args=(unused_port, tmp_path / "out.pt"), nprocs=2, start_method="fork")
    loss, together = torch.load(tmp_path / "out.pt", weights_only=True)
    whole_loss, whole = gradient([0, 1, 2, 3])
    assert torch.allclose(loss, whole_loss, atol=1e-12)
    assert torch.allclose(together, whole, atol=1e-12)
    assert together.norm() > 0.01
    alone = (gradient([0, 1])[1] + gradient([2, 3])[1]) / 2
    assert (together - alone).norm() > 0.1 * together.norm()  # without gathering it would be this, and is not


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


FSDP2 = [
    *("--trainer.strategy", "ModelParallelStrategy"),
    *("--trainer.strategy.process_group_backend", "gloo"),
    *("--trainer.strategy.save_distributed_checkpoint", "false"),
]
TWO = ["--trainer.devices", "2", "--data.init_args.loading.batch_size", "2"]


def fit_on_two(arguments, strategy, cwd):
    """Under DDP in forks; FSDP2 starts its processes by the command line, so it has one of its own."""
    if strategy == "ddp":
        assert exit_code_of_fork([*arguments, *TWO, "--trainer.strategy", "ddp_fork"], cwd) == 0
    else:
        done = run_apart([*arguments, *TWO, *FSDP2], cwd)
        assert done.returncode == 0, done.stderr[-3000:]


def assert_close_weights(folder, other="two"):
    ours, theirs = weights_of(folder / "one"), weights_of(folder / other)
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


def test_a_fit_over_two_processes_equals_one_with_the_double_batch(tiny, one):
    """Same global batches, no dropout: the same weights, but for rounding; each validation triple counts once."""
    fit_on_two(fit_arguments(tiny(), one / "two", *SGD, epochs=2), "ddp", one)
    records = [record_of(one / name) for name in ("one", "two")]
    assert [record["trainer"]["world_size"] for record in records] == [1, 2]
    for ours, theirs in zip(*(record["validations"] for record in records), strict=True):
        assert ours["n"] == theirs["n"] == 9
        assert ours["accuracy"] == theirs["accuracy"]
    answers = [json.loads((one / name / "tiny/validation_answers.json").read_text()) for name in ("one", "two")]
    assert answers[0] == answers[1]
    correct = [validation["correct"] for validation in records[1]["validations"]]
    assert [9 - len(evaluation["wrong"]) for evaluation in answers[1]["evaluations"]] == correct
    assert_close_weights(one)


def test_two_nodes_equal_one_process_with_the_double_batch(tiny, one, unused_port):
    """Launched by torchrun on each node, as configs/hardware/ddp.yaml says."""
    two = [*fit_arguments(tiny(), one / "nodes", *SGD, epochs=2), "--data.init_args.loading.batch_size", "2"]
    two += ["--trainer.strategy", "ddp", "--trainer.devices", "1", "--trainer.num_nodes", "2"]
    address = ["--master-addr", "127.0.0.1", "--master-port", str(unused_port)]
    nodes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(rank)),
                *(*address, "--nproc-per-node", "1", "-m", "narrlit", *two),
            ],
            cwd=one,
            env=apart_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for node in nodes:
        _, errors = node.communicate(timeout=300)
        assert node.returncode == 0, errors[-3000:]
    assert record_of(one / "nodes")["trainer"]["world_size"] == 2
    assert_close_weights(one, "nodes")


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_rounds_over_two_processes_equal_those_of_one_with_the_double_batch(tiny, tmp_path, strategy):
    """The teacher's embeddings are shared out, candidates gathered, the student reset: the same weights in the end."""
    common = list(SGD)
    if strategy == "ddp":
        common += ["--model.init_args.encoder.lora.dropout", "0", "--model.init_args.optimization.learning_rate", "0.1"]
    else:  # every weight: what is sharded must be reset whole
        (tmp_path / "whole.yaml").write_text("model: {init_args: {encoder: {lora: null}}}")
        common += ["--config", tmp_path / "whole.yaml"]
    fit_here(rounds_arguments(tiny(), tmp_path / "one", *common, epochs=2), tmp_path)
    fit_on_two(rounds_arguments(tiny(), tmp_path / "two", *common, epochs=2), strategy, tmp_path)
    one, two = record_of(tmp_path / "one"), record_of(tmp_path / "two")
    assert [entry["promoted"] for entry in one["rounds"]] == [entry["promoted"] for entry in two["rounds"]]
    assert one["rounds"][0]["promoted"]
    weights = assert_close_weights(tmp_path)
    assert all("lora_" in name for name in weights) == (strategy == "ddp")


def test_heads_of_views_are_trained_by_all_processes_whether_sharded_or_not(tiny, tmp_path):
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
