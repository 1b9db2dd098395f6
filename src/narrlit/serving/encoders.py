"""Encoder that the threads of a server share."""

import threading
from collections.abc import Sequence

from narrlit.data.schema import FloatArray
from narrlit.encoding.options import Loading
from narrlit.encoding.story_encoder import StoryEncoder, StoryOrText
from narrlit.models.config import Role
from narrlit.models.coverage import Coverage


class SharedEncoder(StoryEncoder):
    """Story encoder whose model threads use in turn: one for the texts of requests, others for searches."""

    def __init__(self, model: str, loading: Loading = Loading()) -> None:
        """Take the name of a model, and how it is loaded; its weights are loaded once."""
        super().__init__(model, loading=loading)
        self._turn = threading.Lock()

    def read(
        self,
        items: Sequence[StoryOrText],
        roles: Sequence[Role],
        progress: bool = False,
        covered: int | None = None,
    ) -> tuple[FloatArray, Coverage]:
        """Embed as `StoryEncoder.read` does, when no other thread does."""
        with self._turn:
            return super().read(items, roles, progress, covered)
