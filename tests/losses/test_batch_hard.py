import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_vectors import normal_vectors

from narrlit.losses.batch_hard import batch_hard, subspace_sizes, subspaces

SIZES = (5, 2, 3)
LABELS = {
    "mixed": [0, 1, 0, 2, 1, 0, 2, 1],
    "some unlabeled": [0, -1, 0, 1, -1, 1, 0, -1],
    "one alone": [3, 3, 3, 7, 3, 3, 3, 3],
    "one class": [4] * 8,
    "one row a class": list(range(8)),
    "none labelled": [-1] * 8,
    "one class and unlabelled": [2, -1, 2, -1, -1, 2, -1, -1],
}
NONE_PAIRED = {"one class", "one row a class", "none labelled", "one class and unlabelled"}


def vectors(n, seed, dimension=4):
    return normal_vectors(n, dimension, seed=seed)


def by_hand(rows, labels, margin, stories, divisor="paired"):
    """The loss and its rows by plain loops."""
    costs = []
    labelled = [i for i, label in enumerate(labels) if label != -1]
    for i in labelled:
        others = [j for j in labelled if stories[j] != stories[i]]
        positives = [math.dist(rows[i], rows[j]) for j in others if labels[j] == labels[i]]
        negatives = [math.dist(rows[i], rows[j]) for j in others if labels[j] != labels[i]]
        if positives and negatives:
            costs.append(max(0.0, max(positives) - min(negatives) + margin))
    counted = len(costs) if divisor == "paired" else len(labelled)
    return sum(costs) / max(1, counted), len(costs)


@pytest.mark.parametrize("divisor", ["paired", "labeled"])
@pytest.mark.parametrize("margin", [0.0, 0.537, 3.0])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("case", LABELS)
def test_batch_hard_matches_plain_loops(case, n, margin, divisor):
    rows = vectors(n, n)
    labels = LABELS[case][:n]
    found = batch_hard(rows, torch.tensor(labels), margin, divisor=divisor)
    loss, count = by_hand(rows.tolist(), labels, margin, range(n), divisor)

    assert found.loss.item() == pytest.approx(loss, abs=1e-12)
    assert found.rows.item() == count
    assert found.loss.shape == ()
    assert found.rows.shape == ()
    assert found.rows.dtype == torch.int64
    if case in NONE_PAIRED:
        assert count == 0
    elif n == 8:
        assert count > 0


def test_the_divisor_counts_rows_with_a_pair_or_rows_with_a_label():
    labels = torch.tensor(LABELS["one alone"])  # seven rows of one class, and one alone with its label: it has no pair
    rows = vectors(8, 8)
    paired = batch_hard(rows, labels, 3.0, divisor="paired").loss.item()
    labeled = batch_hard(rows, labels, 3.0, divisor="labeled").loss.item()

    assert paired != 0
    assert 8 * labeled == pytest.approx(7 * paired)


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 4)), min_size=1, max_size=12), st.integers(0, 99))
def test_rows_of_one_story_are_not_a_pair(drawn, seed):
    labels, stories = (list(column) for column in zip(*drawn, strict=True))
    rows = vectors(len(drawn), seed)
    found = batch_hard(rows, torch.tensor(labels), 1.0, torch.tensor(stories))
    loss, count = by_hand(rows.tolist(), labels, 1.0, stories)

    assert found.loss.item() == pytest.approx(loss, abs=1e-12)
    assert found.rows.item() == count


@pytest.mark.parametrize("case", ["mixed", "some unlabeled", "one alone"])
def test_batch_hard_passes_gradcheck(case):
    rows = vectors(8, 5).requires_grad_()
    labels = torch.tensor(LABELS[case])

    assert batch_hard(rows, labels, 2.0).loss.item() > 0
    assert torch.autograd.gradcheck(lambda rows: batch_hard(rows, labels, 2.0).loss, (rows,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [0.0, 1e-30, 1e-8])
def test_the_gradient_is_finite_where_rows_are_equal(gap, dtype):
    rows = vectors(1, 7).to(dtype).repeat(6, 1)
    rows[3:] += gap
    rows.requires_grad_()
    loss, count = batch_hard(rows, torch.tensor([0, 0, 1, 0, 1, -1]), 0.5)
    loss.backward()

    assert loss.item() == pytest.approx(0.5, abs=1e-6)
    assert count.item() == 5
    assert rows.grad.isfinite().all()
    assert rows.grad.norm(dim=1).max() < 5  # each of five rows pulls by at most 2 / 5, at itself and at others


def test_near_rows_are_distinguished_far_from_the_origin():
    rows = torch.tensor([[1000.0], [1000.5], [1000.02], [1000.01]])
    labels = [0, 0, 1, 1]
    expected, _ = by_hand(rows.tolist(), labels, 0.0, range(4))

    found = batch_hard(rows, torch.tensor(labels), 0.0).loss.item()

    assert found == pytest.approx(expected, rel=1e-5)


def test_near_rows_are_distinguished_in_batches_of_more_than_25():
    # From 26 rows on, torch.cdist by default multiplies matrices, which loses such distances.
    rows = 1000 + 0.01 * torch.arange(32.0)[:, None]
    labels = [i % 2 for i in range(32)]
    expected, _ = by_hand(rows.tolist(), labels, 0.0, range(32))
    # Differences of floats this near are exact; their mean is rounded to float32's 6e-8.
    assert batch_hard(rows, torch.tensor(labels), 0.0).loss.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("case", sorted(NONE_PAIRED))
def test_without_a_pair_loss_and_gradient_are_0(case):
    rows = vectors(8, 8).requires_grad_()
    loss, count = batch_hard(rows, torch.tensor(LABELS[case]), 0.5)
    loss.backward()

    assert loss.item() == 0.0
    assert count.item() == 0
    assert torch.equal(rows.grad, torch.zeros_like(rows))


def test_autocast_changes_nothing_and_half_precision_is_computed_in_float32():
    rows = vectors(8, 9).float()
    labels = torch.tensor(LABELS["mixed"])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = batch_hard(rows, labels, 1.0).loss

    assert mixed.item() == batch_hard(rows, labels, 1.0).loss.item()
    assert batch_hard(rows.bfloat16(), labels, 1.0).loss.dtype == torch.float32

    (whole,) = subspaces(rows.bfloat16(), (4,))
    assert whole.norm(dim=1).tolist() == pytest.approx([1.0] * 8, abs=1e-6)


@pytest.mark.parametrize("part", range(3))
def test_a_subspace_has_gradients_in_its_own_dimensions_only(part):
    rows = vectors(8, 10, sum(SIZES)).requires_grad_()
    loss = batch_hard(subspaces(rows, SIZES)[part], torch.tensor(LABELS["mixed"]), 0.537).loss
    loss.backward()
    begin = sum(SIZES[:part])
    own = torch.zeros(sum(SIZES), dtype=torch.bool)
    own[begin : begin + SIZES[part]] = True

    assert (rows.grad[:, own].norm(dim=0) > 1e-4).all()
    assert torch.equal(rows.grad[:, ~own], torch.zeros_like(rows.grad[:, ~own]))


def test_subspaces_are_in_order_and_have_length_1():
    rows = vectors(4, 11, sum(SIZES))
    parts = subspaces(rows, SIZES)
    assert [tuple(part.shape) for part in parts] == [(4, size) for size in SIZES]

    for i, row in enumerate(rows.tolist()):
        begin = 0
        for part, size in zip(parts, SIZES, strict=True):
            own = row[begin : begin + size]
            assert part[i].tolist() == pytest.approx([x / math.hypot(*own) for x in own])
            begin += size


def test_subspaces_split_the_last_axis():
    rows = vectors(6, 11, sum(SIZES))
    parts = subspaces(rows.reshape(2, 3, -1), SIZES)
    for part, expected in zip(parts, subspaces(rows, SIZES), strict=True):
        assert torch.equal(part.reshape(6, -1), expected)


def test_subspaces_pass_gradcheck_and_have_a_finite_gradient_at_0():
    assert torch.autograd.gradcheck(lambda x: subspaces(x, SIZES), (vectors(3, 12, sum(SIZES)).requires_grad_(),))

    rows = vectors(3, 12, sum(SIZES)).float()
    rows[1, : SIZES[0]] = 0
    rows.requires_grad_()
    first, *_ = subspaces(rows, SIZES)
    batch_hard(first, torch.tensor([0, 0, 1]), 5.0).loss.backward()

    assert torch.equal(first[1], torch.zeros(SIZES[0]))
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize(
    ("dimension", "ratios", "sizes"),
    [
        (256, (0.5, 0.25, 0.25), (128, 64, 64)),
        (10, (0.5, 0.25, 0.25), (5, 3, 2)),
        (7, (2, 1, 1), (3, 2, 2)),
        (3, (0.98, 0.01, 0.01), (1, 1, 1)),
        (10, (0.98, 0.01, 0.01), (8, 1, 1)),
        (10, (0.3, 0.3, 0.4), (3, 3, 4)),
        (5, (1,), (5,)),
        (10, (7.4, 1.3, 1.3), (8, 1, 1)),
        (7, (3.3, 3.1, 0.3, 0.3), (3, 2, 1, 1)),
        (7, (3.1, 3.1, 0.4, 0.4), (2, 3, 1, 1)),  # of equal ones the first becomes smaller: weights depend on it
    ],
)
def test_sizes_follow_the_largest_remainder_method(dimension, ratios, sizes):
    assert subspace_sizes(dimension, ratios) == sizes


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=5), st.integers(5, 600))
def test_sizes_sum_to_the_dimension_and_follow_the_ratios(ratios, dimension):
    sizes = subspace_sizes(dimension, ratios)
    quotas = [dimension * ratio / sum(ratios) for ratio in ratios]
    assert sum(sizes) == dimension
    assert min(sizes) >= 1

    if min(quotas) >= 1:
        assert all(abs(size - quota) < 1 + 1e-9 for size, quota in zip(sizes, quotas, strict=True))


@pytest.mark.parametrize(
    ("dimension", "ratios", "message"),
    [
        (2, (1, 1, 1), "2 dimensions are too few for 3 subspaces"),
        (8, (), "ratios must be numbers above 0"),
        (8, (1, 0), "ratios must be numbers above 0"),
        (8, (1, float("inf")), "ratios must be numbers above 0"),
    ],
)
def test_invalid_ratios_and_dimensions_are_refused(dimension, ratios, message):
    with pytest.raises(ValueError, match=message):
        subspace_sizes(dimension, ratios)
