"""Display of a run: progress bar, curves and embedding projector of TensorBoard."""

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
from narrlit.datamodules.story_data import data_of

RUNS, VERSION = "runs", "version_"
"""Default folder of runs, and prefix of a run's number."""
STEPS_PER_CURVE = 20
LABEL_CHARACTERS = 80
POINT_COLUMNS = ["story", "role", "triple", "answer"]
INTERVAL_CHARTS = {
    stage: {"accuracy": ["Margin", [f"{stage}/accuracy", f"{stage}/accuracy_low", f"{stage}/accuracy_high"]]}
    for stage in ("validation", "test")
}


class RunLogger(TensorBoardLogger):
    """TensorBoardLogger without the chart `epoch`; accuracy and its interval share a chart (tab Custom scalars)."""

    def __init__(self, save_dir: str | None = None, name: str | None = "run", version: int | str | None = None) -> None:
        """Set the folder of a run: `save_dir/name/version`.

        Args:
            save_dir: folder of all runs; None: trainer.default_root_dir, and without that `runs`.
            name: of the config or experiment.
            version: of the run; None: the next version_N.
        """
        super().__init__(save_dir or RUNS, name, version, default_hp_metric=False)
        self._given_version, self._has_layout = version, False
        self._new_folder: Path | None = None
        if version is not None and not Path(self.log_dir).exists():
            self._new_folder = Path(self.log_dir)

    @property
    def version(self) -> int | str:
        """Version of the run; the first process creates the folder of a new one now.

        Other processes have an estimate, which `trainer.log_dir` replaces by the first process's folder.
        """
        if self._given_version is not None:
            return self._given_version
        if getattr(rank_zero_only, "rank", 0):
            return super().version
        if self._new_folder is None:
            self._new_folder = claim_version(Path(os.path.expandvars(self.root_dir)).expanduser())
        return int(self._new_folder.name.removeprefix(VERSION))

    def remove_new_folder(self) -> None:
        """Remove the run's folder, unless it was there before the run."""
        if self._new_folder is not None:
            shutil.rmtree(self._new_folder, ignore_errors=True)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write scalars."""
        if not self._has_layout:
            self._has_layout = True
            self.experiment.add_custom_scalars(INTERVAL_CHARTS)
        super().log_metrics({name: value for name, value in metrics.items() if name != "epoch"}, step)


def claim_version(folder: Path) -> Path:
    """Create the next `version_N` in a folder of runs; no two processes get the same one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(claim_version(Path(folder)).name, claim_version(Path(folder)).name)
    version_0 version_1
    """
    folder.mkdir(parents=True, exist_ok=True)
    suffixes = [path.name.removeprefix(VERSION) for path in folder.glob(f"{VERSION}*")]
    number = max((int(suffix) for suffix in suffixes if suffix.isdecimal()), default=-1) + 1
    while True:
        try:
            (folder / f"{VERSION}{number}").mkdir()
        except FileExistsError:  # another process was faster
            number += 1
        else:
            return folder / f"{VERSION}{number}"


class ProgressBar(TQDMProgressBar):
    """Progress bar with a line for each epoch, without the run's number."""

    def __init__(self) -> None:
        super().__init__(leave=True)

    def get_metrics(self, trainer: L.Trainer, pl_module: L.LightningModule) -> dict[str, Any]:
        """Return the metrics to show."""
        return {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}


class LogInterval(Callback):
    """Choose how often loss and learning rate are logged: at least 20 times in a fit, at most every step."""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Set `log_every_n_steps` from the number of steps."""
        steps = int(trainer.estimated_stepping_batches)
        undeclared(trainer).log_every_n_steps = max(1, min(50, steps // STEPS_PER_CURVE))


class Projector(Callback):
    """Write the last validation's embeddings at the end of a fit, to color by role, triple and answer."""

    def __init__(self, stories: int = 2000) -> None:
        """Set the largest number of stories to write, which a browser has to draw."""
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
        """Write points and metadata."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
        if not self._embeddings or not trainer.is_global_zero or not loggers:
            return
        triples = data_of(trainer).triples["validation"]
        columns: dict[int, tuple[str, str, str]] = {}
        for position, triple in enumerate(triples):
            answer = "wrong" if position in self._wrong else "right"
            closer, other = (triple.a, triple.b) if triple.a_is_closer else (triple.b, triple.a)
            for index, role in ((triple.anchor, "anchor"), (closer, "closer candidate"), (other, "other candidate")):
                columns.setdefault(index, (role, str(position), answer))
        indices = sorted(self._embeddings)[: self.stories]
        texts = (" ".join(triples.stories[index].text.split())[:LABEL_CHARACTERS] for index in indices)
        metadata = [[text, *columns.get(index, ("", "", ""))] for text, index in zip(texts, indices, strict=True)]
        points = torch.stack([self._embeddings[index] for index in indices])
        for logger in loggers:
            logger.experiment.add_embedding(points, metadata, None, trainer.global_step, "validation", POINT_COLUMNS)
