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
        dimensions: list[int] | None = None,
    ) -> None:
        """Set the loss.

        Args:
            encoder: encoder that is trained.
            optimization: optimizer of the encoder.
            scale: factor of the cosine, the inverse temperature.
            candidates: `pairs`, `triplets`, or `stories`. In batches of one setting (`data.versions.setting`), the
                other anchors are candidates with the setting of the anchor.
            reduction: `mean` or `sum` over the anchors of a batch, in all processes.
            dimensions: sizes of the prefixes over which the loss is summed (Matryoshka), such as [384, 192, 96]; None:
                only whole embeddings are trained.
        """
        check_numbers("", positive={"scale": scale})
        super().__init__(encoder, optimization, dimensions)
        self.scale = scale
        self.candidates = candidates
        self.reduction: Literal["mean", "sum"] = reduction
        self.save_settings(scale=scale, candidates=candidates, reduction=reduction, dimensions=dimensions)

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Mark the negatives that the loss uses: none of them for `pairs`."""
        return torch.zeros_like(batch.negatives, dtype=torch.bool) if self.candidates == "pairs" else None

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss."""
        keep = self._candidates_kept(batch)
        self.count_anchors(keep.any(1))
        losses = [self._ranking_loss(vectors, batch, keep) for vectors in self.prefixes(embeddings)]
        loss = torch.stack(losses).sum()
        # Lightning averages over processes; the factor turns this average into a sum.
        return {"loss": loss * world_size() if self.reduction == "sum" else loss}

    def _uses_negatives(self, batch: ExampleBatch) -> bool:
        """Return True if the explicit negatives of a batch are candidates."""
        return self.candidates != "pairs" and batch.negatives.shape[1] > 0

    def _candidates_kept(self, batch: ExampleBatch) -> Tensor:
        """Mark the candidates that can be negatives, (B, M): positives, explicit negatives, then other anchors."""
        anchor_groups, positive_groups = batch.groups[batch.anchors], batch.groups[batch.positives]
        groups = [gather(positive_groups)]
        if self._uses_negatives(batch):
            groups.append(gather(candidate_groups(batch, batch.negatives.flatten())))
        if self.candidates == "stories":
            groups.append(gather(anchor_groups))
        return duplicates_mask(torch.cat(groups), anchor_groups, positive_groups)

    def _ranking_loss(self, vectors: Tensor, batch: ExampleBatch, keep: Tensor) -> Tensor:
        """Compute the loss of unit vectors (U, d) of the batch's stories."""
        negatives = []
        if self._uses_negatives(batch):
            # Padding selects story 0, which is masked, so that the shapes are the same in every process.
            negatives.append(gather(vectors[batch.negatives.flatten().clamp(min=0)]))
        if self.candidates == "stories":
            negatives.append(gather(vectors[batch.anchors]))
        return ranking_loss(
            vectors[batch.anchors],
            gather(vectors[batch.positives]),
            target=positive_columns(batch, vectors.device),
            negatives=torch.cat(negatives) if negatives else None,
            keep=keep,
            scale=self.scale,
            reduction=self.reduction,
        )
