"""Embeddings of many stories: each different text or sentence once, in passes of texts of like length."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F
from tqdm import tqdm

from narrlit.data.batch import PackedStories
from narrlit.data.schema import FloatArray, IntArray, Story, Triples, triple_cosines
from narrlit.errors import DataError, ModelError
from narrlit.models.config import PARTS, Role
from narrlit.models.encoder import Encoder, token_chunks
from narrlit.models.onednn import fused_linears
from narrlit.preprocessing.sentences import split_sentences

TEXTS_PER_SPAN = 4096
"""Texts tokenized at a time, so that a large collection neither waits for its last text nor fills the memory."""
TOKENS_PER_PASS = {"cpu": 8192, "cuda": 65536}
STORIES_PER_PASS = 256
TRIPLE_ROLES: list[Role] = ["anchor", "candidate", "candidate"]
T = TypeVar("T", bound=Hashable)
VIEWS_REMEDY = "give --views FILE, or --missing-views positional to take them by position"


class Embeddings(NamedTuple):
    """Embeddings (N, D) of N stories, of parts (N, 4, D), and the number of different texts that were cut.

    These are sentences, or texts and views, where the encoder reads those.
    """

    embeddings: FloatArray
    truncated: int


class Scores(NamedTuple):
    """Cosines (N, 2) of N triples' anchors with A and with B; `truncated` as in `Embeddings`."""

    scores: NDArray[np.float64]
    truncated: int


def embed(encoder: Encoder, stories: Sequence[Story | str], role: Role = "story", progress: bool = True) -> Embeddings:
    """Embed N stories or texts, repeated ones once, with the role's prompt, on the encoder's device.

    Raises:
        DataError: for a story without a sentence or without views, if the encoder reads those.
        ModelError: if an embedding is not finite or all zeros.
    """
    from narrlit.models.heads import apply_head

    if encoder.views is not None:
        needed = [position for position, weight in enumerate(encoder.views.weights) if weight]
        parts, truncated = part_embeddings(encoder, stories, role, progress, needed)
        embeddings = _checked(encoder.views.fuse(torch.from_numpy(parts)).numpy(), encoder)
    else:
        texts = [story if isinstance(story, str) else story.text for story in stories]
        embeddings, truncated = _embed(encoder, texts, role, progress)
    if encoder.post is not None:
        with torch.inference_mode():
            features = torch.from_numpy(embeddings).to(next(encoder.post.parameters()))
            vectors = apply_head(encoder.post, features)
        embeddings = _checked(vectors.float().cpu().numpy(), encoder)
    return Embeddings(embeddings, truncated)


def part_embeddings(
    encoder: Encoder,
    stories: Sequence[Story | str],
    role: Role = "story",
    progress: bool = True,
    needed: Sequence[int] = range(len(PARTS)),
) -> Embeddings:
    """Embed the text and the views of each of N stories, as `embed` does; heads of views are applied.

    Returns unit vectors (N, 4, D) in the order of PARTS, zeros for parts whose positions are not `needed`.
    """
    texts, chosen = _parts(stories), list(needed)
    flat, truncated = _embed(encoder, [own[part] for own in texts for part in chosen], role, progress)
    embeddings = np.zeros((len(stories), len(PARTS), flat.shape[1]), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(stories), STORIES_PER_PASS):
            span = slice(start, start + STORIES_PER_PASS)
            embeddings[span, chosen] = flat.reshape(len(stories), len(chosen), -1)[span]
            vectors = torch.from_numpy(embeddings[span]).to(encoder.device)
            vectors = F.normalize(vectors, dim=-1) if encoder.views is None else encoder.views.parts(vectors)
            embeddings[span] = vectors.float().cpu().numpy()
    embeddings[:, [part for part in range(len(PARTS)) if part not in chosen]] = 0
    return Embeddings(embeddings, truncated)


def embed_roles(
    encoder: Encoder, stories: Sequence[Story | str], roles: Sequence[Role], progress: bool = True
) -> Embeddings:
    """Embed N stories, each in its role, as `embed` does; where all roles have one prompt, different stories once."""
    embeddings = np.empty((len(stories), encoder.dimension), dtype=np.float32)
    truncated = 0
    for role in dict.fromkeys(roles[:1] if encoder.symmetric else roles):
        rows = [row for row in range(len(stories)) if encoder.symmetric or roles[row] == role]
        different, inverse = unique([stories[row] for row in rows])
        found = embed(encoder, different, role, progress)
        embeddings[rows] = found.embeddings[inverse]
        truncated += found.truncated
    return Embeddings(embeddings, truncated)


def score_triples(encoder: Encoder, triples: Triples, progress: bool = True) -> Scores:
    """Compute the cosines of each triple's anchor with both candidates, every different story embedded once a role."""
    stories = [triples.stories[index] for index in triples.indices.ravel().tolist()]
    embeddings, truncated = embed_roles(encoder, stories, TRIPLE_ROLES * len(triples), progress)
    return Scores(triple_cosines(embeddings.reshape(len(triples), 3, encoder.dimension)), truncated)


def unique(texts: Sequence[T]) -> tuple[list[T], IntArray]:
    """Return each different text or story once, in order of appearance, and every text's position among them.

    >>> unique(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    index_of: dict[T, int] = {}
    positions = np.array([index_of.setdefault(text, len(index_of)) for text in texts], dtype=np.int64)
    return list(index_of), positions


def _parts(stories: Sequence[Story | str]) -> list[tuple[str, ...]]:
    parts: list[tuple[str, ...]] = []
    for i in range(len(stories)):
        story = stories[i]
        if isinstance(story, str) or story.views is None:
            raise DataError(f"story {i + 1} of {len(stories)} has no views, which this model reads: {VIEWS_REMEDY}")
        parts.append((story.text, *story.views.texts))
    return parts


def _embed(encoder: Encoder, texts: Sequence[str], role: Role, progress: bool) -> Embeddings:
    """Embed texts, each different one once, before any fusion of views."""
    different, inverse = unique(texts)
    function = _embed_texts if encoder.sentences is None else _embed_sentences
    embeddings, truncated = function(encoder, different, role, progress)
    return Embeddings(_checked(embeddings, encoder)[inverse], truncated)


def _embed_texts(encoder: Encoder, texts: list[str], role: Role, progress: bool) -> tuple[FloatArray, int]:
    device = encoder.device
    embeddings = np.empty((len(texts), encoder.text_dimension), dtype=np.float32)
    truncated = 0
    bar = tqdm(total=len(texts), desc="embedding", unit="text", disable=not progress, delay=0.5)
    with bar, torch.inference_mode(), fused_linears(encoder.transformer):
        for start in range(0, len(texts), TEXTS_PER_SPAN):
            ids, cut = encoder.tokenize(texts[start : start + TEXTS_PER_SPAN], role)
            truncated += cut
            for chunk in token_chunks([len(x) for x in ids], TOKENS_PER_PASS.get(device.type, 8192), padded=True):
                flat = torch.tensor([token for i in chunk for token in ids[i]])
                lengths = tuple(len(ids[i]) for i in chunk)
                vectors = encoder(PackedStories(flat, lengths, torch.arange(len(chunk))).to(device))
                embeddings[[start + i for i in chunk]] = vectors.float().cpu().numpy()
                bar.update(len(chunk))
    return embeddings, truncated


def _embed_sentences(encoder: Encoder, texts: list[str], role: Role, progress: bool) -> tuple[FloatArray, int]:
    from narrlit.models.heads import apply_head

    pieces = [split_sentences(text) for text in texts]
    lengths = [len(own) for own in pieces]
    if 0 in lengths:
        raise DataError(
            f"different story {lengths.index(0) + 1} of {len(texts)} is blank and has no sentence: remove it"
        )
    different, inverse = unique([piece for own in pieces for piece in own])
    flat, truncated = _embed_texts(encoder, different, role, progress)
    embeddings = np.empty((len(texts), encoder.sentences.output), dtype=np.float32)  # type: ignore[union-attr]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    bar = tqdm(total=len(texts), desc="reading sentences", unit="story", disable=not progress, delay=0.5)
    with bar, torch.inference_mode():
        for start in range(0, len(texts), STORIES_PER_PASS):
            end = min(start + STORIES_PER_PASS, len(texts))
            features = torch.from_numpy(flat[inverse[bounds[start] : bounds[end]]]).to(encoder.device)
            vectors = apply_head(encoder.sentences, features, lengths[start:end])  # type: ignore[arg-type]
            embeddings[start:end] = vectors.float().cpu().numpy()
            bar.update(end - start)
    return embeddings, truncated


def _checked(embeddings: FloatArray, encoder: Encoder) -> FloatArray:
    if not np.isfinite(embeddings).all() or not embeddings.any(axis=1).all():
        raise ModelError(
            f"{encoder.config.model} gives embeddings with NaN or infinity, or of zeros alone: its weights are broken, "
            f"or {encoder.config.dtype} is too narrow for it"
        )
    return embeddings
