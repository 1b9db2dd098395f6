"""A teacher's embeddings are those of its encoder, story by story and role by role."""

import pytest
import torch
from refusals import refused
from tiny_models import world_texts

from narrlit.data.batch import TokenizedStories
from narrlit.embedding_cache import filling, teacher
from narrlit.embedding_cache.space import EmbeddingSpace
from narrlit.embedding_cache.storage import EmbeddingCache
from narrlit.embedding_cache.teacher import TeacherEmbeddings, fill_teacher, teacher_keys
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder

TEXTS = world_texts()[:9]


@pytest.fixture(autouse=True)
def _shards_of_four(monkeypatch):
    monkeypatch.setattr(filling, "FEWEST", 4)
    monkeypatch.setattr(filling, "SECONDS_PER_SHARD", 0.0)


def filled(encoder, folder, dtype="float32", texts=TEXTS):
    prompts = {role: encoder.prompt(role) for role in ("anchor", "candidate")}
    tokens = TokenizedStories(texts, encoder.tokenize, symmetric=encoder.symmetric)
    keys = teacher_keys(EmbeddingSpace({"model": "m"}), prompts, texts)
    table = fill_teacher(EmbeddingCache(folder, dtype), keys, encoder, tokens, progress=False)
    return TeacherEmbeddings(table, 0 if encoder.symmetric else len(texts))


@pytest.mark.parametrize("kind", ["bert", "qwen3"])
@pytest.mark.parametrize("prompts", [Prompts(), Prompts(anchor="query: ", candidate="passage: ")])
def test_every_story_in_each_role(tiny, tmp_path, kind, prompts):
    encoder = Encoder(EncoderConfig(tiny(kind), prompts=prompts, token_budget=200)).eval()
    found = filled(encoder, tmp_path)
    indices = torch.tensor([[4, 0], [8, 4]])
    for role in ("anchor", "candidate"):
        expected = embed_stories(encoder, TEXTS, role, progress=False).embeddings
        assert torch.allclose(found.of(indices, role), torch.from_numpy(expected)[indices], atol=1e-6)

    apart = (found.of(indices, "anchor") - found.of(indices, "candidate")).abs().max() > 1e-3

    assert apart == (prompts.anchor is not None)
    assert len(list(tmp_path.iterdir())) == (3 if prompts.anchor is None else 5)


def test_a_text_that_occurs_twice_is_embedded_once(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    table = filled(encoder, tmp_path, texts=[*TEXTS, TEXTS[2]]).table
    assert torch.equal(table[9], table[2])
    assert len(EmbeddingCache(tmp_path)) == 9


def test_half_precision_embeddings_are_normalized_again(tiny, tmp_path):
    found = filled(Encoder(EncoderConfig(tiny())).eval(), tmp_path, "float16")
    assert found.table.dtype == torch.float16
    assert torch.allclose(found.of(torch.arange(9), "anchor").norm(dim=1), torch.ones(9), atol=1e-6)


def test_a_damaged_shard_is_embedded_again(tiny, tmp_path, capsys):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    table = filled(encoder, tmp_path).table
    path = sorted(tmp_path.iterdir())[0]
    with path.open("r+b") as file:
        file.seek(-300, 2)
        file.write(b"\xff\xff")

    assert torch.allclose(filled(encoder, tmp_path).table, table, atol=1e-6)  # batches of another composition
    assert f"{path} is damaged" in capsys.readouterr().err


def test_only_what_is_missing_is_embedded(tiny, tmp_path, monkeypatch):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    whole = filled(encoder, tmp_path)
    sorted(tmp_path.iterdir())[1].unlink()
    embedded, real = [], teacher.embed_in_step
    monkeypatch.setattr(teacher, "embed_in_step", lambda *a: embedded.extend(a[2]) or real(*a))
    again = filled(encoder, tmp_path)

    assert 0 < len(embedded) <= 4
    assert torch.allclose(again.table, whole.table, atol=1e-6)

    embedded.clear()
    filled(encoder, tmp_path)
    assert embedded == []


def test_a_half_precision_default_changes_nothing(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    whole = filled(encoder, tmp_path / "a")
    torch.set_default_dtype(torch.bfloat16)  # as trainers do within a step where all is bfloat16
    try:
        found = filled(encoder, tmp_path / "b")
    finally:
        torch.set_default_dtype(torch.float32)

    assert found.table.dtype == torch.float32
    assert torch.allclose(found.table, whole.table, atol=1e-2)


def test_a_broken_teacher_is_refused(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    with torch.no_grad():
        next(encoder.parameters()).fill_(float("nan"))
    with refused("embeddings_not_finite"):
        filled(encoder, tmp_path)
