"""Command line: import and run a single command, and print errors as one line."""

import io
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from narrlit import __version__
from narrlit.errors import NarrlitError, OptionError, mistake_behind, nearest, printable, reason, system_error

TRAINING = {
    "fit": "train an encoder (narrlit fit --config configs/quickstart.yaml)",
    "validate": "evaluate a checkpoint on the validation triples",
    "test": "evaluate a checkpoint on the test triples",
    "predict": "predict the answers to triples with a checkpoint",
}
OTHERS = {
    "embed": "embed stories into a .npy, .jsonl, .csv, .xlsx or .parquet file, or a folder of parts",
    "evaluate": "evaluate a model or a baseline on labeled triples",
    "compare": "compare systems on the same labeled triples, with paired tests",
    "check-data": "find stories shared between files, and shortcuts that solve the triples",
    "judge": "let a language model decide which candidate is closer, given an encoder's similarities",
    "explain": "explain the similarity of two stories by links between passages",
    "average": "average the weights of several training runs, optionally with those of the frozen encoder",
    "export": "write a sentence-transformers folder from a run or a checkpoint",
    "push": "upload a model to a hub",
    "submit": "write or check a submission to the shared task",
    "crossval": "cross-validate a config, with folds grouped by story",
    "reproduce": "compute the tables of the five systems' papers, next to the published figures",
    "ablate": "fit a system and its ablations, and compare them in one table",
    "tune": "search hyperparameters on one fold, and evaluate on the others",
    "report": "report accuracy, training, maps, errors and data of systems in one HTML file",
    "profile": "measure how much similarity depends on plot, world, length and single aspects",
    "fuse": "compare fusion weights of text and views on labeled triples",
    "views": "check a file of views",
    "demo": "run the whole workflow on synthetic stories, in a few minutes",
    "sample": "write sample stories: 24 folk tales, or Twice Told (plots told in many worlds)",
    "storyworld": "write synthetic stories with known theme, course of action and outcome",
    "generate": "generate hard negatives or views of stories with a language model",
    "mine": "add hard negatives to training examples, chosen by cosine similarity",
    "pseudonymize": "replace names in stories with placeholders, and restore them",
    "augment": "add back-translations of stories to training examples",
    "index": "store stories with their embeddings in a folder for search (LanceDB)",
    "search": "find the stories of an index most similar to a text or a story",
    "map": "draw a collection as a dendrogram or scatter plot, with groups and nearest stories, in one HTML file",
    "pairs": "find the most similar stories of a collection, and groups of retellings",
    "check-pairs": "list likely versions of one story for readers, and make data from their decisions",
    "catalog": "propose values of a column, such as the tale type, for stories that lack it",
    "retrieval": "evaluate how high relevant stories are ranked, with paired tests",
    "diversity": "measure how varied a collection is: Vendi score, nearest neighbors, near-duplicates",
    "serve": "run a server with a page for collections and an HTTP API as OpenAI's",
    "cache": "list or remove cached embeddings",
}
"""Every command is a function NAME in commands/NAME.py, with underscores for hyphens."""

ALIASES = {"pseudonymise": "pseudonymize"}
USER_ERROR, UNFORESEEN, INTERRUPTED, TERMINATED, CLOSED_PIPE = 2, 1, 130, 143, 141
HELP = """Usage: narrlit COMMAND [OPTIONS]

Embeddings of stories by theme, course of action and outcome.

Commands:
{commands}

narrlit COMMAND --help   options of a command
narrlit --version        print the version
--traceback              print the whole traceback of an error"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: command and options; None: `sys.argv[1:]`.

    Returns:
        Exit code: 0 success, 1 unexpected error (or a negative result of a command), 2 user error, 130 interrupted, 141
        closed pipe, 143 terminated.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    show_traceback = "--traceback" in words
    words = [word for word in words if word != "--traceback"]
    _repair_streams()
    try:
        with _terminable(words[:1]), _quiet_threads():
            code = _run(words)
            sys.stdout.flush()
    except BrokenPipeError:
        return CLOSED_PIPE
    except SystemExit as stop:
        return _exit_code(stop)
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except Exception as error:  # noqa: BLE001  (the one boundary)
        return _failed(error, show_traceback)
    finally:
        _discard_unwritable_output()
    return code


def _run(words: list[str]) -> int:
    """Run the command that the first word names, with the other words as its arguments; return the exit code."""
    name, arguments = (words[0], words[1:]) if words else ("--help", [])
    commands = TRAINING | OTHERS
    if name == "--version":
        print(f"narrlit {__version__}")
        return 0
    if name in ("--help", "-h"):
        lines = [f"  {command:<12}  {purpose}" for command, purpose in commands.items()]
        print(HELP.format(commands="\n".join(lines)))
        return 0
    name = ALIASES.get(name, name)
    if name in TRAINING:
        from narrlit.commands.train import train

        return train(name, arguments)
    if name not in OTHERS:
        raise OptionError("unknown_command", command=name, near=nearest(name, commands), known=commands)
    from narrlit.arguments import call

    function = name.replace("-", "_")
    module = import_module(f"narrlit.commands.{function}")
    return call(getattr(module, function), name, arguments)


def _repair_streams() -> None:
    """Reopen closed standard streams on the null device, and escape characters that standard output can't encode.

    Otherwise the next opened file would get the descriptor of the closed stream, and libraries would print into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w" if number else "r", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_unwritable_output() -> None:
    """Discard output that can't be written; the interpreter would report it at exit and change the exit code."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _terminable(command: list[str]) -> Iterator[None]:
    """Turn SIGTERM into an exception, so that unfinished files are removed; in fits, Lightning handles the signal."""
    if set(command) & set(TRAINING) or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _quiet_threads() -> Iterator[None]:
    """Suppress tracebacks of system errors in threads, such as a full disk; the main thread reports them."""
    print_traceback = threading.excepthook

    def print_unforeseen(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is None or system_error(arguments.exc_value) is None:
            print_traceback(arguments)

    threading.excepthook = print_unforeseen
    try:
        yield
    finally:
        threading.excepthook = print_traceback


def _exit_code(stop: SystemExit) -> int:
    """Return the exit code of the command line for a SystemExit."""
    if type(stop).__name__ == "SIGTERMException":  # Lightning's, after a graceful stop
        return TERMINATED
    if isinstance(stop.__context__, KeyboardInterrupt):  # Lightning exits with 1
        remedy = "finished epochs of a fit are kept; --ckpt_path RUN/checkpoints/last.ckpt continues from there"
        return _interrupted(stop.__context__ if stop.__context__.args else KeyboardInterrupt(remedy))
    return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    """Print that the command was interrupted, and what is kept; return the exit code."""
    _print_error(f"interrupted: {interrupt}" if interrupt.args else "interrupted")
    return INTERRUPTED


def _failed(error: Exception, show_traceback: bool) -> int:
    """Print an error on one line, with its traceback or the path of the saved traceback; return the exit code."""
    if show_traceback:
        traceback.print_exception(error)
    message = _mistake(error)
    if message is not None:
        _print_error(f"error: {message}")
        return USER_ERROR
    place = "" if show_traceback else f"; {_write_traceback(error)}"
    _print_error(f"unexpected error: {type(error).__name__}: {reason(error)}{place}")
    return UNFORESEEN


def _mistake(error: Exception) -> str | None:
    """Describe a user error; return None for a bug in narrlit."""
    mistake = mistake_behind(error)
    if mistake is not None and isinstance(error, NarrlitError | ValueError):
        return printable(mistake, limit=1000)
    problem = system_error(error)
    if problem is not None:
        return problem
    if type(error).__name__ == "OutOfMemoryError":  # torch's
        return f"{printable(error)}; use smaller batches, a shorter --max-length or --device cpu"
    if type(error).__name__ == "MisconfigurationException":  # Lightning's
        return printable(error, limit=1000)
    return None


def _write_traceback(error: Exception) -> str:
    """Write the traceback to a new file; return a sentence with its path."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  (never fails)
    for folder in (Path(state) / "narrlit", Path(tempfile.gettempdir())):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="traceback-", suffix=".txt", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"narrlit {__version__}\n{''.join(traceback.format_exception(error))}")
            return f"traceback: {name}"
    return "--traceback prints the traceback"


def _print_error(message: str) -> None:
    """Print a message on one line."""
    with suppress(OSError):
        print(f"narrlit: {' '.join(message.split())}", file=sys.stderr, flush=True)
