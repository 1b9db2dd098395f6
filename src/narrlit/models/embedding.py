"""Embeddings of many stories: each different text or sentence once, in passes of texts of like length."""

from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F
from tqdm import tqdm

from narrlit.data.batch import PackedStories
from narrlit.data.schema import FloatArray, IntArray, Story
from narrlit.errors import DataError, ModelError, printable
from narrlit.models.config import PARTS, Role
from narrlit.models.coverage import LEAST, Coverage
from narrlit.models.encoder import Encoder, token_chunks
from narrlit.models.onednn import fused_linears
from narrlit.preprocessing.sentences import split_sentences

TEXTS_PER_SPAN = 4096
"""Texts tokenized at a time, which bounds the memory of large collections."""
TEXTS_TO_FUSE = 64
"""Fewest texts for which fused layers save more time than preparing them takes."""
TOKENS_PER_PASS = {"cpu": 8192, "cuda": 65536}
STORIES_PER_PASS = 256
T = TypeVar("T", bound=Hashable)
VIEWS_REMEDY = "give `views`, or `missing_views=positional` to take them by position"


class Embeddings(NamedTuple):
    """Embeddings of N stories, and how much of the stories was read.

    Attributes:
        embeddings: (N, D), or (N, 4, D) of their parts.
        coverage: of the different stories.
        readings: (N, 5) of each story, as `Coverage.of_rows` takes them.
    """

    embeddings: FloatArray
    coverage: Coverage
    readings: NDArray[np.float64]


def embed(encoder: Encoder, stories: Sequence[Story | str], role: Role = "story", progress: bool = True) -> Embeddings:
    """Embed N stories or texts, repeated ones once, with the role's prompt, on the encoder's device.

    Raises:
        DataError: for a story without a sentence or without views, if the encoder reads those.
        ModelError: if an embedding is not finite or all zeros.
    """
    from narrlit.models.heads import apply_head

    if encoder.views is not None:
        needed = [position for position, weight in enumerate(encoder.views.weights) if weight]
        parts, coverage, readings = part_embeddings(encoder, stories, role, progress, needed)
        embeddings = _checked(encoder.views.fuse(torch.from_numpy(parts)).numpy(), encoder)
    else:
        texts = [story if isinstance(story, str) else story.text for story in stories]
        embeddings, coverage, readings = _embed(encoder, texts, role, progress)
    if encoder.post is not None:
        with torch.inference_mode():
            features = torch.from_numpy(embeddings).to(next(encoder.post.parameters()))
            vectors = apply_head(encoder.post, features)
        embeddings = _checked(vectors.float().cpu().numpy(), encoder)
    return Embeddings(embeddings, coverage, readings)


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
    flat, coverage, readings = _embed(encoder, [own[part] for own in texts for part in chosen], role, progress)
    starts = np.arange(len(stories)) * len(chosen)
    embeddings = np.zeros((len(stories), len(PARTS), flat.shape[1]), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(stories), STORIES_PER_PASS):
            span = slice(start, start + STORIES_PER_PASS)
            embeddings[span, chosen] = flat.reshape(len(stories), len(chosen), -1)[span]
            vectors = torch.from_numpy(embeddings[span]).to(encoder.device)
            vectors = F.normalize(vectors, dim=-1) if encoder.views is None else encoder.views.parts(vectors)
            embeddings[span] = vectors.float().cpu().numpy()
    embeddings[:, [part for part in range(len(PARTS)) if part not in chosen]] = 0
    return Embeddings(embeddings, coverage, _joined_readings(readings, starts))


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
    embeddings, coverage, readings = function(encoder, different, role, progress)
    return Embeddings(_checked(embeddings, encoder)[inverse], coverage, readings[inverse])


def _embed_texts(encoder: Encoder, texts: list[str], role: Role, progress: bool) -> Embeddings:
    device = encoder.device
    embeddings = np.empty((len(texts), encoder.text_dimension), dtype=np.float32)
    readings = np.empty((len(texts), LEAST + 1))
    bar = tqdm(total=len(texts), desc="embedding", unit="text", disable=not progress, delay=0.5)
    spans = [texts[start : start + TEXTS_PER_SPAN] for start in range(0, len(texts), TEXTS_PER_SPAN)]
    fused: Any = fused_linears(encoder.transformer) if len(texts) >= TEXTS_TO_FUSE else nullcontext()
    with bar, ThreadPoolExecutor(1) as thread, torch.inference_mode(), fused:
        tokenized = [thread.submit(_token_ids, encoder, span, role) for span in spans[:1]]
        for number, span in enumerate(spans):
            ids, windows, read = tokenized.pop().result()
            # The next span meanwhile: a GPU would wait for it.
            tokenized += [thread.submit(_token_ids, encoder, later, role) for later in spans[number + 1 : number + 2]]
            readings[number * TEXTS_PER_SPAN :][: len(span)] = read
            pieces = np.empty((len(ids), encoder.text_dimension), dtype=np.float32)
            for chunk in token_chunks([len(x) for x in ids], TOKENS_PER_PASS.get(device.type, 8192), padded=True):
                flat = torch.tensor([token for i in chunk for token in ids[i]])
                lengths = tuple(len(ids[i]) for i in chunk)
                vectors = encoder(PackedStories(flat, lengths, torch.arange(len(chunk))).to(device))
                pieces[chunk] = vectors.float().cpu().numpy()
                bar.update(sum(i < len(span) for i in chunk))
            for i, (rows, weights) in windows.items():
                pieces[i] = _mean_direction(pieces[rows], weights)
            embeddings[number * TEXTS_PER_SPAN :][: len(span)] = pieces[: len(span)]
    return Embeddings(embeddings, Coverage.of_rows(readings), readings)


Windows = dict[int, tuple[list[int], list[int]]]
"""Rows of each long text's windows, by the text's row, and the tokens that each window adds."""


def _token_ids(encoder: Encoder, texts: list[str], role: Role) -> tuple[list[list[int]], Windows, NDArray[np.float64]]:
    """Tokenize texts, long ones as `encoder.long` says: a row for each text, further windows in rows behind.

    Also returns the coverage of each text, (N, 5).
    """
    ids, windows, shares = encoder.token_ids(texts, role), Windows(), np.ones(len(texts))
    long = [i for i, own in enumerate(ids) if len(own) > encoder.max_length]
    if long and encoder.long == "refuse":
        raise DataError(
            f"the {encoder.unit[0]} {printable(texts[long[0]], 60)!r} has {len(ids[long[0]])} tokens, more than "
            f"{encoder.max_length}: `long=windows` reads all of it, `long=truncate` its beginning"
        )
    if encoder.long == "windows":
        for i in long:
            (ids[i], *others), added = encoder.windows(texts[i], role)
            windows[i] = [i, *range(len(ids), len(ids) + len(others))], added
            ids += others
    elif long:
        for i, cut in zip(long, encoder.truncated([texts[i] for i in long], role), strict=True):
            shares[i], ids[i] = len(cut) / len(ids[i]), cut
    words = np.array([len(text.split()) for text in texts])
    is_long = np.isin(np.arange(len(texts)), long)
    return ids, windows, np.stack([words, words * shares, np.ones(len(texts)), is_long, shares], axis=1)


def _joined_readings(readings: NDArray[np.float64], starts: IntArray) -> NDArray[np.float64]:
    """Join the coverage (P, 5) of texts to that of the N stories that begin at `starts` (N,), (N, 5)."""
    if not len(starts):
        return np.empty((0, LEAST + 1))
    sums = np.add.reduceat(readings[:, :LEAST], starts, axis=0)
    least = np.minimum.reduceat(readings[:, LEAST], starts)
    return np.column_stack([sums, least])


def _mean_direction(vectors: FloatArray, weights: Sequence[int]) -> FloatArray:
    """Average the directions of vectors (W, D) by weights; the result has their mean length."""
    lengths, shares = np.linalg.norm(vectors, axis=1), np.array(weights) / sum(weights)
    mean = shares @ (vectors / lengths[:, None])
    average: FloatArray = shares @ lengths * mean / np.linalg.norm(mean)
    return average


def _embed_sentences(encoder: Encoder, texts: list[str], role: Role, progress: bool) -> Embeddings:
    from narrlit.models.heads import apply_head

    pieces = [split_sentences(text) for text in texts]
    lengths = [len(own) for own in pieces]
    if 0 in lengths:
        raise DataError(
            f"different story {lengths.index(0) + 1} of {len(texts)} is blank and has no sentence: remove it"
        )
    different, inverse = unique([piece for own in pieces for piece in own])
    flat, coverage, readings = _embed_texts(encoder, different, role, progress)
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
    return Embeddings(embeddings, coverage, _joined_readings(readings[inverse], bounds[:-1]))


def _checked(embeddings: FloatArray, encoder: Encoder) -> FloatArray:
    if not np.isfinite(embeddings).all() or not embeddings.any(axis=1).all():
        raise ModelError(
            f"{encoder.config.model} gives embeddings with NaN or infinity, or of zeros alone: its weights are broken, "
            f"or {encoder.config.dtype} is too narrow for it"
        )
    return embeddings
