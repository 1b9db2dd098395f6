"""narrlit export: a sentence-transformers folder from a run or a checkpoint."""

from pathlib import Path

from narrlit.console import say
from narrlit.files import check_writable
from narrlit.models.config import parse_fusion
from narrlit.options import LoadOptions


def export(source: str, *, out: str, fusion: str | None = None, trust_remote_code: bool = False) -> None:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        source: a run folder (its best checkpoint) or a checkpoint; a model folder, a hub id or minilm is copied.
        out: folder to write; must not exist or be empty.
        fusion: make it a model of stories and views, by weights of text, theme, action and outcome with commas
            between, or a preset: submitted, equal, full_only, higher_theme, action_only; a model of views has its own.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """
    weights = None if fusion is None else parse_fusion(fusion)
    check_writable(out, folder=True)
    from narrlit import export as exporting
    from narrlit.models.registry import find_checkpoint, with_fusion
    from narrlit.models.weights import CONFIG

    encoder = LoadOptions(device="cpu", trust_remote_code=trust_remote_code).load_named(source)
    trained = find_checkpoint(source) is not None or (Path(source) / CONFIG).is_file()
    exporting.export(with_fusion(encoder, weights), Path(out), source, trained=trained)
    say(f"{out}: {encoder.dimension} dimensions, {encoder.max_length} tokens at most")
