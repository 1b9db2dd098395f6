"""Every figure of README and docs is recorded in docs/figures.json, and the check of it sees what is not."""

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ACCURACY = {"n": 200, "correct": 112, "accuracy": 0.56, "interval": [0.4907, 0.6269]}


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("figures")


@pytest.fixture
def project(figures, monkeypatch, tmp_path):
    """project(page, values): a README, one measurement that it shows, and its record."""
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "RECORD", tmp_path / "docs" / "figures.json")
    measurement = figures.Measurement(
        "frozen", "about", ["narrlit evaluate"], [], "minilm", {"a": "stdout:0"}, {"README.md": ["{a} ({a|count})"]}
    )
    monkeypatch.setattr(figures, "read_measurements", lambda: {"frozen": measurement})

    def write(page, values, commands=("narrlit evaluate",)):
        (tmp_path / "README.md").write_text(page, encoding="utf-8")
        entry = {"commands": list(commands), "values": values}
        figures.RECORD.write_text(json.dumps({"figures": {"frozen": entry}, "published": {"paper": [0.705]}}))
        return figures.check()

    return write


def test_every_figure_of_readme_and_docs_is_recorded(figures):
    assert figures.check() == []


def test_every_measurement_names_what_its_figures_depend_on(figures):
    for name, entry in figures.read_record()["figures"].items():
        assert {"commands", "data", "encoder", "processor", "versions", "date", "values"} <= set(entry), name
        accuracies = [value for value in entry["values"].values() if isinstance(value, dict) and "accuracy" in value]
        assert all(value["n"] and len(value["interval"]) == 2 for value in accuracies), name


def test_a_page_that_shows_what_is_recorded_is_right(project):
    assert project("It has .560 [.491, .627] (112 of 200), the paper .705.\n", {"a": ACCURACY}) == []


def test_a_changed_figure_is_found_on_its_page(project):
    faults = project("It has .565 [.491, .627] (112 of 200).\n", {"a": ACCURACY})
    assert "README.md: does not show '.560 [.491, .627] (112 of 200)'" in faults
    assert "README.md:1: .565 is not recorded" in faults


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Another model has .571.", ".571"),
        ("| minilm | [.481, .617] |", "[.481, .617]"),
        ("better (p = .012)", "p = .012"),
        ("it reads 45.4 stories/s", "45.4 stories/s"),
        ("and is 1.9 times as fast", "1.9 times as fast"),
    ],
)
def test_a_result_that_nothing_recorded_is_found(project, line, found):
    page = f"It has .560 [.491, .627] (112 of 200).\n\n{line}\n"
    assert f"README.md:3: {found} is not recorded" in project(page, {"a": ACCURACY})


def test_settings_and_outputs_that_the_tests_compare_are_no_results(project):
    page = "It has .560 [.491, .627] (112 of 200).\nThe rate is 0.05, the margin 0.3.\n\n"
    run = "```bash\nnarrlit evaluate\n```\n\n```text\naccuracy .123 [.1, .2]\n```\n"
    assert project(page + run, {"a": ACCURACY}) == []
    unproven = "<!-- no-run: needs a server -->\n" + run
    assert "README.md:10: .123 is not recorded" in project(page + unproven, {"a": ACCURACY})


def test_a_measurement_whose_commands_changed_is_not_recorded(project):
    faults = project("It has .560 [.491, .627] (112 of 200).\n", {"a": ACCURACY}, commands=["narrlit evaluate --old"])
    assert any(fault.startswith("frozen: not recorded as figures.yaml has it") for fault in faults)


def test_a_measurement_runs_its_commands_and_records_what_they_print(figures, tmp_path):
    command = f"python {tmp_path / 'print.py'}"
    measurement = figures.Measurement(
        "one", "about", [command], ["rows.jsonl"], "", {"out": "stdout:0"}, {"README.md": ["{out/a/x}"]}
    )
    (tmp_path / "print.py").write_text('print(\'first line\')\nprint(\'[{"name": "a", "x": 3}]\')\n')
    (tmp_path / "rows.jsonl").write_text("{}\n")
    folders = {"data": tmp_path, "benchmarks": BENCHMARKS}
    entry = figures.measured(measurement, folders, tmp_path / "work", None, again=False)

    assert entry["values"] == {"out/a/x": 3}
    assert list(entry["data"]) == ["rows.jsonl"]
