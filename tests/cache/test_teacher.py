"""A teacher's vectors are those that the encoder makes, story by story and role by role."""

import pytest
import torch
from tiny_models import world_texts

from narrlit.data.tokens import TokenTable
from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.stores import teacher
from narrlit.stores.teacher import TeacherVectors, fill, teacher_keys
from narrlit.stores.vectors import VectorStore

TEXTS = world_texts()[:9]


def made(encoder, folder, dtype="float32"):
    prompts = {role: encoder.prompt(role) for role in ("anchor", "candidate")}
    same = len(set(prompts.values())) == 1
    tokens = TokenTable(TEXTS, encoder.tokenize, symmetric=same)
    keys = teacher_keys({"model": "m"}, prompts, TEXTS)
    store = VectorStore(folder, dtype)
    fill(store, keys, encoder, tokens, progress=False)
    return TeacherVectors(store.vectors(keys), 0 if same else len(TEXTS))


@pytest.mark.parametrize("kind", ["bert", "qwen3"])
@pytest.mark.parametrize("prompts", [Prompts(), Prompts(anchor="query: ", candidate="passage: ")])
def test_every_story_in_each_role(tiny, tmp_path, monkeypatch, kind, prompts):
    monkeypatch.setattr(teacher, "STORIES_A_SHARD", 4)
    encoder = Encoder(EncoderConfig(tiny(kind), prompts=prompts, token_budget=200)).eval()
    found = made(encoder, tmp_path)
    rows = torch.tensor([[4, 0], [8, 4]])
    for role in ("anchor", "candidate"):
        expected, _ = embed(encoder, TEXTS, role, progress=False)
        assert torch.allclose(found.of(rows, role), torch.from_numpy(expected)[rows], atol=1e-6)
    apart = (found.of(rows, "anchor") - found.of(rows, "candidate")).abs().max() > 1e-3
    assert apart == (prompts.anchor is not None)
    assert len(list(tmp_path.iterdir())) == (3 if prompts.anchor is None else 5)


def test_half_precision_vectors_are_units_again(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    found = made(encoder, tmp_path, "float16")
    assert found.table.dtype == torch.float16
    lengths = found.of(torch.arange(9), "anchor").norm(dim=1)
    assert torch.allclose(lengths, torch.ones(9), atol=1e-6)


def test_only_what_is_missing_is_embedded(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(teacher, "STORIES_A_SHARD", 4)
    encoder = Encoder(EncoderConfig(tiny())).eval()
    whole = made(encoder, tmp_path)
    shards = sorted(tmp_path.iterdir())
    shards[1].unlink()
    embedded = []
    real = teacher.embed_places
    monkeypatch.setattr(teacher, "embed_places", lambda *a: embedded.extend(a[2]) or real(*a))
    again = made(encoder, tmp_path)
    assert 0 < len(embedded) <= 4
    assert torch.equal(again.table, whole.table) or torch.allclose(again.table, whole.table, atol=1e-6)
    embedded.clear()
    made(encoder, tmp_path)
    assert embedded == []


def test_a_half_precision_default_changes_nothing(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    whole = made(encoder, tmp_path / "a")
    torch.set_default_dtype(torch.bfloat16)  # as trainers do within a step where all is bfloat16
    try:
        found = made(encoder, tmp_path / "b")
    finally:
        torch.set_default_dtype(torch.float32)
    assert found.table.dtype == torch.float32
    assert torch.allclose(found.table, whole.table, atol=1e-2)


def test_a_broken_teacher_is_refused(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    with torch.no_grad():
        next(encoder.parameters()).fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        made(encoder, tmp_path)
