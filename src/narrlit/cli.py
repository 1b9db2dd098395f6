"""Command line: import and run a single command, and print errors as one line."""

import io
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from narrlit import __version__
from narrlit.commands import COMMANDS, FORMER, TRAINING
from narrlit.declarations import Command
from narrlit.errors import NarrlitError, OptionError, mistake_behind, nearest, printable, reason, system_error
from narrlit.signatures import summary_of

USER_ERROR, UNFORESEEN, INTERRUPTED, TERMINATED, CLOSED_PIPE = 2, 1, 130, 143, 141
HELP = """Usage: narrlit COMMAND [OPTIONS]

Embeddings of stories by theme, course of action and outcome.

{groups}
narrlit COMMAND --help      options of a command
narrlit --completion SHELL  print a script that completes words in bash, zsh or fish
narrlit --version           print the version
--traceback                 print the whole traceback of an error"""


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
    """Run the command that the first words name, with the other words as its arguments; return the exit code."""
    name, arguments = (words[0], words[1:]) if words else ("--help", [])
    if name == "--version":
        print(f"narrlit {__version__}")
        return 0
    if name in ("--help", "-h"):
        print(HELP.format(groups=_groups(COMMANDS, TRAINING)))
        return 0
    if name in TRAINING:
        from narrlit.commands.train import train

        return train(name, arguments)
    if name == "--completion":
        from narrlit.command_line import completion

        print(completion(arguments, COMMANDS, TRAINING))
        return 0
    if name in FORMER:
        print(f"narrlit: note: narrlit {name} is narrlit {FORMER[name]} now", file=sys.stderr)
        return _call([*FORMER[name].split(), *_former_arguments(name, arguments)])
    return _call(words)


def _call(words: list[str]) -> int:
    """Run a command other than Lightning's stages, whose name has one word or two."""
    commands = {command.name: command for command in COMMANDS}
    subcommands = [command for command in COMMANDS if command.name.startswith(f"{words[0]} ")]
    if subcommands and words[1:2] in ([], ["--help"], ["-h"]):
        print(f"Usage: narrlit {words[0]} COMMAND [OPTIONS]\n\n{_groups(subcommands)}", end="")
        return 0
    name, arguments = (" ".join(words[:2]), words[2:]) if subcommands else (words[0], words[1:])
    if name not in commands:
        known = [*TRAINING, *commands]
        raise OptionError("unknown_command", command=name, near=nearest(name, known), known=known)
    from narrlit.command_line import call

    return call(commands[name], arguments)


def _groups(commands: Sequence[Command], stages: Mapping[str, str] | None = None) -> str:
    """Format commands with the first sentences of their functions, by group."""
    lines: dict[str, list[str]] = {}
    for name, purpose in (stages or {}).items():
        lines.setdefault("Train", []).append(_command_line(name, purpose))
    for command in commands:
        lines.setdefault(command.group, []).append(_command_line(command.name, summary_of(command.function)))
    return "\n".join(f"{group}:\n{''.join(line)}" for group, line in lines.items())


def _command_line(name: str, purpose: str) -> str:
    """Format a command and its purpose, wrapped to the terminal."""
    width = max(60, min(100, shutil.get_terminal_size().columns))
    return textwrap.fill(purpose, width, initial_indent=f"  {name:<19}", subsequent_indent=" " * 21) + "\n"


def _former_arguments(name: str, arguments: list[str]) -> list[str]:
    """Return arguments of a former command as its new name takes them."""
    positions = [position for position, word in enumerate(arguments) if not word.startswith("-")]
    if name == "push" and len(positions) == 2:  # push MODEL NAME
        return [*arguments[: positions[1]], "--push", *arguments[positions[1] :]]
    is_action = arguments[:1] == [{"views": "check", "augment": "backtranslate"}.get(name)]  # views check FILE
    return arguments[1:] if is_action else arguments


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
