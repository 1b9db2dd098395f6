"""Pseudo-labels against plain loops; a resumed run has the same."""

import numpy as np
import pytest
from fake_reader import FakeReader, attach, fit, trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from refusals import refused
from threadpoolctl import threadpool_limits

from narrlit.data.sampling import ProcessShare
from narrlit.datamodules import Clusters, PseudoLabels, StoryWorldData
from narrlit.datamodules.pseudo_labels import LABELS_FILE, cluster, positional_labels, read_labels, write_labels
from narrlit.preprocessing.sentences import positional_segments, split_sentences

CLUSTERS = Clusters(4, 3, 2)


def test_labels_are_nearest_centers_numbered_by_size():
    random = np.random.default_rng(0)
    blobs = [random.normal(center, 0.1, (size, 2)) for center, size in ((0, 5), (3, 12), (9, 8))]
    points = np.concatenate(blobs)

    labels, inertia = cluster(points, 3, seed=1)

    assert labels.tolist() == [2] * 5 + [0] * 12 + [1] * 8

    centers = np.stack([points[labels == k].mean(axis=0) for k in range(3)])
    squares = ((points[:, None] - centers) ** 2).sum(axis=2)
    assert squares.argmin(axis=1).tolist() == labels.tolist()
    assert inertia == pytest.approx(squares.min(axis=1).sum())


def test_each_aspect_has_clusters_of_its_segment():
    data = StoryWorldData(10, 2)
    data.setup("fit")
    texts = data.examples.stories.texts[:30]
    embed = FakeReader().text_embeddings
    labels, noted = positional_labels(texts, embed, CLUSTERS)
    for column, (aspect, count) in enumerate((("theme", 4), ("action", 3), ("outcome", 2))):
        segments = [positional_segments(split_sentences(text))[column] for text in texts]
        expected, _ = cluster(embed(segments).astype(float), count, 0)
        assert labels[:, column].tolist() == expected.tolist()
        assert noted.clusters[aspect].sizes == np.bincount(expected).tolist()

    with refused("few_segments", aspect="theme", clusters=4, segments=3):
        positional_labels(texts[:3], embed, CLUSTERS)
    with refused("few_segments", segments=1):
        positional_labels(["Same."] * 5, embed, CLUSTERS)


def test_segments_are_rounded_according_to_the_settings():
    """Ten sentences have their ninth and tenth in the outcome, or the eighth too: labels follow from these texts."""
    settings = PseudoLabels("positional", CLUSTERS, rounding="symmetric")
    data = StoryWorldData(10, 2, pseudo_labels=settings)
    reader = attach(data)
    data.setup("fit")
    data.prepare_inputs("fit")
    stories = data.examples.story_indices
    texts = [data.stories[i].text for i in stories.tolist()]
    segments = [positional_segments(split_sentences(text), rounding="symmetric") for text in texts]

    assert segments != [positional_segments(split_sentences(text)) for text in texts]

    for column, count in enumerate((4, 3, 2)):
        embeddings = reader.text_embeddings([segment[column] for segment in segments]).astype(float)
        assert data.prepared.labels[stories, column].tolist() == cluster(embeddings, count, 0)[0].tolist()

    assert data.provenance["train"]["pseudo_labels"]["rounding"] == "symmetric"


@pytest.mark.parametrize("transductive", [False, True])
def test_training_stories_and_in_a_transductive_run_unlabeled_stories_have_labels(transductive):
    settings = PseudoLabels("positional", CLUSTERS, transductive)
    data = StoryWorldData(10, 4, 3, pseudo_labels=settings)
    reader = attach(data)
    data.setup("fit")
    data.prepare_inputs("fit")

    assert len(data.training.unlabelled) == 9 * transductive

    labeled = np.concatenate([data.examples.story_indices, data.training.unlabelled])
    texts = [data.stories[i].text for i in labeled.tolist()]
    assert (
        data.prepared.labels[labeled].tolist() == positional_labels(texts, reader.text_embeddings, CLUSTERS)[0].tolist()
    )

    others = np.setdiff1d(np.arange(len(data.stories)), labeled)
    assert len(others) == 12
    assert (data.prepared.labels[others] == -1).all()
    assert data.provenance["train"]["pseudo_labels"]["transductive"] == transductive

    batch = next(iter(data.train_dataloader()))
    assert batch.pseudo_labels.tolist() == data.prepared.labels[batch.stories.indices].tolist()
    assert (batch.unlabelled is not None) == transductive


def test_processes_have_equal_shares_of_unlabeled_stories(monkeypatch):
    shares = []
    for rank in range(4):
        data = StoryWorldData(10, 4, 3, pseudo_labels=PseudoLabels("positional", CLUSTERS, transductive=True))
        attach(data)
        data.setup("fit")
        monkeypatch.setattr(data, "_share", lambda rank=rank: ProcessShare(rank, 4))
        shares.append(set(data.train_dataloader().collate_fn.unlabelled.tolist()))

    assert [len(share) for share in shares] == [2] * 4  # of 9 stories
    assert len(set.union(*shares)) == 8


def test_true_labels_need_storyworld_data():
    data = StoryWorldData(4, 2, pseudo_labels=PseudoLabels("truth"))
    attach(data)
    data.setup("fit")
    data._synthetic.clear()

    with refused("no_true_labels"):
        data.prepare_inputs("fit")
    with refused("transductive_needs_positional"):
        PseudoLabels("truth", transductive=True)
    with refused("config_value", option="clusters.action", found=1):
        Clusters(action=1)


def test_labels_are_written_and_read_for_the_same_stories_only(tmp_path):
    labels = np.arange(9).reshape(3, 3)
    write_labels(tmp_path, ["a", "b", "c"], labels)
    assert read_labels(tmp_path, ["a", "b", "c"]).tolist() == labels.tolist()
    with refused("labels_of_other_stories"):
        read_labels(tmp_path, ["a", "c", "b"])

    (tmp_path / LABELS_FILE).write_bytes(b"PK broken")
    with refused("unreadable_pseudo_labels", path=LABELS_FILE):
        read_labels(tmp_path, ["a"])


def test_a_resumed_run_has_the_same_labels(tmp_path, monkeypatch):
    def run(version, ckpt_path=None, epochs=1):
        data = StoryWorldData(10, 2, pseudo_labels=PseudoLabels("positional", CLUSTERS))
        logger = CSVLogger(tmp_path, "run", version)
        saved = ModelCheckpoint(tmp_path / f"run/{version}/checkpoints", save_last=True)
        reader = fit(
            data, ckpt_path=ckpt_path, max_epochs=epochs, logger=logger, enable_checkpointing=True, callbacks=[saved]
        )
        return reader.seen[-1].pseudo_labels.tolist()

    run("one")
    stored = np.load(tmp_path / "run/one" / LABELS_FILE)["labels"]
    monkeypatch.setattr(FakeReader, "text_embeddings", None)  # nothing is clustered again

    assert run("two", tmp_path / "run/one/checkpoints/last.ckpt", epochs=2)
    assert np.load(tmp_path / "run/two" / LABELS_FILE)["labels"].tolist() == stored.tolist()


class NoisyReader(FakeReader):
    """Embeds otherwise in each process, as other processors do."""

    def text_embeddings(self, texts, role="anchor"):
        return np.random.default_rng(self.global_rank).normal(size=(len(texts), 4)).astype(np.float32)


class RecordedData(StoryWorldData):
    """Writes its pseudo-labels to a file a process."""

    folder = None

    def teardown(self, stage):
        np.save(self.folder / f"{self.trainer.global_rank}.npy", self.prepared.labels)


def test_two_processes_have_the_same_labels(tmp_path):
    data = RecordedData(10, 2, pseudo_labels=PseudoLabels("positional", CLUSTERS))
    data.folder = tmp_path
    with threadpool_limits(1):  # a team of threads does not survive a fork
        two = trainer(devices=2, strategy="ddp_fork", use_distributed_sampler=False)
        two.fit(NoisyReader(), datamodule=data)

    one, other = (np.load(tmp_path / f"{rank}.npy") for rank in (0, 1))

    assert one.max() == 3
    assert one.tolist() == other.tolist()
