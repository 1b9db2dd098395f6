"""LightningCLI as narrlit sets it up: one stage's parser, short class names, records and checkpoints by default."""

from pathlib import Path
from typing import Any

import yaml
from jsonargparse import Namespace
from lightning.pytorch.callbacks import LearningRateMonitor, TQDMProgressBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from typing_extensions import Self

import narrlit.datamodules
import narrlit.objectives  # noqa: F401  (imported so that configs may use short class names)
from narrlit.callbacks import AnswerRecord, BestCheckpoint, LastCheckpoint, PredictionWriter, Projector, RunRecord
from narrlit.commands.refusals import Refusing
from narrlit.datamodules import StoryData
from narrlit.errors import OptionError
from narrlit.models.source import read_checkpoint
from narrlit.objectives import Objective

CHECKPOINTS = {
    "checkpoint.monitor": "validation/accuracy",
    "checkpoint.mode": "max",
    "checkpoint.save_top_k": 1,
    "checkpoint.filename": "best-{epoch}-{step}",
    # A checkpoint taken in validation makes the resumed run train its next epoch in the order of the one before.
    "checkpoint.save_on_train_epoch_end": True,
    "last_checkpoint.save_on_train_epoch_end": True,
    # save_last would keep a copy of the best, not the last: work after the best epoch would be lost to a crash.
    "last_checkpoint.monitor": None,
    "last_checkpoint.save_top_k": 1,
    "last_checkpoint.filename": "last",
    "last_checkpoint.enable_version_counter": False,
}


LIGHTNING_CHECKPOINTS = ("best", "last", "hpc", "registry")
DEFAULT_LOGGER = Namespace(save_dir="runs", name="run", default_hp_metric=False)  # type: ignore[no-untyped-call]


class StageParser(Refusing, LightningArgumentParser):
    """A stage's parser."""


class StageCLI(LightningCLI):
    """One stage, one parser: building the parsers of all four would take four times as long."""

    stage = "fit"

    @classmethod
    def run(cls, stage: str) -> Self:
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
                    AnswerRecord(),
                    Projector(),
                    PredictionWriter(),
                    TQDMProgressBar(leave=True),
                ],
            },
            auto_configure_optimizers=False,
            # Hyperparameters are kept by the objectives, as plain data.
            load_from_checkpoint_support=False,
            parser_class=StageParser,
        )

    def subcommands(self) -> dict[str, set[str]]:  # type: ignore[override]
        """The one stage that was asked for."""
        return {self.stage: super().subcommands()[self.stage]}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Best and last checkpoints as mappings, which layered configs merge; a list would be replaced."""
        parser.add_lightning_class_args(BestCheckpoint, "checkpoint")
        parser.add_lightning_class_args(LastCheckpoint, "last_checkpoint")
        parser.set_defaults(CHECKPOINTS)

    def _parse_ckpt_path(self) -> None:
        # Lightning would let the checkpoint's hyperparameters override the command line (its issue 21455).
        return

    def before_instantiate_classes(self) -> None:
        """Settle what the user left open: where the run goes, and that a checkpoint is read as data alone."""
        settings: Any = self.config[self.stage]
        path = settings.ckpt_path
        if path is not None and path not in LIGHTNING_CHECKPOINTS and not Path(path).exists():
            raise OptionError(f"--ckpt_path {path}: no such file")
        if path is not None and Path(path).is_file():
            read_checkpoint(Path(path))
        if settings.weights_only is None:
            settings.weights_only = True
        trainer = settings.trainer
        if trainer.logger is None or trainer.logger is True:
            trainer.logger = Namespace(  # type: ignore[no-untyped-call]
                class_path="lightning.pytorch.loggers.TensorBoardLogger", init_args=DEFAULT_LOGGER
            )


class ParsedFit(StageCLI):
    """A fit that is only parsed: its configuration and its data, no trainer."""

    def instantiate_trainer(self, **kwargs: Any) -> None:  # type: ignore[override]
        """No trainer: it would ask for the hardware."""

    def _run_subcommand(self, subcommand: str) -> None:
        return

    def as_dict(self) -> dict[str, Any]:
        """The whole configuration as plain data, as a run's config.yaml has it."""
        text = self.parser.dump(self.config, skip_none=False, skip_link_targets=False, format="yaml")
        found: dict[str, Any] = yaml.safe_load(text)[self.stage]
        return found
