"""Hard examples and mined validation triples against plain loops."""

import logging

import numpy as np
import pytest
from fake_reader import FakeReader, attach
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples, example_of
from narrlit.datamodules import FileData, HardExampleSampling, StoryWorldData
from narrlit.datamodules.hard_examples import example_cosines, hard_examples


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=20), st.floats(0, 1))
def test_hard_examples_match_a_plain_loop(cosines, share):
    near, far = np.array(cosines).T
    wrong = [i for i in range(len(near)) if near[i] <= far[i]]
    wrong.sort(key=lambda i: (far[i] - near[i], i))

    rows, count = hard_examples(near, far, share)

    assert rows.tolist() == wrong[: int(share * len(near))]
    assert count == len(wrong)


def test_cosines_match_a_plain_loop():
    table = StoryTable.of(["a sane note", "it is", "a tent on ice", "so it goes", "ate", "nine eons"])
    rows = [TrainingExample(0, 1, (2, 3), (None, None)), TrainingExample(4, 0), TrainingExample(5, 2, (1,), (None,))]
    reader = FakeReader()

    def vector(index):
        found = reader.text_embeddings([table[index].text])[0].astype(float)
        return found / np.linalg.norm(found)

    near, far = example_cosines(TrainingExamples(table, rows), reader)

    for row, of_positive, of_negatives in zip(rows, near, far, strict=True):
        anchor = vector(row.anchor)
        negatives = [anchor @ vector(negative) for negative in row.negatives]
        assert of_positive == pytest.approx(anchor @ vector(row.positive), abs=1e-6)
        assert of_negatives == pytest.approx(max(negatives, default=-np.inf), abs=1e-6)


def test_hard_examples_are_weighted_and_validation_triples_mined():
    data = StoryWorldData(20, 10, hard_examples=HardExampleSampling(0.3, 4.0, mine_validation=True))
    reader = attach(data)
    data.setup("fit")
    own = data.examples
    data.prepare_inputs("fit")
    hard, wrong = hard_examples(*example_cosines(own, reader), 0.3)

    assert 0 < len(hard) <= 6

    triples = TrainingExamples(data.stories, [example_of(triple) for triple in data.triples["validation"]])
    mined, _ = hard_examples(*example_cosines(triples, reader), 0.3)
    assert list(data.examples) == [*own, *(triples[row] for row in mined)]
    assert data.prepared.weights.tolist() == [4.0 if i in hard else 1.0 for i in range(20)] + [4.0] * len(mined)

    noted = {"wrong": wrong, "allowed": 6, "hard": len(hard), "mined_validation": len(mined)}
    assert data.provenance["train"]["hard_examples"] == noted
    assert data.train_validation_overlap().shared_pairs == 2 * len(mined) > 0
    assert data.flags()["mined_validation"]


@pytest.mark.parametrize(("share", "binds"), [(0.1, True), (1.0, False)])
def test_a_message_says_if_all_incorrect_examples_are_hard(share, binds, caplog):
    data = StoryWorldData(20, 0, hard_examples=HardExampleSampling(share, 2.0))
    attach(data)
    data.setup("fit")
    with caplog.at_level(logging.INFO):
        data.prepare_inputs("fit")
    note = data.provenance["train"]["hard_examples"]

    assert note["allowed"] == 20 * share
    assert note["hard"] == min(note["wrong"], note["allowed"]) > 0
    assert binds == (note["wrong"] > note["allowed"]) == ("all of them, because share 1 allows 20" not in caplog.text)


def test_mining_needs_validation_triples():
    alone = StoryWorldData(6, 0, hard_examples=HardExampleSampling(mine_validation=True))
    attach(alone)
    alone.setup("fit")
    with refused("mining_needs_triples"):
        alone.prepare_inputs("fit")


def divided(make, share, mine=True, rows=20):
    """A fit's data of which a share of the validation triples is evaluated; its settings mine every wrong triple."""
    train = [{"anchor": f"anchor {i}", "positive": f"e{'a' * i}", "negative": f"o{'i' * i}"} for i in range(6)]
    triples = [
        {"anchor_text": f"a{i} e", "text_a": f"t{i} {'e' * i}", "text_b": f"n{i} a", "text_a_is_closer": True}
        for i in range(rows)
    ]
    sampling = HardExampleSampling(1.0, 2.0, mine_validation=mine)
    files = str(make("train.jsonl", train)), str(make("validation.jsonl", triples))
    data = FileData(*files, hard_examples=sampling, validation_share=share)
    attach(data)
    data.setup("fit")
    data.prepare_inputs("fit")
    return data


def test_a_share_of_the_validation_triples_is_evaluated_and_only_the_others_are_mined(make):
    data = divided(make, 0.6)
    whole = divided(make, 1.0)
    evaluated = set(data.triples["validation"].texts())
    every = whole.triples["validation"].texts()

    assert len(evaluated) == 12
    assert evaluated < set(every)
    assert [row for row in every if row in evaluated] == data.triples["validation"].texts()  # in the file's order

    mined = {row[0] for row in data.examples.texts()[6:]}
    allowed = {anchor for anchor, _, _ in every} - {anchor for anchor, _, _ in evaluated}
    wrong = {row[0] for row in whole.examples.texts()[6:]}  # with a share of 1 all of them train

    assert mined == wrong & allowed
    assert 0 < len(mined) < len(wrong)
    assert data.train_validation_overlap() == (0, 0, 0)
    assert whole.train_validation_overlap().shared_pairs == 2 * len(wrong)
    assert data.provenance["validation"]["divided"] == {"share": 0.6, "evaluated": 12, "set_apart": 8}
    assert data.flags()["mined_validation"]
    assert divided(make, 0.6).triples["validation"].texts() == data.triples["validation"].texts()


def test_a_share_works_without_mining_and_must_select_a_triple(make):
    assert len(divided(make, 0.5, mine=False).examples) == 6
    with refused("small_validation_share", share=0.1, triples=3):
        divided(make, 0.1, rows=3)
    for share in (0, -0.5, 1.5, float("nan")):
        with refused("validation_share"):
            FileData(validation_share=share)
