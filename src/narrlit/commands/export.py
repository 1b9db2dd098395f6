"""narrlit export: write a run or a checkpoint as a sentence-transformers folder."""

from typing import TYPE_CHECKING, Annotated, Literal

import narrlit
from narrlit.arguments import Deferred
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder


def export(
    source: str,
    *,
    out: Annotated[str, Output(continued=True)],
    encoder: "Deferred[StoryEncoder]",
    to: Literal["onnx", "openvino"] | None = None,
    weights: Literal["float32", "float16", "int8"] = "float32",
    name: str | None = None,
    profile: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; or a model folder, a hub id, narrlit-mini or minilm.
        out: folder to write; must be new, empty, or with --overwrite an exported model.
        encoder: fusion and post-processing to export with the model, and how the stories of --fit-on are read.
        to: also write a file in float32 for this backend of sentence-transformers.
        weights: also write a file with smaller weights for the backend; int8 for onnx.
        name: name of the model in its card, such as OWNER/NAME on a hub; default: that of the folder.
        profile: profile.json of this model (narrlit profile MODEL --out FOLDER), for what the card calls it good for.
        overwrite: replace an exported model.
    """
    if encoder.get("postprocess") is None and set(encoder.changed) - {"fusion", "trust_remote_code"}:
        raise OptionError("options_need_fit_on")
    opened = encoder.open(model=source, device="cpu", cache=None)
    exported = narrlit.export(opened, out, to=to, weights=weights, name=name, profile=profile, overwrite=overwrite)
    say(str(exported))
