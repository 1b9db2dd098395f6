"""Run one fit of an experiment, read its record, and keep the experiment's configuration so that it can be resumed.

This module alone connects experiments with the training command line.
"""

import gc
import json
import logging
import math
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

from narrlit.commands.lightning_cli import StageCLI
from narrlit.commands.training import quiet as quiet_training
from narrlit.commands.training import with_found_configs
from narrlit.errors import NarrlitError, OptionError, reading
from narrlit.experiments.report import EVALUATIONS, Entry, accuracy_summary
from narrlit.files import atomic_path, check_writable
from narrlit.models.source import RECORD

Config = dict[str, Any]
Prune = Callable[[int, float], bool]
"""Takes an epoch (from 0) and its validation accuracy; True ends the fit."""

FLAGS = ("trained_on_validation", "transductive", "mined_validation")
ANSWERS = "validation_answers.json"
TENSORBOARD = "lightning.pytorch.loggers.TensorBoardLogger"


@dataclass(frozen=True)
class ParsedFit:
    """A fit that was parsed and not run: the whole configuration, the datamodule, and the objective's flags."""

    config: Config
    data: Any
    flags: dict[str, Any]


@dataclass(frozen=True)
class RunResult:
    """What a run recorded; `record` is run.json, empty where there is none, `reason` why the fit ended early."""

    run: Path
    record: Entry
    reason: str | None = None

    @classmethod
    def read(cls, run: Path, reason: str | None = None) -> "RunResult":
        """Read a run's record; a missing or broken one is empty."""
        try:
            return cls(run, json.loads((run / RECORD).read_text(encoding="utf-8")), reason)
        except (FileNotFoundError, json.JSONDecodeError):
            return cls(run, {}, reason)

    @property
    def finished(self) -> bool:
        """True if the fit ran to its end."""
        return self.record.get("status") == "finished"

    @property
    def evaluations(self) -> list[Entry]:
        """Every evaluation of the validation triples: epoch, counts and accuracy."""
        found: list[Entry] = self.record.get("validations", [])
        return found

    @property
    def flags(self) -> list[str]:
        """Names of the contamination flags that are set."""
        flags: Entry = self.record.get("flags") or self.record.get("marks") or {}
        return [name for name in FLAGS if flags.get(name)]

    def accuracies(self) -> Entry:
        """Return `num_evaluations`, and the accuracy and epoch of `last_epoch` and `best_epoch`.

        Raises:
            OptionError: if the fit evaluated nothing.
        """
        evaluations = self.evaluations
        if not evaluations:
            raise OptionError(
                f"{self.run}: the fit evaluated no validation triples; let it train at least one whole epoch "
                "(trainer.max_epochs, max_steps) and choose another --out"
            )
        # If every accuracy is NaN there is no best epoch either.
        chosen = {"last_epoch": evaluations[-1], "best_epoch": self.record.get("best") or evaluations[-1]}
        summaries = {name: {"epoch": e["epoch"], **accuracy_summary([e]).as_dict()} for name, e in chosen.items()}
        return {"num_evaluations": len(evaluations), **summaries}

    def answers(self) -> Entry:
        """Read the recorded answers.

        Raises:
            DataError: if the file is missing or broken.
        """
        path = self.run / ANSWERS
        with reading("answers", path, f"remove {self.run} to repeat the fit"):
            found: Entry = json.loads(path.read_text(encoding="utf-8"))
        return found

    def wrong(self) -> dict[str, list[int] | None]:
        """Return indices of wrong answers in `last_epoch` and `best_epoch`; None where scores were NaN."""
        answers = self.answers()
        evaluations: list[Entry] = answers.get("evaluations") or answers.get("looks") or []
        by_epoch = {e["epoch"]: e["wrong"] for e in evaluations}
        accuracies = self.accuracies()
        return {name: by_epoch[accuracies[name]["epoch"]] for name in EVALUATIONS}


def parse_fit(arguments: Sequence[str], purpose: str) -> ParsedFit:
    """Parse options of `narrlit fit` without training; `purpose` names the experiment, with its article.

    Raises:
        OptionError: for an option that would evaluate less than every validation triple after every epoch.
    """
    with quiet():
        cli = _ready(with_found_configs(arguments), trainer=False)
    text = cli.parser.dump(cli.config, skip_none=False, skip_link_targets=False, format="yaml")
    config: Config = yaml.safe_load(text)["fit"]
    trainer = config["trainer"]
    refused = {
        "--ckpt_path": config["ckpt_path"],
        "--checkpoint.dirpath": config["checkpoint"]["dirpath"],
        "--last_checkpoint.dirpath": config["last_checkpoint"]["dirpath"],
        "--trainer.limit_val_batches": repr(trainer["limit_val_batches"]) not in ("None", "1.0"),  # 1 is one batch
        "--trainer.val_check_interval": repr(trainer["val_check_interval"]) not in ("None", "1.0"),
        "--trainer.overfit_batches": trainer["overfit_batches"],
        "--trainer.check_val_every_n_epoch": trainer["check_val_every_n_epoch"] != 1,
        "--trainer.fast_dev_run": trainer["fast_dev_run"],
    }
    for option, given in refused.items():
        if given:
            rule = "every fit starts anew, has its own checkpoints and evaluates all triples after every epoch"
            raise OptionError(f"{option} cannot be used in {purpose}: {rule}; leave it out")
    trainer["logger"] = {"class_path": TENSORBOARD, "init_args": {"default_hp_metric": False}}
    return ParsedFit(config, cli.datamodule, cli.model.marks())


def run_fit(run: Path, config: Config, prune: Prune | None = None) -> RunResult:
    """Run one fit; on one device in this process, else in processes of its own.

    Args:
        run: the run's directory; what it holds is removed.
        config: whole configuration of the fit, as `parse_fit` returns it.
        prune: decides after each epoch whether to end the fit; such a fit writes no checkpoints.

    Returns:
        The run's record. Without `prune` the fit has finished.

    Raises:
        NarrlitError: if the fit fails.
    """
    shutil.rmtree(run, ignore_errors=True)
    place = {"save_dir": str(run.parent), "name": run.name, "version": "", "default_hp_metric": False}
    logger = {"class_path": TENSORBOARD, "init_args": place}
    config = {**config, "trainer": {**config["trainer"], "logger": logger, "enable_model_summary": False}}
    if prune is not None:
        off = {"save_top_k": 0, "save_last": None, "save_on_exception": False}
        config |= {name: {**config[name], **off} for name in ("checkpoint", "last_checkpoint")}
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
    cli = _ready(arguments)
    trainer: Any = cli.trainer
    if trainer.world_size > 1:
        command = [sys.executable, "-m", "narrlit", "fit", *arguments]
        subprocess.run(command, stdout=sys.stderr.fileno(), check=False)  # noqa: S603
        return None
    if prune is not None:
        others = [callback for callback in trainer.callbacks if not isinstance(callback, ProgressBar)]
        trainer.callbacks = [Pruning(prune), TQDMProgressBar(leave=False), *others]
    try:
        trainer.fit(cli.model, datamodule=cli.datamodule)
    except FitEndedError as error:
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
        self.accuracy: float | None = None

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the accuracy."""
        if not trainer.sanity_checking:
            self.accuracy = float(trainer.callback_metrics["validation/accuracy"])

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Decide after the epoch's validation, which a time limit may have prevented."""
        accuracy, self.accuracy = self.accuracy, None
        epoch = trainer.current_epoch
        if accuracy is None:
            return
        if math.isnan(accuracy):
            raise FitEndedError("failed", f"no accuracy after epoch {epoch}: scores are NaN")
        if self.prune(epoch, accuracy) and epoch + 1 != trainer.max_epochs:
            raise FitEndedError("pruned", f"after epoch {epoch}, below the median")


def _ready(arguments: Sequence[str], trainer: bool = True) -> StageCLI:
    """Instantiate model and data, and the trainer if asked for; run nothing."""

    class ReadyFit(StageCLI):
        def instantiate_trainer(self, **kwargs: Any) -> Any:
            return super().instantiate_trainer(**kwargs) if trainer else None

        def _run_subcommand(self, subcommand: str) -> None:
            return

    argv, sys.argv = sys.argv, [sys.argv[0], "fit", *arguments]
    try:
        return ReadyFit.run("fit")
    finally:
        sys.argv = argv


@contextmanager
def quiet() -> Iterator[None]:
    """Send a fit's progress to stderr and leave out Lightning's notices, which repeat with every fit."""
    quiet_training()
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def deciding_callbacks(config: Config) -> list[str]:
    """Names of callbacks that decide by validation accuracy, so that even the last epoch depends on it."""
    names = [str(entry["class_path"]).rpartition(".")[2] for entry in config["trainer"]["callbacks"] or []]
    return [name for name in names if name in ("EarlyStopping", "TeacherPromotion")]


def keep_plan(plan: Path, content: Config, folder: Path | None = None) -> None:
    """Write an experiment's configuration, or check that the file already holds the same.

    Args:
        plan: YAML file.
        content: its content.
        folder: must be new or empty where there is no plan yet; None: the plan's own folder.

    Raises:
        OptionError: if the file holds another configuration.
    """
    text = yaml.safe_dump(content, sort_keys=False)
    if not plan.is_file():
        check_writable(folder or plan.parent, folder=True)
        with atomic_path(plan) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return
    changes = config_changes(yaml.safe_load(plan.read_text(encoding="utf-8")), yaml.safe_load(text))
    if changes:
        raise OptionError(f"{plan} has another configuration ({changes[0]}): choose another --out or remove {plan}")


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
