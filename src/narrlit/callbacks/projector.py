"""TensorBoard's embedding projector: the validation stories as points, labelled by their first words."""

from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor

LABEL_CHARACTERS = 80


class Projector(Callback):
    """Writes the last validation's vectors at the fit's end; they were made for the metric and cost nothing more."""

    def __init__(self, stories: int = 2000) -> None:
        """Args: how many stories at most; a browser has to draw them."""
        self.stories = stories
        self._vectors: dict[int, Tensor] = {}

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Forget the validation before."""
        self._vectors = {}

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: Any, **__: Any
    ) -> None:
        """Keep the batch's vectors by story."""
        if len(self._vectors) < self.stories:
            rows: list[int] = outputs["rows"].tolist()
            self._vectors.update(zip(rows, outputs["vectors"].detach().float().cpu(), strict=True))

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Write the points."""
        if not self._vectors or not trainer.is_global_zero:
            return
        texts = trainer.datamodule.validation_texts()  # type: ignore[attr-defined]
        rows = sorted(self._vectors)[: self.stories]
        labels = [" ".join(texts[row].split())[:LABEL_CHARACTERS] for row in rows]
        for logger in trainer.loggers:
            if isinstance(logger, TensorBoardLogger):
                points = torch.stack([self._vectors[row] for row in rows])
                logger.experiment.add_embedding(points, labels, global_step=trainer.global_step, tag="validation")
