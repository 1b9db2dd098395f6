"""Models by name, and refusals in one line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from narrlit.errors import ModelError
from narrlit.models import config, pretrained
from narrlit.models.checkpoints import find_checkpoint, find_record
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder

TEXTS = ["One story.", "Another."]


@pytest.fixture
def folder(tiny, tmp_path):
    """A copy of a tiny model's folder, to damage."""
    shutil.copytree(tiny(), tmp_path / "model")
    return tmp_path / "model"


def refusal(source):
    with pytest.raises(ModelError) as caught:
        load_encoder(str(source))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_without_normalization_is_not_normalized(tiny, tmp_path):
    Encoder(EncoderConfig(tiny(), normalize=False)).save(tmp_path / "plain")
    theirs = SentenceTransformer(str(tmp_path / "plain"), device="cpu").encode(TEXTS)
    ours = embed_stories(load_encoder(str(tmp_path / "plain")), TEXTS, progress=False).embeddings

    assert abs(ours - theirs).max() < 1e-5
    assert abs(np.linalg.norm(ours, axis=1) - 1).min() > 0.1


@pytest.mark.parametrize("gone", ["layer.2.", "word_embeddings"])
def test_missing_weights_are_refused(folder, gone):
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if gone not in k}, folder / "model.safetensors", {"format": "pt"})
    message = refusal(folder)
    assert "weights are missing" in message
    assert gone in message


def test_a_missing_pooler_is_not_a_missing_weight(folder):
    before = embed_stories(load_encoder(str(folder)), TEXTS, progress=False).embeddings
    weights = load_file(folder / "model.safetensors")
    assert any("pooler" in name for name in weights)

    save_file({k: v for k, v in weights.items() if "pooler" not in k}, folder / "model.safetensors", {"format": "pt"})
    # Weights that lie elsewhere in the file are aligned otherwise, and may be summed in another order.
    assert abs(embed_stories(load_encoder(str(folder)), TEXTS, progress=False)[0] - before).max() < 1e-6


def _cut(path):
    path.write_bytes(path.read_bytes()[:2000])


def _pointer(path):
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1\n")


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("model.safetensors", _cut, "is the folder complete"),
        ("model.safetensors", _pointer, "git lfs pull"),
        ("1_Pooling/config.json", Path.unlink, "is the folder complete"),
        ("config.json", lambda path: path.write_text("nonsense"), "is the folder complete"),
    ],
)
def test_a_damaged_folder_is_refused_with_a_remedy(folder, name, damage, words):
    damage(folder / name)
    message = refusal(folder)
    assert str(folder) in message
    assert words in message


@pytest.mark.parametrize("value", [float("nan"), 0.0])
def test_embeddings_of_nan_or_zeros_are_refused(folder, value):
    encoder = load_encoder(str(folder))
    with torch.no_grad():
        encoder.transformer.encoder.layer[-1].output.LayerNorm.weight.fill_(value)
        encoder.transformer.encoder.layer[-1].output.LayerNorm.bias.fill_(value)

    with refused("embeddings_of_nan"):
        embed_stories(encoder, TEXTS, progress=False)


def test_a_warning_is_shown_only_for_a_different_pooling(tiny, recwarn):
    assert Encoder(EncoderConfig(tiny("bert", "cls"), pooling="cls")).model[1].pooling_mode == "cls"
    assert Encoder(EncoderConfig(tiny("bert", "cls"))).model[1].pooling_mode == "cls"
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"encoder.pooling mean replaces .*own pooling \(cls\)"):
        assert Encoder(EncoderConfig(tiny("bert", "cls"), pooling="mean")).model[1].pooling_mode == "mean"


def test_no_file_can_permit_remote_code(tiny, tmp_path, monkeypatch):
    asked = []
    read = pretrained._read
    monkeypatch.setattr(
        pretrained, "_read", lambda config, trust, empty: asked.append(trust) or read(config, trust, empty)
    )
    settings = {**EncoderConfig(tiny()).as_dict(), "trust_remote_code": True}
    encoder = Encoder(EncoderConfig.from_dict(settings))
    state = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    torch.save({"hyper_parameters": {"encoder": settings}, "state_dict": state}, tmp_path / "x.ckpt")
    load_encoder(str(tmp_path / "x.ckpt"))
    load_encoder(str(tmp_path / "x.ckpt"), trust_remote_code=True)
    monkeypatch.setenv(config.CONSENT, "")
    config.allow_remote_code()
    load_encoder(str(tmp_path / "x.ckpt"))

    assert asked == [False, False, True, True]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"nonsense", "damaged, or contains more than tensors"), ({"state_dict": {}}, "no encoder")],
)
def test_files_that_are_not_checkpoints_are_refused(tmp_path, content, words):
    path = tmp_path / "x.ckpt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)

    assert words in refusal(path)
    assert "no such file" in refusal(tmp_path / "other.ckpt")


def test_pickled_code_in_a_checkpoint_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "run.txt"), "w"))

    torch.save({"hyper_parameters": Evil()}, tmp_path / "x.ckpt")

    assert "more than tensors" in refusal(tmp_path / "x.ckpt")
    assert not (tmp_path / "run.txt").exists()


def _version(run, number, checkpoint=True):
    folder = run / f"version_{number}"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"checkpoints": {"best": "checkpoints/best.ckpt"}}))
    if checkpoint:
        torch.save({"state_dict": {}}, folder / "checkpoints/best.ckpt")
    return folder


def test_a_run_without_a_version_is_its_newest_version(tmp_path):
    for number in (0, 2, 10):
        _version(tmp_path / "hits", number)
    (tmp_path / "hits/version_11").mkdir()  # a fit that was refused

    for source in (tmp_path / "hits", tmp_path / "hits/version_10"):
        assert find_checkpoint(str(source)) == tmp_path / "hits/version_10/checkpoints/best.ckpt"
        assert find_record(str(source)) == tmp_path / "hits/version_10/run.json"
    assert "name one of hits" in refusal(tmp_path)

    (tmp_path / "empty/version_0").mkdir(parents=True)
    assert "none of its 1 versions" in refusal(tmp_path / "empty")


def test_a_damaged_record_and_a_run_without_a_checkpoint_are_refused(tmp_path):
    record = tmp_path / "run.json"
    for broken in ("{broken", "[1]", "\xff"):
        record.write_bytes(broken.encode("latin-1"))
        assert refusal(tmp_path).startswith(f"run record {record}")
    record.write_text(json.dumps({"checkpoints": {"best": "checkpoints/gone.ckpt"}}))

    assert "no checkpoint" in refusal(tmp_path)


EVALUATION = {"n": 4, "correct": 3, "accuracy": 0.75, "interval": [0.3, 0.95]}


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        ({"checkpoints": ["best.ckpt"]}, "checkpoints: "),
        ({"checkpoints": {"best": 3}}, "checkpoints.best: "),
        ({"model": "minilm"}, "model: "),
        ({"model": {"encoder": {}}}, "model.encoder.model: field required"),
        ({"data": {"train": {"files": [{"path": "a"}]}}}, "data.train.files.0.sha256: field required"),
        ({"flags": 3}, "flags: "),
        ({"best": {"n": 4, "correct": 3, "accuracy": "high", "interval": [0, 1]}}, "best.accuracy: "),
        ({"best": {key: value for key, value in EVALUATION.items() if key != "interval"}}, "best.interval: "),
        ({"validations": [EVALUATION, 3]}, "validations.1: "),
    ],
)
def test_a_damaged_record_is_named_with_its_field(tmp_path, damaged, words):
    record = tmp_path / "run.json"
    record.write_text(json.dumps({"status": "finished", "best": EVALUATION, **damaged}))
    message = refusal(tmp_path)
    assert message.startswith(f"run record {record}: {words}")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["state_dict", "hyper_parameters"])
@pytest.mark.parametrize("value", [None, 3, [1], {}, {"encoder": 3}])
def test_a_checkpoint_with_damaged_fields_is_named(tmp_path, name, value):
    path = tmp_path / "x.ckpt"
    torch.save({"state_dict": {}, "hyper_parameters": {"encoder": {"model": "minilm"}}, name: value}, path)
    message = refusal(path)
    assert message.startswith(f"checkpoint {path}: ")
    assert "\n" not in message


def test_a_missing_best_checkpoint_is_not_replaced_by_the_last(tmp_path):
    run = _version(tmp_path, 0)
    torch.save({"state_dict": {}}, run / "checkpoints/last.ckpt")
    assert find_checkpoint(str(run)) == run / "checkpoints/best.ckpt"

    (run / "checkpoints/best.ckpt").unlink()
    message = refusal(run)
    assert f"its best checkpoint, {run}/checkpoints/best.ckpt, is gone" in message
    assert f"name another one: {run}/checkpoints/last.ckpt" in message
    assert find_checkpoint(str(run / "checkpoints/last.ckpt")) == run / "checkpoints/last.ckpt"
