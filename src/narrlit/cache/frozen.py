"""A frozen encoder's embeddings, read from the cache and computed where it lacks them."""

import gc
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from narrlit.cache.filling import fill
from narrlit.cache.sources import EmbeddingSource, Source, check_agreement, open_source
from narrlit.cache.storage import EmbeddingCache, MappedEmbeddings, content_keys, embedding_space, open_cache
from narrlit.data.batch import PackedFeatures, StoryInputs
from narrlit.data.schema import FloatArray, IntArray, Story
from narrlit.errors import DataError
from narrlit.models.config import EncoderConfig, Role
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.models.loading import role_prompts
from narrlit.preprocessing.sentences import split_sentences

COMPARED = 16
"""Cached embeddings that another source is compared with before it computes more."""
ROLES: tuple[Role, Role, Role] = ("anchor", "candidate", "story")


class CachedEmbeddings:
    """Embeddings of texts by an encoder that never trains; it is loaded only if an embedding is missing.

    Attributes:
        cache: where embeddings are stored.
        space: all that decides an embedding but for its text, as plain data.
        source: where missing embeddings come from.
        symmetric: anchors and candidates have the same prompt.
        made: embeddings that this process has computed.
        truncated: texts of these that the encoder here has cut.
    """

    def __init__(
        self, config: EncoderConfig, source: EmbeddingSource | None = None, device: torch.device | str = "cpu"
    ) -> None:
        """Open the cache of an encoder.

        Args:
            config: the encoder.
            source: where its embeddings come from and are cached; None: defaults.
            device: where an encoder here computes.

        Raises:
            ModelError: if the cache is broken.
        """
        options = EmbeddingSource() if source is None else source
        space = embedding_space(config, options.dtype)
        if options.kind == "server" and options.server.parameters:
            space["parameters"] = options.server.parameters
        self._prepare(space, role_prompts(config), options, torch.device(device))
        self._config = config

    @classmethod
    def of_encoder(cls, encoder: Encoder, source: EmbeddingSource | None = None) -> "CachedEmbeddings":
        """Open the cache of an encoder that is loaded, by its weights; it must not be an encoder of views."""
        options = EmbeddingSource() if source is None else source
        digest = hashlib.sha256()
        for name, value in sorted(encoder.state_dict().items()):
            digest.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
            digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
        settings = {key: value for key, value in asdict(encoder.config).items() if key in ("quantization", "pooling")}
        space = {
            "model": Path(encoder.config.model).name,
            "weights": digest.hexdigest(),
            "reads": encoder.reads,
            "max_length": encoder.max_length,
            "modules": [type(module).__name__ for module in encoder.model],
            "stored": options.dtype,
            **settings,
        }
        self = cls.__new__(cls)
        self._prepare(space, {role: encoder.prompt(role) for role in ROLES}, options, encoder.device)

        def opened(texts: Sequence[str], role: Role) -> FloatArray:
            embeddings, truncated = embed(encoder, texts, role, progress=False)
            self._count_truncated(truncated)
            return embeddings

        self._opened = opened
        return self

    def _prepare(
        self, space: dict[str, Any], prompts: Mapping[Role, str], options: EmbeddingSource, device: torch.device
    ) -> None:
        self._options, self._prompts, self._space, self._device = options, prompts, space, device
        self._opened: Source | None = None
        self.space = {**space, "prompts": dict(prompts)}
        self.source = options.source
        self.cache: EmbeddingCache = open_cache(Path(options.folder), space, options.kind)
        self.symmetric = prompts["anchor"] == prompts["candidate"]
        self.made = self.truncated = 0

    def embeddings(self, texts: Sequence[str], role: Role = "anchor", progress: bool = True) -> FloatArray:
        """Return the embeddings (N, D), float32, of N texts, computing those that are missing.

        Raises:
            ModelError: if the source fails, or does not agree with the embeddings that are cached.
        """
        index_of: dict[str, int] = {}
        inverse = np.array([index_of.setdefault(text, len(index_of)) for text in texts], dtype=np.int64)
        keys = self.fill(list(index_of), role, progress)
        if not keys:
            return np.empty((0, self.cache.dimension or 0), dtype=np.float32)
        found: FloatArray = self.cache.mapped(keys)[inverse].numpy()
        return found

    def fill(self, texts: Sequence[str], role: Role, progress: bool = True) -> list[bytes]:
        """Compute what the cache lacks of these texts, each given once; return their keys.

        Raises:
            ModelError: if the source fails, or does not agree with the embeddings that are cached.
        """
        keys = content_keys({**self._space, "prompt": self._prompts[role]}, texts)
        self.cache.refresh()
        missing = set(self.cache.missing(keys))
        known = [position for position in range(len(keys)) if position not in missing]
        # From all over: neighbors may be too much alike to distinguish encoders.
        known = known[:: max(1, len(known) // COMPARED)][:COMPARED]

        def compute(positions: list[int]) -> torch.Tensor:
            source = self._open()
            if known and self.cache.sources | {self._options.kind} != {"encoder"}:
                # Once: a server, or the encoder here after a server, must continue in the same space.
                cached = self.cache.read([keys[position] for position in known]).float().numpy()
                again = source([texts[position] for position in known], role)
                known.clear()
                check_agreement(again, cached, f"embeddings cached in {self.cache.folder}")
            return torch.from_numpy(source([texts[position] for position in positions], role))

        # Also where nothing is missing: the processes of a fit wait for each other in there.
        self.made += fill(self.cache, keys, compute, progress=progress)
        return keys

    def release(self) -> None:
        """Release the source, whose encoder may be large."""
        self._opened = None
        gc.collect()  # engines such as vLLM's refer to themselves
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _count_truncated(self, count: int) -> None:
        self.truncated += count

    def _open(self) -> Source:
        if self._opened is None:
            self._opened = open_source(self._config, self._options, self._prompts, self._device, self._count_truncated)
        return self._opened


class FrozenFeatures(StoryInputs[PackedFeatures]):
    """Frozen embeddings of stories, one for the whole story or one for each sentence, memory-mapped.

    Attributes:
        dimension: D.
        lengths: (P,) embeddings at each position.
    """

    def __init__(self, embeddings: MappedEmbeddings, rows: IntArray, lengths: IntArray, num_stories: int) -> None:
        """Arrange embeddings by position.

        Args:
            embeddings: each different one.
            rows: (S,) which of them belong to the P positions, one position after the other.
            lengths: (P,) how many do.
            num_stories: stories of the table; P is that, or twice that if candidates have a prompt of their own.
        """
        super().__init__(num_stories, symmetric=len(lengths) == num_stories)
        self._embeddings, self._rows, self.lengths = embeddings, rows, lengths
        self._starts = np.concatenate([[0], lengths.cumsum()[:-1]]).astype(np.int64)
        self.dimension = embeddings.dimension

    def select(self, positions: IntArray) -> PackedFeatures:
        """Pack the stories at these positions (U,), in their order."""
        lengths = self.lengths[positions]
        # Where each story's embeddings begin, less what stands before it in the batch.
        shift = self._starts[positions] - (lengths.cumsum() - lengths)
        chosen = self._rows[np.repeat(shift, lengths) + np.arange(lengths.sum())]
        indices = torch.from_numpy(positions % self.num_stories)
        return PackedFeatures(self._embeddings[chosen], tuple(lengths.tolist()), indices)


def frozen_features(
    cached: CachedEmbeddings,
    stories: Sequence[Story] | Sequence[str],
    unit: Literal["story", "sentence"] = "story",
) -> FrozenFeatures:
    """Return the frozen embeddings of stories, computing those that the cache lacks.

    Args:
        cached: the encoder's embeddings.
        stories: by story index.
        unit: what of a story is embedded.

    Raises:
        DataError: if a story has no sentence.
        ModelError: if embeddings can't be computed or read.
    """
    texts = [story if isinstance(story, str) else story.text for story in stories]
    index_of: dict[str, int] = {}
    pieces = [split_sentences(text) if unit == "sentence" else [text] for text in texts]
    rows = [[index_of.setdefault(piece, len(index_of)) for piece in own] for own in pieces]
    empty = next((index for index, own in enumerate(pieces) if not own), None)
    if empty is not None:
        raise DataError(f"story {empty + 1} of {len(texts)} has no sentence: {texts[empty][:60]!r}")
    made, truncated = cached.made, cached.truncated
    roles = ROLES[:1] if cached.symmetric else ROLES[:2]
    keys = [key for role in roles for key in cached.fill(list(index_of), role)]
    flat = np.array([row for own in rows for row in own], dtype=np.int64)
    lengths = np.array([len(own) for own in rows], dtype=np.int64)
    features = FrozenFeatures(
        cached.cache.mapped(keys),
        np.concatenate([flat + i * len(index_of) for i in range(len(roles))]),
        np.tile(lengths, len(roles)),
        len(texts),
    )
    features.provenance = {
        "embeddings": {
            "cache": str(cached.cache.folder),
            "source": cached.source,
            "of": "sentences" if unit == "sentence" else "stories",
            "texts": len(index_of),
            "made": cached.made - made,
            "truncated": cached.truncated - truncated,
        }
    }
    return features
