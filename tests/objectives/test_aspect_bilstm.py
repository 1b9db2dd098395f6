"""AspectBiLSTM: the weighted sum by hand, gradients of each subspace, stories without a pair, unlabeled stories."""

import pytest
import torch
from frozen_batches import batch_of, built, packed, triplet_loss_of_cosines
from refusals import refused

from narrlit.data.batch import UnlabelledBatch
from narrlit.models.config import BiLSTMConfig
from narrlit.objectives import AspectBiLSTM, Aspects

LENGTHS = (2, 3, 1, 4, 2, 2, 3, 1, 5)


def labeled_batch():
    """Labels such that each aspect has pairs among the anchors."""
    batch = batch_of(LENGTHS)
    batch.pseudo_labels = torch.full((9, 3), -1)
    batch.pseudo_labels[:4] = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]])
    return batch


@pytest.mark.parametrize("aspect", range(3))
def test_the_loss_of_each_subspace_has_gradients_in_the_whole_bilstm(aspect):
    weights = [0.0, 0.0, 0.0]
    weights[aspect] = 1.0
    aspects = Aspects(weights=tuple(weights), margin=3.0)
    objective = built(AspectBiLSTM(aspects=aspects, triplet_weight=0.0, bilstm=BiLSTMConfig(dropout=0)))
    batch = labeled_batch()
    objective.loss(objective(batch.stories), batch)["loss"].backward()
    begin = sum(objective.sizes[:aspect])
    pull = objective.head.linear.weight.grad.abs().sum(1)
    rows = (pull > 1e-5 * pull.max()).nonzero().squeeze(1)

    assert rows.min() >= begin
    assert rows.max() < begin + objective.sizes[aspect]
    assert [n for n, p in objective.head.lstm.named_parameters() if not p.grad.any()] == []


def by_hand(v, labels, margin, divisor="paired"):
    """Batch-hard in plain loops: mean over rows with a pair (or a label), and how many labelled rows have none."""
    costs, without = [], 0
    labelled = [i for i, label in enumerate(labels) if label >= 0]
    for i in labelled:
        same = [j for j in labelled if labels[j] == labels[i] and j != i]
        unlike = [j for j in labelled if labels[j] != labels[i]]
        if same and unlike:
            furthest = max((v[i] - v[j]).norm() for j in same)
            nearest = min((v[i] - v[j]).norm() for j in unlike)
            costs.append(torch.relu(furthest - nearest + margin))
        else:
            without += 1
    counted = len(costs) + (without if divisor == "labeled" else 0)
    return torch.stack(costs).sum() / counted if costs else v.sum() * 0, without


@pytest.mark.parametrize("divisor", ["paired", "labeled"])
def test_the_loss_is_the_weighted_sum_of_the_paper(divisor):
    objective = built(AspectBiLSTM(bilstm=BiLSTMConfig(output=16, dropout=0), aspects=Aspects(divisor=divisor)))
    batch = labeled_batch()
    batch.pseudo_labels[0, 0] = 7  # alone with its theme, as the second is now
    v = objective(batch.stories)
    found = objective.loss(v, batch)
    total = 1.437 * triplet_loss_of_cosines(v, margin=1.002)
    subspaces = {"theme": (0, 8, 0.5), "action": (8, 12, 0.3), "outcome": (12, 16, 0.2)}
    for column, (name, (begin, end, weight)) in enumerate(subspaces.items()):
        part = torch.nn.functional.normalize(v[:4, begin:end], dim=1)
        loss, without = by_hand(part, batch.pseudo_labels[:4, column].tolist(), 0.537, divisor)
        total = total + 0.974 * weight * loss
        assert torch.allclose(found[name], loss, atol=1e-6)
        assert without == (2 if name == "theme" else 0)
        assert found[f"{name}_without_pair"] == without

    assert torch.allclose(found["loss"], total, atol=1e-6)


def test_labels_of_all_stories_of_a_batch_can_be_used():
    objective = built(AspectBiLSTM(aspects=Aspects(labelled="all"), bilstm=BiLSTMConfig(output=16, dropout=0)))
    batch = labeled_batch()
    batch.pseudo_labels[4:] = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [2, 2, 2]])
    v = objective(batch.stories)
    found = objective.loss(v, batch)
    # The negative stands three times, which makes no pair of it; each time it is without one.
    part = torch.nn.functional.normalize(v[:, :8], dim=1)
    loss, _ = by_hand(part, batch.pseudo_labels[:, 0].tolist(), 0.537)

    assert torch.allclose(found["theme"], loss, atol=1e-6)
    assert found["theme_without_pair"] == 3


def test_unlabeled_stories_add_only_their_subspace_losses():
    objective = built(AspectBiLSTM(bilstm=BiLSTMConfig(output=16, dropout=0)))
    batch = labeled_batch()
    plain = objective.loss(objective(batch.stories), batch)
    labels = torch.tensor([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    batch.unlabelled = UnlabelledBatch(packed([1, 2, 3, 1, 2, 1], seed=1), labels)
    terms = objective.loss(objective(batch.stories), batch)
    more = 0.5 * terms["unlabelled_theme"] + 0.3 * terms["unlabelled_action"] + 0.2 * terms["unlabelled_outcome"]

    assert more > 0.01
    assert torch.allclose(terms["loss"], plain["loss"] + 0.355 * more, atol=1e-6)


def test_without_labels_the_loss_is_the_triplet_loss():
    objective = built(AspectBiLSTM(bilstm=BiLSTMConfig(dropout=0), triplet_weight=2.0))
    batch = batch_of(LENGTHS)
    terms = objective.loss(objective(batch.stories), batch)
    assert set(terms) == {"loss", "active", "triplet"}
    assert torch.allclose(terms["loss"], 2 * terms["triplet"])


@pytest.mark.parametrize("name", ["ratios", "weights"])
def test_each_aspect_needs_a_ratio_and_a_weight(name):
    with refused("number_for_each_aspect", option=f"aspects.{name}", found=(0.5, 0.5)):
        Aspects(**{name: (0.5, 0.5)})
