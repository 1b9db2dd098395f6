"""Objectives on tiny models: losses against the pure functions, gradients, hyperparameters, dropout, gathering."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from adapted_encoders import packed
from refusals import refused
from tiny_models import world_texts

from narrlit.data.batch import ExampleBatch, PackedStories, TripleBatch
from narrlit.data.schema import NEGATIVE_KINDS
from narrlit.losses.contrastive import ranking_loss
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.objectives import (
    Distillation,
    MultipleNegativesRanking,
    MultiView,
    Optimization,
    SelfDistillation,
    Triplet,
)


def batch_of(objective, count=4, negatives=2):
    """`count` examples over 2 count + negatives different stories; the last negative of the last row is padding."""
    texts = world_texts()[: 2 * count + negatives]
    stories = packed(objective.encoder, texts, indices=torch.arange(len(texts)) + 50)
    own = torch.arange(2 * count, 2 * count + negatives).repeat(count, 1)
    if negatives:
        own[-1, -1] = -1
    kinds = torch.full_like(own, -1)
    return ExampleBatch(stories, torch.arange(count), torch.arange(count) + count, own, kinds, groups=stories.indices)


@pytest.fixture
def build(tiny):
    def make(kind, **options):
        objective = kind(EncoderConfig(tiny("bert"), dropout=options.pop("dropout", 0.0)), **options)
        objective.configure_model()
        return objective

    return make


def test_ranking_computes_the_loss_with_the_right_candidates(build):
    objective = build(MultipleNegativesRanking, scale=7.0)
    batch = batch_of(objective)
    vectors = objective(batch.stories)
    anchors = vectors[:4]
    positives = vectors[4:8]
    others = vectors[8:]
    # Every row's negatives are candidates of all rows: two stories, given four times, once as padding.
    logits = 7.0 * anchors @ torch.cat([positives, others.repeat(4, 1)[:7]]).T
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(4))

    assert torch.allclose(objective.loss(vectors, batch)["loss"], expected, atol=1e-6)


def test_with_pairs_explicit_negatives_are_not_used(build):
    pairs = build(MultipleNegativesRanking, candidates="pairs")
    triplets = build(MultipleNegativesRanking)
    batch = batch_of(pairs)
    vectors = pairs(batch.stories)
    expected = ranking_loss(vectors[:4], vectors[4:8], torch.arange(4), scale=20.0)

    assert torch.allclose(pairs.loss(vectors, batch)["loss"], expected)
    assert triplets.loss(vectors, batch)["loss"] > expected + 1e-4


def test_with_stories_other_anchors_are_candidates_but_not_versions(build):
    objective = build(MultipleNegativesRanking, candidates="stories", scale=7.0)
    batch = batch_of(objective, negatives=1)
    groups = batch.groups.clone()
    groups[[0, 4]] = groups[[1, 5]] = 7  # the first two examples are of one group, and so are their stories
    groups[[2, 6]], groups[[3, 7]] = 8, 9
    batch.groups = groups
    vectors = objective(batch.stories)
    losses = []
    for anchor in range(4):
        others = [story for story in [*range(9)] if groups[story] != groups[anchor]]
        counts = [3 if story == 8 else 1 for story in others]  # the one negative is given by three rows
        logits = torch.stack([7.0 * vectors[anchor] @ vectors[story] for story in others])
        own = 7.0 * vectors[anchor] @ vectors[anchor + 4]
        terms = torch.cat([own[None], *(logit.repeat(count) for logit, count in zip(logits, counts, strict=True))])
        losses.append(torch.logsumexp(terms, 0) - own)

    assert torch.allclose(objective.loss(vectors, batch)["loss"], torch.stack(losses).mean(), atol=1e-5)


@pytest.mark.parametrize("candidates", ["pairs", "triplets"])
def test_reduction_sum_is_the_mean_times_the_number_of_anchors(build, candidates):
    mean = build(MultipleNegativesRanking, candidates=candidates)
    total = build(MultipleNegativesRanking, candidates=candidates, reduction="sum")
    batch = batch_of(mean)
    vectors = mean(batch.stories)
    assert torch.allclose(total.loss(vectors, batch)["loss"], 4 * mean.loss(vectors, batch)["loss"])


@pytest.mark.parametrize("distance", ["cosine", "euclidean", "squared_euclidean"])
def test_triplets_are_all_pairs_except_padding(build, distance):
    objective = build(Triplet, distance=distance, margin=0.4)
    batch = batch_of(objective)
    v = objective(batch.stories)

    def d(x, y):
        return {"cosine": 1 - x @ y, "euclidean": (x - y).norm(), "squared_euclidean": ((x - y) ** 2).sum()}[distance]

    terms = [
        torch.relu(d(v[i], v[i + 4]) - d(v[i], v[n]) + 0.4)
        for i in range(4)
        for n in batch.negatives[i].tolist()
        if n >= 0
    ]

    assert len(terms) == 7

    found = objective.loss(v, batch)
    assert torch.allclose(found["loss"], torch.stack(terms).mean(), atol=1e-6)
    assert found["active"] == sum(term > 0 for term in terms) / 7


def test_an_adaptive_margin_grows_with_the_gap(build):
    plain = build(Triplet, margin=0.1)
    adaptive = build(Triplet, margin=0.1, maximum_margin=2.0)
    batch = batch_of(plain)
    vectors = plain(batch.stories)
    assert adaptive.loss(vectors, batch)["loss"] > plain.loss(vectors, batch)["loss"]


@pytest.mark.parametrize("kind", [MultipleNegativesRanking, Triplet])
def test_every_trained_weight_gets_a_gradient(build, kind):
    objective = build(kind)
    batch = batch_of(objective)
    objective.loss(objective(batch.stories), batch)["loss"].backward()
    without = [n for n, p in objective.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]

    # Softmax takes no notice of what is added to all its logits: keys' biases have no gradient in exact arithmetic.
    assert [n for n in without if "key.bias" not in n] == []


def test_the_encoder_trains_in_train_mode(build):
    objective = build(MultipleNegativesRanking, dropout=0.3)
    assert all(module.training for module in objective.encoder.modules())


def test_constructors_build_nothing_and_store_plain_hyperparameters(tiny):
    objective = MultipleNegativesRanking(
        EncoderConfig("no/such-model", prompts=Prompts(anchor="q: ")), Optimization(warmup=0.5)
    )

    assert not list(objective.parameters())

    kept = dict(objective.hparams)
    assert kept["encoder"]["prompts"]["anchor"] == "q: "
    assert kept["optimization"]["warmup"] == 0.5
    assert kept["scale"] == 20.0


def test_cosine_objectives_refuse_unnormalized_embeddings(tiny):
    for objective in (
        MultipleNegativesRanking(EncoderConfig(tiny("bert"), normalize=False)),
        Triplet(EncoderConfig(tiny("bert"), normalize=False)),
    ):
        with refused("unit_vectors_needed"):
            objective.configure_model()

    euclidean = Triplet(EncoderConfig(tiny("bert"), normalize=False), distance="euclidean")
    euclidean.configure_model()
    assert not euclidean.encoder.normalized


def test_options_out_of_range_are_refused():
    for make, option in (
        (lambda: MultipleNegativesRanking(scale=0), "scale"),
        (lambda: Triplet(margin=-1), "margin"),
        (lambda: Optimization(learning_rate=-1e-5), "optimization.learning_rate"),
        (lambda: Optimization(learning_rate=float("nan")), "optimization.learning_rate"),
        (lambda: MultipleNegativesRanking(scale=float("inf")), "scale"),
        (lambda: Triplet(margin=float("nan")), "margin"),
        (lambda: Optimization(warmup=2), "optimization.warmup"),
        (lambda: SelfDistillation(temperature=0), "temperature"),
        (lambda: SelfDistillation(mask_margin=3), "mask_margin"),
        (lambda: SelfDistillation(first_masked_round=-1), "first_masked_round"),
        (lambda: Distillation(temperature=0), "distillation.temperature"),
        (lambda: Distillation(first_weight=-1), "distillation.first_weight"),
        *((partial(MultiView, **{name: -1}), name) for name in ("temperature", "hidden", "alignment")),
    ):
        with refused("config_value", option=option):
            make()

    with refused("maximum_margin", maximum_margin=0.5, margin=1.0):
        Triplet(margin=1.0, maximum_margin=0.5)


def test_biases_and_normalization_weights_have_no_weight_decay(build):
    objective = build(MultipleNegativesRanking, optimization=Optimization(weight_decay=0.1))

    class Steps:
        estimated_stepping_batches = 10

    objective.trainer = Steps()
    groups = objective.configure_optimizers()["optimizer"].param_groups
    decays = {g["weight_decay"]: [p.ndim for p in g["params"]] for g in groups}

    assert set(decays) == {0.1, 0.0}
    assert min(decays[0.1]) == 2
    assert max(decays[0.0]) == 1
    assert sum(map(len, decays.values())) == sum(p.requires_grad for p in objective.parameters())


def test_triplets_need_negatives(build):
    objective = build(Triplet)
    batch = batch_of(objective, negatives=0)
    with refused("loss_needs_negatives"):
        objective.loss(objective(batch.stories), batch)

    batch = batch_of(objective)
    batch.negatives = torch.full_like(batch.negatives, -1)
    loss = objective.loss(objective(batch.stories), batch)["loss"]
    loss.backward()

    assert loss == 0
    assert all(torch.isfinite(p.grad).all() for p in objective.parameters() if p.grad is not None)


def test_with_negatives_triple_only_the_dissimilar_story_is_used(build):
    objective = build(Triplet, negatives="triple")
    batch = batch_of(objective)
    batch.kinds[:, 0], batch.kinds[:, 1] = NEGATIVE_KINDS.index("triple"), NEGATIVE_KINDS.index("theme")
    smaller = objective.on_before_batch_transfer(batch, 0)

    assert (smaller.negatives >= 0).sum(1).tolist() == [1, 1, 1, 1]
    assert len(smaller.stories) == len(batch.stories) - 1
    assert build(Triplet).on_before_batch_transfer(batch, 0) is batch


def test_weights_in_half_precision_are_refused(tiny):
    objective = Triplet(EncoderConfig(tiny("bert"), dtype="bfloat16"))
    objective.configure_model()
    with refused("half_precision_training", dtype="bfloat16"):
        objective.configure_optimizers()


def test_validation_returns_the_positions_of_wrong_answers():
    """Embeddings on a half circle, so that scores are known; a tie is an answer for B, and a repeat does not count."""
    angles = torch.tensor([0.0, 0.1, 0.5, 3.0])
    embeddings = torch.stack([angles.cos(), angles.sin()], dim=1)
    rows = [(0, 1, 2, 1), (0, 1, 2, 0), (0, 3, 1, 1), (0, 2, 2, 1), (0, 2, 2, 0), (0, 3, 1, 1)]
    anchors, a, b, labels = (torch.tensor(column) for column in zip(*rows, strict=True))
    positions = torch.tensor([10, 11, 12, 13, 14, -1])
    stories = PackedStories(torch.zeros(4), (1,) * 4, torch.arange(4))
    objective = Triplet(EncoderConfig("unused"))
    objective.encoder = torch.nn.Identity()
    objective.forward = lambda stories: embeddings
    trainer = objective.trainer = SimpleNamespace(sanity_checking=False)
    batch = TripleBatch(stories, anchors, a, b, labels, positions)
    outputs = objective.validation_step(batch, 0)

    assert outputs["wrong"].tolist() == [-1, 11, 12, 13, -1, -1]

    evaluation = objective.validation_accuracy.evaluation()
    assert (evaluation.n, evaluation.correct) == (5, 2)

    objective.frozen_embeddings = lambda stories: embeddings[[0, 2, 1, 3]]  # A and B of the first rows change places
    assert "wrong_frozen" not in objective.validation_step(batch, 0)

    trainer.sanity_checking = True
    outputs = objective.validation_step(batch, 0)
    assert outputs["wrong"].tolist() == [-1, 11, 12, 13, -1, -1]
    assert outputs["wrong_frozen"].tolist() == [10, -1, 12, 13, -1, -1]
