"""Self-distillation (HITS): InfoNCE over own and in-batch negatives, masked and softened by a teacher's vectors."""

from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor

from narrlit.data.batch import ExampleBatch
from narrlit.data.records import KINDS
from narrlit.distributed import gather, rank
from narrlit.errors import OptionError
from narrlit.losses.contrastive import candidate_cosines, info_nce
from narrlit.losses.distillation import distillation_loss, linear_weight
from narrlit.losses.masks import duplicates_mask, teacher_mask
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization
from narrlit.stores.teacher import TeacherVectors

TRIPLE = KINDS.index("triple")


@dataclass(frozen=True)
class Distillation:
    """How the student follows its teacher.

    Attributes:
        temperature: divides both sides' values before the softmax.
        space: what is compared: raw cosines, or logits (cosines divided by the contrastive temperature).
        first_weight: of the KL term at a round's first step; falls linearly.
        last_weight: at its last step.
    """

    temperature: float = 0.15
    space: Literal["cosine", "logits"] = "cosine"
    first_weight: float = 0.7
    last_weight: float = 0.05

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if self.temperature <= 0:
            raise OptionError(f"distillation.temperature is {self.temperature}: a positive number is needed")
        if self.first_weight < 0 or self.last_weight < 0:
            raise OptionError("distillation: first_weight and last_weight must be at least 0")


class SelfDistillation(Objective):
    """CE + w KL over each anchor's own K negatives and the other anchors' positives (of all processes).

    CE is InfoNCE over the candidates that the teacher's mask keeps; KL draws the student's distribution over them to
    the teacher's. Without a teacher, as in the first round, CE alone remains, over all candidates. A candidate that is
    the same story as the anchor or its positive never counts as a negative.

    Source: HITS, Eq. 1 to 5. Its Eq. 1 calls the similarities in CE the teacher's; as in its published code, they are
    the student's here, and the teacher's stand in the mask (Eq. 3) and in KL (Eq. 4). The weight w falls linearly over
    the steps of a round, as published. `TeacherPromotion` divides a fit into rounds and brings the teachers.
    """

    teacher: TeacherVectors | None = None
    round = 0

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        temperature: float = 0.09,
        mask: bool = True,
        mask_margin: float = -0.05,
        distill: bool = True,
        distillation: Distillation = Distillation(),
        use_triple_negative: bool = False,
    ) -> None:
        """Args give the objective's terms.

        Args:
            encoder: what is trained.
            optimization: how weights move, afresh in each round.
            temperature: divides cosines in CE.
            mask: leave out candidates that the teacher takes for alike.
            mask_margin: those whose teacher cosine is above the positive's plus this.
            distill: add the KL term.
            distillation: its settings.
            use_triple_negative: the dissimilar story of a triple is a negative too; it is none as published.

        Raises:
            OptionError: for a temperature that is not positive.
        """
        if temperature <= 0:
            raise OptionError(f"temperature is {temperature}: a positive number is needed")
        super().__init__(encoder, optimization)
        self.kept: dict[str, tuple[int, int]] = {}
        """Candidates that the teacher kept in this round so far, and of how many, by kind; in this process."""
        self.temperature = temperature
        self.mask = mask
        self.mask_margin = mask_margin
        self.distill = distill
        self.distillation = Distillation(**distillation) if isinstance(distillation, dict) else distillation
        self.use_triple_negative = use_triple_negative
        self.keep_hyperparameters(
            temperature=temperature,
            mask=mask,
            mask_margin=mask_margin,
            distill=distill,
            distillation=asdict(self.distillation),
            use_triple_negative=use_triple_negative,
        )

    def on_fit_start(self) -> None:
        """Refuse data without negatives.

        Raises:
            OptionError: if no example has one that is used.
        """
        kinds = self.trainer.datamodule.negative_kinds()  # type: ignore[attr-defined]
        if not self.use_triple_negative:
            kinds -= {"triple"}
        if not kinds:
            raise OptionError(
                "no training example has a negative: add near ones by `narrlit mine`, or set "
                "model.use_triple_negative: true where the rows are triples"
            )

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """All, but for the triples' own."""
        return None if self.use_triple_negative else batch.kinds != TRIPLE

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class; terms are named by round, so that TensorBoard shows each round's curves."""
        rows, place = batch.stories.rows, batch.negatives.clamp(min=0)
        target = torch.arange(len(batch.anchors), device=vectors.device) + rank() * len(batch.anchors)
        student = candidate_cosines(vectors[batch.anchors], gather(vectors[batch.positives]), vectors[place])
        own = torch.where(batch.negatives < 0, -1, rows[place])
        in_batch = gather(rows[batch.positives]).expand(len(own), -1)
        stories = torch.cat([in_batch, own], dim=1)
        valid = duplicates_mask(stories, rows[batch.anchors], rows[batch.positives])
        if self.teacher is None:
            ce = info_nce(student, target, valid, self.temperature)
            return {"loss": ce, f"round_{self.round}/ce": ce.detach()}
        teacher = self._teacher_cosines(self.teacher, batch, place)
        return self._with_teacher(student, teacher, target, valid, batch.kinds)

    def _teacher_cosines(self, teacher: TeacherVectors, batch: ExampleBatch, place: Tensor) -> Tensor:
        rows = batch.stories.rows
        return candidate_cosines(
            teacher.of(rows[batch.anchors], "anchor"),
            gather(teacher.of(rows[batch.positives], "candidate")),
            teacher.of(rows[place], "candidate"),
        )

    def _with_teacher(
        self, student: Tensor, teacher: Tensor, target: Tensor, valid: Tensor, kinds: Tensor
    ) -> dict[str, Tensor]:
        passed = teacher_mask(teacher, target, self.mask_margin) if self.mask else torch.ones_like(valid)
        keep = valid & passed
        ce = info_nce(student, target, keep, self.temperature)
        terms = {"ce": ce.detach()}
        for name, (kept, total) in kept_counts(passed, valid, kinds).items():
            terms[f"kept_{name}"] = torch.tensor(kept / total)
            before = self.kept.get(name, (0, 0))
            self.kept[name] = (before[0] + kept, before[1] + total)
        loss = ce
        if self.distill:
            factor = 1.0 if self.distillation.space == "cosine" else 1 / self.temperature
            kl = distillation_loss(
                factor * student, factor * teacher, target, keep, temperature=self.distillation.temperature
            )
            weight = self.kl_weight()
            loss = ce + weight * kl
            terms |= {"kl": kl.detach(), "kl_weight": torch.tensor(weight)}
        return {"loss": loss, **{f"round_{self.round}/{name}": value for name, value in terms.items()}}

    def kl_weight(self) -> float:
        """The weight w of KL at this step of the round."""
        plan, steps = self.distillation, self.round_steps
        return linear_weight(self.trainer.global_step - self.round * steps, steps, plan.first_weight, plan.last_weight)


def kept_counts(passed: Tensor, valid: Tensor, kinds: Tensor) -> dict[str, tuple[int, int]]:
    """How many candidates the teacher's mask keeps, and of how many, by kind; kinds that the batch lacks are left out.

    Args:
        passed: (B, C + K) bool, the mask.
        valid: (B, C + K) bool, what counts at all: no padding, no story against itself.
        kinds: (B, K) int64, index into KINDS, -1 unknown.
    """
    names = ("unknown", *KINDS, "in_batch")
    in_batch = kinds.new_full((len(kinds), valid.shape[1] - kinds.shape[1]), len(KINDS) + 1)
    category = torch.cat([in_batch, kinds + 1], dim=1)
    of_category = category[..., None] == torch.arange(len(names), device=kinds.device)
    counts = torch.stack([(of_category & chosen[..., None]).sum((0, 1)) for chosen in (valid & passed, valid)])
    kept, total = counts.tolist()  # one wait for the device, and not one a kind
    return {name: (kept[i], total[i]) for i, name in enumerate(names) if total[i]}
