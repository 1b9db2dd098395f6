"""A frozen encoder's vectors: from the store, and made by their source where it lacks them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.models.config import EncoderConfig, Role
from narrlit.models.loading import role_prompts
from narrlit.stores.filling import fill
from narrlit.stores.parity import check_parity, read_known
from narrlit.stores.sources import Source, VectorOptions, open_source, source_name
from narrlit.stores.spaces import open_space, vector_space
from narrlit.stores.vectors import VectorStore, content_keys

KNOWN = 16
"""Stored vectors that another source is compared with before it makes more."""


class FrozenVectors:
    """Vectors of texts by an encoder that never trains; the encoder itself is loaded only if a vector is missing.

    Attributes:
        store: where vectors are kept.
        symmetric: whether one prompt serves anchors and candidates.
        made: vectors that this process had to make so far.
    """

    def __init__(self, config: EncoderConfig, options: VectorOptions, device: torch.device) -> None:
        """Args: the encoder, where its vectors come from and are kept, and where to compute.

        Raises:
            ModelError: if the store's folder holds vectors of another space, or is broken.
        """
        self._config = config
        self._options = options
        self._device = device
        self._space = vector_space(config, options.dtype)
        self._prompts = role_prompts(config)
        self._source: Source | None = None
        self.store: VectorStore = open_space(Path(options.folder), self._space)
        self.symmetric = self._prompts["anchor"] == self._prompts["candidate"]
        self.made = 0

    @property
    def source_name(self) -> str:
        """Where missing vectors come from, for records."""
        return source_name(self._options)

    def fill(self, texts: Sequence[str], role: Role, progress: bool = True) -> list[bytes]:
        """Make what the store lacks of these texts, each given once; the texts' keys.

        Raises:
            ModelError: if the source fails, or does not agree with the vectors that are there.
        """
        keys = content_keys({**self._space, "prompt": self._prompts[role]}, texts)
        self.store.refresh()  # others may have begun since: theirs are what this source must agree with
        lacking = set(self.store.missing(keys))
        stored = [place for place in range(len(keys)) if place not in lacking]
        # From all over: neighbours may be too much alike to tell encoders apart.
        stored = stored[:: max(1, len(stored) // KNOWN)][:KNOWN]

        def embed(batch: Sequence[str]) -> NDArray[np.float32]:
            source = self._opened()
            if len(stored) > 1 and self._options.source != "encoder":
                # Once a filling: another source must go on in the same space.
                known = self.store.vectors([keys[place] for place in stored]).float().numpy()
                where = f"vectors that {self.store.folder} holds already"
                check_parity(lambda some: source(some, role), [texts[place] for place in stored], known, where)
                stored.clear()
            return source(batch, role)

        # Also where nothing is missing: the processes of a fit wait for each other in there.
        self.made += fill(self.store, keys, texts, embed, progress)
        return keys

    def release(self) -> None:
        """Let go of the source, whose encoder may be large."""
        self._source = None

    def _opened(self) -> Source:
        if self._source is None:
            source = open_source(self._config, self._options, self._prompts, self._device)
            if self._options.known is not None:
                texts, vectors = read_known(Path(self._options.known))
                check_parity(lambda some: source(some, "story"), texts, vectors, self._options.known)
            self._source = source
        return self._source
