"""narrlit export: a sentence-transformers folder from a run or a checkpoint."""

from pathlib import Path

from narrlit.commands.devices import say
from narrlit.files import check_writable
from narrlit.models.fusion import fusion_of


def export(source: str, *, out: str, fusion: str | None = None, trust_remote_code: bool = False) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same vectors.

    Args:
        source: a run directory (its best checkpoint) or a checkpoint; a folder, hub id or minilm is copied.
        out: the folder to write; must not exist or be empty.
        fusion: make it a model of stories joined with views, by these weights of text, theme, plot and outcome, or by
            submitted, equal, full_only, higher_theme or action_only; a model of views has its own if not given.
        trust_remote_code: run Python files that come with the model.
    """
    weights = None if fusion is None else fusion_of(fusion)
    check_writable(out, folder=True)
    from narrlit import export as exporting
    from narrlit.models.source import load_encoder
    from narrlit.models.view_encoder import fused

    encoder = fused(load_encoder(source, trust_remote_code), weights)
    exporting.export(encoder, Path(out), source)
    say(f"{out}: {encoder.dimension} numbers a story, {encoder.max_length} tokens at most")
