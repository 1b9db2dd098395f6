"""Multiple negatives ranking: an anchor's positive against the other stories of the batch (NLP-FSDM)."""

from typing import Literal

import torch
from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.distributed import gather, world_size
from narrlit.losses.contrastive import ranking_loss
from narrlit.losses.masks import duplicates_mask
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization, candidate_groups, check_numbers, positive_columns


class MultipleNegativesRanking(Objective):
    """Cross-entropy over scale * cos(anchor, candidate).

    Candidates are the positives of the batch (of all processes); with `triplets`, also its explicit negatives, and with
    `stories`, also its other anchors. A candidate is never a negative if it is the anchor, its positive, or a version
    of one of them.

    Source: NLP-FSDM, Eq. 1 (after Henderson et al. 2017), where the scale is called tau. Eq. 1 corresponds to `pairs`
    and `sum`; with `triplets`, the dissimilar story of each triple is also a candidate.
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
            optimization: optimizer of the encoder.
            scale: factor of the cosine, the inverse temperature.
            candidates: `pairs`, `triplets`, or `stories`. In batches of one setting (`data.versions.setting`), the
                other anchors are candidates with the setting of the anchor.
            reduction: `mean` or `sum` over the anchors of a batch, in all processes.
        """
        check_numbers("", positive={"scale": scale})
        super().__init__(encoder, optimization)
        self.scale = scale
        self.candidates = candidates
        self.reduction: Literal["mean", "sum"] = reduction
        self.save_settings(scale=scale, candidates=candidates, reduction=reduction)

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Mark the negatives that the loss uses: none of them for `pairs`."""
        return torch.zeros_like(batch.negatives, dtype=torch.bool) if self.candidates == "pairs" else None

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss."""
        anchor_groups, positive_groups = batch.groups[batch.anchors], batch.groups[batch.positives]
        positives = gather(embeddings[batch.positives])
        groups = [gather(positive_groups)]
        negatives = []
        if self.candidates != "pairs" and batch.negatives.shape[1]:
            indices = batch.negatives.flatten()
            # Padding selects story 0, which is masked, so that the shapes are the same in every process.
            negatives.append(gather(embeddings[indices.clamp(min=0)]))
            groups.append(gather(candidate_groups(batch, indices)))
        if self.candidates == "stories":
            negatives.append(gather(embeddings[batch.anchors]))
            groups.append(gather(anchor_groups))
        keep = duplicates_mask(torch.cat(groups), anchor_groups, positive_groups)
        others = torch.cat(negatives) if negatives else None
        loss = ranking_loss(
            embeddings[batch.anchors],
            positives,
            target=positive_columns(batch, embeddings.device),
            negatives=others,
            keep=keep,
            scale=self.scale,
            reduction=self.reduction,
        )
        # Lightning averages over processes; the factor turns this average into a sum.
        return {"loss": loss * world_size() if self.reduction == "sum" else loss}
