"""LightningCLI as narrlit sets it up: one stage's parser, short class names, records and checkpoints by default."""

from typing import Any

from jsonargparse import Namespace
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI

import narrlit.datamodules
import narrlit.objectives  # noqa: F401  (imported so that configs may use short class names)
from narrlit.callbacks import PredictionWriter, Projector, RunRecord
from narrlit.datamodules import StoryData
from narrlit.objectives import Objective

CHECKPOINT = {
    "checkpoint.monitor": "validation/accuracy",
    "checkpoint.mode": "max",
    "checkpoint.save_top_k": 1,
    "checkpoint.save_last": True,
    "checkpoint.filename": "best-{epoch}-{step}",
    "checkpoint.auto_insert_metric_name": True,
}


DEFAULT_LOGGER = Namespace(save_dir="runs", name="run", default_hp_metric=False)  # type: ignore[no-untyped-call]


class StageCLI(LightningCLI):
    """One stage, one parser: building the parsers of all four would take four times as long."""

    stage = "fit"

    @classmethod
    def run(cls, stage: str) -> "StageCLI":
        """Parse sys.argv and run the stage."""
        cls.stage = stage
        return cls(
            Objective,
            StoryData,
            subclass_mode_model=True,
            subclass_mode_data=True,
            save_config_kwargs={"overwrite": True},
            seed_everything_default=42,
            trainer_defaults={
                "use_distributed_sampler": False,
                "callbacks": [
                    LearningRateMonitor("step"),
                    RunRecord(),
                    Projector(),
                    PredictionWriter(),
                    TQDMProgressBar(leave=True),
                ],
            },
            auto_configure_optimizers=False,
            # Hyperparameters are kept by the objectives, as plain data.
            load_from_checkpoint_support=False,
            parser_kwargs={"parser_mode": "yaml"},
        )

    def subcommands(self) -> dict[str, set[str]]:  # type: ignore[override]
        """The one stage that was asked for."""
        return {self.stage: super().subcommands()[self.stage]}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Best and last checkpoints as a mapping, which layered configs merge; a list would be replaced."""
        parser.add_lightning_class_args(ModelCheckpoint, "checkpoint")
        parser.set_defaults(CHECKPOINT)

    def _parse_ckpt_path(self) -> None:
        # Lightning would let the checkpoint's hyperparameters override the command line (its issue 21455).
        return

    def before_instantiate_classes(self) -> None:
        """Name the run after its objective where the config names no logger."""
        trainer: Any = self.config[self.stage].trainer
        if trainer.logger is None or trainer.logger is True:
            trainer.logger = Namespace(  # type: ignore[no-untyped-call]
                class_path="lightning.pytorch.loggers.TensorBoardLogger", init_args=DEFAULT_LOGGER
            )
