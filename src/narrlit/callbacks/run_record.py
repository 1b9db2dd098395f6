"""run.json: what ran, on which data, with which result; comparisons and reports read it, never logs."""

import json
import platform
import shlex
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn

from narrlit.files import atomic_path
from narrlit.models.registry import RECORD
from narrlit.seeds import run_seed

PACKAGES = ("narrlit", "torch", "lightning", "transformers", "sentence-transformers", "torchmetrics", "tokenizers")
TRAINER_SETTINGS = ("max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val", "world_size")


class RunRecord(Callback):
    """Keep run.json in the run's directory, written atomically after every change."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self._earlier: list[dict[str, Any]] = []
        self._folder: Path | None = None

    def _begin(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        log_dir = trainer.log_dir  # a collective call
        self._folder = Path(log_dir) if log_dir else None
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        self.record = {
            "status": "running",
            "stage": stage,
            "started": _now(),
            "command": {
                "line": shlex.join(["narrlit", *sys.argv[1:]]),
                "checkpoint" if stage != "fit" else "resumed_from": str(trainer.ckpt_path)
                if trainer.ckpt_path
                else None,
            },
            "seed": run_seed(),
            "git": _git_revision(),
            "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
            "machine": _machine(trainer),
            "model": dict(pl_module.hparams),
            "trainer": {
                **{name: getattr(trainer, name) for name in TRAINER_SETTINGS},
                "precision": str(trainer.precision),
                "strategy": type(trainer.strategy).__name__,
            },
            "data": data.provenance,
            "loading": asdict(data.loading),
        }

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of a fit."""
        self._begin(trainer, pl_module, "fit")
        flags = {**_overlap_flags(trainer, pl_module), **pl_module.flags()}  # type: ignore[operator]
        self.record |= {"flags": flags, "validations": self._earlier, "checkpoints": {}}
        if flags["trained_on_validation"]:
            rank_zero_warn(
                "training data contain validation triples: validation accuracy measures memory (run.json: flags)"
            )
        self._write(trainer)

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of `narrlit validate`."""
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._begin(trainer, pl_module, "validate")

    def on_test_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of `narrlit test`."""
        self._begin(trainer, pl_module, "test")

    def on_predict_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of `narrlit predict`."""
        self._begin(trainer, pl_module, "predict")

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the accuracy, and show it."""
        summary = getattr(pl_module, "summaries", {}).get("validation")
        if trainer.sanity_checking or summary is None:
            return
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._finish_evaluation(trainer, "validation", summary)
            return
        position = {"epoch": trainer.current_epoch, "step": trainer.global_step}
        self.record["validations"].append({**position, **summary.as_dict()})
        rank_zero_info(f"epoch {trainer.current_epoch}: validation accuracy {summary}")
        self._write(trainer)

    def on_test_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the accuracy, and show it."""
        self._finish_evaluation(trainer, "test", pl_module.summaries["test"])  # type: ignore[index]

    def on_predict_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Close the record."""
        self.record |= {"status": "finished", "ended": _now()}
        self._write(trainer)

    def _finish_evaluation(self, trainer: L.Trainer, stage: str, summary: Any) -> None:
        rank_zero_info(f"{stage} accuracy {summary}")
        self.record |= {"status": "finished", "ended": _now(), stage: summary.as_dict()}
        self._write(trainer)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record what other callbacks decided at the epoch's end."""
        self._write(trainer)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Save the validations so far for a resumed run."""
        checkpoint["narrlit_validations"] = self.record.get("validations", [])

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Take over earlier validations."""
        self._earlier = list(checkpoint.get("narrlit_validations", []))
        if self.record:  # sharded strategies load after the record has begun
            self.record["validations"] = self._earlier

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Close the record; also write hyperparameters with the metric for TensorBoard."""
        self._finish(trainer, "finished")
        best = self.record["best"]
        for logger in trainer.loggers:
            if best and isinstance(logger, TensorBoardLogger):
                logger.log_hyperparams(_flat(dict(pl_module.hparams)), {"hp/validation_accuracy": best["accuracy"]})
        if best:
            low, high = best["interval"]
            rank_zero_info(
                f"best validation accuracy {best['accuracy']:.3f} [{low:.3f}, {high:.3f}] "
                f"({best['correct']} of {best['n']}) in epoch {best['epoch']}, "
                f"the best of {len(self.record['validations'])} evaluations"
            )
        rank_zero_info(f"run: {trainer.log_dir}")

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Record how the run ended; an exception may say so itself (`run_status`)."""
        if self.record.get("stage") == "fit":
            status = getattr(exception, "run_status", "failed")
            interrupted = isinstance(exception, KeyboardInterrupt | SystemExit)
            self._finish(trainer, "interrupted" if interrupted else status)

    def _finish(self, trainer: L.Trainer, status: str) -> None:
        self.record.update(status=status, ended=_now(), best=_best(self.record["validations"], trainer))
        self._write(trainer)

    def _write(self, trainer: L.Trainer) -> None:
        if not trainer.is_global_zero or self._folder is None or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        if self.record["stage"] == "fit":
            self.record["checkpoints"] = _checkpoints(trainer, self._folder)
            self.record["num_evaluations"] = len(self.record["validations"])
            for callback in trainer.callbacks:  # type: ignore[attr-defined]
                if isinstance(callback, RecordedCallback):
                    self.record.update(callback.recorded())
        with atomic_path(self._folder / RECORD) as temporary:
            temporary.write_text(json.dumps(self.record, indent=2, default=str) + "\n", encoding="utf-8")


class RecordedCallback(Callback):
    """Callback with an entry of its own in run.json."""

    def recorded(self) -> dict[str, Any]:
        """Return the entry."""
        raise NotImplementedError


def _best(validations: list[dict[str, Any]], trainer: L.Trainer) -> dict[str, Any] | None:
    """Find the validation that the best checkpoint was saved for; without one, the best of all."""
    known = [validation for validation in validations if validation["accuracy"] is not None]
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, ModelCheckpoint) and callback.monitor and callback.best_model_score is not None:
            score = float(callback.best_model_score)
            known = [validation for validation in known if abs(validation["accuracy"] - score) < 1e-6] or known
    return max(known, key=lambda validation: validation["accuracy"]) if known else None


def _checkpoints(trainer: L.Trainer, folder: Path) -> dict[str, str]:
    """Paths of the best checkpoint (the one with a monitor) and the last, relative to the run where they lie in it."""
    paths: dict[str, str] = {}
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, ModelCheckpoint) and callback.best_model_path:
            path, home = Path(callback.best_model_path).resolve(), folder.resolve()
            name = "best" if callback.monitor else "last"
            paths[name] = str(path.relative_to(home) if path.is_relative_to(home) else path)
    return paths


def _overlap_flags(trainer: L.Trainer, objective: Any) -> dict[str, Any]:
    data: Any = trainer.datamodule  # type: ignore[attr-defined]
    overlap = data.train_validation_overlap(anchors_only=objective.learns_anchors)
    # A shared (anchor, candidate) pair is enough: its label has been seen.
    shared = overlap.shared_stories if objective.learns_anchors else overlap.shared_pairs
    return {
        "trained_on_validation": shared > 0,
        "stories_shared_with_validation": overlap.shared_stories,
        "pairs_shared_with_validation": overlap.shared_pairs,
        **data.flags(),
    }


def _machine(trainer: L.Trainer) -> dict[str, Any]:
    device = trainer.strategy.root_device
    name = platform.processor() or platform.machine()
    if device.type == "cuda":
        import torch

        name = torch.cuda.get_device_name(device)
    return {"system": platform.system(), "device": device.type, "name": name}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _git_revision() -> str | None:
    # rev-parse alone: it runs no hook, filter or monitor of a folder that may be anybody's.
    command = ["git", "-c", "core.fsmonitor=false", "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}/"))
        else:
            flat[prefix + name] = value if isinstance(value, bool | int | float | str) else str(value)
    return flat


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
