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


def fit_arguments(model, folder, *more, epochs=3):
    """`narrlit fit` on a few invented stories with a tiny model and real dropout; the run is `folder`/tiny."""
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    return [
        *("fit", "--config", "configs/quickstart.yaml", "--config", "configs/hardware/cpu.yaml"),
        *(f"{encoder}.model", model, f"{encoder}.dropout", "0.1"),
        *("--data.init_args.train", "16", "--data.init_args.validation", "9"),
        *("--data.init_args.test", "5", "--data.init_args.loading.batch_size", "4"),
        *("--trainer.max_epochs", str(epochs), "--model.init_args.optimization.learning_rate", "0.001"),
        *(f"{logger}.save_dir", str(folder), f"{logger}.name", "tiny", f"{logger}.version", ""),
        *map(str, more),
    ]


def run_apart(arguments, cwd, timeout=300):
    """Run narrlit in a process of its own."""
    tests = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(tests), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "narrlit", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
