"""narrlit data storyworld: files that the readers take, and refused counts."""

import pytest
from json_files import read_json_lines

from narrlit.data.readers import read_examples, read_stories, read_triples


@pytest.mark.parametrize(
    ("option", "count", "least"), [("train", 0, 1), ("test", -1, 1), ("negatives-per-aspect", -1, 0)]
)
def test_storyworld_checks_its_counts_before_it_writes(narrlit, tmp_path, option, count, least):
    found = narrlit("data", "storyworld", "--out", "w", f"--{option}", count)
    assert found.code == 2
    assert f"--{option} {count}: must be at least {least}" in found.err
    assert not (tmp_path / "w").exists()


def test_storyworld_writes_files_that_the_readers_take(narrlit, tmp_path):
    assert narrlit("data", "storyworld", "--out", "w", "--train", 3, "--validation", 2, "--test", 2).code == 0
    assert [len(example.negatives) for example in read_examples(tmp_path / "w/train.jsonl", strict=True)] == [10] * 3
    assert len(read_triples(tmp_path / "w/test.jsonl", strict=True)) == 2

    stories = {story.text for story in read_stories(tmp_path / "w/test_stories.jsonl")}
    views = read_json_lines(tmp_path / "w/test_views.jsonl")
    assert {view["text"] for view in views} == stories
    assert all(view["theme"] and view["plot_events"] and view["outcome"] and view["names"] for view in views)

    for name in ("validation.jsonl", "validation_stories.jsonl"):
        found = narrlit("data", "views", "w/validation_views.jsonl", f"w/{name}")
        assert found.code == 0
        assert "with views 6 (100.0 %)" in found.out

    found = narrlit("data", "views", "w/validation_views.jsonl", "w/train.jsonl")

    assert found.code == 1
    assert "with views 0 (0.0 %)" in found.out
