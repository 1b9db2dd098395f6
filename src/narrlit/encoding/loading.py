"""`narrlit.load`: load a story encoder by name."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from narrlit.console import say
from narrlit.data.schema import Story
from narrlit.encoding.options import Device, Loading
from narrlit.encoding.postprocessing import Postprocessing, postprocessing_of
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.encoding.story_texts import StoryTexts, story_texts
from narrlit.errors import ModelError, nearest
from narrlit.models.checkpoints import pseudonyms_of
from narrlit.models.config import DEFAULT_MODEL, Fusion, Long, Precision, parse_fusion
from narrlit.preprocessing.pseudonyms import PseudonymOptions

if TYPE_CHECKING:
    from narrlit.models.encoder import Encoder


def load(  # noqa: PLR0913 (everything that affects an embedding)
    model: "str | PathLike[str] | Encoder" = DEFAULT_MODEL,
    *,
    max_length: int | None = None,
    long: Long = "windows",
    precision: Precision | None = None,
    device: Device = "auto",
    views: str | Path | Sequence[str] | None = None,
    missing_views: Literal["refuse", "positional"] = "refuse",
    pseudonyms: PseudonymOptions | bool = False,
    fusion: Fusion | str | None = None,
    postprocess: str | None = None,
    fit_on: str | Path | Sequence[str] | Sequence[Story] = (),
    transductive: bool = False,
    cache: str | Path | None = None,
    trust_remote_code: bool = False,
) -> StoryEncoder:
    """Load a model, with all settings for reading and embedding stories.

    The weights are loaded when the first story is embedded.

    Args:
        model: a model folder, a run, a checkpoint, a hub id, `narrlit-mini` or `minilm`; or a loaded encoder.
        max_length: maximum length of a text in tokens; None: that of the model's training.
        long: how to handle longer texts: `windows` averages the embeddings of overlapping windows of whole sentences,
            `truncate` cuts the texts as in training, `refuse` raises an error.
        precision: number format of computations: `bf16`, `fp32` or `auto`; None: the model's own.
        device: device for computations; `auto` is a GPU if there is one.
        views: file of views (text, theme, plot_events or course_of_action, outcome), or several files.
        missing_views: how to handle stories without views: refuse them, or split their text into views by position.
        pseudonyms: replace names, found by spaCy, with placeholders.
        fusion: fusion weights of text, theme, action and outcome (a name in `PRESETS`, or four comma-separated
            numbers); None: the model's own.
        postprocess: comma-separated post-processing steps: `center`, `abtt:K` (remove the first K principal
            components), `whiten`, `truncate:N` (keep the first N dimensions).
        fit_on: stories, or files of stories, on which the post-processing is fitted; stories that are also embedded are
            excluded.
        transductive: also fit the post-processing on the embedded stories. The result is not valid for Track B.
        cache: folder of the embedding cache, which avoids embedding a text twice; None: no cache. The command line uses
            `runs/embeddings`.
        trust_remote_code: run Python files that come with the model; only for models from authors you trust.

    Returns:
        The encoder: `.embed(stories)`, `.score(triples)`, `.passages(stories)`, `.fingerprint`, `.record`.

    Raises:
        ModelError: if the model does not exist.
        OptionError: if an option is invalid, or needs another option.

    >>> encoder = load("minilm", max_length=128)
    >>> encoder.embed(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
    (2, 384)
    >>> encoder.fingerprint == load("minilm", max_length=64).fingerprint
    False
    """
    return open_encoder(
        model,
        texts=story_texts(views, missing_views, pseudonyms),
        loading=Loading(max_length, long, precision, device, trust_remote_code),
        fusion=fusion,
        postprocessing=postprocessing_of(postprocess, fit_on, transductive),
        cache=cache,
    )


def open_encoder(
    model: "str | PathLike[str] | Encoder",
    *,
    texts: StoryTexts,
    loading: Loading = Loading(),
    fusion: Fusion | str | None = None,
    postprocessing: Postprocessing | None = None,
    cache: str | Path | None = None,
) -> StoryEncoder:
    """Create the encoder of a model from settings; raise ModelError if the model does not exist."""
    model = fspath(model) if isinstance(model, PathLike) else model
    encoder = StoryEncoder(
        model,
        texts=texts,
        loading=loading,
        fusion=parse_fusion(fusion) if isinstance(fusion, str) else fusion,
        postprocessing=postprocessing,
        cache=cache,
    )
    if isinstance(model, str):
        _check_exists(model)
        _warn_of_pseudonyms(model, texts)
    return encoder


def _check_exists(model: str) -> None:
    """Refuse the path of a missing model, and suggest similar ones."""
    path = Path(model)
    names_a_folder = path.parent != Path() and (path.parent.is_dir() or path.parts[0] == "runs")
    if path.exists() or not names_a_folder:
        return
    siblings = sorted(child.name for child in path.parent.glob("[!.]*"))
    raise ModelError(
        "missing_model",
        model=model,
        near=nearest(path.name, siblings),
        folder=path.parent,
        found=", ".join(siblings[:8]) or "nothing",
    )


def _warn_of_pseudonyms(model: str, texts: StoryTexts) -> None:
    """Warn if a model was trained on pseudonymized stories, but will read stories with names."""
    trained = pseudonyms_of(model)
    if trained is not None and texts.pseudonyms is None:
        say(
            f"warning: {model} was trained on stories with placeholders instead of names: "
            f"pseudonymize these stories too (scope {trained.scope} for triples)"
        )
