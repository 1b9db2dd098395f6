"""Whole fits over stored vectors: the encoder runs once, the head alone trains, and what comes out is a model."""

import json

import numpy as np
import pytest
import torch
from run_helpers import run_apart

pytestmark = pytest.mark.slow
NOBODY = [
    "--model.init_args.vectors.source",
    "http://127.0.0.1:9/v1",
    "--model.init_args.vectors.endpoint.retries",
    "0",
]
SHARDED = ["--trainer.strategy", "ModelParallelStrategy", "--trainer.strategy.process_group_backend", "gloo"]
SYSTEMS = ("comhis", "mendel292_mlp", "mendel292_inductive")


def arguments(system, model, folder, *more, epochs=2):
    """A short fit of a frozen system on StoryWorld; the run is `folder`/tiny."""
    logger = "--trainer.logger.init_args"
    return [
        *("fit", "--config", f"configs/{system}.yaml", "--config", "configs/hardware/cpu.yaml"),
        *("--model.init_args.encoder.model", model, "--model.init_args.encoder.max_length", "96"),
        *("--model.init_args.encoder.pooling", "mean", "--model.init_args.encoder.dtype", "float32"),
        *("--data", "StoryWorldData", "--data.init_args.train", "16", "--data.init_args.validation", "9"),
        *("--data.init_args.test", "5", "--data.init_args.loading.batch_size", "4"),
        *("--model.init_args.optimization.learning_rate", "0.003", "--trainer.max_epochs", str(epochs)),
        *(f"{logger}.save_dir", str(folder), f"{logger}.name", "tiny", f"{logger}.version", ""),
        *map(str, more),
    ]


def fit_apart(*given, cwd, **options):
    done = run_apart(arguments(*given, **options), cwd)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture
def fit(narrlit):
    """fit(system, model, folder, ...): a fit in this process, which has the libraries loaded."""

    def run(*given, **options):
        found = narrlit(*arguments(*given, **options))
        assert found.code == 0, found.err[-3000:]
        return found

    return run


def record_of(folder):
    return json.loads((folder / "tiny/run.json").read_text())


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_is_a_model_that_judges_as_it_did_in_training(tiny, narrlit, fit, tmp_path, system):
    fit(system, tiny(), tmp_path)
    record = record_of(tmp_path)
    made = record["data"]["train"]["vectors"]["made"] + record["data"]["validation"]["vectors"]["made"]
    assert made > 0
    assert record["marks"]["transductive"] is record["marks"]["mined_validation"] is False
    weights = torch.load(tmp_path / "tiny/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert all(name.startswith("head.") for name in weights)
    assert narrlit("storyworld", "--out", "w", "--train", 16, "--validation", 9, "--test", 5).code == 0
    found = narrlit("evaluate", "w/validation.jsonl", "--model", tmp_path / "tiny", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["correct"] == record["best"]["correct"]
    assert narrlit("export", tmp_path / "tiny", "--out", "model").code == 0
    for source, out in ((tmp_path / "tiny", "a.npy"), ("model", "b.npy")):
        found = narrlit("embed", "w/validation_stories.jsonl", "--model", source, "--out", out)
        assert found.code == 0, found.err
    assert abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-5
    again = fit(system, tiny(), tmp_path / "again")
    assert "vectors:" not in again.err
    second = record_of(tmp_path / "again")
    assert second["data"]["train"]["vectors"]["made"] == second["data"]["validation"]["vectors"]["made"] == 0
    assert second["validations"] == record["validations"]


@pytest.mark.parametrize("system", ["comhis", "mendel292_transductive"])
def test_a_killed_fit_goes_on_to_the_same_weights(tiny, tmp_path, system):
    more = ["--model.init_args.bilstm.dropout", "0.3"] if "mendel" in system else []
    fit_apart(system, tiny(), tmp_path / "whole", *more, cwd=tmp_path, epochs=3)
    killer = ["--trainer.callbacks+=run_helpers.KillAt", "--trainer.callbacks.step=6"]
    steps = ["--last_checkpoint.every_n_train_steps", "1"]
    killed = run_apart(arguments(system, tiny(), tmp_path / "cut", *more, *killer, *steps, epochs=3), tmp_path)
    assert killed.returncode == -9
    last = tmp_path / "cut/tiny/checkpoints/last.ckpt"
    fit_apart(system, tiny(), tmp_path / "on", *more, "--ckpt_path", last, cwd=tmp_path, epochs=3)
    ours, theirs = (
        torch.load(tmp_path / name / "tiny/checkpoints/last.ckpt", weights_only=True)["state_dict"]
        for name in ("whole", "on")
    )
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name


@pytest.mark.parametrize("system", ["comhis", "mendel292_inductive"])
def test_two_processes_give_what_one_gives_with_the_double_batch(tiny, fit, tmp_path, system):
    common = ["--model.init_args.optimization.optimizer", "sgd", "--model.init_args.optimization.learning_rate", "0.1"]
    common += ["--model.init_args.bilstm.dropout", "0"] if "mendel" in system else []
    fit(system, tiny(), tmp_path / "one", *common)
    two = ["--trainer.devices", "2", "--trainer.strategy", "ddp", "--data.init_args.loading.batch_size", "2"]
    two += ["--model.init_args.vectors.folder", tmp_path / "fresh"]  # both processes fill it
    fit_apart(system, tiny(), tmp_path / "two", *common, *two, cwd=tmp_path)
    ours, theirs = (
        torch.load(tmp_path / name / "tiny/checkpoints/last.ckpt", weights_only=True)["state_dict"]
        for name in ("one", "two")
    )
    for name, value in ours.items():
        assert torch.allclose(value, theirs[name], atol=1e-5), name
    assert [look["accuracy"] for look in record_of(tmp_path / "one")["validations"]] == [
        look["accuracy"] for look in record_of(tmp_path / "two")["validations"]
    ]


def test_the_identity_is_the_frozen_encoder(tiny, narrlit, tmp_path):
    overlay = ["--config", "configs/ablations/comhis_identity.yaml"]
    given = arguments("comhis", tiny(), tmp_path)
    given = [*given[:5], *overlay, *given[5:]]
    rate = given.index("--model.init_args.optimization.learning_rate")
    del given[rate : rate + 2]
    done = narrlit(*given, "--trainer.max_epochs", "1")
    assert done.code == 0, done.err[-3000:]
    weights = torch.load(tmp_path / "tiny/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert torch.equal(weights["head.map.weight"], torch.eye(32))
    assert narrlit("storyworld", "--out", "w", "--train", 16, "--validation", 9, "--test", 5).code == 0
    found = narrlit("evaluate", "w/validation.jsonl", "--model", tiny(), "--max-length", 96, "--json")
    assert json.loads(found.out)["correct"] == record_of(tmp_path)["best"]["correct"]


def test_mined_validation_trains_and_is_marked(tiny, fit, tmp_path):
    more = ["--model.init_args.hard.mine_validation", "true", "--model.init_args.hard.share", "0.5"]
    with pytest.warns(UserWarning, match="4 validation triples train, too"):
        fit("comhis", tiny(), tmp_path, *more, epochs=1)
    record = record_of(tmp_path)
    hard = record["data"]["train"]["hard"]
    assert hard["mined_validation"] == 4
    assert record["marks"]["mined_validation"] is record["marks"]["trained_on_validation"] is True


def test_a_transductive_run_is_marked_and_labels_are_kept(tiny, fit, tmp_path):
    fit("mendel292_transductive", tiny(), tmp_path, epochs=1)
    record = record_of(tmp_path)
    assert record["marks"]["transductive"] is True
    labels = record["data"]["train"]["weak_labels"]
    assert labels["transductive"]
    assert labels["fitted_on"] == 16 * 3 + 5 * 3
    assert [labels["clusters"][name]["k"] for name in ("theme", "action", "outcome")] == [8, 5, 4]
    assert len(json.loads((tmp_path / "tiny/weak_labels.json").read_text())["stories"]) == 63


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [
        ("mendel292_inductive", ["--model.init_args.aspects.clusters.theme", "99"], "clusters.theme is 99"),
        ("comhis", ["--model.init_args.vectors.source", "ftp://x"], "vectors.source"),
        ("comhis", NOBODY, "127.0.0.1:9"),
    ],
)
def test_mistakes_are_one_line(tiny, narrlit, tmp_path, system, options, words):
    done = narrlit(*arguments(system, tiny(), tmp_path, *options))
    assert done.code == 2
    assert "Traceback" not in done.err
    assert words in done.err.strip().splitlines()[-1]


def test_a_sharded_strategy_is_refused(tiny, tmp_path):
    # In a process of its own: the strategy would leave its address and port to whatever this one starts later.
    done = run_apart(arguments("comhis", tiny(), tmp_path, *SHARDED), tmp_path)
    assert done.returncode == 2
    assert "nothing is sharded" in done.stderr.strip().splitlines()[-1]


def test_true_labels_come_from_storyworld_alone(tiny, narrlit, fit, world_files, tmp_path):
    truth = ["--model.init_args.aspects.labels", "truth"]
    fit("mendel292_inductive", tiny(), tmp_path, *truth, epochs=1)
    files = ["--data", "FileData", "--data.train", world_files / "train.jsonl"]
    files += ["--data.validation", world_files / "validation.jsonl"]
    config = ["--config", "configs/mendel292_inductive.yaml", "--config", "configs/hardware/cpu.yaml"]
    encoder = ["--model.init_args.encoder.model", tiny(), "--model.init_args.encoder.max_length", "96"]
    found = narrlit("fit", *config, *encoder, *truth, *files)
    assert found.code == 2
    assert "aspects.labels is truth" in found.err
