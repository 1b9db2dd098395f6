"""Options of `narrlit fit` among those of other commands."""

import pytest
from refusals import refused

from narrlit.commands.fit_words import read_fit_words
from narrlit.models.config import CONSENT, remote_code_allowed


def test_configs_and_settings_keep_their_order():
    words = [
        "-c",
        "a.yaml",
        "--data.train=x=y.jsonl",
        "--config=b.yaml",
        "--trainer.max_epochs",
        "-1",
        "--ckpt_path",
        "",
    ]
    assert read_fit_words(*words) == [
        "a.yaml",
        {"data.train": "x=y.jsonl"},
        "b.yaml",
        {"trainer.max_epochs": "-1"},
        {"ckpt_path": ""},
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["stories.csv"], "unrecognized arguments: stories.csv"),
        (["--config"], "argument --config: expected one argument"),
        (["--data.train", "--data.test", "x"], "argument --data.train: expected one argument"),
    ],
)
def test_a_word_that_is_no_option_and_an_option_without_a_value_are_refused(words, problem):
    with refused("invalid_settings", problem=problem, stage="fit"):
        read_fit_words(*words)


def test_only_the_command_line_gives_the_consent_to_remote_code(monkeypatch):
    monkeypatch.setenv(CONSENT, "")
    read_fit_words("--trust_remote_code", "true")
    assert not remote_code_allowed()
    assert read_fit_words("--trust-remote-code", "--config", "a.yaml") == ["a.yaml"]
    assert remote_code_allowed()
