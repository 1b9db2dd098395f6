"""Figures of a judge, against counts by hand and plain loops."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from narrlit.experiments.judge_report import JudgeFigures, Share, accuracy_of, by_margin, overrides
from narrlit.llm.judge import Answer, Judgement
from narrlit.metrics.significance import AccuracySummary, SharedStories, mcnemar_by_story

CHOICE = st.sampled_from([True, False, None])
ROWS = st.lists(st.tuples(CHOICE, st.booleans(), CHOICE, st.sampled_from([0.0, 0.1, 0.2, 0.5])), max_size=30)
T, F, N = True, False, None


def columns(rows):
    if not rows:
        return [], [], [], []
    return tuple(list(column) for column in zip(*rows, strict=True))


def test_accuracy_counts_only_triples_with_a_choice_and_a_label():
    found = accuracy_of([T, F, T, N, T, F], [T, F, F, T, N, F])
    assert found.n == 4
    assert found.correct == 3


def test_overrides_by_hand():
    chosen = [T, F, T, T, N, F]
    nearer = [F, T, T, F, T, T]
    labels = [T, T, T, N, T, F]
    found = overrides(chosen, nearer, labels)

    # Triples 1, 2, 4 and 6 are overridden; 4 has no label; the model is right on 1 and 6, wrong on 2.
    assert found.share == Share(4, 5)
    assert found.right == AccuracySummary(3, 2)


def test_without_a_choice_there_is_no_share_of_overrides():
    assert overrides([N], [T], [T]).as_dict()["share"] is None


def test_margins_are_ordered_and_add_up():
    margins = [0.1, 0.5, 0.3, 0.2, 0.4, 0.9]
    labels = [T, T, T, T, T, N]
    systems = {"near": [F, T, T, F, T, T], "model": [T, N, F, T, T, T]}
    found = by_margin(margins, systems, labels, parts=3)

    # By margin: triples 2 | 5, 3 | 4, 1; triple 6 has no label.
    assert [(part.low, part.high) for part in found] == [(0.5, 0.5), (0.3, 0.4), (0.1, 0.2)]

    near = [part.accuracies["near"] for part in found]
    assert [accuracy.correct for accuracy in near] == [1, 2, 0]
    assert [accuracy.n for accuracy in near] == [1, 2, 2]

    model = [part.accuracies["model"] for part in found]
    assert [accuracy.correct for accuracy in model] == [0, 1, 2]
    assert [accuracy.n for accuracy in model] == [0, 2, 2]


@given(ROWS, st.integers(1, 7))
def test_each_labeled_triple_is_in_one_part(rows, parts):
    model, nearer, labels, margins = columns(rows)
    found = by_margin(margins, {"model": model, "near": nearer}, labels, parts)
    labeled = sum(label is not None for label in labels)
    sizes = [part.accuracies["near"].n for part in found]

    assert len(found) == min(parts, labeled)
    assert sum(sizes) == labeled
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert all(part.low >= after.high for part, after in pairwise(found))

    model_correct = sum(part.accuracies["model"].correct for part in found)
    assert model_correct == accuracy_of(model, labels).correct


def test_accuracies_and_their_difference_are_by_story():
    count = 12
    stories = np.array([[n // 3, 100 + n, 200 + n] for n in range(count)])
    labels = [T if n != 4 else N for n in range(count)]
    known = [n for n in range(count) if n != 4]
    judgements = [Judgement((1.0, 0.5) if n % 2 else (0.5, 1.0), (Answer(n < 9),)) for n in range(count)]
    figures = JudgeFigures.of(judgements, labels, stories)
    correct = np.array([judgements[n].a_is_closer for n in known])
    near = np.array([judgements[n].by_similarity for n in known])
    shared = SharedStories(stories[known])

    assert figures.accuracies["hybrid"] == AccuracySummary.of(correct, shared)
    assert figures.accuracies["hybrid"].interval_method == "by_story"
    assert figures.difference.p == mcnemar_by_story(correct, near, shared)
    assert figures.by_label[0].accuracies["hybrid"].interval == figures.accuracies["hybrid"].interval
    assert JudgeFigures.of(judgements, labels).accuracies["hybrid"].interval_method == "wilson"
