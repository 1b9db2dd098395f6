"""Where the server, the model and the key come from; the key is told to nobody."""

import os

import pytest

from narrlit.errors import OptionError
from narrlit.llm.options import LLMOptions

KEY = "sk-Tr0ub4dor-and-3"
NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "NARRLIT_LLM_MODEL")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("concurrency", 0),
        ("requests_per_minute", 0),
        ("tokens_per_minute", -1),
        ("retries", -1),
        ("timeout", 0),
        ("timeout", float("inf")),
        ("price_in", -0.1),
        ("price_out", float("nan")),
        ("api_key_variable", KEY),
        ("leave_out", "temperature,top_k"),
    ],
)
def test_options_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(OptionError, match=f"--{field}") as caught:
        LLMOptions(**{field: value})
    assert KEY not in str(caught.value)


def test_options_go_before_the_environment(monkeypatch):
    for name, value in zip(NAMES, (KEY, "http://there/v1/", "env-model"), strict=True):
        monkeypatch.setenv(name, value)
    server = LLMOptions(timeout=7).server()
    assert (server.url, server.model, server.key, server.timeout) == ("http://there/v1", "env-model", KEY, 7)
    server = LLMOptions(llm="http://here/v1", llm_model="given", api_key="other-key").server()
    assert (server.url, server.model, server.key) == ("http://here/v1", "given", "other-key")


def test_a_key_comes_from_the_first_of_option_file_and_environment(monkeypatch, tmp_path):
    file = tmp_path / "key"
    file.write_text(f" {KEY}-file \nnotes\n")
    monkeypatch.setenv("MINE", f"{KEY}-env")
    assert LLMOptions(api_key=KEY, api_key_file=str(file), api_key_variable="MINE").key() == KEY
    assert LLMOptions(api_key_file=str(file), api_key_variable="MINE").key() == f"{KEY}-file"
    assert LLMOptions(api_key_variable="MINE").key() == f"{KEY}-env"
    assert LLMOptions().key() is None


def test_the_keys_file_may_be_a_pipe(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, f"{KEY}\n".encode())
    os.close(writing)
    options = LLMOptions(llm="http://here/v1", llm_model="m", api_key_file=f"/dev/fd/{reading}")
    assert options.server().key == KEY
    os.close(reading)


@pytest.mark.parametrize(("text", "said"), [(None, "No such file"), ("\n", "empty"), ("two words", "spaces")])
def test_a_keys_file_without_a_key_is_refused(tmp_path, text, said):
    if text is not None:
        (tmp_path / "key").write_text(text)
    with pytest.raises(OptionError, match=said) as caught:
        LLMOptions(api_key_file=str(tmp_path / "key")).key()
    assert "two words" not in str(caught.value)


def test_what_is_missing_is_told_with_the_option_that_gives_it():
    with pytest.raises(OptionError, match=r"--llm URL.*OPENAI_BASE_URL"):
        LLMOptions().url()
    with pytest.raises(OptionError, match=r"--llm_model NAME.*NARRLIT_LLM_MODEL"):
        LLMOptions().model()
    with pytest.raises(OptionError, match="http://"):
        LLMOptions(llm="localhost:8000").url()
    with pytest.raises(OptionError, match="password"):
        LLMOptions(llm=f"http://me:{KEY}@host/v1").url()


def test_neither_what_is_printed_nor_what_is_recorded_holds_the_key():
    options = LLMOptions(llm="http://here/v1", llm_model="m", api_key=KEY)
    assert KEY not in f"{options!r} {options.told()} {options.server()!r}"
    assert options.told()["llm"] == "http://here/v1"
    assert "concurrency" in options.told()


def test_parameters_to_leave_out():
    assert LLMOptions(leave_out=" temperature, seed ").left_out == ["temperature", "seed"]
    assert LLMOptions().left_out == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"price_in": 1.0}, "give both or none"),
        ({"price_out": 1.0}, "give both or none"),
        ({"transport": "batch", "concurrency": 3}, "no use with --transport batch"),
        ({"transport": "batch", "tokens_per_minute": 100}, "no use with --transport batch"),
    ],
)
def test_options_without_use_are_refused(options, told):
    with pytest.raises(OptionError, match=told):
        LLMOptions(**options)


def test_a_key_in_the_place_of_its_file_is_not_repeated():
    with pytest.raises(OptionError, match="--api_key_file") as refused:
        LLMOptions(llm="http://h/v1", llm_model="m", api_key_file="sk-my-own-key-1234").key()
    assert "1234" not in str(refused.value)
