"""Commands from functions: options and help from signatures and docstrings, and refusals in one line."""

import re
from inspect import Parameter

import declared
import pytest
from declared import Shared
from refusals import refused

from narrlit import arguments
from narrlit.arguments import options_of
from narrlit.command_line import call
from narrlit.commands import COMMANDS, FORMER, TRAINING
from narrlit.declarations import Command, Opener
from narrlit.signatures import entries, signature_of, summary_of

SAMPLE = Command("sample", "Test", "declared:sample")
NOT_SHARED = Shared()
HANDING_ON = Command("handing-on", "Test", "declared:handing_on")


@pytest.fixture(autouse=True)
def nothing_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(arguments.OPENERS, "Encoder", Opener("declared:opened", "Model"))
    declared.calls.clear()


def values(
    action="ls", folder="runs", encoder=None, shared=NOT_SHARED, count=3, share=0.5, names=(), seeds=None, **others
):
    return (action, folder, encoder, shared, "o", count, share, names, seeds, others.get("map"), True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ls", "--out", "o"], values()),
        (["rm", "f", "--out=o", "--model=m"], values("rm", "f", "opened m False")),
        (["ls", "--model", "m", "--out", "o", "--long"], values(encoder="opened m True")),
        (
            ["--trust_remote_code", "--count", "-1", "ls", "--out", "o", "--share", "-1e-3"],
            values(shared=Shared(True), count=-1, share=-0.001),
        ),
        (
            ["ls", "--out", "o", "--names", "a, b,", "--trust_remote_code"],
            values(shared=Shared(True), names=["a", "b"]),
        ),
        (["ls", "--out", "o", "--seeds", "1,2"], values(seeds=[1, 2])),
    ],
)
def test_arguments_become_parameters(words, expected):
    assert call(SAMPLE, words) == (4 if "rm" in words else 0)
    assert declared.calls == [expected]


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
    ],
)
def test_words_that_do_not_fit_are_refused(words, message):
    with refused("invalid_arguments") as found:
        call(SAMPLE, words)
    assert message in found.value.values["problem"]
    assert declared.calls == []


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "runs", "--out", "runs"],
        ["ls", "--out", "m", "--model", "./m"],
        ["ls", "--out", "m", "--map", "m"],
        ["ls", "--out", "link", "--model", "file"],
        ["ls", "--out", "file", "--model", "a,file"],
        ["ls", "--out", "file", "--names", "x,file"],
    ],
)
def test_no_output_is_an_input_or_another_output(tmp_path, words):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with refused("output_is_input"):
        call(SAMPLE, words)
    assert declared.calls == []


def test_options_of_a_model_need_a_model_and_lists_their_items():
    with refused("options_need_option", options=["long"], option="model"):
        call(SAMPLE, ["ls", "--out", "o", "--long"])
    with refused("invalid_list", option="seeds", found="1,x"):
        call(SAMPLE, ["ls", "--out", "o", "--seeds", "1,x"])
    assert declared.calls == []


def test_unknown_options_are_handed_on():
    words = ["--config", "c.yaml", "--out", "o", "--trainer.max_epochs=1", "--quick", "--data.train", "-1"]
    call(HANDING_ON, words)
    assert declared.calls == [(("--config", "c.yaml", "--trainer.max_epochs=1", "--data.train", "-1"), "o", True)]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("refusing", "--k 0: must be at least 1"),
        ("lacking", "no training data: give --data.train FILE"),
    ],
)
def test_mistakes_name_options_and_settings(name, sentence):
    with refused({"refusing": "at_least", "lacking": "no_training_data"}[name]) as found:
        call(Command(name, "Test", f"declared:{name}"), [])
    assert str(found.value) == sentence


def test_help_shows_choices_defaults_and_what_is_required_without_python_types(capsys):
    assert call(SAMPLE, ["--help"]) == 0

    shown = capsys.readouterr().out
    usage = "Usage: narrlit sample --out VALUE [OPTIONS] ACTION [FOLDER]\n\n"
    assert shown.startswith(f"{usage}Do something.\n\nMore about")
    assert "Arguments:\n  ACTION ls|rm\n      what to do. [required]\n  FOLDER\n      where. [default: runs]\n" in shown
    assert (
        "  --out VALUE\n      file to write. [required]\n  --count N\n      how many; default: all of names." in shown
    )
    assert "  --names VALUE\n      comma-separated several.\n" in shown
    assert "\nModel:\n  --model VALUE\n      a folder.\n" in shown
    assert "\nOptions of several commands:\n  --trust-remote-code\n      run its code.\n" in shown
    assert declared.calls == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_of_every_command_explains_each_option_without_python_types(narrlit, command):
    plan = options_of(command)
    assert [option.name for option in plan.options if not option.help] == []
    assert len({option.name for option in plan.options}) == len(plan.options)

    found = narrlit(*command.name.split(), "--help")
    assert found.code == 0
    assert found.err == ""
    assert found.out.startswith(f"Usage: narrlit {command.name} ")
    for kind in ("Literal", "NoneType", "STR", "INT ", "FLOAT", "None]", "None:", "<class", "`"):
        assert kind not in found.out.partition("\n\n")[2].partition("Options:")[2]


def test_the_signature_of_a_function_is_read_without_its_module():
    signature = signature_of("narrlit.library.search:search")
    arguments = {argument.name: argument for argument in signature.arguments}
    assert arguments["k"].default == 10
    assert arguments["k"].type_names == {"int"}
    assert arguments["index"].default is Parameter.empty
    assert signature.helps["k"]
    assert summary_of("narrlit.library.search:search") == re.split(r"\.\s", signature.docstring)[0].replace("\n", " ")


def test_entries_of_a_docstring_end_with_its_section():
    text = "Do.\n\nArgs:\n    a: first\n        of all, b: too.\n\n    *c: second.\n\nReturns:\n    d: none."
    assert entries(text, "Args") == {"a": "first of all, b: too.", "c": "second."}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "choose one, such as --text-column plot"),
        (["--text-column", "story"], "give --text-column one of these"),
        (["--text-column", "plot", "--fit-on", "s.csv"], "--fit-on and --transductive need --postprocess"),
    ],
)
def test_parameters_of_the_library_become_options(narrlit, make, words, message):
    make("s.csv", "plot,summary\nA king.,k\n")
    found = narrlit("embed", "s.csv", "--model", "minilm", "--out", "v.npy", *words)
    assert found.code == 2, found.err
    assert message in found.err, found.err
    assert "`" not in found.err, found.err


def test_former_commands_are_commands_by_another_name(narrlit):
    names = {command.name for command in COMMANDS}
    assert len(names) == len(COMMANDS)
    assert set(FORMER.values()) <= names
    assert not set(FORMER) & (names | set(TRAINING))

    found = narrlit("sample", "tales")
    assert found.code == 0
    assert "narrlit sample is narrlit data sample now" in found.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(narrlit, shell):
    found = narrlit("--completion", shell)
    assert found.code == 0
    for word in ("compare", "check-pairs", "storyworld", "baselines"):
        assert word in found.out

    assert narrlit("--completion", "csh").code == 2
