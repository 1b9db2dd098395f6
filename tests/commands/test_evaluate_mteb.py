"""narrlit evaluate --mteb: options that are refused before MTEB is imported."""

import importlib.util

import pytest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evaluate", "name a file of labeled triples, or tasks of MTEB (--mteb)"),
        ("evaluate v.jsonl --model minilm --download", "--datasets and --download need --mteb"),
        ("evaluate v.jsonl --model minilm --datasets d", "--datasets and --download need --mteb"),
        ("evaluate --mteb STS12", "--mteb needs --model"),
        ("evaluate --mteb STS12 --baseline tfidf", "--mteb evaluates embeddings: leave out --baseline and --scorer"),
        ("evaluate --mteb StoryTriples --model minilm", "--mteb StoryTriples needs a file of labeled triples"),
        ("evaluate v.jsonl --mteb STS12 --model minilm", "no task of --mteb has triples; add one of StoryTriples, Sem"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(narrlit, words, message):
    found = narrlit(*words.split())

    assert found.code == 2
    assert message in found.err
    assert found.out == ""


def test_without_mteb_the_pip_command_is_given(narrlit, world_files, monkeypatch):
    real = importlib.import_module

    def missing(name, package=None):
        if name.partition(".")[0] == "mteb":
            raise ModuleNotFoundError("No module named 'mteb'", name="mteb")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    found = narrlit("evaluate", world_files / "validation.jsonl", "--model", "minilm", "--mteb", "StoryTriples")

    assert found.code != 0
    assert "mteb is not installed: pip install 'narrlit[mteb]'" in found.err
