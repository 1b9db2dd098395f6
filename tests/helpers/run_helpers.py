"""What the tests of whole fits share: short fits here or in a fork, and kills."""

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
from pathlib import Path

import torch
from json_files import read_json
from lightning.pytorch.callbacks import Callback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from narrlit.callbacks import teachers
from narrlit.cli import main
from narrlit.commands.fit_words import read_fit_words
from narrlit.configuration import read_configs


class KillAt(Callback):
    """Ends the process as a power cut would, when step `step` has been made."""

    def __init__(self, step: int):
        self.step = step

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


class SpoilAt(Callback):
    """Makes the weights of one process infinite when step `step` has been made."""

    def __init__(self, step: int, rank: int = 0):
        self.step, self.rank = step, rank

    def on_train_batch_end(self, trainer, pl_module, *_):
        if trainer.global_step == self.step and trainer.global_rank == self.rank:
            with torch.no_grad():
                next(p for p in pl_module.parameters() if p.requires_grad).fill_(float("inf"))


class FillDiskAt(Callback):
    """Leaves room for files of `size` bytes at most when step `step` has been made."""

    def __init__(self, step: int, size: int):
        self.step, self.size = step, size

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


class TerminateAt(Callback):
    """Sends SIGTERM to its own process after the first step."""

    def on_train_batch_end(self, trainer, *_):
        os.kill(os.getpid(), signal.SIGTERM)


class KillFold(Callback):
    """Ends the process as a power cut would, in the middle of a fold, as long as a file of that name is there."""

    def __init__(self, fold: int, file: str):
        self.fold = fold
        self.file = file

    def on_train_batch_end(self, trainer, *_):
        if trainer.datamodule.fold == self.fold and Path(self.file).exists() and trainer.current_epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class KillRun(Callback):
    """Ends the process as a power cut would, in the second epoch of the run whose directory has the name in a file."""

    def __init__(self, file: str):
        self.file = Path(file)

    def on_train_batch_end(self, trainer, *_):
        named = self.file.exists() and self.file.read_text() == Path(trainer.log_dir).name
        if named and trainer.current_epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class KillWithin(Callback):
    """Ends the process as a power cut would, in the middle of a function of callbacks/teachers.py."""

    def __init__(self, function: str):
        def cut(*arguments, **options):
            if function == "promote":  # after the folder has been written, before the checkpoint is
                original(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        original = getattr(teachers, function)
        setattr(teachers, function, cut)


def fit_arguments(model, folder, *more, epochs=3, config="configs/quickstart.yaml"):
    """`narrlit fit` on a few synthetic stories with a tiny model and real dropout; the run is `folder`/tiny."""
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    return [
        *("fit", "--config", config, "--config", "configs/hardware/cpu.yaml"),
        *(f"{encoder}.model", model, f"{encoder}.dropout", "0.1"),
        *("--data.init_args.train", "16", "--data.init_args.validation", "9"),
        *("--data.init_args.test", "5", "--data.init_args.loading.batch_size", "4"),
        *("--trainer.max_epochs", str(epochs), "--model.init_args.optimization.learning_rate", "0.001"),
        *("--trainer.enable_progress_bar", "false"),
        *(f"{logger}.save_dir", str(folder), f"{logger}.name", "tiny", f"{logger}.version", ""),
        *map(str, more),
    ]


def fit_settings(arguments):
    """Settings of a fit that `fit_arguments` describes."""
    return read_configs(read_fit_words(*arguments[1:]))


def rounds_arguments(model, folder, *more, epochs=4, rounds=2):
    """Two rounds of two epochs, LoRA with dropout, negatives of which a third are false.

    No margin: a random model finds all stories so similar that -0.05 would mask every one.
    """
    promotion = "--trainer.callbacks.init_args"
    return fit_arguments(
        model,
        folder,
        *("--model.init_args.encoder.lora.dropout", "0.2", "--data.init_args.false_negatives", "0.34"),
        *("--model.init_args.mask_margin", "0"),
        *(f"{promotion}.rounds", rounds, f"{promotion}.patience", 9),
        *("--model.init_args.optimization.learning_rate", "0.005"),
        *more,
        epochs=epochs,
        config="configs/quickstart_hits.yaml",
    )


def frozen_arguments(system, model, folder, *more, epochs=2, configs=()):
    """A short fit of a frozen system on StoryWorld; the run is `folder`/tiny."""
    logger = "--trainer.logger.init_args"
    overlays = [part for config in configs for part in ("--config", config)]
    return [
        *("fit", "--config", f"configs/{system}.yaml", "--config", "configs/hardware/cpu.yaml"),
        *("--model.init_args.encoder.model", model, "--model.init_args.encoder.max_length", "96"),
        *("--model.init_args.encoder.pooling", "mean", "--model.init_args.encoder.dtype", "float32"),
        *("--data", "StoryWorldData", "--data.init_args.train", "16", "--data.init_args.validation", "9"),
        *("--data.init_args.test", "5", "--data.init_args.loading.batch_size", "4"),
        *("--model.init_args.optimization.learning_rate", "0.003", *overlays, "--trainer.max_epochs", str(epochs)),
        *("--trainer.enable_progress_bar", "false"),
        *(f"{logger}.save_dir", str(folder), f"{logger}.name", "tiny", f"{logger}.version", ""),
        *map(str, more),
    ]


def fit_here(arguments, cwd):
    """Run narrlit in this process, which has the libraries loaded."""
    with contextlib.chdir(cwd):
        code = main([str(argument) for argument in arguments])
    assert code == 0


def exit_code_of_fork(arguments, cwd):
    """Run narrlit in a fork of this process; its exit code, -9 if it was killed."""

    def child():
        torch.set_num_threads(1)  # a team of threads does not survive a fork
        os.chdir(cwd)
        sys.exit(main([str(argument) for argument in arguments]))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(300)
    return process.exitcode


def apart_environment():
    """Environment in which a process finds these helpers."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def without_folder(arguments):
    """The arguments of a fit without those that name its folder."""
    first = arguments.index("--trainer.logger.init_args.save_dir")
    return arguments[:first] + arguments[first + 6 :]


def record_of(folder):
    """run.json of the run that `fit_arguments` names."""
    return read_json(Path(folder) / "tiny/run.json")


def weights_of(folder, name="last.ckpt"):
    """State of a checkpoint of that run."""
    path = Path(folder) / "tiny/checkpoints" / name
    return torch.load(path, map_location="cpu", weights_only=True)["state_dict"]


def curves_of(run):
    """Every scalar of a run's TensorBoard files."""
    events = EventAccumulator(str(run), size_guidance={"scalars": 0}).Reload()
    return {tag: [event.value for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def assert_equal_weights(ours, theirs):
    """Bit by bit."""
    assert ours.keys() == theirs.keys()
    assert [name for name in theirs if not torch.equal(ours[name], theirs[name])] == []
