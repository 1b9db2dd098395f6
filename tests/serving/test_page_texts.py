"""The page's texts: every key in both languages, every key that the modules use, no other."""

import ast
import itertools
import json
import re
from pathlib import Path

import pytest
from refusals import names_in

from narrlit import serving
from narrlit.english import SENTENCES
from narrlit.pages import PAGE
from narrlit.serving.problems import HTTP_CODES

MODULES = sorted(PAGE.rglob("*.js"))
TEXTS = json.loads((PAGE / "texts.json").read_text(encoding="utf-8"))
GROUPS = sorted({key.partition(".")[0] for key in TEXTS["en"]})
KEY = re.compile(rf'"((?:{"|".join(GROUPS)})(?:\.[a-z_]+)*)"')
COUNTED = re.compile(r'counted\("([a-z_.]+)"')
TERM = re.compile(r'term\("([a-z_.]+)"')
FOR_PROGRAMS = {"invalid_request", "model_not_found", "page_not_found"}
"""Codes of refusals that the page does not cause; it shows their English message."""


def values_of_call(call):
    """The code of a message that is made in a call, and the names of its values; no code if it is none."""
    arguments = {keyword.arg: keyword.value for keyword in call.keywords}
    if getattr(call.func, "id", None) == "missing":
        return f"{call.args[0].value}_not_found", {"name"}
    if not isinstance(arguments.get("code"), ast.Constant):
        return None, set()
    values = arguments.get("values")
    return arguments["code"].value, {key.value for key in values.keys} if values else set()


def server_codes():
    """Codes of the messages that the server sends to the page, each with the names of its values."""
    codes = {code: set() for code in HTTP_CODES.values()}
    for module in Path(serving.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            code, values = values_of_call(node) if isinstance(node, ast.Call) else (None, set())
            if code is not None and code not in FOR_PROGRAMS:
                assert codes.setdefault(code, values) == values, code
    return codes


CODES = server_codes()
OF_LIBRARY = {key.split(".")[1] for key in TEXTS["en"] if key.startswith("problem.")} & SENTENCES.keys()
"""Codes of the library for which the page has texts of its own; of others it shows the English sentence."""


def keys_of_code(code, values):
    """Keys of the texts of a code; one with a number `n` has a text for 1, another for the rest."""
    key = f"problem.{code}"
    return {f"{key}.one", f"{key}.other"} if "n" in values else {key}


def used_keys():
    """Keys in the modules: those of numbers have one text for 1, another for the rest; terms have an explanation."""
    used = set()
    for module in MODULES:
        code = module.read_text(encoding="utf-8")
        of_numbers = set(COUNTED.findall(code))
        used |= {f"{key}.{form}" for key in of_numbers for form in ("one", "other")}
        used |= {f"{key}.about" for key in TERM.findall(code)}
        used |= {key for key in KEY.findall(code) if "." in key and key not in of_numbers}
    for code, values in CODES.items():
        used |= keys_of_code(code, values)
    return used | {f"problem.{code}" for code in OF_LIBRARY}


def test_both_languages_have_the_same_texts():
    assert TEXTS.keys() == {"en", "de"}
    assert TEXTS["en"].keys() == TEXTS["de"].keys()
    assert all(text.strip() for texts in TEXTS.values() for text in texts.values())


@pytest.mark.parametrize("key", TEXTS["en"])
def test_both_languages_fill_in_the_same_values(key):
    values = [set(re.findall(r"\{(\w+)\}", TEXTS[language][key])) for language in ("en", "de")]
    assert values[0] == values[1]


@pytest.mark.parametrize("code", CODES)
def test_every_message_of_the_server_has_texts_that_name_its_values(code):
    for language, key in itertools.product(TEXTS, keys_of_code(code, CODES[code])):
        places = set(re.findall(r"\{(\w+)\}", TEXTS[language][key]))
        assert places == CODES[code], (language, key)


@pytest.mark.parametrize("code", sorted(OF_LIBRARY))
def test_the_page_names_only_values_that_an_error_of_the_library_has(code):
    for language in TEXTS:
        places = set(re.findall(r"\{(\w+)\}", TEXTS[language][f"problem.{code}"]))
        assert places <= names_in(SENTENCES[code]), language


def test_codes_of_the_server_are_none_of_the_library():
    assert not CODES.keys() & SENTENCES.keys()


def test_the_modules_use_the_texts_and_no_others():
    used, known = used_keys(), set(TEXTS["en"])
    # Of stories and words in numbers there is no text under the bare key.
    assert used - known - {"stories", "words"} == set()
    assert known - used == set()


def test_the_page_has_no_inline_code_and_loads_nothing_from_elsewhere():
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    assert re.findall(r"<script[^>]*>[^<]*", page) == ['<script type="module" src="page/app.js">']

    for file in [*MODULES, PAGE / "index.html", PAGE / "style.css"]:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            file
        )


def test_every_module_that_is_imported_exists():
    for module in MODULES:
        for name in re.findall(r'from "(\.[^"]+)"', module.read_text(encoding="utf-8")):
            assert (module.parent / name).is_file(), f"{module.name}: {name}"
