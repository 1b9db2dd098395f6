"""Mining, against a plain loop that says who may be a negative and in what order."""

from collections import defaultdict

import numpy as np
import pytest
import torch
from refusals import refused

from narrlit.data.readers import read_examples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.encoding.mining import mine, mine_negatives, nearest_negatives, similar_groups
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder


def unit(vector):
    return vector / np.linalg.norm(vector)


def plainly(anchors, stories, positives, existing, groups, count, margin):
    """Rows, pairs and how many the margin excluded, by definition and one pair at a time."""
    rows, pairs, left_out = [], 0, 0
    for n, anchor in enumerate(anchors):
        near = float(unit(anchor) @ unit(stories[positives[n]]))
        found = []
        for c, story in enumerate(stories):
            if groups[c] == groups[positives[n]] or c in existing[n]:
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
    """(anchors, stories, positives, existing, groups) of 23 examples over 40 stories in 12 groups."""
    rng = np.random.default_rng(7)
    stories = rng.normal(size=(40, 5)) * rng.uniform(0.2, 3, size=(40, 1))
    positives = rng.integers(0, 40, 23)
    anchors = stories[positives] + rng.normal(size=(23, 5))
    existing = np.where(rng.random((23, 4)) < 0.4, -1, rng.integers(0, 40, (23, 4)))
    return anchors, stories, positives, existing, rng.integers(0, 12, 40)


@pytest.mark.parametrize("margin", [-0.4, -0.05, 0.0, 0.3, 2.0])
@pytest.mark.parametrize("count", [1, 4, 60])
@pytest.mark.parametrize("pairs_per_block", [1, 200, 2**24])
def test_nearest_negatives_match_a_plain_loop(drawn, margin, count, pairs_per_block):
    found = nearest_negatives(*map(torch.from_numpy, drawn), count, margin, pairs_per_block)
    rows, pairs, left_out = plainly(*drawn, count, margin)
    assert found.rows.tolist() == rows
    assert found.pairs == pairs
    assert found.excluded == left_out
    assert (left_out == 0) == (margin == 2.0)
    assert count < 60 or (found.rows[:, -1] == -1).all()


def circle(*degrees):
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_equally_near_stories_are_ordered_by_row():
    stories = circle(0, *[90, -90] * 40, 90.5)
    groups = torch.arange(len(stories))
    groups[5] = 0
    found = nearest_negatives(
        circle(0), stories.round(decimals=9), torch.tensor([0]), torch.tensor([[2, -1]]), groups, 6
    )

    assert found.rows.tolist() == [[1, 3, 4, 6, 7, 8]]


def test_positives_of_positives_are_similar():
    letters = "abcdefghiz"
    anchors = np.array([letters.index(letter) for letter in "acbfgeh"])
    positives = np.array([letters.index(letter) for letter in "bdegfci"])

    groups = similar_groups(anchors, positives, len(letters))

    members = defaultdict(str)
    for letter, group in zip(letters, groups.tolist(), strict=True):
        members[group] += letter
    assert sorted(members.values()) == ["abcde", "fg", "hi", "z"]


def examples_of(rows):
    """Examples of (anchor, positive, {negative: kind}) texts."""
    table = StoryTable()
    examples = []
    for anchor, positive, negatives in rows:
        indices = [table.add(text) for text in (anchor, positive, *negatives)]
        examples.append(TrainingExample(indices[0], indices[1], tuple(indices[2:]), tuple(negatives.values())))
    return TrainingExamples(table, examples)


def rows_of_words():
    words = [
        f"The {word} went to the {place}." for word in ("ship", "king", "dog", "nurse") for place in ("sea", "war")
    ]
    return [
        (words[0], words[1], {words[2]: "triple"}),
        (words[2], words[3], {words[5]: "mined", words[0]: "theme", "A lone dog.": None}),
        (words[4], words[1], {}),
        (words[6], words[7], {}),
    ]


def by_loop(encoder, rows, count, margin):
    """Texts of each example's mined negatives, with embeddings by role."""
    texts = {}  # in order of appearance, each once
    for anchor, positive, negatives in rows:
        texts |= dict.fromkeys([anchor, positive, *negatives])
    similar = [(0, 2), (1,), (0, 2), (3,)]  # examples whose anchors and positives are joined
    mined = []
    for (anchor, positive, negatives), joined in zip(rows, similar, strict=True):
        existing = [text for text, kind in negatives.items() if kind != "mined"]
        for row in joined:
            existing += rows[row][:2]
        pool = [text for text in texts if text not in existing]
        vector = embed_stories(encoder, [anchor], "anchor", progress=False).embeddings[0]
        cosines = embed_stories(encoder, [*pool, positive], "candidate", progress=False).embeddings @ vector
        limit = cosines[-1] + margin
        safe = [(-cosine, text) for cosine, text in zip(cosines, pool, strict=False) if cosine <= limit]
        mined.append([text for _, text in sorted(safe)[:count]])
    return mined


@pytest.mark.parametrize("prompts", [Prompts(), Prompts(anchor="query: find the like of this ", candidate="passage: ")])
def test_examples_get_their_nearest_negatives(tiny, prompts):
    encoder = Encoder(EncoderConfig(tiny(), prompts=prompts)).eval()
    rows = rows_of_words()
    examples = examples_of(rows_of_words())
    examples.stories.add("The king went to the sea once.")  # of no example: never mined
    mining = mine_negatives(StoryEncoder(encoder), examples, 3, margin=0.1, progress=False)
    expected = by_loop(encoder, rows, 3, 0.1)

    assert any(expected)

    for row, after, mined in zip(rows, mining.examples, expected, strict=True):
        kept = {text: kind for text, kind in row[2].items() if kind != "mined"}
        texts = [examples.stories[index].text for index in after.indices]
        assert texts == [row[0], row[1], *kept, *mined]
        assert list(after.kinds) == [*kept.values(), *["mined"] * len(mined)]

    again = mine_negatives(StoryEncoder(encoder), mining.examples, 3, margin=0.1, progress=False)

    assert again.examples.rows == mining.examples.rows


def test_a_story_that_was_only_mined_before_can_be_mined_again(tiny):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    examples = examples_of([("A ship sank.", "A boat went down.", {"A dog barked.": "mined"})])
    assert mine_negatives(StoryEncoder(encoder), examples, 2, margin=2, progress=False).examples.rows == examples.rows


def test_mining_a_file_and_its_examples_gives_the_same(tiny, tmp_path):
    encoder = StoryEncoder(Encoder(EncoderConfig(tiny())).eval())
    file = tmp_path / "rows.jsonl"
    write_examples(file, examples_of(rows_of_words()))
    mining = mine(file, encoder, per_example=2, margin=2)
    expected = mine_negatives(encoder, read_examples(file), 2, margin=2, progress=False)

    assert [row.indices for row in mining.examples] == [row.indices for row in expected.examples]

    table = mining.table()
    counts = (mining.nearest.rows >= 0).sum(1).tolist()
    assert table["example"].value_counts(sort=False).tolist() == [count for count in counts if count]
    assert str(mining).startswith(f"{sum(counts)} negatives mined for 4 examples; ")

    mining.write(tmp_path / "mined.jsonl")
    assert list(read_examples(tmp_path / "mined.jsonl").texts()) == list(mining.examples.texts())


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("per_example", 0, "at_least"),
        ("margin", 2.5, "margin_of_cosines"),
        ("margin", float("nan"), "margin_of_cosines"),
    ],
)
def test_numbers_out_of_range_are_refused(tiny, name, value, code):
    encoder = StoryEncoder(Encoder(EncoderConfig(tiny())).eval())
    with refused(code):
        mine(examples_of(rows_of_words()), encoder, **{name: value})
