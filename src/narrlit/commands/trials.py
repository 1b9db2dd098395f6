"""One trial of a search: a whole fit in this process, which is asked after every epoch whether it is worth going on."""

import gc
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import lightning as L
import torch
import yaml
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, TQDMProgressBar

from narrlit.commands.lightning_cli import StageCLI
from narrlit.commands.training import quiet
from narrlit.errors import OptionError

Status = Literal["finished", "pruned", "failed"]
Prune = Callable[[int, float], bool]
"""Is told an epoch, counted from 0, and its accuracy, and says whether to end the fit."""

# Trials are not gone on from, and nothing is made of their weights: a search would fill the disk with them.
NO_CHECKPOINTS = {"save_top_k": 0, "save_last": None, "save_on_exception": False}


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes:
        status: `pruned`: unlikely to become the best; `failed`: no accuracy, or no memory for it.
        looks: at the judged rows, as the run's record has its validations.
        reason: why it did not finish.
    """

    status: Status
    looks: list[dict[str, Any]]
    reason: str | None = None


class TrialEndedError(Exception):
    """Ends a fit before its last epoch; the run's record takes over the status."""

    def __init__(self, run_status: Status, reason: str) -> None:
        super().__init__(reason)
        self.run_status: Status = run_status


class Watch(Callback):
    """Tells each epoch's accuracy, and ends the fit where `prune` says so or there is no accuracy."""

    def __init__(self, about: dict[str, Any], prune: Prune) -> None:
        """Args are those of `run_trial`."""
        self.about = about
        self.prune = prune
        self.looks: list[dict[str, Any]] = []

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Note the look."""
        if not trainer.sanity_checking:
            found: Any = pl_module.summaries["validation"]  # type: ignore[index]
            self.looks.append({"epoch": trainer.current_epoch, **found.as_dict()})

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Decide; the look before it has been recorded.

        Raises:
            TrialEndedError: if the fit is to end here.
        """
        epoch = trainer.current_epoch
        if not self.looks or self.looks[-1]["epoch"] != epoch:
            return  # trainer.max_time ended the epoch before its validation
        look = self.looks[-1]
        if look["accuracy"] is None:
            raise TrialEndedError("failed", f"no accuracy after epoch {epoch}: scores are NaN")
        # A fit that has come to its end costs nothing more.
        if self.prune(epoch, look["accuracy"]) and epoch + 1 != trainer.max_epochs:
            raise TrialEndedError("pruned", f"after epoch {epoch}, below the median")

    def recorded(self) -> dict[str, Any]:
        """What the run's record says of the trial."""
        return {"trial": self.about}


class PassingBar(TQDMProgressBar):
    """Leaves nothing behind, also where the fit is ended: bars would fill the screen over many trials."""

    def __init__(self) -> None:
        super().__init__(leave=False)

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Take the bar away."""
        with suppress(TypeError):  # there is none yet
            self.train_progress_bar.close()


class ReadyFit(StageCLI):
    """A fit with all its parts, which waits for `start`."""

    def _run_subcommand(self, subcommand: str) -> None:
        return

    def start(self, watch: Watch) -> None:
        """Run it."""
        callbacks: list[Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        others = [PassingBar() if isinstance(one, TQDMProgressBar) else one for one in callbacks]
        self.trainer.callbacks = [watch, *others]  # type: ignore[attr-defined]
        super()._run_subcommand(self.stage)


def run_trial(run: Path, config: dict[str, Any], about: dict[str, Any], prune: Prune) -> Outcome:
    """Run a fit in this process, without checkpoints, and give back its memory; what `run` held is gone.

    A process of its own would import for ten seconds, longer than many a fit takes.

    Args:
        run: the run's directory.
        config: the fit's whole configuration, with `fits.LOGGER`.
        about: what the run's record says of the trial.
        prune: is told each epoch's accuracy, and says whether to end the fit.

    Raises:
        NarrlitError: if the fit cannot be made as configured, or judges nothing.
        KeyboardInterrupt: if the user ended it.
    """
    shutil.rmtree(run, ignore_errors=True)
    logger = config["trainer"]["logger"]
    place = {"save_dir": str(run.parent), "name": run.name, "version": ""}
    own = {
        **config,
        "trainer": {
            **config["trainer"],
            "logger": {**logger, "init_args": {**logger["init_args"], **place}},
            "enable_model_summary": False,
        },
        "checkpoint": {**config["checkpoint"], **NO_CHECKPOINTS},
        "last_checkpoint": {**config["last_checkpoint"], **NO_CHECKPOINTS},
    }
    try:
        outcome = _fit(own, about, prune)
    finally:
        gc.collect()  # trainer and model point at each other
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    if outcome.status == "finished" and not outcome.looks:
        raise OptionError(
            f"{run}: the fit judged nothing; let it train a whole epoch at least (trainer.max_epochs, max_steps)"
        )
    return outcome


def _fit(config: dict[str, Any], about: dict[str, Any], prune: Prune) -> Outcome:
    # The trainer ties a callback to the model: it must not outlive this function.
    watch = Watch(about, prune)
    with tempfile.TemporaryDirectory() as folder, hushed():
        file = Path(folder) / "config.yaml"
        file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        cli = _ready(file)
        try:
            cli.start(watch)
        except TrialEndedError as ended:
            return Outcome(ended.run_status, watch.looks, str(ended))
        except torch.OutOfMemoryError as error:
            return Outcome("failed", watch.looks, f"out of memory: {str(error).partition('. ')[0]}")
        except MisconfigurationException as error:
            raise OptionError(str(error)) from error
        except SystemExit as error:
            # What the trainer makes of Ctrl-C.
            if cli.trainer.interrupted:
                raise KeyboardInterrupt from error
            raise
    return Outcome("finished", watch.looks)


def _ready(file: Path) -> ReadyFit:
    given = sys.argv
    sys.argv = [given[0], "fit", "--config", str(file)]
    try:
        return ReadyFit.run("fit")
    except MisconfigurationException as error:
        raise OptionError(str(error)) from error
    finally:
        sys.argv = given


@contextmanager
def hushed() -> Iterator[None]:
    """Fits say only what must be heard, on stderr; their notices, of every trial the same, stay out."""
    quiet()
    levels = {name: logging.getLogger(name).level for name in ("lightning.pytorch", "lightning.fabric")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
