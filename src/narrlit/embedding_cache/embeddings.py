"""Embeddings of a frozen encoder: read from the cache, or computed if they are missing there."""

import gc
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from narrlit.data.batch import PackedFeatures, StoryInputs
from narrlit.data.schema import FloatArray, IntArray, Story
from narrlit.embedding_cache.filling import fill
from narrlit.embedding_cache.shards import Readings
from narrlit.embedding_cache.sources import EmbeddingSource, EmbedTexts, check_agreement, open_source
from narrlit.embedding_cache.space import EmbeddingSpace
from narrlit.embedding_cache.storage import MappedEmbeddings, open_cache
from narrlit.errors import DataError
from narrlit.models.config import EncoderConfig, Role
from narrlit.models.embedding import Embeddings, text_of, unique
from narrlit.models.pretrained import role_prompts
from narrlit.preprocessing.sentences import split_sentences

COMPARED = 16
"""Number of cached embeddings that another source must reproduce before it adds embeddings."""


class CachedEmbeddings:
    """Embeddings of texts by an encoder that never trains; it is loaded only if an embedding is missing.

    Attributes:
        cache: where embeddings are stored.
        space: settings that determine the embedding of a text, as plain data.
        source: source of missing embeddings.
        symmetric: anchors and candidates have the same prompt.
        made: number of embeddings that this process has computed.
        truncated: number of these with a text longer than the encoder's limit.
    """

    def __init__(
        self, config: EncoderConfig, source: EmbeddingSource | None = None, device: torch.device | str = "cpu"
    ) -> None:
        """Open the cache of an encoder that computes on `device`; raise ModelError if the cache is damaged."""
        options = EmbeddingSource() if source is None else source
        prompts = role_prompts(config)
        self._config = config
        self._options = options
        self._prompts = prompts
        self._device = torch.device(device)
        parameters = options.server.parameters if options.kind == "server" else None
        self._space = EmbeddingSpace.of_frozen(config, options.dtype, parameters)
        self._source: EmbedTexts | None = None
        self.space = {**self._space.record, "prompts": dict(prompts)}
        self.source = options.source
        self.cache = open_cache(Path(options.folder), self._space, options.kind)
        self.symmetric = prompts["anchor"] == prompts["candidate"]
        self.made = self.truncated = 0

    def embeddings(self, texts: Sequence[str], role: Role = "anchor", progress: bool = True) -> FloatArray:
        """Return the embeddings (N, D), float32, of N texts, computing those that are missing as `fill` does."""
        different, inverse = unique(texts)
        keys = self.fill(different, role, progress)
        if not keys:
            return np.empty((0, self.cache.dimension or 0), dtype=np.float32)
        embeddings: FloatArray = self.cache.mapped(keys)[inverse].numpy()
        return embeddings

    def fill(self, texts: Sequence[str], role: Role, progress: bool = True) -> list[bytes]:
        """Compute the missing embeddings of different texts; return the keys of all."""
        keys = self._space.keys(self._prompts[role], texts)
        self.cache.refresh()
        sample = self._cached_sample(keys)
        agrees = not sample

        def embed(positions: list[int]) -> Embeddings:
            return self._open_source()([texts[position] for position in positions], role)

        def compute(positions: list[int]) -> tuple[torch.Tensor, Readings | None]:
            """Embed the texts at these positions, after a check that the source agrees with the cache."""
            nonlocal agrees
            if not agrees and self._may_disagree():
                cached = self.cache.read([keys[position] for position in sample]).float().numpy()
                check_agreement(embed(sample).embeddings, cached, f"embeddings cached in {self.cache.folder}")
                agrees = True
            embedded = embed(positions)
            self.truncated += embedded.coverage.long
            return torch.from_numpy(embedded.embeddings), embedded.readings

        # Called even if nothing is missing, because the processes of a fit wait for each other in it.
        self.made += fill(self.cache, keys, compute, progress=progress)
        return keys

    def _cached_sample(self, keys: Sequence[bytes]) -> list[int]:
        """Choose positions of keys with cached embeddings, at most COMPARED of them."""
        cached: list[int] = np.setdiff1d(np.arange(len(keys)), self.cache.missing(keys)).tolist()
        # Spread over all texts, because neighbors may be too similar to distinguish encoders.
        step = max(1, len(cached) // COMPARED)
        return cached[::step][:COMPARED]

    def _open_source(self) -> EmbedTexts:
        """Return the source of missing embeddings, which is opened on first use."""
        if self._source is None:
            self._source = open_source(self._config, self._options, self._prompts, self._device)
        return self._source

    def _may_disagree(self) -> bool:
        """Return True if a server has computed cached embeddings, or computes the missing ones."""
        return self.cache.sources | {self._options.kind} != {"encoder"}

    def release(self) -> None:
        """Release the source and the memory of its encoder."""
        self._source = None
        gc.collect()  # engines such as vLLM's have reference cycles
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


class FrozenFeatures(StoryInputs[PackedFeatures]):
    """Frozen embeddings of stories, one for the whole story or one for each sentence, memory-mapped.

    Attributes:
        dimension: D.
        lengths: (P,) number of embeddings at each position.
    """

    def __init__(self, embeddings: MappedEmbeddings, rows: IntArray, lengths: IntArray, num_stories: int) -> None:
        """Assign embeddings to P positions.

        Args:
            embeddings: all embeddings.
            rows: (S,) rows of the embeddings, position by position.
            lengths: (P,) number of embeddings at each position.
            num_stories: P, or half of it if candidates have a different prompt from anchors.
        """
        super().__init__(num_stories, symmetric=len(lengths) == num_stories)
        self._embeddings = embeddings
        self._rows = rows
        self._starts = np.concatenate([[0], lengths.cumsum()[:-1]]).astype(np.int64)
        self.lengths = lengths
        self.dimension = embeddings.dimension

    def select(self, positions: IntArray) -> PackedFeatures:
        """Pack the stories at these positions (U,), in this order."""
        lengths = self.lengths[positions]
        starts_in_batch = lengths.cumsum() - lengths
        shift = self._starts[positions] - starts_in_batch
        rows = self._rows[np.arange(lengths.sum()) + np.repeat(shift, lengths)]
        indices = torch.from_numpy(positions % self.num_stories)
        return PackedFeatures(self._embeddings[rows], tuple(lengths.tolist()), indices)


def frozen_features(
    cached: CachedEmbeddings,
    stories: Sequence[Story] | Sequence[str],
    unit: Literal["story", "sentence"] = "story",
) -> FrozenFeatures:
    """Return the frozen embeddings of stories by story index; those that the cache lacks are computed."""
    pieces = _pieces(list(map(text_of, stories)), unit)
    lengths = np.array(list(map(len, pieces)), dtype=np.int64)
    different, rows = unique(list(chain.from_iterable(pieces)))
    made, truncated = cached.made, cached.truncated
    roles: tuple[Role, ...] = ("anchor",) if cached.symmetric else ("anchor", "candidate")
    keys: list[bytes] = []
    rows_by_role: list[IntArray] = []
    for role in roles:
        rows_by_role.append(len(keys) + rows)
        keys += cached.fill(different, role)
    features = FrozenFeatures(
        cached.cache.mapped(keys), np.concatenate(rows_by_role), np.tile(lengths, len(roles)), len(stories)
    )
    features.provenance = {
        "embeddings": {
            "cache": str(cached.cache.folder),
            "source": cached.source,
            "of": "sentences" if unit == "sentence" else "stories",
            "texts": len(different),
            "made": cached.made - made,
            "truncated": cached.truncated - truncated,
        }
    }
    return features


def _pieces(texts: Sequence[str], unit: Literal["story", "sentence"]) -> list[list[str]]:
    """Split each text into the pieces that are embedded; raise DataError for a text without sentences."""
    if unit == "story":
        return [[text] for text in texts]
    pieces = []
    for number, text in enumerate(texts, 1):
        sentences = split_sentences(text)
        if not sentences:
            raise DataError("no_sentence", row=number, stories=len(texts), text=text[:60])
        pieces.append(sentences)
    return pieces
