"""Mendel292: a BiLSTM over frozen sentence embeddings, its output cut into subspaces for theme, action and outcome."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from narrlit.cache.sources import EmbeddingSource
from narrlit.data.batch import ExampleBatch
from narrlit.data.schema import ASPECTS, PADDING
from narrlit.distributed import gather
from narrlit.errors import OptionError
from narrlit.losses.batch_hard import batch_hard, subspace_sizes, subspaces
from narrlit.models.config import BiLSTMConfig, EncoderConfig
from narrlit.objectives.base import Optimization, check_numbers
from narrlit.objectives.frozen_heads import FrozenObjective
from narrlit.objectives.triplet_margin import triplet_terms


@dataclass(frozen=True)
class Aspects:
    """Settings of the subspaces, one each for theme, action and outcome; pseudo-labels come from `data.pseudo_labels`.

    Attributes:
        labelled: whose pseudo-labels count: those of the `anchors`, or of `all` stories of a batch.
        ratios: relative sizes of the subspaces.
        weights: of the subspaces' losses.
        weight: of these losses together (lambda_mt).
        unlabelled_weight: the same for unlabelled stories of a transductive run.
        margin: of the batch-hard loss, in Euclidean distance of unit vectors.
        divisor: stories of a batch that a subspace's loss is averaged over: those that have a pair (`paired`), or all
            whose label counts (`labeled`).
    """

    labelled: Literal["anchors", "all"] = "anchors"
    ratios: tuple[float, float, float] = (0.5, 0.25, 0.25)
    weights: tuple[float, float, float] = (0.5, 0.3, 0.2)
    weight: float = 0.974
    unlabelled_weight: float = 0.355
    margin: float = 0.537
    divisor: Literal["paired", "labeled"] = "paired"

    def __post_init__(self) -> None:
        """Check ranges."""
        ratios = {f"ratios[{i}]": value for i, value in enumerate(self.ratios)}
        weights = {f"weights[{i}]": value for i, value in enumerate(self.weights)}
        numbers = {"weight": self.weight, "unlabelled_weight": self.unlabelled_weight, "margin": self.margin}
        check_numbers("aspects.", positive=ratios, minimum_0=weights | numbers)


class AspectBiLSTM(FrozenObjective):
    """w_t triplet(cosine distance) + w sum_k w_k L_k [+ w_u sum_k w_k L_k of unlabelled stories].

    L_k is batch-hard in subspace k over pseudo-labels; a story without a partner of its label, or one of another, gives
    nothing, and is counted as `without_pair`. Without pseudo-labels the triplet loss alone remains. The paper divides
    L_k by N and does not define it: see `aspects.divisor`.

    Source: Mendel292, section 2 and appendix B, items 3 to 5.
    """

    unit = "sentence"

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        embeddings: EmbeddingSource = EmbeddingSource(),
        bilstm: BiLSTMConfig = BiLSTMConfig(),
        aspects: Aspects = Aspects(),
        margin: float = 1.002,
        triplet_weight: float = 1.437,
    ) -> None:
        """Set the head and its losses.

        Args:
            encoder: whose sentence embeddings the BiLSTM reads.
            optimization: optimizer of the BiLSTM.
            embeddings: source of frozen embeddings.
            bilstm: its sizes.
            aspects: the subspaces and their losses.
            margin: of the triplet loss, in cosine distance.
            triplet_weight: of the triplet loss.
        """
        super().__init__(encoder, optimization, embeddings)
        if bilstm.output < len(ASPECTS):
            raise OptionError(f"bilstm.output is {bilstm.output}: every aspect needs at least 1 of 3 dimensions")
        check_numbers("", minimum_0={"margin": margin, "triplet_weight": triplet_weight})
        self.bilstm = bilstm
        self.aspects = aspects
        self.margin = margin
        self.triplet_weight = triplet_weight
        self.sizes = subspace_sizes(bilstm.output, aspects.ratios)
        self.save_settings(aspects=asdict(aspects), margin=margin, triplet_weight=triplet_weight)

    def head_settings(self) -> dict[str, Any]:
        """Return the head's kind and sizes."""
        return {"kind": "bilstm", **asdict(self.bilstm)}

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss, each subspace's loss, and its labelled stories without a pair."""
        terms = triplet_terms(embeddings, batch, self.margin)
        terms["triplet"] = terms["loss"].detach()
        terms["loss"] = self.triplet_weight * terms["loss"]
        if batch.pseudo_labels is not None:
            chosen = batch.anchors
            if self.aspects.labelled == "all":
                chosen = torch.cat([batch.anchors, batch.positives, batch.negatives.flatten()])
            padding, position = chosen < 0, chosen.clamp(min=0)
            indices = batch.stories.indices[position].masked_fill(padding, PADDING)
            labels = batch.pseudo_labels[position].masked_fill(padding[:, None], PADDING)
            subspace_terms = self.subspace_losses(embeddings[position], labels, indices)
            terms["loss"] = terms["loss"] + self.aspects.weight * subspace_terms.pop("loss")
            terms |= subspace_terms
        if batch.unlabelled is not None:
            stories, labels = batch.unlabelled.stories, batch.unlabelled.pseudo_labels
            more = self.subspace_losses(self(stories), labels, stories.indices)
            terms["loss"] = terms["loss"] + self.aspects.unlabelled_weight * more.pop("loss")
            terms |= {f"unlabelled_{name}": value for name, value in more.items()}
        return terms

    def subspace_losses(self, embeddings: Tensor, labels: Tensor, indices: Tensor) -> dict[str, Tensor]:
        """Compute batch-hard losses over the stories of all processes, and count labeled stories without a pair.

        Args:
            embeddings: (N, output) of this process's stories; N is the same in each process.
            labels: (N, 3) pseudo-labels, PADDING where there is none.
            indices: (N,) story indices; a story never pairs with itself.
        """
        gathered, known, stories = gather(embeddings), gather(labels), gather(indices)
        terms: dict[str, Tensor] = {}
        total = gathered.sum() * 0
        for k, subspace in enumerate(subspaces(gathered, self.sizes)):
            hard = batch_hard(subspace, known[:, k], self.aspects.margin, stories, self.aspects.divisor)
            total = total + self.aspects.weights[k] * hard.loss
            terms[ASPECTS[k]] = hard.loss.detach()
            terms[f"{ASPECTS[k]}_without_pair"] = ((known[:, k] >= 0).sum() - hard.rows).float()
        return {"loss": total, **terms}
