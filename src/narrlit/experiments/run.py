"""`narrlit.fit`: train from a config; a run, with its record."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.errors import NarrlitError, OptionError
from narrlit.metrics.significance import AccuracySummary
from narrlit.models.registry import RECORD, find_record, read_record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A fit's directory, and its record; a path, so that `narrlit.load(run)` loads its best checkpoint.

    Attributes:
        folder: the directory.
        record: contents of its run.json.
    """

    folder: Path
    record: Mapping[str, Any]

    @classmethod
    def read(cls, folder: str | Path) -> "Run":
        """Read a run's record; of a folder of versions the newest.

        Raises:
            ModelError: if there is none, or it is broken.
        """
        path = find_record(str(folder))
        if path is None:
            raise OptionError(f"{folder} is no run: it has no {RECORD}")
        return cls(path.parent, read_record(path))

    @property
    def status(self) -> str:
        """How the fit ended: finished, interrupted, failed, diverged."""
        return str(self.record["status"])

    @property
    def best(self) -> AccuracySummary | None:
        """Best validation accuracy, which is too high, being the best of several; None without one."""
        entry = self.record.get("best")
        return None if entry is None else AccuracySummary(entry["n"], entry["correct"], entry.get("ties", 0))

    def table(self) -> "pd.DataFrame":
        """Tabulate the evaluations on the validation triples: epoch, step, n, correct, accuracy, low, high."""
        import pandas as pd

        rows = []
        for entry in self.record.get("validations", []):
            low, high = entry["interval"] or (None, None)
            figures = {name: entry.get(name) for name in ("epoch", "step", "n", "correct", "accuracy")}
            rows.append({**figures, "low": low, "high": high})
        return pd.DataFrame(rows)

    def __fspath__(self) -> str:
        return str(self.folder)

    def __str__(self) -> str:
        """One line: directory, status and best accuracy."""
        best = "no accuracy" if self.best is None else f"best validation accuracy {self.best}"
        return f"{self.folder}: {self.status}, {best}"


def fit(
    config: str | Path | Sequence[str | Path],
    options: Mapping[str, Any] | None = None,
    *,
    checkpoint: str | None = None,
) -> Run:
    """Train a system, as `narrlit fit` does.

    Args:
        config: a config, or several, of which later ones override what they name; those that come with narrlit are
            found by their names, such as `configs/quickstart.yaml`.
        options: settings that override the config, by their names: `{"data.train": "train.jsonl"}`.
        checkpoint: to continue from; None: a new fit.

    Returns:
        The `Run`: `.folder`, `.best`, `.table()`. `narrlit.load(run)` loads its best checkpoint.

    Raises:
        DataError: if a file can't be read.
        OptionError: for a setting that is wrong.
        DivergedError: if the loss or the weights are no longer finite.
    """
    from narrlit.lightning_cli import run

    configs = [config] if isinstance(config, str | Path) else list(config)
    arguments = [word for path in configs for word in ("--config", str(path))]
    for name, value in (options or {}).items():
        arguments += [f"--{name}", _as_word(value)]
    if checkpoint is not None:
        arguments += ["--ckpt_path", checkpoint]
    folder = run("fit", arguments)
    if folder is None:
        raise NarrlitError("the fit has no directory: `trainer.logger` is off")
    return Run.read(folder)


def _as_word(value: Any) -> str:
    """Write a setting's value as the command line has it."""
    if isinstance(value, str):
        return value
    return os.fspath(value) if isinstance(value, os.PathLike) else json.dumps(value)
