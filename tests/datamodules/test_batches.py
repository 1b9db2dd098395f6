"""From examples to batches: each story once, indices that point right, tokens made once, sampling without doubles."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.data.records import Example, Negative, Triple
from narrlit.data.sampling import DistinctBatchSampler, Share, distinct_batches, padded_share
from narrlit.data.table import index_examples
from narrlit.data.tokens import TokenTable
from narrlit.datamodules import FileData, Loading, StoryWorldData
from narrlit.errors import OptionError
from narrlit.objectives import Objective


def tokenize(texts, role):
    """Letters as tokens, an anchor's with a 1 before them, cut at 5."""
    ids = [[1] * (role == "anchor") + [ord(letter) for letter in text] for text in texts]
    return [text[:5] for text in ids], sum(len(text) > 5 for text in ids)


def test_a_pack_holds_each_story_once_and_its_indices_lead_back():
    table = index_examples([Example("a", "bb", (Negative("ccc"),)), Example("ccc", "a", ())])
    tokens = TokenTable(table.table.texts, tokenize, symmetric=True)
    places = [tokens.places(x, role) for x, role in ((table.anchors, "anchor"), (table.positives, "candidate"))]
    stories, (anchors, positives, negatives) = tokens.pack([*places, tokens.places(table.negatives, "candidate")])
    assert len(stories) == 3
    pieces = stories.token_ids.split(list(stories.lengths))
    texts = ["".join(map(chr, piece.tolist())).replace(chr(1), "") for piece in pieces]
    assert [texts[i] for i in anchors] == ["a", "ccc"]
    assert [texts[i] for i in positives] == ["bb", "a"]
    assert [[texts[i] if i >= 0 else None for i in row] for row in negatives] == [["ccc"], [None]]
    assert [table.table[row] for row in stories.rows] == texts


def test_with_role_prompts_a_story_stands_once_a_role_but_keeps_its_row():
    table = index_examples([Example("a", "bb"), Example("bb", "c")])
    tokens = TokenTable(table.table.texts, tokenize, symmetric=False)
    stories, (anchors, positives) = tokens.pack(
        [tokens.places(table.anchors, "anchor"), tokens.places(table.positives, "candidate")]
    )
    assert len(stories) == 4
    pieces = [piece.tolist() for piece in stories.token_ids.split(list(stories.lengths))]
    assert [pieces[i][0] == 1 for i in anchors] == [True, True]
    assert [pieces[i][0] == 1 for i in positives] == [False, False]
    assert stories.rows[anchors[1]] == stories.rows[positives[0]] == 1


def test_truncated_texts_are_counted():
    assert TokenTable(["abcdefgh", "ab"], tokenize, symmetric=True).truncated == 1


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
    anchors, positives = np.arange(20), np.arange(20, 40)

    def batches(rank, world, epoch=0, seed=1):
        sampler = DistinctBatchSampler(anchors, positives, 3, seed, Share(rank, world))
        sampler.set_epoch(epoch)
        return list(sampler)

    one, other = batches(0, 2), batches(1, 2)
    assert [len(b) for b in one] == [len(b) for b in other] == [3, 3, 3, 1]
    seen = [place for b in one + other for place in b]
    assert len(seen) == len(set(seen)) == 20
    together = batches(0, 1)
    assert sorted(p for b in together for p in b) == list(range(20))
    assert together == batches(0, 1)
    assert together != batches(0, 1, epoch=1)
    assert together != batches(0, 1, seed=2)


@pytest.mark.parametrize("world", [1, 2])
def test_every_epoch_has_equally_many_batches_where_stories_recur(world):
    random = np.random.default_rng(0)
    anchors, positives = random.integers(0, 40, 300), np.arange(100, 400)
    samplers = [DistinctBatchSampler(anchors, positives, 8, 1, Share(rank, world)) for rank in range(world)]
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
    anchors, positives = np.arange(40), np.arange(40, 80)
    weights = np.where(np.arange(40) < 10, 3.0, 1.0)
    samplers = [DistinctBatchSampler(anchors, positives, 5, 1, Share(rank, 2), weights) for rank in range(2)]
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
    shares = [padded_share(count, Share(rank, world)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1
    assert sorted(place for share in shares for place in share if place >= 0) == list(range(count))


class Trainer:
    """As much of a trainer as a datamodule looks at."""

    world_size = 1
    global_rank = 0

    def __init__(self, encoder):
        self.lightning_module = self
        self.encoder = encoder
        self.strategy = type("Strategy", (), {"root_device": torch.device("cpu")})

    def story_table(self, texts, name):
        return Objective.story_table(self, texts, name)

    def collator(self, examples, table):
        return Objective.collator(self, examples, table)


class LetterEncoder:
    max_length = 5
    calls = 0

    def tokenize(self, texts, role):
        type(self).calls += 1
        return tokenize(texts, "story")

    def prompt(self, role):
        return ""


def test_loaders_tokenise_once_and_give_every_example(world_files):
    data = FileData([str(world_files / "train.jsonl")], str(world_files / "validation.jsonl"), loading=Loading(5, 4))
    data.trainer = Trainer(LetterEncoder())
    data.setup("fit")
    LetterEncoder.calls = 0
    loader = data.train_dataloader()
    for _ in range(2):
        batches = list(loader)
        assert sum(len(batch.anchors) for batch in batches) == 12
    data.train_dataloader()
    assert LetterEncoder.calls == 1
    assert batches[0].negatives.shape == (5, 4)
    assert (batches[0].kinds[:, 0] == 4).all()  # the triple's own negative
    assert sorted(batches[0].kinds[0, 1:].tolist()) == [0, 1, 2]
    judged = list(data.val_dataloader())
    assert torch.cat([batch.places for batch in judged]).tolist() == list(range(9))
    assert torch.cat([batch.labels for batch in judged]).tolist() == [
        int(triple.a_is_closer) for triple in data.triples["validation"]
    ]


def test_lightning_tells_the_sampler_the_epoch(world_files):
    from lightning.fabric.utilities.data import _set_sampler_epoch

    data = FileData([str(world_files / "train.jsonl")], str(world_files / "validation.jsonl"), loading=Loading(5, 4))
    data.trainer = Trainer(LetterEncoder())
    data.setup("fit")
    loader = data.train_dataloader()
    first = [batch.stories.rows.tolist() for batch in loader]
    assert first == [batch.stories.rows.tolist() for batch in loader]
    iterator = iter(loader)  # a resumed trainer makes it before it names the epoch
    _set_sampler_epoch(loader, 1)
    second = [batch.stories.rows.tolist() for batch in loader]
    assert second == [batch.stories.rows.tolist() for batch in iterator]
    assert first != second


def test_storyworld_as_data_is_the_same_for_the_same_world_and_shares_no_story():
    one, same, other = StoryWorldData(8, 4), StoryWorldData(8, 4), StoryWorldData(8, 4, world_seed=1)
    for data in (one, same, other):
        data.setup("fit")
    assert one.examples == same.examples != other.examples
    assert one.train_validation_overlap().shared_stories == 0
    with_more = StoryWorldData(2, 2, negatives_per_dimension=2)
    with_more.setup("fit")
    assert [n.kind for n in with_more.examples[0].negatives].count("theme") == 2


def test_what_is_missing_names_the_option(world_files, tmp_path):
    train = str(world_files / "train.jsonl")
    with pytest.raises(OptionError, match="test FILE"):
        FileData([train]).setup("test")
    with pytest.raises(OptionError, match="train FILE"):
        FileData(validation=str(world_files / "validation.jsonl")).setup("fit")
    from narrlit.data.writers import write_triples

    write_triples(tmp_path / "unlabelled.jsonl", [Triple("a", "b", "c")])
    with pytest.raises(OptionError, match="validation_labels"):
        FileData([train], str(tmp_path / "unlabelled.jsonl")).setup("fit")
    FileData(predict=str(tmp_path / "unlabelled.jsonl")).setup("predict")
    with pytest.raises(OptionError, match="batch_size"):
        Loading(batch_size=0)


def test_a_validation_set_among_the_training_data_is_seen(world_files):
    path = str(world_files / "validation.jsonl")
    data = FileData([path], path)
    data.setup("fit")
    assert data.train_validation_overlap().shared_triples == 9
