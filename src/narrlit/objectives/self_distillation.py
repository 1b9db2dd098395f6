"""Self-distillation: InfoNCE with a mask of false negatives and KL divergence from a teacher (HITS)."""

from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor

from narrlit.cache.teacher import TeacherEmbeddings
from narrlit.compat.lightning import undeclared
from narrlit.data.batch import ExampleBatch
from narrlit.data.schema import KINDS, PADDING
from narrlit.distributed import gather, rank, summed
from narrlit.errors import OptionError
from narrlit.losses.contrastive import candidate_cosines, info_nce
from narrlit.losses.distillation import distillation_loss, linear_weight
from narrlit.losses.masks import duplicates_mask, teacher_mask
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization, check_numbers
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
        """
        check_numbers("", positive={"temperature": temperature})
        if not -2 <= mask_margin <= 2:
            raise OptionError(f"mask_margin is {mask_margin}: must be a difference of cosines from -2 to 2")
        if first_masked_round < 0:
            raise OptionError(f"first_masked_round is {first_masked_round}: must be at least 0")
        super().__init__(encoder, optimization)
        self.kept: dict[str, tuple[int, int]] = {}
        self.temperature = temperature
        self.mask = mask
        self.mask_margin = mask_margin
        self.first_masked_round = first_masked_round
        self.distill = distill
        self.distillation = distillation
        self.use_triple_negative = use_triple_negative
        names = ("temperature", "mask", "mask_margin", "first_masked_round", "distill", "use_triple_negative")
        self.save_settings(**{name: getattr(self, name) for name in names}, distillation=asdict(distillation))

    def on_fit_start(self) -> None:
        """Raise OptionError if no training example has a negative."""
        super().on_fit_start()
        examples = undeclared(self.trainer).datamodule.examples
        used = examples.negatives >= 0
        if not self.use_triple_negative:
            used &= examples.kinds != TRIPLE
        if not used.any():
            raise OptionError(
                "no training example has a negative: add some with `narrlit mine` or `narrlit generate negatives`; for "
                "triples, you can also set model.use_triple_negative: true"
            )

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Mark the negatives that the loss uses: all, or all except the dissimilar stories of triples."""
        return None if self.use_triple_negative else batch.kinds != TRIPLE

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss and its terms, with names by round, so that TensorBoard shows a curve for each round."""
        indices, negatives = batch.stories.indices, batch.negatives.clamp(min=0)
        target = torch.arange(len(batch.anchors), device=embeddings.device) + rank() * len(batch.anchors)
        student = candidate_cosines(
            embeddings[batch.anchors], gather(embeddings[batch.positives]), embeddings[negatives]
        )
        groups = batch.groups
        own_groups = torch.where(batch.negatives < 0, PADDING, groups[negatives])
        in_batch_groups = gather(groups[batch.positives]).expand(len(own_groups), -1)
        candidate_groups = torch.cat([in_batch_groups, own_groups], dim=1)
        valid = duplicates_mask(candidate_groups, groups[batch.anchors], groups[batch.positives])
        if self.teacher is None:
            ce = info_nce(student, target, valid, self.temperature)
            return {"loss": ce, f"round_{self.round}/ce": ce.detach()}
        teacher = candidate_cosines(
            self.teacher.of(indices[batch.anchors], "anchor"),
            gather(self.teacher.of(indices[batch.positives], "candidate")),
            self.teacher.of(indices[negatives], "candidate"),
        )
        return self._loss_with_teacher(student, teacher, target, valid, batch.kinds)

    def _loss_with_teacher(
        self, student: Tensor, teacher: Tensor, target: Tensor, valid: Tensor, kinds: Tensor
    ) -> dict[str, Tensor]:
        masked = self.mask and self.round >= self.first_masked_round
        passed = teacher_mask(teacher, target, self.mask_margin) if masked else torch.ones_like(valid)
        keep = valid & passed
        loss = info_nce(student, target, keep, self.temperature)
        terms = {"ce": loss.detach()}
        for name, (kept, total) in kept_counts(passed, valid, kinds).items():
            terms[f"kept_{name}"] = torch.tensor(kept / total)
            before = self.kept.get(name, (0, 0))
            self.kept[name] = (before[0] + kept, before[1] + total)
        if self.distill:
            settings, step = self.distillation, self.trainer.global_step - self.round * self.round_steps
            factor = 1.0 if settings.space == "cosine" else 1 / self.temperature
            kl = distillation_loss(factor * student, factor * teacher, target, keep, temperature=settings.temperature)
            weight = linear_weight(step, self.round_steps, settings.first_weight, settings.last_weight)
            loss = loss + weight * kl
            terms |= {"kl": kl.detach(), "kl_weight": torch.tensor(weight)}
        return {"loss": loss, **{f"round_{self.round}/{name}": value for name, value in terms.items()}}


def kept_counts(passed: Tensor, valid: Tensor, kinds: Tensor) -> dict[str, tuple[int, int]]:
    """Count the valid candidates that the mask keeps, and all valid candidates, by kind and over all processes.

    Args:
        passed: (B, C + K) bool, True for candidates that the teacher's mask keeps.
        valid: (B, C + K) bool, True for candidates that can be negatives.
        kinds: (B, K) kinds of the anchors' own negatives.
    """
    names = ("unknown", *KINDS, "in_batch")
    in_batch = kinds.new_full((len(kinds), valid.shape[1] - kinds.shape[1]), len(KINDS) + 1)
    category = torch.cat([in_batch, kinds + 1], dim=1)
    of_category = category[..., None] == torch.arange(len(names), device=kinds.device)
    counts = torch.stack([(of_category & counted[..., None]).sum((0, 1)) for counted in (valid & passed, valid)])
    kept, total = summed(counts).tolist()  # a single synchronization with the device
    return {name: (kept[i], total[i]) for i, name in enumerate(names) if total[i]}
