"""What the tests of whole fits share: short fits as a subprocess, and a callback that kills its own process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from lightning.pytorch.callbacks import Callback


class KillAt(Callback):
    """Ends the process as a power cut would, when step `step` has been made."""

    def __init__(self, step: int):
        self.step = step

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


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
        from narrlit.callbacks import teachers

        def cut(*arguments, **options):
            if function == "promote":  # after the folder has been written, before the checkpoint is
                real(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        real = getattr(teachers, function)
        setattr(teachers, function, cut)


def fit_arguments(model, folder, *more, epochs=3, config="configs/quickstart.yaml"):
    """`narrlit fit` on a few invented stories with a tiny model and real dropout; the run is `folder`/tiny."""
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    return [
        *("fit", "--config", config, "--config", "configs/hardware/cpu.yaml"),
        *(f"{encoder}.model", model, f"{encoder}.dropout", "0.1"),
        *("--data.init_args.train", "16", "--data.init_args.validation", "9"),
        *("--data.init_args.test", "5", "--data.init_args.loading.batch_size", "4"),
        *("--trainer.max_epochs", str(epochs), "--model.init_args.optimization.learning_rate", "0.001"),
        *(f"{logger}.save_dir", str(folder), f"{logger}.name", "tiny", f"{logger}.version", ""),
        *map(str, more),
    ]


def rounds_arguments(model, folder, *more, epochs=4, rounds=2):
    """Two rounds of two epochs, LoRA with dropout, negatives of which a third are false.

    No margin: a random model puts all stories so near that -0.05 would mask every one.
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


def run_apart(arguments, cwd, timeout=300):
    """Run narrlit in a process of its own."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "narrlit", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
