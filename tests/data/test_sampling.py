"""Sampling without doubles, equal shares of processes, and collators against the rows that they are made from."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.data.batch import TokenizedStories, TokenizedViews
from narrlit.data.sampling import (
    DistinctBatchSampler,
    ExampleCollator,
    ProcessShare,
    PseudoLabelCollator,
    TripleCollator,
    ViewCollator,
    distinct_batches,
    padded_share,
)
from narrlit.data.schema import (
    NEGATIVE_KINDS,
    Story,
    StoryTable,
    TrainingExample,
    TrainingExamples,
    Triple,
    Triples,
    Views,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40), st.integers(1, 7), st.integers(0, 3))
def test_no_story_stands_twice_in_a_batch_and_no_example_is_lost(pairs, size, seed):
    order = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    batches = distinct_batches(order, pairs, size)
    assert sorted(place for batch in batches for place in batch) == list(range(len(pairs)))

    for batch in batches:
        rows = [row for place in batch for row in set(pairs[place])]
        assert len(rows) == len(set(rows))
        assert 1 <= len(batch) <= size


def test_processes_share_a_batch_without_overlap_and_order_depends_on_seed_and_epoch():
    anchors = np.arange(20)
    positives = np.arange(20, 40)

    def batches(rank, world, epoch=0, seed=1):
        sampler = DistinctBatchSampler(anchors, positives, 3, seed, ProcessShare(rank, world))
        sampler.set_epoch(epoch)
        return list(sampler)

    one, other = batches(0, 2), batches(1, 2)

    assert [len(b) for b in one] == [len(b) for b in other] == [3, 3, 3, 1]

    seen = [p for b in one + other for p in b]
    assert len(seen) == len(set(seen)) == 20

    together = batches(0, 1)
    assert sorted(p for b in together for p in b) == list(range(20))
    assert together == batches(0, 1)
    assert together != batches(0, 1, epoch=1)
    assert together != batches(0, 1, seed=2)


@pytest.mark.parametrize("world", [1, 2])
def test_every_epoch_has_equally_many_batches_where_stories_recur(world):
    random = np.random.default_rng(0)
    anchors = random.integers(0, 40, 300)
    positives = np.arange(100, 400)
    samplers = [DistinctBatchSampler(anchors, positives, 8, 1, ProcessShare(rank, world)) for rank in range(world)]
    counts = set()
    for epoch in range(6):
        shares = []
        for sampler in samplers:
            sampler.set_epoch(epoch)
            shares.append(list(sampler))
            counts.add(len(sampler))
        seen = [place for share in shares for batch in share for place in batch]
        assert len(seen) == len(set(seen)) >= 300 - world * len(shares[0])
        for batches in zip(*shares, strict=True):
            assert len({len(batch) for batch in batches}) == 1
            rows = [anchors[place] for batch in batches for place in batch]
            assert len(rows) == len(set(rows)) > 0

    assert len(counts) == 1


def test_weights_say_how_often_an_example_is_drawn():
    anchors = np.arange(40)
    positives = np.arange(40, 80)
    weights = np.where(np.arange(40) < 10, 3.0, 1.0)
    samplers = [DistinctBatchSampler(anchors, positives, 5, 1, ProcessShare(rank, 2), weights) for rank in range(2)]
    alone = DistinctBatchSampler(anchors, positives, 10, 1, None, weights)
    drawn, orders = [], set()
    for epoch in range(200):
        for sampler in (*samplers, alone):
            sampler.set_epoch(epoch)
        shares = [list(sampler) for sampler in samplers]
        whole = [one + other for one, other in zip(*shares, strict=True)]
        assert whole == list(alone)  # two processes draw what one does with the double batch
        assert [len(batch) for batch in whole] == [10] * 4
        drawn += [place for batch in whole for place in batch]
        orders.add(tuple(drawn[-40:]))

    assert len(orders) == 200

    heavy = sum(place < 10 for place in drawn) / len(drawn)
    assert abs(heavy - 30 / 60) < 0.02  # 10 x 3 of 10 x 3 + 30 x 1


@pytest.mark.parametrize(("count", "world"), [(5, 2), (4, 2), (1, 3), (7, 3)])
def test_shares_are_equal_and_hold_everything_once(count, world):
    shares = [padded_share(count, ProcessShare(rank, world)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1
    assert sorted(place for share in shares for place in share if place >= 0) == list(range(count))


def tokenize(texts, role):
    return [[ord(letter) for letter in text] for text in texts], 0


TABLE = StoryTable.of("abcdefgh")


def inputs(symmetric=True):
    return TokenizedStories(TABLE, tokenize, symmetric)


def test_example_collator_matches_its_rows():
    rows = [
        TrainingExample(0, 1, (2, 3), ("theme", None)),
        TrainingExample(4, 2),
        TrainingExample(5, 0, (7,), ("mined",)),
    ]
    batch = ExampleCollator(TrainingExamples(TABLE, rows), inputs())([2, 0])
    index = batch.stories.indices

    assert index[batch.anchors].tolist() == [5, 0]
    assert index[batch.positives].tolist() == [0, 1]
    assert index[batch.negatives[0, 0]] == 7
    assert batch.negatives[0, 1] == -1
    assert index[batch.negatives[1]].tolist() == [2, 3]
    assert batch.kinds.tolist() == [[NEGATIVE_KINDS.index("mined"), -1], [NEGATIVE_KINDS.index("theme"), -1]]
    assert sorted(index.tolist()) == [0, 1, 2, 3, 5, 7]


def test_triple_collator_marks_repeats():
    triples = Triples(TABLE, [Triple(0, 1, 2, True), Triple(3, 0, 1, False), Triple(4, 5, 6)])
    batch = TripleCollator(triples, inputs())([1, 2, -1])
    index = batch.stories.indices

    assert index[batch.anchors].tolist() == [3, 4, 0]
    assert index[batch.a].tolist() == [0, 5, 1]
    assert index[batch.b].tolist() == [1, 6, 2]
    assert batch.labels.tolist() == [0, -1, 1]
    assert batch.positions.tolist() == [1, 2, -1]


def test_view_collator_pairs_each_anchor_with_another():
    stories = [Story(str(i), letter, Views(f"t{i}", f"a{i}", "end")) for i, letter in enumerate("abc")]
    table = StoryTable(stories)
    examples = TrainingExamples(table, [TrainingExample(i, (i + 1) % 3) for i in range(3)])
    collator = ViewCollator(examples, TokenizedViews(table, tokenize))
    batch = collator([2, 0])

    assert batch.stories.indices[batch.anchors].tolist() == [2, 0]
    assert batch.stories.indices[batch.others].tolist() == [0, 2]

    alone = collator([1])
    assert alone.stories.indices[alone.others].item() != 1


def test_pseudo_labels_and_unlabelled_stories_join_the_batch():
    examples = TrainingExamples(TABLE, [TrainingExample(0, 1), TrainingExample(2, 3)])
    labels = np.arange(24).reshape(8, 3)
    collator = PseudoLabelCollator(ExampleCollator(examples, inputs()), inputs(), labels, np.array([5, 6, 7]), seed=3)
    batch = collator([1, 0])
    again = collator([1, 0])

    assert batch.pseudo_labels.tolist() == labels[batch.stories.indices].tolist()

    drawn = batch.unlabelled
    assert len(drawn.stories) == 2
    assert set(drawn.stories.indices.tolist()) <= {5, 6, 7}
    assert drawn.pseudo_labels.tolist() == labels[drawn.stories.indices].tolist()
    assert torch.equal(drawn.stories.indices, again.unlabelled.stories.indices)

    draws = [PseudoLabelCollator(collator.collator, inputs(), labels, np.array([5, 6, 7]), seed) for seed in range(20)]
    assert len({tuple(draw([0, 1]).unlabelled.stories.indices.tolist()) for draw in draws}) == 3


def test_groups_join_anchors_and_positives_and_whatever_shares_a_story():
    stories = StoryTable.of("abcdefg")
    rows = [
        TrainingExample(0, 1, (5,), (None,), group="x"),
        TrainingExample(2, 1, group="y"),
        TrainingExample(2, 3, group="y"),
        TrainingExample(4, 5),
    ]
    groups = TrainingExamples(stories, rows).groups

    assert len({*groups[[0, 1, 2, 3]]}) == 1
    assert len({*groups}) == 4
    assert TrainingExamples(stories, rows[3:]).groups.tolist() == list(range(7))
