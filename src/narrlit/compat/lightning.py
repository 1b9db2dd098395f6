"""Private names of Lightning, checked with 2.6."""

import inspect
import operator
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Protocol, cast, get_args

import lightning as L
from lightning.pytorch.callbacks import Callback, ModelCheckpoint


class UndeclaredAttributes(Protocol):
    """Public attributes that a trainer has without a declaration.

    Attributes:
        callbacks: in the order in which they run.
        datamodule: of the stage that runs.
        fast_dev_run: number of batches of a trial run, or whether this is one.
        limit_val_batches: number or share of validation batches.
        log_every_n_steps: interval of logged values.
    """

    callbacks: list[Callback]
    datamodule: Any
    fast_dev_run: bool | int
    limit_val_batches: float
    log_every_n_steps: int


def undeclared(trainer: L.Trainer) -> UndeclaredAttributes:
    """Return a trainer by the attributes that type checkers do not see; a declaration of Lightning's replaces each."""
    return cast(UndeclaredAttributes, trainer)


def uses_distributed_sampler(trainer: L.Trainer) -> bool:
    """Return the trainer's option `use_distributed_sampler`, which has no public attribute."""
    return bool(trainer._accelerator_connector.use_distributed_sampler)


def save_after_epochs(callback: ModelCheckpoint) -> None:
    """Make a callback save after every epoch, also with `every_n_train_steps`.

    ModelCheckpoint's arguments `every_n_epochs` and `every_n_train_steps` exclude each other; if they could be given
    together, that would replace this.
    """
    callback._every_n_epochs = 1


def read_whole_numbers_as_such(function: Callable[..., Any]) -> None:
    """Put int, then float, first in a function's annotations, so that a command line's `1` is one batch, not all.

    `typing` may return the same object for `Union[int, float]` and `Union[float, int]`. If another package requests
    the second first, jsonargparse reads `limit_val_batches: 1` as 1.0. It reads every value as the first type that
    accepts it: `val_check_interval: 0.5` would be a string if str came before float. Annotations of the form
    `int | float | str` in Lightning would replace this.
    """
    annotations = inspect.unwrap(function).__annotations__
    for name, annotation in annotations.items():
        members = get_args(annotation)
        if int in members and float in members:
            others = [member for member in members if member not in (int, float)]
            annotations[name] = reduce(operator.or_, [int, float, *others])


class ReplacingCheckpoint(ModelCheckpoint):
    """ModelCheckpoint that never leaves half a checkpoint: a sharded one, a folder, is written beside its target first.

    Strategies for sharded weights overwrite a folder in place, and do not use the trainer's `CheckpointIO`; a public
    method that saves, or a strategy that uses it, would replace this.
    """

    def _save_checkpoint(self, trainer: L.Trainer, filepath: str) -> None:
        target = Path(filepath)
        beside = target.with_suffix(".new")
        replaces = trainer.strategy.broadcast(target.is_dir())
        super()._save_checkpoint(trainer, str(beside) if replaces else filepath)
        if replaces and trainer.is_global_zero:
            shutil.rmtree(target)
            beside.rename(target)
        trainer.strategy.barrier()
        self._last_checkpoint_saved = filepath
