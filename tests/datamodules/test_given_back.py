"""What an objective makes of its data for a fit is gone after it; synthetic and unlabelled files are read apart."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from narrlit.data.records import Example, Negative
from narrlit.data.writers import write_examples
from narrlit.datamodules import Extra, FileData, FoldData, StoryWorldData
from narrlit.errors import OptionError


def test_added_examples_and_weights_last_for_one_fit():
    data = StoryWorldData(train=6, validation=2)
    data.setup("fit")
    before, texts = list(data.examples), data.training_texts()
    data.train_also([Example("new", "like it", (Negative("unlike it"),))])
    data.train_also([Example("newer", "like it")])
    data.weight(np.arange(8) + 1.0)
    assert len(data.indexed) == 8
    assert data.training_texts()[-4:] == ["new", "like it", "unlike it", "newer"]
    with pytest.raises(ValueError, match="3 weights for 8 examples"):
        data.weight(np.ones(3))
    data.teardown("fit")
    assert data.examples == before
    assert data.training_texts() == texts
    data.setup("fit")
    assert data._weights is None
    data.teardown("fit")
    assert len(data.indexed) == 6


def test_synthetic_rows_come_last_and_are_counted(tmp_path):
    own = [Example(f"a{i}", f"b{i}", (Negative(f"c{i}", "triple"),)) for i in range(3)]
    written = [Example(f"x{i}", f"y{i}", (Negative(f"z{i}", "triple"),)) for i in range(2)]
    write_examples(tmp_path / "own.jsonl", own)
    write_examples(tmp_path / "written.jsonl", written)
    data = FileData(str(tmp_path / "own.jsonl"), extra=Extra(synthetic=[str(tmp_path / "written.jsonl")]))
    assert data.read_examples() == [*own, *written]
    assert data.synthetic_rows == 2
    assert [file["rows"] for file in data.provenance["train"]["files"]] == [3, 2]
    alone = FileData(extra=Extra(synthetic=str(tmp_path / "written.jsonl")))
    assert alone.read_examples() == written
    assert alone.synthetic_rows == 2


def test_unlabelled_stories_come_once_each(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n{"text": "one"}\n')
    data = FileData(extra=Extra(unlabelled=str(tmp_path / "s.jsonl")))
    assert data.unlabelled_given
    assert data.unlabelled_texts() == ["one", "two"]
    assert data.provenance["unlabelled"]["files"][0]["rows"] == 3
    assert not FileData().unlabelled_given
    assert FileData().unlabelled_texts() == []


@pytest.mark.parametrize("folded", [False, True])
def test_unlabelled_stories_that_nothing_reads_are_refused(tmp_path, folded):
    own = [Example(f"a{i}", f"b{i}", (Negative(f"c{i}", "triple"),)) for i in range(4)]
    write_examples(tmp_path / "own.jsonl", own)
    (tmp_path / "s.jsonl").write_text('{"text": "one"}\n')
    for objective, refused in ((SimpleNamespace(), True), (SimpleNamespace(transductive=True), False)):
        data = FileData(str(tmp_path / "own.jsonl"), extra=Extra(unlabelled=str(tmp_path / "s.jsonl")))
        data = FoldData(data, folds=2) if folded else data
        data.trainer = SimpleNamespace(world_size=1, lightning_module=objective)
        with pytest.raises(OptionError, match="nothing reads it") if refused else nullcontext():
            data.setup("fit")


def test_storyworld_knows_the_truth_of_its_training_stories_alone():
    data = StoryWorldData(train=4, validation=2, test=3, negatives_per_dimension=1)
    data.setup("fit")
    truths = data.story_truths(data.training_texts())
    assert all(len(truth) == 3 for truth in truths)
    indexed = data.indexed
    assert [truths[row] for row in indexed.anchors] == [truths[row] for row in indexed.positives]
    for column, same in ((1, 0), (2, 1), (3, 2)):  # the triple's own negative is column 0
        for anchor, negative in zip(indexed.anchors, indexed.negatives[:, column], strict=True):
            assert truths[anchor][same] == truths[negative][same]
            assert truths[anchor] != truths[negative]
    assert data.story_truths(["no story of it"]) == [None]
    assert len(data.unlabelled_texts()) == 9
