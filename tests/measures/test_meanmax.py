"""Mean-Max with structural alignment against plain loops, and over triples with a small model."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from triples import triples_of

from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.measures import MeanMaxSimilarity
from narrlit.measures.meanmax import MeanMax, alignment, max_similarity, pooled, sentence_scores
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.preprocessing.sentences import split_sentences as sentences


def made_up(count, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, 5))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosine(x, y):
    return float(x @ y / math.sqrt((x @ x) * (y @ y)))


def loop_max_similarity(anchor, other):
    return sum(max(cosine(x, y) for y in other) for x in anchor) / len(anchor)


def loop_pooled(anchor, other):
    x, y = (
        [sum(c) / len(c) for c in zip(*s, strict=True)] + [max(c) for c in zip(*s, strict=True)]
        for s in (anchor, other)
    )
    return cosine(np.array(x), np.array(y))


def loop_windows(story, n):
    """The windows of a story: floor(w S / n) to floor((w + 1) S / n), one sentence at least."""
    found = []
    for w in range(n):
        begin = w * len(story) // n
        end = max(begin + 1, (w + 1) * len(story) // n)
        found.append(sum(story[begin:end]) / (end - begin))
    return found


def loop_alignment(anchor, other, n, tau):
    weights = [1.0] * (n - 1) + [tau]
    pairs = zip(loop_windows(anchor, n), loop_windows(other, n), weights, strict=True)
    return sum(weight * cosine(x, y) for x, y, weight in pairs) / sum(weights)


COUNTS = st.integers(1, 9)


@pytest.mark.parametrize(("fast", "slow"), [(max_similarity, loop_max_similarity), (pooled, loop_pooled)])
@given(first=COUNTS, second=COUNTS)
def test_both_readings_match_plain_loops(fast, slow, first, second):
    anchor = made_up(first, 1)
    other = made_up(second, 2)
    assert fast(anchor, other) == pytest.approx(slow(anchor, other), abs=1e-12)


@given(first=COUNTS, second=COUNTS, windows=st.integers(1, 5), tau=st.sampled_from([0.5, 1.0, 1.0168, 40.0]))
def test_alignment_matches_a_plain_loop(first, second, windows, tau):
    anchor = made_up(first, 1)
    other = made_up(second, 2)
    wanted = loop_alignment(anchor, other, windows, tau)
    assert alignment(anchor, other, windows, tau) == pytest.approx(wanted, abs=1e-12)


TEXTS = [
    "A king rides out. He finds a well! Then he drinks. Night falls. He dies.",
    "One sentence alone.",
    "She sails west; nobody knows why. The storm takes her.",
    "A boy steals bread. He is caught. A judge lets him go.",
    "A king rides out. A judge lets him go.",
    "Nobody knows why, nobody asks, and the storm is over. He dies. Night falls.",
]
TRIPLES = [(TEXTS[i], TEXTS[j], TEXTS[(j + i) % 6]) for i in range(6) for j in range(6)]


@pytest.mark.parametrize("prompts", [Prompts(), Prompts(anchor="query: find ", candidate="passage: ")])
@pytest.mark.parametrize("reading", ["max_similarity", "pooled"])
def test_scores_of_triples_match_a_plain_loop(tiny, reading, prompts):
    encoder = Encoder(EncoderConfig(tiny(), prompts=prompts)).eval()
    settings = MeanMax(reading, gamma=0.01, windows=3, tau=1.5)
    story = {
        role: {text: embed_stories(encoder, sentences(text), role, progress=False)[0].astype(float) for text in TEXTS}
        for role in ("anchor", "candidate")
    }
    slow = {"max_similarity": loop_max_similarity, "pooled": loop_pooled}[reading]
    wanted, aligned = [], 0
    for first, *rest in TRIPLES:
        anchor = story["anchor"][first]
        others = [story["candidate"][x] for x in rest]
        pair = [slow(anchor, other) for other in others]
        if abs(pair[0] - pair[1]) <= settings.gamma:
            pair = [loop_alignment(anchor, other, settings.windows, settings.tau) for other in others]
            aligned += 1
        wanted.append(pair)

    found = MeanMaxSimilarity(StoryEncoder(encoder), settings)

    assert found.score(triples_of(TRIPLES)) == pytest.approx(np.array(wanted), abs=1e-6)
    assert found.aligned == aligned
    assert 6 < aligned < 36
    assert found.encoder.coverage.long == 0


def test_a_story_without_a_sentence_is_refused(tiny):
    with pytest.raises(ValueError, match="no sentence"):
        encoder = StoryEncoder(Encoder(EncoderConfig(tiny())).eval())
        MeanMaxSimilarity(encoder).score(triples_of([("a", "b", " \n")]))


@pytest.mark.parametrize("scale", [0.01, 7.0])
def test_only_the_directions_of_sentence_vectors_matter(scale):
    distinct = sorted({sentence for text in TEXTS for sentence in sentences(text)})
    vectors = dict(zip(distinct, made_up(len(distinct)), strict=True))

    def embed_sentences(given, _roles):
        return np.stack([vectors[sentence] for sentence in given])

    def embed_scaled(given, roles):
        return scale * embed_sentences(given, roles)

    expected, _ = sentence_scores(embed_sentences, TRIPLES, MeanMax())
    scores, _ = sentence_scores(embed_scaled, TRIPLES, MeanMax())

    assert scores == pytest.approx(expected, abs=1e-12)


def test_windows_decide_between_candidates_of_equal_score_if_gamma_is_0():
    def embed_sentences(given, _roles):
        return np.eye(3)[[0] * len(given)]  # products of these have no rounding errors

    assert sentence_scores(embed_sentences, [(TEXTS[0], TEXTS[2], TEXTS[3])], MeanMax(gamma=0))[1] == 1


@pytest.mark.parametrize("setting", [{"gamma": 0}, {"gamma": 2}, {"windows": 1}, {"windows": 1000}, {"tau": 1e-6}])
def test_settings_can_have_their_bounds(setting):
    assert MeanMax(**setting)


@pytest.mark.parametrize(
    "setting",
    [
        {"gamma": -0.1},
        {"gamma": 2.1},
        {"gamma": math.nan},
        {"windows": 0},
        {"windows": 1001},
        {"tau": 0},
        {"tau": math.inf},
    ],
)
def test_settings_beyond_their_bounds_are_refused_by_name(setting):
    ((name, value),) = setting.items()
    with refused("above_zero" if name == "tau" else "between", option=name, found=value):
        MeanMax(**setting)
