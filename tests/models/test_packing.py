"""Packed attention on a CPU and as a GPU calls it: products, masks, windows, and every architecture's own rules."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from adapted_encoders import gradients, packed
from tiny_models import world_texts
from transformers import AutoConfig, AutoModel

from narrlit.models import packing
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.packing import AttentionOptions
from narrlit.models.pretrained import set_dropout

LENGTHS = (7, 1, 12)
HAS_FLASH = torch.__version__ >= "2.13"
needs_flash = pytest.mark.skipif(not HAS_FLASH, reason="this torch has another variable-length attention, or none")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA")


def inputs(requires_grad=False, size=8):
    generator = torch.Generator().manual_seed(1)
    shape = (1, 4, sum(LENGTHS), size)
    return tuple(torch.randn(shape, generator=generator).requires_grad_(requires_grad) for _ in range(3))


def fixed_masks(dropout):
    generator = torch.Generator().manual_seed(2)
    return {n: (torch.rand(4, n, n, generator=generator) >= dropout).float() for n in LENGTHS}


def reference(qkv, masks, dropout, scaling):
    """A story at a time, in double precision, straight from the definition."""
    outputs = []
    for q, k, v in zip(*(torch.split(x.double(), LENGTHS, dim=2) for x in qkv), strict=True):
        weights = torch.einsum("bhqe,bhke->bhqk", q, k).mul(scaling).softmax(-1)
        outputs.append(torch.einsum("bhqk,bhke->bhqe", weights * masks[q.shape[2]] / (1 - dropout), v))
    return torch.cat(outputs, dim=2)


@pytest.fixture
def sdpa_calls(monkeypatch):
    """Dropout of every call of torch's attention."""
    calls = []
    attend = F.scaled_dot_product_attention

    def noting(*args, dropout_p=0.0, **kwargs):
        calls.append(dropout_p)
        return attend(*args, dropout_p=dropout_p, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", noting)
    return calls


@pytest.fixture
def masks_drawn(monkeypatch):
    """Shape of every mask drawn."""
    shapes = []
    keep = packing._keep
    monkeypatch.setattr(packing, "_keep", lambda shape, *rest: shapes.append(tuple(shape)) or keep(shape, *rest))
    return shapes


@pytest.mark.parametrize("scaling", [None, 0.5])
def test_outputs_and_gradients_match_the_definition_with_the_same_mask(monkeypatch, scaling):
    dropout = 0.25  # exact in 16 bits
    masks = fixed_masks(dropout)
    monkeypatch.setattr(packing, "_keep", lambda shape, p, dtype: masks[shape[-1]].to(dtype))
    target = torch.randn(1, 4, sum(LENGTHS), 8, generator=torch.Generator().manual_seed(3))
    ours = inputs(requires_grad=True)
    theirs = inputs(requires_grad=True)
    found = packing._attend_each(ours, LENGTHS, AttentionOptions(scaling, dropout, causal=False))
    wanted = reference(theirs, masks, dropout, scaling or 8**-0.5)

    assert torch.allclose(found.double(), wanted, atol=1e-5)

    (found * target).sum().backward()
    (wanted * target).sum().backward()
    for own, other in zip(ours, theirs, strict=True):
        assert own.grad.abs().max() > 0.1
        assert torch.allclose(own.grad, other.grad, atol=1e-5)


@pytest.mark.parametrize("dropout", [1e-3, 0.1, 0.9])
def test_dropout_keeps_the_requested_share(dropout):
    torch.manual_seed(5)
    n = 1_000_003  # no multiple of the four that one draw serves
    kept = packing._keep(torch.Size([n]), dropout)

    assert set(kept.unique().tolist()) == {0.0, 1.0}
    assert abs(kept.mean(dtype=torch.float64) - (1 - dropout)) < 4 * math.sqrt(dropout * (1 - dropout) / n)

    # Each of the four values of a draw by itself, and each value against the next.
    for part in range(4):
        error = math.sqrt(dropout * (1 - dropout) / (n // 4))
        assert abs(kept[part::4].mean(dtype=torch.float64) - (1 - dropout)) < 4 * error

    first = kept[:-1] - kept.mean()
    second = kept[1:] - kept.mean()

    assert abs((first * second).mean(dtype=torch.float64)) < 4 * dropout * (1 - dropout) / math.sqrt(n)


def test_dropout_scales_by_the_actual_probability():
    # 1e-5 is 0.66 of a draw, 1 draw is dropped; below half a draw nothing is, and almost 1 still leaves a draw.
    assert [packing._dropped(p) for p in (1e-5, 1e-6, 0.1, 0.5, 1 - 1e-9)] == [1, 0, 6554, 32768, 65535]

    q = torch.zeros(1, 1, 1, 2)
    value = torch.ones(1, 1, 1, 2)
    torch.manual_seed(0)
    outputs = {
        float(packing._attend((q, q, value), (1,), AttentionOptions(None, 0.1, causal=False))[0, 0, 0, 0])
        for _ in range(200)
    }

    assert sorted(outputs) == pytest.approx([0, 1 / (1 - 6554 / 65536)])


def test_without_dropout_only_training_in_bfloat16_uses_matrix_products(sdpa_calls, masks_drawn):
    plain = AttentionOptions(None, 0.0, causal=False)
    exact = packing._attend_each(inputs(requires_grad=True), LENGTHS, plain)
    assert sdpa_calls == [0.0] * len(LENGTHS)

    half = [x.bfloat16() for x in inputs(requires_grad=True)]
    products = packing._attend_each(half, LENGTHS, plain)
    assert len(sdpa_calls) == len(LENGTHS)

    with torch.no_grad():
        torchs = packing._attend_each(half, LENGTHS, plain)
    assert len(sdpa_calls) == 2 * len(LENGTHS)
    assert not masks_drawn
    for found in (products, torchs):
        assert found.dtype == torch.bfloat16
        assert (found - exact).abs().max() < 0.02


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_gradients_in_bfloat16_agree_with_those_in_float32(tiny, dropout):
    encoder = Encoder(EncoderConfig(tiny("bert"), dropout=dropout))
    found = []
    for half in (False, True):
        torch.manual_seed(3)  # the same masks
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            found.append(torch.cat([g.flatten() for g in gradients(encoder, world_texts()[:6]).values()]))

    assert F.cosine_similarity(*found, dim=0) > 0.998


def test_dropout_of_hidden_states_keeps_the_mean_and_follows_the_seed():
    x = torch.randn(50_000, requires_grad=True)
    drop = packing.Dropout(0.25)
    torch.manual_seed(4)
    once = drop(x)
    torch.manual_seed(4)

    assert torch.equal(drop(x), once)
    assert not torch.equal(drop(x), once)

    stays = once != 0
    assert abs(stays.float().mean() - 0.75) < 0.01
    assert torch.allclose(once[stays], x[stays] / 0.75)

    (gradient,) = torch.autograd.grad(once.sum(), x)
    assert torch.allclose(gradient, stays / 0.75)
    assert drop.eval()(x) is x


def test_every_dropout_of_a_transformer_is_replaced_and_repeated_by_checkpointing(tiny):
    texts = world_texts()[:3]
    found = []
    for checkpointed in (False, True):
        config = EncoderConfig(tiny("bert"), dropout=0.3, gradient_checkpointing=checkpointed)
        encoder = Encoder(config)
        drops = [module for module in encoder.transformer.modules() if isinstance(module, torch.nn.Dropout)]
        assert {type(module) for module in drops} == {packing.Dropout}
        torch.manual_seed(1)
        found.append(gradients(encoder, texts))

    assert all(torch.allclose(found[0][name], found[1][name], atol=1e-6) for name in found[0])


WINDOW = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
GROUPED = {"num_key_value_heads": 2, "head_dim": 8, **WINDOW}
ARCHITECTURES = {
    "bert": {},
    "mpnet": {},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2, "cls_token_id": 2, "sep_token_id": 3},
    "gemma3_text": {**GROUPED, "query_pre_attn_scalar": 16, "use_bidirectional_attention": True},
    "gemma3_text causal": {**GROUPED, "query_pre_attn_scalar": 16},
    "qwen3": {**GROUPED, "use_sliding_window": True},
    "qwen3 both ways": {"num_key_value_heads": 2, "head_dim": 8, "is_causal": False},
}
STORIES = (7, 1, 30, 12)


def tiny_model(name):
    """A random transformer of this architecture that trains without dropout."""
    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    sizes = {**shape, "vocab_size": 200, "pad_token_id": 1, "max_position_embeddings": 64}
    torch.manual_seed(0)
    config = AutoConfig.for_model(name.split()[0], **{**sizes, **ARCHITECTURES[name]})
    transformer = AutoModel.from_config(config).float()
    for parameter in transformer.parameters():  # else many are 0 or 1
        parameter.data += 0.1 * torch.randn_like(parameter)
    set_dropout(transformer, 0.0)
    return transformer.train()


def states_and_gradients(transformer, packs, first):
    """Hidden states (T, D) of the stories' tokens, and gradients for a fixed random loss."""
    generator = torch.Generator().manual_seed(2)
    device = transformer.device
    ids = [torch.randint(4, 200, (n,), generator=generator).to(device) for n in STORIES]
    transformer.zero_grad()
    if packs:
        batch = packing.features(torch.cat(ids), STORIES, first)
        del batch["modality"]
        states = transformer(**batch).last_hidden_state[0]
    else:
        padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=1)
        mask = (torch.arange(max(STORIES)) < torch.tensor(STORIES)[:, None]).long().to(device)
        states = transformer(input_ids=padded, attention_mask=mask).last_hidden_state[mask.bool()]
    (states * torch.randn(states.shape, generator=generator).to(device)).sum().backward()
    return states.detach().cpu(), {n: p.grad.cpu() for n, p in transformer.named_parameters() if p.grad is not None}


def varlen_reference(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, scale, window_size, enable_gqa):
    """Attention of (T, H, E) as torch describes that of its varlen_attn."""
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32
    assert torch.equal(cu_seq_q, cu_seq_k)
    ends = cu_seq_q.tolist()
    assert max_q == max_k == max(b - a for a, b in pairwise(ends))
    assert enable_gqa == (query.shape[1] != key.shape[1])
    left, right = (10**9 if side < 0 else side for side in window_size)
    outputs = []
    for a, b in pairwise(ends):
        q, k, v = (x[a:b].transpose(0, 1) for x in (query, key, value))
        k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], 0) for x in (k, v))
        offset = torch.arange(b - a) - torch.arange(b - a)[:, None]  # of the key from the query
        scores = (q @ k.mT) * scale
        scores = scores.masked_fill((offset < -left) | (offset > right), -torch.inf)
        outputs.append((scores.softmax(-1) @ v).transpose(0, 1))
    return torch.cat(outputs)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_packed_and_padded_stories_have_the_same_states_and_gradients(name, monkeypatch):
    transformer = tiny_model(name)
    first = 2 if name == "mpnet" else 0
    expected, wanted = states_and_gradients(transformer, packs=False, first=first)

    assert packing.packable(transformer.config)

    packing.prepare(transformer)
    again, _ = states_and_gradients(transformer, packs=False, first=first)
    assert torch.allclose(again, expected, atol=1e-6)

    calls = []
    for way in ("each", "padded", *(["flash"] if HAS_FLASH else [])):
        with monkeypatch.context() as patch:
            if way == "padded":
                patch.setattr(packing, "_attend_each", packing._attend_padded)
            if way == "flash":
                attend = "torch.nn.attention.varlen.varlen_attn"
                patch.setattr(attend, lambda *a, **o: calls.append(o) or varlen_reference(*a, **o))
                patch.setattr(packing, "_flash_fits", lambda query, options: options.ends is not None)
            states, found = states_and_gradients(transformer, packs=True, first=first)
        assert torch.allclose(states, expected, atol=1e-5), way
        assert found.keys() == wanted.keys()
        for key, gradient in wanted.items():
            assert (found[key] - gradient).abs().max() < 1e-5 * (1 + gradient.abs().max()), (way, key)

    # The bias of mpnet is none that flash attention takes.
    assert len(calls) == (3 if HAS_FLASH and name != "mpnet" else 0)


@needs_gpu
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_packed_stories_on_a_gpu_have_the_states_and_gradients_of_a_cpu(name):
    first = 2 if name == "mpnet" else 0
    expected, wanted = states_and_gradients(tiny_model(name), packs=False, first=first)
    transformer = tiny_model(name).cuda()
    packing.prepare(transformer)
    states, found = states_and_gradients(transformer, packs=True, first=first)

    assert torch.allclose(states, expected, atol=1e-4)  # float32, by another kernel
    assert found.keys() == wanted.keys()
    for key, gradient in wanted.items():
        assert (found[key] - gradient).abs().max() < 1e-4 * (1 + gradient.abs().max()), key


@needs_gpu
@needs_flash
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_flash_attention_agrees_with_padded_attention_in_bfloat16(name, monkeypatch):
    first = 2 if name == "mpnet" else 0
    expected, wanted = states_and_gradients(tiny_model(name), packs=False, first=first)
    transformer = tiny_model(name).cuda()
    packing.prepare(transformer)
    calls = []
    flash = packing._attend_flash
    monkeypatch.setattr(packing, "_attend_flash", lambda *arguments: calls.append(1) or flash(*arguments))
    with torch.autocast("cuda", torch.bfloat16):
        states, found = states_and_gradients(transformer, packs=True, first=first)

    assert bool(calls) == (name != "mpnet")  # its bias of positions is added to the scores
    assert F.cosine_similarity(states.float(), expected).min() > 0.99
    for key, gradient in wanted.items():
        if gradient.norm() > 1e-3 * max(other.norm() for other in wanted.values()):
            assert F.cosine_similarity(found[key].float().flatten(), gradient.flatten(), dim=0) > 0.98, key


@needs_flash
def test_flash_attention_is_used_for_half_precision_without_dropout_on_recent_gpus(monkeypatch):
    capability = (9, 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)

    def fits(dtype=torch.bfloat16, size=32, is_cuda=True, **changes):
        """Whether a call on a GPU takes flash attention."""
        query = SimpleNamespace(is_cuda=is_cuda, dtype=dtype, shape=(1, 4, 9, size), device="cuda")
        return packing._flash_fits(
            query, AttentionOptions(None, 0.0, causal=False, ends=torch.zeros(3))._replace(**changes)
        )

    assert fits()
    assert fits(torch.float16, causal=True, window=3)
    assert not any((fits(torch.float32), fits(size=36), fits(size=264), fits(is_cuda=False)))
    assert not fits(dropout=0.1)
    assert not fits(ends=None)

    capability = (7, 5)
    assert not fits()


@needs_flash
def test_torchs_flash_attention_accepts_the_arguments():
    query, key = (torch.empty(1, heads, 9, 32, dtype=torch.bfloat16, device="meta") for heads in (4, 2))
    ends = torch.empty(3, dtype=torch.int32, device="meta")
    options = AttentionOptions(0.1, 0.0, causal=True, window=3, ends=ends)
    assert packing._attend_flash((query, key, key), (4, 5), options).shape == query.shape


def test_attention_dropout_is_applied_in_training_only(tiny, sdpa_calls, masks_drawn):
    encoder = Encoder(EncoderConfig(tiny("bert"), dropout=0.2))
    stories = packed(encoder, world_texts()[:3])
    masks_of_a_layer = [(4, length, length) for length in stories.lengths]
    sdpa_calls.clear()  # of building the model
    encoder.train()(stories).sum().backward()

    assert [shape for shape in masks_drawn if shape[0] == 4] == 3 * masks_of_a_layer
    assert not sdpa_calls

    masks_drawn.clear()
    encoder.eval()(stories)
    assert not masks_drawn
    assert sdpa_calls == [0.0] * 9
