"""run.json: what ran, on which data, with which result; comparisons and reports read it, never logs."""

import json
import platform
import subprocess
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.files import atomic_path
from narrlit.models.source import RECORD
from narrlit.seeds import run_seed

PACKAGES = ("narrlit", "torch", "lightning", "transformers", "sentence-transformers", "torchmetrics", "tokenizers")


class RunRecord(Callback):
    """Keeps run.json in the run's directory, whole at any moment."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self._earlier: list[dict[str, Any]] = []
        self._folder: Path | None = None

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record."""
        # Asked once, by every process: an exception in one of them must not wait for the others.
        self._folder = Path(trainer.log_dir) if trainer.log_dir else None
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        self.record = {
            "status": "running",
            "started": _now(),
            "command": {"resumed_from": str(trainer.ckpt_path) if trainer.ckpt_path else None},
            "seed": run_seed(),
            "git": _git_revision(),
            "versions": {"python": platform.python_version(), **_versions()},
            "machine": _machine(trainer),
            "model": dict(pl_module.hparams),
            "trainer": _settings(trainer),
            "data": data.provenance,
            "loading": asdict(data.loading),
            "marks": {**_marks(data, pl_module), **pl_module.marks()},  # type: ignore[operator]
            "validations": self._earlier,
            "checkpoints": {},
        }
        self._write(trainer)

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Note each look at the validation triples."""
        found = getattr(pl_module, "summaries", {}).get("validation")
        if trainer.sanity_checking or found is None:
            return
        if not self.record:
            rank_zero_info(f"validation accuracy {found}")
            return
        place = {"epoch": trainer.current_epoch, "step": trainer.global_step}
        self.record["validations"].append({**place, **found.as_dict()})
        rank_zero_info(f"epoch {trainer.current_epoch}: validation accuracy {found}")
        self._write(trainer)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Note what other callbacks decided at the epoch's end."""
        self._write(trainer)

    def on_test_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Say the accuracy with n and interval, which the trainer's table lacks."""
        rank_zero_info(f"test accuracy {pl_module.summaries['test']}")  # type: ignore[index]

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Let a resumed run know of the looks at validation that came before it."""
        checkpoint["narrlit_validations"] = self.record.get("validations", [])

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Take over the earlier looks at validation; the record itself begins later."""
        self._earlier = list(checkpoint.get("narrlit_validations", []))
        if self.record:  # sharded strategies load after the record has begun
            self.record["validations"] = self._earlier

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Close the record; also write hyperparameters beside the metric for TensorBoard."""
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
                f"the best of {len(self.record['validations'])} looks"
            )
        rank_zero_info(f"run: {trainer.log_dir}")

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Say that the run did not end by itself; an exception may say how it did (`run_status`)."""
        if self.record:
            said = getattr(exception, "run_status", "failed")
            self._finish(trainer, "interrupted" if isinstance(exception, KeyboardInterrupt) else said)

    def _finish(self, trainer: L.Trainer, status: str) -> None:
        self.record.update(status=status, ended=_now(), best=_best(self.record["validations"], trainer))
        self._write(trainer)

    def _write(self, trainer: L.Trainer) -> None:
        if not trainer.is_global_zero or self._folder is None or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        folder = self._folder
        self.record["checkpoints"] = _checkpoints(trainer, folder)
        self.record["validation_looks"] = len(self.record["validations"])
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if hasattr(callback, "recorded"):
                self.record.update(callback.recorded())
        with atomic_path(folder / RECORD) as temporary:
            temporary.write_text(json.dumps(self.record, indent=2, default=str) + "\n", encoding="utf-8")


def _best(looks: list[dict[str, Any]], trainer: L.Trainer) -> dict[str, Any] | None:
    """The look that the best checkpoint was kept for; the best of all where no checkpoint seeks it."""
    looks = [look for look in looks if look["accuracy"] is not None]
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, ModelCheckpoint) and callback.monitor and callback.best_model_score is not None:
            score = float(callback.best_model_score)
            looks = [look for look in looks if abs(look["accuracy"] - score) < 1e-6] or looks
    return max(looks, key=lambda look: look["accuracy"]) if looks else None


def _checkpoints(trainer: L.Trainer, folder: Path) -> dict[str, str]:
    """Paths of the best and the last checkpoint; the one with a monitor is the one that seeks the best."""
    found: dict[str, str] = {}
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, ModelCheckpoint) and callback.best_model_path:
            name = "best" if callback.monitor else "last"
            found[name] = _relative(Path(callback.best_model_path), folder)
    return found


def _relative(path: Path, folder: Path) -> str:
    path, folder = path.resolve(), folder.resolve()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _marks(data: Any, objective: Any) -> dict[str, Any]:
    found = data.train_validation_overlap(anchors_alone=objective.learns_stories)
    # A shared (anchor, candidate) pair is enough: its label has been seen.
    shared = found.shared_stories if objective.learns_stories else found.shared_pairs
    return {
        "trained_on_validation": shared > 0,
        "stories_shared_with_validation": found.shared_stories,
        "pairs_shared_with_validation": found.shared_pairs,
    }


def _settings(trainer: L.Trainer) -> dict[str, Any]:
    return {
        "max_epochs": trainer.max_epochs,
        "max_steps": trainer.max_steps,
        "accumulate_grad_batches": trainer.accumulate_grad_batches,
        "gradient_clip_val": trainer.gradient_clip_val,
        "precision": str(trainer.precision),
        "strategy": type(trainer.strategy).__name__,
        "world_size": trainer.world_size,
    }


def _machine(trainer: L.Trainer) -> dict[str, Any]:
    device = trainer.strategy.root_device
    name = platform.processor() or platform.machine()
    if device.type == "cuda":
        import torch

        name = torch.cuda.get_device_name(device)
    return {"system": platform.system(), "device": device.type, "name": name}


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _git_revision() -> str | None:
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{prefix}{name}/"))
        else:
            found[prefix + name] = value if isinstance(value, bool | int | float | str) else str(value)
    return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
