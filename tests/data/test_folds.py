"""Folds grouped by story: nothing is on both sides, nothing is lost, and what it hides to divide by row."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.data.components import components
from narrlit.data.folds import grouped_folds, story_groups
from narrlit.data.records import Example, Negative, Triple, triple_of
from narrlit.data.storyworld import StoryWorld, example
from narrlit.datamodules import FoldData, Loading, StoryData, StoryWorldData
from narrlit.errors import OptionError
from narrlit.metrics.significance import wilson_interval


class Given(StoryData):
    """Data with these training rows."""

    def __init__(self, rows):
        super().__init__(Loading())
        self.given = rows

    def read_examples(self):
        self.provenance["train"] = {"files": [{"path": "t.jsonl"}]}
        return self.given

    def read_triples(self, stage):
        self.provenance[stage] = {"files": [{"path": f"{stage}.jsonl"}]}
        return [Triple("of", "the", stage, True)]


@st.composite
def examples(draw):
    """A few examples over a few stories, so that many share some; one in three belongs to a named source."""
    texts = draw(st.lists(st.sampled_from("abcdefghijklmnopqrstuvwx"), min_size=2, max_size=4, unique=True))
    anchor, positive, *others = texts
    kinds = st.sampled_from(["triple", "theme", None])
    negatives = tuple(Negative(other, draw(kinds)) for other in others)
    return Example(anchor, positive, negatives, draw(st.sampled_from([None, None, "source 1"])))


rows_of_stories = st.lists(examples(), min_size=1, max_size=9)


@given(rows_of_stories)
def test_rows_are_in_a_group_if_and_only_if_a_chain_of_stories_joins_them(rows):
    groups = story_groups(rows)
    marks = [{*row.texts, *([("group", row.group)] if row.group else [])} for row in rows]
    reached = np.array([[bool(one & other) for other in marks] for one in marks])
    for _ in rows:
        reached = (reached.astype(int) @ reached.astype(int)) > 0
    assert np.array_equal(groups[:, None] == groups, reached)
    assert [groups[group] for group in groups] == groups.tolist()  # named by the first row, which is in it


def test_case_and_white_space_make_no_other_story_and_a_group_is_no_text():
    rows = [Example("A  ship.", "b"), Example("c", "a ship.\n"), Example("d", "e", group="b"), Example("f", "g")]
    assert story_groups(rows).tolist() == [0, 0, 2, 3]


def test_components_of_nothing_and_of_a_long_chain():
    assert components(0, []).tolist() == []
    assert set(components(5000, ((i, i + 1) for i in reversed(range(4999)))).tolist()) == {0}


groups_of_rows = st.lists(st.integers(0, 12), min_size=1, max_size=60).map(np.array)


@given(groups_of_rows, st.integers(2, 6), st.integers(0, 3))
def test_folds_hold_every_row_once_and_whole_groups(groups, folds, seed):
    sizes = Counter(groups.tolist())
    if len(sizes) < folds:
        with pytest.raises(
            OptionError, match=rf"--folds {folds}: .* only {len(sizes)} such groups.* {max(sizes.values())} of"
        ):
            grouped_folds(groups, folds, seed)
        return
    found = grouped_folds(groups, folds, seed)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(groups)))
    assert all(len(fold) and fold.tolist() == sorted(fold.tolist()) for fold in found)
    sides = [set(groups[fold].tolist()) for fold in found]
    assert sum(map(len, sides)) == len(sizes)
    # Dealt largest first into the smallest, no two folds differ by more than the largest group.
    assert max(map(len, found)) - min(map(len, found)) <= max(sizes.values())
    again = grouped_folds(groups, folds, seed)
    assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))


def test_folds_of_equal_groups_are_even_and_the_seed_divides_them_otherwise():
    groups = np.repeat(np.arange(20), 3)
    found = [grouped_folds(groups, 5, seed) for seed in (0, 1)]
    assert {len(fold) for folds in found for fold in folds} == {12}
    assert any(not np.array_equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("folds", [1, 0, -3])
def test_one_fold_is_none(folds):
    with pytest.raises(OptionError, match="at least 2"):
        grouped_folds(np.arange(9), folds)


@settings(max_examples=50)
@given(rows_of_stories, st.integers(2, 4))
def test_no_story_of_a_fold_trains_and_no_row_is_judged_twice(rows, folds):
    try:
        found = [FoldData(Given(rows), fold, folds).rows(fold) for fold in range(folds)]
    except OptionError:
        judged = [row for row, example in enumerate(rows) if triple_of(example)]
        assert len(set(story_groups(rows)[judged].tolist())) < folds
        return
    for fold in found:
        trained = {text for example in fold.examples for text in example.texts}
        assert not trained & {text for triple in fold.triples for text in triple.texts}
        told = fold.description
        assert told["trained"] + told["judged"] + told["left_out"] == told["all_rows"] == len(rows)
    together = Counter(triple for fold in found for triple in fold.triples)
    assert together == Counter(filter(None, map(triple_of, rows)))


def test_rows_without_a_dissimilar_story_train_where_they_share_nothing_and_are_counted():
    def row(name, *kinds, anchor=None):
        return Example(anchor or f"{name}0", f"{name}1", tuple(Negative(f"{name}{kind}", kind) for kind in kinds))

    rows = [row("a", "theme", "triple"), row("b", "triple"), row("c", "theme"), row("d", anchor="a0")]
    data = FoldData(Given(rows), fold=0, folds=2)
    by_fold = [data.rows(fold) for fold in (0, 1)]
    first = next(fold for fold in by_fold if fold.triples[0].anchor == "a0")
    other = next(fold for fold in by_fold if fold.triples[0].anchor == "b0")
    assert first.examples == [rows[1], rows[2]]
    assert other.examples == [rows[0], rows[2], rows[3]]
    assert {*first.triples[0].texts} == {"a0", "a1", "atriple"}
    assert (first.description["left_out"], other.description["left_out"]) == (1, 0)
    assert first.description["never_judged"] == 2
    assert (first.description["groups"], first.description["all_groups"], first.description["largest_group"]) == (
        1,
        3,
        2,
    )
    with pytest.raises(OptionError, match="none can be judged"):
        FoldData(Given(rows[2:]), folds=2).rows(0)
    with pytest.raises(OptionError, match=r"--data\.train FILE"):
        FoldData(Given([]), folds=2).rows(0)
    with pytest.raises(OptionError, match=r"data\.fold is 2"):
        FoldData(Given(rows), fold=2, folds=2)


def test_synthetic_rows_train_and_are_not_judged():
    rows = [example(triple) for triple in StoryWorld(1).triples(8)]
    written = Example(rows[0].anchor, "a new one", (Negative("another", "triple"),))
    source = Given([*rows, written])
    source.synthetic_rows = 1
    folds = [FoldData(source, fold, folds=4).rows(fold) for fold in range(4)]
    assert sum(len(fold.triples) for fold in folds) == 8
    for fold in folds:
        shares = any(triple.anchor == rows[0].anchor for triple in fold.triples)
        assert (written in fold.examples) == (not shares)
        assert fold.description["never_judged"] == 1


def test_the_data_of_a_fold_say_which_and_keep_where_they_come_from():
    rows = [example(triple) for triple in StoryWorld(1).triples(10)]
    data = FoldData(Given(rows), fold=1, folds=5)
    data.setup("fit")
    assert (len(data.examples), len(data.triples["validation"])) == (8, 2)
    for stage in ("train", "validation"):
        told = data.provenance[stage]
        assert told["files"] == [{"path": "t.jsonl"}]
        assert {"fold": 1, "folds": 5, "groups": 2, "ungrouped": False}.items() <= told["fold"].items()
    assert data.train_validation_overlap().shared_stories == 0
    data.setup("test")
    assert data.triples["test"] == [Triple("of", "the", "test", True)]
    assert data.provenance["test"] == {"files": [{"path": "test.jsonl"}]}
    other = [*rows[:9], Example(rows[9].anchor + " ", rows[9].positive, rows[9].negatives)]
    digests = {FoldData(Given(some), folds=5).rows(0).description["sha256"] for some in (rows, list(rows), other)}
    assert len(digests) == 2


def test_storyworld_is_divided_and_its_other_negatives_train():
    data = FoldData(StoryWorldData(train=12, negatives_per_dimension=1), fold=2, folds=3)
    data.setup("fit")
    assert (len(data.examples), len(data.triples["validation"])) == (8, 4)
    assert data.negative_kinds() == {"triple", "theme", "structure", "outcome"}
    assert data.provenance["train"]["storyworld"]["triples"] == 12


def test_the_closer_candidate_is_a_in_about_half_of_the_triples():
    triples = [triple_of(example(triple)) for triple in StoryWorld(0).triples(200)]
    assert 70 < sum(triple.a_is_closer for triple in triples) < 130


def memorised(data):
    """Right answers and n over all folds, of a scorer that knows the pairs it has trained on and guesses the others."""
    correct = n = 0
    for fold in range(data.folds):
        found = data.rows(fold)
        near = {frozenset((row.anchor, row.positive)) for row in found.examples}
        far = {frozenset((row.anchor, other.text)) for row in found.examples for other in row.negatives}
        for triple in found.triples:
            a, b = (
                (frozenset((triple.anchor, text)) in near) - (frozenset((triple.anchor, text)) in far)
                for text in (triple.a, triple.b)
            )
            correct += (a > b) == triple.a_is_closer
            n += 1
    return correct, n


def test_copies_of_a_row_inflate_the_accuracy_of_folds_by_row_and_not_of_those_by_story():
    triples = [example(triple) for triple in StoryWorld(2).triples(60)]
    rows = triples + [Example(row.positive, row.anchor, row.negatives) for row in triples]
    grouped, ungrouped = (FoldData(Given(rows), folds=5, ungrouped=by_row) for by_row in (False, True))
    honest, inflated = (wilson_interval(*memorised(data)) for data in (grouped, ungrouped))
    assert memorised(grouped)[1] == memorised(ungrouped)[1] == len(rows)
    assert honest[0] < 0.5 < honest[1]  # who only remembers can't know
    assert inflated[0] > 0.75
    assert [grouped.rows(fold).description["groups"] for fold in range(5)] == [12] * 5
    assert ungrouped.rows(0).description["ungrouped"] is True
    with pytest.warns(UserWarning, match="not grouped by story"):
        ungrouped.setup("fit")
    assert ungrouped.train_validation_overlap().shared_pairs > 0


def test_copies_in_other_words_stay_with_their_source_by_its_name():
    """Back-translations share no text with what they were made of: their rows say the source."""
    triples = [example(triple) for triple in StoryWorld(4).triples(20)]
    named = [Example(row.anchor, row.positive, row.negatives, str(i)) for i, row in enumerate(triples)]
    copies = [
        Example(
            f"It is told: {row.anchor}",
            f"Long ago: {row.positive}",
            tuple(Negative(f"So: {n.text}", n.kind) for n in row.negatives),
            row.group,
        )
        for row in named
    ]
    assert len(set(story_groups([*named, *copies]).tolist())) == 20
    data = FoldData(Given([*named, *copies]), folds=4)
    for fold in range(4):
        found = data.rows(fold)
        trained = {row.group for row in found.examples}
        judged = {triple.anchor.removeprefix("It is told: ") for triple in found.triples}
        assert len(judged) * 2 == len(found.triples)
        assert not trained & {row.group for row in named if row.anchor in judged}
