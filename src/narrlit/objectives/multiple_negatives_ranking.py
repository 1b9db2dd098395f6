"""Multiple-negatives ranking (NLP-FSDM): an anchor's own positive against every other story of the batch."""

from typing import Literal

import torch
from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.data.schema import PADDING
from narrlit.distributed import gather, rank, world_size
from narrlit.losses.contrastive import ranking_loss
from narrlit.losses.masks import duplicates_mask
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization, check_numbers


class MultipleNegativesRanking(Objective):
    """Cross-entropy over scale * cos(anchor, candidate).

    Candidates are the batch's positives (over all processes), for `triplets` its explicit negatives too, and for
    `stories` also its other anchors. A candidate that is the same story as the anchor or its positive, or a version of
    it, never counts as a negative.

    Source: NLP-FSDM, Eq. 1, whose tau multiplies and so is the scale (Henderson et al. 2017). The paper's Eq. 1 has
    `pairs` and `sum`; with `triplets` the dissimilar story of each triple is a candidate too.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        scale: float = 20.0,
        candidates: Literal["pairs", "triplets", "stories"] = "triplets",
        reduction: Literal["mean", "sum"] = "mean",
    ) -> None:
        """Set the loss.

        Args:
            encoder: encoder that is trained.
            optimization: its optimizer.
            scale: factor of the cosine, the inverse temperature.
            candidates: `pairs`, `triplets`, or `stories`. In batches of one setting (`data.versions.setting`) the other
                anchors are those candidates that share the anchor's setting.
            reduction: `mean` or `sum` over the anchors of a batch, those of all processes.
        """
        check_numbers("", positive={"scale": scale})
        super().__init__(encoder, optimization)
        self.scale = scale
        self.candidates = candidates
        self.reduction: Literal["mean", "sum"] = reduction
        self.save_settings(scale=scale, candidates=candidates, reduction=reduction)

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Return which negatives the loss reads: none of them for `pairs`."""
        return torch.zeros_like(batch.negatives, dtype=torch.bool) if self.candidates == "pairs" else None

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss."""
        groups = batch.groups
        target = torch.arange(len(batch.anchors), device=embeddings.device) + rank() * len(batch.anchors)
        positives = gather(embeddings[batch.positives])
        candidates = [gather(groups[batch.positives])]
        negatives = []
        if self.candidates != "pairs" and batch.negatives.shape[1]:
            chosen = batch.negatives.flatten()
            # Padding points at story 0, whose embedding is masked: shapes are equal in every process.
            negatives.append(gather(embeddings[chosen.clamp(min=0)]))
            candidates.append(gather(torch.where(chosen < 0, PADDING, groups[chosen])))
        if self.candidates == "stories":
            negatives.append(gather(embeddings[batch.anchors]))
            candidates.append(gather(groups[batch.anchors]))
        keep = duplicates_mask(torch.cat(candidates), groups[batch.anchors], groups[batch.positives])
        others = torch.cat(negatives) if negatives else None
        anchors = embeddings[batch.anchors]
        loss = ranking_loss(anchors, positives, target, others, keep, self.scale, self.reduction)
        # Losses are averaged over the processes: the factor makes that the sum over all their anchors.
        return {"loss": loss * world_size() if self.reduction == "sum" else loss}
