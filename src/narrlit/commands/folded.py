"""A config whose training rows are divided into folds, for commands that make several fits of it."""

from typing import TYPE_CHECKING, Any

from narrlit.commands.fits import LOGGER, refuse_partial
from narrlit.commands.training import parsed_fit
from narrlit.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrlit.datamodules.fold_data import FoldData


def folded(fit: "Sequence[str]", division: dict[str, Any], purpose: str) -> tuple[dict[str, Any], "FoldData"]:
    """The fits' common configuration, and their data.

    Args:
        fit: options of `narrlit fit`.
        division: how FoldData divides the rows.
        purpose: what the fits are for, with its article, to say in which an option has no place.

    Raises:
        OptionError: for an option that would keep a fit from being a whole one, judged on all its rows.
    """
    if division["folds"] < 2:
        raise OptionError(f"--folds {division['folds']}: at least 2 are needed, one to judge and one to train")
    cli = parsed_fit(fit)
    from narrlit.datamodules.fold_data import FoldData

    config: dict[str, Any] = cli.as_dict()
    refuse_partial(config, purpose)
    if cli.model.marks()["mined_validation"]:
        raise OptionError(
            f"model.hard.mine_validation has no place in {purpose}: the judged rows would train; leave it out"
        )
    config["data"] = {
        "class_path": f"{FoldData.__module__}.{FoldData.__qualname__}",
        "init_args": {"source": config["data"], **division},
    }
    config["trainer"]["logger"] = LOGGER
    return config, FoldData(cli.datamodule, **division)
