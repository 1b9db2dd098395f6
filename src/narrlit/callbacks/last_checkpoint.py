"""The last checkpoint: at every epoch's end, and within epochs where that is asked for."""

from typing import Any

import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint


class LastCheckpoint(ModelCheckpoint):
    """ModelCheckpoint that always saves at an epoch's end, and with `every_n_train_steps` within epochs too.

    Never after an epoch's last batch: a fit that goes on from there takes the epoch for ended, without its validation
    and all that callbacks do at its end.
    """

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Save at epochs' ends, which `every_n_train_steps` would switch off."""
        self._every_n_epochs = 1
        super().setup(trainer, pl_module, stage)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save within an epoch."""
        if not trainer.is_last_batch:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
