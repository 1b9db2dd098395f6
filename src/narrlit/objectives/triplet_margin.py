"""Triplet margin loss: the positive is closer than each negative by a margin (ttda704, single view)."""

from typing import Literal

import torch
from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.data.schema import NEGATIVE_KINDS
from narrlit.distributed import joint_mean
from narrlit.errors import OptionError
from narrlit.losses.triplet import Distance, adaptive_margin, distances, triplet_loss
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization, check_numbers

TRIPLE = NEGATIVE_KINDS.index("triple")


class Triplet(Objective):
    """Mean over (anchor, positive, negative) of max(0, d(a, p) - d(a, n) + margin).

    An example with K negatives gives K triplets. With `maximum_margin`, the margin is adaptive:
    m = margin + 0.5 clamp(d_n - d_p, 0, maximum_margin - margin).

    Source: ttda704, appendix A.3 and Table 4 (cosine distance, margin 0.3); its published code uses squared Euclidean
    distances and the adaptive margin.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        distance: Distance = "cosine",
        margin: float = 0.3,
        maximum_margin: float | None = None,
        negatives: Literal["all", "triple"] = "all",
        dimensions: list[int] | None = None,
    ) -> None:
        """Set the loss.

        Args:
            encoder: encoder that is trained.
            optimization: optimizer of the encoder.
            distance: `cosine`, `euclidean` or `squared_euclidean`.
            margin: margin in the unit of the distance.
            maximum_margin: upper limit of an adaptive margin; None: the margin is fixed.
            negatives: `all` negatives of an example, or only the dissimilar story of its `triple`.
            dimensions: sizes of the prefixes over which the loss is summed (Matryoshka), such as [384, 192, 96]; they
                are normalized. None: only whole embeddings are trained.
        """
        margins = {"margin": margin}
        if maximum_margin:
            margins["maximum_margin"] = maximum_margin
        check_numbers("", minimum_0=margins)
        if maximum_margin is not None and maximum_margin < margin:
            raise OptionError("maximum_margin", maximum_margin=maximum_margin, margin=margin)
        self.needs_unit_vectors = distance == "cosine"
        super().__init__(encoder, optimization, dimensions)
        self.distance: Distance = distance
        self.margin = margin
        self.maximum_margin = maximum_margin
        self.negatives = negatives
        self.save_settings(
            distance=distance,
            margin=margin,
            maximum_margin=maximum_margin,
            negatives=negatives,
            dimensions=dimensions,
        )

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Mark the negatives that the loss uses."""
        return batch.kinds == TRIPLE if self.negatives == "triple" else None

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss, and `active`, the share of triplets with a loss above 0."""
        self.count_anchors((batch.negatives >= 0).any(1))
        losses, active = [], []
        for vectors in self.prefixes(embeddings):
            terms = triplet_terms(vectors, batch, self.margin, self.maximum_margin, self.distance)
            losses.append(terms["loss"])
            active.append(terms["active"])
        return {"loss": torch.stack(losses).sum(), "active": torch.stack(active).mean()}


def triplet_terms(
    embeddings: Tensor,
    batch: ExampleBatch,
    margin: float,
    maximum_margin: float | None = None,
    distance: Distance = "cosine",
) -> dict[str, Tensor]:
    """Compute the triplet loss of a batch with one triplet per negative, and `active`, the share with a loss above 0.

    Every triplet of all processes has the same weight: both results are this process's terms of the joint mean
    (`joint_mean`), which are 0, with a gradient of 0, if it has no triplet.

    Args:
        embeddings: (U, D) embeddings of the batch's stories; unit vectors if the distance is cosine.
        batch: indices of anchors, positives and negatives.
        margin: margin in the unit of the distance.
        maximum_margin: upper limit of an adaptive margin; None: the margin is fixed.
        distance: distance of two embeddings.

    Raises:
        OptionError: if no example has a negative.
    """
    if not batch.negatives.shape[1]:
        raise OptionError("loss_needs_negatives")
    example, column = (batch.negatives >= 0).nonzero(as_tuple=True)
    anchors = embeddings[batch.anchors[example]]
    d_positive = distances(anchors, embeddings[batch.positives[example]], distance)
    d_negative = distances(anchors, embeddings[batch.negatives[example, column]], distance)
    margins: float | Tensor = margin
    if maximum_margin is not None:
        margins = adaptive_margin(d_positive, d_negative, margin, maximum_margin)
    losses = triplet_loss(d_positive, d_negative, margins, reduction="none")
    return {"loss": joint_mean(losses), "active": joint_mean((losses > 0).float())}
