"""Public functions that embed and compare stories; import them from `narrlit`."""

from collections.abc import Sequence
from os import PathLike
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import Story
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.models.config import DEFAULT_MODEL, Role

EncoderLike: TypeAlias = str | PathLike[str] | StoryEncoder


def embed(
    stories: Sequence[str] | Sequence[Story],
    encoder: EncoderLike = DEFAULT_MODEL,
    *,
    role: Role = "story",
    progress: bool = False,
) -> NDArray[np.float32]:
    """Embed stories.

    Args:
        stories: N texts, or stories as `read_stories` returns them.
        encoder: a model folder, a run folder, a checkpoint, a hub id, `narrlit-mini`, `minilm`, or an encoder from
            `narrlit.load`, which is not loaded again.
        role: role whose prompt precedes each story, for models with separate prompts for anchors and candidates.
        progress: show a progress bar on stderr.

    Returns:
        (N, D) embeddings; row i belongs to story i. Models trained with narrlit give unit vectors.

    Raises:
        DataError: if `stories` is a single string, or the model needs views that a story lacks.
        ModelError: if the model cannot be loaded.

    >>> embed(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
    (2, 384)
    """
    return encoder_of(encoder).embed(stories, role, progress)


def similarity(stories: Sequence[str] | Sequence[Story], encoder: EncoderLike = DEFAULT_MODEL) -> NDArray[np.float32]:
    """Compute the cosine similarity of every pair of stories.

    Args:
        stories: N texts, or stories as `read_stories` returns them.
        encoder: see `embed`.

    Returns:
        (N, N) cosines from -1 to 1; symmetric, with ones on the diagonal.

    Raises:
        DataError: if `stories` is a single string.
        ModelError: if the model cannot be loaded.

    >>> cosines = similarity(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> bool(cosines[0, 1] > cosines[0, 2])
    True
    """
    embeddings = embed(stories, encoder)
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    unit = embeddings / np.maximum(norms, np.finfo(np.float32).tiny)
    cosines: NDArray[np.float32] = np.clip(unit @ unit.T, -1.0, 1.0)
    return cosines


def encoder_of(encoder: EncoderLike) -> StoryEncoder:
    """Load the encoder with the given name; return an encoder unchanged."""
    return encoder if isinstance(encoder, StoryEncoder) else load(encoder)
