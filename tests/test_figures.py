"""Every figure of README and docs is recorded in docs/figures.json, and the check of it sees what is not."""

import importlib
import json
import re
import subprocess
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
        figures.RECORD.write_text(json.dumps({"figures": {"frozen": entry}, "published": {"hits": [0.705]}}))
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
    assert project("It has .560 [.491, .627] (112 of 200), HITS .705.\n", {"a": ACCURACY}) == []


def test_a_changed_figure_is_found_on_its_page(project):
    faults = project("It has .565 [.491, .627] (112 of 200).\n", {"a": ACCURACY})
    assert "README.md: does not show '.560 [.491, .627] (112 of 200)'" in faults
    assert "README.md:1: .565 is not recorded" in faults


SHOWN = "It has .560 [.491, .627] (112 of 200).\n\n"


def found_in(faults, page="README.md"):
    """Results that are not recorded, by line."""
    pattern = re.compile(rf"{page}:(\d+): (.*) is not recorded")
    return [(int(found[1]), found[2]) for found in map(pattern.fullmatch, faults) if found]


@pytest.mark.parametrize("zero", ["", "0"])
@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("Another model has Z.571.", [".571"]),
        ("Its MRR is Z.8, its gain +Z.02 and \u2212Z.0312.", [".8", "+.02", "-.0312"]),
        ("| minilm | Z.571 | Z.5, Z.25 |", [".571", ".5", ".25"]),
        ("| minilm | [Z.481, Z.617] |", [".481", ".617"]),
        ("(Z.571)", [".571"]),
        ("It has Z.5601 and -Z.56.", [".5601", "-.56"]),
        ("better (p = Z.012)", [".012"]),
        ("**Z.571**, *Z.572*, Z.573/Z.574", [".571", ".572", ".573", ".574"]),
    ],
)
def test_a_result_that_nothing_recorded_is_found_with_and_without_a_zero(project, line, results, zero):
    line = line.replace("Z", zero)
    faults = project(f"{SHOWN}{line}\n", {"a": ACCURACY})
    assert found_in(faults) == [(3, result) for result in results]


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("all are right: 1.000", "1.000"),
        ("it reads 45.4 stories/s", "45.4"),
        ("it reads 450 stories/s", "450 stories/s"),
        ("and is 1.9 times as fast", "1.9"),
        ("and is 2 times as fast", "2 times as fast"),
        ("(p = 2e-5)", "p = 2e-5"),
        ("a share of 12.5 %", "12.5"),
        ("| 3.72 s | 1,234.5 MB |", "3.72"),
        ("The paper has .705.", ".705"),
        ("ttda704 has .58.", ".58"),
    ],
)
def test_results_above_one_and_those_of_another_paper_are_found(project, line, result):
    assert (3, result) in found_in(project(f"{SHOWN}{line}\n", {"a": ACCURACY}))


@pytest.mark.parametrize("digits", [".705", "0.705", ".7050"])
def test_a_paper_is_quoted_by_its_name_and_with_its_digits(project, digits):
    assert project(f"{SHOWN}HITS has {digits}.\n", {"a": ACCURACY}) == []
    table = f"| HITS | {digits} |\n| Comhis | {digits} |\n"
    assert [line for line, _ in found_in(project(SHOWN + table, {"a": ACCURACY}))] == [4]
    assert found_in(project(f"{SHOWN}HITS has +{digits}.\n", {"a": ACCURACY}))
    assert found_in(project(f"{SHOWN}HITS has .70.\n", {"a": ACCURACY}))


@pytest.mark.parametrize("page", [SHOWN, SHOWN.replace(".", "0.").replace(")0", ")"), SHOWN.replace(" (112", "\n(112")])
def test_a_record_is_shown_with_and_without_a_zero(project, page):
    assert project(page, {"a": ACCURACY}) == []


def test_settings_versions_sections_and_addresses_are_no_results(project):
    lines = [
        "The rate is `0.05`, the margin `.3`.",
        "torch 2.13 and BERTopic 0.17, section 4.1.4, sections 4.3 and 4.5, place (5.2)",
        "[arXiv:2606.15783](https://arxiv.org/abs/2606.15783) at 127.0.0.1:8000 <!-- 0.123 -->",
        "```yaml\nlearning_rate: 0.1\n```",
        '=== "Python"\n\n    ```py\n    narrlit.fuse(grid=0.25)\n    ```',
        "<!-- settings -->\n```text\nloss = 0.5 a + 0.2 b\n```",
    ]
    assert project(SHOWN + "\n\n".join(lines) + "\n", {"a": ACCURACY}) == []


def test_outputs_that_tests_compare_are_no_results(project, figures):
    block = "```bash\nnarrlit evaluate\n```\n\n```text\naccuracy 0.123 [.1, .2]\n```\n"
    assert project(SHOWN + block, {"a": ACCURACY}) == []

    (figures.ROOT / "tests").mkdir()
    (figures.ROOT / "tests/test_it.py").touch()
    assert project(f"{SHOWN}<!-- no-run: slow; tests/test_it.py runs it -->\n{block}", {"a": ACCURACY}) == []


@pytest.mark.parametrize(
    "change",
    [
        ("```bash", "<!-- no-run: needs a server -->\n```bash"),
        ("```bash", "<!-- no-run: slow; tests/test_that_is_not_there.py runs it -->\n```bash"),
        ("narrlit evaluate", "narrlit fit --config a.yaml"),
        ("narrlit evaluate", "narrlit evaluate runs/a/version_0"),
        ("```\n\n```text", "```\n\nIt prints:\n\n```text"),
        ("```\n\n```text", "```\n```text"),
        ("bash\nnarrlit evaluate", "json\n{}"),
    ],
)
def test_results_in_outputs_that_no_test_compares_are_found(project, change):
    block = "```bash\nnarrlit evaluate\n```\n\n```text\naccuracy 0.123\n```\n".replace(*change)
    assert [result for _, result in found_in(project(SHOWN + block, {"a": ACCURACY}))] == [".123"]


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
    assert entry["commit"] == figures.commit()


def test_a_result_may_be_a_line_of_text(figures, tmp_path):
    assert figures.result_of("stdout:1", ["", "first\naccuracy 0.5, best\n"], tmp_path) == "accuracy 0.5, best"


def test_the_commit_is_recorded_with_a_mark_for_changes(figures, project, tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    assert figures.commit().startswith("unknown")
    (tmp_path / "code.py").write_text("1\n")
    figures.RECORD.write_text("{}")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Begin"]):
        subprocess.run([*git, *words], check=True)
    short = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
    assert figures.commit() == short.stdout.strip()

    figures.RECORD.write_text("{ }")  # each measurement changes it
    assert figures.commit() == short.stdout.strip()

    (tmp_path / "code.py").write_text("2\n")
    assert figures.commit() == f"{short.stdout.strip()}+changes"
