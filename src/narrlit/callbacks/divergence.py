"""Stop a fit whose loss or weights are no longer finite, before it overwrites good checkpoints."""

import math
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from narrlit.distributed import summed
from narrlit.errors import NarrlitError


class DivergedError(NarrlitError):
    """Non-finite loss or weights in a fit; `run_status` is the status in the record of the run."""

    run_status = "diverged"


class StopOnDivergence(Callback):
    """Callback that raises DivergedError in all processes as soon as the loss or the weights of a fit are not finite.

    All processes see the same loss, the mean over the global batch. Weights are checked before a checkpoint is written;
    at other times, non-finite weights show in the loss of the next step. Gradients may overflow, because a gradient
    scaler skips such a step.
    """

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: object, batch_idx: int
    ) -> None:
        """Check the loss of the step."""
        loss = trainer.callback_metrics.get("train/loss")
        if loss is not None and not math.isfinite(loss):
            raise DivergedError(
                "loss_not_finite", step=trainer.global_step, loss=float(loss), checkpoint=_last_good(trainer)
            )

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Check the weights, before a checkpoint may be written."""
        if trainer.training and not trainer.sanity_checking:
            _check_weights(trainer, pl_module)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Check the weights, before checkpoints are written."""
        _check_weights(trainer, pl_module)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Check the weights of a checkpoint that is written at any other time."""
        _check_weights(trainer, pl_module)


def _check_weights(trainer: L.Trainer, pl_module: L.LightningModule) -> None:
    """Raise DivergedError in all processes if a trained weight of any process is not finite."""
    broken = 0
    for weight in pl_module.parameters():
        if weight.requires_grad and not _local(weight).isfinite().all():
            broken += 1
    if summed(torch.tensor(broken, device=pl_module.device)) > 0:
        raise DivergedError("weights_not_finite", step=trainer.global_step, checkpoint=_last_good(trainer))


def _local(weight: Tensor) -> Tensor:
    """Return the shard of a sharded weight in this process, or an unsharded weight unchanged."""
    part: Tensor = weight.to_local() if hasattr(weight, "to_local") else weight
    return part.detach()


def _last_good(trainer: L.Trainer) -> str:
    """Return the path of the newest checkpoint of this fit or, if there is none, the one from which it was resumed."""
    checkpoints = []
    for callback in trainer.checkpoint_callbacks:
        path = getattr(callback, "best_model_path", "")
        if path and Path(path).exists():
            checkpoints.append(Path(path))
    if checkpoints:
        return str(max(checkpoints, key=lambda path: path.stat().st_mtime))
    return str(trainer.ckpt_path or "none")
