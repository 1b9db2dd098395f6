"""BiLSTM over frozen sentence embeddings, with subspaces for theme, action and outcome (Mendel292)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.data.schema import ASPECTS, PADDING
from narrlit.distributed import gather
from narrlit.embedding_cache.sources import EmbeddingSource
from narrlit.errors import OptionError
from narrlit.losses.batch_hard import batch_hard, subspace_sizes, subspaces
from narrlit.models.config import BiLSTMConfig, EncoderConfig
from narrlit.objectives.base import Optimization, check_numbers
from narrlit.objectives.frozen_heads import FrozenObjective
from narrlit.objectives.triplet_margin import triplet_terms


@dataclass(frozen=True)
class Aspects:
    """Settings of the subspaces for theme, action and outcome; pseudo-labels come from `data.pseudo_labels`.

    Attributes:
        labelled: stories whose pseudo-labels are used: the `anchors`, or `all` stories of a batch.
        ratios: relative sizes of the three subspaces.
        weights: weights of the three losses.
        weight: weight of the sum of these losses (lambda_mt).
        unlabelled_weight: the same weight for unlabeled stories in a transductive run.
        margin: margin of the batch-hard loss, in Euclidean distance of unit vectors.
        divisor: stories over which the loss of a subspace is averaged: those with a pair (`paired`), or with a label
            (`labeled`).
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
        ratios = _by_element("ratios", self.ratios)
        weights = _by_element("weights", self.weights)
        numbers = {"weight": self.weight, "unlabelled_weight": self.unlabelled_weight, "margin": self.margin}
        check_numbers("aspects.", positive=ratios, minimum_0=weights | numbers)


def _by_element(name: str, values: Sequence[float]) -> dict[str, float]:
    """Name each element of a setting, which must have a number for each aspect.

    Raises:
        OptionError: if the setting has another length.
    """
    if len(values) != len(ASPECTS):
        raise OptionError("number_for_each_aspect", option=f"aspects.{name}", found=values, aspects=list(ASPECTS))
    return {f"{name}[{number}]": value for number, value in enumerate(values)}


class AspectBiLSTM(FrozenObjective):
    """Loss w_t triplet(cosine distance) + w sum_k w_k L_k [+ w_u sum_k w_k L_k of unlabeled stories].

    L_k is the batch-hard loss of pseudo-labels in subspace k. Stories without a positive or a negative do not
    contribute to it, and are counted as `without_pair`. Without pseudo-labels, only the triplet loss is used. The paper
    divides L_k by N without defining it: see `aspects.divisor`.

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
            encoder: frozen encoder of the sentences.
            optimization: optimizer of the BiLSTM.
            embeddings: source of frozen embeddings.
            bilstm: sizes of the BiLSTM.
            aspects: subspaces and their losses.
            margin: margin of the triplet loss, in cosine distance.
            triplet_weight: weight of the triplet loss.
        """
        super().__init__(encoder, optimization, embeddings)
        if bilstm.output < len(ASPECTS):
            raise OptionError("dimension_for_each_aspect", output=bilstm.output, least=len(ASPECTS))
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
        """Compute the loss, the loss of each subspace, and its number of labeled stories without a pair."""
        self.count_anchors((batch.negatives >= 0).any(1))
        terms = triplet_terms(embeddings, batch, self.margin)
        terms["triplet"] = terms["loss"].detach()
        loss = self.triplet_weight * terms["loss"]
        if batch.pseudo_labels is not None:
            labeled_terms = self._labeled_losses(embeddings, batch, batch.pseudo_labels)
            loss = loss + self.aspects.weight * labeled_terms.pop("loss")
            terms |= labeled_terms
        if batch.unlabelled is not None:
            stories, labels = batch.unlabelled.stories, batch.unlabelled.pseudo_labels
            unlabeled_terms = self.subspace_losses(self(stories), labels, stories.indices)
            loss = loss + self.aspects.unlabelled_weight * unlabeled_terms.pop("loss")
            for name, value in unlabeled_terms.items():
                terms[f"unlabelled_{name}"] = value
        terms["loss"] = loss
        return terms

    def _labeled_losses(self, embeddings: Tensor, batch: ExampleBatch, pseudo_labels: Tensor) -> dict[str, Tensor]:
        """Compute the subspace losses of the anchors, or of all stories of the batch."""
        positions = batch.anchors
        if self.aspects.labelled == "all":
            positions = torch.cat([batch.anchors, batch.positives, batch.negatives.flatten()])
        is_padding = positions < 0
        positions = positions.clamp(min=0)
        indices = batch.stories.indices[positions].masked_fill(is_padding, PADDING)
        labels = pseudo_labels[positions].masked_fill(is_padding[:, None], PADDING)
        return self.subspace_losses(embeddings[positions], labels, indices)

    def subspace_losses(self, embeddings: Tensor, labels: Tensor, indices: Tensor) -> dict[str, Tensor]:
        """Compute batch-hard losses over the stories of all processes, and count labeled stories without a pair.

        Args:
            embeddings: (N, output) of this process's stories; N is the same in each process.
            labels: (N, 3) pseudo-labels, PADDING if a label is missing.
            indices: (N,) story indices; a story is never paired with itself.
        """
        all_embeddings, all_labels, stories = gather(embeddings), gather(labels), gather(indices)
        terms: dict[str, Tensor] = {}
        total = all_embeddings.sum() * 0
        columns = zip(ASPECTS, subspaces(all_embeddings, self.sizes), all_labels.T, self.aspects.weights, strict=True)
        for aspect, subspace, aspect_labels, weight in columns:
            hard = batch_hard(subspace, aspect_labels, self.aspects.margin, stories, self.aspects.divisor)
            total = total + weight * hard.loss
            terms[aspect] = hard.loss.detach()
            num_labeled = (aspect_labels >= 0).sum()
            terms[f"{aspect}_without_pair"] = (num_labeled - hard.rows).float()
        return {"loss": total, **terms}
