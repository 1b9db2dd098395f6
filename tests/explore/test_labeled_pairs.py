"""Pairs to check, and what is made of the decisions on them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from measured import similarities_of
from refusals import refused

from narrlit.explore.labeled_pairs import label_pairs
from narrlit.explore.pair_checking import pairs_to_check
from narrlit.explore.pair_decisions import PairDecision, StoryPair
from narrlit.library.story_frame import plain


@dataclass
class Stories:
    """As much of a collection as pairs need."""

    frame: pd.DataFrame
    similarities: object
    about: dict

    def __len__(self):
        return len(self.frame)


def collection(vectors, texts=None, **columns):
    """Stories s0, s1, ... with these vectors."""
    vectors = np.asarray(vectors, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"s{row}" for row in range(len(vectors))]
    texts = [f"Story {id}." for id in ids] if texts is None else texts
    frame = plain(pd.DataFrame({"id": ids, "title": "", "text": texts, **columns}))
    return Stories(frame, similarities_of(vectors, texts), {"source": "tales"})


def decisions(text, reader="anna"):
    """Decisions from words such as "s0=s1" (same), "s0!s1" (different) and "s0?s1" (unsure)."""
    made = []
    for word in text.split():
        sign = next(sign for sign in "=!?" if sign in word)
        decision = {"=": "same", "!": "different", "?": "unsure"}[sign]
        made.append(PairDecision(StoryPair.of(*word.split(sign)), decision, reader))
    return made


FOUR = [[1, 0], [1, 0.3], [1, 1], [0, 1]]


def ids_of(table):
    return [(row.id_a, row.id_b) for row in table.itertuples()]


# Pairs to check ------------------------------------------------------------------------------------------------------


def test_pairs_are_listed_once_and_the_most_similar_first():
    pairs = pairs_to_check(collection(FOUR))

    assert len(ids_of(pairs.table())) == len(set(ids_of(pairs.table()))) == 6
    assert ids_of(pairs.table())[0] == ("s0", "s1")
    assert pairs.table()["similarity"].is_monotonic_decreasing


def test_near_copies_are_left_out_and_counted():
    by_vectors = pairs_to_check(collection([[1, 0], [1, 0.001], [0, 1]]))
    by_texts = pairs_to_check(collection([[1, 0], [1, 1], [0, 1]], ["A  king.", "a king.", "A queen."]))

    for pairs in (by_vectors, by_texts):
        assert ("s0", "s1") not in ids_of(pairs.table())
        assert (len(pairs), pairs.copies) == (2, 1)
        assert str(pairs).endswith("2 pairs; 0 decided pairs and 1 pair of near-copies left out.")


def test_decided_pairs_are_left_out_for_all_readers_or_for_one():
    made = [*decisions("s1=s0", "anna"), *decisions("s2?s0", "ben")]
    stories = collection(FOUR)

    assert len(pairs_to_check(stories, made)) == 4
    assert pairs_to_check(stories, made).decided == 2
    assert ("s0", "s1") in ids_of(pairs_to_check(stories, made, reader="ben").frame)


def test_the_limit_is_that_of_the_undecided_pairs():
    pairs = pairs_to_check(collection(FOUR), decisions("s0=s1"), limit=2)

    assert len(pairs) == 2
    assert ("s0", "s1") not in ids_of(pairs.frame)


def test_nothing_is_left_when_all_is_decided():
    pairs = pairs_to_check(collection([[1, 0], [0, 1]]), decisions("s0=s1"))

    assert str(pairs) == "No pair to check: 1 decided pair and 0 pairs of near-copies left out."
    assert pairs.table().empty


@pytest.mark.parametrize("options", [{"k": 0}, {"limit": 0}])
def test_numbers_below_one_are_refused(options):
    [(name, _)] = options.items()
    with refused("at_least", found=0, least=1, option=name):
        pairs_to_check(collection(FOUR), **options)


def test_the_table_for_a_reader_has_texts_and_an_empty_decision():
    [row] = pairs_to_check(collection(FOUR), limit=1).table().to_dict("records")

    assert list(row) == [
        *("id_a", "title_a", "id_b", "title_b", "similarity", "decision", "reader", "text_a", "text_b"),
    ]
    assert (row["decision"], row["text_a"], row["text_b"]) == ("", "Story s0.", "Story s1.")


# Labels, groups and triples ------------------------------------------------------------------------------------------


def test_stories_joined_by_same_pairs_are_versions_of_the_first():
    labeled = label_pairs(collection(np.eye(5)), decisions("s3=s1 s1=s4 s0!s3"))
    table = labeled.groups()

    assert table["version_of"].tolist() == [None, "s1", None, "s1", "s1"]
    assert labeled.versions == {"s1": ["s1", "s3", "s4"]}


def test_all_stories_and_columns_are_in_the_table_of_groups():
    stories = collection(np.eye(3), land=["FR", None, "DE"])
    table = label_pairs(stories, decisions("s0=s2")).groups()

    assert list(table) == ["id", "title", "text", "version_of", "land"]
    assert len(table) == 3


def test_a_different_pair_makes_a_triple_with_each_version_of_its_stories():
    labeled = label_pairs(collection(np.eye(6)), decisions("s0=s1 s1=s2 s0!s3 s4!s5"))
    triples = labeled.triples()
    closer = [row.id_a if row.text_a_is_closer else row.id_b for row in triples.itertuples()]
    other = [row.id_b if row.text_a_is_closer else row.id_a for row in triples.itertuples()]

    assert triples["anchor_id"].tolist() == ["s0", "s0"]
    assert closer == ["s1", "s2"]
    assert other == ["s3", "s3"]
    assert triples["group"].tolist() == ["s0", "s0"]
    assert triples.loc[0, "anchor_text"] == "Story s0."
    assert set(triples.loc[0, ["text_a", "text_b"]]) == {"Story s1.", "Story s3."}


def test_both_stories_of_a_different_pair_are_anchors_if_both_have_versions():
    triples = label_pairs(collection(np.eye(4)), decisions("s0=s1 s2=s3 s0!s2")).triples()

    assert triples["anchor_id"].tolist() == ["s0", "s2"]


def test_copies_make_no_triple():
    stories = collection(np.eye(3), ["A king.", "A king.", "A queen."])

    assert label_pairs(stories, decisions("s0=s1 s0!s2")).triples().empty


def test_pairs_on_which_readers_disagree_or_are_unsure_are_left_out():
    made = [*decisions("s0=s1 s1=s2 s0?s2 s0=s3"), *decisions("s0!s1 s1?s2 s0?s2", "ben")]
    labeled = label_pairs(collection(np.eye(4)), made)

    assert labeled.table().to_dict("records") == [
        {"id_a": "s1", "id_b": "s2", "decision": "same"},
        {"id_a": "s0", "id_b": "s3", "decision": "same"},
    ]
    assert labeled.disagreed == [StoryPair("s0", "s1")]
    assert labeled.unsure == 1
    assert "left out, since readers disagree: s0 and s1" in str(labeled)


def test_a_group_that_contradicts_itself_is_left_out():
    labeled = label_pairs(collection(np.eye(6)), decisions("s0=s1 s1=s2 s0!s2 s3=s4 s3!s5 s0!s5"))

    assert labeled.versions == {"s3": ["s3", "s4"]}
    assert labeled.triples()["anchor_id"].tolist() == ["s3"]
    assert "joined by pairs that are the same: s0 and s2" in str(labeled)


def test_pairs_with_a_story_that_is_gone_are_counted():
    labeled = label_pairs(collection(np.eye(2)), decisions("s0=s1 s0=gone"))

    assert labeled.unknown == 1
    assert str(labeled).endswith("left out, since tales lacks one of the stories: 1 pair")


def test_nothing_to_write_is_said(tmp_path):
    labeled = label_pairs(collection(np.eye(3)), decisions("s0!s1"))

    with refused("no_version"):
        labeled.write_groups(tmp_path / "groups.csv")
    with refused("no_triple"):
        labeled.write_triples(tmp_path / "triples.jsonl")
