"""narrlit average: average the weights of several training runs, optionally with those of the frozen encoder."""

from typing import Annotated

import narrlit
from narrlit.commands.options import listed
from narrlit.console import say
from narrlit.files import Output, OutputOptions


def average(
    models: str,
    *,
    out: Annotated[str, Output(continued=True)],
    trained_share: float = 1.0,
    trust_remote_code: bool = False,
    output_options: OutputOptions,
) -> None:
    """Average the weights of several training runs of one encoder, and write a folder that loads as a model.

    Args:
        models: comma-separated runs (their best checkpoints) or checkpoints.
        out: folder to write; must be new, empty, or with --overwrite an average of weights.
        trained_share: interpolation between the weights before training (0) and the mean of the trained weights (1);
            lower values keep more of the pretrained encoder.
        trust_remote_code: run Python files that come with the model; only for models from authors you trust.
        output_options: option to replace an average of weights.
    """
    averaged = narrlit.average(
        listed(models),
        out,
        trained_share=trained_share,
        trust_remote_code=trust_remote_code,
        overwrite=output_options.overwrite,
    )
    say(str(averaged))
