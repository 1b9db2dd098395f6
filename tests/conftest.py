"""Tiny models of the real classes, made on the spot, and the command line as a function."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# One thread, here and in the processes that tests start: sums are divided among threads, so that another number of
# them gives other last bits, and two processes of two threads beside each other take ten times as long.
os.environ["OMP_NUM_THREADS"] = "1"

import functools
import gc
import json
import random
import weakref
from dataclasses import dataclass

import hypothesis
import numpy as np
import pytest
import torch
from _pytest.doctest import DoctestModule
from tiny_models import tiny_transformer, trained_tokenizer

from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_examples, synthetic_triples
from narrlit.data.writers import write_examples, write_triples

# With its OpenMP layer in the process, forks compute other last bits than the process itself.
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")
torch.set_num_threads(1)


# No limits of time, which a busy machine breaks. The same examples in every run, but in a run that is random anyway.
hypothesis.settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("random", hypothesis.settings.get_profile("same"), derandomize=False)


def pytest_configure(config):
    hypothesis.settings.load_profile("random" if config.pluginmanager.hasplugin("randomly") else "same")


def pytest_collection_modifyitems(config, items):
    """The longest file first, then those with slow tests: what is quick is shared at the end, and none waits long."""
    if config.pluginmanager.hasplugin("randomly"):
        return
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.name != "test_docs.py", item.path not in slow))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Every test, and each fixture made for it, draws the same numbers, whatever ran before."""
    torch.manual_seed(20)
    np.random.seed(20)
    random.seed(20)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Doctests are in the sources: to look for some in the tests would import each file of these a second time."""
    return [file for file in (yield) if not isinstance(file, DoctestModule)]


def pytest_collection_finish():
    """Leave the libraries out of garbage collections: experiments make one after every fit."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """tiny(kind, pooling): the folder of a small random sentence-transformers model of that architecture."""

    @functools.cache
    @torch.random.fork_rng(devices=[])  # which test builds it first is no matter to what the others draw
    def build(kind, pooling):
        torch.manual_seed(20)  # whatever the test that builds it has drawn before
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Normalize, Pooling, Transformer

        folder = tmp_path_factory.mktemp(f"{kind}-{pooling}")
        tokenizer = trained_tokenizer(kind)
        tiny_transformer(kind, tokenizer).save_pretrained(folder / "base")
        tokenizer.save_pretrained(folder / "base")
        transformer = Transformer(str(folder / "base"), max_seq_length=96)
        modules = [transformer, Pooling(32, pooling_mode=pooling), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
        return str(folder / "model")

    return lambda kind="bert", pooling="mean": build(kind, pooling)


@pytest.fixture(scope="session")
def minilm_vectors():
    """Vectors by settings, weights and tokens, and settings and weights by encoder: what `memoized_minilm` keeps."""
    return {}, weakref.WeakKeyDictionary()


@pytest.fixture(scope="module")
def memoized_minilm(minilm_vectors):
    """MiniLM computes each sequence of tokens once in all modules that use this: the same tales are read by many tests.

    For modules whose subject is what is done with vectors, never for those that test encoders, embedding or caches.
    """
    from narrlit.models.encoder import Encoder

    compute, (vectors, states) = Encoder.forward, minilm_vectors

    def state_of(encoder):
        """Settings and sums of weights, summed again where a weight has been changed."""
        versions = [(weight.data_ptr(), weight._version) for weight in encoder.parameters()]
        if states.get(encoder, (None,))[0] != versions:
            plain = [item for item in vars(encoder).items() if isinstance(item[1], bool | int | str | torch.dtype)]
            sums = [weight.float().sum().item() for weight in encoder.parameters()]
            states[encoder] = versions, f"{encoder.model} {plain} {sums}"
        return states[encoder][1]

    def forward(encoder, stories):
        if encoder.training or not torch.is_inference_mode_enabled() or encoder.text_dimension != 384:
            return compute(encoder, stories)
        state = state_of(encoder)
        keys = [(state, *ids.tolist()) for ids in stories.token_ids.split(list(stories.lengths))]
        missing = [place for place, key in enumerate(keys) if key not in vectors]
        if missing:
            vectors.update(
                zip((keys[place] for place in missing), compute(encoder, stories.select(missing)), strict=True)
            )
        return torch.stack([vectors[key] for key in keys])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Encoder, "forward", forward)
        yield


@pytest.fixture
def make(tmp_path):
    """make(name, content): write a file of text, of bytes, or of rows as JSON Lines."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def narrlit(capfd, monkeypatch, tmp_path):
    """narrlit("evaluate", ...): run a command in a fresh folder; its exit code and what it printed."""
    from narrlit.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capfd.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:  # jsonargparse's way to refuse arguments
            code = stopped.code
        printed = capfd.readouterr()
        return Outcome(code or 0, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def world_files(tmp_path_factory):
    """Small StoryWorld files: train.jsonl, validation.jsonl, stories.jsonl."""
    folder = tmp_path_factory.mktemp("world")
    world, stories = StoryWorld(5), StoryTable()
    train = world.triples(12, "train")
    negatives = [world.one_aspect_negatives(triple.anchor, 1) for triple in train]
    write_examples(folder / "train.jsonl", synthetic_examples(train, negatives, stories, False))
    validation = synthetic_triples(world.triples(9, "validation"), stories, False)
    write_triples(folder / "validation.jsonl", validation)
    rows = [{"text": stories[triple.anchor].text} for triple in validation]
    (folder / "stories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def llm(monkeypatch):
    """Server of a language model with valid replies until the test sets otherwise; the client retries at once."""
    from llm_server import llm_server

    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "NARRLIT_LLM_MODEL", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr("narrlit.llm.batch_api.QUIET_SECONDS", 0.02)
    monkeypatch.setattr("narrlit.llm.batch_api.POLL_SECONDS", 0.001)
    with llm_server() as running:
        yield running
