"""Answers to single triples: predictions.jsonl of `predict`, validation_answers.json of a fit, for paired tests."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import lightning as L
import torch
from lightning.pytorch.callbacks import BasePredictionWriter, Callback
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor

from narrlit.data.schema import Triples
from narrlit.data.writers import write_rows
from narrlit.distributed import gather
from narrlit.files import atomic_path

PREDICTIONS = "predictions.jsonl"
ANSWERS = "validation_answers.json"


class PredictionWriter(BasePredictionWriter):
    """Write predictions.jsonl in the run's directory: a row for each triple, in the file's order."""

    def __init__(self) -> None:
        interval: Literal["epoch"] = "epoch"
        super().__init__(interval)

    def write_on_epoch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, predictions: Sequence[Any], batch_indices: Sequence[Any]
    ) -> None:
        """Gather every process's predictions and write text_a_is_closer with both scores."""
        columns = [gather(torch.cat([p[name] for p in predictions])) for name in ("positions", "score_a", "score_b")]
        log_dir = trainer.log_dir  # a collective call
        if not trainer.is_global_zero:
            return
        rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
        target = Path(log_dir or trainer.default_root_dir) / PREDICTIONS
        answers = [{"text_a_is_closer": a > b, "score_a": a, "score_b": b} for row, a, b in rows if row >= 0]
        write_rows(target, answers)
        rank_zero_info(f"predictions: {target}")


class ValidationAnswers(Callback):
    """Write validation_answers.json in the run's directory.

    It holds the digest of the triples and, for every validation, its epoch, its step and the positions of the triples
    that were answered wrongly, in ascending order; null where a score was NaN.
    """

    def __init__(self) -> None:
        self._evaluations: list[dict[str, Any]] = []
        self._wrong: list[Tensor] = []
        self._triples = ""
        self._folder: Path | None = None

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Find the run's directory, in every process at once, and identify the triples."""
        log_dir = trainer.log_dir
        self._folder = Path(log_dir) if log_dir and not trainer.fast_dev_run else None  # type: ignore[attr-defined]
        self._triples = triples_digest(trainer.datamodule.triples["validation"])  # type: ignore[attr-defined]

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Forget the previous validation."""
        self._wrong = []

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: Any, **__: Any
    ) -> None:
        """Collect the batch's wrong answers."""
        self._wrong.append(outputs["wrong"])

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Write the wrong answers of all processes."""
        if self._folder is None or trainer.sanity_checking or not self._wrong:
            return
        positions = gather(torch.cat(self._wrong)).tolist()
        summary: Any = pl_module.summaries["validation"]  # type: ignore[index]
        wrong = sorted(position for position in positions if position >= 0) if summary.known else None
        self._evaluations.append({"epoch": trainer.current_epoch, "step": trainer.global_step, "wrong": wrong})
        if trainer.is_global_zero:
            with atomic_path(self._folder / ANSWERS) as temporary:
                text = json.dumps({"triples": self._triples, "evaluations": self._evaluations})
                temporary.write_text(text + "\n", encoding="utf-8")

    def state_dict(self) -> dict[str, Any]:
        """Return the evaluations so far, for a fit resumed in another directory."""
        return {"evaluations": self._evaluations}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over earlier evaluations."""
        self._evaluations = list(state_dict["evaluations"])


def triples_digest(triples: Triples) -> str:
    """Compute the SHA-256, in hex, of triples' texts and labels in order, whatever their views and pseudonyms."""
    rows: Iterable[Any] = (
        (*(triples.stories[index].source_text for index in triple.indices), triple.a_is_closer) for triple in triples
    )
    return sha256(json.dumps(list(rows)).encode()).hexdigest()
