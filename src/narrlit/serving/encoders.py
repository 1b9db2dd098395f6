"""Encoder that the threads of a server share."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property

import torch

from narrlit.data.schema import FloatArray
from narrlit.encoding.options import Loading
from narrlit.encoding.story_encoder import Item, StoryEncoder
from narrlit.models.config import Role
from narrlit.models.coverage import Coverage
from narrlit.models.encoder import Encoder
from narrlit.models.onednn import fused_linears


class SharedEncoder(StoryEncoder):
    """Story encoder whose model threads use in turn: one for the texts of requests, others for searches.

    If possible, oneDNN computes the linear layers as long as the encoder exists: `embed` prepares this for each call,
    which takes too long for the few texts of a request.
    """

    def __init__(self, model: str, loading: Loading = Loading()) -> None:
        """Take the name of a model, and how it is loaded; its weights are loaded once."""
        super().__init__(model, loading=loading)
        self._turn = threading.Lock()
        self._fused = ExitStack()

    @cached_property
    def module(self) -> Encoder:
        """The model with its weights, on its device."""
        encoder = super().module
        with torch.inference_mode():
            self._fused.enter_context(fused_linears(encoder.transformer))
        return encoder

    def read(self, items: Sequence[Item], roles: Sequence[Role], progress: bool = False) -> tuple[FloatArray, Coverage]:
        """Embed as `StoryEncoder.read` does, when no other thread does."""
        with self._turn:
            return super().read(items, roles, progress)
