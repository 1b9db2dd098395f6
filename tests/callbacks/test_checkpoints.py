"""Checkpoints are complete or missing, and a resumed fit keeps the best one so far."""

import os

import torch
from refusals import refused

from narrlit.callbacks import BestCheckpoint
from narrlit.callbacks.checkpoints import AtomicCheckpointIO


def test_a_checkpoint_is_written_next_to_its_target_and_synced(tmp_path, monkeypatch):
    target = tmp_path / "run/last.ckpt"
    synced = []
    replaced = []
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(os, "fsync", synced.append)
    rename = type(target).replace
    monkeypatch.setattr(
        type(target), "replace", lambda self, to: replaced.append((self.parent, bool(synced))) or rename(self, to)
    )
    AtomicCheckpointIO().save_checkpoint({"a": torch.ones(2)}, target)

    assert torch.load(target, weights_only=True)["a"].tolist() == [1, 1]
    assert replaced == [(target.parent, True)]
    assert list(target.parent.iterdir()) == [target]


def test_a_write_that_fails_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    target = tmp_path / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"step": 1}, target)

    def full(content, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)

    with refused("cannot_write_checkpoint", path=target, reason="no space left on device"):
        AtomicCheckpointIO().save_checkpoint({"step": 2}, target)

    monkeypatch.undo()
    assert torch.load(target, weights_only=True) == {"step": 1}
    assert list(tmp_path.iterdir()) == [target]


def test_a_deleted_best_checkpoint_is_forgotten_with_its_score(tmp_path):
    before = BestCheckpoint(dirpath=str(tmp_path / "old"), monitor="validation/accuracy", mode="max")
    state = {
        **before.state_dict(),
        "best_model_score": torch.tensor(0.9),
        "best_model_path": str(tmp_path / "best.ckpt"),
    }
    resumed = BestCheckpoint(dirpath=str(tmp_path / "new"), monitor="validation/accuracy", mode="max")
    resumed.load_state_dict(state)

    assert resumed.best_model_score is None

    (tmp_path / "best.ckpt").touch()
    resumed.load_state_dict(state)
    assert resumed.best_model_score == torch.tensor(0.9)
