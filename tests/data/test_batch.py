"""Batches without some of their negatives, against a plain loop; batches that move."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.data.batch import ExampleBatch, PackedStories, UnlabelledBatch


def batch_of(anchors, positives, negatives, kinds=None):
    """A batch of as many stories as the indices need; story i has i + 1 tokens i and index 100 - i."""
    negatives = torch.tensor(negatives, dtype=torch.int64).reshape(len(anchors), -1)
    kinds = torch.full_like(negatives, -1) if kinds is None else torch.tensor(kinds).reshape(negatives.shape)
    count = 1 + max(*anchors, *positives, *negatives.flatten().tolist())
    lengths = tuple(range(1, count + 1))
    token_ids = torch.arange(count).repeat_interleave(torch.tensor(lengths))
    stories = PackedStories(token_ids, lengths, 100 - torch.arange(count))
    return ExampleBatch(
        stories, torch.tensor(anchors), torch.tensor(positives), negatives, kinds, groups=stories.indices
    )


def pieces(stories):
    """Each story's tokens and row, as the plain loop compares them."""
    split = stories.token_ids.split(list(stories.lengths))
    return [(piece.tolist(), row) for piece, row in zip(split, stories.indices.tolist(), strict=True)]


def described(batch, used=None):
    """By example: anchor, positive, and each negative's story and kind, None where there is none or it is unused."""
    stories = pieces(batch.stories)
    found = []
    for i in range(len(batch.anchors)):
        negatives = []
        for k in range(batch.negatives.shape[1]):
            place = int(batch.negatives[i, k])
            stays = place >= 0 and (used is None or bool(used[i, k]))
            negatives.append((stories[place], int(batch.kinds[i, k])) if stays else None)
        found.append((stories[batch.anchors[i]], stories[batch.positives[i]], negatives))
    return found


def lists_of(size, element):
    return st.lists(element, min_size=size, max_size=size)


@st.composite
def batches(draw):
    """A batch, and which of its negatives are used."""
    examples = draw(st.integers(1, 4))
    width = draw(st.integers(0, 3))
    story = st.integers(0, draw(st.integers(2, 9)) - 1)

    anchors = draw(lists_of(examples, story))
    positives = draw(lists_of(examples, story))
    negatives = draw(lists_of(examples * width, st.just(-1) | story))
    kinds = [draw(st.integers(-1, 4)) if negative >= 0 else -1 for negative in negatives]
    used = draw(lists_of(examples * width, st.booleans()))
    return batch_of(anchors, positives, negatives, kinds), torch.tensor(used, dtype=torch.bool).reshape(examples, width)


@settings(max_examples=150, deadline=None)
@given(batches())
def test_with_negatives_keeps_the_rest_and_holds_nothing_else(drawn):
    batch, used = drawn
    before = described(batch, used)

    reduced = batch.with_negatives(used)

    assert described(reduced) == before
    assert ((reduced.negatives < 0) <= (reduced.kinds < 0)).all()
    assert reduced.negatives.shape == used.shape
    assert reduced.kinds.shape == used.shape

    indices = torch.cat([reduced.anchors, reduced.positives, reduced.negatives.flatten()])
    pointed_at = set(indices.tolist()) - {-1}
    assert pointed_at == set(range(len(reduced.stories)))

    order = [row for _, row in pieces(reduced.stories)]
    assert order == [row for _, row in pieces(batch.stories) if row in order]


@pytest.fixture
def labelled_batch():
    """A batch of two examples with two negatives each, with pseudo-labels and unlabelled stories."""
    batch = batch_of([1, 5], [4, 3], [[0, 2], [2, 4]])
    batch.pseudo_labels = torch.arange(6)[:, None].repeat(1, 3)
    batch.unlabelled = UnlabelledBatch(batch.stories, torch.zeros(6, 3))
    return batch


def test_pseudo_labels_follow_their_stories(labelled_batch):
    reduced = labelled_batch.with_negatives(torch.zeros(2, 2, dtype=torch.bool))
    assert reduced.pseudo_labels[:, 0].tolist() == [1, 3, 4, 5]


def test_everything_moves(labelled_batch):
    moved = labelled_batch.to("meta")

    assert moved.stories.token_ids.device.type == "meta"
    assert moved.anchors.device.type == "meta"
    assert moved.unlabelled.pseudo_labels.device.type == "meta"
    assert moved.stories.lengths == labelled_batch.stories.lengths


def test_with_all_negatives_the_stories_are_not_copied(labelled_batch):
    assert labelled_batch.with_negatives(torch.ones(2, 2, dtype=torch.bool)).stories is labelled_batch.stories
