"""narrlit export: a sentence-transformers folder from a run or a checkpoint."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LoadOptions, StoryOptions
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output


def export(
    source: str, *, out: Annotated[str, Output(continued=True)], reading: StoryOptions, trust_remote_code: bool = False
) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; or a model folder, a hub id, narrlit-mini or minilm.
        out: folder to write; must not exist or be empty.
        reading: what is written with the model, and how the stories that it is fitted on are read.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """
    if reading.postprocess is None and reading != StoryOptions(fusion=reading.fusion):
        raise OptionError(
            "--views and --pseudonymize, with their options, are for the stories of --fit-on: leave them out"
        )
    loading = LoadOptions(device="cpu", trust_remote_code=trust_remote_code)
    say(str(narrlit.export(reading.load(source, loading, cache=None), out)))
