"""LightningCLI for one stage, with layered configs, run records and checkpoints by default."""

import json
import logging
import os
import re
import sys
import warnings
from argparse import ArgumentError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from jsonargparse import Namespace
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import (
    BatchSizeFinder,
    LearningRateFinder,
    LearningRateMonitor,
    StochasticWeightAveraging,
)
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.utilities.exceptions import SIGTERMException
from tqdm.contrib.logging import logging_redirect_tqdm

import narrlit.datamodules
import narrlit.objectives  # noqa: F401  (imported so that configs may use short class names)
from narrlit.callbacks import (
    BestCheckpoint,
    DivergedError,
    LastCheckpoint,
    LogInterval,
    PredictionWriter,
    ProgressBar,
    Projector,
    RunLogger,
    RunRecord,
    StopOnDivergence,
)
from narrlit.callbacks.checkpoints import AtomicCheckpointIO
from narrlit.callbacks.display import RUNS
from narrlit.command_line import setting_flag
from narrlit.compat.jsonargparse import merge_settings
from narrlit.compat.lightning import read_whole_numbers_as_such, undeclared
from narrlit.configuration import FitSettings, find_config, read_config
from narrlit.datamodules import StoryData
from narrlit.distributed import rank
from narrlit.errors import ModelError, NarrlitError, OptionError, mistake_behind, reason
from narrlit.models.checkpoint_files import check_shard_table, read_checkpoint, read_checkpoint_settings
from narrlit.models.config import CONSENT, allow_remote_code
from narrlit.models.run_file import RECORD, RunFile
from narrlit.objectives import Objective

CHECKPOINTS = {
    "checkpoint.monitor": "validation/accuracy",
    "checkpoint.mode": "max",
    "checkpoint.save_top_k": 1,
    "checkpoint.filename": "best-{epoch}-{step}",
    # A run resumed from a checkpoint saved during validation would repeat the previous epoch's order of examples.
    "checkpoint.save_on_train_epoch_end": True,
    "last_checkpoint.save_on_train_epoch_end": True,
    # save_last would copy the best checkpoint, not the last: a crash would lose all work after the best epoch.
    "last_checkpoint.monitor": None,
    "last_checkpoint.save_top_k": 1,
    "last_checkpoint.filename": "last",
    "last_checkpoint.enable_version_counter": False,
}
LIGHTNING_CHECKPOINTS = ("best", "last", "hpc", "registry")
"""Names that Lightning resolves by its own callbacks, which have no checkpoint yet: it would ignore them."""
UNSUPPORTED: dict[type, str] = {
    BatchSizeFinder: "batch_size_finder",
    LearningRateFinder: "learning_rate_finder",
    StochasticWeightAveraging: "stochastic_weight_averaging",
}
"""Callbacks that are refused, and the codes of the errors."""
RESUMED = {"epoch": int, "global_step": int, "state_dict": dict, "loops": dict, "callbacks": dict}
RESUMED |= {"optimizer_states": list, "lr_schedulers": list}
"""Fields, with their types, that a checkpoint needs for resuming a fit."""
NOTICES = (
    ".*does not have many workers.*",
    ".*isinstance.treespec, LeafSpec.*",
    ".*You have overridden `on_before_batch_transfer` in `LightningModule`.*",
    ".*Checkpoint directory .* exists and is not empty.*",
    ".*The dirpath has changed from.*",
    ".*The number of training batches.*is smaller than the logging interval.*",
    ".*LightningCLI's args parameter.*",
    ".*Total length of `list` across ranks is zero.*",
)
"""Warnings that do not help the user."""
HINTS = ("litlogger", "💡", "TPU available", "Loading `train_dataloader` to estimate")
"""Beginnings of Lightning's messages that do not help the user."""
LOGGERS = ("lightning", "lightning.pytorch", "lightning.fabric")
"""Loggers whose messages are printed above the progress bar."""


class StageCLI(LightningCLI):
    """Parser and objects of one stage."""

    def __init__(self, stage: str, settings: Sequence[FitSettings | str], *, with_trainer: bool = True) -> None:
        """Parse settings, and build objective, datamodule and trainer.

        Args:
            stage: fit, validate, test or predict.
            settings: settings of which later ones override earlier ones; or the words of a command line after the
                stage.
            with_trainer: also build the trainer, which needs the hardware.
        """
        self.stage = stage
        self.settings = settings
        self.with_trainer = with_trainer
        read_whole_numbers_as_such(Trainer.__init__)
        try:
            super().__init__(
                Objective,
                StoryData,
                subclass_mode_model=True,
                subclass_mode_data=True,
                save_config_kwargs={"overwrite": True},
                seed_everything_default=42,
                trainer_defaults={
                    "use_distributed_sampler": False,
                    "enable_model_summary": False,
                    "num_sanity_val_steps": -1,  # evaluate the untrained model, for RunRecord
                    "callbacks": [StopOnDivergence(), RunRecord(), Projector(), PredictionWriter()],
                },
                auto_configure_optimizers=False,
                load_from_checkpoint_support=False,  # the objectives save their own, as plain data
                parser_kwargs={"prog": f"narrlit {stage}", "exit_on_error": False},
                run=False,
                args={},
            )
        except (ArgumentError, MisconfigurationException, ValueError, TypeError) as error:
            raise mistake_behind(error) or OptionError(
                "invalid_settings", problem=parser_message(str(error)), stage=stage
            ) from error

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add options for checkpoint callbacks as mappings, which layered configs merge; they would replace a list."""
        parser.add_lightning_class_args(BestCheckpoint, "checkpoint")
        parser.add_lightning_class_args(LastCheckpoint, "last_checkpoint")
        parser.set_defaults(CHECKPOINTS)
        parser.add_argument("--ckpt_path", type=str | None, help="checkpoint to resume from (fit) or to evaluate")
        consent = "run Python files that come with a model; only for models from authors you trust"
        parser.add_argument("--trust-remote-code", action="store_true", help=consent)

    def parse_arguments(self, parser: LightningArgumentParser, args: object) -> None:
        """Parse the words of a command line, or merge settings and add the defaults."""
        layers = [settings for settings in self.settings if not isinstance(settings, str)]
        if not layers:
            words = [word for word in self.settings if isinstance(word, str)]
            self.config = parser.parse_args(_find_configs(words))
            return
        config = merge_settings(parser, {})
        for settings in layers:
            for name, value in settings.items():
                config = merge_settings(parser, _nested(name, value, config), config)
        self.config = parser.parse_object(config)

    def before_instantiate_classes(self) -> None:
        """Check the checkpoint, and choose the folder of the run."""
        settings: Any = self.config
        _check_mappings("model", settings.model)
        _check_mappings("data", settings.data)
        trainer = settings.trainer
        _check_callbacks(trainer.callbacks)
        for name in ("every_n_train_steps", "train_time_interval"):
            if getattr(settings.checkpoint, name) not in (None, 0):
                raise OptionError("best_checkpoint_in_training", option=f"checkpoint.{name}")
        if trainer.logger is None or trainer.logger is True:
            settings_of: Any = Namespace  # without types
            logger = settings_of(class_path="narrlit.callbacks.RunLogger", init_args=settings_of(save_dir=None))
            trainer.logger = logger
        loggers = trainer.logger if isinstance(trainer.logger, list) else [trainer.logger]
        for logger in loggers:
            if logger and logger.class_path.endswith(".RunLogger") and logger.init_args.save_dir is None:
                logger.init_args.save_dir = str(trainer.default_root_dir or RUNS)
        if settings.ckpt_path is not None:
            _check_checkpoint(settings.ckpt_path, loggers[0], resumes=self.stage == "fit")

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Build the trainer, with a progress bar unless it is disabled."""
        if not self.with_trainer:
            return None  # type: ignore[return-value]  # a stage without a trainer
        trainer = self.config.trainer
        callbacks = self.trainer_defaults["callbacks"]
        if trainer.enable_progress_bar is not False:
            callbacks.insert(0, ProgressBar())
        if trainer.logger is not False:
            callbacks.append(LearningRateMonitor("step"))
        if trainer.log_every_n_steps is None:
            callbacks.append(LogInterval())
        built = super().instantiate_trainer(**kwargs)
        built.strategy.checkpoint_io = AtomicCheckpointIO()
        return built

    def as_dict(self) -> dict[str, Any]:
        """Return the whole configuration as plain data, as in config.yaml of a run."""
        text = self.parser.dump(self.config, skip_none=False, skip_link_targets=False, format="json_compact")
        return dict(json.loads(text))  # YAML is three times as slow


def parse_fit(settings: Sequence[FitSettings | str]) -> StageCLI:
    """Parse the settings of a fit, and build its objective and datamodule without a trainer."""
    silence()
    return StageCLI("fit", settings, with_trainer=False)


def run_stage(stage: str, words: Sequence[str]) -> int:
    """Run one of Lightning's stages by the words of a command line after the stage.

    Returns:
        The exit code: 1 after a fit that diverged, 143 after SIGTERM.
    """
    try:
        with _process_settings(stage, words):
            run_lightning(stage, words)
    except DivergedError as error:
        if rank() == 0:
            error.write_option = setting_flag
            print(f"narrlit: error: {error}", file=sys.stderr)
        return 1
    except SIGTERMException:
        return 143
    return 0


def run_lightning(stage: str, settings: Sequence[FitSettings | str]) -> Path | None:
    """Run one of Lightning's stages; return the directory of the run, or None without a logger.

    The directory is removed after a user error before the first step.

    Raises:
        DivergedError: if the loss or the weights are no longer finite after a fit.
    """
    silence()
    cli = StageCLI(stage, settings)
    trainer = cli.trainer
    resumed = cli.config.ckpt_path if stage == "fit" else None
    if resumed is not None:
        cli.model.check_continued(read_checkpoint_settings(Path(resumed)))
    _check_no_other_fit(trainer, stage, resumed)
    try:
        _start(cli)
    except DivergedError:
        raise
    except NarrlitError:
        if trainer.is_global_zero and not trainer.global_step and isinstance(trainer.logger, RunLogger):
            trainer.logger.remove_new_folder()
        raise
    except MisconfigurationException as error:
        raise OptionError("refused_by_lightning", problem=parser_message(str(error))) from error
    except RuntimeError as error:
        if not str(error).startswith("Early stopping conditioned on metric"):
            raise
        raise OptionError("refused_callback", problem=parser_message(str(error))) from error
    return None if trainer.log_dir is None else Path(trainer.log_dir)


@contextmanager
def _process_settings(stage: str, words: Sequence[str]) -> Iterator[None]:
    """Set the command line of the other processes, and the consent to remote code; restore both after the block."""
    typed = sys.argv
    # Lightning starts the other processes with sys.argv.
    sys.argv = [typed[0], stage, *words]
    consented = os.environ.get(CONSENT)
    if "--trust-remote-code" in words:  # from the command line only: a config can't give this consent
        allow_remote_code()
    try:
        yield
    finally:
        sys.argv = typed
        if consented is None:
            os.environ.pop(CONSENT, None)


def _start(cli: StageCLI) -> None:
    """Run the stage of a command line, with messages above the progress bar."""
    start = getattr(cli.trainer, cli.stage)
    redirected = [log for log in map(logging.getLogger, LOGGERS) if log.handlers]
    with logging_redirect_tqdm(redirected), _naming_checkpoint(cli.config.ckpt_path):
        start(cli.model, datamodule=cli.datamodule, ckpt_path=cli.config.ckpt_path, weights_only=True)


def _check_no_other_fit(trainer: Trainer, stage: str, resumed: str | None) -> None:
    """Refuse to write to the directory of another fit, whose record and checkpoints would be replaced.

    Args:
        trainer: trainer of the stage.
        stage: fit, validate, test or predict.
        resumed: checkpoint of the fit that is resumed, which may continue in its own directory.

    Raises:
        OptionError: if the directory of the run, or that of its last checkpoint, contains another fit.
    """
    log_dir = trainer.log_dir  # the working directory without a logger
    if log_dir is None or undeclared(trainer).fast_dev_run:
        return
    place = "--trainer.logger.version" if trainer.loggers else "--trainer.default_root_dir"
    _check_own(Path(log_dir), _results(Path(log_dir)), resumed, place)
    for callback in trainer.checkpoint_callbacks:
        if stage == "fit" and isinstance(callback, LastCheckpoint) and callback.dirpath:
            folder = Path(callback.dirpath)
            _check_own(folder, list(folder.glob("*.ckpt")), resumed, "--last_checkpoint.dirpath")


def _results(folder: Path) -> list[Path]:
    """List checkpoints and rounds of the fit in a directory; empty without a record."""
    record = folder / RECORD
    if not record.is_file():
        return []
    results = [*folder.glob("checkpoints/*.ckpt"), *folder.glob("rounds/*")]
    with suppress(ModelError):  # of a damaged record, the usual places are known
        results += [folder / path for path in RunFile.read(record).checkpoints.values()]
    return [path for path in results if path.exists()]


def _check_own(folder: Path, results: list[Path], resumed: str | None, place: str) -> None:
    """Raise OptionError if a directory has results, but not the checkpoint that is resumed."""
    own = resumed is not None and Path(resumed).resolve() in [path.resolve() for path in results]
    if results and not own:
        raise OptionError("other_fit", folder=folder, place=place)


@contextmanager
def _naming_checkpoint(path: str | None) -> Iterator[None]:
    """Convert exceptions of Lightning about a damaged checkpoint to a ModelError."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        frames = extract_tb(error.__traceback__)
        if not any("checkpoint_connector" in frame.filename and "restore" in frame.name for frame in frames):
            raise
        raise ModelError("damaged_checkpoint", path=path, reason=reason(error)) from error


def parser_message(message: str) -> str:
    r"""Shorten a message of the parser to the relevant parts, on one line.

    >>> parser_message("Parser key 'n':\n  Does not validate against any of the Union subtypes\n  Given value: x")
    "Parser key 'n': not x"
    >>> parser_message("Parser key 'model':\n  Errors:\n    - Option 'scales' is not accepted\n  Given value: N(y=1)")
    "Parser key 'model': Option 'scales' is not accepted"
    >>> parser_message("Parser key 'name':\n  Expected a <class 'str'>\n  Given value: False")
    "Parser key 'name': Expected a <class 'str'>, not False (YAML reads no and off as False: put them in quotes)"
    """
    noise = ("Does not validate against", "Subtypes:", "Errors:", "Given value", "- Expected a <class 'NoneType'>")
    first, *lines = list(filter(None, map(str.strip, message.splitlines()))) or [""]
    details, values = [], []
    for line in lines:
        if not line.startswith(noise):
            details.append(line.removeprefix("- "))
        # The value of a class is its whole configuration; the last line names the wrong field.
        elif line.startswith("Given value:") and not re.search("[({]", line):
            values.append(line.replace("Given value:", "not"))
    shortened = f"{first} {', '.join(details + values[:1])}".strip().replace("Expected a typing.Literal", "one of ")
    if "Expected a <class 'str'>" in details and values[:1] in (["not False"], ["not True"]):
        words = "no and off" if values[0] == "not False" else "yes and on"
        shortened += f" (YAML reads {words} as {values[0].removeprefix('not ')}: put them in quotes)"
    return shortened


def silence() -> None:
    """Suppress messages that do not help the user."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for message in NOTICES:
        warnings.filterwarnings("ignore", message)
    logging.getLogger("lightning.pytorch.utilities.rank_zero").addFilter(_is_no_hint)
    # Its handler of SIGTERM logs, which fails if the signal interrupts another write to stderr.
    logging.getLogger("lightning.pytorch.trainer.connectors.signal_connector").setLevel(logging.WARNING)


def _is_no_hint(record: logging.LogRecord) -> bool:
    """Return False for a message of Lightning that does not help the user."""
    return not any(hint in record.getMessage() for hint in HINTS)


def _find_configs(words: Sequence[str]) -> list[str]:
    """Find and check every `--config` in the words of a command line; return the words with resolved paths."""
    words = list(words)
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag not in ("--config", "-c"):
            continue
        if equals:
            read_config(value)
            words[position] = f"{flag}={find_config(value)}"
        elif position + 1 < len(words):
            read_config(words[position + 1])
            words[position + 1] = find_config(words[position + 1])
    return words


def _nested(name: str, value: object, config: Namespace) -> dict[str, Any]:
    """Nest a setting with a dotted name; below a list of the configuration, it is one of the last member.

    >>> _nested("data.train", "a.jsonl", Namespace())
    {'data': {'train': 'a.jsonl'}}
    >>> _nested("callbacks.patience", 3, Namespace(callbacks=["A", "B"]))
    {'callbacks': ['A', {'patience': 3}]}
    """
    nested: Any = value
    first, *others = name.split(".")
    for end in range(len(others), 0, -1):
        nested = {others[end - 1]: nested}
        members = config.get(".".join([first, *others[: end - 1]]))
        if isinstance(members, list):
            nested = [*members[:-1], nested]
    return {first: nested}


def _check_mappings(option: str, configured: Namespace) -> None:
    """Check that dataclass parameters of a configured class are mappings; the parser accepts anything.

    Raises:
        OptionError: naming the parameter.
    """
    module, _, name = configured.class_path.rpartition(".")
    configured_class = getattr(import_module(module), name)
    parameters = configured.get("init_args")
    _check_parameters(option, configured_class, vars(parameters) if parameters else {})


def _check_parameters(option: str, kind: type, values: Mapping[str, object]) -> None:
    """Check the parameters of a class, and those of its dataclass parameters."""
    signature: Any = kind.__init__  # type: ignore[misc]  # a class, and not an instance whose class may differ
    for name, hint in get_type_hints(signature).items():
        if name not in values:
            continue
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        settings = next((member for member in types if isinstance(member, type) and is_dataclass(member)), None)
        value = values[name]
        if settings is None or is_dataclass(value) or (value is None and NoneType in types):
            continue
        content = vars(value) if isinstance(value, Namespace) else value
        if not isinstance(content, dict):
            example = f"{option}.{name}.{fields(settings)[0].name}"
            raise OptionError("not_a_mapping", option=f"{option}.{name}", found=repr(value), example=example)
        _check_parameters(f"{option}.{name}", settings, content)


def _check_callbacks(configured: Any) -> None:
    """Raise OptionError for a callback that is not supported, naming what to use instead."""
    callbacks = configured if isinstance(configured, list) else [configured]
    for callback in filter(None, callbacks):
        module, _, name = callback.class_path.rpartition(".")
        kind = getattr(import_module(module), name)
        for unsupported, code in UNSUPPORTED.items():
            if isinstance(kind, type) and issubclass(kind, unsupported):
                raise OptionError(code, callback=name)


def _check_checkpoint(path: str, logger: Any, resumes: bool) -> None:
    """Check that a file is a checkpoint, with the fields for resuming a fit: Lightning ignores some missing fields."""
    if not path.strip():
        raise OptionError("empty_checkpoint")
    if path in LIGHTNING_CHECKPOINTS:
        raise OptionError("checkpoint_by_name", path=path, example=_example_checkpoint(path, logger))
    if (Path(path) / "checkpoints").is_dir():
        raise OptionError("checkpoint_of_run", path=path, example=Path(path) / "checkpoints" / "last.ckpt")
    if Path(path).is_dir():
        check_shard_table(Path(path))
        return
    content = read_checkpoint(Path(path))
    required = RESUMED if resumes else {}
    for name, kind in required.items():
        if not isinstance(content.get(name), kind):
            raise ModelError("incomplete_checkpoint", path=path, name=name)


def _example_checkpoint(name: str, logger: Any) -> Path:
    """Find the newest checkpoint named `best` or `last` in the runs of a logger, as an example."""
    settings = dict(logger.init_args) if logger else {}
    runs = Path(settings.get("save_dir") or "") / (settings.get("name") or "")
    pattern = "best*.ckpt" if name == "best" else "last.ckpt"
    files = [*runs.glob(f"checkpoints/{pattern}"), *runs.glob(f"*/checkpoints/{pattern}")]
    return max(files, key=lambda file: file.stat().st_mtime, default=Path("RUN/checkpoints/last.ckpt"))
