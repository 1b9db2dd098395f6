"""Objectives on tiny models: losses against the pure functions, gradients, hyperparameters, dropout, gathering."""

import pytest
import torch
from tiny_models import world_texts

from narrlit.data.batch import ExampleBatch, PackedStories
from narrlit.errors import OptionError
from narrlit.losses.contrastive import ranking_loss
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.objectives import Optimization, Ranking, Triplet


def batch_of(objective, count=4, negatives=2):
    """`count` examples over 2 count + negatives different stories; the last negative of the last row is padding."""
    texts = world_texts()[: 2 * count + negatives]
    ids, _ = objective.encoder.tokenize(texts)
    flat = torch.tensor([t for text in ids for t in text])
    stories = PackedStories(flat, tuple(map(len, ids)), torch.arange(len(ids)) + 50)
    own = torch.arange(2 * count, 2 * count + negatives).repeat(count, 1)
    if negatives:
        own[-1, -1] = -1
    return ExampleBatch(stories, torch.arange(count), torch.arange(count) + count, own, torch.full_like(own, -1))


@pytest.fixture
def build(tiny):
    def make(kind, **options):
        objective = kind(EncoderConfig(tiny("bert"), dropout=options.pop("dropout", 0.0)), **options)
        objective.configure_model()
        return objective

    return make


def test_ranking_is_the_pure_loss_over_the_right_stories(build):
    objective = build(Ranking, scale=7.0)
    batch = batch_of(objective)
    vectors = objective(batch.stories)
    anchors, positives, others = vectors[:4], vectors[4:8], vectors[8:]
    # Every row's negatives are candidates of all rows: two stories, given four times, once as padding.
    logits = 7.0 * anchors @ torch.cat([positives, others.repeat(4, 1)[:7]]).T
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(4))
    assert torch.allclose(objective.loss(vectors, batch)["loss"], expected, atol=1e-6)


def test_pairs_leave_the_explicit_negatives_out(build):
    pairs, triplets = build(Ranking, candidates="pairs"), build(Ranking)
    batch = batch_of(pairs)
    vectors = pairs(batch.stories)
    expected = ranking_loss(vectors[:4], vectors[4:8], torch.arange(4), scale=20.0)
    assert torch.allclose(pairs.loss(vectors, batch)["loss"], expected)
    assert triplets.loss(vectors, batch)["loss"] > expected + 1e-4


def test_ranking_needs_no_negatives(build):
    objective = build(Ranking)
    batch = batch_of(objective, negatives=0)
    assert objective.loss(objective(batch.stories), batch)["loss"] > 0


@pytest.mark.parametrize("distance", ["cosine", "euclidean", "squared_euclidean"])
def test_triplets_are_all_pairs_but_padding(build, distance):
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
    plain, adaptive = build(Triplet, margin=0.1), build(Triplet, margin=0.1, maximum_margin=2.0)
    batch = batch_of(plain)
    vectors = plain(batch.stories)
    assert adaptive.loss(vectors, batch)["loss"] > plain.loss(vectors, batch)["loss"]


@pytest.mark.parametrize("kind", [Ranking, Triplet])
def test_every_trained_weight_gets_a_gradient(build, kind):
    objective = build(kind)
    batch = batch_of(objective)
    objective.loss(objective(batch.stories), batch)["loss"].backward()
    without = [n for n, p in objective.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    # Softmax takes no notice of what is added to all its logits: keys' biases have no gradient in exact arithmetic.
    assert [n for n in without if "key.bias" not in n] == []


@pytest.mark.parametrize("kind", [Ranking, Triplet])
def test_a_step_of_training_lowers_the_loss(build, kind):
    objective = build(kind)
    batch = batch_of(objective)
    optimizer = torch.optim.SGD(objective.parameters(), lr=0.05)
    losses = []
    for _ in range(8):
        loss = objective.loss(objective(batch.stories), batch)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 1e-3


def test_the_encoder_trains_in_train_mode(build):
    objective = build(Ranking, dropout=0.3)
    assert all(module.training for module in objective.encoder.modules())


def test_constructors_build_nothing_and_keep_plain_hyperparameters(tiny):
    objective = Ranking(EncoderConfig("no/such-model", prompts=Prompts(anchor="q: ")), Optimization(warmup=0.5))
    assert not list(objective.parameters())
    kept = dict(objective.hparams)
    assert kept["encoder"]["prompts"]["anchor"] == "q: "
    assert kept["optimization"]["warmup"] == 0.5
    assert kept["scale"] == 20.0
    again = Ranking(kept["encoder"], kept["optimization"])
    assert again.encoder_config == objective.encoder_config
    assert again.optimization == objective.optimization


def test_cosine_objectives_refuse_vectors_that_are_not_unit(tiny):
    for objective in (
        Ranking(EncoderConfig(tiny("bert"), normalize=False)),
        Triplet(EncoderConfig(tiny("bert"), normalize=False)),
    ):
        with pytest.raises(OptionError, match="normalize"):
            objective.configure_model()
    euclidean = Triplet(EncoderConfig(tiny("bert"), normalize=False), distance="euclidean")
    euclidean.configure_model()
    assert not euclidean.encoder.normalized


def test_options_out_of_range_are_refused():
    for make in (
        lambda: Ranking(scale=0),
        lambda: Triplet(margin=-1),
        lambda: Triplet(margin=1.0, maximum_margin=0.5),
        lambda: Optimization(learning_rate=-1e-5),
        lambda: Optimization(warmup=2),
    ):
        with pytest.raises(OptionError):
            make()


def test_biases_and_norms_do_not_decay(build):
    objective = build(Ranking, optimization=Optimization(weight_decay=0.1))

    class Steps:
        estimated_stepping_batches = 10

    objective._trainer = Steps()
    groups = objective.configure_optimizers()["optimizer"].param_groups
    decays = {g["weight_decay"]: [p.ndim for p in g["params"]] for g in groups}
    assert set(decays) == {0.1, 0.0}
    assert min(decays[0.1]) == 2
    assert max(decays[0.0]) == 1
    assert sum(map(len, decays.values())) == sum(p.requires_grad for p in objective.parameters())


def test_triplets_need_negatives(build):
    objective = build(Triplet)
    batch = batch_of(objective, negatives=0)
    with pytest.raises(OptionError, match="needs negatives"):
        objective.loss(objective(batch.stories), batch)
    batch = batch_of(objective)
    batch.negatives = torch.full_like(batch.negatives, -1)
    loss = objective.loss(objective(batch.stories), batch)["loss"]
    loss.backward()
    assert loss == 0
    assert all(torch.isfinite(p.grad).all() for p in objective.parameters() if p.grad is not None)
