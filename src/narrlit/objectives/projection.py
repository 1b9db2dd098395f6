"""Projection of a frozen encoder (Comhis): a square linear map trained on triples."""

from typing import Any

from torch import Tensor

from narrlit.cache.sources import EmbeddingSource
from narrlit.data.batch import ExampleBatch
from narrlit.models.config import EncoderConfig
from narrlit.models.heads import build_head
from narrlit.objectives.base import Optimization, check_numbers
from narrlit.objectives.frozen import FrozenObjective
from narrlit.objectives.triplet import triplet_terms


class Projection(FrozenObjective):
    """Mean of max(0, margin - (cos(x, p) - cos(x, n))) over projected embeddings e' = W e / |W e|.

    W is square, without bias, and starts as the identity plus noise; with `learning_rate: 0` and no noise it stays the
    identity, a control. Comhis samples hard examples more often: `data.hard_examples`.

    Source: Comhis, Eq. 1 and 2, section 4.3 and appendix A.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        embeddings: EmbeddingSource = EmbeddingSource(),
        margin: float = 0.2,
        noise: float = 0.01,
    ) -> None:
        """Set the loss and the first weights.

        Args:
            encoder: whose embeddings are projected.
            optimization: optimizer of the projection.
            embeddings: source of frozen embeddings.
            margin: of the triplet loss, in cosine distance.
            noise: standard deviation of W's noise, before division by the root of the dimension.

        Raises:
            OptionError: for a number below 0.
        """
        check_numbers("", minimum_0={"margin": margin, "noise": noise})
        super().__init__(encoder, optimization, embeddings)
        self.margin = margin
        self.noise = noise
        self.save_settings(margin=margin, noise=noise)

    def head_settings(self) -> dict[str, Any]:
        """Return the head's kind."""
        return {"kind": "projection"}

    def initial_head(self) -> Any:
        """Build the identity plus noise."""
        return build_head("projection", self.dimension, noise=self.noise)

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss; `active` is the share of triplets within the margin."""
        return triplet_terms(embeddings, batch, self.margin)
