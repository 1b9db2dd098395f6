"""Callbacks that save the best and the last checkpoint of a run, and atomic writing of checkpoints."""

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
    """Write a checkpoint to a temporary file next to its target, sync it and rename it.

    If the process is killed or the disk is full, an earlier checkpoint stays intact. Lightning itself writes to the
    system's temporary folder; if that is on another file system, the checkpoint is copied to its target.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: object | None = None) -> None:
        """Write a checkpoint.

        Raises:
            OptionError: if the file can't be written; an earlier file at `path` stays unchanged.
        """
        try:
            with atomic_path(path) as temporary, temporary.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as error:
            fault = error.__context__ if isinstance(error, RuntimeError) else error  # torch's own gives no reason
            if not isinstance(fault, OSError):
                raise
            raise OptionError("cannot_write_checkpoint", path=path, reason=reason(fault)) from error


class BestCheckpoint(ModelCheckpoint):
    """ModelCheckpoint that saves after every evaluation, and only then, if the fit evaluates.

    After an evaluation within an epoch it saves at once, after the last one at the end of the epoch: a fit resumed from
    a checkpoint saved between the two would repeat the order of examples.

    If a fit is resumed in another directory, it keeps the best score: Lightning would reset it, and the first epoch
    after resuming would count as the best. The earlier checkpoint stays where it is; if it was removed, its score is
    dropped.
    """

    _evaluated: int | None = None
    """Step of the last evaluation."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the best score and the path of its file."""
        if Path(state_dict["best_model_path"]).is_file():
            super().load_state_dict({**state_dict, "dirpath": self.dirpath})

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save a checkpoint after an evaluation within an epoch."""
        if trainer.sanity_checking:
            return
        super().on_validation_end(trainer, pl_module)
        self._evaluated = trainer.global_step
        if not trainer.is_last_batch:
            self._save_if_logged(trainer, pl_module)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save a checkpoint after the evaluation at the end of an epoch or, if the fit never evaluates, anyway."""
        evaluates = trainer.enable_validation and sum(trainer.num_val_batches) > 0
        if not evaluates or self._evaluated == trainer.global_step:
            self._save_if_logged(trainer, pl_module)

    def _save_if_logged(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save a checkpoint if the monitored metric has been logged.

        Raises:
            OptionError: if it has not, although the fit has evaluated.
        """
        if self.monitor is None or self.monitor in trainer.callback_metrics:
            super().on_train_epoch_end(trainer, pl_module)
        elif self._evaluated is not None:
            raise OptionError("unknown_monitor", monitor=self.monitor, known=sorted(trainer.callback_metrics))


class LastCheckpoint(ReplacingCheckpoint):
    """ModelCheckpoint that saves after each epoch and, with `every_n_train_steps`, also within epochs.

    It never saves between the last batch and the end of an epoch: a fit resumed from there would skip validation and
    the callbacks at the end of the epoch.
    """

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Enable saving after epochs, which `every_n_train_steps` would disable."""
        save_after_epochs(self)
        super().setup(trainer, pl_module, stage)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: STEP_OUTPUT, batch: object, batch_idx: int
    ) -> None:
        """Save a checkpoint within an epoch, but not after its last batch."""
        if not trainer.is_last_batch:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
