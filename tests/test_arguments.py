"""Options from signatures: flat dataclasses, help for each, and refusals in one line."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import pytest

import narrlit.commands
from narrlit.arguments import call, parser
from narrlit.cli import ALIASES, OTHERS, TRAINING
from narrlit.errors import OptionError
from narrlit.files import Output


@dataclass(frozen=True)
class Shared:
    """Options of several commands.

    Attributes:
        model: a folder.
        trust_remote_code: run its code.
    """

    model: str | None = None
    trust_remote_code: bool = False


calls = []


def sample(
    action: Literal["ls", "rm"],
    folder: str = "runs",
    *,
    use: Shared,
    out: Annotated[str, Output()],
    count: int = 3,
    share: float = 0.5,
    names: tuple[str, ...] = (),
    map: Annotated[str | None, Output()] = None,
) -> int | None:
    """Do something.

    More about it.

    Args:
        action: what to do.
        folder: where.
        use: the model.
        out: file to write.
        count: how many.
        share: how much.
        names: several.
        map: another file to write.
    """
    calls.append((action, folder, use, out, count, share, names, map))
    return 4 if action == "rm" else None


def handing_on(*fit: str, out: str, quick: bool = False) -> None:
    """Hand options on.

    Args:
        out: folder.
        quick: less.
    """
    calls.append((fit, out, quick))


@pytest.fixture(autouse=True)
def nothing_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls.clear()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ls", "--out", "o"], ("ls", "runs", Shared(), "o", 3, 0.5, (), None)),
        (["rm", "f", "--out=o", "--model=m"], ("rm", "f", Shared("m"), "o", 3, 0.5, (), None)),
        (
            ["--trust-remote-code", "--count", "-1", "ls", "--out", "o", "--share", "-1e-3"],
            ("ls", "runs", Shared(None, True), "o", -1, -0.001, (), None),
        ),
        (
            ["ls", "--out", "o", "--names", "a", "--trust_remote_code", "--names", "b"],
            ("ls", "runs", Shared(None, True), "o", 3, 0.5, ("a", "b"), None),
        ),
    ],
)
def test_arguments_become_parameters(words, expected):
    assert call(sample, "sample", words) == (4 if "rm" in words else 0)
    assert calls == [expected]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "ACTION is missing"),
        (["ls"], "--out is missing"),
        (["mv", "--out", "o"], '"mv" for ACTION. Choose from: "ls", "rm"'),
        (["ls", "a", "b", "--out", "o"], "Unexpected argument: b"),
        (["ls", "--out", "o", "--out", "p"], "--out specified multiple times"),
        (["ls", "--out", "o", "--model", "a", "--model", "b"], "--model specified multiple times"),
        (["ls", "--out", "o", "--modle", "a"], "Unknown option: --modle. Did you mean --model?"),
        (["ls", "--out", "o", "--count", "1.5"], 'unable to convert "1.5" into int'),
        (["ls", "--out", "o", "--share", "nan"], 'unable to convert "nan" into float'),
        (["ls", "runs", "--out", "runs"], "--out runs: this file is read"),
        (["ls", "--out", "m", "--model", "./m"], "--out m: this file is read"),
        (["ls", "--out", "m", "--map", "m"], ": this file is read, or written by another option"),
        (["ls", "--out", "link", "--model", "file"], "--out link: this file is read"),
        (["ls", "--out", "file", "--model", "a,file"], "--out file: this file is read"),
        (["ls", "--out", "file", "--names", "x", "--names", "file"], "--out file: this file is read"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, words, message):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OptionError) as found:
        call(sample, "sample", words)
    assert message in str(found.value)
    assert "\n" not in str(found.value)
    assert calls == []


def test_unknown_options_are_handed_on():
    words = ["--config", "c.yaml", "--out", "o", "--trainer.max_epochs=1", "--quick", "--data.train", "-1"]
    call(handing_on, "handing_on", words)
    assert calls == [(("--config", "c.yaml", "--trainer.max_epochs=1", "--data.train", "-1"), "o", True)]


def test_mistakes_name_options_and_settings():
    def refusing(*rest: str, k: int = 1):
        raise OptionError("at_least", option="k", found=0, least=1)

    def lacking(*rest: str):
        raise OptionError("no_training_data")

    for command, sentence in (
        (refusing, "--k 0: must be at least 1"),
        (lacking, "no training data: give --data.train FILE"),
    ):
        with pytest.raises(OptionError) as found:
            call(command, "name", [])
        assert str(found.value) == sentence


def test_help_shows_choices_defaults_and_what_is_required_without_python_types(capsys):
    assert call(sample, "sample", ["--help"]) == 0

    shown = capsys.readouterr().out
    usage = "Usage: narrlit sample --out VALUE [OPTIONS] ACTION [FOLDER]\n\n"
    assert shown.startswith(f"{usage}Do something.\n\nMore about")
    assert "  ACTION ls|rm\n      what to do. [required]\n  FOLDER\n      where. [default: runs]\n" in shown
    assert (
        "Options:\n  --out VALUE\n      file to write. [required]\n  --count N\n      how many. [default: 3]" in shown
    )
    # Shared options come last.
    assert "      another file to write.\n  --model VALUE\n      a folder.\n" in shown
    assert "--trust-remote-code\n      run its code.\n" in shown
    assert calls == []


COMMANDS = sorted(OTHERS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_explains_each_option_without_python_types(narrlit, name):
    function = name.replace("-", "_")
    command = getattr(import_module(f"narrlit.commands.{function}"), function)
    arguments = parser(command, name).assemble_argument_collection(parse_docstring=True)
    shown = [argument for argument in arguments if argument.show]

    assert [argument.name for argument in shown if not argument.parameter.help] == []
    assert all("_" not in option for argument in shown for option in argument.names)

    found = narrlit(name, "--help")
    assert found.code == 0
    assert found.err == ""
    assert found.out.startswith(f"Usage: narrlit {name} ")
    for kind in ("Literal", "NoneType", "STR", "INT ", "FLOAT", "None]", "<class"):
        assert kind not in found.out


def test_parameters_of_the_library_become_options(narrlit, make):
    make("s.csv", "plot,summary\nA king.,k\n")
    embed = ["embed", "s.csv", "--model", "minilm", "--out", "v.npy"]
    for options, message in (
        ([], "choose one, such as --text-column plot"),
        (["--text-column", "story"], "give --text-column one of these"),
        (
            ["--text-column", "plot", "--split", "blank-lines"],
            "--split blank-lines divides text files, and s.csv is none",
        ),
        (["--text-column", "plot", "--fit-on", "s.csv"], "--fit-on and --transductive need --postprocess"),
    ):
        found = narrlit(*embed, *options)
        assert found.code == 2, found.err
        assert message in found.err, found.err
        assert "`" not in found.err, found.err


def test_every_file_of_commands_is_a_command():
    files = {path.stem for path in Path(narrlit.commands.__file__).parent.glob("*.py")}
    assert {name.replace("-", "_") for name in OTHERS} <= files
    assert set(ALIASES.values()) <= set(OTHERS)
    assert not set(OTHERS) & set(TRAINING)
