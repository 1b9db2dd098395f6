"""Records of a run: run.json with settings, data and results, validation_answers.json with wrong answers."""

import json
import platform
import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from torch import Tensor

from narrlit.callbacks.triple_answers import triples_digest
from narrlit.compat.lightning import undeclared
from narrlit.datamodules.story_data import data_of
from narrlit.distributed import gather
from narrlit.files import atomic_path
from narrlit.metrics.significance import AccuracySummary, PairedComparison, paired, smallest_difference
from narrlit.models.run_file import ANSWERS, RECORD, VERSION
from narrlit.objectives.base import Objective
from narrlit.seeds import run_seed

PACKAGES = ("narrlit", "torch", "lightning", "transformers", "sentence-transformers", "torchmetrics", "tokenizers")
SIGNIFICANT = 0.05
FEWEST_DIFFERING = 6
"""Triples that two systems must answer differently before McNemar's p can be below 0.05."""
TRAINER_SETTINGS = ("max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val", "world_size")


@dataclass(frozen=True)
class ComparedReference:
    """Paired comparison of an evaluation with a model before training.

    Attributes:
        reference: `frozen` or `untrained`.
        paired: the evaluation minus the reference.
    """

    reference: str
    paired: PairedComparison

    def as_dict(self) -> dict[str, str | float | None]:
        """Convert to JSON values."""
        return {"reference": self.reference, **self.paired.as_dict()}


class RunRecord(Callback):
    """Write run.json and validation_answers.json to the run's directory, atomically, after every change."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self._earlier: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []
        self._references: dict[str, dict[str, Any]] = {}
        self._outputs: list[dict[str, Tensor]] = []
        self._folder: Path | None = None

    def _begin(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        log_dir = trainer.log_dir  # a collective call
        self._folder = Path(log_dir) if log_dir else None
        stage = trainer.state.fn.value if trainer.state.fn else "fit"
        checkpoint = str(trainer.ckpt_path) if trainer.ckpt_path else None
        data = data_of(trainer)
        self.record = {
            "version": VERSION,
            "status": "running",
            "stage": stage,
            "started": _now(),
            "command": {
                "line": shlex.join(["narrlit", *sys.argv[1:]]),
                "resumed_from" if stage == "fit" else "checkpoint": checkpoint,
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
        self._begin(trainer, pl_module)
        if trainer.ckpt_path:
            trainer.num_sanity_val_steps = 0  # a resumed fit keeps the accuracy before its training
        flags = _flags(trainer, pl_module)
        self.record |= {"flags": flags, **self._accuracies(), "validations": self._earlier, "checkpoints": {}}
        if flags["trained_on_validation"]:
            rank_zero_warn(
                f"training data contain validation triples ({_shared(flags)}): the validation accuracy of this fit is "
                "no result"
            )
        self.record["data_check"] = data_of(trainer).check()
        sizes = [(p.numel(), p.requires_grad) for p in pl_module.parameters()]
        trained, total = sum(size for size, trains in sizes if trains), sum(size for size, _ in sizes)
        rank_zero_info(f"{type(pl_module).__name__}: {trained:,} of {total:,} parameters train")
        self._write(trainer)

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of `narrlit validate`; discard the answers of the previous validation."""
        self._outputs = []
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._begin(trainer, pl_module)

    on_test_start = on_predict_start = _begin

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: Any, **__: Any
    ) -> None:
        """Collect the batch's wrong answers."""
        self._outputs.append({name: outputs[name] for name in ("wrong", "wrong_frozen") if name in outputs})

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the accuracy and the wrong answers of all processes, and show the accuracy."""
        partial = trainer.sanity_checking and trainer.num_sanity_val_batches != trainer.num_val_batches
        if not self._outputs or partial:
            return
        summary = cast(Objective, pl_module).summaries["validation"]
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._finish_evaluation(trainer, "validation", summary)
            return
        positions = {name: gather(torch.cat([one[name] for one in self._outputs])) for name in self._outputs[0]}
        wrong = {name: sorted(each[each >= 0].tolist()) if summary.known else None for name, each in positions.items()}
        if trainer.sanity_checking:
            self._record_references(summary, wrong)
        else:
            when = {"epoch": trainer.current_epoch, "step": trainer.global_step}
            self.record["validations"].append({**when, **summary.as_dict()})
            self._answers.append({**when, "wrong": wrong["wrong"]})
            rank_zero_info(f"epoch {trainer.current_epoch}: validation accuracy {summary}")
        self._write(trainer)
        triples = data_of(trainer).triples["validation"]
        references = {name: entry["wrong"] for name, entry in self._references.items()}
        answers = {"triples": triples_digest(triples), **references, "evaluations": self._answers}
        self._write_json(trainer, ANSWERS, answers)

    def _record_references(self, summary: AccuracySummary, wrong: dict[str, list[int] | None]) -> None:
        """Record the model before training and, where that has a new head, the frozen encoder too."""
        self._references = {"untrained": {**summary.as_dict(), "wrong": wrong["wrong"]}}
        rank_zero_info(f"before training: validation accuracy {summary}")
        if (frozen := wrong.get("wrong_frozen")) is not None:
            without_head = AccuracySummary(summary.n, summary.n - len(frozen))
            self._references["frozen"] = {**without_head.as_dict(), "wrong": frozen}
            rank_zero_info(f"frozen encoder: validation accuracy {without_head}")
        self.record |= self._accuracies()

    def _accuracies(self) -> dict[str, dict[str, Any]]:
        return {name: {k: v for k, v in one.items() if k != "wrong"} for name, one in self._references.items()}

    def on_test_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the accuracy, and show it."""
        self._finish_evaluation(trainer, "test", cast(Objective, pl_module).summaries["test"])

    def on_predict_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Close the record."""
        self._finish(trainer)

    def _finish_evaluation(self, trainer: L.Trainer, stage: str, summary: AccuracySummary) -> None:
        rank_zero_info(f"{stage} accuracy {summary}")
        self._finish(trainer, "finished", **{stage: summary.as_dict()})

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the checkpoints of the previous epoch, which are written after all other callbacks."""
        self._write(trainer)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record what other callbacks decided at the epoch's end."""
        self._write(trainer)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Save the validations and answers so far for a resumed run."""
        checkpoint["narrlit_references"] = self._references
        checkpoint["narrlit_validations"] = self.record.get("validations", [])
        checkpoint["narrlit_answers"] = self._answers

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Load the validations and answers of the resumed fit."""
        self._references = dict(checkpoint.get("narrlit_references", {}))
        self._answers = list(checkpoint.get("narrlit_answers", []))
        self._earlier = list(checkpoint.get("narrlit_validations", []))
        if self.record:  # sharded strategies load after the record has begun
            self.record |= {**self._accuracies(), "validations": self._earlier}

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Close the record; also write hyperparameters with the metric for TensorBoard."""
        best = _best(self.record["validations"], trainer)
        comparisons = {} if best is None else self._compare(best)
        self.record |= {name: comparison.as_dict() for name, comparison in comparisons.items()}
        self._finish(trainer, best=best)
        rank_zero_info(f"run: {trainer.log_dir}")
        if best is None:
            rank_zero_info("no accuracy: no validation triples were evaluated after training, or their scores are NaN")
            return
        for logger in trainer.loggers:
            if isinstance(logger, TensorBoardLogger):
                logger.log_hyperparams(dict(pl_module.hparams), {"hp/validation_accuracy": best["accuracy"]})
        count = len(self.record["validations"])
        evaluations = f"best of {count} evaluation{'s' * (count != 1)}"
        low, high = best["interval"]
        rank_zero_info(
            f"best validation accuracy {best['accuracy']:.3f} [{low:.3f}, {high:.3f}] "
            f"({best['correct']} of {best['n']}) in epoch {best['epoch']}, the {evaluations}"
        )
        flags = self.record["flags"]
        if flags["trained_on_validation"]:
            rank_zero_info(
                f"this accuracy is no result: the fit was trained on its validation triples ({_shared(flags)}); "
                "evaluate the run on others"
            )
            return
        for comparison in reversed(comparisons.values()):
            before = best["accuracy"] - comparison.paired.difference
            rank_zero_info(
                f"{comparison.reference} {before:.3f} -> {best['accuracy']:.3f} ({comparison.paired}), "
                f"{evaluations}{_verdict(comparison.paired, best['n'])}"
            )

    def _compare(self, best: dict[str, Any]) -> dict[str, ComparedReference]:
        """Compare the best evaluation with the frozen encoder and, where it differs, the untrained model."""
        answers = next(one for one in self._answers if one["epoch"] == best["epoch"] and one["step"] == best["step"])
        untrained = self._references.get("untrained", {}).get("wrong")
        frozen = self._references["frozen"]["wrong"] if "frozen" in self._references else untrained
        references = {"comparison": ("frozen", frozen)}
        if frozen != untrained:
            references["comparison_untrained"] = ("untrained", untrained)
        return {
            key: ComparedReference(name, paired(set(answers["wrong"]), set(wrong), best["n"]))
            for key, (name, wrong) in references.items()
            if wrong is not None
        }

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Record how a fit ended, by the exception's `run_status` if it has one."""
        if self.record.get("stage") == "fit":
            interrupted = isinstance(exception, KeyboardInterrupt | SystemExit)
            status = "interrupted" if interrupted else getattr(exception, "run_status", "failed")
            self._finish(trainer, status, best=_best(self.record["validations"], trainer))

    def _finish(self, trainer: L.Trainer, status: str = "finished", **result: Any) -> None:
        self.record |= {"status": status, "ended": _now(), **result}
        self._write(trainer)

    def _write(self, trainer: L.Trainer) -> None:
        if self.record["stage"] == "fit" and self._folder is not None:
            self.record["checkpoints"] = _checkpoints(trainer, self._folder)
            self.record["num_evaluations"] = len(self.record["validations"])
            for callback in undeclared(trainer).callbacks:
                self.record |= getattr(callback, "recorded", dict)()  # its own entry
        self._write_json(trainer, RECORD, self.record, indent=2)

    def _write_json(self, trainer: L.Trainer, name: str, content: object, indent: int | None = None) -> None:
        if trainer.is_global_zero and self._folder is not None and not undeclared(trainer).fast_dev_run:
            with atomic_path(self._folder / name) as temporary:
                temporary.write_text(json.dumps(content, indent=indent, default=str) + "\n", encoding="utf-8")


def _shared(flags: dict[str, Any]) -> str:
    stories, pairs = flags["stories_shared_with_validation"], flags["pairs_shared_with_validation"]
    return f"{stories} of their stories and {pairs} of their pairs of anchor and candidate train"


def _verdict(comparison: PairedComparison, n: int) -> str:
    """Describe the difference that n triples could show, if a comparison shows none; else empty."""
    if comparison.p < SIGNIFICANT:
        return ""
    differing = max(comparison.lost + comparison.won, FEWEST_DIFFERING)
    needed = smallest_difference(n, differing / n) + 1 / n  # exact tests need 1/n more than normal ones
    return f": no difference is shown; about {needed:.2f} would be needed with {n} triples"


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
        if (
            isinstance(callback, ModelCheckpoint)
            and callback.best_model_path
            and Path(callback.best_model_path).exists()
        ):
            path, home = Path(callback.best_model_path).resolve(), folder.resolve()
            relative = path.relative_to(home) if path.is_relative_to(home) else path
            paths["best" if callback.monitor else "last"] = str(relative)
    return paths


def _flags(trainer: L.Trainer, objective: Any) -> dict[str, Any]:
    data = data_of(trainer)
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
    processor = platform.processor() or platform.machine()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor
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
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
