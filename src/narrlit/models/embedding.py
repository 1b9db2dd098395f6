"""Vectors of many texts: each different text or sentence once, in passes of texts of like length, with progress."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F
from tqdm import tqdm

from narrlit.data.batch import PackedStories
from narrlit.data.records import Triple
from narrlit.data.table import StoryTable
from narrlit.errors import DataError
from narrlit.models.config import Role
from narrlit.models.encoder import token_chunks
from narrlit.models.fusion import PARTS
from narrlit.models.onednn import fused_linears
from narrlit.models.sentence_encoder import SentenceEncoder
from narrlit.models.view_encoder import AnyEncoder, ViewEncoder, story_parts
from narrlit.models.views import fuse
from narrlit.preprocessing.sentences import split_sentences as sentences

Vectors = NDArray[np.float32]
SPAN = 4096
"""Texts that are tokenised at a time."""

TOKENS_A_PASS = {"cpu": 8192, "cuda": 65536}
STORIES_A_PASS = 256


def embed(
    encoder: AnyEncoder, texts: Sequence[str], role: Role = "story", progress: bool = True
) -> tuple[Vectors, int]:
    """Embed texts.

    Args:
        encoder: on the device where it shall work.
        texts: N stories; repeated ones cost nothing.
        role: whose prompt stands before them.
        progress: show a bar on stderr.

    Returns:
        Vectors (N, D), and how many different texts were longer than the encoder reads; of a sentence encoder, how
        many different sentences; of an encoder of views, how many different texts and views.

    Raises:
        DataError: for a text of white space alone, which a sentence encoder can't read, or one without views, which an
            encoder of views needs.
    """
    if isinstance(encoder, ViewEncoder):
        return _embed_views(encoder, texts, role, progress)
    if isinstance(encoder, SentenceEncoder):
        return _embed_sequences(encoder, texts, role, progress)
    table = StoryTable()
    rows = table.rows(texts)
    texts_of_table = table.texts
    device = next(encoder.parameters()).device
    vectors = np.empty((len(table), encoder.dimension), dtype=np.float32)
    truncated = 0
    bar = tqdm(total=len(table), desc="embedding", unit="text", disable=not progress, delay=0.5)
    with bar, torch.inference_mode(), fused_linears(encoder.transformer):
        # Tokenised in spans, so that a large collection neither waits for its last text nor fills the memory.
        for start in range(0, len(table), SPAN):
            ids, cut = encoder.tokenize(texts_of_table[start : start + SPAN], role)
            truncated += cut
            for chunk in _passes(ids, TOKENS_A_PASS.get(device.type, 8192)):
                found = encoder(_pack([ids[i] for i in chunk]).to(device))
                vectors[[start + i for i in chunk]] = found.float().cpu().numpy()
                bar.update(len(chunk))
    return vectors[rows], truncated


def _embed_sequences(encoder: SentenceEncoder, texts: Sequence[str], role: Role, progress: bool) -> tuple[Vectors, int]:
    table = StoryTable()
    rows = table.rows(texts)
    pieces = [sentences(text) for text in table.texts]
    lengths = [len(parts) for parts in pieces]
    if 0 in lengths:
        number = rows.index(lengths.index(0)) + 1
        raise DataError(f"text {number} of {len(texts)} has no sentence, it is white space alone: leave it out")
    flat, truncated = embed(encoder.inner, [part for parts in pieces for part in parts], role, progress)
    device = next(encoder.head.parameters()).device
    vectors = np.empty((len(table), encoder.dimension), dtype=np.float32)
    begin = 0
    bar = tqdm(total=len(table), desc="reading sentences", unit="story", disable=not progress, delay=0.5)
    with bar, torch.inference_mode():
        for start in range(0, len(table), STORIES_A_PASS):
            chunk = lengths[start : start + STORIES_A_PASS]
            end = begin + sum(chunk)
            found = encoder.head(torch.from_numpy(flat[begin:end]).to(device), chunk)
            vectors[start : start + len(chunk)] = found.float().cpu().numpy()
            begin = end
            bar.update(len(chunk))
    return vectors[rows], truncated


def part_vectors(
    encoder: AnyEncoder,
    texts: Sequence[str],
    role: Role = "story",
    progress: bool = True,
    needed: Sequence[int] = range(len(PARTS)),
) -> tuple[Vectors, int]:
    """Vectors of the parts of stories that are joined with their views.

    Args:
        encoder: of texts; or of views, whose heads are applied then.
        texts: N joined stories; a part that occurs twice is embedded once.
        role: whose prompt stands before each part.
        progress: show a bar on stderr.
        needed: places in PARTS of those that are embedded.

    Returns:
        Unit vectors (N, 4, D) in the order of PARTS, zeros for what is not needed; and how many different parts were
        longer than the encoder reads.

    Raises:
        DataError: for a story without views.
    """
    fuser = encoder.fuser if isinstance(encoder, ViewEncoder) else None
    inner = encoder.inner if isinstance(encoder, ViewEncoder) else encoder
    table = StoryTable()
    rows = [table.rows([parts[place] for place in needed]) for parts in story_parts(texts)]
    flat, truncated = embed(inner, table.texts, role, progress)
    vectors = np.zeros((len(rows), len(PARTS), inner.dimension), dtype=np.float32)
    device = next(inner.parameters()).device
    with torch.inference_mode():
        for start in range(0, len(rows), STORIES_A_PASS):
            span = slice(start, start + STORIES_A_PASS)
            vectors[span, needed] = flat[rows[span]]
            found = torch.from_numpy(vectors[span]).to(device)
            found = F.normalize(found, dim=-1) if fuser is None else fuser.parts(found)
            vectors[span] = found.float().cpu().numpy()
    vectors[:, [place for place in range(len(PARTS)) if place not in needed]] = 0
    return vectors, truncated


def _embed_views(encoder: ViewEncoder, texts: Sequence[str], role: Role, progress: bool) -> tuple[Vectors, int]:
    table = StoryTable()
    rows = table.rows(texts)
    parts, truncated = part_vectors(encoder, table.texts, role, progress, encoder.fuser.needed)
    vectors: Vectors = fuse(torch.from_numpy(parts), encoder.fuser.fusion).numpy()
    return vectors[rows], truncated


def _passes(ids: list[list[int]], budget: int) -> list[list[int]]:
    return token_chunks([len(x) for x in ids], budget, padded=True)


def _pack(ids: list[list[int]]) -> PackedStories:
    flat = torch.tensor([token for text in ids for token in text])
    return PackedStories(flat, tuple(len(text) for text in ids), torch.arange(len(ids)))


def cosine_scores(
    encoder: AnyEncoder, triples: Sequence[Triple], progress: bool = True
) -> tuple[list[tuple[float, float]], int]:
    """Cosines of (anchor, A) and (anchor, B), and how many different texts were cut."""
    n = len(triples)
    roles: list[tuple[Role, list[str]]] = [
        ("anchor", [triple.anchor for triple in triples]),
        ("candidate", [triple.a for triple in triples] + [triple.b for triple in triples]),
    ]
    if encoder.prompt("anchor") == encoder.prompt("candidate"):
        roles = [("anchor", [text for _, texts in roles for text in texts])]
    found = [embed(encoder, texts, role, progress) for role, texts in roles]
    vectors = np.concatenate([part for part, _ in found])
    anchors, pairs = vectors[:n], np.stack([vectors[n : 2 * n], vectors[2 * n :]], axis=1)
    lengths = np.linalg.norm(anchors, axis=-1)[:, None] * np.linalg.norm(pairs, axis=-1)
    scores = np.einsum("nd,ncd->nc", anchors, pairs) / np.maximum(lengths, 1e-12)
    return [(float(a), float(b)) for a, b in scores], sum(cut for _, cut in found)
