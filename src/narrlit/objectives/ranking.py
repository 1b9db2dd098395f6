"""Multiple-negatives ranking (NLP-FSDM): an anchor's own positive against every other story of the batch."""

from typing import Literal

import torch
from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.distributed import gather, rank
from narrlit.errors import OptionError
from narrlit.losses.contrastive import ranking_loss
from narrlit.losses.masks import duplicates_mask
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization


class Ranking(Objective):
    """Cross-entropy over scale * cos(anchor, candidate).

    Candidates are the batch's positives (over all processes) and, for `triplets`, its explicit negatives too. A
    candidate that is the same story as the anchor or its positive never counts as a negative.

    Source: NLP-FSDM, Eq. 1, whose tau multiplies and so is the scale (Henderson et al. 2017). The paper's Eq. 1 has
    `pairs`; with `triplets` the dissimilar story of each triple joins the candidates.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        scale: float = 20.0,
        candidates: Literal["pairs", "triplets"] = "triplets",
    ) -> None:
        """Args: see the class; `scale` is the inverse temperature.

        Raises:
            OptionError: for a scale that is not positive.
        """
        if scale <= 0:
            raise OptionError(f"scale is {scale}: a positive number is needed")
        super().__init__(encoder, optimization)
        self.scale = scale
        self.candidates = candidates
        self.keep_hyperparameters(scale=scale, candidates=candidates)

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """None of them for `pairs`."""
        return torch.zeros_like(batch.negatives, dtype=torch.bool) if self.candidates == "pairs" else None

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class."""
        rows = batch.stories.rows
        target = torch.arange(len(batch.anchors), device=vectors.device) + rank() * len(batch.anchors)
        positives = gather(vectors[batch.positives])
        candidate_rows = gather(rows[batch.positives])
        negatives = None
        if self.candidates == "triplets" and batch.negatives.shape[1]:
            chosen = batch.negatives.flatten()
            # Padding points at story 0, whose vector is masked: shapes stay equal on every process.
            negatives = gather(vectors[chosen.clamp(min=0)])
            candidate_rows = torch.cat([candidate_rows, gather(torch.where(chosen < 0, -1, rows[chosen]))])
        keep = duplicates_mask(candidate_rows, rows[batch.anchors], rows[batch.positives])
        anchors = vectors[batch.anchors]
        return {"loss": ranking_loss(anchors, positives, target, negatives, keep, self.scale)}
