"""Fits of one command, each in a process and a directory of its own, that are not made twice."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from narrlit.errors import NarrlitError, OptionError
from narrlit.files import atomic_path, check_writable
from narrlit.models.source import RECORD

LOGGER = {"class_path": "lightning.pytorch.loggers.TensorBoardLogger", "init_args": {"default_hp_metric": False}}
"""What a plan's `trainer.logger` must be, so that `fit_apart` can say where the run goes."""

STDERR = 2


def fit_apart(run: Path, config: Path, options: Sequence[str] = ()) -> None:
    """Run one fit in a process of its own, which gives back all its memory; what `run` held is gone.

    Args:
        run: the run's directory.
        config: its whole configuration, with LOGGER.
        options: further options of `narrlit fit`.

    Raises:
        NarrlitError: if it fails; what it said stands above.
    """
    shutil.rmtree(run, ignore_errors=True)  # what an interrupted fit left
    logger = "--trainer.logger.init_args"
    place = [f"{logger}.save_dir", str(run.parent), f"{logger}.name", run.name, f"{logger}.version", ""]
    command = [sys.executable, "-m", "narrlit", "fit", "--config", str(config), *options, *place]
    # Progress bars go to stdout, which is for results here.
    done = subprocess.run(command, stdout=STDERR, check=False)  # noqa: S603
    if done.returncode or read_record(run).get("status") != "finished":
        raise NarrlitError(
            f"{run.name.replace('_', ' ')} failed (exit code {done.returncode}), see above; {run.parent} keeps what is "
            "finished, and the same command goes on there"
        )


def refuse_partial(config: dict[str, Any], work: str) -> None:
    """Refuse what would keep a fit of `work` from being whole, its triples judged after every epoch.

    Raises:
        OptionError: naming the option.
    """
    trainer = config["trainer"]
    refused = {
        "--ckpt_path": (config["ckpt_path"], "every fit begins anew"),
        "--checkpoint.dirpath": (config["checkpoint"]["dirpath"], "each fit keeps its own checkpoints"),
        "--last_checkpoint.dirpath": (config["last_checkpoint"]["dirpath"], "each fit keeps its own checkpoints"),
        "--trainer.limit_val_batches": (_is_part(trainer["limit_val_batches"]), "every row is judged"),
        "--trainer.overfit_batches": (trainer["overfit_batches"], "every row is judged"),
        "--trainer.val_check_interval": (_is_part(trainer["val_check_interval"]), "each epoch is judged at its end"),
        "--trainer.check_val_every_n_epoch": (trainer["check_val_every_n_epoch"] != 1, "every epoch is judged"),
        "--trainer.fast_dev_run": (trainer["fast_dev_run"], "it leaves no record"),
    }
    for option, (given, reason) in refused.items():
        if given:
            raise OptionError(f"{option} has no place in {work}: {reason}; leave it out")


def _is_part(batches: float | None) -> bool:
    """Whether a number of batches is not the whole epoch: a whole number counts them, 1.0 is all of them."""
    return batches is not None and (isinstance(batches, int) or batches != 1)


def read_record(run: Path) -> dict[str, Any]:
    """A run's record, empty where there is none or it is broken."""
    try:
        found: dict[str, Any] = json.loads((run / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return found


def keep_plan(plan: Path, config: dict[str, Any], home: Path | None = None) -> bool:
    """Write a command's configuration where there is none yet; whether it was there.

    Args:
        plan: the file.
        config: its content.
        home: the folder that must be new where there is no plan yet; None: the file's own.

    Raises:
        OptionError: if another one is there.
    """
    text = yaml.safe_dump(config, sort_keys=False)
    if not plan.is_file():
        check_writable(home or plan.parent, folder=True)
        with atomic_path(plan) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return False
    kept = plan.read_text(encoding="utf-8")
    if kept != text:
        raise OptionError(f"{plan} is of {_difference(yaml.safe_load(kept), config)}: name another --out or remove it")
    return True


def _difference(kept: Any, config: Any, name: str = "") -> str:
    """Where two configurations first differ, in words."""
    if isinstance(kept, dict) and isinstance(config, dict):
        for key in [*kept, *config]:
            if kept.get(key) != config.get(key):
                return _difference(kept.get(key), config.get(key), f"{name}.{key}" if name else str(key))
    return f"another config ({name or 'whole'}: {kept} there, {config} here)"
