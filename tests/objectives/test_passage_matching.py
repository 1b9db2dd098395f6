"""Passage matching: the loss against plain loops, samples of passages, whole texts, gradients, a fit."""

import numpy as np
import pytest
import torch
from refusals import refused
from tiny_models import world_texts

from narrlit.data.batch import PackedStories
from narrlit.data.passage_inputs import TokenizedPassages, sample_positions
from narrlit.data.sampling import ExampleCollator
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.measures.corrections import centered
from narrlit.measures.matching import Matching, match_score
from narrlit.models.config import EncoderConfig
from narrlit.objectives import PassageMatching
from narrlit.preprocessing.passages import split_passages

WORDS = 12


def story(*numbers):
    """A story of several texts of StoryWorld."""
    return " ".join(world_texts()[number] for number in numbers)


@pytest.fixture
def examples():
    """Three pairs of versions, the last with a negative, and of the first group a fourth pair."""
    table = StoryTable()
    index = [table.add(story(number, number + 1)) for number in range(0, 16, 2)] + [table.add("A short tale.")]
    rows = [
        TrainingExample(index[0], index[1], group="a"),
        TrainingExample(index[2], index[8], group="b"),
        TrainingExample(index[4], index[5], (index[6],), ("outcome",), group="c"),
        TrainingExample(index[7], index[1], group="a"),
    ]
    return TrainingExamples(table, rows)


@pytest.fixture
def build(tiny):
    def make(**options):
        objective = PassageMatching(EncoderConfig(tiny("bert"), dropout=0.0), passage_words=WORDS, **options)
        objective.configure_model()
        return objective

    return make


def by_hand(objective, texts, spread=0.4, scale=20.0):
    """Mean loss of three pairs of versions and a negative, from the measure's own score of all their passages."""
    with torch.no_grad():
        passages = []
        for text in texts:
            ids, _ = objective.encoder.tokenize(split_passages(text, WORDS))
            tokens = torch.tensor([token for passage in ids for token in passage])
            packed = PackedStories(tokens, tuple(map(len, ids)), torch.arange(len(ids)))
            passages.append(objective.encoder(packed).double().numpy())
    mean = np.concatenate(passages[:6]).mean(0)
    passages = [centered(vectors, mean) for vectors in passages]
    scores = np.array([[match_score(x, y, Matching(spread, 0)) for y in passages] for x in passages])
    losses = []
    for anchors, positives in (([0, 2, 4], [1, 3, 5]), ([1, 3, 5], [0, 2, 4])):
        for anchor, positive in zip(anchors, positives, strict=True):
            logits = scale * scores[anchor, [*positives, 6]]
            losses.append(np.log(np.exp(logits).sum()) - scale * scores[anchor, positive])
    return np.mean(losses)


def test_the_loss_is_info_nce_over_the_measure_s_scores_in_both_directions(build, examples):
    objective = build(passages=100, spread=0.3, scale=7.0)
    batch = objective.collator(examples, None)([0, 1, 2])
    loss = objective.loss(objective.training_embeddings(batch.stories), batch)["loss"]
    texts = [text for row in examples.texts()[:3] for text in row]

    assert loss.item() == pytest.approx(by_hand(objective, texts, 0.3, 7.0), abs=1e-5)


def test_a_version_in_another_pair_is_no_negative(build, examples):
    objective = build(passages=100)
    collate = objective.collator(examples, None)
    batch = collate([0, 3])  # both of group a: no candidate is left
    loss = objective.loss(objective.training_embeddings(batch.stories), batch)["loss"]
    assert loss.item() == 0


def test_with_whole_texts_the_loss_has_two_parts(build, examples):
    objective = build(passages=100, whole=0.5)
    batch = objective.collator(examples, None)([0, 1, 2])
    terms = objective.loss(objective.training_embeddings(batch.stories), batch)
    alone = build(passages=100)
    batch_alone = alone.collator(examples, None)([0, 1, 2])
    passages = alone.loss(alone.training_embeddings(batch_alone.stories), batch_alone)["loss"]
    ids, _ = objective.encoder.tokenize(examples.stories.texts)
    tokens = torch.tensor([token for text in ids for token in text])
    vectors = objective.encoder(PackedStories(tokens, tuple(map(len, ids)), torch.arange(len(ids))))
    anchors, positives = vectors[examples.anchors[:3]], vectors[examples.positives[:3]]
    negative = vectors[examples.negatives[2, :1]]
    target = torch.arange(3)
    forth = torch.nn.functional.cross_entropy(20 * anchors @ torch.cat([positives, negative]).T, target)
    back = torch.nn.functional.cross_entropy(20 * positives @ torch.cat([anchors, negative]).T, target)

    torch.testing.assert_close(terms["passages"], passages, atol=1e-5, rtol=0)
    torch.testing.assert_close(terms["whole"], (forth + back).detach() / 2, atol=1e-4, rtol=0)
    torch.testing.assert_close(terms["loss"], terms["passages"] + 0.5 * terms["whole"])


def test_every_layer_gets_a_gradient_also_with_gradient_caching(tiny, examples):
    gradients = []
    for caching in (False, True):
        config = EncoderConfig(tiny("bert"), dropout=0.0, gradient_caching=caching, token_budget=64)
        objective = PassageMatching(config, passage_words=WORDS, passages=4)
        objective.configure_model()
        batch = objective.collator(examples, None)([0, 1, 2])
        objective.loss(objective.training_embeddings(batch.stories), batch)["loss"].backward()
        gradients.append({name: x.grad for name, x in objective.trained_parameters().items() if x.grad is not None})

    assert len(gradients[0]) > 10
    assert sum(bool(gradient.any()) for gradient in gradients[0].values()) > 10
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-5, rtol=1e-3)


def tokenize(texts, role):
    """The number of each text and of its role, as its only token."""
    return [[1000 * (role == "candidate") + int(text.split()[1])] for text in texts], 0


def test_samples_are_in_order_one_of_each_part_and_of_the_role():
    table = StoryTable()
    table.add(" ".join(f"Sentence {number} of the first." for number in range(40)))
    table.add(" ".join(f"Sentence {number} of the second." for number in range(100, 103)))
    inputs = TokenizedPassages(list(table), [0, 1], tokenize, symmetric=False, count=4, words=5)
    drawn = set()
    for seed in range(50):
        inputs._seed = seed
        stories, (anchors, positives) = inputs.pack([(np.array([0]), "anchor"), (np.array([1]), "candidate")])
        first, second = stories.parts[torch.stack([anchors[0], positives[0]])]
        tokens = stories.pieces.token_ids
        drawn.update(tokens[first].tolist())

        assert [number // 10 for number in tokens[first].tolist()] == [0, 1, 2, 3]
        assert tokens[second[:3]].tolist() == [1100, 1101, 1102]
        assert second[3] == -1
    assert len(drawn) == 40


def test_a_sample_depends_on_seed_and_batch_alone():
    table = StoryTable()
    table.add(" ".join(f"Sentence {number} of the first." for number in range(40)))
    same = [TokenizedPassages(list(table), [0], tokenize, True, 4, 5, seed=3) for _ in range(2)]
    samples = [inputs.select(np.array([0])).pieces.token_ids.tolist() for inputs in same]

    assert samples[0] == samples[1]


@pytest.mark.parametrize("length", [1, 7, 8, 9, 23, 1000])
def test_sampled_positions_ascend_within_the_story(length):
    for seed in range(20):
        chosen = sample_positions(length, 8, np.random.default_rng(seed))
        assert len(chosen) == min(length, 8)
        assert chosen == sorted(set(chosen))
        assert 0 <= chosen[0] <= chosen[-1] < length


def test_selecting_stories_of_a_batch_keeps_their_passages(build, examples):
    objective = build(passages=3)
    batch = ExampleCollator(examples, objective.collator(examples, None).inputs)([0, 1, 2])
    chosen = batch.stories.select([4, 1])
    tokens = [torch.split(packed.pieces.token_ids, list(packed.pieces.lengths)) for packed in (batch.stories, chosen)]

    assert chosen.indices.tolist() == batch.stories.indices[[4, 1]].tolist()
    for row, original in enumerate([4, 1]):
        before = [tokens[0][part].tolist() for part in batch.stories.parts[original] if part >= 0]
        after = [tokens[1][part].tolist() for part in chosen.parts[row] if part >= 0]
        assert before == after


@pytest.mark.parametrize(("option", "value"), [("scale", 0.0), ("spread", 0.0), ("sharpness", 0.0), ("whole", -1.0)])
def test_settings_out_of_range_are_refused(option, value):
    with refused("config_value", option=option, found=value):
        PassageMatching(**{option: value})


@pytest.mark.parametrize("option", ["passages", "passage_words"])
def test_passages_and_their_words_are_at_least_1(option):
    with refused("passages_and_words", **{option: 0}):
        PassageMatching(**{option: 0})
