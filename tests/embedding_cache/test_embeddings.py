"""Cached embeddings of a frozen encoder: loaded only when needed, equal from a server, never mixed with other ones."""

import json
import sys
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from embedding_server import embedding_server, hashed_vector, wrong_order
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiny_models import world_texts

from narrlit.embedding_cache import sources
from narrlit.embedding_cache.embeddings import CachedEmbeddings, FrozenFeatures, frozen_features
from narrlit.embedding_cache.server import ServerOptions
from narrlit.embedding_cache.sources import VLLM, EmbeddingSource
from narrlit.embedding_cache.storage import MappedEmbeddings
from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import Coverage, Embeddings, embed_stories
from narrlit.models.encoder import Encoder

TEXTS = world_texts()[:20]
ROLE_PROMPTS = Prompts(anchor="query: ", candidate="passage: ")
STORIES = ["A knight rode out. She won. The end.", "One sentence only.", "A diver sank. The end."]


def embeddings_of(model, texts, role="story", **config):
    return embed_stories(Encoder(EncoderConfig(model, **config)).eval(), texts, role, progress=False).embeddings


@pytest.fixture
def cached(distinct, tmp_path):
    """cached(source, ...): the embeddings of a tiny encoder, always in the same folder."""

    def build(source="encoder", known=None, dtype="float32", model=None, **config):
        options = ServerOptions(batch_size=4, concurrency=1, max_retries=0, model="served")
        where = EmbeddingSource(str(tmp_path / "embeddings"), source, dtype, known, options)
        return CachedEmbeddings(EncoderConfig(model or distinct(), **config), where)

    return build


@pytest.fixture
def no_encoder(monkeypatch):
    """no_encoder(): from now on, whoever loads an encoder fails."""

    def refuse(config):
        raise AssertionError(f"{config.model} was loaded")

    return lambda: monkeypatch.setattr(sources, "Encoder", refuse)


@pytest.fixture
def serve(distinct):
    """serve(model): a server of that tiny encoder, which adds no prompt."""
    running = []

    def start(model=None):
        encoder = Encoder(EncoderConfig(model or distinct(), prompts=Prompts(story=""))).eval()
        running.append(
            embedding_server(vector_of=lambda text: embed_stories(encoder, [text], progress=False)[0][0].tolist())
        )
        return running[-1].__enter__()

    yield start
    for server in running:
        server.__exit__(None, None, None)


def stored(cached, texts=TEXTS, role="anchor"):
    return cached.embeddings(texts, role, progress=False)


@pytest.mark.parametrize("role", ["anchor", "candidate", "story"])
@pytest.mark.parametrize("prompts", [Prompts(), Prompts(story="story: "), ROLE_PROMPTS])
def test_embeddings_are_those_that_embed_gives(cached, distinct, role, prompts):
    found = stored(cached(prompts=prompts), [*TEXTS, TEXTS[3]], role)
    assert np.array_equal(found[20], found[3])
    assert np.abs(found[:20] - embeddings_of(distinct(), TEXTS, role, prompts=prompts)).max() < 1e-6
    other = embeddings_of(distinct(), TEXTS, role, prompts=Prompts(story="Once: "))
    assert np.abs(found[:20] - other).max() > 1e-2  # a prompt makes a difference at all


def test_settings_reach_the_encoder(cached, distinct):
    options = {"normalize": False, "max_length": 12}
    found = stored(cached(dtype="float16", **options))
    assert np.allclose(found, embeddings_of(distinct(), TEXTS, **options), rtol=1e-3, atol=1e-3)
    assert np.abs(np.linalg.norm(found, axis=1) - 1).min() > 0.1


def test_an_encoder_is_loaded_once_and_embeds_only_what_is_missing(cached, no_encoder, monkeypatch):
    loaded, given_texts = [], []
    monkeypatch.setattr(sources, "Encoder", lambda config: loaded.append(config) or Encoder(config))
    monkeypatch.setattr(
        sources,
        "embed_stories",
        lambda e, texts, *a, **b: given_texts.extend(texts) or embed_stories(e, texts, *a, **b),
    )
    first = cached()

    assert loaded == []

    whole = stored(first, TEXTS[:15])
    stored(first, TEXTS)
    assert len(loaded) == 1
    assert sorted(given_texts) == sorted(TEXTS)

    no_encoder()
    again = cached()
    assert np.array_equal(stored(again)[:15], whole)
    assert first.made == 20
    assert again.made == 0


def test_one_prompt_serves_both_roles_or_each_has_its_own(cached):
    for prompts in (Prompts(), Prompts(story="a: "), Prompts(anchor="a: ", candidate="a: ")):
        same = cached(prompts=prompts)
        assert same.symmetric
        assert same.fill(TEXTS, "anchor", progress=False) == same.fill(TEXTS, "candidate", progress=False)

    apart = cached(prompts=ROLE_PROMPTS)

    assert not apart.symmetric

    keys = {key for role in ("anchor", "candidate", "story") for key in apart.fill(TEXTS, role, progress=False)}
    assert len(keys) == 60


def test_the_memory_of_a_released_encoder_is_freed(cached, monkeypatch):
    alive = weakref.WeakSet()

    def load(config):
        encoder = Encoder(config)
        alive.add(encoder)
        return encoder

    monkeypatch.setattr(sources, "Encoder", load)
    embeddings = cached()
    stored(embeddings, TEXTS[:3])

    assert len(alive) == 1

    embeddings.release()
    assert len(alive) == 0
    assert stored(embeddings, TEXTS[:5]).shape == (5, 32)


@pytest.mark.parametrize("prompts", [Prompts(), ROLE_PROMPTS])
def test_a_server_and_the_encoder_fill_one_cache(cached, serve, no_encoder, prompts):
    server = serve()
    here = cached(prompts=prompts)
    there = cached(server.url, prompts=prompts)

    assert here.cache.folder == there.cache.folder

    mine = stored(here, TEXTS[:12], "candidate")
    whole = stored(there, TEXTS, "candidate")
    assert here.made == 12
    assert there.made == 8
    assert np.array_equal(whole[:12], mine)

    # Twelve to be compared with what is cached, in the role that is asked for, and eight that are missing.
    asked = [text for request in server.requests for text in request.body["input"]]
    assert sorted(asked) == sorted((prompts.candidate or "") + text for text in TEXTS)

    no_encoder()
    again = cached(prompts=prompts)
    assert np.array_equal(stored(again, TEXTS, "candidate"), whole)
    assert again.made == 0


def test_a_server_gives_the_embeddings_of_the_encoder_at_length_one(cached, distinct, no_encoder):
    plain = Encoder(EncoderConfig(distinct(), normalize=False, prompts=Prompts(story=""))).eval()
    expected = embeddings_of(distinct(), TEXTS, "candidate", prompts=ROLE_PROMPTS)
    no_encoder()
    with embedding_server(
        vector_of=lambda text: (3 * embed_stories(plain, [text], progress=False)[0][0]).tolist()
    ) as server:
        assert np.abs(stored(cached(server.url, prompts=ROLE_PROMPTS), role="candidate") - expected).max() < 1e-5
        for change in ({"normalize": None}, {"quantization": "nf4"}):
            with refused("source_without_quantization"):
                stored(cached(server.url, **change))


def test_a_different_model_or_order_is_detected_by_cached_embeddings(cached, serve, distinct):
    stored(cached(), TEXTS[:10])
    mixing = serve()
    mixing.alter = wrong_order

    for server in (serve(distinct(1)), mixing):
        with refused("embeddings_disagree"):
            stored(cached(server.url))
    assert len(cached().cache) == 10


def test_an_encoder_after_the_server_of_another_model_is_detected(cached, serve, distinct):
    stored(cached(serve(distinct(1)).url), TEXTS[:10])
    with refused("embeddings_disagree"):
        stored(cached())


def known_file(folder, model, texts=TEXTS[:6], **config):
    rows = zip(texts, embeddings_of(model, texts, **config).tolist(), strict=True)
    path = folder / "known.jsonl"
    path.write_text("".join(json.dumps({"text": text, "embedding": vector}) + "\n" for text, vector in rows))
    return str(path)


def test_a_different_model_is_detected_by_known_embeddings(cached, serve, distinct, tmp_path):
    known = known_file(tmp_path, distinct())
    for other in (cached(serve(distinct(1)).url, known), cached("encoder", known, model=distinct(1))):
        with refused("embeddings_disagree"):
            stored(other)
        assert len(other.cache) == 0
    assert stored(cached(serve().url, known)).shape == (20, 32)

    for content in ("{broken", '{"text": "a"}', '{"text": "a", "embedding": [1]}\n{"text": "b", "embedding": [1, 2]}'):
        (tmp_path / "known.jsonl").write_text(content)
        with refused("unreadable_embeddings", path="known.jsonl"):
            stored(cached("encoder", known, model=distinct(2)))


@pytest.mark.parametrize("source", ["https://me:secret@host:8000/v1", "htp://me:secret@host", "http://h/v1?key=secret"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(source):
    with pytest.raises(OptionError) as refused:
        EmbeddingSource(source=source)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("source", ["", "Encoder", "localhost:8000/v1", "file:///etc/passwd", "http://h:99999/v1"])
def test_invalid_sources_are_refused_by_name(source):
    with refused("not_a_url", option="embeddings.source"):
        EmbeddingSource(source=source)


class FakeLLM:
    """The part of vllm.LLM that is used; a text's tokens are its letters, its embedding depends on them."""

    def __init__(self, **arguments):
        if arguments["revision"] == "gone":
            raise OSError("no such model\nlong tail")
        self.arguments = arguments
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=arguments["max_model_len"] or 4))

    def get_tokenizer(self):
        return lambda texts, truncation, max_length: {"input_ids": [[*map(ord, text)][:max_length] for text in texts]}

    def embed(self, prompts, *, use_tqdm=True):
        ids = [prompt["prompt_token_ids"] for prompt in prompts]
        return [SimpleNamespace(outputs=SimpleNamespace(embedding=hashed_vector(str(one)))) for one in ids]


def test_vllm_gets_texts_cut_at_its_limit_and_its_faults_are_one_line(monkeypatch):
    module = ModuleType("vllm")
    module.LLM = FakeLLM
    monkeypatch.setitem(sys.modules, "vllm", module)
    for length in (None, 9):
        source = VLLM(EncoderConfig("org/model", revision="abc", dtype="bfloat16", max_length=length))
        found = source.embed(TEXTS)
        assert np.array_equal(
            found, np.float32([hashed_vector(str([*map(ord, text)][: length or 4])) for text in TEXTS])
        )
        assert np.array_equal(source.embed(TEXTS[::-1]), found[::-1])
        assert source._llm.arguments == {
            "model": "org/model",
            "revision": "abc",
            "tokenizer_revision": "abc",
            "dtype": "bfloat16",
            "max_model_len": length,
            "trust_remote_code": False,
            "runner": "pooling",
        }

    with refused("vllm_failed", path="org/model", reason="no such model long tail"):
        VLLM(EncoderConfig("org/model", revision="gone"))

    monkeypatch.setattr(FakeLLM, "embed", lambda self, prompts, use_tqdm: [])
    with refused("uneven_embeddings", embeddings=0, texts=20):
        source.embed(TEXTS)


def test_missing_vllm_is_named_only_when_it_is_needed(cached, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    stored(cached(), TEXTS[:5])
    assert stored(cached("vllm"), TEXTS[:5]).shape == (5, 32)
    with refused("missing_extra", module="vllm", commands="pip install 'narrlit[vllm]'"):
        stored(cached("vllm"))


@pytest.fixture
def hashed(tmp_path, monkeypatch):
    """hashed(prompts): embeddings that depend only on prompt and text, instead of an encoder."""

    def open_source(config, source, prompts, device):
        def embed(texts, role):
            return Embeddings(by_hand(texts, prompts[role]).numpy(), Coverage(), np.zeros((len(texts), 5)))

        return embed

    monkeypatch.setattr("narrlit.embedding_cache.embeddings.open_source", open_source)
    (tmp_path / "model").mkdir()

    def build(prompts=None):
        config = EncoderConfig(str(tmp_path / "model"), prompts=prompts or Prompts())
        return CachedEmbeddings(config, EmbeddingSource(str(tmp_path / "embeddings")))

    return build


def by_hand(texts, prompt=""):
    return torch.tensor([hashed_vector(prompt + text) for text in texts])


def test_sentences_of_a_story_are_in_order_and_embedded_once(hashed):
    cached = hashed()
    features = frozen_features(cached, [*STORIES, STORIES[0]], "sentence")
    assert features.lengths.tolist() == [3, 1, 2, 3]
    assert features.dimension == 6

    packed = features.select(np.array([2, 0]))
    assert packed.lengths == (2, 3)
    assert packed.indices.tolist() == [2, 0]
    assert torch.equal(
        packed.features, by_hand(["A diver sank.", "The end.", "A knight rode out.", "She won.", "The end."])
    )
    assert features.provenance["embeddings"] == {
        "cache": str(cached.cache.folder),
        "source": "encoder",
        "of": "sentences",
        "texts": 5,
        "made": 5,
        "truncated": 0,
    }

    whole = frozen_features(hashed(), STORIES).select(np.array([1, 2, 0]))
    assert torch.equal(whole.features, by_hand([STORIES[1], STORIES[2], STORIES[0]]))


def test_two_prompts_give_two_sets_of_positions(hashed):
    features = frozen_features(hashed(ROLE_PROMPTS), STORIES)
    indices = np.array([2, 0, -1])
    packed, (first, second) = features.pack([(indices, "anchor"), (indices, "candidate")])

    assert packed.indices.tolist() == [0, 2, 0, 2]
    assert first.tolist() == [1, 0, -1]
    assert second.tolist() == [3, 2, -1]
    assert torch.equal(packed.features[[1, 3]], torch.cat([by_hand([STORIES[2]], p) for p in ("query: ", "passage: ")]))

    one, (both, same) = frozen_features(hashed(), STORIES).pack([(indices, "anchor"), (indices, "candidate")])
    assert len(one) == 2
    assert both.tolist() == [1, 0, -1]
    assert same.tolist() == [1, 0, -1]


def test_a_story_without_a_sentence_is_named_before_anything_is_embedded(hashed):
    cached = hashed()
    with refused("no_sentence", row=2, stories=3):
        frozen_features(cached, [STORIES[0], " \n ", ""], "sentence")
    assert len(cached.cache) == 0


@settings(deadline=None)
@given(st.data())
def test_any_stories_equal_a_plain_loop(data):
    stories, roles, count = (data.draw(st.integers(1, most)) for most in (6, 2, 9))
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=stories * roles, max_size=stories * roles))
    rows = data.draw(st.lists(st.integers(0, count - 1), min_size=sum(lengths), max_size=sum(lengths)))
    vectors = torch.arange(count * 2.0).view(count, 2)
    mapped = MappedEmbeddings([vectors], np.zeros(count, dtype=np.int64), np.arange(count))
    features = FrozenFeatures(mapped, np.array(rows), np.array(lengths), stories)
    ends = np.cumsum(lengths)
    pieces = [vectors[rows[end - length : end]].tolist() for end, length in zip(ends, lengths, strict=True)]
    positions = data.draw(st.lists(st.integers(0, len(pieces) - 1), max_size=9))
    packed = features.select(np.array(positions, dtype=np.int64))

    assert packed.lengths == tuple(len(pieces[position]) for position in positions)
    assert packed.indices.tolist() == [position % stories for position in positions]
    assert packed.features.tolist() == [vector for position in positions for vector in pieces[position]]
