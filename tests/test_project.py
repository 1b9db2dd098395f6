"""Facts that several files of the project state: the version, the lowest releases, the targets of make."""

import ast
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import narrlit

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
APART = ("vllm",)
"""Extras that cannot be installed together with the others."""


def test_the_version_is_a_literal_at_one_place():
    assert "version" in PYPROJECT["project"]["dynamic"]
    assert "version" not in PYPROJECT["project"]

    source = ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]
    assigned = [
        ast.literal_eval(node.value)
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__version__"]
    ]

    assert assigned == [narrlit.__version__]


def requirements():
    """(extra, name, lower bound or None) of each dependency; the extra of the package itself is ''."""
    project = PYPROJECT["project"]
    for extra, texts in {"": project["dependencies"], **project["optional-dependencies"]}.items():
        for text in texts:
            requirement = Requirement(text)
            bounds = [part.version for part in requirement.specifier if part.operator in (">=", "==")]
            assert len(bounds) <= 1, text
            yield extra, requirement.name, bounds[0] if bounds else None


def test_the_lowest_versions_are_those_of_pyproject():
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = [line for line in lines if not line.startswith("#")]
    bounds = {f"{name}=={bound}" for extra, name, bound in requirements() if bound and extra not in APART}

    assert set(lowest) == bounds
    # A package in several extras has the same bound in each.
    assert len({line.partition("==")[0] for line in lowest}) == len(lowest) > 40


def test_the_tested_versions_satisfy_pyproject():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = {name: bound for _, name, bound in requirements()}
    assert tested.keys() <= bounds.keys()
    assert all(Version(version) >= Version(bounds[name] or "0") for name, version in tested.items())


def test_the_workflow_calls_targets_of_make_on_every_python_of_the_classifiers():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    called = {match[1] for step in steps if (match := re.match(r"make (\S+)", step.get("run", "")))}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert called == {"lint", "types", "docs", "coverage"} <= targets

    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]
    pythons = [f"Programming Language :: Python :: {version}" for version in matrix["python"]]
    assert pythons == [name for name in PYPROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", name)]
    for entry in matrix["include"]:
        assert PYPROJECT["project"]["requires-python"] == f">={entry['python']}"
        assert (ROOT / entry["constraints"]).is_file()
    assert workflow["permissions"] == {"contents": "read"}


def test_forms_of_issues_have_the_fields_that_github_reads():
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("*.yml")]
    forms = [form for form in forms if "body" in form]

    assert len(forms) == 2

    for form in forms:
        assert {"name", "description", "body"} <= form.keys()
        ids = [field["id"] for field in form["body"]]
        assert len(set(ids)) == len(ids)
        assert all(field["attributes"]["label"] for field in form["body"])
        assert {field["type"] for field in form["body"]} <= {"checkboxes", "dropdown", "input", "markdown", "textarea"}


def test_the_citation_has_the_version_and_the_license_of_the_code():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == narrlit.__version__
    assert citation["license"] == PYPROJECT["project"]["license"].split()[0]
    assert citation["repository-code"] == PYPROJECT["project"]["urls"]["Repository"]


def test_the_package_reads_nothing_by_pickle_but_what_security_names():
    pickling = set()
    for path in sorted(Path(narrlit.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text, path
        assert "weights_only=False" not in text, path
        if re.search(r"^import pickle", text, re.MULTILINE):
            pickling.add(path.name)
        for call in re.findall(r"torch\.load\([^\n]*", text):
            assert "weights_only=True" in call, path

    # The table of shards, behind a check of its classes; rows that Ray's workers have just written.
    assert pickling == {"checkpoint_files.py", "ray_parts.py"}
