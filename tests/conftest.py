"""Tiny models of the real classes, made on the spot, and the command line as a function."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# One thread, here and in the processes that tests start: sums are divided among threads, so that a different number
# changes the last bits, and two processes with two threads each take ten times as long.
os.environ["OMP_NUM_THREADS"] = "1"
# No GPU unless `make test-gpu` asks for it: tests compare floats of the CPU, and fork, which CUDA does not survive.
if not os.environ.get("NARRLIT_TEST_GPU"):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import gc
import random
from dataclasses import dataclass

import hypothesis
import numpy as np
import pytest
import torch
from json_files import to_json_lines, write_json_lines
from llm_server import llm_server

from narrlit.cli import main
from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_examples, synthetic_triples
from narrlit.data.writers import write_examples, write_triples
from narrlit.errors import NarrlitError, mistake_behind

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
    return [file for file in (yield) if type(file) is pytest.Module]


def pytest_collection_finish():
    """Leave the libraries out of garbage collections: experiments make one after every fit."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def exported_encoders(tmp_path_factory):
    """No encoder is exported for searches, which takes seconds, and none of the user's cache is read.

    test_prepared_search.py exports some. Processes that tests start export to a folder of this session.
    """
    os.environ["NARRLIT_CACHE"] = str(tmp_path_factory.mktemp("narrlit-cache"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("narrlit.encoding.exported.find_spec", lambda name: None)
        yield


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """tiny(kind, pooling): the folder of a small random sentence-transformers model; shared and read-only."""
    from tiny_models import TinyModels  # sentence-transformers takes seconds to load: not for tests without a model

    return TinyModels(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def minilm_vectors():
    """Vectors that MiniLM has computed in this session, shared by the modules that use `memoized_minilm`; read-only."""
    from memoized_encoder import MemoizedVectors  # loads transformers, as above

    return MemoizedVectors(dimension=384)


@pytest.fixture(scope="module")
def memoized_minilm(minilm_vectors):
    """MiniLM computes each text once for all modules that use this, since many tests read the same tales.

    For modules whose subject is what is done with vectors, never for those that test encoders, embedding or caches.
    """
    with minilm_vectors.replacing_forward():
        yield


@pytest.fixture
def make(tmp_path):
    """make(name, content): write a file of text, of bytes, or of rows as JSON Lines."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, list):
            content = to_json_lines(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    error: NarrlitError | None


@pytest.fixture
def narrlit(capfd, monkeypatch, tmp_path):
    """narrlit("evaluate", ...): run a command in a fresh folder; its exit code, what it printed, and its error."""
    monkeypatch.chdir(tmp_path)
    errors = []

    def note(error):
        errors.append(mistake_behind(error))
        return errors[-1]

    monkeypatch.setattr("narrlit.cli.mistake_behind", note)

    def run(*arguments):
        capfd.readouterr()
        errors.clear()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:  # jsonargparse's way to refuse arguments
            code = stopped.code
        printed = capfd.readouterr()
        return Outcome(code or 0, printed.out, printed.err, errors[0] if errors else None)

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
    write_json_lines(folder / "stories.jsonl", rows)
    return folder


@pytest.fixture
def llm(monkeypatch):
    """Server of a language model with valid replies until the test sets otherwise; the client retries at once."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "NARRLIT_LLM_MODEL", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr("narrlit.llm.batch_api.QUIET_SECONDS", 0.02)
    monkeypatch.setattr("narrlit.llm.batch_api.POLL_SECONDS", 0.001)
    with llm_server() as running:
        yield running
