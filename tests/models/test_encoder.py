"""Packed, padded and sentence-transformers' own forward pass agree, in vectors and in gradients."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from adapted_encoders import gradients, packed
from refusals import refused
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, Normalize
from tiny_models import world_texts

from narrlit.models import capabilities
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.heads import build_head
from narrlit.models.registry import load_encoder
from narrlit.models.text_tokens import token_chunks, window_bounds

KINDS = [
    ("bert", "mean"),
    ("bert", "cls"),
    ("roberta", "mean"),
    ("roberta", "cls"),
    ("qwen3", "lasttoken"),
    ("mpnet", "mean"),
]


def texts_of_many_lengths():
    texts = world_texts()
    return [texts[0][:20], *texts[1:4], "One.", texts[5][:150], *texts[6:8]]


@pytest.mark.parametrize(("kind", "pooling"), KINDS)
def test_packed_padded_and_sentence_transformers_give_the_same_embeddings(tiny, kind, pooling):
    texts = texts_of_many_lengths()
    encoder = Encoder(EncoderConfig(tiny(kind, pooling))).eval()
    unpacked = Encoder(EncoderConfig(tiny(kind, pooling), packed=False)).eval()

    assert encoder.packs is True
    assert unpacked.packs is False

    with torch.no_grad():
        ours = encoder(packed(encoder, texts))
        padded = unpacked(packed(unpacked, texts))

    theirs = unpacked.model.encode(texts, convert_to_tensor=True, batch_size=3)

    assert torch.allclose(ours, theirs, atol=1e-5)
    assert torch.allclose(padded, theirs, atol=1e-5)
    assert (ours[0] - ours[1]).abs().max() > 1e-3  # the texts are told apart at all


@pytest.mark.parametrize(("kind", "pooling"), KINDS)
def test_packed_and_padded_give_the_same_gradients(tiny, kind, pooling):
    ours, theirs = (
        gradients(Encoder(EncoderConfig(tiny(kind, pooling), packed=packs, dropout=0.0)), texts_of_many_lengths())
        for packs in (True, False)
    )

    assert ours.keys() == theirs.keys()
    assert len(ours) > 20
    for name in ours:
        assert torch.allclose(ours[name], theirs[name], atol=1e-4), name
    assert sum(g.abs().sum() for g in ours.values()) > 1


def test_gradients_equal_sentence_transformers_own(tiny):
    texts = texts_of_many_lengths()
    encoder = Encoder(EncoderConfig(tiny("bert"), dropout=0.0)).train()
    encoder(packed(encoder, texts)).square().mul(torch.arange(32)).sum().backward()
    ours = {n: p.grad.clone() for n, p in encoder.named_parameters() if p.grad is not None}
    encoder.zero_grad()
    features = encoder.model.preprocess(texts)
    encoder.model(features)["sentence_embedding"].square().mul(torch.arange(32)).sum().backward()

    assert all(torch.allclose(p.grad, ours[n], atol=1e-4) for n, p in encoder.named_parameters() if n in ours)


def test_the_token_budget_does_not_change_embeddings_or_gradients(tiny):
    texts = texts_of_many_lengths()
    for kind in ("bert", "mpnet"):
        whole, cut = (
            Encoder(EncoderConfig(tiny(kind), packed=kind == "bert", token_budget=budget)).eval()
            for budget in (10**6, 100)
        )
        with torch.no_grad():
            assert torch.allclose(whole(packed(whole, texts)), cut(packed(cut, texts)), atol=1e-6)


def test_normalization_is_the_last_module_or_absent(tiny):
    texts = world_texts()[:3]
    for wanted, count in ((True, 1), (None, 1), (False, 0)):
        encoder = Encoder(EncoderConfig(tiny("bert"), normalize=wanted)).eval()
        assert sum(isinstance(module, Normalize) for module in encoder.model) == count
        assert encoder.normalized == bool(count)
        with torch.no_grad():
            lengths = encoder(packed(encoder, texts)).norm(dim=1)
        assert torch.allclose(lengths, torch.ones(3), atol=1e-5) == bool(count)


def test_dropout_is_applied_in_training_only(tiny):
    texts = world_texts()[:2]
    for kind, pooling in (("bert", "mean"), ("qwen3", "lasttoken")):
        for probability in (0.3, 0.0):
            encoder = Encoder(EncoderConfig(tiny(kind, pooling), dropout=probability)).train()
            batch = packed(encoder, texts)
            torch.manual_seed(1)
            one = encoder(batch)
            torch.manual_seed(2)
            assert torch.allclose(one, encoder(batch), atol=1e-6) == (probability == 0)

    encoder.eval()

    assert torch.allclose(encoder(batch), encoder(batch))


def cosines(vectors):
    return np.corrcoef(vectors.astype(np.float64))


@pytest.mark.parametrize(("kind", "pooling"), KINDS)
@pytest.mark.parametrize("packs", [True, False])
def test_bfloat16_changes_only_linear_layers_and_embeddings_slightly(tiny, monkeypatch, kind, pooling, packs):
    monkeypatch.setattr(capabilities, "has_bf16", lambda device: True)  # without it as exact, only slow
    config = EncoderConfig(tiny(kind, pooling), packed=packs)
    texts = texts_of_many_lengths()
    exact = embed_stories(Encoder(config).eval(), texts, progress=False).embeddings
    encoder = Encoder(config).eval().cast("bf16")
    found = embed_stories(encoder, texts, progress=False).embeddings

    assert found.dtype == np.float32
    assert np.abs(cosines(found) - cosines(exact)).max() < 6e-3
    assert np.abs(found - exact).max() > 1e-5
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)  # not normalized in bfloat16

    linear = {module.weight.dtype for module in encoder.modules() if isinstance(module, torch.nn.Linear)}
    assert linear == {torch.bfloat16}
    assert encoder.transformer.get_input_embeddings().weight.dtype == torch.float32


def test_a_model_in_bfloat16_can_be_cast_to_float32(tiny):
    assert {parameter.dtype for parameter in load_encoder(tiny("bert")).parameters()} == {torch.float32}
    half = Encoder(EncoderConfig(tiny("bert"), dtype="bfloat16"))
    assert half(packed(half, ["A text."])).dtype == torch.float32  # pooled and normalized so
    assert {parameter.dtype for parameter in half.cast("fp32").parameters()} == {torch.float32}


def test_heads_work_on_a_model_in_bfloat16(tiny, tmp_path, monkeypatch):
    theirs = SentenceTransformer(tiny("bert", "cls"), device="cpu")
    theirs.insert(2, Dense(32, 32))
    theirs.save(str(tmp_path / "dense"))
    texts = world_texts()[:4]
    monkeypatch.setattr(capabilities, "has_bf16", lambda device: True)
    found = []
    for precision in ("fp32", "bf16"):
        encoder = load_encoder(str(tmp_path / "dense"))
        torch.manual_seed(0)
        encoder.attach(build_head("bilstm", 32, hidden=8, output=16))
        encoder.postprocess(Dense(16, 8))
        torch.nn.init.eye_(encoder.post[1].linear.weight)
        found.append(embed_stories(encoder.eval().cast(precision), texts, progress=False)[0])

    assert 1e-7 < np.abs(found[0] - found[1]).max() < 0.02


def test_prompts_depend_on_the_role(tiny):
    prompts = Prompts(story="Story: ", anchor="query: ", candidate="passage: ")
    encoder = Encoder(EncoderConfig(tiny("bert"), prompts=prompts))
    plain = Encoder(EncoderConfig(tiny("bert")))

    for role in ("story", "anchor", "candidate"):
        assert encoder.tokenize(["Abc."], role)[0] == plain.tokenize([getattr(prompts, role) + "Abc."])[0]
    with refused("prompts_by_role"):
        encoder.require_one_prompt("embed")

    plain.require_one_prompt("embed")
    Encoder(EncoderConfig(tiny("bert"), prompts=Prompts(story="Story: "))).require_one_prompt("embed")


def test_an_exported_folder_keeps_prompts_max_length_and_embeddings(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny("bert"), prompts=Prompts(story="Story: "), max_length=40)).eval()
    encoder.save(tmp_path / "out")
    again = Encoder(EncoderConfig(str(tmp_path / "out"))).eval()

    assert again.prompt("story") == "Story: "
    assert again.prompt("anchor") == "Story: "
    assert again.max_length == 40

    texts = world_texts()[:4]
    ours = embed_stories(encoder, texts, progress=False).embeddings
    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts)

    assert abs(ours - theirs).max() < 1e-6


def test_a_model_with_cls_pooling_and_a_dense_layer_keeps_both(tiny, tmp_path):
    theirs = SentenceTransformer(tiny("bert", "cls"), device="cpu")
    theirs.insert(2, Dense(32, 32))  # as LaBSE: CLS, dense layer with tanh, unit vectors
    theirs.save(str(tmp_path / "labse"))
    texts = world_texts()[:3]
    ours = embed_stories(Encoder(EncoderConfig(str(tmp_path / "labse"))).eval(), texts, progress=False).embeddings

    assert abs(ours - theirs.encode(texts)).max() < 1e-6
    with pytest.warns(UserWarning, match=r"own pooling \(cls\)"):
        Encoder(EncoderConfig(str(tmp_path / "labse"), pooling="mean"))


def test_texts_over_max_length_are_truncated_and_counted(tiny):
    encoder = Encoder(EncoderConfig(tiny("bert"), max_length=30))
    ids, cut = encoder.tokenize([world_texts()[0], "Short."])
    assert len(ids[0]) == 30
    assert cut == 1
    assert ids[0][-1] == encoder.model[0].tokenizer.convert_tokens_to_ids("[SEP]")

    theirs = encoder.model.preprocess([world_texts()[0]])["input_ids"][0].tolist()
    assert ids[0] == theirs


@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("mpnet", "mean"), ("qwen3", "lasttoken")])
def test_a_share_of_the_lower_layers_is_frozen(tiny, kind, pooling):
    encoder = Encoder(EncoderConfig(tiny(kind, pooling), frozen_layers=0.4, dropout=0.0)).train()
    encoder(packed(encoder, world_texts()[:3])).sum().mul(3).backward()
    names = [name for name, _ in encoder.named_parameters()]
    moved = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}

    def layer(number):
        part = f".layers.{number}." if kind == "qwen3" else f".layer.{number}."
        return {name for name in names if part in name}

    assert layer(0)
    assert not moved & layer(0)  # 0.4 of 3 layers, rounded down
    assert layer(1)
    assert layer(1) <= moved
    assert layer(2)
    assert layer(2) <= moved
    assert not any("embed" in name or "relative_attention" in name for name in moved)


def test_token_chunks_contain_every_text_once_within_the_budget():
    lengths = [7, 3, 9, 1, 4, 30]
    for is_padded in (True, False):
        chunks = token_chunks(lengths, 12, padded=is_padded)
        assert sorted(place for chunk in chunks for place in chunk) == list(range(6))
        for chunk in chunks:
            inside = [lengths[place] for place in chunk]
            used = max(inside) * len(inside) if is_padded else sum(inside)
            assert used <= 12 or len(chunk) == 1


@pytest.mark.parametrize(("seed", "room"), [(0, 1), (1, 7), (2, 40), (3, 256)])
def test_windows_cover_every_token_and_end_at_edges(seed, room):
    lengths = np.random.default_rng(seed).integers(0, 60, 50)
    edges = [5, *(5 + lengths.cumsum()).tolist()]
    bounds = window_bounds(edges, room)

    assert bounds[0][0] == 5
    assert bounds[-1][1] == edges[-1]
    assert all(0 < end - start <= room for start, end in bounds)

    overlaps = [before[1] - after[0] for before, after in pairwise(bounds)]
    assert min(overlaps, default=0) >= 0
    assert all(before[1] < after[1] for before, after in pairwise(bounds))

    if room > lengths.max():
        assert {place for pair in bounds for place in pair} <= set(edges)
        assert abs(np.mean(overlaps) - room / 8) < 12


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2**-23), ("float16", 2**-10), ("bfloat16", 2**-7)])
def test_the_rounding_error_is_that_of_the_actual_weights(tiny, dtype, error):
    encoder = Encoder(EncoderConfig(tiny(), dtype=dtype))
    assert encoder.rounding_error == error
    assert encoder.cast("fp32").rounding_error == 2**-23
    encoder.transformer.encoder.layer[1].output.dense.bfloat16()
    assert encoder.rounding_error == 2**-7
