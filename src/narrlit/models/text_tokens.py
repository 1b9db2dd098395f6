"""Tokens of texts before they are embedded: windows of long texts, truncation, and forward passes. No torch."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray
from narrlit.errors import DataError, OptionError, printable
from narrlit.models.config import Long, Role
from narrlit.preprocessing.sentences import split_sentences
from narrlit.preprocessing.words import num_words


class TextTokenizer(Protocol):
    """Tokenizer of an encoder, with its maximum length and its treatment of longer texts."""

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a text, including prompt and special tokens."""

    @property
    def long(self) -> Long:
        """Treatment of longer texts."""

    @property
    def unit(self) -> tuple[str, str]:
        """Name of the unit that is limited by `max_length`, singular and plural."""

    def token_ids(self, texts: Sequence[str], role: Role = "story") -> list[list[int]]:
        """Tokenize texts with the role's prompt before them, without truncation."""

    def windows(self, text: str, role: Role = "story") -> tuple[list[list[int]], list[int]]:
        """Tokenize a text longer than `max_length` in windows, each with the prompt."""

    def truncate(self, ids: list[list[int]], texts: Sequence[str], role: Role = "story") -> list[int]:
        """Truncate the token ids of texts longer than `max_length`, in place, and return their rows."""


class Windows(NamedTuple):
    """Windows of one long text: their rows in the tokenized texts, and the number of new tokens in each."""

    rows: list[int]
    added: list[int]


class TokenizedTexts(NamedTuple):
    """Tokens of N texts.

    Attributes:
        ids: a row for each text, followed by a row for each further window of a long text.
        windows: windows of the texts that are read in windows, by the row of the text.
        readings: (N, 5) coverage of each text, as in `Coverage.of_rows`.
    """

    ids: list[list[int]]
    windows: dict[int, Windows]
    readings: NDArray[np.float64]


def tokenize_texts(tokenizer: TextTokenizer, texts: Sequence[str], role: Role) -> TokenizedTexts:
    """Tokenize texts; split, truncate or refuse those longer than `max_length`, according to `tokenizer.long`.

    Raises:
        DataError: if a text is longer, and `tokenizer.long` is `refuse`.
    """
    ids = tokenizer.token_ids(texts, role)
    lengths = np.array(list(map(len, ids)), dtype=np.int64)
    is_long = lengths > tokenizer.max_length
    windows: dict[int, Windows] = {}
    shares = np.ones(len(texts))
    if tokenizer.long == "refuse" and is_long.any():
        row = int(is_long.argmax())
        raise DataError(
            "text_over_max_length",
            kind=tokenizer.unit[0],
            text=printable(texts[row], 60),
            tokens=int(lengths[row]),
            max_length=tokenizer.max_length,
        )
    if tokenizer.long == "windows":
        for row in np.flatnonzero(is_long).tolist():
            (first, *further), added = tokenizer.windows(texts[row], role)
            further_rows = range(len(ids), len(ids) + len(further))
            windows[row] = Windows([row, *further_rows], added)
            ids[row] = first
            ids += further
    else:
        for row in tokenizer.truncate(ids, texts, role):
            shares[row] = len(ids[row]) / lengths[row]
    words = np.array(list(map(num_words, texts)))
    num_texts = np.ones(len(texts))
    readings = np.stack([words, words * shares, num_texts, is_long, shares], axis=1)
    return TokenizedTexts(ids, windows, readings)


class EncodedText(NamedTuple):
    """Tokens of one text with its prompt.

    Attributes:
        ids: (T,) token ids.
        special: (T,) 1 for a special token, else 0.
        ends: (T,) end of each token, in characters of prompt and text.
    """

    ids: list[int]
    special: Sequence[int]
    ends: Sequence[int]


def encode_by_sentence(tokenizer: Callable[..., Any], text: str, prompt: str) -> EncodedText:
    """Tokenize each sentence of a text by itself, for tokenizers in Python, which have no offsets.

    Args:
        tokenizer: a tokenizer of transformers.
        text: the text.
        prompt: the prompt before it.

    Returns:
        The tokens; each ends, as far as is known, where its sentence does.
    """
    whole = tokenizer(prompt + text, verbose=False)["input_ids"]

    def token_ids(part: str) -> list[int]:
        ids: list[int] = tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    ordinary = token_ids(prompt + text)
    begin = next(n for n in range(len(whole)) if whole[n : n + len(ordinary)] == ordinary)
    last = whole[begin + len(ordinary) :]
    ids = whole[:begin] + token_ids(prompt)
    ends = [len(prompt)] * len(ids)
    bounds = [0, *_sentence_starts(text)[1:], len(text)]
    for start, end in pairwise(bounds):
        tokens = token_ids(text[start:end])
        ids += tokens
        ends += [len(prompt) + end] * len(tokens)
    special = [1] * begin + [0] * (len(ids) - begin) + [1] * len(last)
    return EncodedText(ids + last, special, ends + [0] * len(last))


def split_windows(encoded: EncodedText, text: str, prompt: str, max_length: int) -> tuple[list[list[int]], list[int]]:
    """Split the tokens of a text longer than `max_length` in windows, each with the prompt.

    Args:
        encoded: tokens of the prompt and the text.
        text: the text.
        prompt: the prompt.
        max_length: maximum number of tokens of a window.

    Returns:
        Token ids of each window, and the number of tokens in each that are not in the previous one.

    Raises:
        OptionError: if the prompt leaves no room for the text.
    """
    ids = encoded.ids
    ends = np.array(encoded.ends) - len(prompt)  # 0 or negative for tokens of the prompt
    ordinary = np.flatnonzero(np.array(encoded.special) == 0)
    begin = int(ordinary[ends[ordinary] > 0][0])
    end = int(ordinary[-1]) + 1
    room = max_length - begin - (len(ids) - end)
    if room < 1:
        raise OptionError("no_room_for_text", max_length=max_length, prompt=prompt)
    edges = np.searchsorted(ends[begin:end], _sentence_starts(text), side="right") + begin
    windows: list[list[int]] = []
    added: list[int] = []
    previous_stop = begin
    for start, stop in window_bounds([begin, *edges.tolist(), end], room):
        windows.append(ids[:begin] + ids[start:stop] + ids[end:])
        added.append(stop - previous_stop)
        previous_stop = stop
    return windows, added


def mean_direction(vectors: FloatArray, weights: Sequence[int]) -> FloatArray:
    """Compute the weighted mean direction of vectors (W, D), with their weighted mean length."""
    lengths = np.linalg.norm(vectors, axis=1)
    shares = np.array(weights) / sum(weights)
    directions = vectors / lengths[:, None]
    mean_length = shares @ lengths
    mean = shares @ directions
    average: FloatArray = mean_length * mean / np.linalg.norm(mean)
    return average


def _sentence_starts(text: str) -> list[int]:
    """Find the position of each sentence in a text, in characters."""
    starts: list[int] = []
    end = 0
    for sentence in split_sentences(text):
        starts.append(text.index(sentence, end))
        end = starts[-1] + len(sentence)
    return starts


def window_bounds(edges: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Cover all tokens by windows of at most `room` tokens that begin and end at edges, such as starts of sentences.

    Consecutive windows overlap by about an eighth of `room`. Edges more than `room` apart get further edges between
    them.

    >>> window_bounds([0, 7, 9, 14, 16], 10)
    [(0, 9), (7, 16)]
    """
    overlap = max(1, room // 8)
    all_edges: list[int] = []
    for edge, next_edge in pairwise(np.unique(edges).tolist()):
        gap = next_edge - edge
        all_edges += range(edge, next_edge, overlap if gap > room else gap)
    positions = np.array([*all_edges, max(edges)])
    bounds: list[tuple[int, int]] = []
    start = int(positions[0])
    while True:
        end = int(positions[positions <= start + room][-1])
        bounds.append((start, end))
        if end == positions[-1]:
            return bounds
        # The next window must begin after this one, and reach beyond its end.
        next_end = positions[positions > end][0]
        starts = positions[(positions > start) & (positions <= end) & (positions >= next_end - room)]
        start = int(starts[np.abs(starts - (end - overlap)).argmin()])


def token_chunks(lengths: Sequence[int], budget: int, padded: bool, equal: bool = False) -> list[list[int]]:
    """Divide U texts, given by their lengths, into forward passes of at most `budget` tokens or of one longer text.

    With `padded`, padding counts as tokens, and texts are sorted by length first to keep it small. With `equal`, too,
    the texts of a pass have the same length. Returns the positions, 0 to U - 1, of the texts in each pass.

    >>> token_chunks([5, 9, 4], 10, padded=False)
    [[0], [1], [2]]
    >>> token_chunks([5, 9, 4], 10, padded=True)
    [[1], [0, 2]]
    >>> token_chunks([5, 9, 5, 4], 30, padded=True, equal=True)
    [[1], [0, 2], [3]]
    """
    order: Sequence[int] = range(len(lengths))
    if padded:
        order = sorted(order, key=lambda position: -lengths[position])
    chunks: list[list[int]] = []
    chunk: list[int] = []
    tokens = longest = 0
    for position in order:
        length = lengths[position]
        longest = max(longest, length)
        tokens = longest * (len(chunk) + 1) if padded else tokens + length
        if chunk and (tokens > budget or (equal and length != longest)):
            chunks.append(chunk)
            chunk, tokens, longest = [], length, length
        chunk.append(position)
    if chunk:
        chunks.append(chunk)
    return chunks
