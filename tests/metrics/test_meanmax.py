"""Mean-Max with structural alignment against plain loops, and over triples with a small model."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from narrlit.data.records import Triple
from narrlit.errors import OptionError
from narrlit.metrics.meanmax import (
    Stories,
    alignment,
    decide,
    max_similarity,
    meanmax_scores,
    pooled,
    window_vectors,
)
from narrlit.metrics.scorers import MeanMax
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.text.sentences import sentences


def made_up(counts, seed=0, padding=2):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(len(counts), max(counts) + padding, 5, dtype=torch.float64, generator=generator)
    vectors = F.normalize(vectors, dim=2)
    stories = Stories(vectors, torch.tensor(counts))
    return Stories(vectors * stories.mask[:, :, None], stories.counts)


def lists(stories):
    """Each story's sentence vectors, as numpy arrays without padding."""
    return [v[:n].numpy() for v, n in zip(stories.vectors, stories.counts.tolist(), strict=True)]


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


COUNTS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(1, 9), min_size=n, max_size=n) for _ in range(2)])
)


@pytest.mark.parametrize(("fast", "slow"), [(max_similarity, loop_max_similarity), (pooled, loop_pooled)])
@given(counts=COUNTS)
def test_readings_are_the_loops(fast, slow, counts):
    first, second = made_up(counts[0], 1), made_up(counts[1], 2)
    wanted = [slow(x, y) for x, y in zip(lists(first), lists(second), strict=True)]
    assert fast(first, second).tolist() == pytest.approx(wanted, abs=1e-12)


@given(counts=COUNTS, windows=st.integers(1, 5), tau=st.sampled_from([0.5, 1.0, 1.0168, 40.0]))
def test_alignment_is_the_loop(counts, windows, tau):
    first, second = made_up(counts[0], 1), made_up(counts[1], 2)
    wanted = [loop_alignment(x, y, windows, tau) for x, y in zip(lists(first), lists(second), strict=True)]
    assert alignment(first, second, windows, tau).tolist() == pytest.approx(wanted, abs=1e-12)


def axes(*stories):
    """Stories whose sentences lie along axes: each is given by the axes' numbers."""
    vectors = torch.zeros(len(stories), max(map(len, stories)), 4, dtype=torch.float64)
    for i, story in enumerate(stories):
        for j, axis in enumerate(story):
            vectors[i, j, axis] = 1
    return Stories(vectors, torch.tensor([len(story) for story in stories]))


def test_max_similarity_asks_the_anchors_sentences():
    short, long = axes([0]), axes([0, 1, 2, 3])
    assert max_similarity(short, long).item() == 1
    assert max_similarity(long, short).item() == 0.25


def test_padding_is_no_sentence():
    # All cosines are negative here: padding of zeros would be the best of them.
    first = Stories(-axes([0, 0]).vectors, torch.tensor([1]))
    assert max_similarity(first, Stories(axes([0, 1]).vectors, torch.tensor([1]))).item() == -1


def test_windows_are_in_the_storys_order_and_none_is_empty():
    assert window_vectors(axes([0, 0, 1, 1, 1]), 2)[0].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    found = window_vectors(axes([0, 1, 2], [3]), 2)
    assert found[0].tolist() == [[1, 0, 0, 0], [0, 0.5, 0.5, 0]]
    assert found[1].tolist() == [[0, 0, 0, 1]] * 2
    assert alignment(axes([0, 0, 1, 1]), axes([1, 1, 0, 0]), 2, 1.0).item() == 0  # only like places are compared


def test_the_last_window_weighs_tau():
    story = axes([0, 1], [0, 1])
    first_like, last_like = axes([0, 2], [2, 1]).vectors, torch.tensor([2, 2])
    assert alignment(story, Stories(first_like, last_like), 2, 3.0).tolist() == pytest.approx([0.25, 0.75])


def test_windows_decide_up_to_gamma_and_not_above():
    first = torch.tensor([[0.5, 0.25], [0.5, 0.25], [0.25, 0.5], [0.5, 0.125], [0.125, 0.5]])
    aligned = torch.tensor([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.1]])
    scores, near = decide(first, aligned, 0.25)
    assert near.tolist() == [True, True, True, False, False]
    assert torch.equal(scores, torch.cat([aligned[:3], first[3:]]))


TEXTS = [
    "A king rides out. He finds a well! Then he drinks. Night falls. He dies.",
    "One sentence alone.",
    "She sails west; nobody knows why. The storm takes her.",
    "A boy steals bread. He is caught. A judge lets him go.",
    "A king rides out. A judge lets him go.",
    "Nobody knows why, nobody asks, and the storm is over. He dies. Night falls.",
]
TRIPLES = [Triple(TEXTS[i], TEXTS[j], TEXTS[(j + i) % 6]) for i in range(6) for j in range(6)]


@pytest.mark.parametrize("prompts", [Prompts(), Prompts(anchor="query: find ", candidate="passage: ")])
@pytest.mark.parametrize("reading", ["max_similarity", "pooled"])
def test_triples_are_judged_as_a_loop_would(tiny, monkeypatch, reading, prompts):
    monkeypatch.setattr("narrlit.metrics.meanmax.SENTENCES_A_PASS", 20)  # several passes
    encoder = Encoder(EncoderConfig(tiny(), prompts=prompts)).eval()
    settings = MeanMax(reading, gamma=0.01, windows=3, tau=1.5)
    story = {
        role: {text: embed(encoder, sentences(text), role, progress=False)[0].astype(float) for text in TEXTS}
        for role in ("anchor", "candidate")
    }
    slow = {"max_similarity": loop_max_similarity, "pooled": loop_pooled}[reading]
    wanted, aligned = [], 0
    for triple in TRIPLES:
        anchor, others = story["anchor"][triple.anchor], [story["candidate"][x] for x in (triple.a, triple.b)]
        pair = [slow(anchor, other) for other in others]
        if abs(pair[0] - pair[1]) <= settings.gamma:
            pair = [loop_alignment(anchor, other, settings.windows, settings.tau) for other in others]
            aligned += 1
        wanted.append(pair)
    found = meanmax_scores(encoder, TRIPLES, settings, progress=False)
    assert np.array(found.scores) == pytest.approx(np.array(wanted), abs=1e-6)
    assert found.aligned == aligned
    assert 6 < aligned < 36
    assert found.truncated == 0


def test_equal_candidates_tie_and_exchanged_ones_exchange_their_scores(tiny):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    scores = meanmax_scores(encoder, TRIPLES, MeanMax(), progress=False).scores
    same = [pair for pair, triple in zip(scores, TRIPLES, strict=True) if triple.a == triple.b]
    assert len(same) == 6
    assert all(a == b for a, b in same)
    exchanged = [Triple(t.anchor, t.b, t.a) for t in TRIPLES]
    assert meanmax_scores(encoder, exchanged, MeanMax(), progress=False).scores == [(b, a) for a, b in scores]


def test_each_sentence_is_embedded_once(tiny, monkeypatch):
    asked = []

    def counted(encoder, texts, role, progress):
        asked.extend(texts)
        return embed(encoder, texts, role, progress)

    monkeypatch.setattr("narrlit.metrics.meanmax.embed", counted)
    meanmax_scores(Encoder(EncoderConfig(tiny())).eval(), TRIPLES, MeanMax(), progress=False)
    assert sorted(asked) == sorted(part for text in TEXTS for part in sentences(text))


@pytest.mark.parametrize("reading", ["max_similarity", "pooled"])
def test_the_lengths_of_sentence_vectors_say_nothing(tiny, monkeypatch, reading):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    settings = MeanMax(reading)
    wanted = np.array(meanmax_scores(encoder, TRIPLES, settings, progress=False).scores)

    def stretched(*arguments):
        vectors, cut = embed(*arguments)
        return vectors * (1 + np.arange(len(vectors), dtype=np.float32)[:, None]), cut

    monkeypatch.setattr("narrlit.metrics.meanmax.embed", stretched)
    found = meanmax_scores(encoder, TRIPLES, settings, progress=False).scores
    assert np.array(found) == pytest.approx(wanted, abs=1e-6)


def test_a_story_without_a_sentence_is_refused(tiny):
    with pytest.raises(ValueError, match="no sentence"):
        meanmax_scores(Encoder(EncoderConfig(tiny())).eval(), [Triple("a", "b", " \n")], MeanMax())


def test_settings_are_the_papers_unless_given_and_stay_in_their_ranges():
    assert MeanMax() == MeanMax("max_similarity", 0.0183, 2, 1.0168)
    for wrong in ({"gamma": -0.1}, {"gamma": math.nan}, {"gamma": 2.1}, {"windows": 0}, {"windows": 1001}):
        with pytest.raises(OptionError, match=f"--{next(iter(wrong))}"):
            MeanMax(**wrong)
    for tau in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(OptionError, match="--tau"):
            MeanMax(tau=tau)
