"""A fit's directory: its record, its answers, and what a plan takes from them."""

import json

from json_files import read_json
from refusals import refused

from narrlit.errors import ModelError
from narrlit.experiments.run import Run, estimate_of
from narrlit.models.run_file import NewerRecordError, RunFile
from narrlit.results import Estimate


def record(run, **changes):
    run.mkdir()
    evaluation = {"epoch": 0, "n": 4, "correct": 3, "accuracy": 0.75, "interval": [0.3, 0.95]}
    content = {"status": "finished", "validations": [evaluation], "best": evaluation, "flags": {}, **changes}
    (run / "run.json").write_text(json.dumps(content))
    answers = {"triples": "", "evaluations": [{"epoch": 0, "step": 1, "wrong": [2]}]}
    (run / "validation_answers.json").write_text(json.dumps(answers))
    return Run.at(run) if content.get("version", 0) < 2 else run


def test_a_record_without_evaluations_or_answers_is_refused(tmp_path):
    with refused("fit_without_evaluation", folder="a"):
        record(tmp_path / "a", validations=[]).answers()

    result = record(tmp_path / "b")
    (tmp_path / "b/validation_answers.json").unlink()
    with refused("broken_answers_of_fit", folder="b", reason="no such file or directory"):
        result.answers()

    (tmp_path / "b/run.json").write_text("{")
    assert not Run.at(tmp_path / "b").finished


def right_of(answers, metric):
    """Right answers of an evaluation."""
    return answers.loc[answers["metric"] == metric, "right"].tolist()


def test_the_answers_and_the_best_accuracy_of_a_fit_are_read(tmp_path):
    run = record(tmp_path / "a")
    answers = run.answers()
    assert right_of(answers, "last_epoch") == right_of(answers, "best_epoch") == [1, 1, 0, 1]
    assert set(answers["metric"]) == {"last_epoch", "best_epoch"}
    assert set(answers["epoch"]) == {0}
    assert answers["stories"].isna().all()
    assert run.table()[["epoch", "correct", "low", "high"]].to_numpy().tolist() == [[0, 3, 0.3, 0.95]]
    assert run.best == Estimate(0.75, 0.3, 0.95, 4, "wilson")
    assert str(run).endswith("a: finished, best validation accuracy 0.750 [0.300, 0.950], n = 4")


def test_stories_and_the_method_of_the_interval_are_read(tmp_path):
    by_story = {
        "epoch": 0,
        "n": 4,
        "correct": 3,
        "accuracy": 0.75,
        "interval": [0.1, 0.9],
        "interval_method": "by_story",
    }
    run = record(tmp_path / "a", best=by_story)
    path = run.folder / "validation_answers.json"
    path.write_text(json.dumps({**read_json(path), "stories": [[1, 2, 3]] * 4}))
    assert run.best == Estimate(0.75, 0.1, 0.9, 4, "by_story")
    assert run.answers()["stories"].tolist() == [[1, 2, 3]] * 8

    path.write_text(json.dumps({**read_json(path), "stories": [[1, 2, 3]] * 5}))
    assert run.answers()["stories"].isna().all()


def test_scores_that_are_nan_leave_no_accuracy(tmp_path):
    nan = {"epoch": 0, "n": 4, "correct": 0, "accuracy": None, "interval": None, "undefined": 2}
    run = record(tmp_path / "a", validations=[nan], best=None)
    path = run.folder / "validation_answers.json"
    path.write_text(json.dumps({"triples": "", "evaluations": [{"epoch": 0, "step": 1, "wrong": None}]}))
    assert run.answers()["right"].isna().all()
    assert len(run.answers()) == 8
    assert run.best is None
    assert not estimate_of(run.record.validations[0]).known


def test_two_evaluations_within_an_epoch_have_their_own_answers(tmp_path):
    first = {"epoch": 0, "step": 2, "n": 4, "correct": 3, "accuracy": 0.75, "interval": [0.3, 0.95]}
    last = {**first, "step": 4, "correct": 2, "accuracy": 0.5}
    run = record(tmp_path / "a", validations=[first, last], best=first, selected_by="lowest train/loss")
    evaluations = [{"epoch": 0, "step": 2, "wrong": [2]}, {"epoch": 0, "step": 4, "wrong": [1, 3]}]
    (tmp_path / "a/validation_answers.json").write_text(json.dumps({"triples": "", "evaluations": evaluations}))

    assert right_of(run.answers(), "best_epoch") == [1, 1, 0, 1]
    assert right_of(run.answers(), "last_epoch") == [1, 0, 1, 0]
    assert str(run).endswith("a: finished, lowest train/loss: validation accuracy 0.750 [0.300, 0.950], n = 4")


def test_the_reference_of_a_new_head_is_the_frozen_encoder(tmp_path):
    before = {"n": 4, "correct": 1, "accuracy": 0.25, "interval": [0.0, 0.7]}
    run = record(tmp_path / "a", untrained=before, frozen={**before, "correct": 2, "accuracy": 0.5})
    path = run.folder / "validation_answers.json"
    path.write_text(json.dumps({**read_json(path), "untrained": [0, 1, 2], "frozen": [0, 3]}))
    assert right_of(run.answers(), "reference") == [0, 1, 1, 0]


def test_a_folder_without_a_record_is_not_a_run_and_a_plan_begins_it(tmp_path):
    with refused("not_a_run", folder=tmp_path, record="run.json"):
        Run.read(tmp_path)

    run = Run.at(tmp_path)
    assert run.status is None
    assert run.best is None
    assert len(run.table()) == 0


def test_records_of_later_versions_are_refused_also_by_plans(tmp_path):
    run = record(tmp_path / "a", version=2, versions={"narrlit": "9.1"}, best="of another kind")
    assert RunFile().version == 0
    for read in (Run.read, Run.at):
        with refused("newer_record", narrlit="9.1", version=2, known=1):
            read(run)
    assert issubclass(NewerRecordError, ModelError)
