"""Display of a run: progress bar, and TensorBoard's curves and embedding projector."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning_utilities.core.rank_zero import rank_zero_only
from torch import Tensor

from narrlit.compat.lightning import undeclared
from narrlit.data.schema import Triples
from narrlit.datamodules.story_data import data_of

RUNS, VERSION = "runs", "version_"
"""Default folder of runs, and the beginning of each run's folder name."""
STEPS_PER_CURVE = 20
LABEL_CHARACTERS = 80
POINT_COLUMNS = ["story", "role", "triple", "answer"]


def _interval_chart(stage: str) -> dict[str, list[Any]]:
    """Define a chart of a stage's accuracy and its confidence interval, in TensorBoard's layout."""
    return {"accuracy": ["Margin", [f"{stage}/accuracy", f"{stage}/accuracy_low", f"{stage}/accuracy_high"]]}


INTERVAL_CHARTS = {"validation": _interval_chart("validation"), "test": _interval_chart("test")}


class RunLogger(TensorBoardLogger):
    """TensorBoardLogger without the chart `epoch`, and with accuracy and its confidence interval in one chart.

    TensorBoard shows this chart in the tab Custom Scalars.
    """

    def __init__(self, save_dir: str | None = None, name: str | None = "run", version: int | str | None = None) -> None:
        """Set the folder of a run: `save_dir/name/version`.

        Args:
            save_dir: folder of all runs; None: trainer.default_root_dir or, if that is not set, `runs`.
            name: name of the config or experiment.
            version: version of the run; None: the next free version_N.
        """
        super().__init__(save_dir or RUNS, name, version, default_hp_metric=False)
        self._given_version, self._has_layout = version, False
        self._new_folder: Path | None = None
        if version is not None and not Path(self.log_dir).exists():
            self._new_folder = Path(self.log_dir)

    @property
    def version(self) -> int | str:
        """Version of the run; in the first process, reading it creates the folder of a new run.

        Other processes can only estimate the version; `trainer.log_dir` gives them the folder of the first process.
        """
        if self._given_version is not None:
            return self._given_version
        if getattr(rank_zero_only, "rank", 0):
            return super().version
        if self._new_folder is None:
            self._new_folder = claim_version(Path(os.path.expandvars(self.root_dir)).expanduser())
        return int(self._new_folder.name.removeprefix(VERSION))

    def remove_new_folder(self) -> None:
        """Remove the folder of the run if the run has created it."""
        if self._new_folder is not None:
            shutil.rmtree(self._new_folder, ignore_errors=True)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write all scalars except `epoch`; the first call also adds the custom charts."""
        if not self._has_layout:
            self._has_layout = True
            self.experiment.add_custom_scalars(INTERVAL_CHARTS)
        scalars = dict(metrics)
        scalars.pop("epoch", None)
        super().log_metrics(scalars, step)


def claim_version(folder: Path) -> Path:
    """Create the next free `version_N` in a folder of runs; concurrent processes get different ones.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(claim_version(Path(folder)).name, claim_version(Path(folder)).name)
    version_0 version_1
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for path in folder.glob(f"{VERSION}*"):
        suffix = path.name.removeprefix(VERSION)
        if suffix.isdecimal():
            number = max(number, int(suffix) + 1)
    while True:
        claimed = folder / f"{VERSION}{number}"
        try:
            claimed.mkdir()
        except FileExistsError:  # another process was faster
            number += 1
        else:
            return claimed


class ProgressBar(TQDMProgressBar):
    """Progress bar with one line per epoch, without the version number of the run."""

    def __init__(self) -> None:
        super().__init__(leave=True)

    def get_metrics(self, trainer: L.Trainer, pl_module: L.LightningModule) -> dict[str, Any]:
        """Return the metrics to show."""
        metrics = dict(super().get_metrics(trainer, pl_module))
        metrics.pop("v_num", None)
        return metrics


class LogInterval(Callback):
    """Callback that sets `log_every_n_steps` to a twentieth of the steps of a fit, but at least 1 and at most 50."""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Set `log_every_n_steps`."""
        steps = int(trainer.estimated_stepping_batches)
        undeclared(trainer).log_every_n_steps = max(1, min(50, steps // STEPS_PER_CURVE))


class Projector(Callback):
    """Callback that writes the embeddings of the last validation to TensorBoard's projector at the end of a fit.

    The projector can color them by role, triple and answer.
    """

    def __init__(self, stories: int = 2000) -> None:
        """Set the maximum number of stories, each of which the browser draws as a point."""
        self.stories = stories
        self._embeddings: dict[int, Tensor] = {}
        self._wrong: set[int] = set()

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Discard the embeddings of the previous validation."""
        self._embeddings, self._wrong = {}, set()

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: object, **__: object
    ) -> None:
        """Collect the batch's embeddings by story index."""
        if trainer.sanity_checking:
            return
        self._wrong.update(outputs["wrong"].tolist())
        if len(self._embeddings) < self.stories:
            indices: list[int] = outputs["indices"].tolist()
            self._embeddings.update(zip(indices, outputs["embeddings"].detach().float().cpu(), strict=True))

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Write the embeddings with their metadata."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
        if not self._embeddings or not trainer.is_global_zero or not loggers:
            return
        triples = data_of(trainer).triples["validation"]
        labels = self._labels(triples)
        points, metadata = [], []
        for index in sorted(self._embeddings)[: self.stories]:
            text = " ".join(triples.stories[index].text.split())[:LABEL_CHARACTERS]
            points.append(self._embeddings[index])
            metadata.append([text, *labels.get(index, ("", "", ""))])
        embeddings = torch.stack(points)
        for logger in loggers:
            logger.experiment.add_embedding(
                embeddings, metadata, None, trainer.global_step, "validation", POINT_COLUMNS
            )

    def _labels(self, triples: Triples) -> dict[int, tuple[str, str, str]]:
        """Return role, position of the triple and answer for each story, from the first triple that contains it."""
        labels: dict[int, tuple[str, str, str]] = {}
        for position, triple in enumerate(triples):
            answer = "wrong" if position in self._wrong else "right"
            closer, other = (triple.a, triple.b) if triple.a_is_closer else (triple.b, triple.a)
            for index, role in ((triple.anchor, "anchor"), (closer, "closer candidate"), (other, "other candidate")):
                labels.setdefault(index, (role, str(position), answer))
        return labels
