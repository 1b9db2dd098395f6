"""Folds of a datamodule: no evaluated story trains, every row with a dissimilar story is evaluated once."""

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples, Triple, Triples, triple_of
from narrlit.data.splits import story_groups
from narrlit.datamodules import FoldData, LoaderOptions, StoryData, StoryWorldData
from narrlit.datamodules.provenance import Provenance
from narrlit.errors import OptionError


class Given(StoryData):
    """Data of given rows: anchor, positive, {negative: kind}, group."""

    def __init__(self, rows, synthetic=0):
        super().__init__(LoaderOptions())
        self.given = rows
        self.synthetic_rows = synthetic

    def read_examples(self, stories):
        self.note("train", Provenance([{"path": "t.jsonl"}]))
        return examples(self.given, stories)

    def read_triples(self, stage, stories):
        self.note(stage, Provenance([{"path": f"{stage}.jsonl"}]))
        return Triples(stories, [Triple(*map(stories.add, ("of", "the", "test")), True)])


def examples(rows, table=None):
    table = StoryTable() if table is None else table
    found = []
    for anchor, positive, negatives, *group in rows:
        indices = [table.add(text) for text in (anchor, positive, *negatives)]
        found.append(TrainingExample(indices[0], indices[1], tuple(indices[2:]), tuple(negatives.values()), *group))
    return TrainingExamples(table, found)


def world_rows(seed, count):
    data = StoryWorldData(count, world_seed=seed)
    return [(x, p, {n: "triple"}) for x, p, n in data.read_examples(data.stories).texts()]


@st.composite
def rows_of_stories(draw):
    rows = []
    stories = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=2, max_size=4, unique=True)
    for _ in range(draw(st.integers(1, 12))):
        anchor, positive, *others = draw(stories)
        rows.append((anchor, positive, {text: draw(st.sampled_from(["triple", "theme"])) for text in others}))
    return rows


@settings(max_examples=50, deadline=None)
@given(rows_of_stories(), st.integers(2, 4))
def test_no_story_of_a_fold_is_in_training_and_no_row_is_evaluated_twice(rows, folds):
    every = examples(rows)
    expected = [triple_of(row, every.stories) for row in every]
    try:
        found = [FoldData(Given(rows), fold, folds).rows(fold) for fold in range(folds)]
    except OptionError:
        evaluated = [number for number, triple in enumerate(expected) if triple]
        assert len(set(story_groups(every)[evaluated].tolist())) < folds
        return

    for trained, triples, noted in found:
        trained_texts = set(chain.from_iterable(trained.texts()))
        assert trained_texts.isdisjoint(chain.from_iterable(triples.texts()))
        assert noted.trained + noted.evaluated + noted.left_out == noted.all_rows == len(rows)

    together = Counter(texts for _, triples, _ in found for texts in triples.texts())
    assert together == Counter(Triples(every.stories, [triple for triple in expected if triple]).texts())


def test_rows_without_a_triple_are_used_in_training_unless_they_share_a_story():
    rows = [
        ("a0", "a1", {"atheme": "theme", "atriple": "triple"}),
        ("b0", "b1", {"btriple": "triple"}),
        ("c0", "c1", {"ctheme": "theme"}),
        ("a0", "d1", {}),
    ]
    data = FoldData(Given(rows), fold=0, folds=2)
    by_anchor = {}
    for fold in (0, 1):
        found = data.rows(fold)
        by_anchor[found[1].texts()[0][0]] = found

    first = by_anchor["a0"]
    other = by_anchor["b0"]

    assert [row[0] for row in first[0].texts()] == ["b0", "c0"]
    assert [row[1] for row in other[0].texts()] == ["a1", "c1", "d1"]
    assert set(first[1].texts()[0]) == {"a0", "a1", "atriple"}
    assert first[2].left_out == 1
    assert other[2].left_out == 0
    assert first[2].never_evaluated == 2
    assert first[2].groups == 1
    assert first[2].all_groups == 3
    assert first[2].largest_group == 2
    with refused("no_triple_to_evaluate"):
        FoldData(Given(rows[2:]), folds=2).rows(0)
    with refused("no_training_data"):
        FoldData(Given([]), folds=2).rows(0)
    with refused("fold_number", fold=2, folds=2):
        FoldData(Given(rows), fold=2, folds=2)


def test_synthetic_rows_are_used_in_training_only():
    rows = world_rows(1, 8)
    written = (rows[0][0], "a new one", {"another": "triple"})
    folds = [FoldData(Given([*rows, written], synthetic=1), fold, folds=4).rows(fold) for fold in range(4)]

    assert sum(len(triples) for _, triples, _ in folds) == 8

    for trained, triples, noted in folds:
        shares = any(texts[0] == rows[0][0] for texts in triples.texts())
        assert any("a new one" in texts for texts in trained.texts()) == (not shares)
        assert noted.never_evaluated == 1


def test_synthetic_rows_can_be_evaluated_and_stand_last():
    rows = world_rows(1, 8)
    written = [(f"anchor {row}", f"positive {row}", {f"other {row}": "triple"}) for row in range(6)]
    written.append(("alone", "its positive", {}))
    data = FoldData(Given([*rows, *written], synthetic=7), folds=2, evaluate_synthetic=True)
    folds = [data.rows(fold) for fold in range(2)]
    names = {anchor for anchor, _, _ in written}

    assert sum(noted.synthetic for _, _, noted in folds) == 6
    assert {noted.never_evaluated for _, _, noted in folds} == {1}
    for trained, triples, noted in folds:
        synthetic = [bool(names & set(texts)) for texts in triples.texts()]
        assert synthetic == [False] * (noted.evaluated - noted.synthetic) + [True] * noted.synthetic
        assert set(chain.from_iterable(trained.texts())).isdisjoint(chain.from_iterable(triples.texts()))


def test_batches_of_one_setting_follow_the_divided_data():
    source = Given(world_rows(1, 10))
    source.setting_share = 0.5
    assert FoldData(source, folds=5).setting_share == 0.5


def test_provenance_names_the_fold_and_its_files():
    rows = world_rows(1, 10)
    data = FoldData(Given(rows), fold=1, folds=5)
    data.setup("fit")

    assert len(data.examples) == 8
    assert len(data.triples["validation"]) == 2

    for stage in ("train", "validation"):
        noted = data.provenance[stage]
        assert noted["files"] == [{"path": "t.jsonl"}]
        assert {"fold": 1, "folds": 5, "groups": 2, "ungrouped": False}.items() <= noted["fold"].items()

    assert data.train_validation_overlap().shared_stories == 0

    data.setup("test")
    assert data.triples["test"].texts() == [("of", "the", "test")]
    assert data.provenance["test"] == {"files": [{"path": "test.jsonl"}]}

    other = [*rows[:9], (rows[9][0] + " ", *rows[9][1:])]
    digests = {FoldData(Given(some), folds=5).describe(0).sha256 for some in (rows, list(rows), other)}
    assert len(digests) == 2


def test_paraphrases_are_in_the_fold_of_their_source():
    """Back-translations share no text with their source: their rows name it."""
    named = [(*row, str(i)) for i, row in enumerate(world_rows(4, 20))]
    copies = []
    for anchor, positive, negatives, group in named:
        other_negatives = {f"So: {text}": kind for text, kind in negatives.items()}
        copies.append((f"So: {anchor}", f"So: {positive}", other_negatives, group))
    data = FoldData(Given([*named, *copies]), folds=4)
    group_of = {anchor: group for anchor, _, _, group in named}

    for fold in range(4):
        trained, triples, _ = data.rows(fold)
        evaluated = {anchor.removeprefix("So: ") for anchor, _, _ in triples.texts()}
        assert len(evaluated) * 2 == len(triples)
        assert not {row.group for row in trained} & {group_of[anchor] for anchor in evaluated}


def test_ungrouped_folds_divide_by_row_and_warn():
    rows = world_rows(2, 10)
    data = FoldData(Given([*rows, *((positive, anchor, far) for anchor, positive, far in rows)]), ungrouped=True)
    with pytest.warns(UserWarning, match="not grouped by story"):
        data.setup("fit")
    assert data.train_validation_overlap().shared_pairs > 0
