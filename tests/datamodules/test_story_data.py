"""One table of stories for all stages, inputs made once, loaders, refusals, exact resumption within an epoch."""

import pytest
import torch
from fake_reader import FakeReader, attach, fit, trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from refusals import refused

from narrlit.datamodules import Extra, FileData, HardExampleSampling, LoaderOptions, PseudoLabels, StoryWorldData

TRIPLES = [
    {"anchor_text": f"x {i}", "text_a": f"p {i}", "text_b": f"q {i}", "text_a_is_closer": bool(i % 2)} for i in range(9)
]


@pytest.fixture
def files(make):
    train = [
        {"anchor": f"a {i}", "positive": f"b {i}", "negatives": [{"text": f"c {i}", "kind": "triple"}, "x 0"]}
        for i in range(12)
    ]
    return str(make("train.jsonl", train)), str(make("validation.jsonl", TRIPLES))


def test_a_story_in_training_and_validation_has_one_index(files):
    data = FileData(files[0], files[1])
    data.setup("fit")
    shared = data.triples["validation"][0].anchor

    assert shared in data.examples.story_indices
    assert data.stories[shared].text == "x 0"
    assert len(data.stories) == len(set(data.stories.texts)) == 36 + 27
    assert data.examples.story_indices.tolist() == list(range(37))

    found = data.train_validation_overlap()
    assert found.shared_stories == 1
    assert found.shared_pairs == 0
    assert data.train_validation_overlap(anchors_only=True).shared_stories == 0

    same = FileData(files[1], files[1])
    same.setup("fit")
    assert same.train_validation_overlap() == (27, 18, 9)


def test_a_check_warns_once_about_a_shared_story_and_counts_labels(files):
    data = FileData(*files)
    data.setup("fit")
    with pytest.warns(UserWarning, match="1 of 27 validation stories are also in train") as caught:
        check = data.check()
    assert len(caught) == 1

    answers = {entry["probe"]: entry["correct"] for entry in check["probes"] if entry["set"] == "validation"}
    assert answers["always_a"] == sum(triple.a_is_closer for triple in data.triples["validation"])
    assert [entry["rows"] for entry in check["files"]] == [12, 9]

    alone = FileData(files[0])
    alone.setup("fit")
    assert alone.check()["shared"] == []


def test_loaders_tokenize_once_and_yield_every_example(files):
    data = FileData(*files, loading=LoaderOptions(5, 4))
    reader = attach(data)
    data.setup("fit")
    loader = data.train_dataloader()
    for _ in range(2):
        batches = list(loader)
        assert sum(len(batch.anchors) for batch in batches) == 12

    triples = list(data.val_dataloader())

    assert reader.tokenized == len(data.stories)

    for batch in batches:
        anchors = batch.stories.indices[batch.anchors].tolist()
        assert [data.stories[i].text[0] for i in anchors] == ["a"] * len(anchors)

    assert torch.cat([batch.positions for batch in triples]).tolist() == list(range(9))
    assert torch.cat([batch.labels for batch in triples]).tolist() == [i % 2 for i in range(9)]

    indices = torch.cat([batch.stories.indices[batch.anchors] for batch in triples])
    assert [data.stories[i].text for i in indices.tolist()] == [f"x {i}" for i in range(9)]
    assert data.provenance["inputs"] == {"stories": 63, "truncated": 0}


def test_a_fit_resumed_within_an_epoch_gets_the_remaining_batches(files, tmp_path):
    def batches(reader):
        return [batch.stories.indices.tolist() for batch in reader.seen]

    def run(ckpt_path=None, **settings):
        data = FileData(*files, loading=LoaderOptions(2, 4))
        return fit(data, ckpt_path=ckpt_path, enable_checkpointing=True, default_root_dir=tmp_path, **settings)

    whole = batches(run(max_epochs=2, callbacks=[ModelCheckpoint(tmp_path / "a", save_last=True)]))
    run(max_steps=8, max_epochs=2, callbacks=[ModelCheckpoint(tmp_path / "b", every_n_train_steps=4, save_top_k=-1)])
    [checkpoint] = (tmp_path / "b").glob("*step=4.ckpt")
    rest = batches(run(checkpoint, max_epochs=2, callbacks=[ModelCheckpoint(tmp_path / "c")]))

    assert len(whole) == 12
    assert rest == whole[4:]


def test_errors_about_missing_data_name_the_option(files, make):
    with refused("no_data", name="test", option="data.test"):
        FileData(files[0]).setup("test")
    with refused("no_training_data"):
        FileData(validation=files[1]).setup("fit")

    unlabeled = [{"anchor_text": "a", "text_a": "b", "text_b": "c", "label": 1}]
    path = str(make("u.jsonl", unlabeled))
    with refused("labels_in_other_column", name="validation", option="data.validation_labels"):
        FileData(files[0], path).setup("fit")

    FileData(predict=path).setup("predict")
    with refused("batch_sizes"):
        LoaderOptions(batch_size=0)


@pytest.mark.parametrize(
    ("settings", "reads_views", "refusal"),
    [
        ({"extra": Extra(unlabelled="s.jsonl")}, False, {"code": "unlabeled_without_transductive"}),
        ({}, True, {"code": "objective_reads_views", "objective": "FakeReader"}),
    ],
)
def test_data_that_would_not_be_used_are_refused(files, settings, reads_views, refusal):
    data = FileData(*files, **settings)
    attach(data, FakeReader(reads_views))
    with refused(**refusal):
        data.setup("fit")

    viewed = StoryWorldData(4, 2, views=True)
    attach(viewed)
    with refused("unread_views", objective="FakeReader"):
        viewed.setup("fit")


def test_batches_are_divided_among_processes(files, monkeypatch):
    data = FileData(*files)
    attach(data)
    monkeypatch.setattr(type(data.trainer), "world_size", 2)
    monkeypatch.setattr(data.trainer._accelerator_connector, "use_distributed_sampler", True)

    with refused("distributed_sampler"):
        data.setup("fit")


def test_an_epoch_of_fewer_samples_has_a_new_sample_each_time(files):
    data = FileData(*files, loading=LoaderOptions(2, 4, samples_per_epoch=4))
    seen = fit(data, max_epochs=4).seen
    assert len(seen) == 8

    drawn = [batch.stories.indices[batch.anchors].tolist() for batch in seen]
    anchors = [tuple(sorted(drawn[k] + drawn[k + 1])) for k in (0, 2, 4, 6)]
    assert all(len(epoch) == 4 for epoch in anchors)
    assert len(set(anchors)) > 1


def test_a_fit_does_not_change_the_data():
    data = StoryWorldData(
        6, 4, hard_examples=HardExampleSampling(1.0, 2.0, mine_validation=True), pseudo_labels=PseudoLabels("truth")
    )
    data.setup("fit")
    before = list(data.examples)
    reader = fit(data)

    assert list(data.examples) == before
    assert reader.seen[0].pseudo_labels is not None

    data.hard_examples = HardExampleSampling()
    data.pseudo_labels = PseudoLabels()
    assert fit(data).seen[0].pseudo_labels is None
    assert data.prepared is None


def test_evaluation_after_a_fit_uses_the_same_table(files):
    data = FileData(files[0], files[1], test=files[1])
    reader = FakeReader()
    fitted = trainer()
    fitted.fit(reader, datamodule=data)
    before = len(data.stories)
    reader.test_step = lambda batch, batch_idx: reader.seen.append(batch)
    data.setup("test")

    assert data.triples["test"].rows == data.triples["validation"].rows
    assert len(data.stories) == before
