"""Mendel292: a BiLSTM over frozen sentence vectors, its output cut into slices for theme, action and outcome."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor, nn

from narrlit.data.batch import ExampleBatch, PackedVectors
from narrlit.distributed import gather, rank
from narrlit.errors import OptionError
from narrlit.losses.batch_hard import batch_hard, subspace_sizes, subspaces
from narrlit.models.bilstm import BiLSTMConfig
from narrlit.models.config import EncoderConfig
from narrlit.models.heads import build_head
from narrlit.models.weak_labels import (
    ASPECTS,
    LABELS,
    Clusters,
    WeakLabels,
    read_weak_labels,
    truth_labels,
    write_weak_labels,
)
from narrlit.objectives.base import Optimization
from narrlit.objectives.frozen import FrozenObjective
from narrlit.objectives.triplet import triplet_terms
from narrlit.objectives.unlabelled import UnlabelledStories
from narrlit.preprocessing.sentences import split_sentences as sentences
from narrlit.seeds import run_seed
from narrlit.stores.features import Units
from narrlit.stores.labels import story_labels
from narrlit.stores.sources import VectorOptions


@dataclass(frozen=True)
class Aspects:
    """How slices of a story's vector are trained, one each for theme, action and outcome.

    Attributes:
        labels: `positional` clusters the vectors of each story's beginning, middle and end; `truth` asks the data, and
            StoryWorldData knows it; `none` leaves the slices alone.
        labelled: whose labels count: those of the `anchors`, or of `all` stories of a batch.
        clusters: of the positional labels.
        ratios: of the slices' sizes.
        weights: of the slices' losses.
        weight: of these losses together (lambda_mt).
        unlabelled_weight: the same for unlabelled stories, where the run is transductive.
        margin: of the batch-hard loss, in Euclidean distance of slices of length 1.
    """

    labels: Literal["positional", "truth", "none"] = "positional"
    labelled: Literal["anchors", "all"] = "anchors"
    clusters: Clusters = field(default_factory=Clusters)
    ratios: tuple[float, float, float] = (0.5, 0.25, 0.25)
    weights: tuple[float, float, float] = (0.5, 0.3, 0.2)
    weight: float = 0.974
    unlabelled_weight: float = 0.355
    margin: float = 0.537

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if not all(ratio > 0 for ratio in self.ratios):
            raise OptionError(f"aspects.ratios are {self.ratios}: numbers above 0 are needed")
        if not all(value >= 0 for value in (*self.weights, self.weight, self.unlabelled_weight, self.margin)):
            raise OptionError("aspects: weights, weight, unlabelled_weight and margin must be at least 0")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Aspects":
        """The inverse of `asdict`."""
        clusters = values.get("clusters") or {}
        kept = clusters if isinstance(clusters, Clusters) else Clusters(**clusters)
        triples = {name: tuple(value) for name, value in values.items() if name in ("ratios", "weights")}
        plain: dict[str, Any] = {**values, **triples, "clusters": kept}
        return cls(**plain)


class Subspaces(FrozenObjective):
    """w_t triplet(cosine distance) + w sum_k w_k L_k [+ w_u sum_k w_k L_k of unlabelled stories].

    L_k is batch-hard in slice k over labels that nobody gave (or, in StoryWorld, that are true); a story without a
    partner of its label, or one of another, gives nothing, and is counted as `without_pair`. A transductive run also
    clusters and trains on stories whose triples it will be judged by, without their labels, and is marked so.

    Source: Mendel292, section 2 and appendix B, items 3 to 5.
    """

    units: Units = staticmethod(sentences)

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        vectors: VectorOptions = VectorOptions(),  # noqa: B008 (frozen)
        bilstm: BiLSTMConfig = BiLSTMConfig(),  # noqa: B008 (frozen)
        aspects: Aspects = Aspects(),
        margin: float = 1.002,
        triplet_weight: float = 1.437,
        transductive: bool = False,
    ) -> None:
        """Args: see the class; `margin` is the triplet loss's.

        Raises:
            OptionError: for a margin or weight below 0, or a transductive run without positional labels.
        """
        super().__init__(encoder, optimization, vectors)
        self.bilstm = BiLSTMConfig(**bilstm) if isinstance(bilstm, dict) else bilstm
        self.aspects = Aspects.from_dict(aspects) if isinstance(aspects, dict) else aspects
        if self.bilstm.output < len(ASPECTS):
            raise OptionError(f"bilstm.output is {self.bilstm.output}: at least a number for each slice is needed, 3")
        if not (margin >= 0 and triplet_weight >= 0):
            raise OptionError(f"margin {margin} and triplet_weight {triplet_weight}: numbers of at least 0 are needed")
        if transductive and self.aspects.labels != "positional":
            raise OptionError("model.transductive: true labels stories by cluster: set aspects.labels to positional")
        self.margin = margin
        self.triplet_weight = triplet_weight
        self.transductive = transductive
        self.labels: Tensor | None = None
        """(M, 3) labels of the training stories by row, -1 where there is none; None where slices are left alone."""
        self.unlabelled: UnlabelledStories | None = None
        self.sizes = subspace_sizes(self.bilstm.output, self.aspects.ratios)
        self.keep_hyperparameters(
            aspects=asdict(self.aspects), margin=margin, triplet_weight=triplet_weight, transductive=transductive
        )

    def head_settings(self) -> dict[str, Any]:
        """The BiLSTM."""
        return {"kind": "bilstm", **asdict(self.bilstm)}

    def build_head(self, dimension: int) -> nn.Module:
        """The BiLSTM, as torch draws it."""
        return build_head(dimension=dimension, **self.head_settings())

    def marks(self) -> dict[str, bool]:
        """Also whether stories that are judged have been trained on, without labels."""
        return {**super().marks(), "transductive": self.transductive}

    def check(self, data: Any) -> None:
        """Labels need stories that have them, or enough stories to cluster."""
        texts, others = data.training_texts(), self._others(data)
        if self.transductive and not others:
            raise OptionError("model.transductive needs stories without labels: give --data.extra.unlabelled FILE")
        if self.aspects.labels == "truth" and not any(data.story_truths(texts)):
            raise OptionError(
                "aspects.labels is truth, but this data does not know it: use positional, or StoryWorldData"
            )
        if self.aspects.labels == "positional":
            self.aspects.clusters.require(len(texts) + len(others))

    def _others(self, data: Any) -> list[str]:
        """Unlabelled stories that are none of the training stories."""
        known = set(data.training_texts())
        return [text for text in data.unlabelled_texts() if text not in known] if self.transductive else []

    def prepare(self, stage: str, data: Any) -> None:
        """Label the training stories, and the unlabelled ones where the run is transductive."""
        if stage != "fit":
            return
        texts, others = data.training_texts(), self._others(data)
        if self.aspects.labels == "truth":
            self.labels = _truths(data.story_truths(texts))
        elif self.aspects.labels == "positional":
            found = self._weak_labels(texts, others)
            self.labels = torch.from_numpy(found.labels[: len(texts)])
            data.provenance["train"]["weak_labels"] = found.provenance
            self._keep(found, [*texts, *others])
            if others:
                table = self.story_table(others, "unlabelled")
                self.unlabelled = UnlabelledStories(table, torch.from_numpy(found.labels[len(texts) :]))

    def apply_head(self, stories: PackedVectors) -> Tensor:
        """Vectors (U, output) of stories, from those of their sentences."""
        vectors: Tensor = self.head(stories.vectors, stories.lengths)
        return vectors

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class; also each slice's loss, and how many labelled rows of it have no pair."""
        terms = triplet_terms(vectors, batch, self.margin)
        terms["triplet"] = terms["loss"].detach()
        terms["loss"] = self.triplet_weight * terms["loss"]
        if self.labels is None:
            return terms
        chosen = self._labelled(batch)
        rows = torch.where(chosen < 0, -1, batch.stories.rows[chosen.clamp(min=0)])
        self.labels = self.labels.to(rows.device)
        labels = torch.where(rows[:, None] < 0, -1, self.labels[rows.clamp(min=0)])
        found = self.slice_losses(vectors[chosen.clamp(min=0)], labels, rows)
        terms["loss"] = terms["loss"] + self.aspects.weight * found.pop("loss")
        terms |= found
        if self.unlabelled is not None:
            seeds = [run_seed(), self.batches_done, rank()]
            drawn = self.unlabelled.draw(len(batch.anchors), seeds, vectors.device)
            more = self.slice_losses(self(drawn.stories), drawn.labels, drawn.stories.rows)
            terms["loss"] = terms["loss"] + self.aspects.unlabelled_weight * more.pop("loss")
            terms |= {f"unlabelled_{name}": value for name, value in more.items()}
        return terms

    def slice_losses(self, vectors: Tensor, labels: Tensor, stories: Tensor) -> dict[str, Tensor]:
        """Batch-hard losses over all processes' rows.

        Args:
            vectors: (N, output) of this process's rows; N is the same in each.
            labels: (N, 3), -1 where there is none.
            stories: (N,) each row's story; a story is no pair of itself.

        Returns:
            `loss`, the weighted sum; each slice's loss, and its labelled rows `without_pair`.
        """
        whole, known, named = gather(vectors), gather(labels), gather(stories)
        terms: dict[str, Tensor] = {}
        total = whole.sum() * 0
        for k, part in enumerate(subspaces(whole, self.sizes)):
            found = batch_hard(part, known[:, k], self.aspects.margin, named)
            total = total + self.aspects.weights[k] * found.loss
            terms[ASPECTS[k]] = found.loss.detach()
            terms[f"{ASPECTS[k]}_without_pair"] = ((known[:, k] >= 0).sum() - found.rows).float()
        return {"loss": total, **terms}

    def _labelled(self, batch: ExampleBatch) -> Tensor:
        """Places of the rows whose labels count, -1 for padding; equally many in each process."""
        if self.aspects.labelled == "anchors":
            return batch.anchors
        return torch.cat([batch.anchors, batch.positives, batch.negatives.flatten()])

    def _weak_labels(self, texts: list[str], others: list[str]) -> WeakLabels:
        """Those of the run that this one goes on from, else new ones."""
        before = Path(self.trainer.ckpt_path).parents[1] if self.trainer.ckpt_path else None
        if before is not None and (before / LABELS).is_file():
            return read_weak_labels(before, [*texts, *others])
        return story_labels(self.frozen, texts, others, self.aspects.clusters)

    def _keep(self, found: WeakLabels, texts: list[str]) -> None:
        folder = self.trainer.log_dir  # asked by every process; without a logger it is wherever the user stands
        keeps = bool(self.trainer.loggers) and not self.trainer.fast_dev_run  # type: ignore[attr-defined]
        if folder is not None and keeps and self.trainer.is_global_zero:
            write_weak_labels(Path(folder), found, texts)


def _truths(truths: list[tuple[str, str, str] | None]) -> Tensor:
    found = truth_labels(truths)
    rank_zero_info(f"{int((found[:, 0] >= 0).sum())} of {len(found)} training stories have true labels")
    return torch.from_numpy(np.ascontiguousarray(found))
