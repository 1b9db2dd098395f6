"""Plans: fits kept, repeated and refused, and where their result is written."""

import json

import pytest
import yaml
from json_files import read_json
from refusals import refused
from results import check_result

from narrlit.errors import OptionError
from narrlit.experiments import plan as module
from narrlit.experiments.plan import FitsResult, Plan, PlannedFit, check_seeds, keep_config
from narrlit.experiments.run import Run
from narrlit.files import exclusive


def test_a_config_is_stored_and_a_different_one_refused(tmp_path):
    plan = tmp_path / "p/plan.yaml"
    content = {"a": {"b": 1}, "c": [1, 2]}
    keep_config(plan, content, tmp_path / "p")
    before = plan.stat().st_mtime_ns
    keep_config(plan, content, tmp_path / "p")

    assert plan.stat().st_mtime_ns == before
    assert yaml.safe_load(plan.read_text()) == content
    with refused("other_configuration", path="plan.yaml", change="a.b: 1 -> 2"):
        keep_config(plan, {"a": {"b": 2}, "c": [1, 2]}, tmp_path / "p")
    with refused("output_not_empty"):
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
    with refused("other_configuration", path="config.yaml", change="x: 1 -> 2", option="out"):
        Plan(tmp_path / "p", planned("a"), {"config": {"x": 2}}).run()
    with exclusive(tmp_path / "p"), refused("folder_in_use", option="out"):
        plan.run()


def test_a_new_plan_needs_a_new_folder(fits, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p/thesis.tex").touch()
    with refused("output_not_empty"):
        Plan(tmp_path / "p", planned("a"), {"config": {}}).run()
    assert fits == []


def test_data_are_checked_before_the_first_fit_and_after_each(fits, tmp_path):
    checked = []
    plan = Plan(tmp_path / "p", planned("a", "b", check=lambda run: checked.append(run.folder.name)), {"config": {}})
    plan.run()

    assert checked == ["a", "b"]

    (tmp_path / "p/a/run.json").unlink()

    def refuse(run):
        raise OptionError("triples_of_fit_changed", folder=run.folder)

    with refused("triples_of_fit_changed", folder="b"):
        Plan(tmp_path / "p", planned("a", "b", check=refuse), {"config": {}}).run()
    assert fits == ["a", "b"]  # a was to be repeated, and b's data refused before that


@pytest.mark.parametrize("seeds", [[], [1], [1, 1], [1, -2]])
def test_seeds_are_different_whole_numbers(seeds):
    with refused("invalid_seeds", seeds=seeds):
        check_seeds(seeds)


def test_a_result_is_written_next_to_its_runs_by_default(fits, tmp_path):
    (fit,) = Plan(tmp_path / "p", planned("a"), {"config": {}}).run()
    result = FitsResult.of("r", [fit.run.best.row("a")], folder=tmp_path / "p", runs={"a": fit.run})
    result.write()
    assert read_json(tmp_path / "p/r.json")["figures"][0]["value"] == 0.75
    assert result.runs["a"].folder == tmp_path / "p/a"
    check_result(result, tmp_path / "out")
