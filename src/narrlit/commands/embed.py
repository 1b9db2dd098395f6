"""narrlit embed: vectors of stories, in a file."""

from pathlib import Path

from narrlit.commands.devices import Device, pick_device, say, say_truncated
from narrlit.data.readers import read_stories
from narrlit.errors import OptionError
from narrlit.files import check_writable
from narrlit.models.config import Role

SUFFIXES = (".npy", ".jsonl", ".parquet")


def embed(
    stories: str,
    *,
    model: str,
    out: str,
    max_length: int | None = None,
    role: Role | None = None,
    device: Device = "auto",
    drop_invalid: bool = False,
    trust_remote_code: bool = False,
) -> None:
    """Write one vector a story, in the stories' order.

    Args:
        stories: JSON Lines or CSV with a text column (and an id, if there is one), or text with a story a line.
        model: a folder, a run directory, a checkpoint, a hub id or minilm.
        out: file to write; .npy: the numbers alone; .jsonl and .parquet: row, id, text and embedding.
        max_length: tokens of a story that are read; as the model says if not given.
        role: whose prompt stands before the stories, where the model has one for anchors and another for candidates;
            such vectors compare with those of the other role alone.
        device: where to compute.
        drop_invalid: leave out rows without a text, and count them, instead of stopping at the first.
        trust_remote_code: run Python files that come with the model.
    """
    target = Path(out)
    if target.suffix not in SUFFIXES:
        raise OptionError(f"--out {out}: name a file that ends in {', '.join(SUFFIXES)}")
    check_writable(target)
    if target.suffix == ".parquet":
        from narrlit.optional import require

        require("pyarrow", "parquet")
    reading = read_stories(stories, strict=not drop_invalid)
    say(reading.summary())
    from narrlit.models import embedding
    from narrlit.models.source import load_encoder
    from narrlit.vectors import write_vectors

    encoder = load_encoder(model, trust_remote_code, max_length).to(pick_device(device))
    if role is None:
        encoder.require_one_prompt("embed without --role")
    vectors, cut = embedding.embed(encoder, [story.text for story in reading.records], role or "story")
    say_truncated(cut, encoder.max_length, *encoder.pieces)
    write_vectors(target, reading.records, vectors)
    say(f"{target}: {len(vectors)} vectors of {vectors.shape[1]} numbers")
