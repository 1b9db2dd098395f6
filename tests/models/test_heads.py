"""Heads on whole stories: their maths, their first weights, and the same as sentence-transformers modules."""

import pytest
import torch

from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder, EncoderConfig
from narrlit.models.hard_examples import hard_examples
from narrlit.models.heads import Layers, Projection, as_modules, build_head

HEADS = {
    "projection": {"kind": "projection", "noise": 0.3},
    "linear": {"kind": "layers", "hidden": [], "output": 5},
    "mlp": {"kind": "layers", "hidden": [12, 7], "output": 5},
}


def vectors(n=6, d=8, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def test_a_projection_without_noise_is_the_identity_but_for_length():
    x = vectors()
    assert torch.allclose(Projection(8)(x), x / x.norm(dim=1, keepdim=True), atol=1e-6)


@pytest.mark.parametrize("dimension", [16, 256])
def test_noise_turns_vectors_alike_in_any_dimension(dimension):
    torch.manual_seed(0)
    head, x = Projection(dimension, noise=0.2), torch.nn.functional.normalize(vectors(400, dimension), dim=1)
    moved = (head.map(x) - x).norm(dim=1)
    assert abs(moved.mean().item() - 0.2) < 0.05


def test_a_projection_is_w_times_e():
    head, x = Projection(8, noise=1.0), vectors()
    expected = torch.stack([head.map.weight @ row for row in x])
    assert torch.allclose(head(x), expected / expected.norm(dim=1, keepdim=True), atol=1e-6)
    assert [name for name, _ in head.named_parameters()] == ["map.weight"]


def test_layers_have_relu_between_them_and_not_at_the_end():
    head, x = Layers(8, [12, 7], 5), vectors(50)
    one, two, three = head.linears
    expected = three(two(one(x).clamp(min=0)).clamp(min=0))
    assert torch.allclose(head(x), expected / expected.norm(dim=1, keepdim=True), atol=1e-6)
    assert (head(x) < 0).any()
    assert [(linear.in_features, linear.out_features) for linear in head.linears] == [(8, 12), (12, 7), (7, 5)]
    assert len(Layers(8, [], 5).linears) == 1


@pytest.mark.parametrize("kind", HEADS)
def test_modules_of_sentence_transformers_give_the_same(kind):
    head, x = build_head(dimension=8, **HEADS[kind]), vectors()
    features = {"sentence_embedding": x}
    for module in as_modules(head):
        features = module(features)
    assert torch.allclose(features["sentence_embedding"], head(x), atol=1e-6)


@pytest.mark.parametrize("kind", HEADS)
def test_an_exported_head_needs_no_code_of_this_package(tiny, tmp_path, kind):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder(EncoderConfig(tiny())).eval()
    head = build_head(dimension=32, **HEADS[kind])
    plain = (
        SentenceTransformer(tiny(), device="cpu").encode(["A tale.", "Another one."], convert_to_tensor=True).clone()
    )
    encoder.append(as_modules(head))
    assert encoder.normalized
    assert encoder.dimension == head(plain).shape[1]
    encoder.save(tmp_path / "model")
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    found = loaded.encode(["A tale.", "Another one."], convert_to_tensor=True)
    assert torch.allclose(found, head(plain), atol=1e-5)


def test_behind_half_precision_a_head_is_rounded_only_when_exported(tiny, tmp_path):
    from sentence_transformers import SentenceTransformer

    encoder, head = Encoder(EncoderConfig(tiny(), dtype="bfloat16")).eval(), Projection(32, noise=0.3)
    plain, _ = embed(encoder, ["A tale.", "Another one."], progress=False)
    encoder.append(as_modules(head))
    found, _ = embed(encoder, ["A tale.", "Another one."], progress=False)
    assert abs(found - head(torch.from_numpy(plain)).detach().numpy()).max() < 1e-6
    encoder.save(tmp_path / "model")
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert abs(loaded.encode(["A tale.", "Another one."], convert_to_tensor=True).float().numpy() - found).max() < 0.02


def test_hard_examples_are_wrong_ones_that_were_nearly_right():
    near = torch.tensor([0.9, 0.50, 0.2, 0.4, 0.3, 0.1])
    far = torch.tensor([0.1, 0.55, 0.8, 0.4, 0.2, 0.3])
    rows, wrong = hard_examples(near, far, 0.5)
    assert (rows.tolist(), wrong) == ([3, 1, 5], 4)
    assert hard_examples(near, far, 1.0).rows.tolist() == [3, 1, 5, 2]
    assert hard_examples(near, far, 0.2).rows.tolist() == [3]
    assert hard_examples(near, far, 0.0).rows.tolist() == []
    assert hard_examples(torch.ones(3), torch.zeros(3), 1.0).rows.tolist() == []
