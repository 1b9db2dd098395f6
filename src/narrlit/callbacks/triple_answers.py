"""Answers to individual triples: the file predictions.jsonl, and a digest that identifies the triples answered."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import lightning as L
import torch
from lightning.pytorch.callbacks import BasePredictionWriter
from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.schema import Triples
from narrlit.data.writers import write_rows
from narrlit.distributed import gather
from narrlit.errors import OptionError

PREDICTIONS = "predictions.jsonl"


class PredictionWriter(BasePredictionWriter):
    """Callback that writes predictions.jsonl to the run's directory: one row per triple, in the order of the file."""

    def __init__(self) -> None:
        interval: Literal["epoch"] = "epoch"
        super().__init__(interval)

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Refuse to overwrite the predictions of another run, before new ones are computed.

        Raises:
            OptionError: if the file exists.
        """
        target = self._target(trainer)
        if stage == "predict" and target.exists():
            raise OptionError("predictions_exist", path=target)

    def write_on_epoch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, predictions: Sequence[Any], batch_indices: Sequence[Any]
    ) -> None:
        """Gather the predictions of all processes, and write text_a_is_closer and both scores of each triple."""
        columns: list[list[Any]] = []
        for name in ("positions", "score_a", "score_b"):
            batches = [prediction[name] for prediction in predictions]
            columns.append(gather(torch.cat(batches)).tolist())
        target = self._target(trainer)
        if not trainer.is_global_zero:
            return
        answers = []
        for position, a, b in sorted(zip(*columns, strict=True)):
            if position >= 0:
                answers.append({"text_a_is_closer": a > b, "score_a": a, "score_b": b})
        write_rows(target, answers)
        rank_zero_info(f"predictions: {target}")

    def _target(self, trainer: L.Trainer) -> Path:
        """Return the path of the file; a collective call, because `trainer.log_dir` is one."""
        return Path(trainer.log_dir or trainer.default_root_dir) / PREDICTIONS


def triples_digest(triples: Triples) -> str:
    """Compute the SHA-256, in hex, of the original texts and the labels of triples, without views and pseudonyms."""
    rows = []
    for triple in triples:
        texts = [triples.stories[index].source_text for index in triple.indices]
        rows.append([*texts, triple.a_is_closer])
    return sha256(json.dumps(rows).encode()).hexdigest()
