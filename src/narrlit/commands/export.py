"""narrlit export: a sentence-transformers folder from a run or a checkpoint."""

from pathlib import Path

from narrlit.commands.devices import say
from narrlit.files import check_writable


def export(source: str, *, out: str, trust_remote_code: bool = False) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same vectors.

    Args:
        source: a run directory (its best checkpoint) or a checkpoint; a folder, hub id or minilm is copied.
        out: the folder to write; must not exist or be empty.
        trust_remote_code: run Python files that come with the model.
    """
    check_writable(out, folder=True)
    from narrlit import export as exporting
    from narrlit.models.source import load_encoder

    encoder = load_encoder(source, trust_remote_code)
    exporting.export(encoder, Path(out), source)
    say(f"{out}: {encoder.dimension} numbers a story, {encoder.max_length} tokens at most")
