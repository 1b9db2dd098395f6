import itertools
import math

import numpy as np
import pytest
import torch
from contrastive_by_hand import masks, places

from narrlit.losses.distillation import distillation_loss, linear_weight

TAU = 0.09


def similarities(b, m, seed, space="cosine"):
    values = torch.rand(b, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1
    return values if space == "cosine" else values / TAU


def by_hand(student, teacher, target, keep, temperature):
    """Equation 4, term by term, over the candidates that are left."""
    rows, columns = student.shape
    total = 0.0
    for i in range(rows):
        left = [c for c in range(columns) if keep is None or bool(keep[i, c]) or c == int(target[i])]
        p = softmax_by_hand(teacher[i, left], temperature)
        q = softmax_by_hand(student[i, left], temperature)
        total += sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
    return total / rows * temperature**2


def softmax_by_hand(values, temperature):
    exponentials = np.exp(values.numpy() / temperature)
    return (exponentials / exponentials.sum()).tolist()


@pytest.mark.parametrize("space", ["cosine", "logits"])
@pytest.mark.parametrize("temperature", [0.15, 1.0, 2.0])
@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
@pytest.mark.parametrize(("b", "spare", "k"), list(itertools.product([1, 2, 5], [0, 2], [0, 1, 3])))
def test_distillation_loss_matches_plain_loops(b, spare, k, kind, temperature, space):
    c = b + spare
    student = similarities(b, c + k, 0, space)
    teacher = similarities(b, c + k, 1, space)
    target = places(b, c)
    keep = masks(kind, b, c + k)
    expected = by_hand(student, teacher, target, keep, temperature)

    loss = distillation_loss(student, teacher, target, keep, temperature)

    assert loss.shape == ()
    assert loss.dtype == torch.float64
    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("temperature", [0.15, 1.0])
@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
def test_distillation_loss_passes_gradcheck(kind, temperature):
    student = similarities(3, 6, 0).requires_grad_()
    teacher = similarities(3, 6, 1)
    target = torch.tensor([2, 0, 3])
    keep = masks(kind, 3, 6)
    assert torch.autograd.gradcheck(lambda s: distillation_loss(s, teacher, target, keep, temperature), [student])


@pytest.mark.parametrize("space", ["cosine", "logits"])
@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
def test_loss_is_0_where_student_and_teacher_agree(kind, space):
    values = similarities(4, 9, 0, space)
    student = values.clone().requires_grad_()
    loss = distillation_loss(student, values, torch.arange(4), masks(kind, 4, 9))

    assert abs(loss.item()) < 1e-12

    loss.backward()
    assert student.grad.abs().max() < 1e-12

    shifted = distillation_loss(values + 0.3, values, torch.arange(4), masks(kind, 4, 9))
    assert abs(shifted.item()) < 1e-12


def test_the_teacher_gets_no_gradient():
    student = similarities(3, 5, 0).requires_grad_()
    teacher = similarities(3, 5, 1).requires_grad_()
    distillation_loss(student, teacher, torch.arange(3)).backward()

    assert student.grad.norm() > 0
    assert teacher.grad is None
    assert not distillation_loss(similarities(3, 5, 0), teacher, torch.arange(3)).requires_grad


@pytest.mark.parametrize("side", ["student", "teacher", "both"])
@pytest.mark.parametrize("value", [0.0, 5.0, -1e30, 1e30, math.inf, -math.inf, math.nan])
def test_masked_candidates_do_not_change_the_loss(value, side):
    student = similarities(3, 6, 0)
    teacher = similarities(3, 6, 1)
    target = torch.arange(3)
    keep = torch.ones(3, 6, dtype=torch.bool)
    keep[0, 4] = keep[1, 0] = keep[1, 5] = keep[2, 3] = False
    expected = distillation_loss(student, teacher, target, keep).item()
    if side != "teacher":
        student = student.masked_fill(~keep, value)
    if side != "student":
        teacher = teacher.masked_fill(~keep, value)
    student.requires_grad_()
    loss = distillation_loss(student, teacher, target, keep)
    loss.backward()

    assert loss.item() == expected
    assert student.grad.isfinite().all()
    assert torch.equal(student.grad.ne(0), keep)


@pytest.mark.parametrize("rows", [[0], [0, 2], [0, 1, 2]])
def test_a_row_without_negatives_has_loss_0_and_gradient_0(rows):
    student = similarities(3, 5, 0).requires_grad_()
    teacher = similarities(3, 5, 1)
    target = torch.tensor([1, 2, 0])
    keep = torch.ones(3, 5, dtype=torch.bool)
    keep[rows] = False
    loss = distillation_loss(student, teacher, target, keep)
    others = [i for i in range(3) if i not in rows]
    rest = 0.0
    if others:
        rest = distillation_loss(student[others], teacher[others], target[others]).item() * len(others) / 3

    assert loss.grad_fn is not None
    assert loss.item() == pytest.approx(rest, abs=1e-15)

    loss.backward()
    assert torch.equal(student.grad[rows], torch.zeros(len(rows), 5, dtype=torch.float64))
    assert student.grad[others].ne(0).all()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_distillation_loss_is_computed_in_float32(dtype, autocast):
    student = similarities(4, 9, 0).to(dtype)
    teacher = similarities(4, 9, 1).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = distillation_loss(student, teacher, torch.arange(4))

    assert loss.dtype == torch.float32

    exact = distillation_loss(student.double(), teacher.double(), torch.arange(4))
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("student", "teacher", "target", "keep", "message"),
    [
        ((2, 3), (2, 4), (2,), None, "student has shape"),
        ((2, 3), (2, 3), (2,), (2, 1), "keep has shape"),
        ((2, 3), (2, 3), (1,), (2, 3), "similarities must be"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(student, teacher, target, keep, message):
    mask = None if keep is None else torch.ones(keep, dtype=torch.bool)
    with pytest.raises(ValueError, match=message):
        distillation_loss(torch.zeros(student), torch.zeros(teacher), torch.zeros(target, dtype=torch.int64), mask)


@pytest.mark.parametrize(("start", "end"), [(0.7, 0.05), (0.0, 1.0), (0.3, 0.3)])
@pytest.mark.parametrize("steps", [2, 3, 10, 1000])
def test_the_weight_changes_linearly(steps, start, end):
    weights = [linear_weight(step, steps, start, end) for step in range(steps)]
    assert weights[0] == start
    assert weights[-1] == end
    assert weights == pytest.approx(np.linspace(start, end, steps).tolist(), abs=1e-12)


def test_steps_out_of_range_are_clamped():
    assert linear_weight(-5, 10, 0.7, 0.05) == 0.7
    assert linear_weight(10, 10, 0.7, 0.05) == 0.05
    assert linear_weight(10**9, 10, 0.7, 0.05) == 0.05


def test_with_at_most_one_step_the_weight_is_the_first():
    assert [linear_weight(step, 1, 0.7, 0.05) for step in (0, 1, 7)] == [0.7] * 3
    assert linear_weight(0, 0, 0.7, 0.05) == 0.7


def test_the_default_temperature_of_distillation_is_0_15():
    student, teacher = similarities(3, 5, 0), similarities(3, 5, 1)
    default = distillation_loss(student, teacher, torch.arange(3))
    assert default == distillation_loss(student, teacher, torch.arange(3), temperature=0.15)
