"""A frozen encoder's vectors: from the store, and made by their source where it lacks them."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig, Role
from narrlit.models.loading import role_prompts
from narrlit.stores.filling import fill
from narrlit.stores.parity import can_tell, check_parity, read_known
from narrlit.stores.sources import Source, VectorOptions, open_source
from narrlit.stores.spaces import open_space, vector_space
from narrlit.stores.vectors import VectorStore, content_keys

KNOWN = 16
"""Stored vectors that another source is compared with before it makes more."""


class FrozenVectors:
    """Vectors of texts by an encoder that never trains; the encoder itself is loaded only if a vector is missing.

    Attributes:
        store: where vectors are kept.
        space: all that decides a vector but for its text, as plain data.
        source: where missing vectors come from.
        device: where an encoder here computes.
        symmetric: whether one prompt serves anchors and candidates.
        made: vectors that this process had to make so far.
        truncated: texts of these that the encoder here has cut.
    """

    def __init__(self, config: EncoderConfig, options: VectorOptions, device: torch.device) -> None:
        """Args: the encoder, where its vectors come from and are kept, and where to compute.

        Raises:
            ModelError: if the store's folder holds vectors of another space, or is broken.
            OptionError: if the encoder has settings that its source can't follow.
        """
        if options.source != "encoder":
            _check_followed(config)
        self._config = config
        self._options = options
        self._prompts = role_prompts(config)
        self._opened: Source | None = None
        space = {**vector_space(config, options.dtype), **options.request()}
        self.space = {**space, "prompts": dict(self._prompts)}
        self.store: VectorStore = open_space(Path(options.folder), space, options.maker)
        self.source = options.source
        self.device = device
        self.symmetric = self._prompts["anchor"] == self._prompts["candidate"]
        self.made = 0
        self.truncated = 0

    def fill(self, texts: Sequence[str], role: Role, progress: bool = True) -> list[bytes]:
        """Make what the store lacks of these texts, each given once; the texts' keys.

        Raises:
            ModelError: if the source fails, or does not agree with the vectors that are there.
        """
        space = {name: value for name, value in self.space.items() if name != "prompts"}
        keys = content_keys({**space, "prompt": self._prompts[role]}, texts)
        self.store.refresh()  # others may have begun since: theirs are what this source must agree with
        lacking = set(self.store.missing(keys))
        stored = [place for place in range(len(keys)) if place not in lacking]
        # From all over: neighbours may be too much alike to tell encoders apart.
        stored = stored[:: max(1, len(stored) // KNOWN)][:KNOWN]

        def embed(batch: Sequence[str]) -> NDArray[np.float32]:
            source = self._open()
            if stored and self.store.makers | {self._options.maker} != {"encoder"}:
                # Once a filling: a server, or the encoder here after a server, must go on in the same space.
                known = self.store.vectors([keys[place] for place in stored]).float().numpy()
                where = f"vectors that {self.store.folder} holds already"
                if can_tell(known):
                    check_parity(lambda some: source(some, role), [texts[place] for place in stored], known, where)
                stored.clear()
            return source(batch, role)

        # Also where nothing is missing: the processes of a fit wait for each other in there.
        self.made += fill(self.store, keys, texts, embed, progress)
        return keys

    def release(self) -> None:
        """Let go of the source, whose encoder may be large."""
        close = getattr(self._opened, "close", None)
        if close is not None:
            close()
        self._opened = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _count_cut(self, count: int) -> None:
        self.truncated += count

    def _open(self) -> Source:
        if self._opened is None:
            source = open_source(self._config, self._options, self._prompts, self.device, self._count_cut)
            if self._options.known is not None:
                texts, vectors = read_known(Path(self._options.known))
                check_parity(lambda some: source(some, "story"), texts, vectors, self._options.known)
            elif self.source != "encoder" and not len(self.store):
                warnings.warn(
                    f"{self.source}: nothing is known to compare its vectors with; vectors.known names a file of some",
                    stacklevel=2,
                )
            self._opened = source
        return self._opened


def _check_followed(config: EncoderConfig) -> None:
    if config.quantization is not None:
        raise OptionError("encoder.quantization is of no effect on a served model: leave it out, or set vectors.source")
    if config.normalize is not True:
        raise OptionError("encoder.normalize must be true where vectors are served: servers differ in their lengths")
