"""Training MiniLM, against sentence-transformers' trainer: ranking, the cached loss, self-distillation, memory.

Both sides train on the same batches in the same order, with AdamW, the same learning rate and schedule, and gradients
clipped to norm 1 (the peer's default). The time measured runs from the end of the first step to the end of the last;
the peer tokenizes within it, and narrlit's share of the tokenizing that it does ahead of the first step is added.
"""

import logging
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import psutil  # type: ignore[import-untyped]  # comes with accelerate
import torch
from datasets import Dataset
from measure import (
    MAX_TOKENS,
    NOT_HERE,
    Clock,
    Row,
    Setting,
    Texts,
    interleave,
    long_texts,
    minilm,
    peer_model,
    runs_here,
    timed,
)
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer import losses
from torch import Tensor
from torch.utils.data import DataLoader, SequentialSampler
from transformers import PrinterCallback, TrainerCallback

from narrlit.data.batch import ExampleBatch
from narrlit.data.sampling import DistinctBatchSampler
from narrlit.data.schema import ASPECTS, StoryTable, TrainingExample, TrainingExamples, Triples
from narrlit.datamodules import LoaderOptions, StoryData
from narrlit.embedding_cache.teacher import TeacherEmbeddings
from narrlit.losses.contrastive import info_nce
from narrlit.losses.matching import passage_scores
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.pretrained import set_dropout
from narrlit.objectives import MultipleNegativesRanking, Optimization, PassageMatching, SelfDistillation
from narrlit.objectives.base import Objective
from narrlit.preprocessing.passages import split_passages

SEED = 1
LEARNING_RATE = 2e-5
OUTPUTS = ("checkpointing", "progress_bar", "model_summary")
QUIET = {"save_strategy": "no", "logging_strategy": "no", "report_to": "none", "disable_tqdm": True}
LARGEST_DIFFERENCE = 1e-4
"""Between losses of one batch, without dropout."""
TEACHER_AIM = 0.97
"""Step without a teacher / with one."""
MEMORY_AIM = 2.4


class How(NamedTuple):
    """What differs between two fits of one side."""

    precision: str
    dropout: float


FP32, BF16 = How("fp32", 0.1), How("bf16", 0.1)
FP32_PLAIN, BF16_PLAIN = How("fp32", 0.0), How("bf16", 0.0)
SHIPPED = [(FP32, FP32, 2.0), (FP32, FP32_PLAIN, 2.3), (FP32, BF16, 4.0), (FP32, BF16_PLAIN, 4.0)]
"""The peer's fit, narrlit's, and the aim, where the peer trains as it ships."""
ALIKE = [(FP32_PLAIN, FP32_PLAIN, None), (BF16, BF16, None)]


class Examples(StoryData):
    """Consecutive texts as training examples, and the seconds that preparing them took."""

    def __init__(self, texts: Sequence[str], batch_size: int, each: int = 3, **options: Any) -> None:
        super().__init__(LoaderOptions(batch_size=batch_size), **options)
        self._texts, self._each, self.preparation = texts, each, 0.0

    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Return examples of `each` consecutive texts."""
        return examples_of(self._texts, stories, self._each)

    def read_triples(self, stage: str, stories: StoryTable) -> Triples:
        """Return no triples: nothing is evaluated here."""
        return Triples(stories, [])

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the loader; the texts and passages are tokenized here."""
        loaders: list[DataLoader[Any]] = []
        self.preparation = timed(lambda: loaders.append(super(Examples, self).train_dataloader()), "cpu")
        return loaders[0]


def examples_of(texts: Sequence[str], stories: StoryTable, each: int = 3) -> TrainingExamples:
    """Examples of `each` consecutive texts: anchor, positive, and negatives of each aspect in turn."""
    rows = [[stories.add(text) for text in texts[i : i + each]] for i in range(0, len(texts), each)]
    kinds = tuple(ASPECTS[i % 3] for i in range(each - 2))
    return TrainingExamples(stories, [TrainingExample(x, p, tuple(n), kinds) for x, p, *n in rows])


class Steps(lightning.Callback):
    """Mark the end of each of narrlit's steps; hand the teacher over before the first."""

    def __init__(self, clock: Clock, teacher: Callable[[list[str]], TeacherEmbeddings] | None = None) -> None:
        self._clock = clock
        self._teacher = teacher

    def on_train_start(self, trainer: Any, objective: Any) -> None:
        """Embed the stories by the teacher, fill the optimizer's state."""
        if self._teacher is not None:
            objective.teacher = self._teacher([story.text for story in trainer.datamodule.stories])
        fill_state(trainer.optimizers[0])

    def on_train_batch_end(self, trainer: lightning.Trainer, objective: Any, outputs: Any, *batch: Any) -> None:
        """Mark one step more."""
        self._clock.mark()
        self._clock.losses.append(outputs["loss"].detach())


def fill_state(optimizer: Any) -> None:
    """Take a step of zeros, so that the first real step needs the time and the memory of any other."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()


def config(dropout: float | None, **options: Any) -> EncoderConfig:
    """Settings of MiniLM."""
    return EncoderConfig(model="minilm", max_length=MAX_TOKENS, dropout=dropout, **options)


def ours(objective: Objective, data: Examples, device: str, precision: str, teacher: Any = None) -> Clock:
    """Train narrlit one epoch."""
    clock = Clock(device)
    lightning.seed_everything(SEED, verbose=False)
    quiet: dict[str, Any] = dict.fromkeys(("logger", *(f"enable_{x}" for x in OUTPUTS)), False)
    kind: Any = "bf16-mixed" if precision == "bf16" else "32-true"
    steps, options = Steps(clock, teacher), {"accelerator": device, "devices": 1, "max_epochs": 1, "precision": kind}
    lightning.Trainer(callbacks=[steps], gradient_clip_val=1.0, **options, **quiet).fit(objective, data)
    clock.preparation = data.preparation
    return clock


def theirs(
    examples: Sequence[tuple[str, ...]], batch_size: int, how: How, device: str, mini_batch: int | None = None
) -> Clock:
    """Train the peer one epoch, on texts of examples in this order."""
    model, clock = peer_model(device), Clock(device)
    model.model_card_data.widget = [{"text": ""}]  # else it draws examples for a model card, with a bar
    set_dropout(model[0].model, how.dropout)
    loss = losses.MultipleNegativesRankingLoss(model)
    if mini_batch is not None:
        loss = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=mini_batch)
    loss.register_forward_hook(lambda module, args, value: clock.losses.append(value.detach()))
    columns = zip(*examples, strict=True)
    rows = Dataset.from_dict(dict(zip(("anchor", "positive", "negative"), map(list, columns), strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        place = {"use_cpu": device == "cpu", "dataloader_pin_memory": device == "cuda", "output_dir": folder}
        course = {"num_train_epochs": 1, "learning_rate": LEARNING_RATE, "warmup_steps": 0.1, "seed": SEED}
        batches = {"per_device_train_batch_size": batch_size, "batch_sampler": _in_order}
        arguments = SentenceTransformerTrainingArguments(
            bf16=how.precision == "bf16", **place, **course, **batches, **QUIET
        )
        trainer = SentenceTransformerTrainer(model, arguments, rows, loss=loss, callbacks=[PeerSteps(clock)])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock


def _in_order(dataset: Dataset, batch_size: int, drop_last: bool, **others: object) -> DefaultBatchSampler:
    return DefaultBatchSampler(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last)


class PeerSteps(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
    """Mark the end of each of the peer's steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def on_train_begin(self, *args: object, optimizer: Any = None, **others: object) -> None:
        """Fill the optimizer's state."""
        fill_state(optimizer)

    def on_step_end(self, *args: object, **others: object) -> None:
        """Mark one step more."""
        self._clock.mark()


def in_our_order(texts: Sequence[str], batch_size: int) -> list[tuple[str, ...]]:
    """Texts of the examples as narrlit's sampler orders them in its first epoch, for the peer to follow."""
    examples = examples_of(texts, StoryTable())
    sampler = DistinctBatchSampler(examples.anchors, examples.positives, batch_size, SEED)
    rows = examples.texts()
    return [rows[position] for batch in sampler for position in batch]


def rank_fit(texts: Sequence[str], batch_size: int, device: str, precision: str, encoder: EncoderConfig) -> Clock:
    """Train narrlit one epoch by multiple negatives ranking."""
    objective = MultipleNegativesRanking(encoder, Optimization(learning_rate=LEARNING_RATE))
    return ours(objective, Examples(texts, batch_size), device, precision)


def ranking(setting: Setting) -> Iterator[Row]:
    """Multiple negatives ranking: fp32 and bf16, with dropout and without."""
    batch, steps = 2 if setting.quick else 8 * setting.scale, setting.steps
    comparisons, device = ALIKE[:1] if setting.quick else SHIPPED + ALIKE, setting.device
    for texts in setting.texts(3 * batch * steps):
        ordered = in_our_order(texts.texts, batch)
        variants: dict[Any, Callable[[], Clock]] = {}
        for peer, own, _ in comparisons:
            if not runs_here(own.precision, device):
                continue
            variants["peer", peer] = partial(theirs, ordered, batch, peer, device)
            variants["ours", own] = partial(rank_fit, texts.texts, batch, device, own.precision, config(own.dropout))
        clocks: dict[Any, list[Clock]] = interleave(variants, setting.rounds)
        # The first step alone has the same weights on both sides.
        first = [float(clocks[side, FP32_PLAIN][0].losses[0]) for side in ("peer", "ours")]
        work = {"unit": "triples/s", "count": batch, "flops": 3 * texts.flops / steps}
        for row in _rows("ranking", texts, clocks, comparisons, **work):
            row.wrong = _apart("the first losses", *first)
            yield row


def _rows(job: str, texts: Texts, clocks: Mapping[Any, list[Clock]], comparisons: Any, **work: Any) -> Iterator[Row]:
    for peer, own, aim in comparisons:
        name = f"{job}, dropout {own.dropout:g}" + f", peer {peer.dropout:g}" * (peer.dropout != own.dropout)
        note = f"peer in {peer.precision}" if own.precision == "bf16" else ""
        if ("ours", own) not in clocks:
            yield Row(name, texts.name, own.precision, note=f"{note}; {NOT_HERE}")
            continue
        sides: Any = {
            side: [clock.step for clock in clocks[side, how]] for side, how in (("peer", peer), ("ours", own))
        }
        yield Row(name, texts.name, own.precision, **sides, aim=aim, note=note, **work)


def match_by_loop(examples: Sequence[tuple[str, ...]], batch_size: int, device: str) -> Clock:
    """Match passages in a plain loop over sentence-transformers' model, one epoch: passages padded, the same loss."""
    model, clock = peer_model(device).train(), Clock(device)
    set_dropout(model[0].model, 0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
    fill_state(optimizer)
    for start in range(0, len(examples), batch_size):
        anchors, positives = zip(*examples[start : start + batch_size], strict=True)
        stories = [split_passages(text) for text in (*anchors, *positives)]
        features = model.preprocess([passage for passages in stories for passage in passages])
        features = {name: x.to(device) for name, x in features.items() if isinstance(x, Tensor)}
        loss = matching_loss(model(features)["sentence_embedding"], [len(passages) for passages in stories])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        clock.mark()
        clock.losses.append(loss.detach())
    return clock


def matching_loss(vectors: Tensor, counts: Sequence[int]) -> Tensor:
    """Compute the loss of the passages (P, D) of anchors, then positives, with these numbers of passages."""
    unit = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=-1)
    padded = torch.nn.utils.rnn.pad_sequence(list(torch.split(unit, list(counts))), batch_first=True)
    present = (torch.arange(padded.shape[1]) < torch.tensor(counts)[:, None]).to(vectors.device)
    (anchors, positives), (of_anchors, of_positives) = padded.chunk(2), present.chunk(2)
    scores = passage_scores(anchors, positives, of_anchors, of_positives)
    target = torch.arange(len(scores), device=scores.device)
    return (info_nce(scores, target, None, 1 / 20) + info_nce(scores.T, target, None, 1 / 20)) / 2


def match_fit(texts: Sequence[str], batch_size: int, device: str) -> Clock:
    """Train narrlit one epoch by the match scores of all passages."""
    objective = PassageMatching(config(0.0), Optimization(learning_rate=LEARNING_RATE), passages=100)
    return ours(objective, Examples(texts, batch_size, 2), device, "fp32")


def matching(setting: Setting) -> Iterator[Row]:
    """Matching of passages, 20 stories a batch as in the recipe of narrlit-mini, without dropout on both sides."""
    batch, steps, device = 2 if setting.quick else 10, setting.steps, setting.device
    for texts in setting.texts(2 * batch * steps):
        examples = examples_of(texts.texts, StoryTable(), each=2)
        sampler = DistinctBatchSampler(examples.anchors, examples.positives, batch, SEED)
        rows = examples.texts()
        ordered = [rows[position] for positions in sampler for position in positions]
        variants: dict[Any, Callable[[], Clock]] = {
            ("peer", FP32_PLAIN): partial(match_by_loop, ordered, batch, device),
            ("ours", FP32_PLAIN): partial(match_fit, texts.texts, batch, device),
        }
        clocks: dict[Any, list[Clock]] = interleave(variants, setting.rounds)
        first = [float(clocks[side, FP32_PLAIN][0].losses[0]) for side in ("peer", "ours")]
        work = {"unit": "pairs/s", "count": batch}
        for row in _rows("passages", texts, clocks, [(FP32_PLAIN, FP32_PLAIN, None)], **work):
            row.wrong = _apart("the first losses", *first)
            yield row


def cached(setting: Setting) -> Iterator[Row]:
    """Ranking in a large batch by gradient caching, forward passes of at most 8 texts on both sides."""
    batch, steps, mini = (4, 2, 2) if setting.quick else (16, 2, 8)
    texts, device = setting.texts(3 * batch * steps)[-1], setting.device
    encoder = config(0.1, gradient_caching=True, token_budget=mini * MAX_TOKENS)
    variants = {"peer": partial(theirs, in_our_order(texts.texts, batch), batch, FP32, device, mini)}
    precisions = ("fp32",) if setting.quick else ("fp32", "bf16")
    for precision in precisions:
        if runs_here(precision, device):
            variants[precision] = partial(rank_fit, texts.texts, batch, device, precision, encoder)
    steps_of = {name: [clock.step for clock in own] for name, own in interleave(variants, setting.rounds).items()}
    flops = 3 * texts.flops / steps
    job = f"cached ranking, batch {batch}, dropout 0.1"
    for precision in precisions:
        if precision not in variants:
            yield Row(job, texts.name, precision, note=NOT_HERE)
            continue
        row = Row(job, texts.name, precision, steps_of["peer"])
        row.ours, row.unit, row.count, row.flops = steps_of[precision], "triples/s", batch, flops
        row.note = "peer: CachedMultipleNegativesRankingLoss, fp32"
        yield row


def _apart(what: str, first: float, second: float) -> str:
    return "" if abs(first - second) < LARGEST_DIFFERENCE else f"{what} are {first:.5f} and {second:.5f}"


class RunningTeacher(SelfDistillation):
    """The same objective with the teacher as a second encoder, as in a script without a cache."""

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Run the teacher on the batch, and compute the loss."""
        with torch.no_grad():
            vectors = minilm(self.device.type)(batch.stories)
        table = vectors.new_zeros(int(batch.stories.indices.max()) + 1, vectors.shape[1])
        table[batch.stories.indices] = vectors
        self.teacher = TeacherEmbeddings(table)
        return super().loss(embeddings, batch)


def distillation(setting: Setting) -> Iterator[Row]:
    """Self-distillation, and what its teacher costs a step.

    sentence-transformers has no such loss: its side is its own model on each batch, padded to one rectangle as its
    trainer pads, with the same loss, data and trainer as narrlit's.
    """
    batch, each = (2, 4) if setting.quick else (4 * setting.scale, 8)
    steps = setting.steps
    texts, device = setting.texts(each * batch * steps)[0], setting.device

    def teacher(stories: list[str]) -> TeacherEmbeddings:
        """Embed the training stories, before the time measured."""
        return TeacherEmbeddings(
            torch.from_numpy(embed_stories(minilm(device), stories, progress=False).embeddings).to(device)
        )

    def fit(kind: type[SelfDistillation], precision: str, encoder: EncoderConfig, teaches: Any = teacher) -> Clock:
        """Train one epoch."""
        return ours(kind(encoder), Examples(texts.texts, batch, each), device, precision, teaches)

    variants: dict[Any, Callable[[], Clock]] = {
        ("peer", FP32): partial(fit, SelfDistillation, "fp32", config(0.1, packed=False, token_budget=10**9)),
        "none": partial(fit, SelfDistillation, "fp32", config(0.0), None),
        "running": partial(fit, RunningTeacher, "fp32", config(0.0)),
    }
    comparisons = SHIPPED[1:2] if setting.quick else SHIPPED
    for _, own, _ in comparisons:
        if not runs_here(own.precision, device):
            continue
        variants["ours", own] = partial(fit, SelfDistillation, own.precision, config(own.dropout))
    clocks: dict[Any, list[Clock]] = interleave(variants, setting.rounds)
    work = {"unit": "stories/s", "count": batch * each, "flops": 3 * texts.flops / steps}
    yield from _rows("self-distillation", texts, clocks, comparisons, **work)
    ways = [clocks[way] for way in ("none", "running", ("ours", FP32_PLAIN))]
    none, running, stored = [[clock.step for clock in own] for own in ways]
    # Of the last step: at the first the student still is its teacher.
    wrong = _apart("losses by both teachers", *(float(own[0].losses[-1]) for own in ways[1:]))
    job = "step with cached teacher"
    yield Row(job, texts.name, "fp32", none, stored, aim=TEACHER_AIM, note="against no teacher")
    yield Row(job, texts.name, "fp32", running, stored, note="against a teacher run on each step", wrong=wrong)


def peak(side: str, batch: int, how: How, caching: bool, setting: Setting) -> float:
    """Train one step of triples of MAX_TOKENS tokens each; return the largest resident memory of the process in GB."""
    torch.set_num_threads(setting.threads)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    texts = long_texts(3 * batch)
    if side == "peer":
        theirs(in_our_order(texts, batch), batch, how, setting.device)
    else:
        rank_fit(texts, batch, setting.device, how.precision, config(how.dropout, gradient_caching=caching))
    if setting.device == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    # Not getrusage, whose maximum begins with that of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9


def memory(setting: Setting) -> Iterator[Row]:
    """Peak memory of a step, plain and cached, each in a process of its own; what would not fit is not run."""
    batches = (2,) if setting.quick else (8, 16, 64, 256)
    yield from _memory(setting, batches[-3:], FP32, caching=True)
    for how in () if setting.quick else (FP32_PLAIN, FP32):
        yield from _memory(setting, batches, how, caching=False)


def largest(setting: Setting) -> Iterator[Row]:
    """Peak memory of a cached step of 1,024 triples; takes minutes."""
    yield from _memory(setting, (1024,), FP32, caching=True)


def _memory(setting: Setting, batches: Sequence[int], how: How, caching: bool) -> Iterator[Row]:
    free = (torch.cuda.mem_get_info()[0] if setting.device == "cuda" else psutil.virtual_memory().available) / 1e9
    sizes: list[tuple[int, float]] = []
    for batch in batches:
        job = f"memory, {'cached' if caching else 'plain'}, batch {batch}, dropout {how.dropout:g}"
        row = Row(job, f"{MAX_TOKENS} tokens", unit="GB")
        if len(sizes) >= 2:
            (few, small), (many, large) = sizes[-2:]
            expected = large + (large - small) / (many - few) * (batch - many)
            if expected > 0.85 * free:
                row.note = f"not run: about {expected:.0f} GB would be needed, {free:.0f} are free"
                yield row
                continue
        sides = ["ours", "peer"] if how == FP32 and not caching and batch <= 16 else ["ours"]
        for side in sides:
            # A quick run saves the ten seconds in which a process imports the libraries.
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                run = partial(peak, side, batch, how, caching, setting)
                getattr(row, side).append(run() if setting.quick else pool.submit(run).result())
        sizes.append((batch, row.ours[0]))
        row.note = f"aim: at most {MEMORY_AIM} GB" if batch == 16 else ""
        yield row
