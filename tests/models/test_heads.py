"""Heads against their equations: projection, MLP, a BiLSTM by a plain loop, and the fusion of views."""

from dataclasses import asdict

import pytest
import torch
from head_encoders import join_views
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from torch import nn
from torch.nn.functional import normalize

from narrlit.models.config import PARTS, PRESETS, EncoderConfig, Fusion, parse_fusion
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.heads import ViewFusion, ViewHeads, apply_head, build_head, split_views

FUSION = Fusion(0.4, 0.3, 0.1, 0.2)


def vectors(*shape, seed=0, **options):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **options)


def unit(*shape, seed=0):
    return normalize(vectors(*shape, seed=seed), dim=-1)


def fusion(dimension=5, weights=FUSION, hidden=None):
    torch.manual_seed(0)
    return ViewFusion(dimension, asdict(weights), hidden)


@pytest.mark.parametrize("dimension", [16, 256])
def test_noise_has_the_same_effect_in_every_dimension(dimension):
    torch.manual_seed(0)
    head = build_head("projection", dimension, noise=0.2)
    x = unit(400, dimension, seed=1)
    moved = (head[0].linear(x) - x).norm(dim=1)
    assert abs(moved.mean().item() - 0.2) < 0.05


def test_a_projection_is_w_times_e():
    head = build_head("projection", 8, noise=1.0)
    x = vectors(6, 8)
    expected = torch.stack([head[0].linear.weight @ row for row in x])
    assert torch.allclose(apply_head(head, x), expected / expected.norm(dim=1, keepdim=True), atol=1e-6)
    assert [tuple(parameter.shape) for parameter in head.parameters()] == [(8, 8)]


def test_an_mlp_has_relu_between_its_layers_and_not_at_the_end():
    head = build_head("mlp", 8, hidden=[12, 7], output=5)
    x = vectors(50, 8)
    one, two, three = (dense.linear for dense in head[:-1])
    expected = three(two(one(x).clamp(min=0)).clamp(min=0))

    assert torch.allclose(apply_head(head, x), expected / expected.norm(dim=1, keepdim=True), atol=1e-6)
    assert (apply_head(head, x) < 0).any()
    assert [(linear.in_features, linear.out_features) for linear in (one, two, three)] == [(8, 12), (12, 7), (7, 5)]
    assert len(build_head("mlp", 8, output=5)) == 2


@pytest.mark.parametrize(
    "head",
    [build_head("projection", 31), build_head("mlp", 31), build_head("bilstm", 31), fusion(31)],
    ids=["projection", "mlp", "bilstm", "views"],
)
def test_a_head_of_another_model_is_refused(tiny, head):
    with refused("dimension_of_head", found=32, needed=31):
        Encoder(EncoderConfig(tiny())).attach(head)


def built(dimension=6, **settings):
    torch.manual_seed(1)
    return build_head("bilstm", dimension, **{"hidden": 5, "layers": 2, "dropout": 0.0, "output": 7, **settings})


def cell(weights, suffix, x, state):
    """One step of an LSTM by its equations: gates in torch's order i, f, g, o."""
    h, c = state
    gates = weights[f"weight_ih_{suffix}"] @ x + weights[f"bias_ih_{suffix}"]
    gates = gates + weights[f"weight_hh_{suffix}"] @ h + weights[f"bias_hh_{suffix}"]
    i, f, g, o = gates.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def by_hand(model, story):
    """A story's embedding by the paper's equations, a step at a time."""
    weights = dict(model.lstm.named_parameters())
    for layer in range(model.layers):
        directions = []
        for suffix, steps in ((f"l{layer}", list(story)), (f"l{layer}_reverse", list(story)[::-1])):
            state = (torch.zeros(model.hidden), torch.zeros(model.hidden))
            seen = []
            for x in steps:
                state = cell(weights, suffix, x, state)
                seen.append(state[0])
            directions.append(seen)
        forward = directions[0]
        backward = directions[1][::-1]
        story = torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)])
    mapped = model.linear.weight @ torch.cat([forward[-1], backward[0]]) + model.linear.bias
    return mapped / mapped.norm()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 3))
def test_a_bilstm_matches_a_loop_over_stories_and_steps(lengths, layers):
    model = built(layers=layers)
    x = torch.randn(sum(lengths), 6)
    expected = torch.stack([by_hand(model, story) for story in x.split(lengths)])
    assert torch.allclose(apply_head(model, x, lengths), expected, atol=1e-6)


def test_a_bilstm_passes_gradcheck():
    model = built(3, hidden=2, output=3).double()
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: apply_head(model, x, [1, 3, 2]), x)


def test_dropout_is_applied_in_training_and_between_layers_only_if_there_are_two(recwarn):
    x = torch.randn(4, 6)
    for layers in (1, 2):
        model = built(layers=layers, dropout=0.5)
        assert not torch.equal(apply_head(model, x, [4]), apply_head(model, x, [4]))
        assert model.lstm.dropout == (0.5 if layers == 2 else 0)
        model.eval()
        assert torch.equal(apply_head(model, x, [4]), apply_head(model, x, [4]))

    assert not recwarn.list


def test_a_fused_embedding_is_the_normalized_weighted_sum():
    parts = unit(3, 4, 5)
    for story, fused in zip(parts, fusion().fuse(parts), strict=True):
        total = 0.4 * story[0] + 0.3 * story[1] + 0.1 * story[2] + 0.2 * story[3]
        assert torch.allclose(fused, total / total.norm(), atol=1e-6)
    for place, name in enumerate(PARTS):
        alone = Fusion(**{part: 0.3 * (part == name) for part in PARTS})
        assert torch.allclose(fusion(weights=alone).fuse(parts), parts[:, place], atol=1e-6)


def test_every_view_has_its_own_head():
    torch.manual_seed(0)
    heads, views = ViewHeads(5, 7), unit(2, 3, 5)
    for place, name in enumerate(PARTS[1:]):
        first, _, last = heads.heads[name]
        expected = last(torch.relu(first(views[:, place])))
        assert torch.allclose(heads(views)[:, place], normalize(expected, dim=-1), atol=1e-6)

    # One vector goes through all three.
    assert torch.allclose(heads(views[:, :1]), heads(views[:, :1].repeat(1, 3, 1)))


def test_the_full_text_has_no_head_and_inputs_are_normalized():
    head, x = fusion(hidden=7), unit(2, 4, 5)
    assert torch.allclose(head.parts(3 * x)[:, 0], x[:, 0], atol=1e-6)
    assert torch.allclose(head.parts(3 * x)[:, 1:], head.heads(x[:, 1:]), atol=1e-6)
    assert torch.allclose(apply_head(head, x), head.fuse(head.parts(x)))
    assert torch.allclose(fusion().parts(3 * x), x, atol=1e-6)


def test_view_heads_pass_gradcheck():
    head = ViewHeads(3, 4).double()
    x = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(head, x)


@pytest.mark.parametrize("head", [built(6), fusion(), fusion(hidden=7)], ids=["bilstm", "fusion", "view heads"])
def test_a_head_can_be_saved_and_loaded_and_a_damaged_one_is_refused(tmp_path, head):
    head.save(str(tmp_path))
    again = type(head).load_head(tmp_path)
    assert again.get_config_dict() == head.get_config_dict()
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in head.state_dict().items())

    if head.state_dict():
        (tmp_path / "model.safetensors").write_bytes(b"broken")
        with pytest.raises(Exception, match=r".+"):
            type(head).load_head(tmp_path)


def test_presets_are_the_fusion_weights_of_the_paper():
    assert PRESETS["submitted"].weights == (0.5, 0.1, 0.2, 0.2)
    assert PRESETS["equal"].weights == (0.25, 0.25, 0.25, 0.25)
    assert PRESETS["full_only"].weights == (1, 0, 0, 0)
    assert PRESETS["higher_theme"].weights == (0.4, 0.3, 0.15, 0.15)
    assert parse_fusion("higher_theme") is PRESETS["higher_theme"]
    assert parse_fusion("0.4,0.3, 0.1,0.2") == FUSION
    assert str(FUSION) == "0.4,0.3,0.1,0.2"


def test_a_text_with_views_is_split_into_its_parts():
    parts = ("A story.\n\nIts end.", "A theme.", "", "The [outcome] itself.")
    assert split_views(join_views(*parts)) == parts
    for broken in (
        "A story.",
        "A.\n[theme]\nb",
        "A.\n[action]\nb\n[theme]\nc\n[outcome]\nd",
        join_views(*parts) + "\n[theme]\n",
    ):
        with pytest.raises(ValueError, match=r"\[theme\], \[action\] and \[outcome\]"):
            split_views(broken)


def test_heads_keep_their_precision_on_encoders_in_half_precision(tiny):
    encoder = Encoder(EncoderConfig(tiny(), dtype="bfloat16")).eval()
    head = build_head("projection", 32, noise=0.3)
    encoder.attach(head)

    assert head[0].linear.weight.dtype == torch.float32

    plain = Encoder(EncoderConfig(tiny(), dtype="bfloat16")).eval()
    before = embed_stories(plain, ["A tale.", "Another one."], progress=False).embeddings
    after = embed_stories(encoder, ["A tale.", "Another one."], progress=False).embeddings

    assert abs(after - apply_head(head, torch.from_numpy(before)).detach().numpy()).max() < 1e-6
    assert isinstance(head[0], nn.Module)
