"""What was read becomes what trains, without a datamodule around it."""

import numpy as np
import pytest
from fake_reader import FakeReader, trainer
from refusals import refused

from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples, Triple, Triples, example_of
from narrlit.data.storyworld import StoryWorld
from narrlit.datamodules import Clusters, HardExampleSampling, PseudoLabels
from narrlit.datamodules.preparation import Preparation, TrainingSet, TripleSet, divide_triples

NO_SAMPLING = HardExampleSampling()
NO_LABELS = PseudoLabels()
# FakeReader counts letters: the closer an anchor's counts are to a text's, the higher is their cosine.
RIGHT, WRONG = ("aaa", "aa", "ooo"), ("eee", "nnn", "ee")


@pytest.fixture
def table():
    return StoryTable.of([*RIGHT, *WRONG, "tttt", "an apple. It fell. It broke. It was gone."])


def preparation(sampling=NO_SAMPLING, labels=NO_LABELS, synthetic_story=None):
    return Preparation(sampling, labels, 1.0, FakeReader(), trainer(), synthetic_story)


def training_set(table, unlabelled=()):
    rows = [TrainingExample(0, 1, (2,), ("triple",)), TrainingExample(3, 4, (5,), ("triple",))]
    examples = TrainingExamples(table, rows)
    return TrainingSet(examples, examples, np.array(unlabelled, dtype=np.int64))


def triple_set(table, *rows):
    triples = Triples(table, [Triple(*row, a_is_closer=True) for row in rows])
    return TripleSet(triples, triples)


def test_by_default_nothing_is_changed(table):
    training = training_set(table)
    prepared = preparation().prepare(training, triple_set(table))
    assert prepared.examples is training.examples
    assert prepared.mined == ()
    assert prepared.weights is None
    assert prepared.labels is None
    assert prepared.hard_examples is None
    assert prepared.pseudo_labels is None


def test_an_incorrectly_ranked_example_is_drawn_more_often(table):
    prepared = preparation(HardExampleSampling(0.5, 3.0)).prepare(training_set(table), triple_set(table))
    assert prepared.weights.tolist() == [1.0, 3.0]
    assert prepared.hard_examples.wrong == 1
    assert prepared.hard_examples.hard == 1
    assert prepared.hard_examples.allowed == 1
    assert prepared.hard_examples.mined_validation is None


def test_mined_validation_triples_are_added_after_the_examples(table):
    minable = triple_set(table, (0, 1, 2), (3, 4, 5), (0, 2, 1))
    prepared = preparation(HardExampleSampling(1.0, 2.0, mine_validation=True)).prepare(training_set(table), minable)
    assert sorted(prepared.mined) == [1, 2]

    added = [example_of(minable.triples[number]) for number in prepared.mined]
    assert list(prepared.examples) == [*training_set(table).examples, *added]
    assert prepared.weights.tolist() == [1.0, 2.0, 2.0, 2.0]
    assert prepared.hard_examples.mined_validation == 2
    with refused("mining_needs_triples"):
        preparation(HardExampleSampling(mine_validation=True)).prepare(training_set(table), triple_set(table))


def test_only_training_stories_have_labels(table):
    labels = PseudoLabels("positional", Clusters(2, 2, 2), transductive=True)
    prepared = preparation(labels=labels).prepare(training_set(table, unlabelled=[7]), triple_set(table))
    assert prepared.labels.shape == (8, 3)
    assert (prepared.labels[[*range(6), 7]] >= 0).all()
    assert (prepared.labels[6] == -1).all()
    assert prepared.pseudo_labels.transductive
    assert prepared.pseudo_labels.clusters["theme"].sizes[0] >= prepared.pseudo_labels.clusters["theme"].sizes[1]


def test_true_labels_need_a_plan_of_every_story(table):
    [triple] = StoryWorld(0).triples(1)
    made = {index: triple.anchor if index < 3 else triple.negative for index in range(6)}
    truth = PseudoLabels("truth")
    prepared = preparation(labels=truth, synthetic_story=made.get).prepare(training_set(table), triple_set(table))

    assert prepared.labels[0].tolist() == prepared.labels[2].tolist() != prepared.labels[3].tolist()

    made.pop(4)
    with refused("no_true_labels"):
        preparation(labels=truth, synthetic_story=made.get).prepare(training_set(table), triple_set(table))


def test_validation_is_divided_in_the_same_way_in_both_tables(table):
    other = StoryTable.of(text.upper() for text in table.texts)
    rows = [Triple(i, i + 1, i + 2, a_is_closer=True) for i in range(5)]
    validation = TripleSet(Triples(other, rows), Triples(table, rows))
    evaluated, minable = divide_triples(validation, 0.6)

    assert len(evaluated.triples) == 3
    assert len(minable.triples) == 2
    assert sorted([*evaluated.triples, *minable.triples], key=lambda triple: triple.anchor) == rows
    for part in (evaluated, minable):
        for read, texts in zip(part.read.texts(), part.triples.texts(), strict=True):
            assert read == tuple(text.upper() for text in texts)
    assert divide_triples(validation, 1.0) == (validation, validation)
