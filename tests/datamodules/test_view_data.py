"""Data of stories with views: from files, by position, invented; and epochs of fewer samples."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import world_texts

from narrlit.data.records import Example, Negative, Triple
from narrlit.data.sampling import DistinctBatchSampler, Share
from narrlit.data.storyworld import StoryWorld
from narrlit.data.views import ViewFiles
from narrlit.data.writers import write_examples, write_triples
from narrlit.datamodules import FoldData, Loading, StoryWorldData, ViewData
from narrlit.errors import DataError, OptionError
from narrlit.text.joined import Views, join, split

TEXTS = world_texts()[:9]


@pytest.fixture
def files(tmp_path):
    """Three examples, two triples, and views of the anchors and of the triples' stories."""
    examples = [Example(TEXTS[3 * i], TEXTS[3 * i + 1], (Negative(TEXTS[3 * i + 2], "triple"),)) for i in range(3)]
    write_examples(tmp_path / "train.jsonl", examples)
    triples = [Triple(*TEXTS[:3], True), Triple(*TEXTS[3:6], False)]
    write_triples(tmp_path / "dev.jsonl", triples)
    viewed = [
        {"text": t, "theme": f"theme {i}", "plot_events": [f"e{i}", "f"], "outcome": f"end {i}"}
        for i, t in enumerate(TEXTS[:7])
    ]
    (tmp_path / "views.jsonl").write_text("".join(json.dumps(row) + "\n" for row in viewed))
    return SimpleNamespace(
        train=str(tmp_path / "train.jsonl"), dev=str(tmp_path / "dev.jsonl"), views=str(tmp_path / "views.jsonl")
    )


def test_anchors_and_judged_stories_have_their_views(files):
    data = ViewData(files.train, files.dev, views=ViewFiles(files.views))
    data.setup("fit")
    assert [split(example.anchor) for example in data.examples] == [
        (TEXTS[3 * i], Views(f"theme {3 * i}", f"e{3 * i}\nf", f"end {3 * i}")) for i in range(3)
    ]
    # Stories 7 and 8, candidates of a training row, have none and need none.
    assert [example.texts[1:] for example in data.examples][2] == tuple(TEXTS[7:9])
    assert [triple.a_is_closer for triple in data.triples["validation"]] == [True, False]
    assert all(split(text)[1] for triple in data.triples["validation"] for text in triple.texts)
    assert data.examples[0].negatives[0].kind == "triple"
    told = data.provenance["validation"]["views"]
    assert (told["stories"], told["missing"], told["files"][0]["rows"]) == (7, "refuse", 7)
    assert data.train_validation_overlap().shared_pairs == 4


def test_missing_views_are_refused_or_cut_by_position(files, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr("narrlit.datamodules.views.rank_zero_info", said.append)
    lines = (tmp_path / "views.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "views.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(DataError, match=r"training anchors: 1 of 3 different stories have no views.*first text 1"):
        ViewData(files.train, files.dev, views=ViewFiles(files.views)).setup("fit")
    data = ViewData(files.train, files.dev, views=ViewFiles(files.views, "positional"))
    data.setup("fit")
    assert split(data.examples[0].anchor)[1].theme in TEXTS[0]
    assert split(data.examples[1].anchor)[1].theme == "theme 3"
    assert all(split(text)[1] for example in data.examples for text in example.texts)
    # Of nine stories that train, 0, 7 and 8 have none; of six that are judged, 0 alone.
    counted = [data.provenance[stage]["views"]["by_position"] for stage in ("train", "validation")]
    assert counted == [3, 1]
    assert said[-2:] == [
        "views: training stories, 9 different stories, 6 with views, 3 cut by position",
        "views: validation triples, 6 different stories, 5 with views, 1 cut by position",
    ]
    with pytest.raises(OptionError, match="views are needed"):
        ViewData(files.train).setup("fit")


def test_folds_divide_stories_with_views(files):
    data = FoldData(ViewData(files.train, views=ViewFiles(files.views, "positional")), folds=3)
    data.setup("fit")
    assert (len(data.examples), len(data.triples["validation"])) == (2, 1)
    assert all(split(text)[1] for text in data.triples["validation"][0].texts)


def test_invented_stories_bring_their_true_views():
    data, plain = (StoryWorldData(train=3, validation=2, views=views) for views in (True, False))
    for one in (data, plain):
        one.setup("fit")
    told = StoryWorld(0).triples(3, "train")
    for example, bare, triple in zip(data.examples, plain.examples, told, strict=True):
        views = triple.anchor.views
        assert example.anchor == join(bare.anchor, Views(views.theme, "\n".join(views.events), views.outcome))
        assert [split(text)[0] for text in example.texts] == list(bare.texts)
    assert [split(text)[0] for text in data.triples["validation"][0].texts] == list(
        plain.triples["validation"][0].texts
    )
    assert [t.a_is_closer for t in data.triples["validation"]] == [t.a_is_closer for t in plain.triples["validation"]]
    assert data.story_truths(data.training_texts()) == plain.story_truths(plain.training_texts())
    assert all(split(text)[1] for text in data.unlabelled_texts())
    assert data.provenance["train"]["storyworld"]["views"] is True
    assert "views" not in plain.provenance["train"]["storyworld"]


def test_an_epoch_may_have_fewer_samples_others_each_time():
    rows = np.arange(20)
    sampler = DistinctBatchSampler(rows, rows + 20, 4, 1, limit=6)
    seen = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert [len(batch) for batch in batches] == [4, 2]
        seen.append({place for batch in batches for place in batch})
    assert all(len(places) == 6 for places in seen)
    assert seen[0] != seen[1] != seen[2]
    both = [DistinctBatchSampler(rows, rows + 20, 2, 1, Share(rank, 2), limit=6) for rank in range(2)]
    assert sum(len(batch) for sampler in both for batch in sampler) == 6
    with pytest.raises(OptionError, match="samples_per_epoch is 0"):
        Loading(samples_per_epoch=0)


def test_views_are_refused_where_nothing_reads_them():
    for data in (StoryWorldData(train=3, validation=2, views=True), FoldData(StoryWorldData(3, views=True), folds=2)):
        data.trainer = SimpleNamespace(world_size=1, lightning_module=SimpleNamespace(reads_views=False))
        with pytest.raises(OptionError, match="only objective MultiView reads"):
            data.setup("fit")
        data.trainer.lightning_module.reads_views = True
        data.setup("fit")


def test_anchors_alone_tell_what_was_trained_on(files):
    data = ViewData(files.train, files.dev, views=ViewFiles(files.views, "positional"))
    data.setup("fit")
    assert data.train_validation_overlap(anchors_alone=True).shared_stories == 2
    assert data.train_validation_overlap(anchors_alone=True).shared_pairs == 0


@pytest.mark.parametrize(
    ("samples", "world", "refused"), [(1, 2, True), (2, 2, False), (1, 1, False), (None, 4, False)]
)
def test_every_process_needs_an_example(samples, world, refused):
    data = StoryWorldData(train=3, validation=2, loading=Loading(samples_per_epoch=samples))
    data.trainer = SimpleNamespace(
        world_size=world,
        lightning_module=SimpleNamespace(),
        _accelerator_connector=SimpleNamespace(use_distributed_sampler=False),
    )
    with pytest.raises(OptionError, match="need one each") if refused else nullcontext():
        data.setup("fit")
