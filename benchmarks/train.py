"""Fine-tuning on a CPU: narrlit's MultipleNegativesRanking against sentence-transformers' trainer, on the same batches.

Both sides train on the same triples in the same order, with multiple negatives ranking, AdamW, the same learning rate
and schedule, and gradients clipped to norm 1 (the peer's default). What is timed runs from the end of the first step,
which warms up, to the end of the last; the peer tokenises within it, and narrlit's share of the tokenising that it
does ahead of the first step is added to its time.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import lightning
from lightning.pytorch.utilities.types import STEP_OUTPUT
from measure import (
    MAX_TOKENS,
    Padding,
    Ratio,
    Texts,
    begin,
    interleave,
    machine,
    parser,
    peer_model,
    quiet_trainer,
    table,
    text_sets,
)
from torch.utils.data import DataLoader, SequentialSampler

from narrlit.data.sampling import DistinctBatchSampler
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples, Triples
from narrlit.datamodules import Loading, StoryData
from narrlit.models.config import EncoderConfig
from narrlit.models.loading import set_dropout
from narrlit.objectives import MultipleNegativesRanking, Optimization

if TYPE_CHECKING:
    from sentence_transformers.base.sampler import DefaultBatchSampler
    from transformers import TrainerCallback, TrainerState

SEED = 1
SHIPPED_DROPOUT = 0.1
LEARNING_RATE = 2e-5
LARGEST_DIFFERENCE = 1e-4
COMPARISONS = (
    ("both with dropout 0.1", "peer 0.1", "ours 0.1", 1.5),
    ("ours without, peer as shipped (0.1)", "peer 0.1", "ours 0", 1.9),
    ("both without dropout", "peer 0", "ours 0", None),
)


@dataclass
class Clock:
    """CPU time of the steps after the first, and each step's loss."""

    losses: list[float] = field(default_factory=list)
    start: float = 0.0
    seconds: float = 0.0

    def step(self, done: int) -> None:
        """Note the end of a step; `done` steps have ended."""
        now = time.process_time()
        if done == 1:
            self.start = now
        self.seconds = now - self.start


class Examples(StoryData):
    """Consecutive texts as triples, with the CPU time that tokenizing them took; speed is the same if none is alike."""

    def __init__(self, texts: Sequence[str], batch_size: int) -> None:
        super().__init__(Loading(batch_size=batch_size))
        self._texts = texts
        self.preparation = 0.0

    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Three consecutive texts each."""
        return triples(self._texts, stories)

    def read_triples(self, stage: str, stories: StoryTable) -> Triples:
        """None: nothing is evaluated here."""
        return Triples(stories, [])

    def train_dataloader(self) -> DataLoader[Any]:
        """The loader; its texts are tokenized here."""
        start = time.process_time()
        loader = super().train_dataloader()
        self.preparation = time.process_time() - start
        return loader


class Ticks(lightning.Callback):
    """Stop the clock when a step of narrlit's ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: STEP_OUTPUT,
        batch: object,
        batch_idx: int,
    ) -> None:
        """One step more."""
        self._clock.step(batch_idx + 1)
        assert isinstance(outputs, Mapping)  # a Tensor only where a step returns several
        self._clock.losses.append(float(outputs["loss"]))


def ours(texts: Sequence[str], batch_size: int, dropout: float) -> Clock:
    """Train narrlit one epoch."""
    clock = Clock()
    data = Examples(texts, batch_size)
    objective = MultipleNegativesRanking(
        EncoderConfig(model="minilm", max_length=MAX_TOKENS, dropout=dropout), Optimization(learning_rate=LEARNING_RATE)
    )
    lightning.seed_everything(SEED, verbose=False)
    trainer = quiet_trainer(Ticks(clock), gradient_clip_val=1.0)
    trainer.fit(objective, data)
    steps = len(clock.losses)
    clock.seconds += data.preparation * (steps - 1) / steps
    return clock


def theirs(examples: list[tuple[str, ...]], batch_size: int, dropout: float, padding: Padding) -> Clock:
    """Train the peer one epoch, on texts of examples in this order."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from transformers import PrinterCallback

    model = peer_model()
    model.model_card_data.widget = [{"text": ""}]  # else it draws examples for a model card, with a bar
    if dropout != SHIPPED_DROPOUT:
        set_dropout(model[0].model, dropout)
    clock = Clock()
    loss = MultipleNegativesRankingLoss(model)
    loss.register_forward_hook(lambda module, args, value: clock.losses.append(float(value)))
    model[0].register_forward_pre_hook(padding)
    columns = zip(*examples, strict=True)
    rows = Dataset.from_dict(dict(zip(("anchor", "positive", "negative"), map(list, columns), strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=batch_size,
            learning_rate=LEARNING_RATE,
            warmup_steps=0.1,
            batch_sampler=_in_order,
            seed=SEED,
            use_cpu=True,
            dataloader_pin_memory=False,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=rows, loss=loss, callbacks=[_peer_ticks(clock)]
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock


def _in_order(dataset: Sized, batch_size: int, drop_last: bool, **others: object) -> "DefaultBatchSampler":
    from sentence_transformers.base.sampler import DefaultBatchSampler

    return DefaultBatchSampler(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last)


def _peer_ticks(clock: Clock) -> "TrainerCallback":
    from transformers import TrainerCallback

    class PeerTicks(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
        def on_step_end(self, args: object, state: "TrainerState", control: object, **others: object) -> None:
            clock.step(state.global_step)

    return PeerTicks()


def triples(texts: Sequence[str], stories: StoryTable) -> TrainingExamples:
    """Examples of three consecutive texts each."""
    rows = [[stories.add(text) for text in texts[i : i + 3]] for i in range(0, len(texts), 3)]
    return TrainingExamples(stories, [TrainingExample(x, p, (n,), ("triple",)) for x, p, n in rows])


def in_our_order(texts: Sequence[str], batch_size: int) -> list[tuple[str, ...]]:
    """Texts of the examples as narrlit's sampler orders them in its first epoch, for the peer to follow."""
    examples = triples(texts, StoryTable())
    sampler = DistinctBatchSampler(examples.anchors, examples.positives, batch_size, SEED)
    rows = examples.texts()
    return [rows[position] for batch in sampler for position in batch]


def compare(texts: Texts, batch_size: int, rounds: int) -> tuple[list[list[str]], str, float]:
    """Train on one set of texts on both sides, with and without dropout.

    Returns:
        Rows of the table, a line on the texts, and by how much the first step's losses differ without dropout.
    """
    ordered = in_our_order(texts.texts, batch_size)
    steps = len(ordered) // batch_size
    losses: dict[str, list[float]] = {}
    padding = Padding()

    def timed(name: str, run: Callable[[], Clock]) -> Callable[[], float]:
        def seconds() -> float:
            clock = run()
            losses[name] = clock.losses
            return clock.seconds / (steps - 1)

        return seconds

    variants: dict[str, Callable[[], float]] = {}
    for name, dropout in (("0.1", SHIPPED_DROPOUT), ("0", 0.0)):
        variants[f"peer {name}"] = timed(f"peer {name}", partial(theirs, ordered, batch_size, dropout, padding))
        variants[f"ours {name}"] = timed(f"ours {name}", partial(ours, texts.texts, batch_size, dropout))
    times = interleave(variants, rounds)
    # The first step alone has the same weights on both sides.
    difference = abs(losses["peer 0"][0] - losses["ours 0"][0])
    rows = []
    for what, peer, own, aim in COMPARISONS:
        ratio = Ratio.of(times[peer], times[own])
        rows.append([texts.name, what, f"{ratio.peer:.2f}", f"{ratio.ours:.2f}", *ratio.cells(aim)])
    return rows, f"{texts.name}: {texts.describe()}; {padding.describe()}", difference


def main() -> None:
    """Measure and print."""
    from sentence_transformers import __version__

    options = parser("training: narrlit against sentence-transformers")
    options.add_argument("--steps", type=int, default=3, help="of a fit; the first warms up (default 3, at least 2)")
    options.add_argument("--batch-size", type=int, default=8, help="triples of a step (default 8)")
    chosen = begin(options, steps=2, batch_size=2)
    if chosen.steps < 2 or chosen.batch_size < 2:
        options.error("--steps and --batch-size must be at least 2")
    print(
        f"training all-MiniLM-L6-v2, multiple negatives ranking, batch {chosen.batch_size}, {MAX_TOKENS} tokens, fp32: "
        f"narrlit against sentence-transformers {__version__}"
    )
    print(machine(chosen.threads, chosen.rounds), flush=True)
    results = [
        compare(texts, chosen.batch_size, chosen.rounds)
        for texts in text_sets(chosen.stories, chosen.lengths, 3 * chosen.batch_size * chosen.steps)
    ]
    for _, line, _ in results:
        print(line)
    header = ["texts", "dropout", "peer s/step", "ours s/step", "ratio", "range", "aim"]
    print(table(header, [row for rows, _, _ in results for row in rows]))
    if chosen.quick:
        print("a quick run tests the script: its ratios mean nothing")
    worst = max(difference for _, _, difference in results)
    print(f"without dropout, the first step's losses differ by {worst:.0e}")
    if worst >= LARGEST_DIFFERENCE:
        raise SystemExit(f"losses differ: by {worst:.1e}, {LARGEST_DIFFERENCE:.0e} is the most allowed")


if __name__ == "__main__":
    main()
