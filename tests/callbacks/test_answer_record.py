"""Which triples a look answered wrongly: gathered, sorted, kept over a resumption."""

import json
from types import SimpleNamespace

import pytest
import torch

from narrlit.callbacks import AnswerRecord, answer_record
from narrlit.callbacks.answer_record import triples_digest
from narrlit.data.batch import PackedStories, TripleBatch
from narrlit.data.records import Triple
from narrlit.metrics.triples import AccuracySummary
from narrlit.models.config import EncoderConfig
from narrlit.objectives import Ranking


@pytest.fixture
def trainer(tmp_path):
    data = SimpleNamespace(triples_as_read=lambda stage: [Triple("x", "y", "z", True)])
    return SimpleNamespace(
        log_dir=str(tmp_path), fast_dev_run=False, sanity_checking=False, is_global_zero=True, datamodule=data,
        current_epoch=0, global_step=4,
    )  # fmt: skip


def look(callback, trainer, *batches, undefined=0):
    module = SimpleNamespace(summaries={"validation": AccuracySummary(9, 3, undefined=undefined)})
    callback.on_validation_start(trainer, module)
    for batch in batches:
        callback.on_validation_batch_end(trainer, module, {"wrong": torch.tensor(batch)})
    callback.on_validation_end(trainer, module)


def kept(tmp_path):
    return json.loads((tmp_path / "validation_answers.json").read_text())


def test_every_process_answers_once_are_in_the_file(trainer, tmp_path, monkeypatch):
    others = torch.tensor([-1, 1, 7, -1, -1])  # the other process's share, whose last place only fills it up

    def gather(x):
        assert x.shape == others.shape  # all processes gather alike
        return torch.cat([x, others])

    monkeypatch.setattr(answer_record, "gather", gather)
    callback = AnswerRecord()
    callback.on_fit_start(trainer, None)
    look(callback, trainer, [8, -1, 4], [-1, 0])
    assert kept(tmp_path)["looks"] == [{"epoch": 0, "step": 4, "wrong": [0, 1, 4, 7, 8]}]


def test_only_the_first_process_writes_but_all_gather(trainer, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(answer_record, "gather", lambda x: calls.append(x) or x)
    trainer.is_global_zero = False
    callback = AnswerRecord()
    callback.on_fit_start(trainer, None)
    look(callback, trainer, [2])
    assert len(calls) == 1
    assert not list(tmp_path.iterdir())


def test_looks_follow_each_other_and_go_on_after_a_resumption(trainer, tmp_path):
    callback = AnswerRecord()
    callback.on_fit_start(trainer, None)
    look(callback, trainer, [2, 1])
    trainer.current_epoch, trainer.global_step = 1, 8
    look(callback, trainer, [-1, -1])
    resumed = AnswerRecord()
    resumed.load_state_dict(json.loads(json.dumps(callback.state_dict())))
    resumed.on_fit_start(trainer, None)
    trainer.current_epoch, trainer.global_step = 2, 12
    look(resumed, trainer, [5], undefined=2)
    found = kept(tmp_path)
    assert [(one["epoch"], one["step"], one["wrong"]) for one in found["looks"]] == [
        *((0, 4, [1, 2]), (1, 8, []), (2, 12, None))
    ]
    assert found["triples"] == triples_digest([Triple("x", "y", "z", True)])


def test_nothing_is_kept_of_what_is_no_look(trainer, tmp_path):
    callback = AnswerRecord()
    look(callback, trainer, [1])  # narrlit validate: no fit has begun
    callback.on_fit_start(trainer, None)
    trainer.sanity_checking = True
    look(callback, trainer, [1])
    trainer.sanity_checking, trainer.fast_dev_run = False, True
    callback.on_fit_start(trainer, None)
    look(callback, trainer, [1])
    assert not list(tmp_path.iterdir())
    assert callback.state_dict() == {"looks": []}


def test_the_digest_is_of_texts_labels_and_order():
    one, other = Triple("x", "y", "z", True), Triple("u", "v", "w", False)
    digests = [
        triples_digest(triples)
        for triples in ([one, other], [other, one], [one], [Triple("x", "y", "z", False), other], [])
    ]
    assert len(set(digests)) == 5
    assert digests[0] == triples_digest(iter([one, other]))


def test_an_objective_hands_on_the_places_of_its_wrong_answers():
    """Vectors on a half circle, so that scores are known; a tie is an answer for B, and a repeat does not count."""
    angles = torch.tensor([0.0, 0.1, 0.5, 3.0])
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    rows = [(0, 1, 2, 1), (0, 1, 2, 0), (0, 3, 1, 1), (0, 2, 2, 1), (0, 2, 2, 0), (0, 3, 1, 1)]
    anchors, a, b, labels = (torch.tensor(column) for column in zip(*rows, strict=True))
    places = torch.tensor([10, 11, 12, 13, 14, -1])
    stories = PackedStories(torch.zeros(4), (1,) * 4, torch.arange(4))
    objective = Ranking(EncoderConfig("unused"))
    objective.encoder = torch.nn.Identity()
    objective.forward = lambda stories: vectors
    outputs = objective.validation_step(TripleBatch(stories, anchors, a, b, labels, places), 0)
    assert outputs["wrong"].tolist() == [-1, 11, 12, 13, -1, -1]
    found = objective.validation_accuracy.summary()
    assert (found.n, found.n - found.correct) == (5, 3)
