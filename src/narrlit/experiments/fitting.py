"""Run one fit of an experiment, read its record, and keep the experiment's configuration so that it can be resumed."""

import gc
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ProgressBar, TQDMProgressBar

from narrlit import lightning_cli
from narrlit.callbacks import DivergedError
from narrlit.callbacks.triple_answers import ANSWERS
from narrlit.datamodules import StoryData
from narrlit.errors import ModelError, NarrlitError, OptionError, reading
from narrlit.experiments.report import EVALUATIONS, Entry, pooled
from narrlit.files import check_writable, write_text
from narrlit.models.config import allow_remote_code
from narrlit.models.registry import RECORD, read_record

Config = dict[str, Any]
Prune = Callable[[int, float], bool]
"""Takes an epoch (from 0) and its validation accuracy; True ends the fit."""

FLAGS = ("trained_on_validation", "transductive", "mined_validation")
EVERY_TRIPLE = "every fit starts from the beginning, has its own checkpoints and evaluates all triples after each epoch"


@dataclass(frozen=True)
class RunResult:
    """Record of a finished run."""

    run: Path
    record: Entry
    """run.json; empty where there is none."""
    reason: str | None = None
    """Why the fit ended early."""

    @classmethod
    def read(cls, run: Path, reason: str | None = None) -> "RunResult":
        """Read a run's record; a missing or broken one is empty, so that the run is repeated."""
        try:
            return cls(run, read_record(run / RECORD), reason)
        except ModelError:
            return cls(run, {}, reason)

    @property
    def finished(self) -> bool:
        """True if the fit ran to its end."""
        return self.record.get("status") == "finished"

    @property
    def evaluations(self) -> list[Entry]:
        """Every evaluation of the validation triples: epoch, counts and accuracy."""
        evaluations: list[Entry] = self.record.get("validations", [])
        return evaluations

    def summary(self) -> Entry:
        """Return accuracy and epoch of last_epoch and best_epoch, num_evaluations, wrong answers (None: NaN), flags.

        `reference` is the accuracy of the frozen encoder, or of the model before training where that has no new head;
        None where the fit did not evaluate it.
        """
        if not self.evaluations:
            remedy = "let it train at least one whole epoch (trainer.max_epochs, max_steps) and choose another --out"
            raise OptionError(f"{self.run}: the fit evaluated no validation triples; {remedy}")
        last = self.evaluations[-1]
        chosen = dict(zip(EVALUATIONS, (last, self.record.get("best") or last), strict=True))  # no best if all are NaN
        answers, reference = self.answers(), "frozen" if "frozen" in self.record else "untrained"
        wrong = {answer["epoch"]: answer["wrong"] for answer in answers["evaluations"]}
        counts = pooled([chosen])
        return {
            "num_evaluations": len(self.evaluations),
            **{name: {"epoch": one["epoch"], **counts[name]} for name, one in chosen.items()},
            "reference": self.record.get(reference),
            "wrong": {"reference": answers.get(reference), **{k: wrong[one["epoch"]] for k, one in chosen.items()}},
            "flags": [name for name in FLAGS if self.record["flags"].get(name)],
        }

    def answers(self) -> Entry:
        """Read the recorded answers: the triples' digest, and wrong answers by evaluation."""
        path = self.run / ANSWERS
        with reading("answers", path, f"remove {self.run} to repeat the fit"):
            answers: Entry = json.loads(path.read_text(encoding="utf-8"))
            return answers


def parse_fit(arguments: Sequence[str], purpose: str) -> tuple[Config, StoryData]:
    """Parse options of `narrlit fit` without training; messages name `purpose`, the experiment with its article.

    Returns:
        The whole configuration, without the logger, and the datamodule.

    Raises:
        OptionError: for an option that would evaluate less than every validation triple after every epoch.
    """
    if "--trust-remote-code" in arguments:  # typed: no config can give this consent
        allow_remote_code()
    with quiet():
        parsed = lightning_cli.parse_fit(arguments)
    config = parsed.as_dict()
    trainer = config["trainer"]
    whole = ("None", "1.0")  # the number 1 is one batch
    refused = {
        "--ckpt_path": config["ckpt_path"],
        "--checkpoint.dirpath": config["checkpoint"]["dirpath"],
        "--last_checkpoint.dirpath": config["last_checkpoint"]["dirpath"],
        "--trainer.limit_val_batches": repr(trainer["limit_val_batches"]) not in whole,
        "--trainer.val_check_interval": repr(trainer["val_check_interval"]) not in whole,
        "--trainer.overfit_batches": trainer["overfit_batches"],
        "--trainer.check_val_every_n_epoch": trainer["check_val_every_n_epoch"] != 1,
        "--trainer.fast_dev_run": trainer["fast_dev_run"],
    }
    for option, used in refused.items():
        if used:
            raise OptionError(f"{option} cannot be used in {purpose}: {EVERY_TRIPLE}; leave it out")
    trainer["logger"] = None
    return config, parsed.datamodule


def run_fit(run: Path, config: Config, prune: Prune | None = None) -> RunResult:
    """Run one fit in an emptied directory; on one device in this process, else in processes of its own.

    A fit that `prune` may end after an epoch writes no checkpoints.
    """
    shutil.rmtree(run, ignore_errors=True)
    place = {"save_dir": str(run.parent), "name": run.name, "version": ""}
    logger = {"class_path": "narrlit.callbacks.RunLogger", "init_args": place}
    config = {**config, "trainer": {**config["trainer"], "logger": logger, "enable_model_summary": False}}
    if prune is not None:
        off = {"save_top_k": 0, "save_last": None, "save_on_exception": False}
        config |= {name: {**config[name], **off} for name in ("checkpoint", "last_checkpoint")}
        config["trainer"]["num_sanity_val_steps"] = 0  # nobody compares a trial with the untrained model
    try:
        with tempfile.TemporaryDirectory() as folder, quiet():
            file = Path(folder) / "config.yaml"
            file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
            reason = _run(["--config", str(file)], prune)
    finally:
        gc.collect()  # trainer and model refer to each other
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    result = RunResult.read(run, reason)
    if prune is None and not result.finished:
        raise NarrlitError(
            f"{run.name} failed, see above; {run.parent} keeps what is finished, repeat the command to resume"
        )
    return result


def _run(arguments: list[str], prune: Prune | None) -> str | None:
    """Run the fit; return why it ended early."""
    fit = lightning_cli.StageCLI("fit", arguments)
    trainer: Any = fit.trainer
    if trainer.world_size > 1:
        command = [sys.executable, "-m", "narrlit", "fit", *arguments]
        subprocess.run(command, stdout=sys.stderr.fileno(), check=False)  # noqa: S603
        return None
    if prune is not None:
        others = [callback for callback in trainer.callbacks if not isinstance(callback, ProgressBar)]
        trainer.callbacks = [Pruning(prune), TQDMProgressBar(leave=False), *others]
    try:
        trainer.fit(fit.model, datamodule=fit.datamodule)
    except FitEndedError as error:
        return str(error)
    except DivergedError as error:
        if prune is None:
            raise
        return str(error)
    except torch.OutOfMemoryError as error:
        if prune is None:
            raise
        return f"out of memory: {str(error).partition('. ')[0]}"
    return None


class FitEndedError(Exception):
    """End a fit before its last epoch; the run record takes over the status."""

    def __init__(self, run_status: str, reason: str) -> None:
        super().__init__(reason)
        self.run_status = run_status


class Pruning(Callback):
    """End a fit that has no accuracy, or that `prune` ends."""

    def __init__(self, prune: Prune) -> None:
        self.prune = prune

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Decide after the epoch's validation."""
        accuracy, epoch = trainer.callback_metrics.get("validation/accuracy"), trainer.current_epoch
        if accuracy is None:  # max_steps or max_time ended the first epoch
            return
        if accuracy.isnan():
            raise FitEndedError("failed", f"no accuracy after epoch {epoch}: scores are NaN")
        if self.prune(epoch, float(accuracy)) and epoch + 1 != trainer.max_epochs:
            raise FitEndedError("pruned", f"after epoch {epoch}, below the median")


@contextmanager
def quiet() -> Iterator[None]:
    """Send a fit's progress to stderr and leave out notices, which repeat with every fit."""
    lightning_cli.silence()
    logging.disable(logging.INFO)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        logging.disable(logging.NOTSET)


def deciding_callbacks(config: Config) -> list[str]:
    """Names of callbacks that decide by validation accuracy, so that even the last epoch depends on it."""
    callbacks = config["trainer"]["callbacks"] or []
    several = [callbacks] if isinstance(callbacks, dict) else callbacks
    names = [str(entry["class_path"]).rpartition(".")[2] for entry in several]
    return [name for name in names if name in ("EarlyStopping", "TeacherPromotion")]


def keep_plan(plan: Path, content: Config, folder: Path, option: str = "--out") -> None:
    """Write an experiment's configuration to a YAML file, or check that it already holds the same.

    The folder, which `option` names, must be new.
    """
    text = yaml.safe_dump(content, sort_keys=False)
    if not plan.is_file():
        check_writable(folder, folder=True)
        write_text(plan, text)
        return
    changes = config_changes(yaml.safe_load(plan.read_text(encoding="utf-8")), yaml.safe_load(text))
    if changes:
        raise OptionError(f"{plan} has another configuration ({changes[0]}): choose another {option} or remove {plan}")


def config_changes(before: Any, after: Any, name: str = "") -> list[str]:
    """List the options in which two configurations differ.

    >>> config_changes({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}})
    ['b.c: 2 -> 3']
    """
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        parts = (config_changes(before.get(key), after.get(key), f"{name}.{key}" if name else str(key)) for key in keys)
        return [change for part in parts for change in part]
    return [] if before == after else [f"{name}: {before} -> {after}"]
