"""What `--model` may be, and how it is refused."""

import json

import numpy as np
import pytest
import torch

from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.models.source import load_encoder


def test_a_folder_without_normalisation_gives_its_own_vectors(tiny, tmp_path):
    from sentence_transformers import SentenceTransformer

    Encoder(EncoderConfig(tiny(), normalize=False)).save(tmp_path / "plain")
    texts = ["One story.", "Another."]
    theirs = SentenceTransformer(str(tmp_path / "plain"), device="cpu").encode(texts)
    ours, _ = embed(load_encoder(str(tmp_path / "plain")), texts, progress=False)
    assert abs(ours - theirs).max() < 1e-5
    assert abs(np.linalg.norm(ours, axis=1) - 1).min() > 0.1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"nonsense", "can't be read"),
        ([1, 2], "holds a list"),
        ({"state_dict": {}}, "no encoder"),
        ({"hyper_parameters": {"encoder": {"model": "minilm", "colour": "red"}}, "state_dict": {}}, "another release"),
    ],
)
def test_checkpoints_that_are_none_are_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "x.ckpt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(ModelError, match=words) as caught:
        load_encoder(str(path))
    assert "\n" not in str(caught.value)


def test_pickled_code_in_a_checkpoint_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "run.txt"), "w"))

    torch.save({"hyper_parameters": Evil()}, tmp_path / "x.ckpt")
    with pytest.raises(ModelError, match="can't be read"):
        load_encoder(str(tmp_path / "x.ckpt"))
    assert not (tmp_path / "run.txt").exists()


def test_a_run_whose_checkpoint_moved_uses_the_newest_and_without_any_says_so(tmp_path):
    record = tmp_path / "run.json"
    record.write_text("{broken")
    with pytest.raises(ModelError, match="no run record"):
        load_encoder(str(tmp_path))
    record.write_text(json.dumps({"checkpoints": {"best": "checkpoints/gone.ckpt"}}))
    with pytest.raises(ModelError, match="no checkpoint"):
        load_encoder(str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    torch.save({"state_dict": {}}, tmp_path / "checkpoints/last.ckpt")
    with pytest.raises(ModelError, match=r"last\.ckpt"):
        load_encoder(str(tmp_path))
