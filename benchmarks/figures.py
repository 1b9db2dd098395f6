"""Every figure that README and docs show: measured by figures.yaml's commands, recorded in docs/figures.json.

    python benchmarks/figures.py --data FOLDER                 # what was never run, or was changed
    python benchmarks/figures.py --data FOLDER --only frozen   # this one again
    python benchmarks/figures.py --gpu gpu_check.json          # what release/gpu_check.sh wrote on another machine
    python benchmarks/figures.py --check                       # pages against the record; nothing runs

Every number with a decimal point on a page, .560 or 0.560, is a result, and so are speeds and p. It must be recorded or
published, or stand in an output that tests compare. A setting stands in backticks, in code, or in a block of text under
`<!-- settings -->`. Versions of software and sections of papers are neither.

A measurement has commands, the files that they read below FOLDER (the shared task's repository), and where their
results lie. `shown` says, for each page, the texts in which its figures stand there: `{path}` is a result,
`{path|style}` one in another style. Published figures come from the tables of the papers that `narrlit reproduce` uses.
They may stand where the paper is named: in its row of a table, else in the paragraph, or on its own page.
"""

import argparse
import csv
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import measure
import yaml

from narrlit.data.rows import file_digest
from narrlit.files import atomic_path
from narrlit.statistics.significance import p_text

ROOT = Path(__file__).resolve().parents[1]
SPECIFICATION = Path(__file__).with_name("figures.yaml")
RECORD = ROOT / "docs" / "figures.json"
TABLES = ROOT / "src" / "narrlit" / "published"
LIBRARIES = ("narrlit", "torch", "lightning", "transformers", "sentence-transformers", "scikit-learn")

MPNET = "all-mpnet-base-v2"
FIELD = re.compile(r"{([^{}|]+)(?:\|(\w+))?}")
FENCED = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$")
PAPERS = {"hits": "HITS", "ttda704": "ttda704", "nlp_fsdm": "NLP-FSDM", "mendel292": "Mendel292", "comhis": "Comhis"}
"""Names of the papers in a text that quotes their figures, by the file of their tables."""
BOARD = "docs/board.md"
PARAGRAPH = re.compile(r"(?ms)^```.*?^```$|^[^\n]+(?:\n[^\n]+)*")
NO_RUN = re.compile(r"<!-- no-run: .*?(tests/\w[\w/]*\.py)?[^/]*-->")
SETTINGS = "<!-- settings -->"
CODE = {"bash", "sh", "python", "py", "yaml"}
NUMBER = r"[+-]?(?:\d[\d,]*)?\.\d+"
RESULT = re.compile(
    rf"""(?<![\w.])(?<![A-Za-z]-){NUMBER}(?:e[+-]?\d+)?(?!\.?\d)    # a number with a decimal point: .560, 45.4
    | \bp\ [=<]\ \d+e-\d+                                          # p of a test
    | \b\d[\d,]*\ (?:stories|sentences|triples|queries|requests|tokens)/s
    | \b\d[\d,]*\ times\ (?:as\ \w+|the\ speed)
    """,
    re.VERBOSE,
)
"""Texts on a page that are results, after `plain`."""
SOFTWARE = "Apache|BERTopic|BY-SA|LanceDB|Llama|OpenVINO|PyLate|Python|Runtime|sentence-transformers|torch|transformers"
NO_RESULT = re.compile(
    rf"""\b(?:{SOFTWARE})\ \d*\.\d+                                          # a version
    | \b[Ss]ections?\ \d(?:\.\d)+(?:(?:,|\ and|\ to)\ \d(?:\.\d)+)* | \([1-9](?:\.\d){{1,2}}\)   # sections of a paper
    | `[^`\n]+`                                                           # settings, names and messages
    | \]\([^)\s]*\) | https?://\S+ | \barXiv:[\d.]+ | <!--.*?-->           # addresses, comments
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Measurement:
    """Commands, what they read, where their results are, and where these are shown.

    Attributes:
        name: of the measurement.
        about: what it measures.
        commands: lines of shell words; {data} is the folder of the task's data, {benchmarks} that of this script.
        data: files below the folder of data that the commands read.
        encoder: model that embeds.
        results: name of a result to its JSON file below the working folder; `stdout:N` is the last line that command N,
            from 0, prints: JSON, or a text.
        shown: texts by page, with results in braces.
        missing: texts by page that stand there as long as there is no record; without such, a record is needed.
    """

    name: str
    about: str
    commands: Sequence[str]
    data: Sequence[str]
    encoder: str
    results: Mapping[str, str]
    shown: Mapping[str, Sequence[str]]
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        """Paths of the results that are shown."""
        places = (place for texts in self.shown.values() for text in texts for place in FIELD.finditer(text))
        return sorted({place[1] for place in places})


def read_measurements() -> dict[str, Measurement]:
    """Read figures.yaml."""
    content = yaml.safe_load(SPECIFICATION.read_text(encoding="utf-8"))
    return {name: Measurement(name, **{"data": [], "encoder": "", **entry}) for name, entry in content.items()}


def read_record() -> dict[str, Any]:
    """Read docs/figures.json; an empty record where there is none."""
    if not RECORD.is_file():
        return {"figures": {}}
    content: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return content


def write_record(record: Mapping[str, Any]) -> None:
    """Write docs/figures.json, with the figures that the papers publish."""
    figures = dict(sorted(record["figures"].items()))
    content = {"figures": figures, "published": published_figures()}
    with atomic_path(RECORD) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def published_figures() -> dict[str, list[float]]:
    """Read the figures that the papers publish in tables and text, and the task's board, in percent."""
    figures: dict[str, set[float]] = {}
    for path in sorted(TABLES.glob("*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows = [row for table in content["tables"].values() for row in table.get("rows", {}).values()]
        in_tables = {figure for row in rows for figure in row["published"].values() if figure is not None}
        figures[path.stem] = in_tables | set(content.get("stated", []))
    with (TABLES / "board.csv").open(encoding="utf-8", newline="") as file:
        figures["board"] = {round(100 * float(row["accuracy"]), 2) for row in csv.DictReader(file)}
    return {name: sorted(values) for name, values in sorted(figures.items())}


def measured(
    measurement: Measurement,
    folders: Mapping[str, Path],
    work: Path,
    mpnet: Path | None,
    again: bool,
    keep: bool = False,
) -> dict[str, Any]:
    """Run a measurement's commands, unless the working folder has their results, and return its record.

    Args:
        measurement: what to run.
        folders: values of the names in braces.
        work: folder of the results.
        mpnet: folder of all-mpnet-base-v2, which commands find by that name in the working folder.
        again: run the commands even if their results are there.
        keep: do not remove earlier runs: fits with several seeds go on where they were interrupted.

    Raises:
        SystemExit: if a command fails.
    """
    finished = work / "finished.json"
    commands = list(measurement.commands)
    before = json.loads(finished.read_text(encoding="utf-8")) if finished.is_file() else {}
    if again or before.get("commands") != commands:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        if mpnet is not None and not (work / MPNET).exists():
            (work / MPNET).symlink_to(mpnet.resolve())
        before = {"commands": commands} | run_all(measurement, folders, work)
        finished.write_text(json.dumps(before), encoding="utf-8")
    results = {name: result_of(place, before["printed"], work) for name, place in measurement.results.items()}
    about = {name: value for name, value in before.items() if name != "printed"}
    values = {path: value_at(results, path) for path in measurement.paths}
    return {"about": measurement.about, **about, "encoder": measurement.encoder, "values": values}


def run_all(measurement: Measurement, folders: Mapping[str, Path], work: Path) -> dict[str, Any]:
    """Run the commands of a measurement; return what they print, and what their figures depend on."""
    places = {name: str(folder) for name, folder in folders.items()}
    start, running = time.monotonic(), commit()
    printed = [run(command.format(**places), work) for command in measurement.commands]
    return {
        "printed": printed,
        "data": {name: file_digest(folders["data"] / name) for name in measurement.data},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "commit": running,
        "processor": measure.machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(time.monotonic() - start),
    }


def commit() -> str:
    """Return the short hash of the commit that runs, with "+changes" if a file but the record differs from it."""
    git = ["git", "-C", str(ROOT)]
    short = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False)
    if short.returncode:
        return "unknown: no repository"
    changes = [*git, "status", "--porcelain", "--", ".", f":!{RECORD.relative_to(ROOT).as_posix()}"]
    changed = subprocess.run(changes, capture_output=True, text=True, check=True).stdout.strip()
    return short.stdout.strip() + ("+changes" if changed else "")


def from_gpu(path: Path, measurement: Measurement) -> dict[str, Any]:
    """Return the record of a check on a GPU.

    Args:
        path: file that release/gpu_check.sh wrote.
        measurement: the entry of figures.yaml.

    Raises:
        SystemExit: if the file is of another kind, or of a `--tiny` run, which measures nothing.
    """
    try:
        checked = json.loads(path.read_text(encoding="utf-8"))
        machine, parts = checked["machine"], checked["parts"]
        processor = f"{machine['gpu']}, {machine['memory']}, driver {machine['driver']}; {machine['processor']}"
        values = {place: value_at({"check": checked}, place) for place in measurement.paths}
        entry = {name: checked[name] for name in ("versions", "commit", "date", "seconds")}
        statuses = {name: part["status"] for name, part in parts.items()}
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"{path}: not a file that release/gpu_check.sh wrote on a GPU: {error}")
    if checked.get("tiny"):
        sys.exit(f"{path}: written by --tiny, which measures nothing")
    described = {"about": measurement.about, "commands": list(measurement.commands), "encoder": measurement.encoder}
    return {**described, "data": {}, **entry, "processor": processor, "parts": statuses, "values": values}


def result_of(place: str, printed: Sequence[str], work: Path) -> Any:
    """Read a result: a JSON file, or the last line that a command prints (`stdout:N`), as JSON or as it is."""
    number = place.removeprefix("stdout:")
    if number == place:
        return by_name(json.loads((work / place).read_text(encoding="utf-8")))
    line = printed[int(number)].splitlines()[-1]
    try:
        return by_name(json.loads(line))
    except json.JSONDecodeError:
        return line


def run(command: str, work: Path) -> str:
    """Run a command in a folder and return what it prints."""
    words = shlex.split(command)
    program = [sys.executable, "-m", "narrlit"] if words[0] == "narrlit" else [sys.executable]
    print(f"$ {command}", flush=True)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*program, *words[1:]], cwd=work, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    (work / "printed.txt").open("a", encoding="utf-8").write(f"$ {command}\n{done.stdout}")
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}; {work / 'printed.txt'} has its output")
    return done.stdout


def by_name(value: Any) -> Any:
    """Turn lists of entries into mappings by name or number, so that a path can name one.

    Figures and differences of a result are named by their system, the system it is compared with, subset (with fold and
    seed) and metric.

    >>> by_name([{"system": "minilm", "subset": "all", "metric": "accuracy", "value": 0.5, "seed": 1}])
    {'minilm': {'all, seed 1': {'accuracy': {'value': 0.5}}}}
    """
    if isinstance(value, dict):
        if {"figures", "differences"} <= value.keys():
            value = {**value, "figures": with_differences(value["figures"], value["differences"])}
        return {name: by_name(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        if all({"system", "subset", "metric"} <= entry.keys() for entry in value):
            return rows_by_name(value)
        for key in ("system", "model", "name"):
            if all(key in entry for entry in value):
                return {entry[key]: by_name(entry) for entry in value}
        return {str(number): by_name(entry) for number, entry in enumerate(value)}
    return value


def with_differences(figures: Sequence[Mapping[str, Any]], differences: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Add difference and p to the figures that are compared with another one."""
    keys = ("system", "subset", "metric", "fold", "seed")
    compared = {tuple(row.get(key) for key in keys): row for row in reversed(differences)}
    rows = []
    for figure in figures:
        row = compared.get(tuple(figure.get(key) for key in keys))
        found = {name: row[name] for name in ("p", "p_adjusted", "lost", "won") if name in row} if row else {}
        rows.append({**figure, **found, **({"difference": row["value"]} if row else {})})
    return rows


def rows_by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Turn the rows of a result into nested mappings."""
    named: dict[str, Any] = {}
    for row in rows:
        subset = ", ".join([row["subset"], *(f"{key} {row[key]}" for key in ("fold", "seed") if key in row)])
        names = [row["system"], *([row["against"]] if "against" in row else []), subset]
        inner = named
        for name in names:
            inner = inner.setdefault(name, {})
        identifying = ("system", "against", "subset", "metric", "fold", "seed")
        inner[row["metric"]] = {column: value for column, value in row.items() if column not in identifying}
    return named


def value_at(values: Any, path: str) -> Any:
    """Find the result at a path of names with slashes between; of a figure its value, interval, n and p."""
    rest = path
    while rest:
        if isinstance(values, list):
            values = dict(zip(map(str, range(len(values))), values, strict=True))
        names = [name for name in values if f"{rest}/".startswith(f"{name}/")]
        if not names:
            raise SystemExit(f"{path}: there is no {rest!r}; there are {', '.join(values)}")
        name = max(names, key=len)  # names of systems may contain slashes
        values, rest = values[name], rest[len(name) + 1 :]
    if isinstance(values, dict):
        kept = (
            *("value", "low", "high", "n", "p", "p_adjusted", "lost", "won"),
            *("correct", "accuracy", "mean", "interval", "difference"),
        )
        return {name: values[name] for name in kept if name in values and not isinstance(values[name], dict)}
    return values


def shown_texts(measurement: Measurement, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Fill the results into the texts of each page."""

    def fill(field: re.Match[str]) -> str:
        return formatted(values[field[1]], field[2])

    return {page: [FIELD.sub(fill, text) for text in texts] for page, texts in measurement.shown.items()}


def formatted(value: Any, style: str | None) -> str:
    """Format a result.

    >>> accuracy = {"value": 0.56, "low": 0.491, "high": 0.627, "n": 200}
    >>> formatted(accuracy, None), formatted(accuracy, "count"), formatted(accuracy, "short"), formatted(0.5, None)
    ('.560 [.491, .627]', '112 of 200', '.560', '.500')
    >>> formatted({**accuracy, "p": 0.031}, "p"), formatted(1.426, "ratio"), formatted(0.61, "percent")
    ('p = .031', '1.4', '61')
    """
    if style is not None:
        return STYLES[style](value)
    if isinstance(value, str):
        return value
    return bare(accuracy_text(value) if isinstance(value, dict) else f"{value:.3f}")


def accuracy_text(value: Mapping[str, Any]) -> str:
    """Format an accuracy, or another mean, with its interval."""
    return f"{center(value):.3f} [{ends(value)[0]:.3f}, {ends(value)[1]:.3f}]"


def center(value: Any) -> float:
    """Return a number, or that of a figure, by its name in a result or in the output of a benchmark."""
    if not isinstance(value, Mapping):
        return float(value)
    name = next(name for name in ("value", "accuracy", "mean", "difference") if name in value)
    return float(value[name])


def ends(value: Any) -> Sequence[float]:
    """Return both ends of an interval."""
    if not isinstance(value, Mapping):
        return list(value)
    return value["interval"] if "interval" in value else (value["low"], value["high"])


def count_text(value: Mapping[str, Any]) -> str:
    """Format the number of right answers."""
    return f"{round(center(value) * value['n'])} of {value['n']}"


def bare(text: str) -> str:
    """Leave the zero before a decimal point out, as the pages do for results."""
    return re.sub(r"\b0\.", ".", text).replace("-", "\u2212")


def p_of(value: Any) -> str:
    """Format the p of a paired test."""
    return bare(p_text(value["p"] if isinstance(value, dict) else value))


def significant(value: float) -> str:
    """Format a speed with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


STYLES: dict[str, Callable[[Any], str]] = {
    "short": lambda value: formatted(value, None).partition(" ")[0],
    "count": count_text,
    "n": lambda value: f"{value['n']:,}",
    "printed": lambda value: f"{accuracy_text(value)}, n = {value['n']}",
    "plus": lambda value: bare(f"{value:+.3f}"),
    "change": lambda value: bare(f"{value.get('difference', center(value)):+.3f}"),
    "lost": lambda value: f"{value['lost']} lost, {value['won']} won, {p_text(value['p'])}",
    "p": p_of,
    "test": lambda value: f"{formatted(value, 'short')} ({p_of(value)})",
    "zero": lambda value: f"{center(value):.3f}",
    "ends": lambda value: "[{:.3f}, {:.3f}]".format(*ends(value)),
    "signed": lambda value: f"{center(value):+.3f}",
    "signed_ends": lambda value: "[{:+.3f}, {:+.3f}]".format(*ends(value)),
    "tenths": lambda value: f"{100 * value:.1f}",
    "percent": lambda value: f"{100 * value:.0f}",
    "ratio": lambda value: f"{value:.1f}",
    "ratio2": lambda value: f"{value:.2f}",
    "percent2": lambda value: f"{100 * value:.2f}",
    "power": lambda value: f"{value:.0e}",
    "megabytes": lambda value: f"{value / 1e6:,.0f}",
    "integer": lambda value: f"{value:,.0f}",
    "significant": significant,
}
"""Functions that format a result, by the name of the style."""


def check() -> list[str]:
    """Compare the pages with the record.

    Returns:
        A line for each measurement without a record, each recorded figure that its page does not show, and each result
        on a page that nothing recorded.
    """
    faults, record = [], read_record()
    shown: dict[str, list[str]] = {}
    for name, measurement in read_measurements().items():
        entry = record["figures"].get(name)
        if entry is None and measurement.missing:
            for page, texts in measurement.missing.items():
                shown.setdefault(page, []).extend(texts)
            continue
        if entry is None or not is_record_of(entry, measurement):
            faults.append(f"{name}: not recorded as figures.yaml has it; run benchmarks/figures.py --only {name}")
            continue
        for page, texts in shown_texts(measurement, entry["values"]).items():
            shown.setdefault(page, []).extend(texts)
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        text, expected = plain(path.read_text(encoding="utf-8")), [plain(wanted) for wanted in shown.get(name, [])]
        faults += [f"{name}: does not show {wanted!r}" for wanted in expected if not wrapped(wanted).search(text)]
        results = unrecorded(name, text, expected, record)
        faults += [f"{name}:{line}: {result} is not recorded" for line, result in results]
    return faults


def is_record_of(entry: Mapping[str, Any], measurement: Measurement) -> bool:
    """Return whether a record is of the measurement's commands and has the results that it shows."""
    return entry["commands"] == list(measurement.commands) and set(entry["values"]) == set(measurement.paths)


def pages() -> list[Path]:
    """List README and the pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def plain(text: str) -> str:
    """Write numbers in one form: no zero before the decimal point, and a hyphen for minus.

    >>> plain("0.560 [0.49, 0.63], \u22120.02, 10.5, 127.0.0.1")
    '.560 [.49, .63], -.02, 10.5, 127.0.0.1'
    """
    return re.sub(r"(?<![\w.,])0(?=\.\d)", "", text.replace("\u2212", "-"))


def unrecorded(page: str, text: str, shown: Sequence[str], record: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Find results in a page's prose, tables and unproven outputs that are neither recorded nor published.

    Args:
        page: name of the page.
        text: of the page, plain.
        shown: texts with recorded results on this page, plain.
        record: with the published figures.

    Returns:
        Lines, from 1, and results.
    """
    text = without_proven_blocks(text)
    for wanted in sorted(shown, key=len, reverse=True):
        text = wrapped(wanted).sub(lambda found: blank(found[0]), text)
    text = NO_RESULT.sub(lambda found: blank(found[0]), text)
    for paragraph in PARAGRAPH.finditer(text):
        start = text.count("\n", 0, paragraph.start()) + 1
        named = papers_in(paragraph[0]) | ({Path(page).stem.replace("-", "_")} & set(PAPERS))
        for number, line in enumerate(paragraph[0].splitlines(), start):
            papers = (papers_in(line) if line.startswith("|") else set()) or named
            known = published_in(record, {"board"} if page == BOARD else papers)
            yield from ((number, found[0]) for found in RESULT.finditer(line) if not is_published(found[0], known))


def papers_in(text: str) -> set[str]:
    """Return the papers that a text names, by the files of their tables."""
    return {name for name, title in PAPERS.items() if title.lower() in text.lower()}


def published_in(record: Mapping[str, Any], names: set[str]) -> set[float]:
    """Return the published figures of some papers."""
    published = record.get("published", {})
    return {figure for name in names for figure in published.get(name, ())}


def is_published(result: str, known: set[float]) -> bool:
    """Return whether a result is a published figure, with its digits and without a sign."""
    return result[0] not in "+-" and bool(re.fullmatch(NUMBER, result)) and float(result.replace(",", "")) in known


def without_proven_blocks(text: str) -> str:
    """Blank code, settings, and the outputs that tests compare with what a block prints."""
    before: re.Match[str] | None = None

    def blanked(block: re.Match[str]) -> str:
        nonlocal before
        code, before = before, block
        is_settings = marker_of(text, block) == SETTINGS
        is_output = code is not None and text[code.end() : block.start()] == "\n\n" and is_compared(text, code)
        return blank(block[0]) if block[2] in CODE or is_settings or is_output else block[0]

    return FENCED.sub(blanked, text)


def is_compared(text: str, code: re.Match[str]) -> bool:
    """Return whether tests compare the output of a block: tests/test_docs.py, or those that its marker names."""
    marker = NO_RUN.fullmatch(marker_of(text, code))
    if marker is not None:
        return marker[1] is not None and (ROOT / marker[1]).is_file()
    is_fit = "narrlit fit" in code[3] or "runs/" in code[3]  # the tests make fits short, and compare nothing
    return code[2] == "python" or (code[2] == "bash" and not is_fit)


def marker_of(text: str, block: re.Match[str]) -> str:
    """Return the line above a block."""
    return text[: block.start()].rstrip().rpartition("\n")[2]


def wrapped(text: str) -> re.Pattern[str]:
    """Return a pattern of a text whose lines may break at any of its spaces; its numbers are no parts of others."""
    words = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(rf"(?<![\w.+-]){words}(?!\.?\d)" if re.match(r"[\w.]", text) else rf"{words}(?!\.?\d)")


def blank(text: str) -> str:
    """Return as many empty lines as a text has line breaks."""
    return "\n" * text.count("\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or check."""
    parser = argparse.ArgumentParser(description="measure, record and check the figures of README and docs")
    parser.add_argument("--data", type=Path, help="folder of the task's data: dev/, test/, synthetic/, ...")
    parser.add_argument("--mpnet", type=Path, help="folder of all-mpnet-base-v2")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measurements to run, also if they are recorded")
    parser.add_argument("--work", type=Path, default=Path("runs/figures"), help="folder of the runs (runs/figures)")
    parser.add_argument("--gpu", type=Path, metavar="FILE", help="record what release/gpu_check.sh wrote")
    parser.add_argument("--keep", action="store_true", help="keep earlier runs in --work: fits with seeds resume")
    parser.add_argument("--check", action="store_true", help="compare README and docs with the record")
    parser.add_argument("--list", action="store_true", help="list the measurements")
    chosen = parser.parse_args(arguments)
    measurements = read_measurements()
    if chosen.list:
        for name, measurement in measurements.items():
            print(f"{name:<20} {measurement.about}")
        return
    if chosen.check:
        faults = check()
        print("\n".join(faults) or f"every figure of {len(pages())} pages is recorded or published")
        sys.exit(bool(faults))
    if chosen.gpu:
        record = read_record()
        record["figures"]["gpu"] = from_gpu(chosen.gpu, measurements["gpu"])
        write_record(record)
        return
    del measurements["gpu"]  # another machine runs it
    unknown = set(chosen.only or ()) - set(measurements)
    if unknown:
        parser.error(f"no measurement is named {min(unknown)}: choose from {', '.join(measurements)}")
    if chosen.data is None:
        parser.error("--data FOLDER is needed: the shared task's data")
    record = read_record()
    folders = {"data": chosen.data.resolve(), "benchmarks": Path(__file__).resolve().parent}
    for name, measurement in measurements.items():
        entry = record["figures"].get(name, {})
        recorded = entry.get("commands") == list(measurement.commands) and set(entry["values"]) == set(
            measurement.paths
        )
        if (chosen.only and name not in chosen.only) or (recorded and not chosen.only):
            continue
        if chosen.mpnet is None and any(MPNET in command for command in measurement.commands):
            print(f"{name}: left out, since it needs --mpnet FOLDER")
            continue
        entry = measured(
            measurement, folders, chosen.work.resolve() / name, chosen.mpnet, bool(chosen.only), chosen.keep
        )
        record = read_record()  # two runs may measure different figures
        record["figures"][name] = entry
        write_record(record)
        print(f"{name}: {entry['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
