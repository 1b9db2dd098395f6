"""A config whose training rows are divided into folds, for commands that make several fits of it."""

from typing import TYPE_CHECKING, Any

from narrlit.commands.fits import LOGGER
from narrlit.commands.training import parsed_fit
from narrlit.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrlit.datamodules.folds import FoldData


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
    from narrlit.datamodules.folds import FoldData

    config: dict[str, Any] = cli.as_dict()
    _refuse(config, purpose)
    config["data"] = {
        "class_path": f"{FoldData.__module__}.{FoldData.__qualname__}",
        "init_args": {"source": config["data"], **division},
    }
    config["trainer"]["logger"] = LOGGER
    return config, FoldData(cli.datamodule, **division)


def selectors(config: dict[str, Any]) -> list[str]:
    """Callbacks that decide by the judged rows, so that even the last epoch is not free of them."""
    callbacks = config["trainer"]["callbacks"] or []
    names = [str(entry["class_path"]).rpartition(".")[2] for entry in callbacks]
    return [name for name in names if name in ("EarlyStopping", "TeacherPromotion")]


def _refuse(config: dict[str, Any], purpose: str) -> None:
    trainer = config["trainer"]
    refused = {
        "--ckpt_path": (config["ckpt_path"], "every fit begins anew"),
        "--checkpoint.dirpath": (config["checkpoint"]["dirpath"], "each fit keeps its own checkpoints"),
        "--last_checkpoint.dirpath": (config["last_checkpoint"]["dirpath"], "each fit keeps its own checkpoints"),
        "--trainer.limit_val_batches": (_is_part(trainer["limit_val_batches"]), "every row is judged"),
        "--trainer.overfit_batches": (trainer["overfit_batches"], "every row is judged"),
        "--trainer.val_check_interval": (_is_part(trainer["val_check_interval"]), "each epoch is judged at its end"),
        "--trainer.check_val_every_n_epoch": (trainer["check_val_every_n_epoch"] != 1, "every epoch is judged"),
        "--trainer.fast_dev_run": (trainer["fast_dev_run"], "it leaves no record"),
    }
    for option, (given, reason) in refused.items():
        if given:
            raise OptionError(f"{option} has no place in {purpose}: {reason}; leave it out")


def _is_part(batches: float | None) -> bool:
    """Whether a number of batches is not the whole epoch: a whole number counts them, 1.0 is all of them."""
    return batches is not None and (isinstance(batches, int) or batches != 1)
