"""narrlit fit, validate, test and predict: Lightning's command line over narrlit's objectives and data."""

import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.errors import OptionError

if TYPE_CHECKING:
    from narrlit.commands.lightning_cli import ParsedFit

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

SPACES = "spaces"
"""The folder of search spaces among the package's own configs."""


def run(name: str, arguments: Sequence[str]) -> int:
    """Run one of Lightning's stages; returns the exit code."""
    if list(arguments) in (["--help"], ["-h"], []):
        print(SHORT_HELP.format(name=name), end="")
        return 0
    if list(arguments) == ["--help", "all"]:
        arguments = ["--help"]
    quiet()
    from narrlit.commands.lightning_cli import StageCLI

    # Lightning relaunches by sys.argv for several processes, and warns where arguments come from elsewhere.
    sys.argv = [sys.argv[0], name, *with_found_configs(arguments)]
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    try:
        StageCLI.run(name)
    except MisconfigurationException as error:
        raise OptionError(str(error)) from error
    return 0


def parsed_fit(arguments: Sequence[str]) -> "ParsedFit":
    """What `narrlit fit` would make of its arguments: the data, no trainer; nothing is trained."""
    quiet()
    from narrlit.commands.lightning_cli import ParsedFit

    given = sys.argv
    sys.argv = [given[0], "fit", *with_found_configs(arguments)]
    try:
        return ParsedFit.run("fit")
    finally:
        sys.argv = given


def with_found_configs(arguments: Sequence[str]) -> list[str]:
    """The arguments with every --config as an existing file; `configs/NAME.yaml` comes with the package, too.

    Raises:
        OptionError: for a file that is in neither place.
    """
    found = list(arguments)
    for place, argument in enumerate(found):
        flag, equals, value = argument.partition("=")
        if flag not in ("--config", "-c"):
            continue
        if equals:
            found[place] = f"{flag}={find_config(value)}"
        elif place + 1 < len(found):
            found[place + 1] = find_config(found[place + 1])
    return found


def find_config(path: str, option: str = "--config") -> str:
    """A config file's path: as given, or, where there is none, among the package's own; `option` names it in errors.

    Args:
        path: a file, or a name among the package's own configs.
        option: that names it; `--space` names search spaces, which are no configs.

    Raises:
        OptionError: for a file that is in neither place.
    """
    if Path(path).is_file():
        return path
    inside = packaged_configs() / packaged_name(path)
    if not inside.is_file():
        folder = SPACES if option == "--space" else "."
        raise OptionError(f"{option} {path}: no such file; with narrlit come {', '.join(packaged_names(folder))}")
    return str(inside)


def packaged_name(path: str) -> Path:
    """What a config is called among the package's own; `configs/` may stand before it or not."""
    return Path(path).relative_to("configs") if Path(path).is_relative_to("configs") else Path(path)


def packaged_names(folder: str = ".") -> list[str]:
    """Names of the package's own configs in a folder of theirs and below it; search spaces, which are none, apart."""
    own = packaged_configs()
    found = sorted(str(file.relative_to(own)) for file in (own / folder).rglob("*.yaml"))
    return found if folder == SPACES else [name for name in found if not name.startswith(f"{SPACES}/")]


def packaged_configs() -> Path:
    """The folder of the configs that come with the package; in a checkout, the checkout's own."""
    package = Path(__file__).parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parents[1] / "configs"


def quiet() -> None:
    """Leave out notices that say nothing about the user's work."""
    import os

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    notices: list[tuple[str, Any]] = [
        (".*does not have many workers.*", UserWarning),
        (".*isinstance.treespec, LeafSpec.*", Warning),
        (".*You have overridden `on_before_batch_transfer` in `LightningModule`.*", UserWarning),
        (".*Checkpoint directory .* exists and is not empty.*", UserWarning),
        (".*The number of training batches.*is smaller than the logging interval.*", UserWarning),
    ]
    for message, category in notices:
        warnings.filterwarnings("ignore", message, category)
    # The advertisement that Lightning prints at every start.
    logging.getLogger("lightning.pytorch.utilities.rank_zero").addFilter(
        lambda record: "litlogger" not in record.getMessage() and "💡" not in record.getMessage()
    )
