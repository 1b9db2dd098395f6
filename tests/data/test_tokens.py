"""Token ids by story index: each story once a prompt, views once each."""

import numpy as np
import pytest
from refusals import refused

from narrlit.data.batch import TokenizedStories, TokenizedViews
from narrlit.data.schema import Story, StoryTable, TrainingExample, TrainingExamples, Views

EXAMPLES = TrainingExamples(
    StoryTable.of(["a", "bb", "ccc"]), [TrainingExample(0, 1, (2,), ("theme",)), TrainingExample(2, 0)]
)
PROMPT = 1


def tokenize(texts, role):
    """Letters as tokens, an anchor's with a prompt before them, cut at 5."""
    prompt = [PROMPT] if role == "anchor" else []
    ids = [prompt + [ord(letter) for letter in text] for text in texts]
    return [tokens[:5] for tokens in ids], sum(len(tokens) > 5 for tokens in ids)


def pieces(stories):
    return [piece.tolist() for piece in stories.token_ids.split(list(stories.lengths))]


def texts_of(stories):
    """The text of each packed story, without a prompt."""
    return ["".join(chr(token) for token in piece if token != PROMPT) for piece in pieces(stories)]


def test_a_pack_holds_each_story_once_and_its_indices_lead_back():
    tokens = TokenizedStories(EXAMPLES.stories, tokenize, symmetric=True)
    columns = [(EXAMPLES.anchors, "anchor"), (EXAMPLES.positives, "candidate"), (EXAMPLES.negatives, "candidate")]
    stories, (anchors, positives, negatives) = tokens.pack(columns)

    assert len(stories) == 3

    texts = texts_of(stories)
    assert [texts[i] for i in anchors] == ["a", "ccc"]
    assert [texts[i] for i in positives] == ["bb", "a"]
    assert negatives.shape == (2, 1)
    assert texts[negatives[0, 0]] == "ccc"
    assert negatives[1, 0] == -1
    assert [EXAMPLES.stories[i].text for i in stories.indices.tolist()] == texts


def test_with_two_prompts_a_story_is_packed_once_a_role_with_the_same_index():
    tokens = TokenizedStories(EXAMPLES.stories, tokenize, symmetric=False)
    stories, (anchors, positives) = tokens.pack([(EXAMPLES.anchors, "anchor"), (EXAMPLES.positives, "candidate")])
    assert len(stories) == 4

    packed = pieces(stories)
    assert all(packed[i][0] == PROMPT for i in anchors)
    assert not any(packed[i][0] == PROMPT for i in positives)
    assert stories.indices[anchors[0]] == stories.indices[positives[1]] == 0


def test_truncated_texts_are_counted():
    tokens = TokenizedStories(["abcdefgh", "ab"], tokenize, symmetric=True)
    assert tokens.truncated == 1
    assert tokens.provenance == {"truncated": 1}


@pytest.fixture
def tokenized_views():
    """Stories x, y and z, of which y has no views; x and z share their theme and their outcome."""
    stories = [Story("0", "x", Views("t", "a", "o")), Story("1", "y"), Story("2", "z", Views("t", "b", "o"))]
    return TokenizedViews(stories, tokenize)


def test_views_are_tokenized_once_each(tokenized_views):
    assert tokenized_views.provenance == {"truncated": 0, "pieces": 6}


def test_selected_stories_have_their_text_and_views(tokenized_views):
    packed = tokenized_views.select(np.array([2, 0]))

    texts = texts_of(packed.pieces)
    assert packed.indices.tolist() == [2, 0]
    assert [texts[i] for i in packed.parts[0]] == ["z", "t", "b", "o"]
    assert [texts[i] for i in packed.parts[1]] == ["x", "t", "a", "o"]

    chosen = packed.select([1])
    assert texts_of(chosen.pieces) == [texts[i] for i in sorted(packed.parts[1].tolist())]


def test_a_story_without_views_is_refused_when_it_is_selected(tokenized_views):
    with refused("batch_without_views"):
        tokenized_views.select(np.array([0, 1]))
