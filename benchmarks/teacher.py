"""What a teacher costs a step of self-distillation: cached embeddings, and a frozen encoder run on every batch.

All three train the same student (MiniLM, every weight) on the same batches of StoryWorld's examples with negatives of
each aspect; the teacher is MiniLM too. The cached embeddings are computed before the time measured.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Literal

import lightning
import torch
from lightning.pytorch.utilities.types import STEP_OUTPUT
from measure import MAX_TOKENS, Ratio, begin, interleave, machine, parser, quiet_trainer, table
from torch import Tensor

from narrlit.cache.teacher import TeacherEmbeddings, embed_in_step
from narrlit.data.batch import ExampleBatch
from narrlit.datamodules import Loading, StoryWorldData
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.objectives import SelfDistillation

Teacher = Literal["none", "cached", "run on every step"]
AIM = 1.03
LARGEST_DIFFERENCE = 0.01
SEED = 1


class RunningTeacher(SelfDistillation):
    """The same objective with the teacher as a second encoder, as in a script without a cache."""

    frozen: Encoder

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Run the teacher on the batch, and compute the loss."""
        with torch.no_grad():
            vectors = self.frozen(batch.stories)
        table = vectors.new_zeros(int(batch.stories.indices.max()) + 1, vectors.shape[1])
        table[batch.stories.indices] = vectors
        self.teacher = TeacherEmbeddings(table)
        return super().loss(embeddings, batch)


class Lesson(lightning.Callback):
    """Set the teacher, and measure the CPU time of the steps after the first, and of their losses alone."""

    def __init__(self, teacher: Teacher, encoder: Encoder) -> None:
        self.teacher = teacher
        self.encoder = encoder
        self.start = 0.0
        self.seconds = 0.0
        self.losses: list[float] = []
        self.terms: dict[str, float] = {}

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Embed the training stories, or hand over the encoder."""
        assert isinstance(pl_module, SelfDistillation)
        self._time_losses(pl_module)
        if self.teacher == "none":
            return
        tokens = trainer.datamodule.prepare_inputs()  # type: ignore[attr-defined]
        with torch.no_grad():
            pl_module.teacher = TeacherEmbeddings(embed_in_step(self.encoder, tokens, list(range(len(tokens.lengths)))))
        if isinstance(pl_module, RunningTeacher):
            object.__setattr__(pl_module, "frozen", self.encoder)

    def _time_losses(self, objective: SelfDistillation) -> None:
        loss = objective.loss

        def timed(embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
            start = time.process_time()
            terms = loss(embeddings, batch)
            self.losses.append(time.process_time() - start)
            return terms

        object.__setattr__(objective, "loss", timed)

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: STEP_OUTPUT,
        batch: object,
        batch_idx: int,
    ) -> None:
        """One step more."""
        now = time.process_time()
        if batch_idx == 0:
            self.start = now
        # Of the last step: at the first the student still is its teacher, and KL is 0 whatever the teacher says.
        self.terms = {name: float(value) for name, value in trainer.callback_metrics.items()}
        self.seconds = (now - self.start) / max(1, batch_idx)


def fit(teacher: Teacher, encoder: Encoder, steps: int, batch_size: int) -> Lesson:
    """Train `steps` steps."""
    lesson = Lesson(teacher, encoder)
    kind = RunningTeacher if teacher == "run on every step" else SelfDistillation
    objective = kind(EncoderConfig(model="minilm", max_length=MAX_TOKENS, dropout=0.0))
    data = StoryWorldData(
        train=steps * batch_size, validation=1, negatives_per_aspect=2, loading=Loading(batch_size=batch_size)
    )
    lightning.seed_everything(SEED, verbose=False)
    trainer = quiet_trainer(lesson, limit_val_batches=0)
    trainer.fit(objective, data)
    return lesson


def main() -> None:
    """Measure and print."""
    options: Any = parser("self-distillation: a teacher's cached embeddings against running it on every step")
    options.add_argument("--steps", type=int, default=4, help="of a fit; the first warms up (default 4, at least 2)")
    options.add_argument("--batch-size", type=int, default=4, help="examples of a step, 8 stories each (default 4)")
    chosen = begin(options, steps=2, batch_size=2)
    encoder = Encoder(EncoderConfig(model="minilm", max_length=MAX_TOKENS)).eval()
    lessons: dict[str, Lesson] = {}

    def timed(teacher: Teacher) -> float:
        lessons[teacher] = fit(teacher, encoder, chosen.steps, chosen.batch_size)
        return lessons[teacher].seconds

    names: tuple[Teacher, ...] = ("none", "cached", "run on every step")
    variants: dict[str, Callable[[], float]] = {name: partial(timed, name) for name in names}
    print(f"self-distillation of all-MiniLM-L6-v2, batch {chosen.batch_size}, 8 stories an example, fp32")
    print(machine(chosen.threads, chosen.rounds), flush=True)
    times = interleave(variants, chosen.rounds)
    rows = []
    for name in names[1:]:
        ratio = Ratio.of(times[name], times["none"])
        seconds = [f"{ratio.peer:.2f}", f"{ratio.ours:.2f}"]
        span = f"{ratio.least:.3f}-{ratio.largest:.3f}"
        rows.append([name, "", *seconds, f"{ratio.middle:.3f}", span, f"{AIM}" if name == "cached" else "-"])
    print(table(["teacher", "", "s/step", "s/step without", "ratio", "range", "aim"], rows))
    without, cached = (median(lessons[name].losses[1:]) for name in names[:2])
    share = (cached - without) / median(times["none"])
    print(
        f"the loss: {1000 * without:.2f} ms without a teacher, {1000 * cached:.2f} ms with cached embeddings: "
        f"that is {share:.2%} of a step more"
    )
    kl = [lessons[name].terms["train/round_0/kl"] for name in names[1:]]
    print(f"the last step's KL by cached embeddings and by the running teacher: {kl[0]:.3e} and {kl[1]:.3e}")
    if not kl[1] > 0 or abs(kl[0] / kl[1] - 1) > LARGEST_DIFFERENCE:
        raise SystemExit("cached embeddings and the running teacher do not agree")


if __name__ == "__main__":
    main()
