"""Break every input of every command, and count what a user should never see.

    python benchmarks/fuzz.py --seed 1 --runs 2000

A run takes one command line that succeeds, breaks it in one of forty ways (its files, their names, its options, the
system around it), and runs it in a fork of this process. It goes wrong if there is a traceback or another exit code
than `narrlit.cli.main` promises, if it takes longer than a limit, or if a file changes that the command only reads. The
exit code is 0 if no run does.

A run depends on the seed and its number alone: `--seed 1 --case 17` repeats run 17, shows what it printed, and keeps
its folder. Root is needed for small disks; others get a limit on the size of a file.
"""

import argparse
import ctypes
import gc
import hashlib
import importlib
import json
import multiprocessing
import os
import pkgutil
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from fuzz_inputs import Job, helper, jobs, write_template
from fuzz_ways import WAYS, Case, Launch
from tqdm import tqdm

import narrlit
from narrlit.cli import CLOSED_PIPE, INTERRUPTED, TERMINATED, USER_ERROR, main
from narrlit.preprocessing.languages import detect_language

MEMORY = 8 * 2**30
"""Bytes of memory that a run may have."""
OTHER_LIBRARIES = (
    *("sentence_transformers", "sklearn.feature_extraction.text", "sklearn.cluster", "pyarrow.parquet", "openpyxl"),
    *("openai", "matplotlib.figure", "networkx", "optuna", "mammoth", "lxml.html"),
    *("matplotlib.backends.backend_svg", "scipy.cluster.hierarchy", "transformers.models.bert.modeling_bert"),
)
"""Imported once, before the forks. LanceDB has threads of its own, which no fork survives."""
FINDINGS = ("views", "judge", "generate", "fit")
"""Commands whose exit code 1 is a finding of their own: what is missing, has failed or diverged."""
FITS = "fits"
"""Folder of an index in which searches keep the fits of measures."""
PLACE = re.compile(r'File "[^"]*/(narrlit/[^"]+)", line (\d+)')
TRACEBACK = re.compile(r"Traceback \(most recent call last\)|unforeseen error")


@dataclass
class Outcome:
    """What a run did.

    Attributes:
        number: of the run.
        command: its name.
        way: how it was broken.
        words: the command line as it was run.
        code: exit code; negative: the signal that ended it.
        seconds: how long it took.
        faults: what went wrong: traceback, hang, changed.
        place: where a traceback comes from, or the first line of the error.
        stderr: end of what was printed.
    """

    number: int
    command: str
    way: str
    words: list[str]
    code: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    place: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class Setting:
    """What the runs share.

    Attributes:
        template: folder with valid inputs of every command.
        scratch: folder of the runs' folders.
        jobs: command lines on these inputs.
        seed: of all random choices.
        limit: seconds that a run may take.
        keep: leave the runs' folders.
    """

    template: Path
    scratch: Path
    jobs: Sequence[Job]
    seed: int
    limit: float
    keep: bool = False

    def pair(self, number: int) -> tuple[Job, str]:
        """Choose the job and the way of a run."""
        pairs = shuffled_pairs(tuple(self.jobs), self.seed)
        return pairs[number % len(pairs)]


@cache
def shuffled_pairs(jobs: tuple[Job, ...], seed: int) -> list[tuple[Job, str]]:
    """Pair every job with every way, as often as it is to be drawn, in a random order."""
    pairs = [(job, way) for job in jobs for way in WAYS for _ in range(job.weight)]
    Random(seed).shuffle(pairs)
    return pairs


# One run -------------------------------------------------------------------------------------------------------------


def run_case(setting: Setting, number: int) -> Outcome:
    """Copy a job's inputs, break them, run the command, and look at what it did."""
    job, way = setting.pair(number)
    place = setting.scratch / str(number)
    work, state = place / "work", place / "state"
    for folder in (work, state):
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    inputs = job.inputs(setting.template)
    small = _mount(work)
    try:
        _copy(setting.template, work, inputs)
        case = Case(work, list(job.words), list(inputs), Random(f"{setting.seed}:{number}"))
        WAYS[way](case)
        _limit_disk(case.launch, work, small)
        protected = [now for name, now in zip(inputs, case.inputs, strict=True) if name not in job.outputs()]
        before = [_digest(work / name) for name in protected]
        outcome = Outcome(number, job.command, way, case.words)
        _run(outcome, case, state, setting.limit)
        if before != [_digest(work / name) for name in protected]:
            outcome.faults.append("changed")
        if case.launch.kill is not None and not outcome.faults:
            _run(outcome, Case(work, case.words, [], case.chance), state, setting.limit)  # does it go on?
    finally:
        if small and not setting.keep:
            subprocess.run(["umount", "-l", str(work)], check=False, capture_output=True)
    if not setting.keep:
        shutil.rmtree(place, ignore_errors=True)
    return outcome


def _copy(template: Path, work: Path, names: Sequence[str]) -> None:
    for name in (*names, "config.yaml", "model", "world"):
        source, target = template / name, work / name
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    for path in work.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)


def _mount(work: Path) -> bool:
    """Mount a disk of its own at the folder, where that is possible."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return False
    command = ["mount", "-t", "tmpfs", "-o", "size=1g,mode=777", "tmpfs", str(work)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _limit_disk(launch: Launch, work: Path, small: bool) -> None:
    """Leave as many bytes free as the case wants."""
    if launch.disk is None:
        return
    if not small:
        launch.file_limit = launch.disk
        return
    state = os.statvfs(work)
    size = (state.f_blocks - state.f_bfree) * state.f_frsize + launch.disk
    options = f"remount,size={size}"
    subprocess.run(["mount", "-o", options, str(work)], check=True, capture_output=True)


def _digest(path: Path) -> str:
    """Compute a digest of a file, or of the names and contents of a folder's files.

    What a search keeps in an index, the fits of its measures, is no input.
    """
    digest = hashlib.sha256()
    paths = sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [path]
    for file in paths:
        if FITS in file.relative_to(path).parts:
            continue
        digest.update(os.fsencode(file))
        if file.is_symlink():
            digest.update(os.fsencode(file.readlink()))
        elif file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _run(outcome: Outcome, case: Case, state: Path, limit: float) -> None:
    """Run a case's command in a fork, and add to its outcome."""
    files = [state / "stdout", state / "stderr"]
    for file in files:
        file.write_bytes(b"")
        file.chmod(0o666)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _become_command(case, state, limit)
    outcome.code, hung = _wait(child, case.launch, limit)
    outcome.seconds += time.monotonic() - start
    printed = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    written = sorted((state / "narrlit").glob("traceback-*.txt"))
    trace = written[0].read_text(encoding="utf-8") if written else ""
    outcome.stderr = "".join([*printed, trace])[-6000:]
    if hung:
        outcome.faults.append("hang")
    elif trace or TRACEBACK.search("".join(printed)) or outcome.code not in _expected(outcome.command, case.launch):
        outcome.faults.append("traceback")
    elif outcome.code == USER_ERROR and case.launch.shows_errors and "narrlit: " not in printed[1]:
        outcome.faults.append("traceback")  # an error without its line
    if outcome.faults:
        places = PLACE.findall(outcome.stderr)
        errors = [line for line in outcome.stderr.splitlines() if line.strip()] or ["no message"]
        where = ":".join(places[-1]) if places else "?"
        outcome.place = f"{where} exit {outcome.code}: {errors[-1][:150]}"


def _expected(command: str, launch: Launch) -> set[int]:
    """Exit codes that are right, whatever was broken."""
    codes = {0, USER_ERROR}
    if command in FINDINGS:
        codes.add(1)
    if launch.stdout is not None:
        codes.add(CLOSED_PIPE)
    if launch.kill is not None:  # by the default handler before or behind narrlit's own
        codes |= {INTERRUPTED, TERMINATED, -launch.kill}
    return codes


def _wait(child: int, launch: Launch, limit: float) -> tuple[int, bool]:
    """Wait for a process, send it the case's signal, and end its group; return its exit code, and if it hung."""
    start, sent = time.monotonic(), launch.kill is None
    hung = False
    while True:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        seconds = time.monotonic() - start
        if not sent and seconds > launch.delay:
            os.kill(child, launch.kill or 0)
            sent = True
        if seconds > limit and not hung:
            hung = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what it has left behind
    return os.waitstatus_to_exitcode(status), hung


# In the fork ---------------------------------------------------------------------------------------------------------


def _become_command(case: Case, state: Path, limit: float) -> None:
    """Run the command as a process of its own would, and end; never returns."""
    code = 1
    try:
        os.setsid()
        os.chdir(case.folder)
        _prepare_streams(case.launch, state)
        _prepare_process(case.launch, state, limit)
        code = _call_main(case.words)
    except BaseException:  # noqa: BLE001 (what the interpreter would print)
        with suppress(Exception):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code & 255)


def _call_main(words: list[str]) -> int:
    sys.argv = ["narrlit", *words]
    try:
        code = main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            return 120  # the interpreter's exit code for output that it can't write at its end
    return code


def _prepare_streams(launch: Launch, state: Path) -> None:
    """Put files, pipes or nothing in the place of the standard streams, as the interpreter finds them at its start."""
    for number, file, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, str(state / "stdout"), os.O_WRONLY),
        (2, str(state / "stderr"), os.O_WRONLY),
    ):
        name = launch.stdout if number == 1 and launch.stdout not in (None, "pipe") else file
        opened = os.open(str(name), flags)
        os.dup2(opened, number)
        os.close(opened)
    if launch.stdout == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        os.close(writer)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: Any = None
        if number in launch.closed:
            os.close(number)
        else:
            errors = "backslashreplace" if name == "stderr" else "strict"
            mode = "r" if name == "stdin" else "w"
            buffering = 1 if name == "stderr" else -1
            stream = open(number, mode, buffering, launch.encoding, errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _prepare_process(launch: Launch, state: Path, limit: float) -> None:
    """Set the environment, limits, user and signals."""
    home = str(state)
    os.environ |= {"HOME": home, "TMPDIR": home, "XDG_STATE_HOME": home, "XDG_CACHE_HOME": home}
    os.environ |= {"OPENAI_API_KEY": "key", "HF_HUB_OFFLINE": "1", "NO_PROXY": "*"}
    for name, value in launch.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None  # looks for it again
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 60, int(limit) + 60))
    if launch.file_limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (launch.file_limit, launch.file_limit))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if launch.unprivileged and os.geteuid() == 0:
        _obey_permissions()


def _obey_permissions() -> None:
    """Let root be refused what the permissions of a file or folder deny its owner (capabilities(7))."""
    library = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    capabilities = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice 32 bits
    library.capget(header, capabilities)
    capabilities[0] &= ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    library.capset(header, capabilities)


# All runs ------------------------------------------------------------------------------------------------------------


def preload() -> None:
    """Import every module once: a fork has them in no time."""
    for module in pkgutil.walk_packages(narrlit.__path__, "narrlit."):
        if module.name != "narrlit.__main__":
            importlib.import_module(module.name)
    for name in OTHER_LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    detect_language("Once upon a time there was a king who had a daughter.")  # loads its model
    tqdm.set_lock(threading.RLock())  # its own is shared by forks: one that is killed with it would stop all others
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()


@contextmanager
def language_model() -> Iterator[str]:
    """Start a language model's server in a process of its own; yield its URL.

    From 1000 the number of tokens that is asked for tells the server how to fail.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sender,), daemon=True)
    process.start()
    try:
        yield receiver.recv()
    finally:
        process.terminate()
        process.join()


def _serve(sender: Any) -> None:
    server = helper("llm_server")

    def mode(body: Any) -> str | None:
        """Choose how the reply to a request fails."""
        tokens = next((body[name] for name in ("max_tokens", "max_completion_tokens") if name in body), 0)
        return server.MODES[tokens % len(server.MODES)] if isinstance(tokens, int) and tokens >= 1000 else None

    with server.llm_server(mode=mode) as running:
        sender.send(running.url)
        signal.pause()


def run_plainly(state: Path, words: Sequence[str]) -> int:
    """Run a command in the current folder, unbroken; print what it printed if it fails."""
    outcome = Outcome(0, words[0], "", list(words))
    _run(outcome, Case(Path.cwd(), list(words), [], Random(0)), state, 300)
    if outcome.code:
        print(outcome.stderr, file=sys.stderr)
    return outcome.code


def table(outcomes: Sequence[Outcome], name: Callable[[Outcome], str]) -> str:
    """Count runs, exit codes and faults by a name of theirs."""
    rows = [["", "runs", "exit 0", "1", "2", "other", "traceback", "hang", "changed"]]
    for group in [*sorted({name(outcome) for outcome in outcomes}), "all"]:
        own = [outcome for outcome in outcomes if group in (name(outcome), "all")]
        codes = Counter(outcome.code if outcome.code in (0, 1, 2) else "other" for outcome in own)
        faults = Counter(fault for outcome in own for fault in outcome.faults)
        counts = [len(own), *(codes[code] for code in (0, 1, 2, "other"))]
        rows.append([group, *map(str, counts), *(str(faults[name]) for name in ("traceback", "hang", "changed"))])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join(lines)


def list_faults(outcomes: Sequence[Outcome], seed: int) -> str:
    """List the runs that went wrong, those of the same place together."""
    by_place: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.faults:
            key = f"{' and '.join(outcome.faults)} {outcome.place.partition(' exit')[0]}"
            by_place.setdefault(key, []).append(outcome)
    lines = []
    for place, group in sorted(by_place.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(group)} x {place}")
        lines += [
            f"    {o.way}: {shlex.join(['narrlit', *o.words])[:300]}\n        {o.place}\n"
            f"        python benchmarks/fuzz.py --seed {seed} --case {o.number}"
            for o in group[:4]
        ]
    return "\n".join(lines)


def fuzz(arguments: Sequence[str] | None = None) -> int:
    """Run cases and print what went wrong; return the exit code."""
    parser = argparse.ArgumentParser(description="Break every input of every command.")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default 1)")
    parser.add_argument("--runs", type=int, default=2000, help="number of runs (default 2000)")
    parser.add_argument("--case", type=int, help="repeat this run, show what it printed and keep its folder")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a run may take (default 120)")
    parser.add_argument("--inputs", type=Path, help="folder of the valid inputs: made if it is missing, and kept")
    parser.add_argument("--out", type=Path, help="JSON Lines file of all runs")
    chosen = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when the hub's library is imported
    preload()
    scratch = Path(tempfile.mkdtemp(prefix="narrlit-fuzz-"))
    scratch.chmod(0o755)
    (scratch / "state").mkdir()
    with language_model() as url:
        template = (chosen.inputs or scratch / "inputs").absolute()
        if not template.exists():
            write_template(template, partial(run_plainly, scratch / "state"))
        setting = Setting(template, scratch, jobs(url), chosen.seed, chosen.limit, chosen.case is not None)
        if chosen.case is not None:
            outcome = run_case(setting, chosen.case)
            print(f"{outcome.stderr}\n{shlex.join(['narrlit', *outcome.words])}")
            print(f"{outcome.way}: exit code {outcome.code}, {outcome.faults}, in {scratch / str(chosen.case)}")
            return int(bool(outcome.faults))
        outcomes = run_all(setting, chosen.runs, chosen.workers)
    shutil.rmtree(scratch, ignore_errors=True)
    if chosen.out is not None:
        lines = [json.dumps(vars(outcome), default=str) + "\n" for outcome in outcomes]
        chosen.out.write_text("".join(lines), encoding="utf-8")
    faults = Counter(fault for outcome in outcomes for fault in outcome.faults)
    print(table(outcomes, lambda o: o.command), table(outcomes, lambda o: o.way), sep="\n\n")
    print(f"\n{list_faults(outcomes, chosen.seed)}" if faults else "")
    counts = f"{faults['traceback']} tracebacks, {faults['hang']} hangs, {faults['changed']} inputs changed"
    print(f"{len(outcomes)} runs: {counts}")
    return int(bool(faults))


def run_all(setting: Setting, runs: int, workers: int) -> list[Outcome]:
    """Run the first cases of a seed, some at a time; return their outcomes in order."""
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        running = pool.imap_unordered(partial(run_case, setting), range(runs))
        outcomes = []
        for outcome in tqdm(running, total=runs, unit="run", disable=not sys.stderr.isatty()):
            outcomes.append(outcome)
            if outcome.faults:
                faults = " and ".join(outcome.faults)
                tqdm.write(f"run {outcome.number}, {outcome.way}: {faults}, {outcome.place}", file=sys.stderr)
    return sorted(outcomes, key=lambda outcome: outcome.number)


if __name__ == "__main__":
    sys.exit(fuzz())
