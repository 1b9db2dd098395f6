"""Dropout in packed attention on a CPU: the written-out attention, its mask, and where it is used."""

import math

import pytest
import torch
import torch.nn.functional as F
from tiny_models import world_texts

from narrlit.data.batch import PackedStories
from narrlit.models import packing
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.packing import Options

LENGTHS = (7, 1, 12)


def inputs(requires_grad=False, size=8):
    generator = torch.Generator().manual_seed(1)
    shape = (1, 4, sum(LENGTHS), size)
    return tuple(torch.randn(shape, generator=generator).requires_grad_(requires_grad) for _ in range(3))


def fixed_masks(dropout):
    generator = torch.Generator().manual_seed(2)
    return {n: (torch.rand(1, 4, n, n, generator=generator) >= dropout).float() for n in LENGTHS}


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
    monkeypatch.setattr(packing, "_keep", lambda shape, dropout: shapes.append(tuple(shape)) or keep(shape, dropout))
    return shapes


@pytest.mark.parametrize("scaling", [None, 0.5])
def test_outputs_and_gradients_are_those_of_the_definition_with_the_same_mask(monkeypatch, scaling):
    dropout = 0.25  # exact in 16 bits
    masks = fixed_masks(dropout)
    monkeypatch.setattr(packing, "_keep", lambda shape, p: masks[shape[-1]])
    target = torch.randn(1, 4, sum(LENGTHS), 8, generator=torch.Generator().manual_seed(3))
    ours, theirs = inputs(requires_grad=True), inputs(requires_grad=True)
    found = packing._attend_each(ours, LENGTHS, Options(scaling, dropout, causal=False))
    wanted = reference(theirs, masks, dropout, scaling or 8**-0.5)
    assert torch.allclose(found.double(), wanted, atol=1e-5)
    (found * target).sum().backward()
    (wanted * target).sum().backward()
    for own, other in zip(ours, theirs, strict=True):
        assert own.grad.abs().max() > 0.1
        assert torch.allclose(own.grad, other.grad, atol=1e-5)


@pytest.mark.parametrize("dropout", [1e-3, 0.1, 0.9])
def test_the_share_kept_is_the_one_asked_for(dropout):
    torch.manual_seed(5)
    n = 1_000_003  # no multiple of the four that one draw serves
    kept = packing._keep(torch.Size([n]), dropout)
    assert set(kept.unique().tolist()) == {0.0, 1.0}
    assert abs(kept.mean(dtype=torch.float64) - (1 - dropout)) < 4 * math.sqrt(dropout * (1 - dropout) / n)
    # Each of the four values of a draw by itself, and each value against the next.
    for part in range(4):
        error = math.sqrt(dropout * (1 - dropout) / (n // 4))
        assert abs(kept[part::4].mean(dtype=torch.float64) - (1 - dropout)) < 4 * error
    first, second = kept[:-1] - kept.mean(), kept[1:] - kept.mean()
    assert abs((first * second).mean(dtype=torch.float64)) < 4 * dropout * (1 - dropout) / math.sqrt(n)


def test_the_scale_is_that_of_the_probability_drawn():
    # 1e-5 is 0.66 of a draw, 1 draw is dropped; below half a draw nothing is, and almost 1 still leaves a draw.
    assert [packing._dropped(p) for p in (1e-5, 1e-6, 0.1, 0.5, 1 - 1e-9)] == [1, 0, 6554, 32768, 65535]
    q = torch.zeros(1, 1, 1, 2)
    value = torch.ones(1, 1, 1, 2)
    torch.manual_seed(0)
    outputs = {float(packing._attend_with_dropout(q, q, value, 0.1, None)[0, 0, 0, 0]) for _ in range(200)}
    assert sorted(outputs) == pytest.approx([0, 1 / (1 - 6554 / 65536)])


def test_causal_models_and_other_number_formats_stay_with_torch(sdpa_calls, masks_drawn):
    packing._attend_each(inputs(), LENGTHS, Options(None, 0.2, causal=True))
    assert sdpa_calls == [0.2] * len(LENGTHS)
    packing._attend_each(tuple(x.bfloat16() for x in inputs()), LENGTHS, Options(None, 0.2, causal=False))
    assert sdpa_calls == [0.2] * 2 * len(LENGTHS)
    assert not masks_drawn


def test_a_model_drops_weights_while_it_trains_and_never_in_eval_mode(tiny, sdpa_calls, masks_drawn):
    encoder = Encoder(EncoderConfig(tiny("bert"), dropout=0.2))
    ids, _ = encoder.tokenize(world_texts()[:3])
    stories = PackedStories(torch.tensor([t for x in ids for t in x]), tuple(map(len, ids)), torch.arange(3))
    sdpa_calls.clear()  # of building the model
    encoder.train()(stories).sum().backward()
    assert masks_drawn == [(1, 4, len(x), len(x)) for _ in range(3) for x in ids]
    assert not sdpa_calls
    masks_drawn.clear()
    encoder.eval()(stories)
    assert not masks_drawn
    assert sdpa_calls == [0.0] * 9
