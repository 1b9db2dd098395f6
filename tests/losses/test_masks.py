import itertools

import pytest
import torch

from narrlit.losses.masks import duplicates_mask, teacher_mask

STORIES = torch.tensor([10, 11, 10, 0, 4, -1, 2])
ANCHORS = torch.tensor([0, 1, 2])
POSITIVES = torch.tensor([10, 11, 10])


def duplicates_by_hand(stories, anchors, positives):
    """Each example's row: True for stories that are neither missing nor its anchor or positive."""
    rows = stories.tolist() if stories.ndim == 2 else [stories.tolist()] * len(anchors)
    mask = []
    for row, anchor, positive in zip(rows, anchors.tolist(), positives.tolist(), strict=True):
        mask.append([story not in (-1, anchor, positive) for story in row])
    return mask


def test_duplicates_mask_of_a_small_example():
    mask = duplicates_mask(STORIES, ANCHORS, POSITIVES)

    assert mask.dtype == torch.bool
    assert mask.tolist() == duplicates_by_hand(STORIES, ANCHORS, POSITIVES)
    assert torch.equal(duplicates_mask(STORIES.expand(3, -1), ANCHORS, POSITIVES), mask)


@pytest.mark.parametrize("b", [1, 4])
@pytest.mark.parametrize("m", [0, 1, 9])
@pytest.mark.parametrize("rows", [False, True])
def test_duplicates_mask_matches_plain_loops(b, m, rows):
    generator = torch.Generator().manual_seed(b + m)
    stories = torch.randint(-1, 6, (b, m) if rows else (m,), generator=generator)
    anchors = torch.randint(0, 6, (b,), generator=generator)
    positives = torch.randint(0, 6, (b,), generator=generator)
    mask = duplicates_mask(stories, anchors, positives)

    assert mask.shape == (b, m)
    assert mask.tolist() == duplicates_by_hand(stories, anchors, positives)


@pytest.mark.parametrize("margin", [None, -0.3, -0.05, 0.0, 0.05, 0.3])
@pytest.mark.parametrize(("b", "c", "k"), list(itertools.product([1, 5], [5, 7], [0, 3])))
def test_teacher_mask_matches_equation_3(b, c, k, margin):
    generator = torch.Generator().manual_seed(b + 10 * c + 100 * k)
    teacher = torch.rand(b, c + k, generator=generator, dtype=torch.float64) * 2 - 1
    target = torch.randperm(c, generator=generator)[:b]
    mask = teacher_mask(teacher, target) if margin is None else teacher_mask(teacher, target, margin)

    assert mask.dtype == torch.bool

    added = -0.05 if margin is None else margin
    for i, j in itertools.product(range(b), range(c + k)):
        own = target[i].item()
        masked = teacher[i, j].item() > teacher[i, own].item() + added
        assert mask[i, j].item() == (j == own or not masked)


@pytest.mark.parametrize(
    ("margin", "kept"),
    [
        (-0.125, [True, True, True, True, False]),
        (-0.1875, [True, True, False, True, False]),
        (0.25, [True, True, True, True, True]),
    ],
)
def test_teacher_mask_keeps_candidates_exactly_at_the_margin(margin, kept):
    teacher = torch.tensor([[0.25, 0.5, 0.375, 0.3125, 0.75]])  # all exact in binary
    own = torch.tensor([1])
    assert teacher_mask(teacher, own, margin=margin).tolist() == [kept]


def test_the_default_margin_of_the_teacher_mask_is_negative():
    teacher = torch.tensor([[0.5, 0.47, 0.44]])
    assert teacher_mask(teacher, torch.tensor([0])).tolist() == [[True, False, True]]


def test_teacher_mask_does_not_round_in_bfloat16():
    teacher = torch.tensor([[0.90625, 0.8671875, 0.859375]], dtype=torch.bfloat16)
    # 0.90625 - 0.04 = 0.86625, which bfloat16 would round to 0.8671875, the second candidate.
    assert teacher_mask(teacher, torch.tensor([0]), margin=-0.04).tolist() == [[True, False, True]]


def test_the_default_margin_of_the_teacher_mask_is_0_05_below_the_positive():
    # The limit is 0.45: a margin that is off by a fiftieth of itself moves it past one of the two others.
    teacher = torch.tensor([[0.5, 0.4505, 0.4495]], dtype=torch.float64)
    assert teacher_mask(teacher, torch.tensor([0])).tolist() == [[True, False, True]]
