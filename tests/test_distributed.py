"""Two processes give what one gives: gradients of gathered batches, and whole fits under DDP and FSDP2."""

import json
import sys

import pytest
import torch
import torch.multiprocessing as mp
from gathered import gradient, work
from run_helpers import fit_arguments, rounds_arguments, run_apart

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="gloo over loopback is tried on Linux"),
]


def test_gathered_gradients_equal_those_of_one_process(tmp_path, unused_port):
    mp.spawn(work, args=(unused_port, tmp_path / "out.pt"), nprocs=2)
    loss, found = torch.load(tmp_path / "out.pt", weights_only=True)
    whole_loss, whole = gradient([0, 1, 2, 3])
    assert torch.allclose(loss, whole_loss, atol=1e-12)
    assert torch.allclose(found, whole, atol=1e-12)
    assert found.norm() > 0.01
    alone = (gradient([0, 1])[1] + gradient([2, 3])[1]) / 2
    assert (found - alone).norm() > 0.1 * found.norm()  # without gathering it would be this, and is not


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


STRATEGIES = {
    "ddp": ["--trainer.strategy", "ddp"],
    "fsdp2": [
        *("--trainer.strategy", "ModelParallelStrategy"),
        *("--trainer.strategy.process_group_backend", "gloo"),
        *("--trainer.strategy.save_distributed_checkpoint", "false"),
    ],
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fit_over_two_processes_equals_one_with_the_double_batch(tiny, narrlit, tmp_path, strategy):
    """Same global batches, no dropout: the same weights, but for rounding; each validation triple counts once."""
    common = ["--model.init_args.encoder.dropout", "0", "--model.init_args.optimization.optimizer", "sgd"]
    one = run_apart(fit_arguments(tiny(), tmp_path / "one", *common, epochs=2), tmp_path)
    assert one.returncode == 0, one.stderr
    two_options = [*common, "--trainer.devices", "2", "--data.init_args.loading.batch_size", "2"]
    two = run_apart(fit_arguments(tiny(), tmp_path / "two", *two_options, *STRATEGIES[strategy], epochs=2), tmp_path)
    assert two.returncode == 0, two.stderr[-3000:]
    records = [json.loads((tmp_path / n / "tiny/run.json").read_text()) for n in ("one", "two")]
    assert [r["trainer"]["world_size"] for r in records] == [1, 2]
    for ours, theirs in zip(*(r["validations"] for r in records), strict=True):
        assert ours["n"] == theirs["n"] == 9
        assert ours["accuracy"] == theirs["accuracy"]
    answers = [json.loads((tmp_path / n / "tiny/validation_answers.json").read_text()) for n in ("one", "two")]
    assert answers[0] == answers[1]
    assert [9 - len(look["wrong"]) for look in answers[1]["looks"]] == [v["correct"] for v in records[1]["validations"]]
    last = [torch.load(tmp_path / n / "tiny/checkpoints/last.ckpt", weights_only=True) for n in ("one", "two")]
    first = torch.load(tmp_path / "one/tiny/checkpoints" / _best(records[0]), weights_only=True)
    assert last[0]["state_dict"].keys() == last[1]["state_dict"].keys()
    for name, ours in last[0]["state_dict"].items():
        assert torch.allclose(ours, last[1]["state_dict"][name], atol=1e-5), name
    assert first["state_dict"].keys() == last[0]["state_dict"].keys()
    found = narrlit("export", tmp_path / "two/tiny", "--out", "model")
    assert found.code == 0, found.err


def _best(record):
    return record["checkpoints"]["best"].removeprefix("checkpoints/")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rounds_over_two_processes_equal_those_of_one_with_the_double_batch(tiny, tmp_path, strategy):
    """The teacher's vectors are shared out, candidates gathered, the student reset: the same adapters in the end."""
    common = ["--model.init_args.optimization.optimizer", "sgd", "--model.init_args.encoder.dropout", "0"]
    if strategy == "ddp":
        common += ["--model.init_args.encoder.lora.dropout", "0", "--model.init_args.optimization.learning_rate", "0.1"]
    else:  # every weight: what is sharded must be reset whole
        (tmp_path / "whole.yaml").write_text("model: {init_args: {encoder: {lora: null}}}")
        common += ["--config", tmp_path / "whole.yaml"]
    two_options = ["--trainer.devices", "2", "--data.init_args.loading.batch_size", "2", *STRATEGIES[strategy]]
    runs = {"one": [], "two": two_options}
    for name, options in runs.items():
        done = run_apart(rounds_arguments(tiny(), tmp_path / name, *common, *options, epochs=2), tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = (json.loads((tmp_path / name / "tiny/run.json").read_text()) for name in runs)
    assert [e["promoted"] for e in one["rounds"]] == [e["promoted"] for e in two["rounds"]]
    assert one["rounds"][0]["promoted"]
    ours, theirs = (
        torch.load(tmp_path / name / "tiny/checkpoints/last.ckpt", weights_only=True)["state_dict"] for name in runs
    )
    assert ours.keys() == theirs.keys()
    assert all("lora_" in name for name in ours) == (strategy == "ddp")
    for name, value in ours.items():
        assert torch.allclose(value, theirs[name], atol=1e-5), name


def test_heads_of_views_are_trained_by_all_processes_whether_sharded_or_not(tiny, tmp_path):
    """Both strategies share the batches alike: what one of them left out of the exchange of gradients would differ."""
    weights = {}
    for strategy, options in STRATEGIES.items():
        arguments = [
            *("fit", "--config", "configs/quickstart_ttda704.yaml", "--trainer.devices", "2"),
            *("--model.encoder.model", tiny(), "--model.encoder.max_length", "96", "--model.encoder.dropout", "0"),
            *("--model.optimization.optimizer", "sgd", "--model.optimization.learning_rate", "0.1"),
            *("--data.train", "12", "--data.validation", "4", "--data.loading.batch_size", "3"),
            *("--trainer.max_epochs", "2", "--trainer.gradient_clip_val", "null", *options),
            *("--trainer.logger.init_args.save_dir", str(tmp_path / strategy)),
            *("--trainer.logger.init_args.version", "run"),
        ]
        done = run_apart(arguments, tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        run = tmp_path / strategy / "quickstart_ttda704/run"
        weights[strategy] = torch.load(run / "checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert weights["ddp"].keys() == weights["fsdp2"].keys()
    assert sum(name.startswith("heads.") for name in weights["ddp"]) == 12
    for name, ours in weights["ddp"].items():
        assert torch.allclose(ours, weights["fsdp2"][name], atol=1e-5), name
