"""A linear or MLP head on a frozen encoder's story embeddings (Mendel292's models beside the BiLSTM)."""

from typing import Any

from torch import Tensor

from narrlit.cache.sources import EmbeddingSource
from narrlit.data.batch import ExampleBatch
from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Optimization, check_numbers
from narrlit.objectives.frozen import FrozenObjective
from narrlit.objectives.triplet import triplet_terms


class MLPHead(FrozenObjective):
    """Triplet margin loss on cosine distance, over linear layers with ReLU between them; none hidden: a linear map.

    Source: Mendel292, appendix B, item 2.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        embeddings: EmbeddingSource = EmbeddingSource(),
        hidden: list[int] | None = None,
        output: int = 256,
        margin: float = 1.0,
    ) -> None:
        """Set the head and its loss.

        Args:
            encoder: whose embeddings the head maps.
            optimization: optimizer of the head.
            embeddings: source of frozen embeddings.
            hidden: sizes of hidden layers.
            output: dimension of an embedding.
            margin: of the triplet loss, in cosine distance.

        Raises:
            OptionError: for a size below 1 or a margin below 0.
        """
        if min([output, *(hidden or [])]) < 1:
            raise OptionError(f"hidden {hidden} and output {output}: sizes of at least 1 are needed")
        check_numbers("", minimum_0={"margin": margin})
        super().__init__(encoder, optimization, embeddings)
        self.hidden = list(hidden or [])
        self.output = output
        self.margin = margin
        self.save_settings(margin=margin)

    def head_settings(self) -> dict[str, Any]:
        """Return the head's kind and sizes."""
        return {"kind": "mlp", "hidden": self.hidden, "output": self.output}

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss; `active` is the share of triplets within the margin."""
        return triplet_terms(embeddings, batch, self.margin)
