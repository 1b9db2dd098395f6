"""The command line: help without imports, one line for every error, exit codes."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from refusals import refused

from narrlit import cli
from narrlit.console import say
from narrlit.errors import DataError, NarrlitError, OptionError, on_interrupt, reading


@pytest.fixture
def failing(monkeypatch, narrlit, tmp_path):
    """failing(error): what the command line does when a command raises it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(error, *options):
        def fail(_):
            raise error

        monkeypatch.setattr(cli, "_run", fail)
        return narrlit(*options)

    return run


UNSAVED = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598")
UNSAVED.__context__ = OSError(28, "No space left on device")
WRAPPED = ValueError("parser")
WRAPPED.__cause__ = OptionError("at_least", option="folds", found=0, least=1)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataError("broken_config", path="a.yaml", line=3, reason="no text"), 2, "narrlit: error: a.yaml:3: no text"),
        (
            NarrlitError("unreadable_config", path="a", reason="two\nlines\x1b[31m"),
            2,
            "narrlit: error: a: two lines [31m",
        ),
        (WRAPPED, 2, "narrlit: error: `folds=0`: must be at least 1\n"),
        (OSError(36, "File name too long", "a" * 5000), 2, "narrlit: error: aaaa"),
        (OSError(28, "No space left on device"), 2, "narrlit: error: reading or writing: no space left on device"),
        (PermissionError(13, "Permission denied", "x"), 2, "narrlit: error: x: permission denied"),
        (MemoryError(), 2, "narrlit: error: not enough memory"),
        (
            RuntimeError("LanceError(IO): full (os error 28), object_store.rs:3"),
            2,
            "narrlit: error: reading or writing",
        ),
        (sqlite3.OperationalError("database or disk is full"), 2, "narrlit: error: reading or writing: no space left"),
        (UNSAVED, 2, "narrlit: error: reading or writing: no space left on device"),
        (UnicodeEncodeError("utf-8", "a\udce9b", 1, 2, "surrogates"), 2, "narrlit: error: a name or text that is not "),
        (KeyboardInterrupt(), 130, "narrlit: interrupted"),
        (KeyboardInterrupt("nothing is kept"), 130, "narrlit: interrupted: nothing is kept"),
        (SystemExit(3), 3, ""),
        (SystemExit(), 0, ""),
        (type("SIGTERMException", (SystemExit,), {})(), 143, ""),
    ],
)
def test_a_mistake_of_the_user_is_one_line(failing, tmp_path, error, code, line):
    found = failing(error)
    assert found.code == code
    assert found.out == ""
    assert found.err.startswith(line)
    assert len(found.err.splitlines()) == bool(line)
    assert len(found.err) < 400
    assert not (tmp_path / "state").exists()


def test_an_unforeseen_error_is_one_line_and_its_traceback_is_in_a_file_or_printed(failing, tmp_path):
    found = failing(ZeroDivisionError("division \x1b[2J by zero"))
    assert found.code == 1
    assert found.out == ""
    assert found.err.count("\n") == 1

    (file,) = (tmp_path / "state/narrlit").iterdir()
    assert found.err == f"narrlit: unexpected error: ZeroDivisionError: division [2J by zero; traceback: {file}\n"
    assert "ZeroDivisionError" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0

    file.unlink()
    found = failing(ZeroDivisionError("zero"), "--traceback")
    assert found.code == 1
    assert "Traceback (most recent call last)" in found.err
    assert not list(file.parent.iterdir())
    assert "Traceback" in failing(DataError("no_text"), "--traceback").err


def test_lightnings_exit_at_an_interrupt_is_130(narrlit, monkeypatch):
    def interrupted(_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            sys.exit(1)

    monkeypatch.setattr(cli, "_run", interrupted)
    found = narrlit("fit")

    assert found.code == 130
    assert "finished epochs of a fit are kept; --ckpt_path" in found.err


def test_sigterm_ends_a_command_with_143_and_its_cleaning_up(narrlit, monkeypatch):
    cleaned = []

    def terminated(_):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            cleaned.append(True)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(cli, "_run", terminated)

    assert narrlit("embed").code == 143
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_on_interrupt_names_what_is_kept():
    with pytest.raises(KeyboardInterrupt, match=r"^half$"), on_interrupt("all"), on_interrupt("half"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(2, "No such file or directory", "f"), "no such file or directory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "not UTF-8 text (byte 0)"),
        (RecursionError("deep"), "nested too deeply"),
        (KeyError("model"), "'model' is missing"),
        (TypeError("no \n\x07 list"), "unexpected content (no list)"),
        (ValueError("long " * 1000), f"{'long ' * 59}long…"),
        (EOFError(), "ends too early"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_reading_names_the_file_and_the_fault(error, reason):
    with refused("unreadable_config", path="a.yaml", reason=reason), reading("unreadable_config", "a.yaml"):
        raise error


def test_reading_passes_a_users_mistake_unchanged_even_wrapped():
    mistake = DataError("no_text")
    with refused("no_text"), reading("unreadable_config", "b"):
        raise mistake
    with refused("no_text"), reading("unreadable_config", "b"):
        raise ValueError from mistake


def test_terminal_escapes_of_stories_are_not_printed(capfd):
    say("story \x1b]0;title\x07 and \x9b31m\nnext")
    assert capfd.readouterr().err == "story ]0;title and 31m\nnext\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], [], ["embed", "--help"], ["fit", "--help"]])
def test_every_command_has_help(narrlit, arguments):
    found = narrlit(*arguments)
    assert found.code == 0
    assert "narrlit" in found.out


def test_for_an_unknown_command_the_nearest_is_named(narrlit):
    found = narrlit("evalute")
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert "unknown command 'evalute' (did you mean evaluate?); available: fit, " in found.err


def test_help_loads_nothing_heavy_and_a_closed_pipe_is_quiet():
    program = (
        "import sys; from narrlit.cli import main; main(['--version']); main(['nothing']); code = main(['--help']); "
        "heavy = {'torch', 'lightning', 'numpy', 'jsonargparse', 'cyclopts'} & set(sys.modules); assert not heavy; "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert b"Explore:" in done.stdout

    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "narrlit", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)

    assert done.returncode == 141
    assert done.stderr == b""


HELP_OF_EVERY_COMMAND = """
import contextlib, io, sys
from narrlit.cli import main
from narrlit.commands import COMMANDS, TRAINING

HEAVY = {
    *("torch", "pandas", "transformers", "sentence_transformers", "lightning", "scipy", "sklearn", "pyarrow"),
    *("lancedb", "matplotlib", "torchmetrics", "peft"),
}
for name in [*TRAINING, *(command.name for command in COMMANDS)]:
    with contextlib.redirect_stdout(io.StringIO()) as help:
        assert main([*name.split(), "--help"]) == 0, name
    assert help.getvalue().strip(), name
    loaded = HEAVY & set(sys.modules)
    assert not loaded, f"narrlit {name} --help loads {sorted(loaded)}"
"""


def test_the_help_of_every_command_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", HELP_OF_EVERY_COMMAND], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("--version >&-", 0, ""),
        ("--version <&- >&- 2>&-", 0, ""),
        ("--version >/dev/full", 2, "narrlit: error: reading or writing: no space left on device"),
        ("nothing 2>&-", 2, ""),
        ("data views - - <&-", 2, "narrlit: error: /dev/stdin is empty"),
    ],
)
def test_closed_and_full_streams_cost_one_line_at_most(command, code, error):
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    words = ["sh", "-c", f'"$0" -m narrlit {command}', sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == code
    assert done.stderr.startswith(error)
    assert len(done.stderr.splitlines()) == bool(error)


def test_no_file_replaces_a_closed_stream(tmp_path):
    """What libraries print would be written into it."""
    program = (
        "import os, sys; from narrlit import cli; "
        "cli._run = lambda words: os.write(1, b'a library prints') * 0; "
        "cli.main([]); print(open('file', 'w').fileno() > 2, file=sys.stderr)"
    )
    words = ["sh", "-c", '"$0" -c "$1" >&-', sys.executable, program]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0
    assert done.stderr == "True\n"


def test_characters_that_a_terminal_cannot_print_are_escaped(tmp_path):
    program = (
        "import sys; from narrlit import cli; "
        "cli._run = lambda words: print('Märchen \\u2192 \\udce9') or 0; sys.exit(cli.main([]))"
    )
    for encoding, printed in (("ascii", rb"M\xe4rchen \u2192 \udce9"), ("utf-8", "Märchen → \\udce9".encode())):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment)
        assert done.stdout == printed + b"\n"


@pytest.mark.parametrize(
    ("error", "printed"), [(OSError(28, "No space left on device"), False), (ValueError("a fault"), True)]
)
def test_a_thread_prints_its_traceback_unless_the_system_failed(monkeypatch, narrlit, error, printed):
    def fail():
        raise error

    def run(_):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        return 0

    monkeypatch.setattr(cli, "_run", run)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # pytest has one of its own

    assert ("Traceback" in narrlit().err) == printed
