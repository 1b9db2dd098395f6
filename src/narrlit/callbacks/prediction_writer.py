"""Answers of `narrlit predict`: predictions.jsonl in the run's directory, one row a triple, in the file's order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import lightning as L
import torch
from lightning.pytorch.callbacks import BasePredictionWriter
from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.writers import write_rows
from narrlit.distributed import gather

PREDICTIONS = "predictions.jsonl"


class PredictionWriter(BasePredictionWriter):
    """Gathers every process's answers and writes them once."""

    def __init__(self) -> None:
        interval: Literal["epoch"] = "epoch"
        super().__init__(interval)

    def write_on_epoch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, predictions: Sequence[Any], batch_indices: Sequence[Any]
    ) -> None:
        """Write text_a_is_closer with both scores."""
        columns = [gather(torch.cat([p[name] for p in predictions])) for name in ("places", "score_a", "score_b")]
        log_dir = trainer.log_dir  # asks the other processes, as the gathering above does
        if not trainer.is_global_zero:
            return
        rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
        target = Path(log_dir or trainer.default_root_dir) / PREDICTIONS
        answers = [{"text_a_is_closer": a > b, "score_a": a, "score_b": b} for place, a, b in rows if place >= 0]
        write_rows(target, answers)
        rank_zero_info(f"predictions: {target}")
