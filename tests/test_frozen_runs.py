"""Whole fits over frozen embeddings: the encoder runs once, the head alone trains, and what comes out is a model."""

import json

import pytest
import torch
from run_helpers import (
    assert_equal_weights,
    exit_code_of_fork,
    fit_here,
    frozen_arguments,
    record_of,
    weights_of,
)
from scoring import scores_of

from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.models.registry import load_encoder

pytestmark = [pytest.mark.slow, pytest.mark.long]
NO_SERVER = ["--model.embeddings.source", "http://127.0.0.1:9/v1", "--model.embeddings.server.max_retries", "0"]
SYSTEMS = ("comhis", "mendel292_mlp", "mendel292_inductive")


def fit(system, model, folder, *more, **options):
    folder.mkdir(exist_ok=True)
    fit_here(frozen_arguments(system, model, folder, *more, **options), folder.parent)
    return record_of(folder)


def correct(source, **options):
    """Validation triples that a model answers rightly."""
    triples = synthetic_triples(StoryWorld(0).triples(9, "validation"), StoryTable())
    scores = scores_of(load_encoder(str(source), long="truncate", **options), triples)
    return ((scores[:, 0] > scores[:, 1]) == (triples.labels == 1)).sum()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_is_a_model_that_answers_as_it_did_in_training(tiny, capfd, tmp_path, system):
    record = fit(system, tiny(), tmp_path / "one")
    assert record["data"]["inputs"]["embeddings"]["made"] > 0
    assert record["flags"]["transductive"] is record["flags"]["mined_validation"] is False
    assert all(name.startswith("head.") for name in weights_of(tmp_path / "one"))

    best = record["best"]["correct"]
    assert correct(tmp_path / "one/tiny") == best

    if system != "mendel292_inductive":  # frozen there: the mean of its sentences
        assert correct(tiny(), max_length=96) == record["frozen"]["correct"]
    load_encoder(str(tmp_path / "one/tiny")).save(tmp_path / "model")
    if system != "mendel292_inductive":  # its folder needs code of its own, which tests of exports allow
        assert correct(tmp_path / "model") == best
    capfd.readouterr()
    again = fit(system, tiny(), tmp_path / "again")

    assert "embedding:" not in capfd.readouterr().err
    assert again["data"]["inputs"]["embeddings"]["made"] == 0
    assert again["validations"] == record["validations"]


@pytest.mark.long
@pytest.mark.parametrize("system", ["comhis", "mendel292_transductive"])
def test_a_killed_fit_resumes_to_the_same_weights(tiny, tmp_path, system):
    more = ["--model.init_args.bilstm.dropout", "0.3"] if "mendel" in system else []
    record = fit(system, tiny(), tmp_path / "whole", *more, epochs=3)
    if "transductive" in system:
        assert record["flags"]["transductive"] is record["data"]["train"]["pseudo_labels"]["transductive"] is True
        assert "pseudo_labels" in " ".join(path.name for path in (tmp_path / "whole/tiny").iterdir())

    strikes = ["--trainer.callbacks+=run_helpers.KillAt", "--trainer.callbacks.step=6"]
    strikes += ["--last_checkpoint.every_n_train_steps", "1"]
    killed = frozen_arguments(system, tiny(), tmp_path / "cut", *more, *strikes, epochs=3)

    assert exit_code_of_fork(killed, tmp_path) == -9

    last = tmp_path / "cut/tiny/checkpoints/last.ckpt"
    fit(system, tiny(), tmp_path / "on", *more, "--ckpt_path", last, epochs=3)
    assert_equal_weights(weights_of(tmp_path / "on"), weights_of(tmp_path / "whole"))


@pytest.mark.long
@pytest.mark.parametrize("system", ["comhis", "mendel292_inductive"])
def test_two_processes_give_what_one_gives_with_the_double_batch(tiny, tmp_path, system):
    common = ["--model.init_args.optimization.optimizer", "sgd", "--model.init_args.optimization.learning_rate", "0.1"]
    common += ["--model.init_args.bilstm.dropout", "0"] if "mendel" in system else []
    one = fit(system, tiny(), tmp_path / "one", *common)
    two = ["--trainer.devices", "2", "--trainer.strategy", "ddp_fork", "--data.init_args.loading.batch_size", "2"]
    two += ["--model.embeddings.folder", tmp_path / "fresh"]  # both processes fill it
    (tmp_path / "two").mkdir()

    assert exit_code_of_fork(frozen_arguments(system, tiny(), tmp_path / "two", *common, *two), tmp_path) == 0

    theirs = weights_of(tmp_path / "two")
    for name, value in weights_of(tmp_path / "one").items():
        assert torch.allclose(value, theirs[name], atol=1e-5), name

    two_processes = record_of(tmp_path / "two")["validations"]
    assert [each["accuracy"] for each in two_processes] == [each["accuracy"] for each in one["validations"]]


def test_the_identity_is_the_frozen_encoder(tiny, tmp_path):
    ablation = ["configs/ablations/comhis_identity.yaml"]
    identity = frozen_arguments("comhis", tiny(), tmp_path, configs=ablation, epochs=1)
    fit_here(identity, tmp_path)
    (weight,) = weights_of(tmp_path).values()
    assert torch.equal(weight, torch.eye(32))
    assert correct(tiny(), max_length=96) == record_of(tmp_path)["best"]["correct"]


def test_mined_validation_trains_and_is_flagged(tiny, tmp_path):
    more = ["--data.hard_examples.mine_validation", "true", "--data.hard_examples.share", "0.5"]
    with pytest.warns(UserWarning, match="4 validation triples added to training, of"):
        record = fit("comhis", tiny(), tmp_path / "run", *more, epochs=1)
    assert record["data"]["train"]["hard_examples"]["mined_validation"] == 4
    assert record["flags"]["mined_validation"] is record["flags"]["trained_on_validation"] is True


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [
        ("mendel292_inductive", ["--data.pseudo_labels.clusters.theme", "99"], "clusters.theme is 99"),
        ("comhis", ["--model.embeddings.source", "ftp://x"], "embeddings.source"),
        ("comhis", NO_SERVER, "127.0.0.1:9"),
        ("comhis", ["--model.init_args.encoder.lora.rank", "2"], "never trains its encoder"),
    ],
)
def test_mistakes_are_one_line(tiny, narrlit, tmp_path, system, options, words):
    done = narrlit(*frozen_arguments(system, tiny(), tmp_path, *options))
    assert done.code == 2
    assert "Traceback" not in done.err
    assert words in done.err.strip().splitlines()[-1]


def test_hard_examples_need_a_frozen_encoder(tiny, narrlit, tmp_path):
    more = ["--config", "configs/baselines/triplet.yaml", "--config", "configs/hardware/cpu.yaml"]
    more += ["--data", "StoryWorldData"]
    done = narrlit("fit", *more, "--model.encoder.model", tiny(), "--data.train", 4, "--data.hard_examples.weight", 2)
    assert done.code == 2
    assert "need a frozen encoder" in done.err


def test_true_labels_come_from_storyworld_alone(tiny, narrlit, world_files, tmp_path):
    truth = ["--data.pseudo_labels.source", "truth"]
    fit("mendel292_inductive", tiny(), tmp_path / "run", *truth, epochs=1)
    files = ["--data.train", world_files / "train.jsonl", "--data.validation", world_files / "validation.jsonl"]
    config = ["--config", "configs/mendel292_inductive.yaml", "--config", "configs/hardware/cpu.yaml"]
    encoder = ["--model.init_args.encoder.model", tiny(), "--model.init_args.encoder.max_length", "96"]
    refused = narrlit("fit", *config, *encoder, *truth, *files)

    assert refused.code == 2
    assert "pseudo_labels.source is truth" in refused.err
    assert json.loads(json.dumps(record_of(tmp_path / "run")["flags"]))["transductive"] is False
