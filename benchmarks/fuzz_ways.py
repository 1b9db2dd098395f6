"""Ways of breaking a command: its files, their names, its options, and the system around it."""

import csv
import io
import json
import os
import shutil
import signal
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from narrlit.optional import require

DEEP = 5_000
"""Levels of nesting: more than Python's parsers can follow."""
HUGE = 300_000
"""Characters of a huge text: those of a short novel, whose explanation still ends within the limit of a run."""
HOSTILE = (
    "=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "$1 \\1 %s {} {0} %(x)s", "a\nb\r\nc", "\x1b[31mred\x1b[0m",
    "<script>alert(1)</script>", "../../x", "a\x00b", "\u202eabc", "\u2028", "é\u0301", "  ", "''\"`", "1e999", "None",
    "🦊" * 30, "a," * 50, "; rm -rf x", "\ufeff", "\ufffe", "NaN", "null", "-", "*", "?", "[a", "~", "#", "|",
)  # fmt: skip
NAMES = (
    "a b", "name\xe9", os.fsdecode(b"latin\xe9"), "a\nb", "=1+1", "$1", "a'b\"c", "[ab]", "a*", "#x", "%s{}", "a;b",
    "🦊", "n" * 240, "a\tb", "\x1b[2J", "-x", ".hidden", "a:b", "ends.",
)  # fmt: skip
NUMBERS = ("0", "-1", "1e309", "nan", "1e-400", "99999999999999999999", "1.5", "", "x", "٣", "0x10", " 1", "-0", "1_0")
WRONG: tuple[Any, ...] = (
    None, 3, -1, 0, 1.5, True, "", "x", [], {}, [[]], [None], {"a": {"b": []}}, 10**30, "x" * 100_000, ["a", 1], "nan",
)  # fmt: skip


@dataclass
class Launch:
    """How the command's process is started, and what happens to it.

    Attributes:
        closed: numbers of standard streams that are closed.
        stdout: file that replaces standard output; "pipe" is one whose reader has gone.
        encoding: of standard output and error.
        unprivileged: without root's right to read and write what permissions deny.
        file_limit: bytes that a file may have at most, as on a full disk.
        disk: bytes of a small disk that the folder lies on.
        kill: signal that is sent to the process.
        delay: seconds before that.
        environment: variables that are set, or removed (None).
    """

    closed: tuple[int, ...] = ()
    stdout: str | None = None
    encoding: str = "utf-8"
    unprivileged: bool = False
    file_limit: int | None = None
    disk: int | None = None
    kill: int | None = None
    delay: float = 0.0
    environment: dict[str, str | None] = field(default_factory=dict)

    @property
    def shows_errors(self) -> bool:
        """What the process prints to standard error can be read."""
        return 2 not in self.closed and self.file_limit is None


@dataclass
class Case:
    """A command about to be run in a folder of its own; ways of breaking change it.

    Attributes:
        folder: the copy of the inputs.
        words: the command line.
        inputs: names of its inputs in the folder.
        chance: where all random choices come from.
        launch: how the process is started.
    """

    folder: Path
    words: list[str]
    inputs: list[str]
    chance: Random
    launch: Launch = field(default_factory=Launch)

    def target(self) -> Path | None:
        """Choose an input; None where the command has none."""
        return self.folder / self.chance.choice(self.inputs) if self.inputs else None

    def target_file(self) -> Path | None:
        """Choose an input that is a file, or a file inside one that is a folder."""
        target = self.target()
        if target is None or not target.is_dir():
            return target
        files = sorted(path for path in target.rglob("*") if path.is_file())
        return self.chance.choice(files) if files else target

    def rename(self, old: str, new: str) -> None:
        """Replace a name in the command line, also inside a list with commas."""
        parts = [[new if part == old else part for part in word.split(",")] for word in self.words]
        self.words = [",".join(part) for part in parts]


Way = Callable[[Case], None]
Content = Callable[[bytes, Random], bytes]


# Contents of files as bytes ------------------------------------------------------------------------------------------


def cut(content: bytes, chance: Random) -> bytes:
    """Cut a file at any byte."""
    return content[: chance.randrange(len(content))] if content else content


def flip_bits(content: bytes, chance: Random) -> bytes:
    """Flip one to twenty bits."""
    flipped = bytearray(content)
    for _ in range(chance.randint(1, 20) if content else 0):
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def insert(*pieces: bytes) -> Content:
    """Insert one of several pieces anywhere."""

    def change(content: bytes, chance: Random) -> bytes:
        place = chance.randint(0, len(content))
        return content[:place] + chance.choice(pieces) + content[place:]

    return change


def replace(*contents: bytes) -> Content:
    """Replace the whole file by one of several contents."""
    return lambda content, chance: chance.choice(contents)


def garbage(content: bytes, chance: Random) -> bytes:
    """Replace a file by random bytes."""
    return chance.randbytes(chance.randint(1, 5000))


def recode(content: bytes, chance: Random) -> bytes:
    """Write a text in another encoding."""
    encoding = chance.choice(["utf-16", "utf-32", "latin-1", "cp037", "utf-7", "shift_jis"])
    return content.decode("utf-8", "replace").encode(encoding, "replace")


def with_mark(content: bytes, chance: Random) -> bytes:
    """Put a byte order mark before the content."""
    return chance.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]) + content


def repeat(content: bytes, chance: Random) -> bytes:
    """Repeat the content until it is huge, or twice."""
    return content * chance.choice([2, max(2, HUGE // max(1, len(content)))])


def line_ends(content: bytes, chance: Random) -> bytes:
    """Replace the line ends."""
    return content.replace(b"\n", chance.choice([b"\r", b"\r\n", b"\n\n", b"", b"\x0b", b"\xe2\x80\xa8"]))


def in_bytes(change: Content) -> Way:
    """Apply a change of bytes to a file of an input, or to a member of one that is a zip archive."""

    def way(case: Case) -> None:
        path = case.target_file()
        if path is None or not path.is_file():
            return
        content = path.read_bytes()
        inside = zipfile.is_zipfile(path) and path.suffix != ".ckpt" and case.chance.random() < 0.5
        path.write_bytes(_in_member(content, change, case.chance) if inside else change(content, case.chance))

    return way


def _in_member(content: bytes, change: Content, chance: Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = chance.choice(sorted(members))
    members[name] = change(members[name], chance)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return written.getvalue()


# Values inside files -------------------------------------------------------------------------------------------------


def load(path: Path) -> Any:  # noqa: PLR0911 (a format each)
    """Read a file as plain data, by its suffix; raise ValueError where that can't be done."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    if suffix in (".yaml", ".yml"):
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    if suffix in (".csv", ".tsv", ".trec"):
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file, delimiter=_delimiter(suffix)))
    if suffix == ".npy":
        return np.load(path).tolist()
    if suffix == ".parquet":
        from pyarrow.parquet import read_table

        return read_table(path).to_pylist()
    if suffix == ".xlsx":
        book = require("openpyxl", "documents").load_workbook(path)
        return [list(row) for row in book.active.iter_rows(values_only=True)]
    if suffix == ".ckpt":
        import torch

        return torch.load(path, weights_only=True)
    if suffix == ".safetensors":
        content = path.read_bytes()
        return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    raise ValueError(f"{suffix} holds no values")


def dump(path: Path, value: Any) -> None:
    """Write plain data as `load` reads it; values that a format can't hold raise an exception of its library."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl" and isinstance(value, list):
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in value), encoding="utf-8")
    elif suffix in (".json", ".jsonl"):
        path.write_text(json.dumps(value, default=str), encoding="utf-8")
    elif suffix in (".yaml", ".yml"):
        path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    elif suffix in (".csv", ".tsv", ".trec"):
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            rows = value if isinstance(value, list) else [[value]]
            csv.writer(file, delimiter=_delimiter(suffix)).writerows(r if isinstance(r, list) else [r] for r in rows)
    elif suffix == ".npy":
        np.save(path, np.asarray(value))
    elif suffix == ".parquet":
        from pyarrow import Table
        from pyarrow.parquet import write_table

        write_table(Table.from_pylist(value), path)
    elif suffix == ".xlsx":
        book = require("openpyxl", "documents").Workbook()
        for row in value:
            book.active.append(row)
        book.save(path)
    elif suffix == ".ckpt":
        import torch

        torch.save(value, path)
    else:
        content = path.read_bytes()
        body = content[8 + int.from_bytes(content[:8], "little") :]
        header = json.dumps(value).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + body)


def _delimiter(suffix: str) -> str:
    return {".csv": ",", ".tsv": "\t"}.get(suffix, " ")


Change = Callable[[Any, Any, Random], None]
"""Changes what a container holds at a key, or an index."""


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List the containers and keys below a value, each a place to put another value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    places = [(value, key) for key in keys]
    for key in keys:
        places += _places(value[key])
    return places


def in_values(change: Change, also: Content) -> Way:
    """Apply a change to a value inside a file; `also` changes the bytes of a file without values."""

    def way(case: Case) -> None:
        path = case.target_file()
        if path is None or not path.is_file():
            return
        original = path.read_bytes()
        try:
            value = load(path)
            container, key = case.chance.choice(_places(value))
            change(container, key, case.chance)
            dump(path, value)
        except Exception:  # noqa: BLE001 (the format can't be read or can't hold this: its bytes are changed)
            path.write_bytes(also(original, case.chance))

    return way


def wrong_type(container: Any, key: Any, chance: Random) -> None:
    """Put a value of another type."""
    container[key] = chance.choice(WRONG)


def remove(container: Any, key: Any, chance: Random) -> None:
    """Remove a value."""
    del container[key]


def duplicate(container: Any, key: Any, chance: Random) -> None:
    """Put a value a second time, under a key that differs by case or space, or as another element."""
    if isinstance(container, list):
        container.insert(key, container[key])
    else:
        container[chance.choice([f"{key} ", str(key).upper(), f" {key}"])] = container[key]


def not_finite(container: Any, key: Any, chance: Random) -> None:
    """Put a number that is not finite, or that no float32 holds."""
    container[key] = chance.choice([float("nan"), float("inf"), float("-inf"), 1e300, 10**400])


def surrogate(container: Any, key: Any, chance: Random) -> None:
    """Put half of a surrogate pair into a text."""
    half = chance.choice(["\ud800", "\udfff", "\udce9"])
    container[key] = f"{container[key]}{half} x"


def hostile(container: Any, key: Any, chance: Random) -> None:
    """Put a text that means something elsewhere: a formula, a pattern, an escape, a path."""
    container[key] = chance.choice(HOSTILE)


def hostile_key(container: Any, key: Any, chance: Random) -> None:
    """Rename a field so."""
    name = chance.choice(HOSTILE)
    if isinstance(container, dict):
        container[name] = container.pop(key)
    else:
        container[key] = name


def huge(container: Any, key: Any, chance: Random) -> None:
    """Put a huge text, number or list."""
    container[key] = chance.choice(["x" * HUGE, "A king. " * (HUGE // 40), 10**400, [0] * 100_000, -(2**63) - 1])


def edge(container: Any, key: Any, chance: Random) -> None:
    """Put a number at an edge."""
    container[key] = chance.choice([0, -1, 1, 2**31, 2**63, 2**64, -(2**31), 1e-320, 1e308])


def deep(content: bytes, chance: Random) -> bytes:
    """Replace a file by deep nesting."""
    brackets = chance.choice([b"[", b'{"a":', b"- ", b"a: {", b"(", b"<a>", b"[[", b'[{"text": '])
    return brackets * chance.choice([DEEP, 100_000])


def doubled_key(content: bytes, chance: Random) -> bytes:
    """Write a field or a line twice."""
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    if lines[place].startswith(b"{"):
        lines[place] = b'{"text": "twice", "id": 1, "version": 0, "text": 2, ' + lines[place][1:]
    else:
        lines.insert(place, lines[place])
    return b"\n".join(lines)


# Files and their names -----------------------------------------------------------------------------------------------


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def missing(case: Case) -> None:
    """Remove an input, or a file inside one."""
    path = case.target_file() if case.chance.random() < 0.7 else case.target()
    if path is not None:
        _remove(path)


def other_kind(case: Case) -> None:
    """Put a folder, a link that leads nowhere, or a device in an input's place, or a file where a folder was."""
    path = case.target_file() if case.chance.random() < 0.5 else case.target()
    if path is None:
        return
    was_folder = path.is_dir()
    _remove(path)
    kind = case.chance.choice(["folder", "nowhere", "itself", "device", "file"])
    if kind == "folder" and not was_folder:
        path.mkdir()
    elif kind == "nowhere":
        path.symlink_to("nowhere")
    elif kind == "itself":
        path.symlink_to(path.name)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.write_text("x", encoding="utf-8")


def exchanged(case: Case) -> None:
    """Put the content of another file in a file's place."""
    path = case.target_file()
    others = sorted(p for p in case.folder.rglob("*") if p.is_file())
    if path is not None and path.is_file() and others:
        path.write_bytes(case.chance.choice(others).read_bytes())


def unreadable(case: Case) -> None:
    """Let nobody read an input or a file inside it."""
    path = case.target_file() if case.chance.random() < 0.7 else case.target()
    if path is not None:
        path.chmod(0)
    case.launch.unprivileged = True


def read_only(case: Case) -> None:
    """Let nobody write into the folder."""
    for path in (case.folder, *case.folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o555)
    case.launch.unprivileged = True


def strange_name(case: Case) -> None:
    """Give an input a name that is hard to write or to print."""
    path, name = case.target(), case.chance.choice(NAMES)
    if path is None:
        return
    new = path.with_name(name + path.suffix)
    old = str(path.relative_to(case.folder))
    path.rename(new)
    renamed = str(new.relative_to(case.folder))
    case.inputs[case.inputs.index(old)] = renamed
    case.rename(old, renamed)


def strange_output(case: Case) -> None:
    """Give the output such a name, or one that can't be written."""
    places = [place for place, word in enumerate(case.words) if word == "--out"]
    if not places:
        strange_name(case)
        return
    place = places[0] + 1
    suffix, chance = Path(case.words[place]).suffix, case.chance
    absurd = ["", "/", ".", "..", "/dev/null", "/proc/x", "no/such/folder/x" + suffix, "x" * 300 + suffix, "x.unknown"]
    names = [f"{name}{suffix}" for name in NAMES] + [f"{name}/x{suffix}" for name in NAMES]
    case.words[place] = chance.choice(chance.choice([absurd, names, names, case.inputs or absurd]))


# Options -------------------------------------------------------------------------------------------------------------


def wrong_option(case: Case) -> None:
    """Put another value behind an option, drop a word, or add one."""
    values = [i for i, (a, b) in enumerate(zip(case.words, case.words[1:], strict=False), 1) if a[:2] == "--" != b[:2]]
    kind = case.chance.choice(["value", "value", "drop", "unknown", "twice", "empty"])
    if kind == "value" and values:
        case.words[case.chance.choice(values)] = case.chance.choice([*NUMBERS, *HOSTILE, *NAMES])
    elif kind == "drop":
        del case.words[case.chance.randrange(1, len(case.words))]
    elif kind == "unknown":
        case.words.insert(case.chance.randint(1, len(case.words)), case.chance.choice(["--nothing", "x", "--", "-"]))
    elif kind == "twice" and values:
        place = case.chance.choice(values)
        case.words += case.words[place - 1 : place + 1]
    else:
        case.words[case.chance.randrange(1, len(case.words)) if case.words[1:] else 0] = ""
    case.words = [word.replace("\0", "") for word in case.words]  # no process can be given a NUL


EDGE_OPTIONS: dict[str, tuple[str, ...]] = {
    "embed": ("--max-length", "--part-rows", "--workers", "--postprocess", "--fusion", "--text-column"),
    "evaluate": ("--max-length", "--gamma", "--tau", "--windows"),
    "compare": ("--gamma", "--tau", "--windows", "--by", "--max-length"),
    "data check": ("--threshold",),
    "submit": ("--gamma", "--tau", "--windows", "--max-length"),
    "fuse": ("--grid", "--folds", "--fold-seed"),
    "data storyworld": ("--train", "--validation", "--seed", "--negatives-per-aspect", "--false-negatives"),
    "data mine": ("--per-example", "--margin"),
    "search": ("--k", "--where", "--max-length"),
    "map": ("--k", "--group"),
    "pairs": ("--k", "--threshold"),
    "data diversity": ("--cosine", "--jaccard"),
    "retrieval": ("--same", "--control", "--measure"),
    "judge": ("--max-tokens", "--temperature", "--concurrency", "--retries", "--timeout", "--seed"),
    "generate": ("--max-tokens", "--temperature", "--candidates", "--seed", "--timeout"),
    "crossval": ("--folds", "--fold-seed", "--seeds"),
    "tune": ("--trials", "--folds", "--epochs-before-pruning", "--trials-before-pruning"),
    "fit": ("--trainer.max_epochs", "--seed_everything", "--trainer.devices", "--trainer.gradient_clip_val"),
    "report": ("--by", "--max-length"),
    "reproduce": ("--seeds", "--table"),
}
"""Options with numbers or expressions, by command."""


def edge_option(case: Case) -> None:
    """Put a number at the edge, or none at all, behind an option that takes one."""
    options = EDGE_OPTIONS.get(" ".join(case.words[: 2 if case.words[0] == "data" else 1]))
    if not options:
        wrong_option(case)
        return
    option, value = case.chance.choice(options), case.chance.choice([*NUMBERS, "1", "2", "1e-9", "0.5"])
    if option in case.words:
        case.words[case.words.index(option) + 1] = value
    else:
        case.words += [option, value]


# The system around a command -----------------------------------------------------------------------------------------


def closed_stream(case: Case) -> None:
    """Close standard input, output or error, or several."""
    case.launch.closed = case.chance.choice([(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])


def broken_pipe(case: Case) -> None:
    """Let the reader of standard output be gone, or its disk be full."""
    case.launch.stdout = case.chance.choice(["pipe", "/dev/full"])


def closed_input(case: Case) -> None:
    """Read an input from standard input, which is closed or empty."""
    names = [name for name in case.inputs if name in case.words]
    if names:
        case.words[case.words.index(case.chance.choice(names))] = case.chance.choice(["-", "/dev/stdin"])
    case.launch.closed = case.chance.choice([(0,), ()])


def other_encoding(case: Case) -> None:
    """Print to a terminal that can't show most letters, also names."""
    case.launch.encoding = case.chance.choice(["ascii", "latin-1", "cp1252", "koi8-r"])
    strange_name(case)


def full_disk(case: Case) -> None:
    """Let a disk be full, or a file reach its limit."""
    if case.chance.random() < 0.5:
        case.launch.file_limit = case.chance.choice([0, 100, 5_000, 50_000])
    else:
        case.launch.disk = case.chance.choice([0, 4_096, 20_000, 100_000])


def killed(case: Case) -> None:
    """End the process midway."""
    case.launch.kill = case.chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
    case.launch.delay = case.chance.choice([0.1, 0.3, 1.0, 3.0]) * case.chance.uniform(0.3, 1.0)


def strange_environment(case: Case) -> None:
    """Set or remove environment variables."""
    changes: list[dict[str, str | None]] = [
        {"HOME": None},
        {"HOME": "/nowhere"},
        {"TMPDIR": "/nowhere"},
        {"XDG_STATE_HOME": "/dev/null"},
        {"COLUMNS": "0"},
        {"COLUMNS": "-5"},
        {"LANG": "xx", "LC_ALL": "xx"},
        {"TERM": "dumb", "NO_COLOR": "1"},
        {"OMP_NUM_THREADS": "x"},
        {"WORLD_SIZE": "x"},
        {"WORLD_SIZE": "2", "RANK": "5"},
        {"LOCAL_RANK": "x"},
        {"SLURM_PROCID": "x", "SLURM_NTASKS": "2"},
        {"PL_GLOBAL_SEED": "x"},
        {"HF_HUB_OFFLINE": "x"},
        {"CUDA_VISIBLE_DEVICES": "x"},
        {"OPENAI_BASE_URL": "nonsense"},
        {"OPENAI_API_KEY": "k\xe9y with spaces"},
        {"NARRLIT_LLM_MODEL": ""},
        {"NARRLIT_TRUST_REMOTE_CODE": "x"},
    ]
    case.launch.environment = case.chance.choice(changes)


REPLIES = 30
"""More than the ways in which the language model's server goes wrong."""


def broken_reply(case: Case) -> None:
    """Let the language model's server fail, in the way that the number of tokens tells it; others get a file broken."""
    if "--max-tokens" in case.words:
        case.words[case.words.index("--max-tokens") + 1] = str(1000 + case.chance.randrange(REPLIES))
    else:
        in_bytes(flip_bits)(case)


WAYS: dict[str, Way] = {
    "truncated": in_bytes(cut),
    "empty": in_bytes(replace(b"", b"\n", b" ", b"\0")),
    "bit flips": in_bytes(flip_bits),
    "NUL bytes": in_bytes(insert(b"\0", b"\0" * 300)),
    "invalid UTF-8": in_bytes(insert(b"\xe9", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3")),
    "other encoding": in_bytes(recode),
    "byte order mark": in_bytes(with_mark),
    "garbage": in_bytes(garbage),
    "repeated": in_bytes(repeat),
    "line ends": in_bytes(line_ends),
    "deep nesting": in_bytes(deep),
    "other JSON": in_bytes(replace(b"null", b"[]", b"{}", b"1", b'"x"', b"[[]]", b"[1, {}]", b"NaN", b'{"a": 1}')),
    "duplicate keys": in_bytes(doubled_key),
    "wrong type": in_values(wrong_type, flip_bits),
    "missing field": in_values(remove, cut),
    "duplicate field": in_values(duplicate, repeat),
    "lone surrogate": in_values(surrogate, insert(b"\xed\xa0\x80", b"\\ud800")),
    "not finite": in_values(not_finite, insert(b"NaN", b"1e999", b"-Infinity")),
    "number at an edge": in_values(edge, insert(b"0", b"-1", b"9" * 30)),
    "huge value": in_values(huge, repeat),
    "hostile text": in_values(hostile, insert(b"=1+1", b"$1", b"\x1b[31m")),
    "hostile field": in_values(hostile_key, insert(b"=1+1", b"%s", b"\x1b[31m")),
    "missing": missing,
    "no file": other_kind,
    "exchanged": exchanged,
    "unreadable": unreadable,
    "read-only folder": read_only,
    "strange name": strange_name,
    "strange output": strange_output,
    "wrong option": wrong_option,
    "edge of an option": edge_option,
    "closed streams": closed_stream,
    "broken pipe": broken_pipe,
    "closed input": closed_input,
    "terminal encoding": other_encoding,
    "full disk": full_disk,
    "killed": killed,
    "environment": strange_environment,
    "broken reply": broken_reply,
}
"""Every way of breaking, by name."""
