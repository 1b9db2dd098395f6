"""Triples that each validation answered wrongly: gathered, sorted, taken over by a resumed fit."""

import json
from types import SimpleNamespace

import pytest
import torch

from narrlit.callbacks import ValidationAnswers, triple_answers
from narrlit.callbacks.triple_answers import triples_digest
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.metrics.triples import AccuracySummary


def triples_of(*rows):
    stories = StoryTable()
    return Triples(stories, [Triple(*(stories.add(text) for text in texts), label) for *texts, label in rows])


ONE = ("x", "y", "z", True)


@pytest.fixture
def trainer(tmp_path):
    return SimpleNamespace(
        log_dir=str(tmp_path), fast_dev_run=False, sanity_checking=False, is_global_zero=True,
        datamodule=SimpleNamespace(triples={"validation": triples_of(ONE)}), current_epoch=0, global_step=4,
    )  # fmt: skip


def validate(callback, trainer, *batches, undefined=0):
    module = SimpleNamespace(summaries={"validation": AccuracySummary(9, 3, undefined=undefined)})
    callback.on_validation_start(trainer, module)
    for batch in batches:
        callback.on_validation_batch_end(trainer, module, {"wrong": torch.tensor(batch)})
    callback.on_validation_end(trainer, module)


def written(tmp_path):
    return json.loads((tmp_path / "validation_answers.json").read_text())


def test_every_process_answers_once_are_in_the_file(trainer, tmp_path, monkeypatch):
    others = torch.tensor([-1, 1, 7, -1, -1])  # the other process's share, whose last position only fills it up

    def gather(x):
        assert x.shape == others.shape  # all processes gather alike
        return torch.cat([x, others])

    monkeypatch.setattr(triple_answers, "gather", gather)
    callback = ValidationAnswers()
    callback.on_fit_start(trainer, None)
    validate(callback, trainer, [8, -1, 4], [-1, 0])
    assert written(tmp_path)["evaluations"] == [{"epoch": 0, "step": 4, "wrong": [0, 1, 4, 7, 8]}]


def test_only_the_first_process_writes_but_all_gather(trainer, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(triple_answers, "gather", lambda x: calls.append(x) or x)
    trainer.is_global_zero = False
    callback = ValidationAnswers()
    callback.on_fit_start(trainer, None)
    validate(callback, trainer, [2])
    assert len(calls) == 1
    assert not list(tmp_path.iterdir())


def test_evaluations_follow_each_other_and_continue_after_a_resumption(trainer, tmp_path):
    callback = ValidationAnswers()
    callback.on_fit_start(trainer, None)
    validate(callback, trainer, [2, 1])
    trainer.current_epoch, trainer.global_step = 1, 8
    validate(callback, trainer, [-1, -1])
    resumed = ValidationAnswers()
    resumed.load_state_dict(json.loads(json.dumps(callback.state_dict())))
    resumed.on_fit_start(trainer, None)
    trainer.current_epoch, trainer.global_step = 2, 12
    validate(resumed, trainer, [5], undefined=2)
    content = written(tmp_path)
    assert [(one["epoch"], one["step"], one["wrong"]) for one in content["evaluations"]] == [
        *((0, 4, [1, 2]), (1, 8, []), (2, 12, None))
    ]
    assert content["triples"] == triples_digest(triples_of(ONE))


def test_nothing_is_written_outside_a_fit(trainer, tmp_path):
    callback = ValidationAnswers()
    validate(callback, trainer, [1])  # narrlit validate: no fit has begun
    callback.on_fit_start(trainer, None)
    trainer.sanity_checking = True
    validate(callback, trainer, [1])
    trainer.sanity_checking, trainer.fast_dev_run = False, True
    callback.on_fit_start(trainer, None)
    validate(callback, trainer, [1])
    assert not list(tmp_path.iterdir())
    assert callback.state_dict() == {"evaluations": []}


def test_the_digest_is_of_source_texts_labels_and_order():
    other = ("u", "v", "w", False)
    cases = ([ONE, other], [other, ONE], [ONE], [("x", "y", "z", False), other], [])
    assert len({triples_digest(triples_of(*rows)) for rows in cases}) == 5
    stories = StoryTable()
    indices = [stories.add(f"Entity_{i}", original=text) for i, text in enumerate("xyz")]
    assert triples_digest(Triples(stories, [Triple(*indices, True)])) == triples_digest(triples_of(ONE))
