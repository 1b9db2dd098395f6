"""Token ids by story index: each story once a prompt, views once each."""

import numpy as np
import pytest

from narrlit.data.batch import TokenizedStories, TokenizedViews
from narrlit.data.schema import Story, StoryTable, TrainingExample, TrainingExamples, Views
from narrlit.errors import DataError

EXAMPLES = TrainingExamples(
    StoryTable.of(["a", "bb", "ccc"]), [TrainingExample(0, 1, (2,), ("theme",)), TrainingExample(2, 0)]
)


def tokenize(texts, role):
    """Letters as tokens, an anchor's with a 1 before them, cut at 5."""
    ids = [[1] * (role == "anchor") + [ord(letter) for letter in text] for text in texts]
    return [text[:5] for text in ids], sum(len(text) > 5 for text in ids)


def pieces(stories):
    return [piece.tolist() for piece in stories.token_ids.split(list(stories.lengths))]


def test_a_pack_holds_each_story_once_and_its_indices_lead_back():
    tokens = TokenizedStories(EXAMPLES.stories, tokenize, symmetric=True)
    columns = [(EXAMPLES.anchors, "anchor"), (EXAMPLES.positives, "candidate"), (EXAMPLES.negatives, "candidate")]
    stories, (anchors, positives, negatives) = tokens.pack(columns)

    assert len(stories) == 3

    texts = ["".join(map(chr, piece)).replace(chr(1), "") for piece in pieces(stories)]
    assert [texts[i] for i in anchors] == ["a", "ccc"]
    assert [texts[i] for i in positives] == ["bb", "a"]
    assert [[texts[i] if i >= 0 else None for i in row] for row in negatives] == [["ccc"], [None]]
    assert [EXAMPLES.stories[i].text for i in stories.indices.tolist()] == texts


def test_with_two_prompts_a_story_is_packed_once_a_role_with_the_same_index():
    tokens = TokenizedStories(EXAMPLES.stories, tokenize, symmetric=False)
    stories, (anchors, positives) = tokens.pack([(EXAMPLES.anchors, "anchor"), (EXAMPLES.positives, "candidate")])
    assert len(stories) == 4

    packed = pieces(stories)
    assert [packed[i][0] == 1 for i in anchors] == [True, True]
    assert [packed[i][0] == 1 for i in positives] == [False, False]
    assert stories.indices[anchors[0]] == stories.indices[positives[1]] == 0


def test_truncated_texts_are_counted():
    tokens = TokenizedStories(["abcdefgh", "ab"], tokenize, symmetric=True)
    assert tokens.truncated == 1
    assert tokens.provenance == {"truncated": 1}


def test_views_are_tokenized_once_each_and_a_story_without_views_is_refused_when_asked_for():
    viewed = [Story("0", "x", Views("t", "a", "o")), Story("1", "y"), Story("2", "z", Views("t", "b", "o"))]
    tokens = TokenizedViews(viewed, tokenize)
    assert tokens.provenance == {"truncated": 0, "pieces": 6}

    packed = tokens.select(np.array([2, 0]))
    texts = [chr(piece[1]) for piece in pieces(packed.pieces)]
    assert [[texts[i] for i in row] for row in packed.parts] == [list("ztbo"), list("xtao")]
    assert packed.indices.tolist() == [2, 0]

    chosen = packed.select([1])
    assert [chr(piece[1]) for piece in pieces(chosen.pieces)] == [texts[i] for i in sorted(packed.parts[1].tolist())]
    with pytest.raises(DataError, match="no views"):
        tokens.select(np.array([0, 1]))
