"""What the benchmarks share: texts, CPU time in interleaved rounds, padding of the peer's batches, tables."""

import os

# Set before the libraries read them: no network, and tokenizing in the measured thread.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import argparse
import logging
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import lightning
import torch

from narrlit.data.readers import read_examples, read_stories
from narrlit.data.storyworld import StoryWorld
from narrlit.errors import DataError
from narrlit.models.loading import packaged_minilm

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MEAN_WORDS, MOST_WORDS, FEWEST_WORDS = 120, 525, 15
"""Lengths of plot summaries, which the varied texts follow."""
HOW_VARIED = (
    "a varied text joins StoryWorld's stories and is cut at a number of words that is drawn from a log-normal "
    f"distribution with the mean of plot summaries ({MEAN_WORDS}), {FEWEST_WORDS} to {MOST_WORDS}"
)
HOW_EVEN = "an even text is one of StoryWorld's stories as it is"
MAX_TOKENS = 256


@dataclass(frozen=True)
class Texts:
    """Different texts under a name; three consecutive ones are a triple."""

    name: str
    texts: list[str]
    making: str = ""

    def describe(self) -> str:
        """Their number, their lengths in words, and how they were made."""
        words = [len(text.split()) for text in self.texts]
        lengths = f"{len(words)} texts of {mean(words):.0f} words on average, {min(words)} to {max(words)}"
        return f"{lengths}; {self.making}" if self.making else lengths


@dataclass
class Padding:
    """Counts the tokens and the padding of batches, as a forward pre-hook of the peer's transformer."""

    tokens: int = 0
    cells: int = 0

    def __call__(self, module: object, args: tuple[dict[str, Any], ...]) -> None:
        """Count one batch."""
        mask = args[0]["attention_mask"]
        self.tokens += int(mask.sum())
        self.cells += mask.numel()

    def describe(self) -> str:
        """Tokens, and the share of padding."""
        return f"{self.tokens:,} tokens, {1 - self.tokens / self.cells:.0%} of the peer's batches is padding"


@dataclass(frozen=True)
class Ratio:
    """Peer / ours, round by round: medians of both in CPU seconds, and the median, least and largest ratio."""

    peer: float
    ours: float
    middle: float
    least: float
    largest: float

    @classmethod
    def of(cls, peer: Sequence[float], ours: Sequence[float]) -> "Ratio":
        """Rounds are paired: whatever else the machine did in a round slowed both sides."""
        ratios = [theirs / mine for theirs, mine in zip(peer, ours, strict=True)]
        return cls(median(peer), median(ours), median(ratios), min(ratios), max(ratios))

    def cells(self, aim: float | None) -> list[str]:
        """Ratio, range and aim as cells of a table."""
        return [f"{self.middle:.2f}", f"{self.least:.2f}-{self.largest:.2f}", f"{aim:.1f}" if aim else "-"]


def parser(description: str) -> argparse.ArgumentParser:
    """The options that the benchmarks share."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--stories", type=Path, help="file of stories or triples; default: StoryWorld")
    options.add_argument("--lengths", choices=("varied", "even", "both"), default="both", help="of StoryWorld's texts")
    options.add_argument("--rounds", type=int, default=3, help="medians are over so many rounds (default 3)")
    options.add_argument("--threads", type=int, default=1, help="of torch, on both sides (default 1)")
    options.add_argument("--quick", action="store_true", help="a tiny run that tests the script and measures nothing")
    return options


def begin(options: argparse.ArgumentParser, **quick: Any) -> Any:
    """Parse the options, which `quick` replaces in a quick run, set the threads and silence notices."""
    chosen = options.parse_args()
    if chosen.quick:
        vars(chosen).update(quick, rounds=1)
    torch.set_num_threads(chosen.threads)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return chosen


def text_sets(stories: Path | None, lengths: str, count: int) -> list[Texts]:
    """What is measured on: the user's file, or StoryWorld's stories, with varied lengths and as they are.

    Raises:
        SystemExit: if the file has too few different texts.
    """
    if stories is not None:
        found = _of_file(stories)
        if len(found) < count:
            raise SystemExit(f"{stories} has {len(found)} different texts that fit, {count} are needed")
        return [Texts(stories.name, found[:count])]
    sets = []
    if lengths in ("varied", "both"):
        sets.append(Texts("varied", varied(_even(2 * count), count), HOW_VARIED))
    if lengths in ("even", "both"):
        sets.append(Texts("even", _even(count), HOW_EVEN))
    return sets


def _of_file(path: Path) -> list[str]:
    """Every text once: narrlit embeds repeated texts once, which is another gain than the one measured here."""
    try:
        rows = [row[:3] for row in read_examples(path).texts() if len(row) >= 3]
    except DataError:
        return list(dict.fromkeys(story.text for story in read_stories(path)))
    texts: dict[str, None] = {}
    for row in rows:
        if len(set(row)) == 3 and texts.keys().isdisjoint(row):
            texts.update(dict.fromkeys(row))
    return list(texts)


def _even(count: int) -> list[str]:
    triples = StoryWorld(0).triples(-(-count // 3))
    return [story.text for triple in triples for story in (triple.anchor, triple.positive, triple.negative)][:count]


def varied(stories: Sequence[str], count: int) -> list[str]:
    """Texts with the lengths of plot summaries: each joins stories up to a drawn number of words and ends there.

    Whole stories alone would only give multiples of StoryWorld's 110 words, and no short text.
    """
    rng = Random(0)
    spread = 0.6
    texts: dict[str, None] = {}
    while len(texts) < count:
        drawn = rng.lognormvariate(log(MEAN_WORDS) - spread**2 / 2, spread)
        wanted = min(max(round(drawn), FEWEST_WORDS), MOST_WORDS)
        words: list[str] = []
        while len(words) < wanted:
            words += rng.choice(stories).split()
        texts[" ".join(words[:wanted])] = None
    return list(texts)


def peer_model() -> "SentenceTransformer":
    """The peer's all-MiniLM-L6-v2 as it ships, in fp32 on the CPU."""
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    options = {"dtype": torch.float32}
    model = SentenceTransformer(str(packaged_minilm()), device="cpu", local_files_only=True, model_kwargs=options)
    model.max_seq_length = MAX_TOKENS
    return model


def interleave(variants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return CPU seconds of every variant, run once a round in this order: a busy machine slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            times[name].append(run())
    return times


def machine(threads: int, rounds: int) -> str:
    """One line on where and how the measuring was done."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    used = f"{threads} thread{'s' * (threads != 1)}, torch {torch.__version__}, Python {platform.python_version()}"
    return f"{_processor()}, {os.cpu_count()} cores{load}; {used}; CPU time, medians of {rounds} interleaved rounds"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under a header, columns aligned, the first two to the left and numbers to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def quiet_trainer(callback: lightning.Callback, epochs: int = 1, **options: Any) -> lightning.Trainer:
    """A trainer on the CPU that does nothing but train."""
    return lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[callback],
        **options,
    )
