"""Public functions: embed stories, compare them, evaluate an encoder. Import them from `narrlit`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.data.readers import read_triples
from narrlit.data.schema import Story, Triples
from narrlit.errors import DataError
from narrlit.metrics.significance import AccuracySummary
from narrlit.metrics.triples import TripleAccuracy
from narrlit.models.embedding import embed as embed_stories
from narrlit.models.embedding import score_triples
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder

Model: TypeAlias = str | Path | Encoder
Stories: TypeAlias = Sequence[str] | Sequence[Story]


def embed(
    stories: Stories,
    model: Model = "minilm",
    *,
    role: Literal["story", "anchor", "candidate"] = "story",
    progress: bool = False,
) -> NDArray[np.float32]:
    """Embed stories.

    Args:
        stories: N texts, or stories as `read_stories` returns them.
        model: a model folder, a run folder, a checkpoint, a hub id, `minilm`, or an encoder from `load_encoder`, which
            saves loading it again.
        role: the prompt that precedes each story, for models with a prompt for each role.
        progress: show a progress bar on stderr.

    Returns:
        (N, D) embeddings, row i for story i. Models that narrlit trains give unit vectors.

    Raises:
        DataError: if `stories` is a single string, or the model needs views that a story lacks.
        ModelError: if the model cannot be loaded.

    >>> embed(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
    (2, 384)
    """
    if isinstance(stories, str):
        raise DataError("stories is a single string; pass a list of texts, such as [text]")
    return embed_stories(_encoder(model), stories, role=role, progress=progress).embeddings


def similarity(stories: Stories, model: Model = "minilm") -> NDArray[np.float32]:
    """Compute the cosine similarity of every pair of stories.

    Args:
        stories: N texts, or stories as `read_stories` returns them.
        model: see `embed`.

    Returns:
        (N, N) cosines from -1 to 1; symmetric, with ones on the diagonal.

    Raises:
        DataError: if `stories` is a single string.
        ModelError: if the model cannot be loaded.

    >>> cosines = similarity(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> bool(cosines[0, 1] > cosines[0, 2])
    True
    """
    embeddings = embed(stories, model)
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    unit = embeddings / np.maximum(norms, np.finfo(np.float32).tiny)
    cosines: NDArray[np.float32] = np.clip(unit @ unit.T, -1.0, 1.0)
    return cosines


def evaluate(
    triples: str | Path | Triples,
    model: Model = "minilm",
    labels: str | Path | None = None,
    *,
    progress: bool = False,
) -> AccuracySummary:
    """Compute an encoder's accuracy on labeled triples, as SemEval-2026 Task 4 does; a tie counts as B.

    Args:
        triples: a file of labeled triples, or triples as `read_triples` returns them.
        model: see `embed`.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        progress: show a progress bar on stderr.

    Returns:
        A summary with `accuracy`, `n`, `correct`, `ties` and `interval` (95 %, Wilson); it prints as
        `0.550 [0.481, 0.617] (110 of 200)`.

    Raises:
        DataError: if the triples cannot be read, or one has no label.
        ModelError: if the model cannot be loaded.
    """
    if isinstance(triples, Triples):
        if labels is not None:
            raise DataError("labels belong to a file of triples; pass them to read_triples instead")
    else:
        triples = read_triples(triples, labels=labels)
    truth = triples.labels
    if len(truth) == 0 or (truth < 0).any():
        raise DataError(f"{int((truth < 0).sum())} of {len(truth)} triples have no label; pass labels=FILE")
    scores = torch.from_numpy(score_triples(_encoder(model), triples, progress=progress).scores)
    metric = TripleAccuracy()
    metric.update(scores[:, 0], scores[:, 1], torch.from_numpy(truth == 1))
    return metric.summary()


def _encoder(model: Model) -> Encoder:
    return model if isinstance(model, Encoder) else load_encoder(str(model))
