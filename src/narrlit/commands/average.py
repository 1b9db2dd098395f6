"""narrlit average: one model of several trainings, nearer to the frozen encoder if wanted."""

from typing import Annotated

import narrlit
from narrlit.commands.options import listed
from narrlit.console import say
from narrlit.files import Output


def average(
    models: str,
    *,
    out: Annotated[str, Output(continued=True)],
    trained_share: float = 1.0,
    trust_remote_code: bool = False,
) -> None:
    """Average the weights of trainings of one encoder, and write them to a folder that loads as a model.

    Args:
        models: runs (their best checkpoints) or checkpoints, with commas between.
        out: folder to write; must not exist or be empty.
        trained_share: 1: the mean; 0: the weights before training; between: what the encoder knew is kept in part.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """
    say(str(narrlit.average(listed(models), out, trained_share=trained_share, trust_remote_code=trust_remote_code)))
