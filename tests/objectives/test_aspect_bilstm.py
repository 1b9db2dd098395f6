"""Subspaces: the weighted sum by hand, gradients of each slice, rows without a pair, unlabelled stories."""

import pytest
import torch
from frozen_batches import Steps, batch_of, built, table_of

from narrlit.models.bilstm import BiLSTMConfig
from narrlit.objectives import Aspects, Subspaces
from narrlit.objectives.unlabelled import UnlabelledStories


def labelled(objective, count=9):
    """Labels of the stories in rows 50 and up, such that each aspect has pairs among the anchors."""
    labels = torch.full((50 + count, 3), -1)
    labels[50:54] = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]])
    objective.labels = labels
    return objective


@pytest.mark.parametrize("aspect", range(3))
def test_each_slice_alone_has_a_gradient_into_the_whole_bilstm(aspect):
    weights = [0.0, 0.0, 0.0]
    weights[aspect] = 1.0
    aspects = Aspects(weights=tuple(weights), margin=3.0)
    objective = labelled(built(Subspaces(aspects=aspects, triplet_weight=0.0, bilstm=BiLSTMConfig(dropout=0))))
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    objective.loss(objective(batch.stories), batch)["loss"].backward()
    begin = sum(objective.sizes[:aspect])
    pull = objective.head.linear.weight.grad.abs().sum(1)
    rows = (pull > 1e-5 * pull.max()).nonzero().squeeze(1)
    assert rows.min() >= begin
    assert rows.max() < begin + objective.sizes[aspect]
    assert [n for n, p in objective.head.lstm.named_parameters() if not p.grad.any()] == []


def by_hand(v, labels, margin):
    """Batch-hard in plain loops: mean over rows with a pair, and how many labelled rows have none."""
    costs, without = [], 0
    for i in range(len(v)):
        if labels[i] < 0:
            continue
        far = [(v[i] - v[j]).norm() for j in range(len(v)) if j != i and labels[j] == labels[i]]
        near = [(v[i] - v[j]).norm() for j in range(len(v)) if labels[j] >= 0 and labels[j] != labels[i]]
        if far and near:
            costs.append(torch.relu(max(far) - min(near) + margin))
        else:
            without += 1
    return torch.stack(costs).mean() if costs else v.sum() * 0, without


def test_the_whole_loss_is_the_papers_weighted_sum():
    objective = labelled(built(Subspaces(bilstm=BiLSTMConfig(output=16, dropout=0))))
    objective.labels[50, 0] = 7  # alone with its theme, as 51 is now
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    v = objective(batch.stories)
    found = objective.loss(v, batch)
    triplet = torch.stack([torch.relu(1.002 - (v[i] @ v[i + 4] - v[i] @ v[8])) for i in range(3)]).mean()
    total = 1.437 * triplet
    for k, (begin, end, weight) in enumerate([(0, 8, 0.5), (8, 12, 0.3), (12, 16, 0.2)]):
        part = torch.nn.functional.normalize(v[:4, begin:end], dim=1)
        loss, without = by_hand(part, objective.labels[50:54, k].tolist(), 0.537)
        total = total + 0.974 * weight * loss
        name = ("theme", "action", "outcome")[k]
        assert torch.allclose(found[name], loss, atol=1e-6)
        assert found[f"{name}_without_pair"] == without == (2 if k == 0 else 0)
    assert torch.allclose(found["loss"], total, atol=1e-6)


def test_all_stories_of_a_batch_may_count():
    objective = labelled(built(Subspaces(aspects=Aspects(labelled="all"), bilstm=BiLSTMConfig(output=16, dropout=0))))
    objective.labels[54:59] = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [2, 2, 2]])
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    v = objective(batch.stories)
    found = objective.loss(v, batch)
    # The negative stands three times, which makes no pair of it; each time it is without one.
    part = torch.nn.functional.normalize(v[:, :8], dim=1)
    rows = [*range(8)]
    loss, _ = by_hand(part[[*rows, 8]], objective.labels[50:59, 0].tolist(), 0.537)
    assert torch.allclose(found["theme"], loss, atol=1e-6)
    assert found["theme_without_pair"] == 3


def test_unlabelled_stories_add_their_slices_and_nothing_else():
    objective = labelled(built(Subspaces(transductive=True, bilstm=BiLSTMConfig(output=16, dropout=0))))
    objective._trainer = Steps()
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    plain = objective.loss(objective(batch.stories), batch)
    table, _ = table_of(6, lengths=[1, 2, 3, 1, 2, 1])
    labels = torch.tensor([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    objective.unlabelled = UnlabelledStories(table, labels)
    found = objective.loss(objective(batch.stories), batch)
    more = sum(
        w * found[f"unlabelled_{n}"] for n, w in zip(("theme", "action", "outcome"), (0.5, 0.3, 0.2), strict=True)
    )
    assert more > 0.01
    assert torch.allclose(found["loss"], plain["loss"] + 0.355 * more, atol=1e-6)


def test_the_same_step_draws_the_same_unlabelled_stories():
    table, _ = table_of(20)
    stories = UnlabelledStories(table, torch.arange(60).view(20, 3))
    one, again, other = (stories.draw(8, [1, step, 0], torch.device("cpu")) for step in (4, 4, 5))
    assert torch.equal(one.stories.rows, again.stories.rows)
    assert not torch.equal(one.stories.rows, other.stories.rows)
    assert torch.equal(one.labels[:, 0], one.stories.rows * 3)
    assert len(set(one.stories.rows.tolist())) == 8
    assert len(stories.draw(99, [0], torch.device("cpu")).labels) == 20
