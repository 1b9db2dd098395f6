"""Errors: the catalog of their sentences, how options are written, and what is quoted from a library's message."""

import ast
import pickle
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import torch
from refusals import names_in, refused

import narrlit
from narrlit.command_line import setting_flag
from narrlit.english import SENTENCES
from narrlit.errors import DataError, ModelError, OptionError, reading, sentence

SOURCE = Path(narrlit.__file__).parent
OF_READING = {"path", "reason"}
"""Values that `reading` and `read_json` add."""
RAISED = {
    **dict.fromkeys(("DataError", "ModelError", "NarrlitError", "OptionError"), (0, set())),
    **dict.fromkeys(("DivergedError", "NewerRecordError"), (0, set())),
    "MissingExtraError": (0, set()),
    "ReadingNote.of": (0, set()),
    "reading": (0, OF_READING),
    "read_json": (2, OF_READING),
    "self._error": (0, {"server"}),
}
"""Calls with a code: position of the code, and the values that the called function adds."""


def parsed_modules():
    """(path, tree) of every module but the catalog."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "english.py":
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def calls_with_code():
    """(place, argument of the code, names of the values) of every call that makes an error or a note."""
    for path, tree in parsed_modules():
        for call in ast.walk(tree):
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else None
            if name not in RAISED:
                continue
            position, added = RAISED[name]
            if len(call.args) > position:
                values = {keyword.arg for keyword in call.keywords if not (added and keyword.arg == "error")}
                yield path, call, call.args[position], values | added


def test_every_code_is_used():
    used = set()
    for _, tree in parsed_modules():
        used |= {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    assert SENTENCES.keys() <= used


def test_every_error_names_the_values_of_its_sentence_and_no_others():
    wrong = []
    for path, call, code, values in calls_with_code():
        options = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
        for option in options:
            is_code = isinstance(option, ast.Constant) and option.value in SENTENCES
            if is_code and None not in values and names_in(SENTENCES[option.value]) != values:
                wrong.append(f"{path}:{call.lineno}: {option.value}")
    assert not wrong


def test_every_error_has_a_code():
    plain = []
    for path, call, code, _ in calls_with_code():
        is_plain = isinstance(code, ast.JoinedStr) or (isinstance(code, ast.Constant) and code.value not in SENTENCES)
        if is_plain:
            plain.append(f"{path}:{call.lineno}")
    assert not plain


def test_no_two_codes_have_the_same_sentence():
    assert [text for text, times in Counter(SENTENCES.values()).items() if times > 1] == []


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_one_line_without_a_full_stop_at_its_end(code):
    text = SENTENCES[code]
    assert text.isprintable()
    assert text == text.strip()
    assert not text.endswith(".")


def test_the_words_of_the_catalog_are_spelled_right():
    pytest.importorskip("codespell_lib")
    checked = subprocess.run(
        [sys.executable, "-m", "codespell_lib", SOURCE / "english.py"], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_an_error_has_a_code_and_values_and_its_sentence_shows_them_on_one_line():
    error = DataError("missing_column", path="a\nb.csv", column="t", found=["x", "y"], option="text_column")
    assert (error.code, error.values["column"]) == ("missing_column", "t")
    assert str(error) == 'a b.csv: column "t" is missing; found: x, y; give `text_column` one of these'
    assert error.options == ["text_column"]


def test_options_are_written_as_the_library_or_the_command_line_writes_them():
    error = OptionError("no_training_data")
    assert str(error) == "no training data: give `data.train=FILE`"
    error.write_option = setting_flag
    assert str(error) == "no training data: give --data.train FILE"


def test_an_error_in_another_error_writes_its_options_likewise():
    error = DataError("map_does_not_fit", path="a", line=1, problem=OptionError("no_training_data"))
    error.write_option = setting_flag
    assert str(error) == "a:1: no training data: give --data.train FILE; give the map of this file"


def test_what_a_value_quotes_is_no_option():
    assert sentence(
        "unknown_file_type", {"path": "`k=1`", "suffix": "", "known": []}, partial(setting_flag)
    ).startswith("`k=1`:")


def test_an_error_from_another_process_is_the_same():
    error = pickle.loads(pickle.dumps(DataError("no_rows", path="a.csv")))
    assert (type(error), error.code, str(error)) == (DataError, "no_rows", str(DataError("no_rows", path="a.csv")))


def test_reading_converts_an_exception_to_an_error_with_the_reason():
    with (
        refused("broken_workbook", path="a.xlsx", reason="no such file or directory"),
        reading("broken_workbook", "a.xlsx"),
    ):
        Path("/nowhere/a.xlsx").read_bytes()


def test_reading_passes_an_error_unchanged():
    with refused("no_rows"), reading("broken_workbook", "a.xlsx"):
        raise DataError("no_rows", path="a.xlsx")


class Unsafe:
    """An object that does not belong in a file of weights."""


def test_advice_to_run_what_is_in_a_file_is_left_out(tmp_path):
    torch.save({"weight": Unsafe()}, tmp_path / "model.bin")
    with refused("broken_exported_model") as caught, reading("broken_exported_model", "a/model.bin", error=ModelError):
        torch.load(tmp_path / "model.bin", weights_only=True)
    assert "weights_only" in str(caught.value.__cause__)

    message = str(caught.value)
    assert message.startswith("model a/model.bin: Weights only load failed. ")
    assert "Unsupported global" in message
    assert not [word for word in ("weights_only", "torch.load", "arbitrary code", "trusted") if word in message]
    assert message.endswith("; export it again")


def test_advice_to_trust_code_is_left_out_and_the_cause_stays():
    reason = "The repository m contains custom code which must be executed to correctly load the model."
    with refused("unloadable_model", reason=reason), reading("unloadable_model", "m", error=ModelError):
        raise ValueError(f"{reason}\nPlease pass the argument `trust_remote_code=True` to allow custom code to be run.")


def test_a_message_of_advice_alone_becomes_the_name_of_the_error():
    with refused("unloadable_model", reason="ValueError"), reading("unloadable_model", "m", error=ModelError):
        raise ValueError("Pass trust_remote_code=True.")
