"""An epoch over stored vectors against one that encodes its stories again: Comhis' projection, Mendel292's BiLSTM.

Both sides draw the same batches and train the same head by the same objective; the frozen encoder is MiniLM. The store
is filled before the time measured: over a whole run of E epochs the gain is E times at most. Each epoch is measured as
a plain loop over batches, as Lightning's, which logs and calls back at every step, and once more as a loop where
sentence-transformers encodes in place of narrlit.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import lightning
import numpy as np
import torch
from measure import (
    MAX_TOKENS,
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
from numpy.typing import NDArray

from narrlit.data.batch import PackedVectors
from narrlit.data.places import PlaceTable, Rows
from narrlit.data.records import Example, Negative, Triple
from narrlit.datamodules import Loading, StoryData
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.objectives import Aspects, Hard, Optimization, Projection, Subspaces
from narrlit.objectives.frozen import FrozenObjective
from narrlit.stores.features import Units
from narrlit.stores.sources import VectorOptions

AIMS = {"projection": 3000.0, "BiLSTM": 150.0}
EPOCHS = 5
"""Over the store, at a time: one alone is too short to be measured."""
SEED = 1
System = Literal["projection", "BiLSTM"]
Encode = Callable[[list[str]], NDArray[np.float32]]


class EncodedAgain(PlaceTable[PackedVectors]):
    """Stories whose vectors are made anew for every batch, as in a script without a store."""

    def __init__(self, texts: Sequence[str], units: Units, encode: Encode) -> None:
        super().__init__(len(texts), symmetric=True)
        self._pieces = [units(text) for text in texts]
        self._encode = encode

    def stories(self, places: Rows) -> PackedVectors:
        """Encode the stories at these places."""
        pieces = [self._pieces[place] for place in places]
        vectors = self._encode([part for piece in pieces for part in piece])
        return PackedVectors(torch.from_numpy(vectors), tuple(map(len, pieces)), torch.from_numpy(places))


class Given(StoryData):
    """Training triples from a list of texts, three a triple."""

    def __init__(self, texts: Sequence[str], batch_size: int) -> None:
        super().__init__(Loading(batch_size=batch_size))
        rows = zip(texts[::3], texts[1::3], texts[2::3], strict=False)
        self.rows = [Example(anchor, positive, (Negative(other, "triple"),)) for anchor, positive, other in rows]

    def read_examples(self) -> list[Example]:
        """All of them."""
        return self.rows

    def read_triples(self, stage: str) -> list[Triple]:
        """None."""
        return []


class Clock(lightning.Callback):
    """CPU seconds of each epoch of a fit."""

    def __init__(self) -> None:
        self.marks: list[float] = []

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """One epoch more."""
        self.marks.append(time.process_time())

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """The last one's end."""
        self.marks.append(time.process_time())

    @property
    def seconds(self) -> float:
        """Of an epoch on average; the first of several only warms up."""
        times = [end - begin for begin, end in pairwise(self.marks)]
        return float(np.mean(times[1:] or times))


def built(system: System, folder: str) -> FrozenObjective:
    """An objective as its paper's config has it, but for the encoder."""
    encoder = EncoderConfig(model="minilm", max_length=MAX_TOKENS)
    options = Optimization(learning_rate=1e-4, warmup=0.0, decay="none")
    vectors = VectorOptions(folder=folder)
    if system == "projection":
        return Projection(encoder, options, vectors, hard=Hard(weight=1.0))
    return Subspaces(encoder, options, vectors, aspects=Aspects(labels="positional"))


class Course:
    """One system's epochs, from the store and without it, over the same triples."""

    def __init__(self, system: System, texts: Texts, encode: Encode, folder: str) -> None:
        self.system = system
        self.texts = texts
        self.encode = encode
        self.folder = folder
        self.batch_size = 32 if system == "projection" else 64

    def lightning_epoch(self, again: bool) -> float:
        """CPU seconds of an epoch as the trainer runs it."""
        return self._fit(again)[0].seconds

    def loop_epoch(self, again: bool) -> float:
        """CPU seconds of an epoch as a plain loop: batches, loss, gradients, optimizer, nothing else."""
        _, objective, data = self._fit(again=False)
        if again:
            self._encode_again(objective, data)
        loader = data.train_dataloader()
        optimizer: Any = torch.optim.AdamW(objective.parameters(), lr=1e-4, fused=True)
        epochs = 1 if again else EPOCHS
        start = time.process_time()
        for epoch in range(epochs):
            loader.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]
            for batch in loader:
                loss = objective.loss(objective(batch.stories), batch)["loss"]
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        return (time.process_time() - start) / epochs

    def check(self) -> float:
        """The largest difference between stored vectors and those made again, over one batch."""
        _, objective, data = self._fit(again=False)
        stored = data.training_table().stories(np.arange(6))
        self._encode_again(objective, data)
        return float((stored.vectors - data.training_table().stories(np.arange(6)).vectors).abs().max())

    def _encode_again(self, objective: FrozenObjective, data: StoryData) -> None:
        units = type(objective).units
        data._tables["train"] = EncodedAgain(data.training_texts(), units, self.encode)

    def _fit(self, again: bool) -> tuple[Clock, FrozenObjective, StoryData]:
        lightning.seed_everything(SEED, verbose=False)
        objective, data, clock = built(self.system, self.folder), Given(self.texts.texts, self.batch_size), Clock()
        if again:
            prepare = objective.prepare

            def swapped(stage: str, data: Any) -> None:
                prepare(stage, data)
                self._encode_again(objective, data)

            object.__setattr__(objective, "prepare", swapped)
        quiet_trainer(clock, epochs=1 if again else EPOCHS).fit(objective, data)
        return clock, objective, data


def measure(course: Course, peer: Course, rounds: int) -> list[list[str]]:
    """Three rows of the table: the plain loop's, Lightning's, and the peer's loop."""
    ways: dict[str, Callable[[bool], float]] = {
        "loop": course.loop_epoch,
        "Lightning": course.lightning_epoch,
        "loop, peer encodes": peer.loop_epoch,
    }
    course.lightning_epoch(again=False)  # fills the store
    rows = []
    for name, run in ways.items():
        times = interleave({"again": partial(run, True), "stored": partial(run, False)}, rounds)
        ratio = Ratio.of(times["again"], times["stored"])
        seconds = [f"{ratio.peer:.1f}", f"{1000 * ratio.ours:.1f}"]
        span = f"{ratio.least:,.0f}-{ratio.largest:,.0f}"
        rows.append([course.system, name, *seconds, f"{ratio.middle:,.0f}", span, f"{AIMS[course.system]:,.0f}"])
    return rows


def main() -> None:
    """Measure and print."""
    options = parser("an epoch over stored vectors against one that encodes its stories again")
    options.add_argument("--triples", type=int, default=256, help="of an epoch (default 256)")
    given = begin(options, triples=6, lengths="even")
    encoder, peer = Encoder(EncoderConfig(model="minilm", max_length=MAX_TOKENS)).eval(), peer_model()

    def mine(texts: list[str]) -> NDArray[np.float32]:
        return embed(encoder, texts, "anchor", progress=False)[0]

    def peers(texts: list[str]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = peer.encode(texts, show_progress_bar=False)
        return found

    print(machine(given.threads, given.rounds))
    for texts in text_sets(given.stories, given.lengths, 3 * given.triples):
        print(f"\n{texts.name}: {texts.describe()}; {given.triples} triples")
        rows, worst = [], 0.0
        with tempfile.TemporaryDirectory() as folder:
            for system in AIMS:
                ours, theirs = (Course(system, texts, encode, folder) for encode in (mine, peers))  # type: ignore[arg-type]
                rows += measure(ours, theirs, given.rounds)
                worst = max(worst, ours.check(), theirs.check())
        header = ["system", "epoch by", "encoded again, s", "stored, ms", "ratio", "range", "aim"]
        print(table(header, rows))
        print(f"largest difference of a vector: {worst:.1e}")


if __name__ == "__main__":
    main()
