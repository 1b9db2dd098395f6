"""Every benchmark in one run: a table as it grows, and a JSON file with it and every round's figures.

Both sides of a row work on the same texts in the same process, in interleaved rounds; a ratio is the median of the
rounds' ratios. Time is wall time, so the machine must be quiet; with one thread CPU time, on a GPU that of CUDA events.
"""

import argparse
import json
import logging
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import frozen
import inference
import large_model
import measure
import runtimes
import torch
import training
from measure import Row, Setting

from narrlit.files import atomic_path, check_writable
from narrlit.markdown import markdown_table

PARTS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "embedding": inference.embedding,
    "exported": runtimes.embedding,
    "ranking": training.ranking,
    "passages": training.matching,
    "cached": training.cached,
    "distillation": training.distillation,
    "frozen": frozen.epochs,
    "search": inference.queries,
    "startup": inference.startup,
    "memory": training.memory,
    "memory-1024": training.largest,
    "large-model": large_model.fits,
}
ON_REQUEST = ("memory-1024", "large-model")
"""Parts that run only if they are named."""
HEADER = ["job", "data", "numbers", "peer", "ours", "ratio", "range", "aim", "limit"]
WIDTHS = [42, 14, 7, 15, 15, 6, 12, 4, 5]
LIBRARIES = ("torch", "lightning", "transformers", "sentence-transformers")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="narrlit's speed and memory against sentence-transformers'")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all but {' and '.join(ON_REQUEST)}"
    )
    parser.add_argument("--stories", type=Path, help="file of stories or triples; default: StoryWorld")
    parser.add_argument("--rounds", type=int, default=3, help="medians are over so many rounds (default 3)")
    parser.add_argument("--threads", type=int, default=2, help="of torch, on both sides (default 2)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", default="runs/bench.json", help="JSON file to write (default runs/bench.json)")
    parser.add_argument("--quick", action="store_true", help="tiny runs that test the script and measure nothing")
    chosen = parser.parse_args(arguments)
    names = chosen.parts or [name for name in PARTS if name not in ON_REQUEST]
    if unknown := set(names) - set(PARTS):
        parser.error(f"no part is named {min(unknown)}: choose from {', '.join(PARTS)}")
    check_writable(chosen.out)
    if chosen.device == "cuda":
        os.environ["TOKENIZERS_PARALLELISM"] = "true"  # one core is too slow for a GPU, on both sides
    torch.set_num_threads(chosen.threads)
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    rounds = 1 if chosen.quick else chosen.rounds
    setting = Setting(rounds, chosen.threads, chosen.device, chosen.stories, chosen.quick)
    limits = measure.gemm_limits(setting.device, 64 if chosen.quick else 2048 * setting.scale)
    about = {
        "machine": measure.machine() if setting.device == "cpu" else torch.cuda.get_device_name(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "threads": setting.threads,
        "rounds": rounds,
        "gemm_flops": limits,
        "texts": {
            texts.name: texts.describe() for texts in setting.texts(12 if setting.quick else 128 * setting.scale)
        },
    }
    print(f"{about['machine']}; {setting.threads} threads, medians of {rounds} rounds; {about['versions']}")
    print("GEMM limit: " + ", ".join(f"{name} {rate / 1e9:,.0f} GFLOP/s" for name, rate in limits.items()))
    print(_line(HEADER) + "  note", flush=True)
    rows: list[Row] = []
    for name in names:
        for row in PARTS[name](setting):
            rows.append(row)
            print(_line(row.cells(limits)) + f"  {row.note}", flush=True)
            _write(Path(chosen.out), about, rows, limits)  # what is measured is there if the run is stopped
    if chosen.quick:
        print("a quick run tests the script: its figures mean nothing")
    if wrong := [f"{row.job}, {row.data}, {row.precision}: {row.wrong}" for row in rows if row.wrong]:
        sys.exit("results differ by more than allowed:\n" + "\n".join(wrong))


def _write(out: Path, about: Mapping[str, Any], rows: Sequence[Row], limits: Mapping[str, float]) -> None:
    """Write the rows measured so far, with their table."""
    entries = [row.record(limits) for row in rows]
    names = [f"{row.job}, {row.data}, {row.precision}" for row in rows]
    ratios = {name: entry["ratio"] for name, entry in zip(names, entries, strict=True) if "ratio" in entry}
    results = markdown_table("", [dict(zip(HEADER, row.cells(limits), strict=True)) for row in rows])
    record = {**about, "rows": entries, "ratios": ratios, "results": results}
    with atomic_path(out) as path:
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _line(cells: Sequence[str]) -> str:
    """Columns aligned, words to the left and numbers to the right."""
    pairs = zip(cells, WIDTHS, strict=True)
    return "  ".join(cell.ljust(w) if i < 3 else cell.rjust(w) for i, (cell, w) in enumerate(pairs))


if __name__ == "__main__":
    main()
