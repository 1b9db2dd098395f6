"""Validations and wrong answers of a run: gathered, sorted, kept by a resumed fit."""

import json
from math import isinf, nan
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from json_files import read_json
from lightning.pytorch.trainer.states import TrainerFn
from triples import triples_of

from narrlit.callbacks import BestCheckpoint, RunRecord, run_record
from narrlit.callbacks.triple_answers import triples_digest
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.data.splits import story_digests, story_numbers
from narrlit.statistics.estimates import Estimate, estimate, estimate_count
from narrlit.statistics.evaluations import evaluation_of
from narrlit.statistics.significance import SharedStories, mcnemar, mcnemar_by_story, smallest_difference

ONE = ("x", "y", "z", True)
EIGHT = evaluation_of(estimate_count(8, 9), 8)


@pytest.fixture
def trainer():
    return SimpleNamespace(
        fast_dev_run=False, sanity_checking=False, is_global_zero=True, state=SimpleNamespace(fn=TrainerFn.FITTING),
        datamodule=SimpleNamespace(triples={"validation": triples_of([ONE])}), current_epoch=0, global_step=4,
        checkpoint_callbacks=[], callbacks=[], num_sanity_val_batches=[3], num_val_batches=[3],
    )  # fmt: skip


def begun(folder):
    callback = RunRecord()
    callback._folder = folder
    callback.record = {"stage": "fit", "validations": []}
    return callback


def validate(callback, trainer, *batches, undefined=0):
    accuracy = Estimate(nan, nan, nan, 9) if undefined else estimate_count(3, 9)
    module = SimpleNamespace(evaluations={"validation": evaluation_of(accuracy, 3, undefined=undefined)})
    callback.on_validation_start(trainer, module)
    for batch in batches:
        callback.on_validation_batch_end(trainer, module, {"wrong": torch.tensor(batch)})
    callback.on_validation_end(trainer, module)


def written(tmp_path):
    return read_json(tmp_path / "validation_answers.json")


@pytest.mark.parametrize("first", [True, False])
def test_answers_of_every_process_are_in_the_file_of_the_first(trainer, tmp_path, monkeypatch, first):
    others = torch.tensor([-1, 1, 7, -1, -1])  # the other process's share, whose last position only fills it up
    calls = []

    def gather(x):
        calls.append(x.shape == others.shape)  # all processes gather alike
        return torch.cat([x, others])

    monkeypatch.setattr(run_record, "gather", gather)
    trainer.is_global_zero = first
    validate(begun(tmp_path), trainer, [8, -1, 4], [-1, 0])

    assert calls == [True]

    if first:
        assert written(tmp_path)["evaluations"] == [{"epoch": 0, "step": 4, "wrong": [0, 1, 4, 7, 8]}]
    else:
        assert not list(tmp_path.iterdir())


def test_evaluations_follow_each_other_and_continue_after_a_resumption(trainer, tmp_path):
    callback, checkpoint = begun(tmp_path), {}
    validate(callback, trainer, [2, 1])
    trainer.current_epoch, trainer.global_step = 1, 8
    validate(callback, trainer, [-1, -1])
    callback.on_save_checkpoint(trainer, None, checkpoint)
    resumed = begun(tmp_path)
    resumed.on_load_checkpoint(trainer, None, json.loads(json.dumps(checkpoint)))
    trainer.current_epoch, trainer.global_step = 2, 12
    validate(resumed, trainer, [5], undefined=2)
    content = written(tmp_path)

    assert [(one["epoch"], one["step"], one["wrong"]) for one in content["evaluations"]] == [
        *((0, 4, [1, 2]), (1, 8, []), (2, 12, None))
    ]
    assert content["triples"] == triples_digest(triples_of([ONE]))
    assert read_json(tmp_path / "run.json")["num_evaluations"] == 3


def test_nothing_is_written_of_a_trial(trainer, tmp_path):
    trainer.sanity_checking, trainer.num_sanity_val_batches = True, [2]
    validate(begun(tmp_path), trainer, [1])
    trainer.sanity_checking, trainer.fast_dev_run = False, True
    validate(begun(tmp_path), trainer, [1])
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_saved_within_an_epoch_is_recorded_before_the_next_step(trainer, tmp_path):
    best = BestCheckpoint(dirpath=tmp_path / "checkpoints", monitor="validation/accuracy", mode="max")
    trainer.checkpoint_callbacks = [best]
    callback = begun(tmp_path)
    validate(callback, trainer, [1])
    best.best_model_path = str(tmp_path / "checkpoints/best.ckpt")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/best.ckpt").touch()
    callback.on_train_batch_start(trainer, None, None, 3)
    assert read_json(tmp_path / "run.json")["checkpoints"] == {"best": "checkpoints/best.ckpt"}


def test_the_model_before_training_is_recorded_once_and_kept(trainer, tmp_path):
    callback, checkpoint = begun(tmp_path), {}
    trainer.sanity_checking = True
    callback.on_validation_start(trainer, None)
    outputs = {"wrong": torch.tensor([4, -1]), "wrong_frozen": torch.tensor([8, 1]), "embeddings": None}
    callback.on_validation_batch_end(trainer, None, outputs)
    callback.on_validation_end(trainer, SimpleNamespace(evaluations={"validation": EIGHT}))
    trainer.sanity_checking = False
    validate(callback, trainer, [0])
    record = read_json(tmp_path / "run.json")

    assert record["untrained"]["correct"] == 8
    assert record["frozen"]["correct"] == 7
    assert record["num_evaluations"] == 1
    assert record["frozen"]["interval"] == [*estimate_count(7, 9)[1:3]]
    assert [written(tmp_path)[name] for name in ("untrained", "frozen")] == [[4], [1, 8]]

    callback.on_save_checkpoint(trainer, None, checkpoint)
    (tmp_path / "on").mkdir()
    resumed = begun(tmp_path / "on")
    resumed.on_load_checkpoint(trainer, None, json.loads(json.dumps(checkpoint)))
    validate(resumed, trainer, [0, 1])

    assert read_json(tmp_path / "on/run.json")["untrained"] == record["untrained"]
    assert written(tmp_path / "on")["frozen"] == [1, 8]


def end(callback, trainer, tmp_path, caplog, **flags):
    """Lines that a fit prints at its end."""
    trainer.log_dir, trainer.loggers = tmp_path, []
    callback.record["flags"] = {"trained_on_validation": False, **flags}
    caplog.set_level("INFO", "lightning_utilities.core.rank_zero")
    caplog.clear()
    callback.on_fit_end(trainer, None)
    return caplog.messages


def test_a_fit_ends_with_a_comparison(trainer, tmp_path, caplog):
    callback = begun(tmp_path)
    callback._references = {"untrained": {"wrong": list(range(9))}, "frozen": {"wrong": [0, 5]}}
    callback.record["validations"] = [{"epoch": 1, "step": 8, **EIGHT.model_dump(exclude_unset=True)}]
    callback._answers = [{"epoch": 0, "step": 4, "wrong": [7]}, {"epoch": 1, "step": 8, "wrong": [5]}]
    *_, best, untrained, frozen = end(callback, trainer, tmp_path, caplog)

    assert best == "best validation accuracy 0.889 [0.565, 0.980], n = 9 in epoch 1, the best of 1 evaluation"
    assert untrained == "untrained 0.000 -> 0.889 (0 lost, 8 won, p = 0.008), best of 1 evaluation"
    assert frozen == (
        "frozen 0.778 -> 0.889 (0 lost, 1 won, p = 1.000), best of 1 evaluation: no difference is shown; about 0.667 "
        "would be needed with 9 triples"
    )

    record = read_json(tmp_path / "run.json")
    assert record["comparison"] == {
        "reference": "frozen",
        "difference": 1 / 9,
        "lost": 0,
        "won": 1,
        "p": 1.0,
        "test": "mcnemar",
    }
    assert record["comparison_untrained"]["won"] == 8

    callback._references["untrained"] = callback._references["frozen"]
    *_, second, last = end(callback, trainer, tmp_path, caplog)  # a head that changes no answer is not named
    assert second == best
    assert last == frozen

    shared = {"stories_shared_with_validation": 27, "pairs_shared_with_validation": 18}
    *_, last = end(callback, trainer, tmp_path, caplog, trained_on_validation=True, **shared)
    assert "this accuracy is not a valid result: the fit was trained on its validation triples (27 of their" in last


def test_without_a_known_accuracy_before_training_nothing_is_compared(trainer, tmp_path, caplog):
    callback = begun(tmp_path)
    callback.record["validations"] = [{"epoch": 0, "step": 4, **EIGHT.model_dump(exclude_unset=True)}]
    callback._answers = [{"epoch": 0, "step": 4, "wrong": [7]}]
    for references in ({}, {"untrained": {"wrong": None}}):
        callback._references = references
        assert end(callback, trainer, tmp_path, caplog)[-1].startswith("best validation accuracy")
        assert "comparison" not in read_json(tmp_path / "run.json")


def test_the_digest_is_of_source_texts_labels_and_order():
    other = ("u", "v", "w", False)
    cases = ([ONE, other], [other, ONE], [ONE], [("x", "y", "z", False), other], [])
    assert len({triples_digest(triples_of(rows)) for rows in cases}) == 5

    stories = StoryTable()
    indices = [stories.add(f"Entity_{i}", original=text) for i, text in enumerate("xyz")]
    assert triples_digest(Triples(stories, [Triple(*indices, True)])) == triples_digest(triples_of([ONE]))


SHARING = [(f"x{n // 3}", f"a{n}", f"b{n}", True) for n in range(9)]
"""Nine triples of three anchors."""


def test_a_fit_on_triples_that_share_stories_is_evaluated_by_story(trainer, tmp_path, caplog):
    triples = triples_of(SHARING)
    trainer.datamodule.triples["validation"] = triples
    shared = SharedStories(story_numbers(triples))
    callback = begun(tmp_path)
    module = SimpleNamespace(evaluations={"validation": evaluation_of(estimate_count(8, 9), 8, ties=1)})
    callback._references = {"untrained": {"wrong": [0, 1, 2, 3, 4, 5]}}
    callback.on_validation_start(trainer, module)
    callback.on_validation_batch_end(trainer, module, {"wrong": torch.tensor([8, -1])})
    callback.on_validation_end(trainer, module)
    *_, best, untrained = end(callback, trainer, tmp_path, caplog)
    record = read_json(tmp_path / "run.json")
    correct = np.arange(9) != 8

    accuracy = estimate(correct, shared)
    assert accuracy.method == "by_story"
    assert record["best"] == {
        "epoch": 0,
        "step": 4,
        "n": 9,
        "correct": 8,
        "accuracy": 8 / 9,
        "interval": [accuracy.low, accuracy.high],
        "ties": 1,
        "interval_method": "by_story",
    }
    assert f"{accuracy}, 1 tie in epoch 0" in best

    p = mcnemar_by_story(correct, np.arange(9) > 5, shared)
    assert p > mcnemar(correct, np.arange(9) > 5)
    assert record["comparison"]["p"] == p
    assert record["comparison"]["test"] == "mcnemar_by_story"
    assert f"(1 lost, 6 won, p = {p:.3f})" in untrained

    effect = record["comparison"]["design_effect"]
    needed = smallest_difference(9, 7 / 9, 0.05, effect, shared.degrees_of_freedom)
    assert ("can't show any" if isinf(needed) else f"about {needed:.3f} would be needed") in untrained
    assert written(tmp_path)["stories"] == story_digests(triples)
    assert len(np.unique(written(tmp_path)["stories"])) == 21


def test_only_some_of_the_triples_are_taken_as_independent(trainer, tmp_path):
    trainer.datamodule.triples["validation"] = triples_of([*SHARING, ONE])
    validate(begun(tmp_path), trainer, [8])
    (evaluation,) = read_json(tmp_path / "run.json")["validations"]
    assert evaluation["interval"] == [*estimate_count(3, 9)[1:3]]
    assert evaluation["interval_method"] == "wilson"


def test_the_interval_that_is_logged_is_by_story(trainer):
    triples = triples_of(SHARING)
    trainer.datamodule.triples["test"] = triples
    logged = {}
    module = SimpleNamespace(
        test_accuracy=SimpleNamespace(evaluation=lambda: EIGHT),
        log_dict=lambda values, **_: logged.update(values),
    )
    callback = RunRecord()
    callback.on_test_batch_end(trainer, module, {"wrong": torch.tensor([8, -1])})
    callback.on_test_epoch_end(trainer, module)
    accuracy = estimate(np.arange(9) != 8, story_numbers(triples))
    assert logged == {"test/accuracy_low": accuracy.low, "test/accuracy_high": accuracy.high}
