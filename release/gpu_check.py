"""Run each part of the check on a GPU within its time, and write what finished: see gpu_check.sh."""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import figures
import measure

from narrlit.files import atomic_path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 525
"""Time of the whole, from the start of gpu_check.sh: nine minutes, less the end of a part that is stopped."""
PATIENCE = 10
"""Times as long for a tiny run: it measures nothing, and the machine may be busy."""
LIBRARIES = (*figures.LIBRARIES, "peft", "bitsandbytes")
QUICKSTART = "-m narrlit fit --config configs/quickstart.yaml --trainer.max_epochs 1"
HITS = "-m narrlit fit --config configs/quickstart_hits.yaml --trainer.max_epochs 2"
FEW = "--config configs/backbones/tiny.yaml --data.train 16 --data.validation 8 --data.test 4"
ON_CPU = "--trainer.accelerator cpu --trainer.precision 32-true"


@dataclass(frozen=True)
class Part:
    """One part of the check.

    Attributes:
        seconds: most time that it gets.
        command: words after `python`; {folder} is that of the results.
        tiny: the same with tiny sizes on a CPU.
    """

    seconds: int
    command: str
    tiny: str


def bench(part: str, seconds: int) -> Part:
    """Return a part of the benchmark."""
    command = f"benchmarks/bench.py {part} --out {{folder}}/{part}.json"
    return Part(seconds, f"{command} --device cuda", f"{command} --quick")


def fit(command: str, overlay: str) -> Part:
    """Return a short fit of one process; its run.json is in {folder}/NAME/`overlay`, with the name of its config."""
    place = f"--trainer.logger.init_args.save_dir {{folder}} --trainer.logger.init_args.version {overlay}"
    command = f"{command} --config configs/hardware/{overlay}.yaml --trainer.devices 1 {place}"
    return Part(50, command, f"{command} {FEW} {ON_CPU}")


TESTS = "-m pytest -q -p no:cacheprovider --junitxml {folder}/tests.xml tests/test_gpu.py"
PARTS = {
    "tests": Part(120, f"{TESTS} tests/models/test_packing.py", TESTS),
    "embedding": bench("embedding", 60),
    "ranking": bench("ranking", 90),
    "distillation": bench("distillation", 60),
    "large-model": bench("large-model", 180),
    "ddp": fit(QUICKSTART, "ddp"),
    "fsdp": fit(QUICKSTART, "fsdp"),
    "hits": fit(HITS, "gpu"),
}
"""Parts in order; what has no time left is not run."""
RUNS = {"ddp": "quickstart/ddp", "fsdp": "quickstart/fsdp", "hits": "quickstart_hits/gpu"}
"""Folders of the fits' runs."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts, write the file after each, and print its table."""
    parser = argparse.ArgumentParser(description="what narrlit does on one NVIDIA GPU, within nine minutes")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu_check.json"), help="JSON file to write")
    parser.add_argument("--tiny", action="store_true", help="every part on the CPU with tiny sizes: measures nothing")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="run only these")
    parser.add_argument("--began", type=float, default=time.time(), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    out = chosen.out.resolve()
    folder = out.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier check wrote is not of this one
    folder.mkdir(parents=True)
    machine = {"gpu": "none", "driver": "none"} if chosen.tiny else gpu()
    record: dict[str, Any] = {
        "tiny": chosen.tiny,
        "machine": {**machine, "processor": measure.machine()},
        "versions": {"python": platform.python_version(), **versions()},
        "commit": os.environ.get("COMMIT") or figures.commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "parts": {name: {"status": "not run"} for name in PARTS},
    }
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "" if chosen.tiny else "0"}
    environment["NARRLIT_TEST_GPU"] = "" if chosen.tiny else "1"
    patience = PATIENCE if chosen.tiny else 1
    for name in chosen.parts:
        left = patience * SECONDS - (time.time() - chosen.began)
        if left > 5:
            part = PARTS[name]
            words = (part.tiny if chosen.tiny else part.command).format(folder=folder).split()
            print(f"{name}: python {' '.join(words)}", flush=True)
            log = folder / f"{name}.log"
            record["parts"][name] = run(words, log, min(patience * part.seconds, left), environment)
            record["parts"][name]["rows"] = rows(name, folder)
            print(f"{name}: {record['parts'][name]['status']}; see {log}", flush=True)
        record["seconds"] = round(time.time() - chosen.began)
        record["table"] = table(record["parts"])
        with atomic_path(out) as temporary:
            temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\n{record['table']}\n\n{out}: {record['seconds']} s")
    sys.exit(any(part["status"] == "failed" for part in record["parts"].values()))


def run(words: Sequence[str], log: Path, seconds: float, environment: dict[str, str]) -> dict[str, Any]:
    """Run Python on a part, in a process group that is stopped when its time is over.

    Returns:
        The status, finished, failed or out of time, and the seconds.
    """
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = "failed" if process.wait(seconds) else "finished"
        except subprocess.TimeoutExpired:
            status = "out of time"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return {"status": status, "seconds": round(time.monotonic() - start, 1)}


def rows(name: str, folder: Path) -> list[dict[str, str]]:
    """Return what a part measured as rows of the table: of a benchmark also if its time was over."""
    if name == "tests" and (folder / "tests.xml").is_file():
        suite = ElementTree.parse(folder / "tests.xml").getroot()[0].attrib
        failed, skipped = int(suite["errors"]) + int(suite["failures"]), int(suite["skipped"])
        passed = int(suite["tests"]) - failed - skipped
        return [{"job": "tests of the GPU", "narrlit": f"{passed} passed, {failed} failed, {skipped} skipped"}]
    if (folder / f"{name}.json").is_file():
        return [bench_row(entry) for entry in json.loads((folder / f"{name}.json").read_text("utf-8"))["rows"]]
    run_file = folder / RUNS[name] / "run.json" if name in RUNS else folder
    if run_file.is_file():
        best = json.loads(run_file.read_text("utf-8"))["best"]
        return [{"job": f"{name}, a fit in one process", "narrlit": f"{best['correct']} of {best['n']} triples right"}]
    return []


def bench_row(entry: dict[str, Any]) -> dict[str, str]:
    """Return a row of the benchmark, each side as its median."""

    def shown(costs: list[float]) -> str:
        if not costs:
            return ""
        middle = sorted(costs)[len(costs) // 2]
        return f"{entry['count'] / middle if entry['count'] else middle:,.3g} {entry['unit']}"

    job = ", ".join(text for text in (entry["job"], entry["data"], entry["precision"]) if text)
    ratio = f"{entry['ratio']:.2f}" if "ratio" in entry else ""
    note = re.sub(r"; cosines differ by .*", "", entry["note"])
    job = f"{job} ({note})" if note else job
    return {"job": job, "peer": shown(entry["peer"]), "narrlit": shown(entry["ours"]), "ratio": ratio}


def table(parts: dict[str, dict[str, Any]]) -> str:
    """Write what the parts measured as one Markdown table, with a row for each part that did not finish."""
    lines = ["| job | sentence-transformers | narrlit | ratio |", "|---|--:|--:|--:|"]
    for name, part in parts.items():
        for row in part.get("rows", []):
            lines.append("| " + " | ".join(row.get(key, "") for key in ("job", "peer", "narrlit", "ratio")) + " |")
        if part["status"] != "finished":
            lines.append(f"| {name} | | {part['status']} | |")
    return "\n".join(lines)


def gpu() -> dict[str, Any]:
    """Return name, memory and driver of the GPU.

    Raises:
        SystemExit: if there is none.
    """
    words = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        line = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        sys.exit("nvidia-smi names no GPU: the check needs one, or --tiny")
    name, driver, memory = (text.strip() for text in line.split(","))
    return {"gpu": name, "driver": driver, "memory": memory}


def versions() -> dict[str, str]:
    """Return releases of the libraries; `none` of those that are not installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


if __name__ == "__main__":
    main()
