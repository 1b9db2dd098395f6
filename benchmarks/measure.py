"""What the benchmarks share: settings, texts, time in interleaved rounds, rows of the table, the machine's limit."""

import os

# Set before the libraries read them: no network, and tokenizing in the measured thread.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, partial
from math import log
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.utils.mkldnn import to_mkldnn

from narrlit.data.readers import read_any
from narrlit.data.storyworld import StoryWorld
from narrlit.models import capabilities
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.packaged import packaged_minilm

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

T = TypeVar("T")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NOT_HERE = "not on this processor"
"""Note of a row in bf16 where the machine has it not: there it would take minutes and measure nothing of use."""
MAX_TOKENS = 256
MEAN_WORDS, MOST_WORDS, FEWEST_WORDS, SPREAD = 120, 525, 15, 0.6
"""Lengths of plot summaries, which the varied texts follow by a log-normal distribution."""


@dataclass(frozen=True)
class Texts:
    """Different texts under a name; consecutive ones are a training example."""

    name: str
    texts: list[str]

    def describe(self) -> str:
        """Their number and their lengths in words."""
        words = [len(text.split()) for text in self.texts]
        return f"{len(words)} texts of {mean(words):.0f} words on average, {min(words)} to {max(words)}"

    @property
    def flops(self) -> float:
        """Operations of embedding all texts: linear layers alone, attention is not counted; training takes thrice."""
        tokens = sum(map(len, minilm().tokenize(self.texts)[0]))
        return 2.0 * tokens * sum(linear.weight.numel() for linear in linears())


@dataclass(frozen=True)
class Setting:
    """Options of the run; a `quick` one tests the script on short texts and measures nothing."""

    rounds: int
    threads: int
    device: str
    stories: Path | None
    quick: bool

    @property
    def scale(self) -> int:
        """Factor of the number of texts, so that a GPU is busy."""
        return 16 if self.device == "cuda" and not self.quick else 1

    @property
    def steps(self) -> int:
        """Steps of a fit, of which the first is not measured."""
        return 12 if self.device == "cuda" and not self.quick else 2

    def texts(self, count: int) -> list[Texts]:
        """Return texts of the user's file, or StoryWorld's with varied lengths and as they are.

        Raises:
            SystemExit: if the file has too few different texts.
        """
        if self.quick:
            return [Texts("quick", [" ".join(text.split()[:12]) for text in long_texts(count)])]
        if self.stories is None:
            return [Texts("varied", varied(storyworld(2 * count), count)), Texts("even", storyworld(count))]
        found = list(dict.fromkeys(story.text for story in read_any(self.stories)))
        if len(found) < count:
            raise SystemExit(f"{self.stories} has {len(found)} different texts that fit, {count} are needed")
        return [Texts(self.stories.stem, found[:count])]


@dataclass
class Row:
    """One comparison: seconds or gigabytes of the peer and of narrlit, round by round.

    Attributes:
        job: what was done.
        data: name of the texts.
        precision: of narrlit's side.
        peer: cost in each round, paired with narrlit's: whatever else the machine did then slowed both sides.
        ours: the same; empty where it was not run.
        unit: of the cost, or of `count` things a second.
        count: things done in that time; 0: the cost itself is shown.
        aim: least ratio wanted.
        flops: of the useful matrix products in that time.
        note: what the figures don't say.
        wrong: how the results differ, where they differ by more than allowed.
    """

    job: str
    data: str = ""
    precision: str = "fp32"
    peer: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    unit: str = "s"
    count: float = 0
    aim: float | None = None
    flops: float = 0
    note: str = ""
    wrong: str = ""

    def record(self, limits: Mapping[str, float]) -> dict[str, Any]:
        """Return the row as plain data, with the ratio and the share of the machine's limit that narrlit reaches."""
        ratios = [peer / own for peer, own in zip(self.peer, self.ours, strict=False)]
        found = {"ratio": median(ratios), "range": [min(ratios), max(ratios)]} if ratios else {}
        share = self.flops / median(self.ours) / limits[self.precision] if self.flops else None
        return {**vars(self), **found, "share_of_limit": share}

    def cells(self, limits: Mapping[str, float]) -> list[str]:
        """Return the row as cells of the table."""
        record, middle = self.record(limits), ["-", "-"]
        if "ratio" in record:
            ratio, (least, largest) = record["ratio"], record["range"]
            digits = 0 if least >= 100 else 2
            middle = [f"{ratio:,.{digits}f}", f"{least:,.{digits}f}-{largest:,.{digits}f}"]
        share = record["share_of_limit"]
        last = ["-" if self.aim is None else f"{self.aim:g}", "-" if share is None else f"{share:.0%}"]
        return [self.job, self.data, self.precision, self._shown(self.peer), self._shown(self.ours), *middle, *last]

    def _shown(self, costs: Sequence[float]) -> str:
        if not costs:
            return "-"
        value = self.count / median(costs) if self.count else median(costs)
        return f"{value:.3g} {self.unit}"


class Clock:
    """Marks in time and the loss of each training step.

    Time is that of CUDA events on a GPU, else of the wall clock, with one thread CPU time, which other processes that
    keep the machine busy change less.
    """

    def __init__(self, device: str) -> None:
        self._cuda = device == "cuda"
        self._now = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
        self._marks: list[Any] = []
        self.losses: list[Tensor] = []
        self.preparation = 0.0

    def mark(self) -> None:
        """Note the present time."""
        if self._cuda:
            self._marks.append(torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
            self._marks[-1].record()
        else:
            self._marks.append(self._now())

    @property
    def seconds(self) -> float:
        """Time from the first mark to the last."""
        first, last = self._marks[0], self._marks[-1]
        if self._cuda:
            last.synchronize()
            return float(first.elapsed_time(last)) / 1000
        return float(last - first)

    @property
    def step(self) -> float:
        """Seconds of a step, of those after the first, with its share of what was prepared before all of them."""
        steps = len(self._marks)
        return self.seconds / (steps - 1) + self.preparation / steps


def timed(run: Callable[[], object], device: str) -> float:
    """Seconds that `run` takes."""
    clock = Clock(device)
    clock.mark()
    run()
    clock.mark()
    return clock.seconds


def interleave(variants: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Return the results of every variant, run once a round in this order: a busy machine slows all alike."""
    results: dict[str, list[T]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            results[name].append(run())
    return results


def warm(variants: Mapping[str, Callable[[], T]], setting: Setting) -> dict[str, list[T]]:
    """Interleave after a round that does not count."""
    if not setting.quick:
        interleave(variants, 1)
    return interleave(variants, setting.rounds)


# Texts


def storyworld(count: int) -> list[str]:
    """StoryWorld's stories."""
    triples = StoryWorld(0).triples(-(-count // 3))
    return [story.text for triple in triples for story in (triple.anchor, triple.positive, triple.negative)][:count]


def varied(stories: Sequence[str], count: int) -> list[str]:
    """Texts with the lengths of plot summaries: each joins stories up to a drawn number of words and ends there.

    Whole stories alone would only give multiples of StoryWorld's 110 words, and no short text.
    """
    rng, texts = Random(0), dict[str, None]()
    while len(texts) < count:
        drawn = round(rng.lognormvariate(log(MEAN_WORDS) - SPREAD**2 / 2, SPREAD))
        texts[_joined(stories, rng, min(max(drawn, FEWEST_WORDS), MOST_WORDS))] = None
    return list(texts)


def long_texts(count: int) -> list[str]:
    """Different texts of more than MAX_TOKENS tokens."""
    stories, rng = storyworld(300), Random(0)
    return [f"{number} {_joined(stories, rng, MAX_TOKENS + 50)}" for number in range(count)]


def _joined(stories: Sequence[str], rng: Random, words: int) -> str:
    joined: list[str] = []
    while len(joined) < words:
        joined += rng.choice(stories).split()
    return " ".join(joined[:words])


# Models and the machine


@cache
def minilm(device: str = "cpu") -> Encoder:
    """Return narrlit's all-MiniLM-L6-v2 in fp32, to embed with."""
    return Encoder(EncoderConfig(model="minilm", max_length=MAX_TOKENS)).eval().to(device)


def peer_model(device: str, dtype: torch.dtype = torch.float32, **options: Any) -> "SentenceTransformer":
    """Return the peer's all-MiniLM-L6-v2 as it ships."""
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    options = {"model_kwargs": {"dtype": dtype}, **options}
    model = SentenceTransformer(str(packaged_minilm()), device=device, local_files_only=True, **options)
    model.max_seq_length = MAX_TOKENS
    return model


def runs_here(precision: str, device: str) -> bool:
    """Return whether the device computes in this number format in hardware."""
    return precision == "fp32" or capabilities.has_bf16(torch.device(device))


def linears() -> list[torch.nn.Linear]:
    """Linear layers of MiniLM's encoder, those of each transformer layer in turn."""
    return [part for part in minilm().transformer.encoder.modules() if isinstance(part, torch.nn.Linear)]


def gemm_limits(device: str, tokens: int) -> dict[str, float]:
    """Measure FLOP/s of MiniLM's linear layers, the faster of MKL and oneDNN on a CPU, by precision."""
    layer = linears()[:6]
    limits = {}
    for precision, dtype in DTYPES.items():
        if not runs_here(precision, device):
            continue
        seconds = 0.0
        for linear in layer:
            own, x = deepcopy(linear).to(device, dtype), torch.randn(tokens, linear.in_features)
            calls: list[Callable[[], Tensor]] = [partial(own, x.to(device, dtype))]
            if device == "cpu" and dtype == torch.float32:
                calls.append(partial(to_mkldnn(own), x.to_mkldnn()))  # type: ignore[no-untyped-call]
            with torch.no_grad():
                seconds += min(timed(call, device) for call in calls * 10)
        limits[precision] = 2.0 * tokens * sum(linear.weight.numel() for linear in layer) / seconds
    return limits


def machine() -> str:
    """Name the processor and its load."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text(encoding="utf-8")) if cpuinfo.exists() else []
    return f"{[*names, platform.processor()][0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
