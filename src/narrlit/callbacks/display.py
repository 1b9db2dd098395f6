"""TensorBoard logger and progress bar of a run."""

from collections.abc import Mapping
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning_utilities.core.rank_zero import rank_zero_only

STEPS_PER_CURVE = 20
INTERVAL_CHARTS = {
    stage: {"accuracy": ["Margin", [f"{stage}/accuracy", f"{stage}/accuracy_low", f"{stage}/accuracy_high"]]}
    for stage in ("validation", "test")
}


class RunLogger(TensorBoardLogger):
    """TensorBoardLogger without the chart `epoch`; accuracy and its interval share a chart (tab Custom scalars)."""

    def __init__(
        self,
        save_dir: str = "runs",
        name: str | None = "run",
        version: int | str | None = None,
        sub_dir: str | None = None,
        default_hp_metric: bool = False,
    ) -> None:
        """Set where a run goes: `save_dir/name/version`.

        Args:
            save_dir: folder of all runs.
            name: of the config or experiment.
            version: of the run; None: version_N, the first that is free.
            sub_dir: below it, for TensorBoard's files alone.
            default_hp_metric: log hyperparameters before there is a metric.
        """
        super().__init__(save_dir, name, version, sub_dir=sub_dir, default_hp_metric=default_hp_metric)
        self._has_layout = False

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write scalars."""
        if not self._has_layout:
            self._has_layout = True
            self.experiment.add_custom_scalars(INTERVAL_CHARTS)
        super().log_metrics({name: value for name, value in metrics.items() if name != "epoch"}, step)


class ProgressBar(TQDMProgressBar):
    """Progress bar that keeps each epoch's line, without the run's number."""

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
        trainer.log_every_n_steps = max(1, min(50, steps // STEPS_PER_CURVE))  # type: ignore[attr-defined]
