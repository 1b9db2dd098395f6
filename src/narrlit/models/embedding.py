"""Embeddings of many stories: each distinct text or sentence is embedded once, in batches of similar length."""

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F
from tqdm import tqdm

from narrlit.data.schema import FloatArray, IntArray, Story
from narrlit.errors import DataError, ModelError
from narrlit.models.config import PARTS, Role
from narrlit.models.coverage import LEAST, Coverage
from narrlit.models.encoder import Encoder, packed
from narrlit.models.heads import SentenceBiLSTM, apply_head
from narrlit.models.onednn import fused_linears
from narrlit.models.text_tokens import TokenizedTexts, mean_direction, token_chunks, tokenize_texts
from narrlit.preprocessing.sentences import split_sentences

TEXTS_PER_SPAN = 4096
"""Number of texts that are tokenized at a time, which limits the memory for large collections."""
TEXTS_TO_FUSE = 64
"""Smallest number of texts for which fused layers save more time than their preparation takes."""
TOKENS_PER_PASS = {"cpu": 8192, "cuda": 65536}
STORIES_PER_PASS = 256
T = TypeVar("T", bound=Hashable)
Item = TypeVar("Item")
R = TypeVar("R")


class Embeddings(NamedTuple):
    """Embeddings of N stories, and their coverage.

    Attributes:
        embeddings: (N, D), or (N, 4, D) for text and views.
        coverage: share of the distinct stories that was read.
        readings: (N, 5) coverage of each story, as in `Coverage.of_rows`.
    """

    embeddings: FloatArray
    coverage: Coverage
    readings: NDArray[np.float64]


def embed_stories(
    encoder: Encoder, stories: Sequence[Story | str], role: Role = "story", progress: bool = True
) -> Embeddings:
    """Embed N stories or texts, each distinct one once, with the role's prompt, on the encoder's device.

    Raises:
        DataError: for a story without sentences or views, if the encoder reads these.
        ModelError: if an embedding is not finite or all zeros.
    """
    if encoder.views is not None:
        needed = np.flatnonzero(encoder.views.weights).tolist()
        parts, coverage, readings = part_embeddings(encoder, stories, role, progress, needed)
        fused = encoder.views.fuse(torch.from_numpy(parts))
        embeddings = _checked(fused.numpy(), encoder)
    else:
        texts = list(map(text_of, stories))
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
    """Embed the text and the views of each of N stories, and apply the heads of views.

    Args:
        encoder: encoder of the texts and views.
        stories: N stories with views.
        role: role whose prompt is used.
        progress: show a progress bar.
        needed: positions in PARTS to embed; the others get zeros.

    Returns:
        Unit vectors (N, 4, D) in the order of PARTS.
    """
    positions = list(needed)
    texts: list[str] = []
    for parts in _parts(stories):
        texts += [parts[position] for position in positions]
    flat, coverage, readings = _embed(encoder, texts, role, progress)
    dimension = flat.shape[1]
    embeddings = np.zeros((len(stories), len(PARTS), dimension), dtype=np.float32)
    embeddings[:, positions] = flat.reshape(len(stories), len(positions), dimension)
    _apply_views(encoder, embeddings)
    # The heads have turned these zeros into vectors.
    not_needed = np.setdiff1d(range(len(PARTS)), positions)
    embeddings[:, not_needed] = 0
    starts = np.arange(len(stories)) * len(positions)
    return Embeddings(embeddings, coverage, _joined_readings(readings, starts))


@torch.inference_mode()
def _apply_views(encoder: Encoder, embeddings: FloatArray) -> None:
    """Replace embeddings (N, 4, D) of text and views by unit vectors, after the heads of views, in place."""
    for start in range(0, len(embeddings), STORIES_PER_PASS):
        span = slice(start, start + STORIES_PER_PASS)
        vectors = torch.from_numpy(embeddings[span]).to(encoder.device)
        unit = F.normalize(vectors, dim=-1) if encoder.views is None else encoder.views.parts(vectors)
        embeddings[span] = unit.float().cpu().numpy()


def unique(texts: Sequence[T]) -> tuple[list[T], IntArray]:
    """Return the distinct texts or stories in order of appearance, and the position of each input among them.

    >>> unique(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    position_of: dict[T, int] = {}
    positions = np.empty(len(texts), dtype=np.int64)
    for row, text in enumerate(texts):
        positions[row] = position_of.setdefault(text, len(position_of))
    return list(position_of), positions


def text_of(story: Story | str) -> str:
    """Return the text of a story, or a text unchanged."""
    return story if isinstance(story, str) else story.text


def _parts(stories: Sequence[Story | str]) -> list[tuple[str, ...]]:
    """Return the text and the views of each story; raise DataError for a story without views."""
    parts: list[tuple[str, ...]] = []
    for number, story in enumerate(stories, 1):
        if isinstance(story, str) or story.views is None:
            raise DataError("story_without_views", row=number, stories=len(stories))
        parts.append((story.text, *story.views.texts))
    return parts


def _embed(encoder: Encoder, texts: Sequence[str], role: Role, progress: bool) -> Embeddings:
    """Embed texts, each distinct one once, without fusion of views."""
    distinct, inverse = unique(texts)
    if encoder.sentences is None:
        embeddings, coverage, readings = _embed_texts(encoder, distinct, role, progress)
    else:
        embeddings, coverage, readings = _embed_sentences(encoder, encoder.sentences, distinct, role, progress)
    return Embeddings(_checked(embeddings, encoder)[inverse], coverage, readings[inverse])


def _embed_texts(encoder: Encoder, texts: list[str], role: Role, progress: bool) -> Embeddings:
    """Embed distinct texts as wholes, not by sentences."""
    embeddings = np.empty((len(texts), encoder.text_dimension), dtype=np.float32)
    readings = np.empty((len(texts), LEAST + 1))
    spans = [slice(start, start + TEXTS_PER_SPAN) for start in range(0, len(texts), TEXTS_PER_SPAN)]
    bar = tqdm(total=len(texts), desc="embedding", unit="text", disable=not progress, delay=0.5)
    fused: AbstractContextManager[int | None] = nullcontext()
    if len(texts) >= TEXTS_TO_FUSE:
        fused = fused_linears(encoder.transformer)
    cores = nullcontext() if encoder.device.type == "cpu" else _tokenizing_on_all_cores()
    with bar, cores, torch.inference_mode(), fused:
        tokenize = partial(tokenize_texts, encoder, role=role)
        # One span ahead, so that a GPU does not wait for the tokenizer.
        tokenized = _map_ahead(tokenize, [texts[span] for span in spans])
        for span, tokens in zip(spans, tokenized, strict=True):
            embeddings[span] = _embed_tokens(encoder, tokens, bar)
            readings[span] = tokens.readings
    return Embeddings(embeddings, Coverage.of_rows(readings), readings)


@contextmanager
def _tokenizing_on_all_cores() -> Iterator[None]:
    """Tokenize with all cores of the CPU inside the `with` block: one is too slow for a GPU.

    Elsewhere this package tokenizes with one, because tokenizers warns of every fork after it has used several.
    """
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before


def _map_ahead(function: Callable[[Item], R], items: Sequence[Item]) -> Iterator[R]:
    """Apply a function to each item in a thread, which computes the next result while the caller uses the current."""
    if len(items) == 1:  # to start and end a thread would be a tenth of the time for a sentence
        yield function(items[0])
        return
    with ThreadPoolExecutor(1) as thread:
        futures = (thread.submit(function, item) for item in items)  # lazy: submitted when requested
        future = next(futures, None)
        while future is not None:
            result = future.result()
            future = next(futures, None)
            yield result


def _embed_tokens(encoder: Encoder, tokens: TokenizedTexts, bar: "tqdm[NoReturn]") -> FloatArray:
    """Embed N tokenized texts, (N, D), in batches of similar length; average the windows of long texts."""
    num_texts = len(tokens.readings)
    device = encoder.device
    vectors = np.empty((len(tokens.ids), encoder.text_dimension), dtype=np.float32)
    budget = TOKENS_PER_PASS.get(device.type, TOKENS_PER_PASS["cpu"])
    for rows in token_chunks(list(map(len, tokens.ids)), budget, padded=True):
        batch = packed([tokens.ids[row] for row in rows])
        vectors[rows] = encoder(batch.to(device)).float().cpu().numpy()
        bar.update(int((np.array(rows) < num_texts).sum()))  # further windows of a text do not count
    for row, windows in tokens.windows.items():
        vectors[row] = mean_direction(vectors[windows.rows], windows.added)
    return vectors[:num_texts]


def _joined_readings(readings: NDArray[np.float64], starts: IntArray) -> NDArray[np.float64]:
    """Combine the coverage (P, 5) of texts to that of N stories (N, 5), whose texts begin at `starts` (N,)."""
    if not len(starts):
        return np.empty((0, LEAST + 1))
    sums = np.add.reduceat(readings[:, :LEAST], starts, axis=0)
    least = np.minimum.reduceat(readings[:, LEAST], starts)
    return np.column_stack([sums, least])


def _embed_sentences(
    encoder: Encoder, head: SentenceBiLSTM, texts: list[str], role: Role, progress: bool
) -> Embeddings:
    """Embed distinct texts by a head over the embeddings of their sentences, each distinct sentence once."""
    sentences = list(map(split_sentences, texts))
    lengths = list(map(len, sentences))
    if 0 in lengths:
        number = lengths.index(0) + 1
        raise DataError("blank_story", row=number, stories=len(texts))
    distinct, inverse = unique(list(chain.from_iterable(sentences)))
    flat, coverage, readings = _embed_texts(encoder, distinct, role, progress)
    embeddings = np.empty((len(texts), head.output), dtype=np.float32)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    bar = tqdm(total=len(texts), desc="reading sentences", unit="story", disable=not progress, delay=0.5)
    with bar, torch.inference_mode():
        for start in range(0, len(texts), STORIES_PER_PASS):
            end = min(start + STORIES_PER_PASS, len(texts))
            rows = inverse[bounds[start] : bounds[end]]
            features = torch.from_numpy(flat[rows]).to(encoder.device)
            vectors = apply_head(head, features, lengths[start:end])
            embeddings[start:end] = vectors.float().cpu().numpy()
            bar.update(end - start)
    return Embeddings(embeddings, coverage, _joined_readings(readings[inverse], bounds[:-1]))


def _checked(embeddings: FloatArray, encoder: Encoder) -> FloatArray:
    """Return embeddings (N, D) unchanged; raise ModelError if one is not finite or all zeros."""
    if not np.isfinite(embeddings).all() or not embeddings.any(axis=1).all():
        raise ModelError("embeddings_of_nan", model=encoder.config.model, dtype=encoder.config.dtype)
    return embeddings
