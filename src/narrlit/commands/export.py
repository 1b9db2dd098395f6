"""narrlit export: a sentence-transformers folder from a run or a checkpoint."""

from pathlib import Path

from narrlit.console import say
from narrlit.files import check_writable
from narrlit.models.fusion import fusion_of


def export(source: str, *, out: str, fusion: str | None = None, trust_remote_code: bool = False) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; a model folder, a hub id or minilm is copied.
        out: folder to write; must not exist or be empty.
        fusion: make it a model of stories and views, by weights of text, theme, action and outcome with commas
            between, or a preset: submitted, equal, full_only, higher_theme, action_only; a model of views has its own.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """
    weights = None if fusion is None else fusion_of(fusion)
    check_writable(out, folder=True)
    from narrlit import export as exporting
    from narrlit.models.view_encoder import fused
    from narrlit.options import LoadOptions, find_model

    encoder = fused(LoadOptions(device="cpu", trust_remote_code=trust_remote_code).load_named(source), weights)
    exporting.export(encoder, Path(out), find_model(source))
    say(f"{out}: {encoder.dimension} dimensions, {encoder.max_length} tokens at most")
