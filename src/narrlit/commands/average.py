"""narrlit average: average the weights of several training runs, or add up what they changed in the frozen encoder."""

from typing import Annotated

import narrlit
from narrlit.commands.options import listed
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output, OutputOptions


def average(
    models: str,
    *,
    out: Annotated[str, Output(continued=True)],
    trained_share: str = "1",
    trust_remote_code: bool = False,
    output_options: OutputOptions,
) -> None:
    """Average the weights of several training runs of one encoder, and write a folder that loads as a model.

    Args:
        models: comma-separated runs (their best checkpoints) or checkpoints.
        out: folder to write; must be new, empty, or with --overwrite an average of weights.
        trained_share: interpolation between the weights before training (0) and the mean of the trained weights (1);
            lower values keep more of the pretrained encoder. Comma-separated, the share of each model, whose changes
            are added up: 1,0.5.
        trust_remote_code: run Python files that come with the model; only for models from authors you trust.
        output_options: option to replace an average of weights.
    """
    averaged = narrlit.average(
        listed(models),
        out,
        trained_share=read_shares(trained_share),
        trust_remote_code=trust_remote_code,
        overwrite=output_options.overwrite,
    )
    say(str(averaged))


def read_shares(text: str) -> float | list[float]:
    """Parse one share, or comma-separated ones.

    >>> read_shares("0.8"), read_shares("1,0.5")
    (0.8, [1.0, 0.5])
    """
    try:
        shares = [float(share) for share in listed(text)]
    except ValueError as error:
        raise OptionError("invalid_shares", shares=text) from error
    return shares[0] if len(shares) == 1 else shares
