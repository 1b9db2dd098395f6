"""TensorBoard's embedding projector: the validation stories as points to color by role, triple and answer."""

from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor

LABEL_CHARACTERS = 80
HEADER = ["story", "role", "triple", "answer"]


class Projector(Callback):
    """Write the last validation's embeddings at the end of a fit; they were computed for the metric."""

    def __init__(self, stories: int = 2000) -> None:
        """Set the limit.

        Args:
            stories: the most points to write; a browser draws them.
        """
        self.stories = stories
        self._embeddings: dict[int, Tensor] = {}
        self._wrong: set[int] = set()

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Forget the previous validation."""
        self._embeddings, self._wrong = {}, set()

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: Any, **__: Any
    ) -> None:
        """Collect the batch's embeddings by story index."""
        self._wrong.update(outputs["wrong"].tolist())
        if len(self._embeddings) < self.stories:
            indices: list[int] = outputs["indices"].tolist()
            self._embeddings.update(zip(indices, outputs["embeddings"].detach().float().cpu(), strict=True))

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Write points and metadata."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
        if not self._embeddings or not trainer.is_global_zero or not loggers:
            return
        triples = trainer.datamodule.triples["validation"]  # type: ignore[attr-defined]
        columns: dict[int, tuple[str, str, str]] = {}
        for position, triple in enumerate(triples):
            answer = "wrong" if position in self._wrong else "right"
            closer, other = (triple.a, triple.b) if triple.a_is_closer else (triple.b, triple.a)
            for index, role in ((triple.anchor, "anchor"), (closer, "closer candidate"), (other, "other candidate")):
                columns.setdefault(index, (role, str(position), answer))
        indices = sorted(self._embeddings)[: self.stories]
        texts = (" ".join(triples.stories[index].text.split())[:LABEL_CHARACTERS] for index in indices)
        metadata = [[text, *columns.get(index, ("", "", ""))] for text, index in zip(texts, indices, strict=True)]
        points = torch.stack([self._embeddings[index] for index in indices])
        for logger in loggers:
            logger.experiment.add_embedding(points, metadata, None, trainer.global_step, "validation", HEADER)
