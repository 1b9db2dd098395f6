"""narrlit embed: vectors of stories, in a file."""

from pathlib import Path

from narrlit.commands.devices import say, say_truncated
from narrlit.commands.model_options import ModelOptions
from narrlit.commands.story_options import StoryOptions
from narrlit.data.readers import read_stories
from narrlit.errors import OptionError
from narrlit.files import check_writable
from narrlit.models.config import Role

SUFFIXES = (".npy", ".jsonl", ".parquet")


def embed(
    stories: str,
    *,
    use: ModelOptions,
    read: StoryOptions,
    out: str,
    role: Role | None = None,
    drop_invalid: bool = False,
) -> None:
    """Write one vector a story, in the stories' order.

    Args:
        stories: JSON Lines or CSV with a text column (and an id, if there is one), or text with a story a line.
        use: the model.
        read: what it reads of a story.
        out: file to write; .npy: the numbers alone; .jsonl and .parquet: row, id, text and embedding.
        role: whose prompt stands before the stories, where the model has one for anchors and another for candidates;
            such vectors compare with those of the other role alone.
        drop_invalid: leave out rows without a text, and count them, instead of stopping at the first.
    """
    if use.model is None:
        raise OptionError("give --model M")
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
    from narrlit.vectors import write_vectors

    texts = read.stories(reading.records)
    encoder = read.encoder(use)
    if role is None:
        encoder.require_one_prompt("embed without --role")
    vectors, cut = embedding.embed(encoder, texts, role or "story")
    say_truncated(cut, encoder.max_length, *encoder.pieces)
    write_vectors(target, reading.records, vectors)
    say(f"{target}: {len(vectors)} vectors of {vectors.shape[1]} numbers")
