"""The table of stories, and examples and triples as its rows."""

import numpy as np
import pytest

from narrlit.data.records import Example, Negative, Triple
from narrlit.data.table import StoryTable, index_examples, index_triples


def test_every_text_has_one_row():
    table = StoryTable(["b", "a", "b"])
    assert (table.add("a"), table.add("c"), table.add("c")) == (1, 2, 2)
    assert table.rows(["c", "b", "d"]) == [2, 0, 3]
    assert table.texts == ["b", "a", "c", "d"]
    assert [table[row] for row in range(len(table))] == table.texts


def test_texts_cannot_be_changed_from_outside():
    table = StoryTable(["a"])
    table.texts.append("b")
    assert len(table) == 1
    assert table.add("b") == 1
    assert table.texts == ["a", "b"]


def test_texts_that_differ_by_white_space_or_case_differ():
    assert StoryTable().rows(["a", "A", "a ", "a\n"]) == [0, 1, 2, 3]


def test_examples_are_padded():
    indexed = index_examples(
        [
            Example("x", "p", (Negative("n", "outcome"),)),
            Example("p", "x"),
            Example("x", "q", (Negative("p"), Negative("n", "triple"), Negative("m", "mined"))),
        ]
    )
    assert indexed.table.texts == ["x", "p", "n", "q", "m"]
    assert indexed.anchors.tolist() == [0, 1, 0]
    assert indexed.positives.tolist() == [1, 0, 3]
    assert indexed.negatives.tolist() == [[2, -1, -1], [-1, -1, -1], [1, 2, 4]]
    assert indexed.kinds.tolist() == [[2, -1, -1], [-1, -1, -1], [-1, 4, 3]]
    assert len(indexed) == 3
    arrays = (indexed.anchors, indexed.positives, indexed.negatives, indexed.kinds)
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}
    assert all(array.flags.c_contiguous for array in arrays)


@pytest.mark.parametrize("examples", [[], [Example("x", "p")]])
def test_examples_without_negatives_keep_two_axes(examples):
    indexed = index_examples(examples)
    assert indexed.negatives.shape == indexed.kinds.shape == (len(examples), 0)
    assert indexed.anchors.shape == (len(examples),)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="unknown kind 'mood'; one of theme, structure, outcome, mined, triple"):
        index_examples([Example("x", "p", (Negative("n", "mood"),))])


def test_triples_and_their_labels():
    indexed = index_triples([Triple("x", "a", "b", True), Triple("b", "x", "c", False), Triple("a", "a", "c")])
    assert indexed.table.texts == ["x", "a", "b", "c"]
    assert indexed.anchors.tolist() == [0, 2, 1]
    assert indexed.a.tolist() == [1, 0, 1]
    assert indexed.b.tolist() == [2, 3, 3]
    assert indexed.labels.tolist() == [1, 0, -1]
    assert len(indexed) == 3
    assert {array.dtype for array in (indexed.anchors, indexed.a, indexed.b, indexed.labels)} == {np.dtype(np.int64)}


def test_no_triples():
    indexed = index_triples([])
    assert len(indexed) == 0
    assert indexed.a.shape == indexed.labels.shape == (0,)


def test_a_table_given_is_shared_even_while_empty():
    table = StoryTable()
    examples = index_examples([Example("x", "p")], table)
    triples = index_triples([Triple("p", "q", "x")], table)
    assert examples.table is table is triples.table
    assert table.texts == ["x", "p", "q"]
    assert (triples.anchors[0], triples.a[0], triples.b[0]) == (1, 2, 0)
