"""Which validation triples were judged rightly, for comparisons of two fits on the same triples."""

from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from narrlit.data.batch import TripleBatch

RIGHT, WRONG, UNDEFINED = "1", "0", "?"


class Judgements(Callback):
    """Keeps each look at the validation triples in the run's record, a sign a triple in their order.

    1: rightly judged, 0: wrongly, ?: a score was NaN. For fits of one process, which sees every triple.
    """

    def __init__(self) -> None:
        self._looks: list[str] = []
        self._signs: dict[int, str] = {}

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin a look."""
        self._signs = {}

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: TripleBatch, *_: Any, **__: Any
    ) -> None:
        """Note a batch's triples by their places."""
        signs = _signs(outputs["score_a"], outputs["score_b"], batch.labels == 1)
        self._signs.update(zip(batch.places.tolist(), signs, strict=True))

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """End a look."""
        if not trainer.sanity_checking:
            self._looks.append("".join(self._signs[place] for place in sorted(self._signs)))

    def recorded(self) -> dict[str, Any]:
        """What the run's record says: a text for each of its validations."""
        return {"judgements": self._looks}


def _signs(score_a: Tensor, score_b: Tensor, a_is_closer: Tensor) -> list[str]:
    undefined = (score_a.isnan() | score_b.isnan()).tolist()
    right = ((score_a > score_b) == a_is_closer).tolist()
    return [UNDEFINED if u else RIGHT if r else WRONG for u, r in zip(undefined, right, strict=True)]
