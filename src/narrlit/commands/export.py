"""narrlit export: write a run or a checkpoint as a sentence-transformers folder."""

from typing import Annotated, Literal

import narrlit
from narrlit.commands.options import LoadOptions, StoryOptions
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output, OutputOptions


def export(  # noqa: PLR0913 (options)
    source: str,
    *,
    out: Annotated[str, Output(continued=True)],
    reading: StoryOptions,
    to: Literal["onnx", "openvino"] | None = None,
    weights: Literal["float32", "float16", "int8"] = "float32",
    name: str | None = None,
    profile: str | None = None,
    trust_remote_code: bool = False,
    output_options: OutputOptions,
) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; or a model folder, a hub id, narrlit-mini or minilm.
        out: folder to write; must be new, empty, or with --overwrite an exported model.
        reading: fusion and post-processing to export with the model, and how the stories of --fit-on are read.
        to: also write a file in float32 for this backend of sentence-transformers.
        weights: also write a file with smaller weights for the backend; int8 for onnx.
        name: name of the model in its card, such as OWNER/NAME on a hub; default: that of the folder.
        profile: profile.json of this model (narrlit profile MODEL --out FOLDER), for what the card calls it good for.
        trust_remote_code: run Python files that come with the model; only for models from authors you trust.
        output_options: option to replace an exported model.
    """
    if reading.postprocess is None and reading != StoryOptions(fusion=reading.fusion):
        raise OptionError("options_need_fit_on")
    loading = LoadOptions(device="cpu", trust_remote_code=trust_remote_code)
    encoder = reading.load(source, loading, cache=None)
    overwrite = output_options.overwrite
    exported = narrlit.export(encoder, out, to=to, weights=weights, name=name, profile=profile, overwrite=overwrite)
    say(str(exported))
