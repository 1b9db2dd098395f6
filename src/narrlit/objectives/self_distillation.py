"""Self-distillation: InfoNCE with a mask of false negatives and KL divergence from a teacher (HITS)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor

from narrlit.compat.lightning import undeclared
from narrlit.data.batch import ExampleBatch
from narrlit.data.schema import NEGATIVE_KINDS
from narrlit.distributed import gather, summed
from narrlit.embedding_cache.teacher import TeacherEmbeddings
from narrlit.errors import OptionError
from narrlit.losses.contrastive import candidate_cosines, info_nce
from narrlit.losses.distillation import distillation_loss, linear_weight
from narrlit.losses.masks import duplicates_mask, teacher_mask
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization, candidate_groups, check_numbers, positive_columns
from narrlit.objectives.triplet_margin import TRIPLE


@dataclass(frozen=True)
class Distillation:
    """Settings of the KL term.

    Attributes:
        temperature: temperature of the softmax for student and teacher.
        space: similarities in the softmax: cosines, or logits (cosines divided by the temperature of InfoNCE).
        first_weight: weight of the term at the first step of a round; it changes linearly.
        last_weight: weight of the term at the last step of a round.
    """

    temperature: float = 0.15
    space: Literal["cosine", "logits"] = "cosine"
    first_weight: float = 0.7
    last_weight: float = 0.05

    def __post_init__(self) -> None:
        """Check ranges."""
        weights = {"first_weight": self.first_weight, "last_weight": self.last_weight}
        check_numbers("distillation.", positive={"temperature": self.temperature}, minimum_0=weights)


class SelfDistillation(Objective):
    """Loss CE + w KL over each anchor's own K negatives and the positives of other anchors (of all processes).

    CE is InfoNCE over the candidates that are not masked by the teacher. KL is the divergence of the student's
    distribution over these candidates from the teacher's. Without a teacher, as in the first round, the loss is CE over
    all candidates. A candidate is never a negative if it is the anchor, its positive, or a version of one of them.

    Source: HITS, Eq. 1 to 5. In Eq. 1 the similarities in CE are the teacher's; here they are the student's, as in the
    published code, and those of the teacher are in the mask (Eq. 3) and in KL (Eq. 4). The linear decrease of w over
    the steps of a round, and both temperatures, are from this code too. Section 3.3 masks "after the first teacher
    update"; here the mask begins in the first round with a teacher or, with `first_masked_round: 2`, after a student
    has replaced the first teacher. `TeacherPromotion` divides a fit into rounds and provides the teachers.

    Attributes:
        teacher: embeddings of the current teacher; None in the first round.
        round: number of the current round.
        kept: number of candidates that were not masked in this round and total number, by kind of candidate.
    """

    teacher: TeacherEmbeddings | None = None
    round = 0

    def __init__(  # noqa: PLR0913, PLR0917 (a config's keys)
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        temperature: float = 0.09,
        mask: bool = True,
        mask_margin: float = -0.05,
        first_masked_round: int = 0,
        distill: bool = True,
        distillation: Distillation = Distillation(),
        use_triple_negative: bool = False,
        dimensions: list[int] | None = None,
    ) -> None:
        """Set the loss.

        Args:
            encoder: encoder that is trained.
            optimization: optimizer of the encoder, which is reset in each round.
            temperature: temperature of CE.
            mask: mask candidates that are about as similar to the anchor as the positive, according to the teacher.
            mask_margin: added to the positive's cosine; the teacher masks candidates with a higher cosine.
            first_masked_round: first round with a mask, if it has a teacher.
            distill: add the KL term.
            distillation: settings of the KL term.
            use_triple_negative: also use the dissimilar story of a triple as a negative, unlike the published system.
            dimensions: sizes of the prefixes over which the loss is summed (Matryoshka), such as [384, 192, 96]; the
                teacher's embeddings are never truncated. None: only whole embeddings are trained.
        """
        check_numbers("", positive={"temperature": temperature})
        if not -2 <= mask_margin <= 2:
            needed = "a difference of cosines from -2 to 2"
            raise OptionError("config_value", option="mask_margin", found=mask_margin, needed=needed)
        if first_masked_round < 0:
            raise OptionError(
                "config_value", option="first_masked_round", found=first_masked_round, needed="at least 0"
            )
        super().__init__(encoder, optimization, dimensions)
        self.kept: dict[str, tuple[int, int]] = {}
        self.temperature = temperature
        self.mask = mask
        self.mask_margin = mask_margin
        self.first_masked_round = first_masked_round
        self.distill = distill
        self.distillation = distillation
        self.use_triple_negative = use_triple_negative
        self.save_settings(
            temperature=temperature,
            mask=mask,
            mask_margin=mask_margin,
            first_masked_round=first_masked_round,
            distill=distill,
            use_triple_negative=use_triple_negative,
            distillation=asdict(distillation),
            dimensions=dimensions,
        )

    def on_fit_start(self) -> None:
        """Raise OptionError if no training example has a negative."""
        super().on_fit_start()
        examples = undeclared(self.trainer).datamodule.examples
        used = examples.negatives >= 0
        if not self.use_triple_negative:
            used &= examples.kinds != TRIPLE
        if not used.any():
            raise OptionError("no_negatives_to_distill")

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Mark the negatives that the loss uses: all, or all except the dissimilar stories of triples."""
        return None if self.use_triple_negative else batch.kinds != TRIPLE

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss and its terms, with names by round, so that TensorBoard shows a curve for each round."""
        negatives = batch.negatives.clamp(min=0)
        target = positive_columns(batch, embeddings.device)
        students = []
        for vectors in self.prefixes(embeddings):
            positives = gather(vectors[batch.positives])
            students.append(candidate_cosines(vectors[batch.anchors], positives, vectors[negatives]))
        valid = _valid_candidates(batch)
        if self.teacher is None:
            self.count_anchors(valid.any(1))
            loss = self._cross_entropy(students, target, valid)
            terms = {"ce": loss.detach()}
        else:
            indices = batch.stories.indices
            teacher = candidate_cosines(
                self.teacher.of(indices[batch.anchors], "anchor"),
                gather(self.teacher.of(indices[batch.positives], "candidate")),
                self.teacher.of(indices[negatives], "candidate"),
            )
            loss, terms = self._loss_with_teacher(students, teacher, target, valid, batch.kinds)
        logged = {"loss": loss}
        for name, value in terms.items():
            logged[f"round_{self.round}/{name}"] = value
        return logged

    def _loss_with_teacher(
        self, students: Sequence[Tensor], teacher: Tensor, target: Tensor, valid: Tensor, kinds: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss and its terms over candidates that are valid and not masked by the teacher."""
        masked = self.mask and self.round >= self.first_masked_round
        passed = teacher_mask(teacher, target, self.mask_margin) if masked else torch.ones_like(valid)
        keep = valid & passed
        self.count_anchors(keep.any(1))
        loss = self._cross_entropy(students, target, keep)
        terms = {"ce": loss.detach(), **self._count_kept(passed, valid, kinds)}
        if self.distill:
            settings = self.distillation
            kl = self._divergence(students, teacher, target, keep)
            step = self.trainer.global_step - self.round * self.round_steps
            weight = linear_weight(step, self.round_steps, settings.first_weight, settings.last_weight)
            loss = loss + weight * kl
            terms |= {"kl": kl.detach(), "kl_weight": torch.tensor(weight)}
        return loss, terms

    def _cross_entropy(self, students: Sequence[Tensor], target: Tensor, keep: Tensor) -> Tensor:
        """Compute InfoNCE, summed over the prefixes, whose cosines (B, C + K) are given."""
        losses = [info_nce(student, target, keep, self.temperature) for student in students]
        return torch.stack(losses).sum()

    def _divergence(self, students: Sequence[Tensor], teacher: Tensor, target: Tensor, keep: Tensor) -> Tensor:
        """Compute the divergence from the teacher, summed over the prefixes, whose cosines (B, C + K) are given."""
        settings = self.distillation
        factor = 1.0 if settings.space == "cosine" else 1 / self.temperature
        losses = []
        for student in students:
            losses.append(
                distillation_loss(factor * student, factor * teacher, target, keep, temperature=settings.temperature)
            )
        return torch.stack(losses).sum()

    def _count_kept(self, passed: Tensor, valid: Tensor, kinds: Tensor) -> dict[str, Tensor]:
        """Add the candidates of a batch to the counts of the round; return the shares that the mask keeps, by kind."""
        shares = {}
        for name, (kept, total) in kept_counts(passed, valid, kinds).items():
            kept_before, total_before = self.kept.get(name, (0, 0))
            self.kept[name] = (kept_before + kept, total_before + total)
            shares[f"kept_{name}"] = torch.tensor(kept / total)
        return shares


def _valid_candidates(batch: ExampleBatch) -> Tensor:
    """Mark the candidates that can be negatives, (B, C + K): the positives of all processes, then own negatives."""
    anchor_groups, positive_groups = batch.groups[batch.anchors], batch.groups[batch.positives]
    own_groups = candidate_groups(batch, batch.negatives)
    in_batch_groups = gather(positive_groups).expand(len(own_groups), -1)
    groups = torch.cat([in_batch_groups, own_groups], dim=1)
    return duplicates_mask(groups, anchor_groups, positive_groups)


def kept_counts(passed: Tensor, valid: Tensor, kinds: Tensor) -> dict[str, tuple[int, int]]:
    """Count the valid candidates that the mask keeps, and all valid candidates, by kind and over all processes.

    Args:
        passed: (B, C + K) bool, True for candidates that the teacher's mask keeps.
        valid: (B, C + K) bool, True for candidates that can be negatives.
        kinds: (B, K) kinds of the anchors' own negatives.
    """
    names = ("unknown", *NEGATIVE_KINDS, "in_batch")
    num_in_batch = valid.shape[1] - kinds.shape[1]
    in_batch = kinds.new_full((len(kinds), num_in_batch), names.index("in_batch"))
    category = torch.cat([in_batch, kinds + 1], dim=1)
    is_of_category = category[..., None] == torch.arange(len(names), device=kinds.device)
    num_kept = (is_of_category & (valid & passed)[..., None]).sum((0, 1))
    num_valid = (is_of_category & valid[..., None]).sum((0, 1))
    counts = summed(torch.stack([num_kept, num_valid])).T.tolist()  # a single synchronization with the device
    kept_and_total = {}
    for name, (kept, total) in zip(names, counts, strict=True):
        if total:
            kept_and_total[name] = (kept, total)
    return kept_and_total
