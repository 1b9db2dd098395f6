"""Embedding by torch, ONNX Runtime and OpenVINO: speed, size, and what smaller weights change in a ranking.

    python benchmarks/runtimes.py --out runtimes.json

All embed the same texts, truncated, in batches of as many tokens; torch concatenates texts, the others pad them.
The stories are the 24 sample tales, the test stories of Twice Told, and the held-back ones, on which no model trains;
versions have the same tale type or plot. Cosines are compared with those of torch in float32. Needs the extras `minilm`
and `onnx`, and `openvino` for its rows.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch
from inference import cosines
from measure import Row, Setting, interleave, machine, peer_model, runs_here, timed, warm
from numpy.typing import NDArray
from scipy.stats import spearmanr

import narrlit
from narrlit.data.tales import sample_tales
from narrlit.data.twice_told import held_back_tellings
from narrlit.encoding.exported import RUNTIME, ExportedEncoder, ExportedRecord
from narrlit.encoding.story_encoder import EncoderFacts, StoryEncoder
from narrlit.experiments.version_ranking import rank_versions
from narrlit.exporting.backends import WeightFormat, convert_graph, file_size
from narrlit.exporting.onnx import write_onnx
from narrlit.models.config import Long
from narrlit.optional import require
from narrlit.preprocessing.sentences import split_sentences
from narrlit.results import Result

Floats = NDArray[np.floating[Any]]
Embed = Callable[[Sequence[str]], Floats]
MODELS = ("narrlit-mini", "minilm")
EXACT = "torch float32"
LONG: Long = "truncate"
TIMED_STORIES, TIMED_SENTENCES = 96, 256
NEAREST = 10
LARGEST_CHANGE = 1e-5
"""Of a cosine in float32, by the order of summation."""


@dataclass(frozen=True)
class LabeledStories:
    """Texts, of which those with the same label are versions of each other."""

    texts: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Runtime:
    """One way to embed.

    Attributes:
        embed: function from N texts to their embeddings (N, D).
        size: size of the weights' file in bytes; None for torch.
    """

    embed: Embed
    size: int | None = None


@dataclass(frozen=True)
class Figures:
    """What a runtime changes.

    Attributes:
        size: size of the weights' file in bytes; None for torch.
        largest_change: largest change of a cosine of two stories.
        mean_change: mean change of a cosine.
        spearman: Spearman correlation of all cosines.
        nearest_kept: share of the ten nearest stories that stay.
    """

    size: int | None
    largest_change: float
    mean_change: float
    spearman: float
    nearest_kept: float


class OpenVINOSession:
    """OpenVINO model with the method of an ONNX Runtime session that `ExportedEncoder` calls."""

    def __init__(self, path: Path, precision: str, threads: int) -> None:
        """Compile a file for the CPU, to compute in `f32` or `bf16`."""
        options = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads}
        self.model = require("openvino", "openvino").Core().compile_model(path, "CPU", options)

    def run(self, outputs: Sequence[str], inputs: Mapping[str, NDArray[np.int64]]) -> list[Floats]:
        """Compute outputs by name."""
        results = self.model(inputs)
        return [results[name] for name in outputs]


def onnx_session(path: Path, threads: int) -> Any:
    """Open a file in ONNX Runtime, on the CPU."""
    runtime = require(RUNTIME, "onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def stories() -> LabeledStories:
    """Collect the tales, and stories of Twice Told whose plots no model was trained on."""
    tellings = list(narrlit.TwiceTold.read().split("test").tellings)
    tellings += [telling for telling in held_back_tellings() if not telling.changed]
    tales = sample_tales()
    texts = [tale["text"] for tale in tales] + [telling.text for telling in tellings]
    return LabeledStories(texts, [tale["atu"] for tale in tales] + [telling.plot for telling in tellings])


class ExportedFiles:
    """Files of an encoder for ONNX Runtime and OpenVINO in one folder."""

    def __init__(self, encoder: StoryEncoder, folder: Path) -> None:
        """Write the graph in float32."""
        self.folder = folder
        self.record = ExportedRecord(facts=asdict(EncoderFacts.of(encoder.module)), padding=0)
        self.tokenizer = encoder.module.model[0].tokenizer.backend_tokenizer
        self.graph = folder / "model.onnx"
        narrlit.export(encoder, folder / "model")
        write_onnx(folder / "model", self.graph)

    def converted(self, suffix: str, weights: WeightFormat) -> Path:
        """Write a file in a number format."""
        path = self.folder / f"{weights}{suffix}"
        convert_graph(self.graph, path, weights)
        return path

    def runtime(self, path: Path, session: Any) -> Runtime:
        """Embed by a session."""
        tokenizer = self.tokenizer.from_str(self.tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        encoder = ExportedEncoder(self.record, LONG, tokenizer, session)
        return Runtime(lambda texts: encoder.embed(texts)[0], file_size(path))


def runtimes(model: str, folder: Path, threads: int) -> dict[str, Runtime]:
    """Open a model in every way that this machine supports."""
    encoder = narrlit.load(model, device="cpu", long=LONG)
    ways = {EXACT: Runtime(encoder.embed)}
    has_bf16 = runs_here("bf16", "cpu")
    if has_bf16:
        ways["torch bfloat16"] = Runtime(narrlit.load(model, device="cpu", long=LONG, precision="bf16").embed)
    files = ExportedFiles(encoder, folder)
    formats: tuple[WeightFormat, ...] = ("float32", "float16", "int8")
    for weights in formats:
        path = files.converted(".onnx", weights)
        ways[f"ONNX Runtime {weights}"] = files.runtime(path, onnx_session(path, threads))
    if find_spec("openvino") is None:
        return ways
    for weights in formats[:2]:
        path = files.converted(".xml", weights)
        ways[f"OpenVINO {weights}"] = files.runtime(path, OpenVINOSession(path, "f32", threads))
    if has_bf16:
        path = folder / "float32.xml"
        ways["OpenVINO bfloat16"] = files.runtime(path, OpenVINOSession(path, "bf16", threads))
    return ways


def changes(ways: Mapping[str, Runtime], labeled: LabeledStories) -> tuple[dict[str, Figures], Result]:
    """Compare the cosines of all pairs, and the ranking of versions, with those of torch in float32."""
    similarities = {name: cosines(way.embed(labeled.texts)) for name, way in ways.items()}
    ids = [str(number) for number in range(len(labeled.texts))]
    table = pd.DataFrame({"id": ids, "text": labeled.texts, "label": labeled.labels})
    ranking = rank_versions(similarities.items(), table, "label")
    pairs = np.triu_indices(len(labeled.texts), k=1)
    exact = similarities[EXACT]
    figures = {}
    for name, own in similarities.items():
        change = np.abs(own - exact)[pairs]
        figures[name] = Figures(
            size=ways[name].size,
            largest_change=float(change.max()),
            mean_change=float(change.mean()),
            spearman=float(spearmanr(own[pairs], exact[pairs])[0]),
            nearest_kept=nearest_kept(own, exact),
        )
    return figures, ranking


def nearest_kept(own: Floats, exact: Floats) -> float:
    """Compute the share of the nearest of each story by exact cosines (N, N) that are among the nearest by others."""
    kept = 0
    for row in range(len(exact)):
        nearest = [np.argsort(-np.delete(matrix[row], row), kind="stable")[:NEAREST] for matrix in (own, exact)]
        kept += len(set(nearest[0].tolist()) & set(nearest[1].tolist()))
    return kept / (NEAREST * len(exact))


def embedding(setting: Setting) -> Iterator[Row]:
    """Embed stories by exported files, against sentence-transformers in float32; a part of bench.py."""
    if setting.device != "cpu":
        return
    if find_spec("onnx") is None or find_spec(RUNTIME) is None:
        yield Row("exported", precision="-", note="not run: pip install 'narrlit[onnx]'")
        return
    peer = peer_model("cpu")
    with tempfile.TemporaryDirectory() as folder:
        ways = runtimes("minilm", Path(folder), setting.threads)
        for texts in setting.texts(12 if setting.quick else 128):
            embeds: dict[str, Embed] = {"peer": partial(peer.encode, show_progress_bar=False)}
            embeds |= {name: way.embed for name, way in ways.items() if not name.startswith("torch")}
            exact = cosines(ways[EXACT].embed(texts.texts))
            times = warm(
                {name: partial(timed, partial(own, texts.texts), "cpu") for name, own in embeds.items()}, setting
            )
            for name in list(embeds)[1:]:
                row = Row(
                    f"exported, {name}", texts.name, "-", times["peer"], times[name], "stories/s", len(texts.texts)
                )
                change = float(np.abs(cosines(embeds[name](texts.texts)) - exact).max())
                row.note = f"peer: fp32; cosines differ by {change:.0e}"
                row.wrong = row.note if name.endswith("float32") and change > LARGEST_CHANGE else ""
                yield row


def seconds(ways: Mapping[str, Runtime], texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Time each runtime in interleaved rounds, after one that does not count."""
    variants = {name: partial(timed, partial(way.embed, texts), "cpu") for name, way in ways.items()}
    interleave(variants, 1)
    return interleave(variants, rounds)


def rates(times: Mapping[str, Sequence[float]], count: int) -> dict[str, dict[str, float]]:
    """Compute texts per second, and the median ratio to torch in float32 of the same round."""
    results = {}
    for name, own in times.items():
        ratios = [exact / mine for exact, mine in zip(times[EXACT], own, strict=True)]
        results[name] = {"rate": count / median(own), "ratio": median(ratios)}
    return results


def table(model: str, figures: Mapping[str, Figures], ranking: Result, speeds: Mapping[str, Any]) -> Iterator[str]:
    """Format the figures of a model as lines of a Markdown table."""
    columns = ["MB", "stories/s", "sentences/s", "largest, mean change", "Spearman", "nearest kept", "recall@1", "MRR"]
    yield f"| {model} | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for name, row in figures.items():
        size = "" if row.size is None else f"{row.size / 1e6:.0f}"
        speed = [f"{speeds[kind][name]['rate']:.0f} ({speeds[kind][name]['ratio']:.2f})" for kind in speeds] or ["", ""]
        recall, mrr = (ranking.estimate(name, metric).value for metric in ("recall@1", "MRR"))
        quality = f"{row.spearman:.4f} | {row.nearest_kept:.3f} | {recall:.3f} | {mrr:.3f}"
        change = f"{row.largest_change:.0e}, {row.mean_change:.0e}"
        yield f"| {name} | {size} | {' | '.join(speed)} | {change} | {quality} |"


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print tables, and write the figures if `--out` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="models; the first is timed (narrlit-mini,minilm)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of timing; 0: no timing (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every runtime (2)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    labeled = stories()
    sentences = [sentence for text in labeled.texts for sentence in split_sentences(text)][:TIMED_SENTENCES]
    timed_texts = {"stories": labeled.texts[:TIMED_STORIES], "sentences": sentences}
    record: dict[str, Any] = {"machine": machine(), "threads": options.threads, "stories": len(labeled.texts)}
    record |= {"models": {}, "rankings": {}, "speeds": {}}
    for model in options.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            ways = runtimes(model, Path(folder), options.threads)
            figures, ranking = changes(ways, labeled)
            if not record["models"] and options.rounds:
                for kind, texts in timed_texts.items():
                    record["speeds"][kind] = rates(seconds(ways, texts, options.rounds), len(texts))
            speeds = {} if record["models"] else record["speeds"]
            record["models"][model] = {name: asdict(row) for name, row in figures.items()}
            record["rankings"][model] = ranking.record
            print(*table(model, figures, ranking, speeds), sep="\n", flush=True)
        for name in ("ONNX Runtime float32", "OpenVINO float32"):
            if name in figures and figures[name].largest_change > LARGEST_CHANGE:
                raise SystemExit(f"{model}: {name} changes a cosine by {figures[name].largest_change:.0e}")
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
