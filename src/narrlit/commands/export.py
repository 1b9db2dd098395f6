"""narrlit export: a sentence-transformers folder from a run or a checkpoint."""

from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output, check_writable
from narrlit.options import LoadOptions, StoryOptions


def export(
    source: str, *, out: Annotated[str, Output(continued=True)], read: StoryOptions, trust_remote_code: bool = False
) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; a model folder, a hub id or minilm is copied.
        out: folder to write; must not exist or be empty.
        read: what is written with the model, --fusion and --postprocess, and how the stories of --fit-on are read.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """
    if read.postprocess is None and read != StoryOptions(fusion=read.fusion):
        raise OptionError(
            "--views and --pseudonymize, with their options, are for the stories of --fit-on: leave them out"
        )
    check_writable(out, folder=True)
    from narrlit import export as exporting
    from narrlit.encoding.loading import open_encoder
    from narrlit.encoding.story_texts import StoryTexts
    from narrlit.models.registry import find_checkpoint
    from narrlit.models.weights import CONFIG

    use = LoadOptions(device="cpu", trust_remote_code=trust_remote_code)
    if read.postprocess is None:  # no story is read, so that names and views do not matter
        loaded = open_encoder(source, texts=StoryTexts(), loading=use.loading, fusion=read.fusion)
        postprocess = None
    else:
        loaded = read.load(source, use, cache=None).fitted_for([])
        postprocess = loaded.about["postprocess"]
    encoder = loaded.with_postprocessing_inside()
    trained = find_checkpoint(source) is not None or (Path(source) / CONFIG).is_file()
    exporting.export(encoder, Path(out), source, trained=trained, postprocess=postprocess)
    say(f"{out}: {encoder.dimension} dimensions, {encoder.max_length} tokens at most")
