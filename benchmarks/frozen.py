"""An epoch over cached embeddings against one that encodes its stories again: Comhis' projection, Mendel292's BiLSTM.

Both sides draw the same batches and train the same head by the same objective; the frozen encoder is MiniLM. The cache
is filled before the time measured: over a whole run of E epochs the gain is E times at most. Each epoch is measured as
a plain loop over batches, as Lightning's, which logs and calls back at every step, and once more as a loop where
sentence-transformers encodes in place of narrlit.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import lightning
import numpy as np
import torch
from measure import (
    MAX_TOKENS,
    Ratio,
    begin,
    interleave,
    machine,
    parser,
    peer_model,
    quiet_trainer,
    table,
    text_sets,
)
from train import triples

from narrlit.cache.sources import EmbeddingSource
from narrlit.data.batch import PackedFeatures, StoryInputs
from narrlit.data.schema import FloatArray, IntArray, StoryTable, TrainingExamples, Triples
from narrlit.datamodules import Loading, PseudoLabels, StoryData
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.objectives import AspectBiLSTM, Optimization, Projection
from narrlit.preprocessing.sentences import split_sentences

AIMS = {"projection": 3000.0, "BiLSTM": 150.0}
EPOCHS = 5
"""Over the cache, at a time: one alone is too short to be measured."""
SEED = 1
System = Literal["projection", "BiLSTM"]
Encode = Callable[[list[str]], FloatArray]


class EncodedAgain(StoryInputs[PackedFeatures]):
    """Stories that are embedded again for every batch, as in a script without a cache."""

    def __init__(self, pieces: list[list[str]], encode: Encode) -> None:
        super().__init__(len(pieces), symmetric=True)
        self._pieces = pieces
        self._encode = encode

    def select(self, positions: IntArray) -> PackedFeatures:
        """Encode the stories at these positions."""
        pieces = [self._pieces[position] for position in positions]
        features = self._encode([text for own in pieces for text in own])
        return PackedFeatures(torch.from_numpy(features), tuple(map(len, pieces)), torch.from_numpy(positions))


class Consecutive(StoryData):
    """Consecutive texts as training triples; their embeddings are cached, or computed again by `encode`."""

    def __init__(self, texts: Sequence[str], system: System) -> None:
        labels = PseudoLabels("positional" if system == "BiLSTM" else "none")
        super().__init__(Loading(batch_size=64 if system == "BiLSTM" else 32), pseudo_labels=labels)
        self.texts = texts
        self.sentences = system == "BiLSTM"
        self.encode: Encode | None = None

    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Three consecutive texts each."""
        self.provenance["train"] = {}
        return triples(self.texts, stories)

    def read_triples(self, stage: str, stories: StoryTable) -> Triples:
        """None."""
        return Triples(stories, [])

    def prepare_inputs(self, stage: str = "fit") -> StoryInputs[Any]:
        """Fill the cache; return inputs that read it, or do not."""
        cached = super().prepare_inputs(stage)
        if self.encode is None:
            return cached
        pieces = [split_sentences(text) if self.sentences else [text] for text in self.stories.texts]
        return EncodedAgain(pieces, self.encode)


class Clock(lightning.Callback):
    """CPU seconds of each epoch of a fit."""

    def __init__(self) -> None:
        self.marks: list[float] = []

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Note an epoch's start."""
        self.marks.append(time.process_time())

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Note the last epoch's end."""
        self.marks.append(time.process_time())

    @property
    def seconds(self) -> float:
        """Mean of the epochs; the first of several only warms up."""
        times = [end - begin for begin, end in pairwise(self.marks)]
        return float(np.mean(times[1:] or times))


@dataclass
class Course:
    """One system's epochs over the same triples, with the cache and without."""

    system: System
    texts: Sequence[str]
    encode: Encode
    folder: str

    def lightning_epoch(self, again: bool) -> float:
        """CPU seconds of an epoch as the trainer runs it."""
        return self._fit(again)[0].seconds

    def loop_epoch(self, again: bool) -> float:
        """CPU seconds of an epoch as a plain loop: batches, loss, gradients, optimizer, nothing else."""
        _, objective, data = self._fit(again=False)
        data.encode = self.encode if again else None
        loader = data.train_dataloader()
        optimizer: Any = torch.optim.AdamW(objective.parameters(), lr=1e-4, fused=True)
        epochs = 1 if again else EPOCHS
        start = time.process_time()
        for epoch in range(epochs):
            loader.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]
            for batch in loader:
                loss = objective.loss(objective(batch.stories), batch)["loss"]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return (time.process_time() - start) / epochs

    def check(self) -> float:
        """Largest difference between cached embeddings and those computed again, over one batch."""
        data = self._fit(again=False)[2]
        cached = data.prepare_inputs().select(np.arange(6))
        data.encode = self.encode
        return float((cached.features - data.prepare_inputs().select(np.arange(6)).features).abs().max())

    def _fit(self, again: bool) -> tuple[Clock, Any, Consecutive]:
        """Fit as the system's config has it, but for the encoder."""
        lightning.seed_everything(SEED, verbose=False)
        encoder = EncoderConfig(model="minilm", max_length=MAX_TOKENS)
        options = Optimization(learning_rate=1e-4, warmup=0.0, decay="none")
        kind: Any = Projection if self.system == "projection" else AspectBiLSTM
        objective = kind(encoder, options, EmbeddingSource(folder=self.folder))
        data, clock = Consecutive(self.texts, self.system), Clock()
        data.encode = self.encode if again else None
        quiet_trainer(clock, epochs=1 if again else EPOCHS).fit(objective, data)
        return clock, objective, data


def measure(course: Course, peer: Course, rounds: int) -> list[list[str]]:
    """Three rows of the table: the plain loop's, Lightning's, and the peer's loop."""
    ways: dict[str, Callable[[bool], float]] = {
        "loop": course.loop_epoch,
        "Lightning": course.lightning_epoch,
        "loop, peer encodes": peer.loop_epoch,
    }
    course.lightning_epoch(again=False)  # fills the cache
    rows = []
    for name, run in ways.items():
        times = interleave({"again": partial(run, True), "cached": partial(run, False)}, rounds)
        ratio = Ratio.of(times["again"], times["cached"])
        seconds = [f"{ratio.peer:.1f}", f"{1000 * ratio.ours:.1f}"]
        span = f"{ratio.least:,.0f}-{ratio.largest:,.0f}"
        rows.append([course.system, name, *seconds, f"{ratio.middle:,.0f}", span, f"{AIMS[course.system]:,.0f}"])
    return rows


def main() -> None:
    """Measure and print."""
    options = parser("an epoch over cached embeddings against one that encodes its stories again")
    options.add_argument("--triples", type=int, default=256, help="of an epoch (default 256)")
    chosen = begin(options, triples=6, lengths="even")
    encoder, peer = Encoder(EncoderConfig(model="minilm", max_length=MAX_TOKENS)).eval(), peer_model()
    mine: Encode = lambda texts: embed(encoder, texts, "anchor", progress=False).embeddings  # noqa: E731
    peers: Encode = partial(peer.encode, show_progress_bar=False)
    print(machine(chosen.threads, chosen.rounds))
    for texts in text_sets(chosen.stories, chosen.lengths, 3 * chosen.triples):
        print(f"\n{texts.name}: {texts.describe()}; {chosen.triples} triples")
        rows, worst = [], 0.0
        with tempfile.TemporaryDirectory() as folder:
            for system in AIMS:
                ours, theirs = (Course(system, texts.texts, encode, folder) for encode in (mine, peers))  # type: ignore[arg-type]
                rows += measure(ours, theirs, chosen.rounds)
                worst = max(worst, ours.check(), theirs.check())
        header = ["system", "epoch by", "encoded again, s", "cached, ms", "ratio", "range", "aim"]
        print(table(header, rows))
        print(f"largest difference of an embedding: {worst:.1e}")


if __name__ == "__main__":
    main()
