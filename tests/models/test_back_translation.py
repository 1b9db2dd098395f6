"""Versions of rows: every story comes back to its place, what can't be used stays out, and folds stay whole."""

from collections import Counter

import numpy as np
import pytest

from narrlit.data.folds import story_groups
from narrlit.data.records import Example, Negative
from narrlit.data.storyworld import StoryWorld, example
from narrlit.data.writers import write_examples
from narrlit.datamodules import FileData, FoldData
from narrlit.datamodules.file_data import Extra
from narrlit.models.back_translation import (
    EMPTY,
    IDENTICAL,
    UNFINISHED,
    Returned,
    Versions,
    back_translate,
    group_of,
    versions,
    with_versions,
)
from narrlit.models.translation_log import Translation


def by(change):
    """A translation that changes each sentence by a function."""
    return lambda texts: [Translation(change(text), ended=True) for text in texts]


def test_stories_go_there_and_back_sentence_by_sentence():
    seen = []

    def there(texts):
        seen.extend(texts)
        return by(str.upper)(texts)

    texts = ["One came. Two went.\n\nThree stayed.", "Four left.", "One came."]
    found = back_translate(texts, there, by(lambda text: text.replace("E", "3")))
    assert seen == ["One came.", "Two went.", "Three stayed.", "Four left.", "One came."]
    assert [one.text for one in found] == ["ON3 CAM3. TWO W3NT. THR33 STAY3D.", "FOUR L3FT.", "ON3 CAM3."]
    assert [one.fault for one in found] == [None] * 3


@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: Translation("" if "Two" in text else text[::-1], ended=True), EMPTY),
        (lambda text: Translation(text[::-1], ended="Two" not in text), UNFINISHED),
    ],
)
def test_one_sentence_is_enough_for_a_fault(way, change, fault):
    ways = {"there": by(str), "back": by(str), way: lambda texts: [change(text) for text in texts]}
    found = back_translate(["Good day.", "One came. Two went."], **ways)
    assert [one.fault for one in found] == [None, fault]


def test_a_story_that_differs_by_case_and_white_space_alone_is_the_same():
    texts = ["One came.\n\nTwo went.", "One  CAME."]
    assert [one.fault for one in back_translate(texts, by(str.upper), by(str.title))] == [IDENTICAL, IDENTICAL]
    assert back_translate(["One came."], by(str), by(lambda text: text + "!"))[0].fault is None


ROW = Example("a", "p", (Negative("n", "triple"), Negative("m", "theme"), Negative("o")))


def test_a_version_has_the_order_and_the_kinds_of_its_source():
    found = versions([ROW], {text: Returned(text.upper()) for text in ROW.texts})
    assert found.examples == [Example("A", "P", (Negative("N", "triple"), Negative("M", "theme"), Negative("O")))]
    assert found.left_out == Counter()
    assert found.stories == {"a": "A", "p": "P", "n": "N", "m": "M", "o": "O"}


def test_a_version_is_left_out_whole_and_its_reason_counted():
    other = Example("b", "q")
    returned = {text: Returned(text.upper()) for text in "apnmobq"}
    found = versions([ROW, other], {**returned, "o": Returned("o", IDENTICAL)})
    assert found.examples == [None, Example("B", "Q")]
    assert found.left_out == {IDENTICAL: 1}
    assert found.stories == {"b": "B", "q": "Q"}
    # Two stories that a translation makes one can't stand on both sides.
    found = versions([ROW, other], {**returned, "m": Returned("P")})
    assert found.left_out == {"positive among its negatives": 1}


def test_versions_follow_their_source_and_share_its_group():
    plain, named = Example("a", "p"), Example("b", "q", group="mine")
    french = Versions([Example("a1", "p1"), Example("b1", "q1", group="mine")], Counter(), {})
    hindi = Versions([None, Example("b2", "q2", group="mine")], Counter(), {})
    rows = with_versions([plain, named], [french, hindi])
    assert [row.anchor for row in rows] == ["a", "a1", "b", "b1", "b2"]
    assert [row.group for row in rows] == [group_of(plain)] * 2 + ["mine"] * 3
    assert group_of(plain) == group_of(Example("a", "p")) != group_of(Example("p", "a"))
    assert group_of(Example("ab", "c")) != group_of(Example("a", "bc"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Twelve rows, and these with versions that share no text with their sources."""
    folder = tmp_path_factory.mktemp("rows")
    rows = [example(triple) for triple in StoryWorld(4).triples(12)]
    texts = {text for row in rows for text in row.texts}
    made = [versions(rows, {text: Returned(f"{name} {text}") for text in texts}) for name in ("Fr", "Ru")]
    write_examples(folder / "rows.jsonl", rows)
    write_examples(folder / "with_versions.jsonl", with_versions(rows, made))
    return folder


@pytest.mark.parametrize("beside", [False, True])
def test_no_fold_judges_a_story_whose_version_trains(files, beside):
    augmented = str(files / "with_versions.jsonl")
    data = FileData(str(files / "rows.jsonl"), extra=Extra(synthetic=augmented)) if beside else FileData(augmented)
    judged = 0
    for fold in range(3):
        rows = FoldData(data, fold, 3).rows(fold)
        trained = {text.removeprefix("Fr ").removeprefix("Ru ") for row in rows.examples for text in row.texts}
        sources = {t.removeprefix("Fr ").removeprefix("Ru ") for triple in rows.triples for t in triple.texts}
        assert trained and sources and not trained & sources
        judged += len(rows.triples)
    assert judged == (12 if beside else 36)


def test_without_their_groups_versions_would_be_torn_apart(files):
    rows = FileData(str(files / "with_versions.jsonl")).read_examples()
    assert len(np.unique(story_groups(rows))) < len(np.unique(story_groups([Example(*row.texts[:2]) for row in rows])))
