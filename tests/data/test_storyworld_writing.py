"""StoryWorld's files, written from Python: as many rows as were asked for, with their views, the same each time."""

import pytest
from refusals import refused

from narrlit.data.readers import read_examples, read_stories, read_triples
from narrlit.data.storyworld.writing import FILES, write_storyworld
from narrlit.data.views import StoryViews, ViewFiles

COUNTS = {"train": 3, "validation": 2, "test": 4}


def texts_of(rows):
    return [tuple(texts) for texts in rows.texts()]


def test_files_hold_what_is_returned(tmp_path):
    written = write_storyworld(tmp_path, seed=5, **COUNTS, negatives_per_aspect=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    assert sorted(written.paths) == sorted(tmp_path.iterdir())
    assert texts_of(read_examples(tmp_path / "train.jsonl", strict=True)) == texts_of(written.train)
    assert [len(texts) for texts in texts_of(written.train)] == [6] * 3

    for split in ("validation", "test"):
        triples = read_triples(tmp_path / f"{split}.jsonl", strict=True)
        assert texts_of(triples) == texts_of(getattr(written, split))
        assert triples.labels.tolist() == getattr(written, split).labels.tolist()
        assert len(triples) == COUNTS[split]
        stories = read_stories(tmp_path / f"{split}_stories.jsonl")
        assert {story.text for story in stories} == {text for texts in triples.texts() for text in texts}
        coverage = StoryViews(ViewFiles(str(tmp_path / f"{split}_views.jsonl"))).coverage(triples.stories)
        assert coverage.viewed == coverage.stories
        assert coverage.spare == 0

    assert str(written) == "3 training examples, 2 and 4 triples, seed 5"


def test_the_seed_decides_the_files(tmp_path):
    contents = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        paths = write_storyworld(tmp_path / folder, seed=seed, **COUNTS).paths
        contents.append([path.read_bytes() for path in paths])

    assert contents[0] == contents[1]
    assert not any(one == other for one, other in zip(contents[0], contents[2], strict=True))


@pytest.mark.parametrize(("name", "count"), [("train", 0), ("test", -1), ("negatives_per_aspect", -1)])
def test_numbers_that_are_too_small_are_refused_before_anything_is_written(tmp_path, name, count):
    with refused("at_least", option=name, found=count):
        write_storyworld(tmp_path / "w", **{name: count})
    assert not (tmp_path / "w").exists()
