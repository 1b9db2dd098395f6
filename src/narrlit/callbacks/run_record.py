"""Records of a run: settings, data and results in run.json, and wrong answers in validation_answers.json."""

import json
import math
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from numpy.typing import NDArray
from torch import Tensor

from narrlit.callbacks.checkpoints import BestCheckpoint, LastCheckpoint
from narrlit.callbacks.triple_answers import triples_digest
from narrlit.compat.lightning import undeclared
from narrlit.data.splits import story_digests, story_numbers
from narrlit.datamodules.provenance import ContaminationFlags
from narrlit.datamodules.story_data import data_of
from narrlit.distributed import gather
from narrlit.files import atomic_path
from narrlit.models.checkpoint_files import read_checkpoint_settings
from narrlit.models.run_file import ANSWERS, HIGHEST_ACCURACY, RECORD, VERSION, Evaluation
from narrlit.objectives.base import Objective
from narrlit.seeds import run_seed
from narrlit.statistics.estimates import Difference, difference, estimate
from narrlit.statistics.evaluations import accuracy_text, estimate_of, evaluation_of
from narrlit.statistics.significance import LEVEL, SharedStories, p_text, smallest_difference

PACKAGES = ("narrlit", "torch", "lightning", "transformers", "sentence-transformers", "torchmetrics", "tokenizers")
COMPARISONS = {"frozen": "comparison", "untrained": "comparison_untrained"}
"""Fields of the comparisons with the models before training."""
TRAINER_SETTINGS = ("max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val", "world_size")


class EvaluationRecord(TypedDict):
    """Evaluation as run.json has it; without epoch and step, it was made before training or after it."""

    epoch: NotRequired[int]
    step: NotRequired[int]
    n: int
    correct: int
    accuracy: float | None
    interval: list[float] | None
    ties: int
    interval_method: NotRequired[Literal["wilson", "by_story"]]
    undefined: NotRequired[int]


class AnswersRecord(TypedDict):
    """Wrong answers at a given epoch and step, as ascending positions of triples; None if a score was NaN."""

    epoch: int
    step: int
    wrong: list[int] | None


class ReferenceRecord(EvaluationRecord):
    """Evaluation of a model before training, with the positions of wrong answers."""

    wrong: list[int] | None


class FlagsRecord(ContaminationFlags):
    """Contamination and provenance flags, which qualify the validation accuracy."""

    trained_on_validation: bool
    stories_shared_with_validation: int
    pairs_shared_with_validation: int


class RecordFields(TypedDict, total=False):
    """Fields of run.json as they are written; `narrlit.models.run_file.RunFile` reads them."""

    version: int
    status: str
    stage: str
    started: str
    ended: str
    command: dict[str, str | None]
    seed: int | None
    git: str | None
    versions: dict[str, str]
    machine: dict[str, str]
    model: dict[str, object]
    trainer: dict[str, object]
    data: Mapping[str, object]
    loading: dict[str, object]
    flags: FlagsRecord
    data_check: Mapping[str, object]
    untrained: EvaluationRecord
    frozen: EvaluationRecord
    validations: list[EvaluationRecord]
    num_evaluations: int
    checkpoints: dict[str, str]
    selected_by: str
    early_stopping: str
    best: EvaluationRecord | None
    comparison: dict[str, float | str | None]
    comparison_untrained: dict[str, float | str | None]
    validation: EvaluationRecord
    test: EvaluationRecord
    rounds: Sequence[object]


class RunRecord(Callback):
    """Callback that writes run.json and validation_answers.json to the run's directory, atomically, at every change."""

    def __init__(self) -> None:
        self.record: RecordFields = {}
        self._earlier: list[EvaluationRecord] = []
        self._answers: list[AnswersRecord] = []
        self._references: dict[str, ReferenceRecord] = {}
        self._outputs: list[dict[str, Tensor]] = []
        self._folder: Path | None = None
        self._shared: dict[str, SharedStories] = {}

    def _begin(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        log_dir = trainer.log_dir  # a collective call
        self._folder = Path(log_dir) if log_dir else None
        stage = trainer.state.fn.value if trainer.state.fn else "fit"
        data = data_of(trainer)
        self._shared = {}
        self.record = {
            "version": VERSION,
            "status": "running",
            "stage": stage,
            "started": _now(),
            "command": _command(trainer, stage),
            "seed": run_seed(),
            "git": _git_revision(),
            "versions": _versions(),
            "machine": _machine(trainer),
            "model": dict(pl_module.hparams),
            "trainer": _trainer_settings(trainer),
            "data": data.provenance,
            "loading": asdict(data.loading),
        }

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of a fit."""
        self._begin(trainer, pl_module)
        if trainer.ckpt_path:
            trainer.num_sanity_val_steps = 0  # the checkpoint has the accuracy before training
        objective = cast(Objective, pl_module)
        flags = _flags(trainer, objective)
        self.record["flags"] = flags
        self.record |= self._accuracies()
        self.record |= {"validations": self._earlier, "checkpoints": {}}
        if flags["trained_on_validation"]:
            rank_zero_warn(
                f"training data contain validation triples ({_shared(flags)}): the validation accuracy of this fit is "
                "not a valid result"
            )
        self.record["data_check"] = data_of(trainer).check()
        trained = _count(objective.trained_parameters().values())
        total = _count(objective.parameters())
        rank_zero_info(f"{type(objective).__name__}: {trained:,} of {total:,} parameters are trained")
        self._write(trainer)

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of `narrlit validate`; discard the answers of the previous validation."""
        self._outputs = []
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._begin(trainer, pl_module)

    def on_test_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the record of `narrlit test`."""
        self._outputs = []
        self._begin(trainer, pl_module)

    on_predict_start = _begin

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: object, **__: object
    ) -> None:
        """Collect the batch's wrong answers."""
        self._outputs.append({name: outputs[name] for name in ("wrong", "wrong_frozen") if name in outputs})

    on_test_batch_end = on_validation_batch_end

    def on_validation_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Log the interval of the accuracy."""
        self._log_interval(trainer, cast(Objective, pl_module), "validation")

    def on_test_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Log the interval of the accuracy."""
        self._log_interval(trainer, cast(Objective, pl_module), "test")

    def _log_interval(self, trainer: L.Trainer, objective: Objective, stage: Literal["validation", "test"]) -> None:
        metric = objective.validation_accuracy if stage == "validation" else objective.test_accuracy
        evaluation = metric.evaluation()
        wrong = self._wrong_answers(evaluation)["wrong"] if self._outputs else None
        accuracy = estimate_of(self._with_stories(trainer, stage, evaluation, wrong))
        # All processes have the same numbers, which their maximum does not change.
        interval = {f"{stage}/accuracy_low": accuracy.low, f"{stage}/accuracy_high": accuracy.high}
        objective.log_dict(interval, sync_dist=True, reduce_fx="max")

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record accuracy and wrong answers over all processes, and print the accuracy."""
        partial = trainer.sanity_checking and trainer.num_sanity_val_batches != trainer.num_val_batches
        if not self._outputs or partial:
            return
        evaluation = cast(Objective, pl_module).evaluations["validation"]
        wrong = self._wrong_answers(evaluation)
        evaluation = self._with_stories(trainer, "validation", evaluation, wrong["wrong"])
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._finish_evaluation(trainer, "validation", evaluation)
            return
        if trainer.sanity_checking:
            self._record_references(trainer, evaluation, wrong)
        else:
            epoch, step = trainer.current_epoch, trainer.global_step
            self.record["validations"].append(evaluation_record(evaluation, epoch=epoch, step=step))
            self._answers.append({"epoch": epoch, "step": step, "wrong": wrong["wrong"]})
            rank_zero_info(f"epoch {epoch}: validation accuracy {accuracy_text(evaluation)}")
        self._write(trainer)
        self._write_answers(trainer)

    def _shared_stories(self, trainer: L.Trainer, stage: Literal["validation", "test"], n: int) -> SharedStories | None:
        """Return the dependence of the triples of a stage, computed once; None if only some of them were evaluated."""
        triples = data_of(trainer).triples[stage]
        if len(triples) != n:
            return None
        if stage not in self._shared:
            self._shared[stage] = SharedStories(story_numbers(triples))
        return self._shared[stage]

    def _with_stories(
        self,
        trainer: L.Trainer,
        stage: Literal["validation", "test"],
        evaluation: Evaluation,
        wrong: Iterable[int] | None,
    ) -> Evaluation:
        """Return an evaluation with the interval for triples that share stories, if the wrong answers are known."""
        shared = self._shared_stories(trainer, stage, evaluation.n)
        if wrong is None or shared is None or evaluation.accuracy is None:
            return evaluation
        right = _right(evaluation.n, wrong)
        return evaluation_of(estimate(right, shared), int(right.sum()), evaluation.ties)

    def _wrong_answers(self, evaluation: Evaluation) -> dict[str, list[int] | None]:
        """Gather the positions of wrongly answered triples over all processes; None if scores are NaN."""
        wrong: dict[str, list[int] | None] = {}
        for name in self._outputs[0]:
            positions = gather(torch.cat([outputs[name] for outputs in self._outputs]))
            is_wrong = positions >= 0  # -1: not wrong
            wrong[name] = None if evaluation.accuracy is None else sorted(positions[is_wrong].tolist())
        return wrong

    def _write_answers(self, trainer: L.Trainer) -> None:
        """Write the wrong answers of the models before training and of all evaluations so far."""
        triples = data_of(trainer).triples["validation"]
        answers: dict[str, object] = {"triples": triples_digest(triples), "stories": story_digests(triples)}
        for name, reference in self._references.items():
            answers[name] = reference["wrong"]
        answers["evaluations"] = self._answers
        self._write_json(trainer, ANSWERS, answers)

    def _record_references(
        self, trainer: L.Trainer, evaluation: Evaluation, wrong: dict[str, list[int] | None]
    ) -> None:
        """Record the accuracy of the model before training and, if it has a new head, of the frozen encoder."""
        self._references = {"untrained": {**evaluation_record(evaluation), "wrong": wrong["wrong"]}}
        rank_zero_info(f"before training: validation accuracy {accuracy_text(evaluation)}")
        if (frozen := wrong.get("wrong_frozen")) is not None:
            right = _right(evaluation.n, frozen)
            shared = self._shared_stories(trainer, "validation", evaluation.n)
            without_head = evaluation_of(estimate(right, shared), int(right.sum()))
            self._references["frozen"] = {**evaluation_record(without_head), "wrong": frozen}
            rank_zero_info(f"frozen encoder: validation accuracy {accuracy_text(without_head)}")
        self.record |= self._accuracies()

    def _accuracies(self) -> RecordFields:
        """Return the accuracies of the models before training, without their answers."""
        accuracies = {}
        for name, reference in self._references.items():
            accuracy: dict[str, object] = dict(reference)
            del accuracy["wrong"]
            accuracies[name] = accuracy
        return cast(RecordFields, accuracies)

    def on_test_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record and print the accuracy."""
        evaluation = cast(Objective, pl_module).evaluations["test"]
        wrong = self._wrong_answers(evaluation)["wrong"] if self._outputs else None
        self._finish_evaluation(trainer, "test", self._with_stories(trainer, "test", evaluation, wrong))

    def on_predict_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Finish the record."""
        self._finish(trainer)

    def _finish_evaluation(self, trainer: L.Trainer, stage: str, evaluation: Evaluation) -> None:
        rank_zero_info(f"{stage} accuracy {accuracy_text(evaluation)}")
        self._finish(trainer, "finished", cast(RecordFields, {stage: evaluation_record(evaluation)}))

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the checkpoints of the previous epoch, which are written after all other callbacks."""
        self._write(trainer)

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: object, batch_idx: int
    ) -> None:
        """Record the checkpoint of an evaluation within the epoch, which is written after all other callbacks."""
        if self._outputs:
            self._outputs = []
            self._write(trainer)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Record the fields of other callbacks that act at the end of an epoch."""
        self._write(trainer)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Save the evaluations and answers so far, for a resumed fit."""
        checkpoint["narrlit_references"] = self._references
        checkpoint["narrlit_validations"] = self.record.get("validations", [])
        checkpoint["narrlit_answers"] = self._answers

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Load the evaluations and answers of the resumed fit."""
        for callback in _early_stopping(trainer):
            # The state of EarlyStopping contains its patience, which would replace that of this fit, and an old reason.
            state = checkpoint.get("callbacks", {}).get(callback.state_key, {})
            state |= {"patience": callback.patience, "stopping_reason_message": None}
        self._references = dict(checkpoint.get("narrlit_references", {}))
        self._answers = list(checkpoint.get("narrlit_answers", []))
        self._earlier = list(checkpoint.get("narrlit_validations", []))
        if self.record:  # strategies for sharded weights load the checkpoint after `on_fit_start`
            self.record |= self._accuracies()
            self.record["validations"] = self._earlier

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Finish the record, and write hyperparameters with the best accuracy for TensorBoard."""
        for callback in _early_stopping(trainer):
            if trainer.should_stop and callback.stopping_reason_message:
                reason = callback.stopping_reason_message.removesuffix(" Signaling Trainer to stop.")
                self.record["early_stopping"] = f"after epoch {callback.stopped_epoch}: {reason}"
                rank_zero_info(f"early stopping {self.record['early_stopping']}")
        best = _best(self.record["validations"], trainer)
        shared = None if best is None else self._shared_stories(trainer, "validation", best["n"])
        comparisons = {} if best is None else self._compare(best, shared)
        for reference, comparison in comparisons.items():
            self.record |= cast(RecordFields, {COMPARISONS[reference]: _comparison_record(reference, comparison)})
        self._finish(trainer, result={"best": best, "selected_by": _selected_by(trainer)})
        rank_zero_info(f"run: {trainer.log_dir}")
        if best is None:
            reason = "the data have no validation triples"
            if len(data_of(trainer).triples["validation"]):
                reason = (
                    "no validation triples were evaluated after training, their scores are NaN, or the checkpoint was "
                    "saved between evaluations"
                )
            rank_zero_info(f"no accuracy: {reason}")
            return
        for logger in trainer.loggers:
            if isinstance(logger, TensorBoardLogger):
                logger.log_hyperparams(dict(pl_module.hparams), {"hp/validation_accuracy": _known_accuracy(best)})
        self._print_best(best, comparisons, shared)

    def _print_best(
        self, best: EvaluationRecord, comparisons: dict[str, Difference], shared: SharedStories | None
    ) -> None:
        """Print the accuracy of the saved checkpoint and, if it is a valid result, its comparisons."""
        accuracy, text = _known_accuracy(best), accuracy_text(Evaluation(**best))
        validations = self.record["validations"]
        highest = max((_known_accuracy(validation) for validation in _known(validations)), default=0.0)
        evaluations = f"best of {len(validations)} evaluation{'s' * (len(validations) != 1)}"
        epochs = [validation["epoch"] for validation in validations]
        place = f"epoch {best['epoch']}" + f", step {best['step']}" * (epochs.count(best["epoch"]) > 1)
        if self.record["selected_by"] == HIGHEST_ACCURACY and accuracy == highest:
            rank_zero_info(f"best validation accuracy {text} in {place}, the {evaluations}")
        else:
            evaluations = f"saved checkpoint ({self.record['selected_by']})"
            rank_zero_info(
                f"validation accuracy {text} in {place}, that of the {evaluations}; highest of "
                f"{len(validations)}: {highest:.3f}"
            )
        flags = self.record["flags"]
        if flags["trained_on_validation"]:
            rank_zero_info(
                f"this accuracy is not a valid result: the fit was trained on its validation triples "
                f"({_shared(flags)}); evaluate the run on other triples"
            )
            return
        for reference, comparison in reversed(comparisons.items()):
            test = f"{comparison.lost} lost, {comparison.won} won, {p_text(comparison.p)}"
            rank_zero_info(
                f"{reference} {accuracy - comparison.value:.3f} -> {accuracy:.3f} ({test}), "
                f"{evaluations}{_verdict(comparison, shared)}"
            )

    def _compare(self, best: EvaluationRecord, shared: SharedStories | None) -> dict[str, Difference]:
        """Compare the best evaluation with the frozen encoder and, if its answers differ, with the untrained model."""
        right = _right(best["n"], self._wrong_at(best))
        untrained = self._references["untrained"]["wrong"] if "untrained" in self._references else None
        frozen = self._references["frozen"]["wrong"] if "frozen" in self._references else untrained
        compared = {}
        if frozen is not None:
            compared["frozen"] = difference(right, _right(best["n"], frozen), shared)
        if untrained is not None and untrained != frozen:
            compared["untrained"] = difference(right, _right(best["n"], untrained), shared)
        return compared

    def _wrong_at(self, evaluation: EvaluationRecord) -> list[int]:
        """Return the wrong answers of an evaluation, whose accuracy must be known."""
        for answers in self._answers:
            if answers["epoch"] == evaluation["epoch"] and answers["step"] == evaluation["step"]:
                return cast(list[int], answers["wrong"])
        raise LookupError(f"no answers of epoch {evaluation['epoch']}, step {evaluation['step']}")

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Record the status of a fit that failed or was interrupted; an exception's `run_status` is used if present."""
        if self.record.get("stage") == "fit":
            interrupted = isinstance(exception, KeyboardInterrupt | SystemExit)
            status = "interrupted" if interrupted else getattr(exception, "run_status", "failed")
            best = _best(self.record["validations"], trainer)
            self._finish(trainer, status, {"best": best, "selected_by": _selected_by(trainer)})

    def _finish(self, trainer: L.Trainer, status: str = "finished", result: RecordFields | None = None) -> None:
        self.record |= {"status": status, "ended": _now()}
        self.record |= result or {}
        self._write(trainer)

    def _write(self, trainer: L.Trainer) -> None:
        if self.record["stage"] == "fit" and self._folder is not None:
            self.record["checkpoints"] = _checkpoints(trainer, self._folder)
            self.record["num_evaluations"] = len(self.record["validations"])
            for callback in undeclared(trainer).callbacks:
                recorded: Callable[[], RecordFields] = getattr(callback, "recorded", RecordFields)
                self.record |= recorded()  # fields of this callback
        self._write_json(trainer, RECORD, self.record, indent=2)

    def _write_json(self, trainer: L.Trainer, name: str, content: object, indent: int | None = None) -> None:
        if trainer.is_global_zero and self._folder is not None and not undeclared(trainer).fast_dev_run:
            with atomic_path(self._folder / name) as temporary:
                temporary.write_text(json.dumps(content, indent=indent, default=str) + "\n", encoding="utf-8")


def _early_stopping(trainer: L.Trainer) -> list[EarlyStopping]:
    return [callback for callback in undeclared(trainer).callbacks if isinstance(callback, EarlyStopping)]


def _shared(flags: FlagsRecord) -> str:
    stories, pairs = flags["stories_shared_with_validation"], flags["pairs_shared_with_validation"]
    return f"{stories} of their stories and {pairs} of their pairs of anchor and candidate are trained on"


def evaluation_record(evaluation: Evaluation, **at: int) -> EvaluationRecord:
    """Convert an evaluation to plain data; `at` is the epoch and step at which it was made."""
    return cast(EvaluationRecord, {**at, **evaluation.model_dump(exclude_unset=True)})


def _comparison_record(reference: str, comparison: Difference) -> dict[str, float | str | None]:
    """Convert the difference to a model before training to plain data."""
    fields = {"lost": comparison.lost, "won": comparison.won, "p": comparison.p, "test": comparison.test}
    record = {"reference": reference, "difference": comparison.value, **fields}
    return record if comparison.design_effect is None else record | {"design_effect": comparison.design_effect}


def _right(n: int, wrong: Iterable[int]) -> NDArray[np.bool_]:
    """Mark the right answers to n triples, (n,), from the positions of the wrong ones."""
    right = np.ones(n, dtype=np.bool_)
    right[[*wrong]] = False
    return right


def _verdict(comparison: Difference, shared: SharedStories | None) -> str:
    """Describe the difference that the triples could show, if a comparison is not significant; otherwise empty."""
    if comparison.p < LEVEL or comparison.lost is None or comparison.won is None:
        return ""
    n = comparison.n
    discordance = (comparison.lost + comparison.won) / n
    if comparison.design_effect is not None and shared is not None:
        needed = smallest_difference(n, discordance, LEVEL, comparison.design_effect, shared.degrees_of_freedom)
    elif comparison.test == "mcnemar":
        needed = smallest_difference(n, discordance, LEVEL)
    else:
        needed = math.inf
    if math.isinf(needed):
        return f": no difference is shown, and {n} such triples can't show any"
    return f": no difference is shown; about {needed:.3f} would be needed with {n} triples"


def _best(validations: list[EvaluationRecord], trainer: L.Trainer) -> EvaluationRecord | None:
    """Find the evaluation of the saved checkpoint: the best or, without one, the last.

    Returns:
        None if it was not evaluated. The most accurate evaluation, the first of equals, if nothing was saved.
    """
    known = _known(validations)
    saved = _saved(trainer)
    path = saved.get("best", saved.get("last"))
    if path is None:
        return max(known, key=_known_accuracy, default=None)
    step = read_checkpoint_settings(path)["global_step"]
    return next((validation for validation in reversed(known) if validation["step"] == step), None)


def _selected_by(trainer: L.Trainer) -> str:
    """Describe by what the saved checkpoint was selected."""
    saved = _saved(trainer)
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, ModelCheckpoint) and saved.get("best") == Path(callback.best_model_path):
            return f"{'highest' if callback.mode == 'max' else 'lowest'} {callback.monitor}"
    return "last" if saved else HIGHEST_ACCURACY


def _known(validations: Iterable[EvaluationRecord]) -> list[EvaluationRecord]:
    """Select the evaluations with an accuracy: without scores that are NaN."""
    return [validation for validation in validations if validation["accuracy"] is not None]


def _known_accuracy(evaluation: EvaluationRecord) -> float:
    return cast(float, evaluation["accuracy"])


def _saved(trainer: L.Trainer) -> dict[str, Path]:
    """Find the best checkpoint (its callback has a monitor) and the last one, those of narrlit's callbacks first."""
    paths: dict[str, Path] = {}
    callbacks = [callback for callback in trainer.checkpoint_callbacks if isinstance(callback, ModelCheckpoint)]
    for callback in sorted(callbacks, key=lambda callback: isinstance(callback, BestCheckpoint | LastCheckpoint)):
        if callback.best_model_path and Path(callback.best_model_path).exists():
            is_best = callback.monitor and not isinstance(callback, LastCheckpoint)
            paths["best" if is_best else "last"] = Path(callback.best_model_path)
    return paths


def _checkpoints(trainer: L.Trainer, folder: Path) -> dict[str, str]:
    """Return the paths of the best and the last checkpoint; a path inside the folder of the run is relative to it."""
    home = folder.resolve()
    paths: dict[str, str] = {}
    for name, path in _saved(trainer).items():
        resolved = path.resolve()
        paths[name] = str(resolved.relative_to(home) if resolved.is_relative_to(home) else resolved)
    return paths


def _flags(trainer: L.Trainer, objective: Objective) -> FlagsRecord:
    data = data_of(trainer)
    overlap = data.train_validation_overlap(anchors_only=objective.learns_anchors)
    # One shared pair of anchor and candidate is enough: its label has been seen.
    shared = overlap.shared_stories if objective.learns_anchors else overlap.shared_pairs
    return {
        "trained_on_validation": shared > 0,
        "stories_shared_with_validation": overlap.shared_stories,
        "pairs_shared_with_validation": overlap.shared_pairs,
        **data.flags(),
    }


def _command(trainer: L.Trainer, stage: str) -> dict[str, str | None]:
    """Return the command line of a run, and the checkpoint that it starts from."""
    checkpoint = str(trainer.ckpt_path) if trainer.ckpt_path else None
    line = shlex.join(["narrlit", *sys.argv[1:]])
    return {"line": line, "resumed_from" if stage == "fit" else "checkpoint": checkpoint}


def _trainer_settings(trainer: L.Trainer) -> dict[str, object]:
    settings: dict[str, object] = {}
    for name in TRAINER_SETTINGS:
        settings[name] = getattr(trainer, name)
    return settings | {"precision": str(trainer.precision), "strategy": type(trainer.strategy).__name__}


def _count(parameters: Iterable[Tensor]) -> int:
    """Count the numbers in the weights of a model."""
    return sum(parameter.numel() for parameter in parameters)


def _machine(trainer: L.Trainer) -> dict[str, str]:
    device = trainer.strategy.root_device
    processor = platform.processor() or platform.machine()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor
    return {"system": platform.system(), "device": device.type, "name": name}


def _versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which results depend."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        versions[name] = _version(name)
    return versions


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _git_revision() -> str | None:
    # The folder may not be trusted: rev-parse runs none of its hooks, filters or file-system monitors.
    command = ["git", "-c", "core.fsmonitor=false", "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
