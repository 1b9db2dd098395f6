"""Triplet margin loss (ttda704's single view): the positive nearer than each negative, by a margin."""

from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.errors import OptionError
from narrlit.losses.triplet import Distance, adaptive_margin, distances, triplet_loss
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
        distance: Distance = "cosine",
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
        self.distance: Distance = distance
        self.margin = margin
        self.maximum_margin = maximum_margin
        self.keep_hyperparameters(distance=distance, margin=margin, maximum_margin=maximum_margin)

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class; `active` is the share of triplets that still pull."""
        return triplet_terms(vectors, batch, self.margin, self.maximum_margin, self.distance)


def triplet_terms(
    vectors: Tensor,
    batch: ExampleBatch,
    margin: float,
    maximum_margin: float | None = None,
    distance: Distance = "cosine",
) -> dict[str, Tensor]:
    """Triplet loss of a batch, each negative of an example a triplet, and the share `active` of those that pull.

    Args:
        vectors: (U, D), of the batch's stories; unit vectors where the distance is cosine.
        batch: says which are anchors, positives and negatives.
        margin: in the unit of the distance.
        maximum_margin: let the margin adapt up to this.
        distance: what is compared.

    Raises:
        OptionError: if no example of the batch has a negative.
    """
    if not batch.negatives.shape[1]:
        raise OptionError("this objective needs negatives, and no training example has one: use Ranking")
    example, column = (batch.negatives >= 0).nonzero(as_tuple=True)
    if not len(example):  # every row of this batch is padding: nothing to learn, but a graph
        return {"loss": vectors.sum() * 0}
    anchors = vectors[batch.anchors[example]]
    near = distances(anchors, vectors[batch.positives[example]], distance)
    far = distances(anchors, vectors[batch.negatives[example, column]], distance)
    adapted: float | Tensor = margin
    if maximum_margin is not None:
        adapted = adaptive_margin(near, far, margin, maximum_margin)
    active = (near - far + adapted > 0).float().mean()
    return {"loss": triplet_loss(near, far, adapted), "active": active.detach()}
