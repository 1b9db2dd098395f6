"""A frozen encoder's vectors: loaded only when needed, the same from a server, and never mixed with another's."""

import sys
import weakref

import numpy as np
import pytest
import torch
from embedding_server import embedding_server, wrong_order
from tiny_models import world_texts

from narrlit.commands.embed import write_embeddings
from narrlit.errors import MissingExtraError, ModelError, OptionError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.stores import sources
from narrlit.stores.endpoint import EndpointOptions
from narrlit.stores.frozen import FrozenVectors
from narrlit.stores.sources import VectorOptions

TEXTS = world_texts()[:20]
ROLE_PROMPTS = Prompts(anchor="query: ", candidate="passage: ")


def vectors_of(model, texts, role="story", **config):
    found, _ = embed(Encoder(EncoderConfig(model, **config)).eval(), texts, role, progress=False)
    return found


@pytest.fixture
def frozen(telling, tmp_path):
    """frozen(source, ...): the vectors of a tiny encoder, always in the same folder."""

    def build(source="encoder", known=None, dtype="float32", model=None, **config):
        options = EndpointOptions(batch=4, concurrency=1, retries=0, served_model="served")
        where = VectorOptions(str(tmp_path / "stores"), source, dtype, known, options)
        return FrozenVectors(EncoderConfig(model or telling(), **config), where, torch.device("cpu"))

    return build


@pytest.fixture
def no_encoder(monkeypatch):
    """no_encoder(): from now on, whoever loads an encoder fails."""

    def refuse(config):
        raise AssertionError(f"{config.model} was loaded")

    return lambda: monkeypatch.setattr(sources, "Encoder", refuse)


@pytest.fixture
def serve(telling):
    """serve(model): a server of that tiny encoder, which knows of no prompt."""
    running = []

    def start(model=None):
        encoder = Encoder(EncoderConfig(model or telling(), prompts=Prompts(story=""))).eval()
        running.append(embedding_server(vector_of=lambda text: embed(encoder, [text], progress=False)[0][0].tolist()))
        return running[-1].__enter__()

    yield start
    for server in running:
        server.__exit__(None, None, None)


def stored(vectors, texts=TEXTS, role="anchor"):
    return vectors.store.vectors(vectors.fill(texts, role, progress=False)).float().numpy()


@pytest.mark.parametrize("role", ["anchor", "candidate", "story"])
@pytest.mark.parametrize("prompts", [Prompts(), Prompts(story="story: "), ROLE_PROMPTS])
def test_the_vectors_are_those_that_embed_makes(frozen, telling, role, prompts):
    found = stored(frozen(prompts=prompts), role=role)
    assert np.abs(found - vectors_of(telling(), TEXTS, role, prompts=prompts)).max() < 1e-6
    other = vectors_of(telling(), TEXTS, role, prompts=Prompts(story="Once: "))
    assert np.abs(found - other).max() > 1e-2  # a prompt makes a difference at all


def test_settings_reach_the_encoder(frozen, telling):
    settings = {"pooling": "cls", "normalize": False, "max_length": 12}
    found = stored(frozen(dtype="float16", **settings))
    plain = vectors_of(telling(), TEXTS, **settings)
    assert np.allclose(found, plain, rtol=1e-3, atol=1e-3)
    assert np.abs(np.linalg.norm(found, axis=1) - 1).min() > 0.1


def test_an_encoder_is_loaded_once_and_only_if_a_vector_is_missing(frozen, no_encoder, monkeypatch):
    loaded = []
    monkeypatch.setattr(sources, "Encoder", lambda config: loaded.append(config) or Encoder(config))
    first = frozen()
    assert loaded == []
    whole = stored(first)
    stored(first, TEXTS[::-1])
    assert (first.made, len(loaded)) == (20, 1)
    no_encoder()
    second = frozen()
    assert np.array_equal(stored(second, TEXTS[5:]), whole[5:])
    assert second.made == 0
    with pytest.raises(AssertionError, match="was loaded"):
        second.fill([*TEXTS, "A new story."], "anchor", progress=False)


def test_only_the_missing_texts_are_embedded(frozen, monkeypatch):
    stored(frozen(), TEXTS[:15])
    given = []
    monkeypatch.setattr(sources, "embed", lambda encoder, texts, *a, **b: given.extend(texts) or embed(encoder, texts))
    assert stored(frozen()).shape == (20, 32)
    assert sorted(given) == sorted(TEXTS[15:])


def test_one_prompt_serves_both_roles_or_each_has_its_own(frozen, telling):
    for prompts in (Prompts(), Prompts(story="a: "), Prompts(anchor="a: ", candidate="a: ")):
        same = frozen(prompts=prompts)
        assert same.symmetric
        assert same.fill(TEXTS, "anchor", progress=False) == same.fill(TEXTS, "candidate", progress=False)
    apart = frozen(prompts=ROLE_PROMPTS)
    assert not apart.symmetric
    anchors, candidates = (stored(apart, role=role) for role in ("anchor", "candidate"))
    assert apart.made == 40
    assert np.abs(anchors - vectors_of(telling(), TEXTS, "anchor", prompts=ROLE_PROMPTS)).max() < 1e-6
    assert np.abs(anchors - candidates).max() > 1e-2
    keys = {bytes(key) for role in ("anchor", "candidate", "story") for key in apart.fill(TEXTS, role, progress=False)}
    assert len(keys) == 60


def test_a_released_encoder_is_let_go_of(frozen, monkeypatch):
    alive = weakref.WeakSet()

    def load(config):
        encoder = Encoder(config)
        alive.add(encoder)
        return encoder

    monkeypatch.setattr(sources, "Encoder", load)
    vectors = frozen()
    stored(vectors, TEXTS[:3])
    assert len(alive) == 1
    vectors.release()
    assert len(alive) == 0
    assert stored(vectors, TEXTS[:5]).shape == (5, 32)


@pytest.mark.parametrize("prompts", [Prompts(), ROLE_PROMPTS])
def test_a_server_and_the_encoder_fill_one_store(frozen, serve, no_encoder, tmp_path, prompts):
    server = serve()
    here, there = frozen(prompts=prompts), frozen(server.url, prompts=prompts)
    assert here.store.folder == there.store.folder
    mine = stored(here, TEXTS[:12], "candidate")
    whole = stored(there, TEXTS, "candidate")
    assert (here.made, there.made) == (12, 8)
    assert np.array_equal(whole[:12], mine)
    # Twelve to be compared with what the store has got meanwhile, in the role that is asked for, and eight to be made.
    prompt = prompts.candidate or ""
    asked = [text for request in server.requests for text in request.body["input"]]
    assert sorted(asked) == sorted(prompt + text for text in TEXTS)
    no_encoder()
    again = frozen(prompts=prompts)
    assert again.fill(TEXTS, "candidate", progress=False) == there.fill(TEXTS, "candidate", progress=False)
    assert again.made == 0


def test_a_server_gives_the_vectors_of_the_encoder(frozen, serve, telling, no_encoder):
    no_encoder()
    found = stored(frozen(serve().url, prompts=ROLE_PROMPTS), role="candidate")
    assert np.abs(found - vectors_of(telling(), TEXTS, "candidate", prompts=ROLE_PROMPTS)).max() < 1e-5


def test_what_a_server_made_is_whole_for_the_encoder(frozen, serve, no_encoder):
    served = stored(frozen(serve().url))
    no_encoder()
    local = frozen()
    assert np.array_equal(stored(local), served)
    assert local.made == 0


def test_vectors_of_a_server_get_length_one(frozen, telling):
    plain = Encoder(EncoderConfig(telling(), normalize=False)).eval()
    with embedding_server(vector_of=lambda text: (3 * embed(plain, [text], progress=False)[0][0]).tolist()) as server:
        assert np.abs(stored(frozen(server.url)) - vectors_of(telling(), TEXTS)).max() < 1e-5
        for normalize in (False, None):
            with pytest.raises(OptionError, match=r"encoder\.normalize must be true"):
                frozen(server.url, normalize=normalize)
        with pytest.raises(OptionError, match=r"encoder\.quantization"):
            frozen(server.url, quantization="nf4")


def test_a_server_of_another_model_is_found_out_by_what_is_stored(frozen, serve, telling):
    mine = frozen()
    whole = stored(mine, TEXTS[:10])
    other = frozen(serve(telling(1)).url)
    with pytest.raises(ModelError, match=r"holds already: the vector made now of text \d+ has cosine"):
        stored(other)
    assert np.array_equal(stored(frozen(), TEXTS[:10]), whole)
    assert len(frozen().store) == 10


def test_an_encoder_that_goes_on_after_another_servers_is_found_out(frozen, serve, telling):
    with pytest.warns(UserWarning, match=r"vectors\.known"):
        stored(frozen(serve(telling(1)).url), TEXTS[:10])
    with pytest.raises(ModelError, match=r"holds already: the vector made now of text \d+ has cosine"):
        stored(frozen())


def test_a_server_that_mixes_up_its_answers_is_found_out_by_what_is_stored(frozen, serve):
    stored(frozen(), TEXTS[:10])
    server = serve()
    server.alter = wrong_order
    with pytest.raises(ModelError, match="wrong order"):
        stored(frozen(server.url))
    assert len(frozen().store) == 10


def test_stored_vectors_that_are_compared_come_from_all_over(frozen, serve, monkeypatch):
    monkeypatch.setattr("narrlit.stores.frozen.KNOWN", 4)
    stored(frozen(), TEXTS[:12])
    server = serve()
    stored(frozen(server.url))
    assert server.requests[0].body["input"] == [TEXTS[i] for i in (0, 3, 6, 9)]


def test_the_other_roles_vectors_do_not_pass_for_this_ones(frozen, serve):
    """The comparison with stored vectors is made in the role that is filled, whose prompt it needs."""
    stored(frozen(prompts=ROLE_PROMPTS), TEXTS[:10], "candidate")
    server = serve()
    assert stored(frozen(server.url, prompts=ROLE_PROMPTS), TEXTS, "anchor").shape == (20, 32)
    asked = {text for request in server.requests for text in request.body["input"]}
    assert asked == {"query: " + text for text in TEXTS}


def known_file(folder, model, texts=TEXTS[:6], **config):
    path = folder / "known.jsonl"
    write_embeddings(path, [{"text": text} for text in texts], vectors_of(model, texts, **config))
    return str(path)


def test_a_server_of_another_model_is_found_out_by_known_vectors(frozen, serve, telling, tmp_path):
    known = known_file(tmp_path, telling())
    with pytest.raises(ModelError, match=r"known\.jsonl: the vector made now of text"):
        stored(frozen(serve(telling(1)).url, known))
    with pytest.raises(ModelError, match=r"known\.jsonl: the vector made now of text"):
        stored(frozen("encoder", known, model=telling(1)))
    assert len(frozen().store) == 0


def test_known_vectors_are_compared_once_and_with_the_prompt_of_a_story(frozen, serve, telling, tmp_path):
    prompts = Prompts("story: ", "query: ", "passage: ")
    known = known_file(tmp_path, telling(), prompts=prompts)
    server = serve()
    vectors = frozen(server.url, known, prompts=prompts)
    stored(vectors, TEXTS[:12], "anchor")
    stored(vectors, TEXTS[:12], "candidate")
    asked = [text for request in server.requests for text in request.body["input"]]
    assert asked[:6] == ["story: " + text for text in TEXTS[:6]]
    assert sorted(asked[6:]) == sorted(prompt + text for prompt in ("query: ", "passage: ") for text in TEXTS[:12])


def test_vllm_where_there_is_none_is_told_with_the_command_and_only_when_it_is_needed(frozen, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    stored(frozen(), TEXTS[:5])
    assert stored(frozen("vllm"), TEXTS[:5]).shape == (5, 32)
    with pytest.raises(MissingExtraError, match=r"pip install 'narrlit\[vllm\]'"):
        stored(frozen("vllm"))


def test_a_store_of_another_dimension_is_refused(frozen, tmp_path):
    vectors = frozen()
    vectors.store.add([bytes(32)], torch.ones(1, 5))
    with pytest.raises(ModelError, match=r"vectors of 32 numbers do not fit the store .* which holds vectors of 5"):
        stored(frozen())


@pytest.mark.parametrize("source", ["https://me:secret@host:8000/v1", "htp://me:secret@host", "http://h/v1?key=secret"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(source):
    with pytest.raises(OptionError) as refused:
        VectorOptions(source=source)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("source", ["", "Encoder", "localhost:8000/v1", "file:///etc/passwd"])
def test_what_is_no_source_is_refused_by_name(source):
    with pytest.raises(OptionError, match=r"vectors\.source"):
        VectorOptions(source=source)
