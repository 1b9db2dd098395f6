"""Batches without some of their negatives, against a plain loop; batches that move."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.data.batch import ExampleBatch, PackedStories, UnlabelledBatch


def batch_of(anchors, positives, negatives, kinds=None):
    """A batch of as many stories as the indices need; story i has i + 1 tokens i and index 100 - i."""
    negatives = torch.tensor(negatives, dtype=torch.int64).reshape(len(anchors), -1)
    count = 1 + max(*anchors, *positives, *negatives.flatten().tolist())
    ids = torch.cat([torch.full((i + 1,), i) for i in range(count)])
    stories = PackedStories(ids, tuple(range(1, count + 1)), 100 - torch.arange(count))
    kinds = torch.full_like(negatives, -1) if kinds is None else torch.tensor(kinds).reshape(negatives.shape)
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


@st.composite
def batches(draw):
    count = draw(st.integers(1, 4))
    width = draw(st.integers(0, 3))
    stories = draw(st.integers(2, 9))
    place = st.integers(0, stories - 1)
    many = lambda element, n: draw(st.lists(element, min_size=n, max_size=n))  # noqa: E731
    negatives = many(st.just(-1) | place, count * width)
    kinds = [draw(st.integers(-1, 4)) if negative >= 0 else -1 for negative in negatives]
    used = torch.tensor(many(st.booleans(), count * width), dtype=torch.bool).reshape(count, width)
    return batch_of(many(place, count), many(place, count), negatives, kinds), used


@settings(max_examples=150, deadline=None)
@given(batches())
def test_with_negatives_keeps_the_rest_and_holds_nothing_else(drawn):
    batch, used = drawn
    before = described(batch, used)
    reduced = batch.with_negatives(used)

    assert described(reduced) == before
    assert ((reduced.negatives < 0) <= (reduced.kinds < 0)).all()
    assert reduced.negatives.shape == reduced.kinds.shape == used.shape

    pointed = {int(i) for part in (reduced.anchors, reduced.positives, reduced.negatives) for i in part.flatten()} - {
        -1
    }

    assert pointed == set(range(len(reduced.stories)))

    order = [row for _, row in pieces(reduced.stories)]
    assert order == [row for _, row in pieces(batch.stories) if row in order]


def test_pseudo_labels_follow_their_stories_and_everything_moves():
    batch = batch_of([1, 5], [4, 3], [[0, 2], [2, 4]])
    batch.pseudo_labels = torch.arange(6)[:, None].repeat(1, 3)
    batch.unlabelled = UnlabelledBatch(batch.stories, torch.zeros(6, 3))
    reduced = batch.with_negatives(torch.zeros(2, 2, dtype=torch.bool))

    assert reduced.pseudo_labels[:, 0].tolist() == [1, 3, 4, 5]

    moved = batch.to("meta")
    assert {t.device.type for t in (moved.stories.token_ids, moved.anchors, moved.unlabelled.pseudo_labels)} == {"meta"}
    assert moved.stories.lengths == batch.stories.lengths
    assert batch.with_negatives(torch.ones(2, 2, dtype=torch.bool)).stories is batch.stories
