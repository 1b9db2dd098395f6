"""Mining, against a plain loop that says who may be a negative and in what order."""

import numpy as np
import pytest
import torch

from narrlit.data.records import Example, Negative
from narrlit.data.table import index_examples
from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.models.mining import alike_groups, mine_negatives, nearest_wrong


def unit(vector):
    return vector / np.linalg.norm(vector)


def plainly(anchors, stories, positives, banned, groups, count, margin):
    """Rows, pairs and how many the margin left out, by definition and one pair at a time."""
    rows, pairs, left_out = [], 0, 0
    for n, anchor in enumerate(anchors):
        near = float(unit(anchor) @ unit(stories[positives[n]]))
        found = []
        for c, story in enumerate(stories):
            if groups[c] == groups[positives[n]] or c in banned[n]:
                continue
            pairs += 1
            cosine = float(unit(anchor) @ unit(story))
            if cosine > near + margin:
                left_out += 1
            else:
                found.append((-cosine, c))
        nearest = [c for _, c in sorted(found)[:count]]
        rows.append(nearest + [-1] * (count - len(nearest)))
    return rows, pairs, left_out


@pytest.fixture(scope="module")
def drawn():
    """(anchors, stories, positives, banned, groups) of 23 examples over 40 stories in 12 groups."""
    rng = np.random.default_rng(7)
    stories = rng.normal(size=(40, 5)) * rng.uniform(0.2, 3, size=(40, 1))
    positives = rng.integers(0, 40, 23)
    anchors = stories[positives] + rng.normal(size=(23, 5))
    banned = np.where(rng.random((23, 4)) < 0.4, -1, rng.integers(0, 40, (23, 4)))
    return anchors, stories, positives, banned, rng.integers(0, 12, 40)


@pytest.mark.parametrize("margin", [-0.4, -0.05, 0.0, 0.3, 2.0])
@pytest.mark.parametrize("count", [1, 4, 60])
@pytest.mark.parametrize("pairs_a_block", [1, 200, 2**24])
def test_the_nearest_wrong_stories_are_those_of_a_plain_loop(drawn, margin, count, pairs_a_block):
    found = nearest_wrong(*map(torch.from_numpy, drawn), count, margin, pairs_a_block)
    rows, pairs, left_out = plainly(*drawn, count, margin)
    assert found.rows.tolist() == rows
    assert (found.pairs, found.left_out) == (pairs, left_out)
    assert (left_out == 0) == (margin == 2.0)
    assert count < 60 or (found.rows[:, -1] == -1).all()


def circle(*degrees):
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_the_margin_leaves_out_what_is_nearer_than_the_positive():
    # Cosines with the anchor at 0: positive 0.5 (row 0), then 0.985, 0.574, 0.469, 0.423, -0.5.
    stories, groups = circle(60, 10, 55, 62, 65, 120), torch.tensor([0, 1, 2, 3, 4, 5])
    given = (circle(0), stories, torch.tensor([0]), torch.empty(1, 0, dtype=torch.int64), groups, 9)
    for margin, rows in ((-0.05, [4, 5]), (0.0, [3, 4, 5]), (0.1, [2, 3, 4, 5]), (1.0, [1, 2, 3, 4, 5]), (-1.5, [])):
        found = nearest_wrong(*given, margin)
        assert found.rows.tolist() == [rows + [-1] * (9 - len(rows))]
        assert (found.pairs, found.left_out) == (5, 5 - len(rows))


def test_stories_that_are_equally_near_come_by_row():
    stories = circle(0, *[90, -90] * 40, 90.5)
    groups = torch.arange(len(stories))
    groups[5] = 0
    found = nearest_wrong(circle(0), stories.round(decimals=9), torch.tensor([0]), torch.tensor([[2, -1]]), groups, 6)
    assert found.rows.tolist() == [[1, 3, 4, 6, 7, 8]]


def test_positives_of_positives_are_alike():
    names = ["ab", "cd", "be", "fg", "gf", "ec", "hi"]
    indexed = index_examples([Example(a, p, (Negative("z"),)) for a, p in names])
    groups = dict(zip(indexed.table.texts, alike_groups(indexed).tolist(), strict=True))
    together = {frozenset(t for t in groups if groups[t] == group) for group in groups.values()}
    assert together == {frozenset("abcde"), frozenset("fg"), frozenset("hi"), frozenset("z")}


def test_groups_are_those_of_scipy_on_random_links():
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(1)
    links = [(a, b) for a, b in rng.integers(0, 300, (200, 2)).tolist() if a != b]
    indexed = index_examples([Example(str(a), str(b)) for a, b in links])
    size = len(indexed.table)
    matrix = coo_matrix((np.ones(len(indexed)), (indexed.anchors, indexed.positives)), shape=(size, size))
    _, theirs = connected_components(matrix, directed=False)
    firsts = {int(group): row for row, group in reversed(list(enumerate(theirs)))}
    assert alike_groups(indexed).tolist() == [firsts[int(group)] for group in theirs]


def examples_of_letters():
    words = [
        f"The {word} went to the {place}." for word in ("ship", "king", "dog", "nurse") for place in ("sea", "war")
    ]
    return [
        Example(words[0], words[1], (Negative(words[2], "triple"),)),
        Example(
            words[2], words[3], (Negative(words[5], "mined"), Negative(words[0], "theme"), Negative("A lone dog."))
        ),
        Example(words[4], words[1]),
        Example(words[6], words[7]),
    ]


def by_loop(encoder, examples, count, margin):
    """What each example's mined negatives should be, with vectors by role."""
    texts = list(dict.fromkeys(text for example in examples for text in example.texts))
    alike = [{0, 2}, {1}, {0, 2}, {3}]  # examples whose anchors and positives are joined
    found = []
    for n, example in enumerate(examples):
        banned = {text for i in alike[n] for text in (examples[i].anchor, examples[i].positive)}
        banned |= {negative.text for negative in example.negatives if negative.kind != "mined"}
        pool = [text for text in texts if text not in banned]
        anchor = embed(encoder, [example.anchor], "anchor", progress=False)[0][0]
        cosines = embed(encoder, [*pool, example.positive], "candidate", progress=False)[0] @ anchor
        safe = [(-c, text) for c, text in zip(cosines[:-1], pool, strict=True) if c <= cosines[-1] + margin]
        found.append([text for _, text in sorted(safe)[:count]])
    return found


@pytest.mark.parametrize("prompts", [Prompts(), Prompts(anchor="query: find the like of this ", candidate="passage: ")])
def test_examples_get_their_nearest_wrong_stories(tiny, prompts):
    encoder = Encoder(EncoderConfig(tiny(), prompts=prompts)).eval()
    examples = examples_of_letters()
    mining = mine_negatives(encoder, examples, 3, margin=0.1, progress=False)
    expected = by_loop(encoder, examples, 3, 0.1)
    assert any(expected)
    for before, after, mined in zip(examples, mining.examples, expected, strict=True):
        kept = [negative for negative in before.negatives if negative.kind != "mined"]
        assert (after.anchor, after.positive) == (before.anchor, before.positive)
        assert list(after.negatives) == kept + [Negative(text, "mined") for text in mined]
    again = mine_negatives(encoder, mining.examples, 3, margin=0.1, progress=False)
    assert again.examples == mining.examples
    assert mining.truncated == 0


def test_a_story_that_was_only_mined_before_can_be_mined_again(tiny):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    examples = [Example("A ship sank.", "A boat went down.", (Negative("A dog barked.", "mined"),))]
    assert mine_negatives(encoder, examples, 2, margin=2, progress=False).examples == examples


def test_every_different_story_is_embedded_once(tiny, monkeypatch):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    seen = []
    forward = Encoder.forward
    monkeypatch.setattr(Encoder, "forward", lambda self, stories: seen.append(len(stories)) or forward(self, stories))
    examples = examples_of_letters()
    mine_negatives(encoder, examples * 3, 2, progress=False)
    assert sum(seen) == len({text for example in examples for text in example.texts})


def test_a_model_without_numbers_is_refused(tiny):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    with torch.no_grad():
        next(encoder.parameters()).fill_(torch.nan)
    with pytest.raises(ModelError, match="no finite numbers"):
        mine_negatives(encoder, examples_of_letters(), 2, progress=False)
