"""narrlit export: write a run or a checkpoint as a sentence-transformers folder, and upload it."""

from typing import TYPE_CHECKING, Annotated, Literal

import narrlit
from narrlit.arguments import Deferred
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder


def export(  # noqa: PLR0913 (options)
    source: str,
    *,
    out: Annotated[str | None, Output(continued=True)] = None,
    encoder: "Deferred[StoryEncoder]",
    to: Literal["onnx", "openvino"] | None = None,
    weights: Literal["float32", "float16", "int8"] = "float32",
    name: str | None = None,
    profile: str | None = None,
    overwrite: bool = False,
    push: str | None = None,
    public: bool = False,
    dry_run: bool = False,
) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings; upload it.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; or a model folder, a hub id, narrlit-mini or minilm.
        out: folder to write; must be new, empty, or with --overwrite an exported model.
        encoder: fusion and post-processing to export with the model, and how the stories of --fit-on are read.
        to: also write a file in float32 for this backend of sentence-transformers.
        weights: also write a file with smaller weights for the backend; int8 for onnx.
        name: name of the model in its card, such as OWNER/NAME on a hub; default: that of the folder.
        profile: profile.json of this model (narrlit profile MODEL --out FOLDER), for what the card calls it good for.
        overwrite: replace an exported model.
        push: name of the model on a hub, OWNER/NAME, to upload it to; the token comes from HF_TOKEN or hf auth login.
            Without --out, an exported folder is sent as it is, and any other model is exported to a temporary folder.
        public: everybody can see the uploaded model; by default only its owner can.
        dry_run: only list the files to upload, with their sizes in bytes.
    """
    if push is None and (public or dry_run):
        raise OptionError("options_need_option", options=["public", "dry_run"], option="push")
    if out is None:
        if push is None:
            raise OptionError("out_or_push")
        if encoder.changed or overwrite or (to, weights, name, profile) != (None, "float32", None, None):
            raise OptionError("export_options_need_out")
        print(narrlit.push(source, push, public=public, dry_run=dry_run))
        return
    if encoder.get("postprocess") is None and set(encoder.changed) - {"fusion", "trust_remote_code"}:
        raise OptionError("options_need_fit_on")
    opened = encoder.open(model=source, device="cpu", cache=None)
    exported = narrlit.export(
        opened, out, to=to, weights=weights, name=name or push, profile=profile, overwrite=overwrite
    )
    say(str(exported))
    if push is not None:
        print(narrlit.push(exported.path, push, public=public, dry_run=dry_run))
