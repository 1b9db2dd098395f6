"""Cold start: whole processes of `narrlit search`, prepared and not, against sentence-transformers.

    python benchmarks/cold_start.py --rounds 5

The index has the 24 tales of `narrlit data sample`. Each round starts every command once, in its own process; the peer
imports sentence-transformers, loads all-MiniLM-L6-v2 and encodes the same query. The results of the prepared index are
compared with those of the other. `--source FOLDER` also times an earlier version, by its source code. Needs the extras
`explore`, `minilm` and `onnx`.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from measure import interleave

import narrlit
from narrlit.library.stored_snapshot import STORED
from narrlit.models.packaged import packaged_minilm
from narrlit.preprocessing.sentences import split_sentences

QUERY = "A girl loses a shoe, and a prince finds her by it."
PREPARED, NOT_PREPARED, LIKE = "search, prepared", "search", "search --like, prepared"
EARLIER, PEER = "search, earlier version", "sentence-transformers"
LARGEST_DIFFERENCE = 1e-5
"""Of a similarity, by the export."""


@dataclass
class Cost:
    """Seconds of a process, of the wall clock and of all CPUs."""

    wall: float
    cpu: float


@dataclass
class Result:
    """Costs of each command, round by round, and the largest difference of a similarity.

    Attributes:
        costs: costs by command.
        queries: number of queries by which the results were compared.
        difference: largest difference of a similarity between the prepared index and the other.
        same_ranking: number of queries with the same ids in the same order.
    """

    costs: dict[str, list[Cost]] = field(default_factory=dict)
    queries: int = 0
    difference: float = 0.0
    same_ranking: int = 0


def process(command: list[str], cache: Path, source: Path | None = None) -> Cost:
    """Run a command in a new process, with the source code of another version if one is given."""
    environment = {**os.environ, "NARRLIT_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def compare(prepared: Path, other: Path, result: Result) -> None:
    """Search both indexes for the first sentence of each tale, and note how the results differ."""
    expected, own = narrlit.Index(other), narrlit.Index(prepared)
    expected.encoder.module  # noqa: B018 - a loaded model is not replaced by its export
    queries = [split_sentences(text)[0] for text in expected.collection().frame["text"]]
    for query in queries:
        ours, theirs = own.search(query, k=24).table(), expected.search(query, k=24).table()
        result.same_ranking += ours["id"].tolist() == theirs["id"].tolist()
        both = ours.merge(theirs, on="id")
        difference = float(np.abs(both["similarity_x"] - both["similarity_y"]).max())
        result.difference = max(result.difference, difference)
    result.queries = len(queries)


def measure(folder: Path, rounds: int, source: Path | None) -> Result:
    """Prepare both indexes, and time each command."""
    cache, empty = folder / "cache", folder / "empty"
    prepared, other = folder / "prepared.index", folder / "other.index"
    process(["-m", "narrlit", "sample", str(folder / "tales")], empty)
    process(["-m", "narrlit", "index", str(folder / "tales"), "--out", str(prepared)], cache)
    if not (prepared / STORED).is_file():
        raise SystemExit("nothing was prepared: pip install 'narrlit[onnx]'")
    shutil.copytree(prepared, other)
    (other / STORED).unlink()
    model = f"s.SentenceTransformer({str(packaged_minilm())!r}, device='cpu')"
    search = ["-m", "narrlit", "search"]
    variants = {
        PREPARED: partial(process, [*search, str(prepared), QUERY], cache),
        NOT_PREPARED: partial(process, [*search, str(other), QUERY], empty),
        LIKE: partial(process, [*search, str(prepared), "--like", "cinderella"], cache),
        PEER: partial(process, ["-c", f"import sentence_transformers as s; {model}.encode({QUERY!r})"], empty),
    }
    if source is not None:
        variants = {EARLIER: partial(process, [*search, str(other), QUERY], empty, source), **variants}
    interleave(variants, 1)  # reads the files into memory
    result = Result(interleave(variants, rounds))
    os.environ["NARRLIT_CACHE"] = str(cache)
    compare(prepared, other, result)
    return result


@dataclass
class Summary:
    """Medians of a command.

    Attributes:
        wall: seconds of the wall clock.
        cpu: seconds of all CPUs.
        ratio: seconds of sentence-transformers in the same round, divided by those of the command.
    """

    wall: float
    cpu: float
    ratio: float


def summarize(result: Result) -> dict[str, Summary]:
    """Compute the medians of each command."""
    summaries = {}
    for name, costs in result.costs.items():
        ratios = [peer.wall / own.wall for peer, own in zip(result.costs[PEER], costs, strict=True)]
        wall, cpu = median(cost.wall for cost in costs), median(cost.cpu for cost in costs)
        summaries[name] = Summary(wall, cpu, median(ratios))
    return summaries


def table(result: Result) -> str:
    """Format the medians, and how the results differ."""
    lines = ["| command | wall, s | CPU, s | faster than sentence-transformers |", "|---|--:|--:|--:|"]
    for name, summary in summarize(result).items():
        lines.append(f"| {name} | {summary.wall:.2f} | {summary.cpu:.2f} | {summary.ratio:.2f} |")
    lines.append(
        f"{result.same_ranking} of {result.queries} queries with the same ranking of all tales; "
        f"similarities differ by at most {result.difference:.0e}"
    )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write the figures if `--out` is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--source", type=Path, help="folder src of an earlier version")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), options.rounds, options.source)
    print(table(result))
    if options.out is not None:
        summaries = {name: asdict(summary) for name, summary in summarize(result).items()}
        record = {"machine": platform.processor() or platform.machine(), "summaries": summaries, **asdict(result)}
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if result.difference > LARGEST_DIFFERENCE:
        raise SystemExit(f"similarities differ by {result.difference:.0e}")


if __name__ == "__main__":
    main()
