"""narrlit fit, validate, test and predict: Lightning's command line over narrlit's objectives and data."""

import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SHORT_HELP = """usage: narrlit {name} --config FILE [--config OVERLAY ...] [OPTIONS]

Files are layered: a later --config changes what it names, options change what they name. Often used:

  --model.encoder.model M              minilm, a folder or a hub id
  --data.train FILE                    training rows (data: FileData); also --data.validation, --data.test
  --data.loading.batch_size N
  --model.optimization.learning_rate R
  --trainer.max_epochs N
  --seed_everything N
  --ckpt_path FILE                     go on from a checkpoint (fit), or use it; the command line beats its settings
  --print_config                       the whole configuration that would run

narrlit {name} --help all              every option
"""


def run(name: str, arguments: Sequence[str]) -> int:
    """Run one of Lightning's stages; returns the exit code."""
    if list(arguments) in (["--help"], ["-h"], []):
        print(SHORT_HELP.format(name=name), end="")
        return 0
    if list(arguments) == ["--help", "all"]:
        arguments = ["--help"]
    _quiet()
    from narrlit.commands.lightning_cli import StageCLI

    # Lightning relaunches by sys.argv for several processes, and warns where arguments come from elsewhere.
    sys.argv = [sys.argv[0], name, *arguments]
    _make_sure_configs_exist(arguments)
    StageCLI.run(name)
    return 0


def _make_sure_configs_exist(arguments: Sequence[str]) -> None:
    from narrlit.errors import OptionError

    flags = ("--config", "-c")
    given = [v for f, v in zip(arguments, arguments[1:], strict=False) if f in flags]
    given += [a.partition("=")[2] for a in arguments if a.startswith("--config=")]
    for path in given:
        if not path.lstrip().startswith("{") and not Path(path).is_file():
            raise OptionError(f"--config {path}: no such file")


def _quiet() -> None:
    """Leave out notices that say nothing about the user's work."""
    import os

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    notices: list[tuple[str, Any]] = [
        (".*does not have many workers.*", UserWarning),
        (".*isinstance.treespec, LeafSpec.*", Warning),
        (".*Checkpoint directory .* exists and is not empty.*", UserWarning),
        (".*The number of training batches.*is smaller than the logging interval.*", UserWarning),
    ]
    for message, category in notices:
        warnings.filterwarnings("ignore", message, category)
    # The advertisement that Lightning prints at every start.
    logging.getLogger("lightning.pytorch.utilities.rank_zero").addFilter(
        lambda record: "litlogger" not in record.getMessage() and "💡" not in record.getMessage()
    )
