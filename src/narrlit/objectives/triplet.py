"""Triplet margin loss (ttda704's single view): the positive nearer than each negative, by a margin."""

from typing import Literal

from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.errors import OptionError
from narrlit.losses.triplet import adaptive_margin, distances, triplet_loss
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization


class Triplet(Objective):
    """Mean over (anchor, positive, negative) of max(0, d(a, p) - d(a, n) + margin).

    An example with K negatives makes K triplets; padding makes none. With `maximum_margin` the margin adapts:
    m = margin + 0.5 clamp(d_n - d_p, 0, maximum_margin - margin).

    Source: ttda704, section 3 (cosine distance, margin 0.3); its published code has squared Euclidean distances and
    the adaptive margin.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        distance: Literal["cosine", "euclidean", "squared_euclidean"] = "cosine",
        margin: float = 0.3,
        maximum_margin: float | None = None,
    ) -> None:
        """Args: see the class.

        Raises:
            OptionError: for margins out of order.
        """
        if margin < 0 or (maximum_margin is not None and maximum_margin < margin):
            raise OptionError(f"margin {margin} and maximum_margin {maximum_margin}: 0 <= margin <= maximum is needed")
        self.needs_unit_vectors = distance == "cosine"
        super().__init__(encoder, optimization)
        self.distance: Literal["cosine", "euclidean", "squared_euclidean"] = distance
        self.margin = margin
        self.maximum_margin = maximum_margin
        self.keep_hyperparameters(distance=distance, margin=margin, maximum_margin=maximum_margin)

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class; `active` is the share of triplets that still pull."""
        if not batch.negatives.shape[1]:
            raise OptionError("objective Triplet needs negatives, and no training example has one: use Ranking")
        example, column = (batch.negatives >= 0).nonzero(as_tuple=True)
        if not len(example):  # every row of this batch is padding: nothing to learn, but a graph
            return {"loss": vectors.sum() * 0}
        anchors = vectors[batch.anchors[example]]
        near = distances(anchors, vectors[batch.positives[example]], self.distance)
        far = distances(anchors, vectors[batch.negatives[example, column]], self.distance)
        margin: float | Tensor = self.margin
        if self.maximum_margin is not None:
            margin = adaptive_margin(near, far, self.margin, self.maximum_margin)
        active = (near - far + margin > 0).float().mean()
        return {"loss": triplet_loss(near, far, margin), "active": active.detach()}
