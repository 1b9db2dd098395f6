"""Command line: run a command, with the imports that it needs alone, and print errors as one line."""

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
from narrlit.errors import NarrlitError, OptionError, did_you_mean, mistake_behind, printable, reason, system_error

TRAINING = {
    "fit": "train an encoder: narrlit fit --config configs/quickstart.yaml",
    "validate": "evaluate a checkpoint on the validation triples",
    "test": "evaluate a checkpoint on the test triples",
    "predict": "write a checkpoint's answers to triples",
}
OTHERS = {
    "embed": "embeddings of stories, as .npy, .jsonl, .csv, .xlsx or .parquet, or a folder of parts",
    "evaluate": "accuracy of a model or a baseline on labeled triples",
    "compare": "systems on the same labeled triples, with paired tests",
    "check-data": "what files of stories share, and which shortcuts solve their triples",
    "judge": "let a language model that sees the similarities decide which candidate is closer",
    "explain": "why two stories are similar: linked passages, whose shares add up to the similarity",
    "average": "average the weights of trainings, and bring them nearer to the frozen encoder",
    "export": "write a sentence-transformers folder from a run or a checkpoint",
    "submit": "write or check a submission to the shared task",
    "crossval": "k-fold cross-validation of a config, folds grouped by story",
    "reproduce": "the tables of the five systems' papers, published figures beside ours",
    "ablate": "a system and its ablations in one table, with intervals and paired tests",
    "tune": "hyperparameter search on one fold, evaluated on the others",
    "report": "accuracy, training, maps, errors and data of systems in one HTML file",
    "profile": "what models' similarity follows: plot, world, length, single aspects",
    "fuse": "compare weights of stories' texts and views on labeled triples",
    "views": "check a file of stories' views",
    "demo": "generate, train, evaluate and export on synthetic stories, in a few minutes",
    "sample": "write 24 folk tales, or Twice Told (plots told in many worlds), to try commands on",
    "storyworld": "write synthetic stories with known theme, course of action and outcome",
    "generate": "negatives of training examples, or views of stories, by a language model",
    "mine": "add hard negatives from a collection to training examples",
    "pseudonymize": "replace names in stories by placeholders, and restore them",
    "augment": "add back-translations of stories to training examples",
    "index": "stories with their vectors in a folder that is searched (LanceDB)",
    "search": "stories of an index most similar to a text or a story",
    "map": "a collection as a dendrogram or a plane, with groups, nearest stories and passages, in one HTML file",
    "pairs": "most similar stories of a collection, and groups of retellings",
    "retrieval": "how high collections rank relevant stories, with tests against each other and words",
    "diversity": "how varied a collection is: Vendi score, nearest neighbors, near-duplicates",
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
narrlit --version        the version
--traceback              print the whole traceback of an error"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: command and options; None: those of the process.

    Returns:
        Exit code: 0 success, 1 unforeseen error (or a negative result of a command), 2 user error, 130 interrupted, 141
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
    name = words[0] if words else "--help"
    if name == "--version":
        print(f"narrlit {__version__}")
        return 0
    if name in ("--help", "-h"):
        print(HELP.format(commands="\n".join(f"  {name:<12}  {line}" for name, line in (TRAINING | OTHERS).items())))
        return 0
    name = ALIASES.get(name, name)
    if name in TRAINING:
        from narrlit.commands.train import train

        return train(name, words[1:])
    if name not in OTHERS:
        known = [*TRAINING, *OTHERS]
        raise OptionError(f"no command {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")
    from narrlit.arguments import call

    function = name.replace("-", "_")
    return call(getattr(import_module(f"narrlit.commands.{function}"), function), name, words[1:])


def _repair_streams() -> None:
    """Replace closed standard streams, and let standard output escape characters that it can't encode.

    The next file to be opened would get the number of a closed stream, and libraries would print into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, this one
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w" if number else "r", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_unwritable_output() -> None:
    """Discard output that can't be written, which the interpreter would report at exit with another exit code."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _terminable(command: list[str]) -> Iterator[None]:
    """Turn SIGTERM into an exception, so that unfinished files are removed; Lightning handles it in fits."""
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
    """Suppress tracebacks of system errors in threads, such as a full disk, which the main thread reports."""
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
    if type(stop).__name__ == "SIGTERMException":  # Lightning's, after a graceful stop
        return TERMINATED
    if isinstance(stop.__context__, KeyboardInterrupt):  # Lightning exits with 1
        remedy = "finished epochs of a fit are kept; --ckpt_path RUN/checkpoints/last.ckpt continues from there"
        return _interrupted(stop.__context__ if stop.__context__.args else KeyboardInterrupt(remedy))
    return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    _print_error(f"interrupted{f': {interrupt}' if interrupt.args else ''}")
    return INTERRUPTED


def _failed(error: Exception, show_traceback: bool) -> int:
    """Print one line about an error, and the traceback or where it is; return the exit code."""
    if show_traceback:
        traceback.print_exception(error)
    message = _mistake(error)
    if message is not None:
        _print_error(f"error: {message}")
        return USER_ERROR
    place = "" if show_traceback else f"; {_write_traceback(error)}"
    _print_error(f"unforeseen error: {type(error).__name__}: {reason(error)}{place}")
    return UNFORESEEN


def _mistake(error: Exception) -> str | None:
    """Describe a user error; None for a bug of narrlit."""
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
    """Write the traceback to a new file and return its path in words."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  (never fails)
    for folder in (Path(state) / "narrlit", Path(tempfile.gettempdir())):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="traceback-", suffix=".txt", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"narrlit {__version__}\n{''.join(traceback.format_exception(error))}")
            return f"traceback: {name}"
    return "--traceback prints where"


def _print_error(message: str) -> None:
    with suppress(OSError):
        print(f"narrlit: {' '.join(message.split())}", file=sys.stderr, flush=True)
