"""Plans: fits kept, repeated and refused, and the table of their accuracies."""

import json

import numpy as np
import pytest
import yaml
from folds import described_fold
from json_files import read_json

from narrlit.errors import OptionError
from narrlit.experiments import plan as module
from narrlit.experiments.outcome import Outcome, Scored, compared, pooled
from narrlit.experiments.plan import Plan, PlannedFit, PlanResult, keep_config
from narrlit.experiments.report import Report
from narrlit.experiments.run import Run
from narrlit.files import exclusive
from narrlit.metrics.significance import AccuracySummary, SharedStories, mcnemar_by_story
from narrlit.models.run_file import Evaluation


def test_a_config_is_stored_and_a_different_one_refused(tmp_path):
    plan = tmp_path / "p/plan.yaml"
    content = {"a": {"b": 1}, "c": [1, 2]}
    keep_config(plan, content, tmp_path / "p")
    before = plan.stat().st_mtime_ns
    keep_config(plan, content, tmp_path / "p")

    assert plan.stat().st_mtime_ns == before
    assert yaml.safe_load(plan.read_text()) == content
    with pytest.raises(OptionError, match=r"plan.yaml has another configuration \(a.b: 1 -> 2\)"):
        keep_config(plan, {"a": {"b": 2}, "c": [1, 2]}, tmp_path / "p")
    with pytest.raises(OptionError, match="exists and is not empty"):
        keep_config(tmp_path / "p/other.yaml", content, tmp_path / "p")


@pytest.fixture
def fits(monkeypatch):
    """Names of the fits that run; each leaves a record of 4 triples, of which 3 are right."""
    names = []

    def run_fit(folder, config):
        names.append(folder.name)
        folder.mkdir(exist_ok=True)
        evaluation = {"epoch": 0, "step": 1, "n": 4, "correct": 3, "accuracy": 0.75, "interval": [0.3, 0.95]}
        content = {"status": "finished", "validations": [evaluation], "best": evaluation, "untrained": evaluation}
        (folder / "run.json").write_text(json.dumps(content))
        answers = {"triples": "", "evaluations": [{"epoch": 0, "step": 1, "wrong": [2]}], "untrained": [1]}
        (folder / "validation_answers.json").write_text(json.dumps(answers))
        return Run.read(folder)

    monkeypatch.setattr(module, "run_fit", run_fit)
    return names


def planned(*names, **others):
    return [PlannedFit(name, {"seed_everything": 7}, "a test", **others) for name in names]


def test_finished_runs_stay_and_others_are_repeated(fits, tmp_path, capsys):
    plan = Plan(tmp_path / "p", planned("a", "b"), {"config": {"x": 1}})
    plan.run()
    assert "\na, fit 1 of 2: a test\n" in capsys.readouterr().err

    (tmp_path / "p/b/run.json").write_text('{"status": "running"}')
    finished = plan.run()
    assert fits == ["a", "b", "b"]
    assert [fit.run.folder.name for fit in finished] == ["a", "b"]
    assert "a: already finished" in capsys.readouterr().err
    with pytest.raises(OptionError, match=r"config.yaml has another configuration \(x: 1 -> 2\): choose another"):
        Plan(tmp_path / "p", planned("a"), {"config": {"x": 2}}).run()
    with exclusive(tmp_path / "p"), pytest.raises(OptionError, match=r"another run is writing .*\(`folder`\)"):
        plan.run()


def test_a_new_plan_needs_a_new_folder(fits, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p/thesis.tex").touch()
    with pytest.raises(OptionError, match="exists and is not empty"):
        Plan(tmp_path / "p", planned("a"), {"config": {}}).run()
    assert fits == []


def test_data_are_checked_before_the_first_fit_and_after_each(fits, tmp_path):
    checked = []
    plan = Plan(tmp_path / "p", planned("a", "b", check=lambda run: checked.append(run.folder.name)), {"config": {}})
    plan.run()

    assert checked == ["a", "b"]

    (tmp_path / "p/a/run.json").unlink()

    def refuse(run):
        raise OptionError("other data")

    with pytest.raises(OptionError, match="other data"):
        Plan(tmp_path / "p", planned("a", "b", check=refuse), {"config": {}}).run()
    assert fits == ["a", "b"]  # a was to be repeated, and b's data refused before that


def test_the_table_has_a_row_for_each_accuracy(fits, tmp_path):
    finished = Plan(tmp_path / "p", planned("a", system="x", fold=described_fold(3)), {"config": {}}).run()
    interval = {"accuracy": 0.75, "interval": [0.3, 0.95]}
    result = PlanResult.of("r", tmp_path / "p", finished, Report({"a": 1}, {}, ["A note."], [], {"x": interval}))
    table = result.table()

    assert table.metric.tolist() == ["accuracy_last_epoch", "accuracy_best_epoch", "accuracy_reference"]

    low, high = AccuracySummary(4, 3).interval
    assert table.iloc[0].tolist() == ["x", 3, 7, "accuracy_last_epoch", 0.75, 4, low, high]
    assert [label.get_text() for label in result.plot().get_yticklabels()] == ["x"]

    result.write()
    assert (tmp_path / "p/r.csv").read_text().count("\n") == 4
    assert read_json(tmp_path / "p/r.json") == {"a": 1}
    assert str(result) == "A note."


GOOD = Scored(AccuracySummary(200, 110), frozenset(range(90)))
BETTER = Scored(AccuracySummary(200, 130), frozenset(range(20, 90)))
NONE = Scored(AccuracySummary(200, 0, undefined=7))


def test_pooling_sums_counts_and_one_nan_means_no_accuracy():
    folds = {
        0: Outcome({"last_epoch": GOOD, "best_epoch": GOOD, "reference": GOOD}, 3, ["transductive"]),
        1: Outcome({"last_epoch": BETTER, "best_epoch": NONE}, 2),
    }
    whole = pooled(folds)

    assert whole.last.summary.n == 400
    assert whole.last.accuracy == 0.6
    assert whole.num_evaluations == 5
    assert whole.best.summary.n == 400
    assert whole.best.accuracy is None
    assert whole.best.wrong is None
    assert len(whole.last.wrong) == 160
    assert (0, 0) in whole.last.wrong
    assert (1, 0) not in whole.last.wrong
    assert whole.reference is None
    assert whole.flags == ["transductive"]


def test_evaluations_are_compared_by_their_wrong_answers():
    better = compared(BETTER, GOOD).as_dict()
    assert better == {"difference": 0.1, "lost": 0, "won": 20, "p": pytest.approx(2 / 2**20), "test": "mcnemar"}
    assert compared(NONE, GOOD).as_dict() == dict.fromkeys(better)


def test_evaluations_of_triples_that_share_stories_are_pooled_and_compared_by_story():
    # Four triples each have an anchor in common, in both folds another.
    rows = {fold: {n: [1000 * fold + n // 4, 100 + n, 200 + n] for n in range(20)} for fold in (0, 1)}
    wrong = {0: {1, 2, 3}, 1: {16, 17, 18, 19}}
    outcomes = {}
    for fold, positions in wrong.items():
        score = Scored(AccuracySummary(20, 20 - len(positions)), positions, stories=rows[fold])
        outcomes[fold] = Outcome({"last_epoch": score, "best_epoch": score}, 1)
    whole = pooled(outcomes)

    shared = SharedStories([*rows[0].values(), *rows[1].values()])
    correct = np.array([n not in wrong[fold] for fold in (0, 1) for n in range(20)])
    assert whole.last.summary == AccuracySummary.of(correct, shared)
    assert whole.last.summary.interval_method == "by_story"
    assert whole.is_by_story

    perfect = Scored(AccuracySummary(40, 40), set(), stories=whole.last.stories)
    assert compared(perfect, whole.last).p == mcnemar_by_story(np.ones(40, bool), correct, shared)
    assert compared(perfect, whole.last).test == "mcnemar_by_story"


def test_recorded_evaluations_keep_their_interval():
    recorded = {"n": 4, "correct": 3, "accuracy": 0.75, "interval": [0.1, 0.9]}
    by_story = Scored.of(Evaluation(**recorded, interval_method="by_story"), [1], [[1, 2, 3]] * 4)
    assert by_story.summary.interval == (0.1, 0.9)
    assert by_story.stories == dict(enumerate([[1, 2, 3]] * 4))
    # Records of earlier releases have Wilson's interval, and no stories.
    assert Scored.of(Evaluation(**recorded), [1]).summary == AccuracySummary(4, 3)
    assert Scored.of(Evaluation(**recorded), [1], [[1, 2, 3]] * 5).stories is None
