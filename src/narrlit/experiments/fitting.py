"""`narrlit.fit`: train a system from a config; also runs single fits of experiments."""

import gc
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ProgressBar, TQDMProgressBar

from narrlit import lightning_cli
from narrlit.callbacks import DivergedError
from narrlit.configuration import Configs, FitSettings, read_configs
from narrlit.datamodules import StoryData
from narrlit.errors import NarrlitError, OptionError
from narrlit.experiments.run import Run

Config = dict[str, Any]
Prune = Callable[[int, float], bool]
"""Function of an epoch (from 0) and its validation accuracy; it returns True to end the fit."""

DECIDING = ("EarlyStopping", "TeacherPromotion")
"""Callbacks whose decisions depend on validation accuracy."""


def fit(config: Configs, settings: FitSettings | None = None, *, checkpoint: str | Path | None = None) -> Run:
    """Train a system, as `narrlit fit` does.

    Args:
        config: a config file or its content, a nested mapping; or several, of which later ones override earlier ones.
            Packaged configs are found by name, such as `configs/quickstart.yaml`.
        settings: settings that override the config, by name: `{"data.train": "train.jsonl"}`.
        checkpoint: checkpoint to resume from; None: a new fit.

    Returns:
        The `Run`: `.folder`, `.best`, `.table()`. `narrlit.load(run)` loads its best checkpoint.

    Raises:
        DataError: if a file can't be read.
        OptionError: if a setting is invalid.
        DivergedError: if the loss or the weights are no longer finite.
    """
    layers = read_configs(config, settings)
    if checkpoint is not None:
        layers.append({"ckpt_path": str(checkpoint)})
    folder = lightning_cli.run_lightning("fit", layers)
    if folder is None:
        raise NarrlitError("fit_without_folder")
    return Run.read(folder)


def parse_experiment_fit(layers: Sequence[FitSettings], purpose: str) -> tuple[Config, StoryData]:
    """Merge the settings of a fit, of which later ones override earlier ones, and add the defaults.

    Args:
        layers: configs and settings.
        purpose: the experiment with an article, for messages.

    Returns:
        The whole configuration, without the logger, and the datamodule.

    Raises:
        OptionError: if an option would prevent the evaluation of every validation triple after every epoch.
    """
    with quiet_fit():
        parsed = lightning_cli.parse_fit(layers)
    config = parsed.as_dict()
    for setting, is_used in _refused_settings(config).items():
        if is_used:
            raise OptionError("unusable_setting", option=setting, purpose=purpose)
    config["trainer"]["logger"] = None
    return config, parsed.datamodule


def _refused_settings(config: Config) -> dict[str, bool]:
    """List the settings that would prevent the evaluation and the choice of every epoch; True if one is used."""
    trainer = config["trainer"]
    whole = ("None", "1.0")  # the number 1 is one batch
    checkpoint = config["checkpoint"]
    return {
        "ckpt_path": bool(config["ckpt_path"]),
        "checkpoint.dirpath": bool(checkpoint["dirpath"]),
        "checkpoint.monitor": checkpoint["monitor"] != "validation/accuracy",
        "checkpoint.mode": checkpoint["mode"] != "max",
        "checkpoint.save_top_k": checkpoint["save_top_k"] == 0,
        "checkpoint.every_n_epochs": checkpoint["every_n_epochs"] not in (None, 1),
        "last_checkpoint.dirpath": bool(config["last_checkpoint"]["dirpath"]),
        "trainer.limit_val_batches": repr(trainer["limit_val_batches"]) not in whole,
        "trainer.val_check_interval": repr(trainer["val_check_interval"]) not in whole,
        "trainer.overfit_batches": bool(trainer["overfit_batches"]),
        "trainer.check_val_every_n_epoch": trainer["check_val_every_n_epoch"] != 1,
        "trainer.fast_dev_run": bool(trainer["fast_dev_run"]),
    }


def run_fit(folder: Path, config: Config, prune: Prune | None = None) -> Run:
    """Run one fit in an emptied directory: with one device in this process, otherwise in new processes.

    With `prune`, which may end the fit after an epoch, no checkpoints are written.

    Raises:
        NarrlitError: if a fit without `prune` does not finish.
    """
    shutil.rmtree(folder, ignore_errors=True)
    config = _config_in(folder, config)
    if prune is not None:
        config = _without_checkpoints(config)
    try:
        with quiet_fit():
            reason = _run(config, prune)
    finally:
        gc.collect()  # trainer and model refer to each other
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    run = Run.at(folder, reason)
    if prune is None and not run.finished:
        raise NarrlitError("fit_failed", name=folder.name, folder=folder.parent)
    return run


def _config_in(folder: Path, config: Config) -> Config:
    """Return the configuration with a logger that writes the run to a directory."""
    directory = {"save_dir": str(folder.parent), "name": folder.name, "version": ""}
    logger = {"class_path": "narrlit.callbacks.RunLogger", "init_args": directory}
    return {**config, "trainer": {**config["trainer"], "logger": logger, "enable_model_summary": False}}


def _without_checkpoints(config: Config) -> Config:
    """Return the configuration without checkpoints, and without an evaluation before training."""
    off = {"save_top_k": 0, "save_last": None, "save_on_exception": False}
    return {
        **config,
        "checkpoint": {**config["checkpoint"], **off},
        "last_checkpoint": {**config["last_checkpoint"], **off},
        "trainer": {**config["trainer"], "num_sanity_val_steps": 0},
    }


def _run(config: Config, prune: Prune | None) -> str | None:
    """Run the fit; return the reason if it ended early, else None."""
    stage = lightning_cli.StageCLI("fit", [config])
    trainer: Any = stage.trainer
    if trainer.world_size > 1:
        with tempfile.TemporaryDirectory() as temporary:
            file = Path(temporary) / "config.yaml"
            file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
            command = [sys.executable, "-m", "narrlit", "fit", "--config", str(file)]
            subprocess.run(command, stdout=sys.stderr.fileno(), check=False)  # noqa: S603
        return None
    if prune is not None:
        others = [callback for callback in trainer.callbacks if not isinstance(callback, ProgressBar)]
        trainer.callbacks = [Pruning(prune), TQDMProgressBar(leave=False), *others]
    try:
        trainer.fit(stage.model, datamodule=stage.datamodule)
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
    """Exception that ends a fit before its last epoch; the run record takes over its status."""

    def __init__(self, run_status: str, reason: str) -> None:
        super().__init__(reason)
        self.run_status = run_status


class Pruning(Callback):
    """Callback that ends a fit without an accuracy, or if `prune` returns True."""

    def __init__(self, prune: Prune) -> None:
        self.prune = prune

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Decide after the validation of the epoch."""
        accuracy, epoch = trainer.callback_metrics.get("validation/accuracy"), trainer.current_epoch
        if accuracy is None:  # max_steps or max_time ended the first epoch
            return
        if accuracy.isnan():
            raise FitEndedError("failed", f"no accuracy after epoch {epoch}: scores are NaN")
        if self.prune(epoch, float(accuracy)) and epoch + 1 != trainer.max_epochs:
            raise FitEndedError("pruned", f"after epoch {epoch}, below the median")


@contextmanager
def quiet_fit() -> Iterator[None]:
    """Redirect the progress of a fit to stderr, and suppress notices that every fit would repeat."""
    lightning_cli.silence()
    logging.disable(logging.INFO)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        logging.disable(logging.NOTSET)


def deciding_callbacks(config: Config) -> list[str]:
    """List callbacks whose decisions depend on validation accuracy, so that even the last epoch depends on it."""
    configured = config["trainer"]["callbacks"] or []
    callbacks = [configured] if isinstance(configured, dict) else configured
    deciding = []
    for callback in callbacks:
        name = str(callback["class_path"]).rpartition(".")[2]
        if name in DECIDING:
            deciding.append(name)
    return deciding
