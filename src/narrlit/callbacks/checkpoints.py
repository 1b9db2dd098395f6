"""Best and last checkpoint of a run, written beside their target and renamed."""

import os
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO
from lightning.pytorch.utilities.types import STEP_OUTPUT

from narrlit.compat.lightning import ReplacingCheckpoint, save_after_epochs
from narrlit.errors import OptionError, reason
from narrlit.files import atomic_path


class AtomicCheckpointIO(TorchCheckpointIO):
    """Write a checkpoint beside its target, sync it and rename it, so that a kill or a full disk loses nothing.

    Lightning writes to the temporary folder first, from where a file is copied if that is another file system.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: object | None = None) -> None:
        """Write the file; raise OptionError if that fails, and leave an earlier file as it was."""
        try:
            with atomic_path(path) as temporary, temporary.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as error:
            fault = error.__context__ if isinstance(error, RuntimeError) else error  # torch's own names no reason
            if not isinstance(fault, OSError):
                raise
            remedy = "earlier checkpoints stay; make room, and resume with `ckpt_path`"
            raise OptionError(f"cannot write checkpoint {path}: {reason(fault)}; {remedy}") from error


class BestCheckpoint(ModelCheckpoint):
    """ModelCheckpoint that keeps the best score when a fit is resumed in another directory.

    Lightning resets it, and would count the first epoch after the resumption as the best. The earlier file stays where
    it is; if it was removed, its score is dropped.
    """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the best score and the path of its file."""
        if Path(state_dict["best_model_path"]).is_file():
            super().load_state_dict({**state_dict, "dirpath": self.dirpath})

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save, unless there was no validation yet."""
        if self.monitor is None or self.monitor in trainer.callback_metrics:
            super().on_train_epoch_end(trainer, pl_module)


class LastCheckpoint(ReplacingCheckpoint):
    """ModelCheckpoint that saves after each epoch, and with `every_n_train_steps` within epochs, too.

    It never saves between an epoch's last batch and its end: a fit resumed from there would skip the validation and the
    callbacks of the epoch's end.
    """

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Save after epochs, which `every_n_train_steps` would switch off."""
        save_after_epochs(self)
        super().setup(trainer, pl_module, stage)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: STEP_OUTPUT, batch: object, batch_idx: int
    ) -> None:
        """Save within an epoch."""
        if not trainer.is_last_batch:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
