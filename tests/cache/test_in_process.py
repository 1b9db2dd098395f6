"""vLLM in this process, by a module of the same interface that computes next to nothing."""

import sys
import weakref
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from embedding_server import hashed_vector

from narrlit.errors import MissingExtraError, ModelError
from narrlit.stores.in_process import InProcess

TEXTS = ["a knight rides", "a diver dives deep", "an old man walks home alone"]
LIMIT = 4
"""Tokens that the model reads by itself."""


class FakeLLM:
    """The part of vllm.LLM that is used; a text's tokens are its letters, its vector depends on them."""

    made: ClassVar[list] = []
    fault: Exception | None = None

    def __init__(self, **arguments):
        if isinstance(self.fault, OSError):  # as for a model that can't be found
            raise self.fault
        self.made.append(weakref.ref(self))
        self.arguments = arguments
        self.itself = self  # engines hold on to themselves as well
        self.prompts = []
        length = arguments["max_model_len"] or LIMIT
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=length))

    def get_tokenizer(self):
        def tokenizer(texts, truncation, max_length):
            assert truncation
            return {"input_ids": [[ord(letter) for letter in text][:max_length] for text in texts]}

        return tokenizer

    def embed(self, prompts, *, use_tqdm=True):
        if self.fault is not None:
            raise self.fault
        self.prompts.append(prompts)
        ids = [prompt["prompt_token_ids"] for prompt in prompts]
        return [SimpleNamespace(outputs=SimpleNamespace(embedding=hashed_vector(str(one)))) for one in ids]


@pytest.fixture
def vllm(monkeypatch):
    module = ModuleType("vllm")
    module.LLM = FakeLLM
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr(FakeLLM, "made", [])
    return module


def source(max_length=None):
    return InProcess("org/model", "abc", "bfloat16", max_length, False)


def vectors_of(texts, length):
    return np.array([hashed_vector(str([ord(x) for x in text][:length])) for text in texts], dtype=np.float32)


def test_vectors_come_in_order_and_the_model_is_loaded_once_with_what_was_asked(vllm):
    embed, done = source(max_length=9), []
    assert FakeLLM.made == []
    found = embed(TEXTS, on_done=done.append)
    assert found.dtype == np.float32
    assert np.array_equal(found, vectors_of(TEXTS, 9))
    assert np.array_equal(embed(TEXTS[::-1]), found[::-1])
    assert done == [3]
    (made,) = FakeLLM.made
    assert made().arguments == {
        "model": "org/model",
        "revision": "abc",
        "tokenizer_revision": "abc",
        "dtype": "bfloat16",
        "max_model_len": 9,
        "trust_remote_code": False,
        "runner": "pooling",
    }


def test_long_texts_are_cut_at_what_the_model_reads(vllm):
    embed = source()
    assert np.array_equal(embed(TEXTS), vectors_of(TEXTS, LIMIT))
    assert [len(prompt["prompt_token_ids"]) for prompt in FakeLLM.made[0]().prompts[0]] == [LIMIT] * 3


def test_no_text_loads_nothing(vllm):
    assert source()([]).shape == (0, 0)
    assert FakeLLM.made == []


def test_a_closed_source_lets_its_model_go_and_loads_it_again(vllm):
    embed = source()
    found = embed(TEXTS)
    embed.close()
    assert FakeLLM.made[0]() is None
    assert np.array_equal(embed(TEXTS), found)
    assert len(FakeLLM.made) == 2


@pytest.mark.parametrize("fault", [OSError("no such model\nlong tail"), ValueError("no such model"), RuntimeError()])
def test_what_vllm_refuses_is_told_in_a_line(vllm, monkeypatch, fault):
    monkeypatch.setattr(FakeLLM, "fault", fault)
    said = "no such model" if str(fault) else "RuntimeError"
    with pytest.raises(ModelError, match=rf"org/model \({said}\)"):
        source()(TEXTS)


def test_vectors_are_checked(vllm, monkeypatch):
    whole = FakeLLM.embed
    monkeypatch.setattr(FakeLLM, "embed", lambda self, prompts, use_tqdm: whole(self, prompts)[1:])
    with pytest.raises(ModelError, match="org/model answered 2 vectors for 3 texts"):
        source()(TEXTS)
    broken = SimpleNamespace(outputs=SimpleNamespace(embedding=[1.0, float("nan")]))
    monkeypatch.setattr(FakeLLM, "embed", lambda self, prompts, use_tqdm: [broken] * 3)
    with pytest.raises(ModelError, match="vector 0 holds numbers that are not finite"):
        source()(TEXTS)


def test_without_vllm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError, match=r"narrlit\[vllm\]"):
        source()
