"""Matryoshka training: the loss against sentence-transformers' on the same texts, and the gradient of every prefix."""

from types import SimpleNamespace

import pytest
import torch
from adapted_encoders import packed
from refusals import refused
from sentence_transformers.losses import MatryoshkaLoss, MultipleNegativesRankingLoss
from tiny_models import WIDTH, world_texts
from torch.nn.functional import normalize

from narrlit.data.batch import ExampleBatch, ViewBatch
from narrlit.data.schema import ASPECTS
from narrlit.embedding_cache.teacher import TeacherEmbeddings
from narrlit.models.config import EncoderConfig
from narrlit.objectives import MultipleNegativesRanking, MultiView, SelfDistillation, Triplet

DIMENSIONS = [WIDTH, WIDTH // 2, WIDTH // 4]
ANCHORS, POSITIVES, NEGATIVES = torch.arange(3), torch.arange(3, 6), torch.arange(6, 9)[:, None]


@pytest.fixture
def build(tiny):
    def make(kind, **options):
        objective = kind(EncoderConfig(tiny("bert"), dropout=0.0), **options)
        objective.configure_model()
        if kind is SelfDistillation:
            objective.trainer = SimpleNamespace(global_step=0, estimated_stepping_batches=20)
            table = torch.randn(9, 5, generator=torch.Generator().manual_seed(4))
            objective.teacher = TeacherEmbeddings(table + 2.0)
        return objective

    return make


def batch_of(objective):
    """Three anchors, each with a positive and a negative of its own."""
    stories = packed(objective.encoder, world_texts()[:9], indices=torch.arange(9))
    kinds = torch.zeros_like(NEGATIVES)
    return ExampleBatch(stories, ANCHORS, POSITIVES, NEGATIVES, kinds, groups=stories.indices)


def gradients(model):
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def test_loss_and_gradients_equal_those_of_sentence_transformers(build):
    objective = build(MultipleNegativesRanking, scale=7.0, dimensions=DIMENSIONS)
    batch = batch_of(objective)
    loss = objective.loss(objective(batch.stories), batch)["loss"]
    loss.backward()
    model = objective.encoder.model
    found = gradients(model)
    model.zero_grad()
    ranking = MultipleNegativesRankingLoss(model, scale=7.0)
    texts = world_texts()
    features = [model.preprocess(texts[start : start + 3]) for start in (0, 3, 6)]
    expected = MatryoshkaLoss(model, ranking, DIMENSIONS)(features, None)
    expected.backward()

    # Padded and packed texts differ by rounding in float32.
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
    assert found.keys() == gradients(model).keys()
    for name, gradient in gradients(model).items():
        assert torch.allclose(found[name], gradient, atol=1e-5), name


@pytest.mark.parametrize("kind", [MultipleNegativesRanking, Triplet, SelfDistillation])
def test_the_loss_is_the_sum_of_the_losses_of_unit_prefixes(build, kind):
    whole, several = build(kind), build(kind, dimensions=DIMENSIONS)
    batch = batch_of(whole)
    vectors = whole(batch.stories).detach()
    expected = 0.0
    for dimension in DIMENSIONS:
        expected += whole.loss(normalize(vectors[:, :dimension], dim=-1), batch)["loss"].item()

    assert several.loss(vectors, batch)["loss"].item() == pytest.approx(expected, abs=1e-5)


def view_batch(objective):
    """Texts and views of three stories as random embeddings, each compared with the next one's views."""
    vectors = normalize(torch.randn(3, 4, WIDTH, generator=torch.Generator().manual_seed(1)), dim=-1)
    return vectors, ViewBatch(None, torch.arange(3), torch.tensor([1, 2, 0]))


def test_views_are_truncated_after_their_heads_and_fused_before_it(build):
    """The embedding that a truncated model gives a story is a prefix of its fused embedding."""
    whole, several = build(MultiView), build(MultiView, dimensions=DIMENSIONS)
    several.views.load_state_dict(whole.views.state_dict())
    vectors, batch = view_batch(whole)
    found = several.loss(vectors, batch)
    views = whole.views
    unit = views.parts(vectors)
    texts, own, fused = views.heads(unit[:, :1]), unit[:, 1:], views.fuse(unit)
    other = own[[1, 2, 0]]
    for place, aspect in enumerate(ASPECTS):
        expected = 0.0
        for size in DIMENSIONS:
            anchor, near, far = (normalize(x[:, place, :size], dim=-1) for x in (texts, own, other))
            gap = ((anchor * near).sum(-1) - (anchor * far).sum(-1)) / 0.07
            expected += (1 + (-gap).exp()).log().mean().item()
        assert found[aspect].item() == pytest.approx(expected, abs=1e-4)
    alignment = 0.0
    for size in DIMENSIONS:
        mean = normalize(own[..., :size], dim=-1).mean(1)
        differences = normalize(fused[:, :size], dim=-1) - normalize(mean, dim=-1)
        alignment += differences.square().sum(-1).mean().item()
    assert found["alignment"].item() == pytest.approx(alignment, abs=1e-4)
    expected = sum(found[aspect] for aspect in ASPECTS) + 0.5 * found["alignment"]
    assert found["loss"].item() == pytest.approx(expected.item(), abs=1e-4)


@pytest.mark.parametrize("kind", [MultipleNegativesRanking, Triplet, SelfDistillation])
def test_the_gradient_of_every_prefix_reaches_the_encoder(build, kind):
    for dimension in DIMENSIONS:
        objective = build(kind, dimensions=DIMENSIONS)
        objective.dimensions = [dimension]
        batch = batch_of(objective)
        vectors = objective(batch.stories)
        vectors.retain_grad()
        objective.loss(vectors, batch)["loss"].backward()

        assert vectors.grad[:, :dimension].abs().sum(0).min() > 0
        assert not vectors.grad[:, dimension:].any()
        without = [name for name, grad in gradients(objective).items() if not grad.any() and "key.bias" not in name]
        assert without == []


def test_the_gradient_of_every_prefix_reaches_the_heads_of_views(build):
    for dimension in DIMENSIONS:
        objective = build(MultiView, dimensions=DIMENSIONS)
        objective.dimensions = [dimension]
        vectors, batch = view_batch(objective)
        objective.loss(vectors, batch)["loss"].backward()
        last_layers = [head[-1].weight.grad for head in objective.views.heads.heads.values()]

        assert all(gradient[:dimension].abs().sum(1).min() > 0 for gradient in last_layers)


def test_candidates_that_the_teacher_keeps_are_counted_once(build):
    counts = []
    for dimensions in (None, DIMENSIONS):
        objective = build(SelfDistillation, dimensions=dimensions)
        batch = batch_of(objective)
        objective.loss(objective(batch.stories), batch)
        counts.append(objective.kept)

    assert counts[0] == counts[1] != {}


def test_dimensions_must_include_that_of_the_encoder(build):
    for dimensions in ([WIDTH // 2], [2 * WIDTH, WIDTH]):
        with refused("largest_dimension", dimensions=dimensions, needed=WIDTH):
            build(Triplet, dimensions=dimensions)


@pytest.mark.parametrize("dimensions", [[], [WIDTH, 0]])
def test_dimensions_below_1_are_refused(dimensions):
    with refused("sizes_of_dimensions", dimensions=dimensions):
        Triplet(dimensions=dimensions)
