"""Install the wheel with each extra alone into a new environment, and run the commands that the extra is for.

    make package
    python release/check_extras.py              # every extra of pyproject.toml
    python release/check_extras.py serve ray    # two of them

The first environment has no extra. There, the last command of each extra must fail, and print the pip command that
installs the extra. Environments are made by uv, one at a time, and deleted; `UV_TORCH_BACKEND=cpu` selects builds of
torch without CUDA.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HELPERS = ROOT / "tests" / "helpers"
SECONDS = 1800
"""Longest time of a command."""
NO_EXTRA = "no extra"

FIT = (
    "--config configs/quickstart.yaml --model.init_args.encoder.model model --data.init_args.train 24 "
    "--data.init_args.validation 12 --data.init_args.test 4 --trainer.max_epochs 1"
)
"""Options of a short fit."""
LORA = "--model.init_args.encoder.lora.rank 4"
"""Option of a fit that trains an adapter, because quantized weights are frozen."""

COMMANDS: dict[str, tuple[str, ...]] = {
    NO_EXTRA: (
        "narrlit --version",
        "narrlit --help",
        "narrlit data storyworld --out stories --train 16 --validation 24 --test 12",
        "narrlit data sample tales",
        "python {release}/make_inputs.py",
        "narrlit evaluate stories/validation.jsonl --baseline jaccard",
        "narrlit embed tales --model model --out tales.npy",
        f"narrlit fit {FIT}",
        "narrlit export runs/quickstart/version_0 --out exported",
        "narrlit compare stories/validation.jsonl --models model,exported --baselines tfidf --out comparison",
    ),
    "minilm": (
        "narrlit evaluate stories/validation.jsonl --model narrlit-mini",
        "narrlit evaluate stories/validation.jsonl --model minilm",
    ),
    "parquet": (
        'python -c \'import pandas; pandas.DataFrame({{"text": ["A fox ran."]}}).to_parquet("stories.parquet")\'',
        "narrlit embed stories.parquet --model model --out vectors.npy",
        "narrlit embed tales --model model --out tales.parquet",
    ),
    "quant": (
        f"narrlit fit {FIT} {LORA} --model.init_args.encoder.quantization int8",
        f"narrlit fit {FIT} {LORA} --model.init_args.encoder.quantization nf4",
    ),
    "llm": (
        "python {release}/with_llm_server.py narrlit generate views stories/test_stories.jsonl --out views.jsonl",
        "python {release}/with_llm_server.py narrlit judge stories/validation.jsonl --model model --out track_a.jsonl",
    ),
    "tune": (f"narrlit tune {FIT} --space space.yaml --trials 1 --folds 2 --out tuned",),
    "plots": (
        "narrlit compare stories/validation.jsonl --models model --baselines jaccard --out plotted",
        'python -c \'import narrlit; narrlit.compare("stories/validation.jsonl", ["model", "tfidf"]).plot()\'',
    ),
    "report": ("narrlit report model --triples stories/validation.jsonl --projection umap --out report.html",),
    "explore": (
        "narrlit index tales --out tales.index",
        "narrlit search tales.index 'A girl loses a shoe, and a prince finds her by it.'",
        "narrlit explain feather_robe swan_maiden --stories tales",
        "narrlit pairs tales",
        "narrlit map tales --out map.html",
        "narrlit map tales --model model --out other.html",
    ),
    "onnx": (
        "narrlit index tales --out tales.index",
        "test -f tales.index/search.arrow",
        "narrlit search tales.index 'A girl loses a shoe, and a prince finds her by it.'",
        "narrlit export model --out converted --to onnx --weights int8",
    ),
    "openvino": ("narrlit export model --out converted --to openvino --weights float16",),
    "ray": ("narrlit embed stories/test_stories.jsonl --model model --out parts --engine ray --workers 1",),
    "documents": (
        "narrlit embed tale.docx --model model --out tale.xlsx",
        "narrlit embed tale.xlsx --model model --out again.npy",
        "narrlit embed tale.docx --model model --out tale.npy",
    ),
    "serve": ("python {release}/request_server.py --data collections",),
    "translate": (
        'python -c \'from tiny_translators import tiny_marian; tiny_marian("en-fr"); tiny_marian("fr-en")\'',
        "narrlit data augment stories/train.jsonl --pivots fr --there en-fr --back fr-en --bertscore none "
        "--out translated.jsonl",
    ),
    "text": (
        "python {release}/make_pipeline.py pipeline",
        "narrlit data pseudonymize stories/validation.jsonl --pipeline pipeline --out anonymous.jsonl",
    ),
    "mteb": ("narrlit evaluate stories/validation.jsonl --model model --mteb StoryTriples --out tasks",),
    "bench": ("python {root}/benchmarks/bench.py embedding ranking --quick --threads 1 --out bench.json",),
    "docs": ("env --chdir={root} mkdocs build --strict --site-dir {work}/site",),
    "dev": (
        "env --chdir={root} ruff check --no-cache .",
        "env --chdir={root} codespell",
        "env --chdir={root} pytest -q -p no:cacheprovider tests/test_project.py tests/test_packages.py",
    ),
}
"""Commands of each extra, in the order in which they run; those of NO_EXTRA also make the data of the others."""

SKIPPED = {"vllm": "needs a GPU"}
NOT_REQUIRED = ("bench", "docs", "dev")
"""Extras that no command of narrlit requires."""


@dataclass
class Outcome:
    """What became of an extra.

    Attributes:
        extra: name of the extra.
        install_seconds: time of the installation.
        megabytes: size of the environment.
        run_seconds: time of all commands.
        problems: commands that failed, each with the end of its output.
    """

    extra: str
    install_seconds: float
    megabytes: float
    run_seconds: float
    problems: list[str]

    def row(self) -> str:
        """Format the outcome as a row of a Markdown table."""
        result = "passed" if not self.problems else f"{len(self.problems)} failed"
        return (
            f"| {self.extra} | {self.install_seconds:.0f} s | {self.megabytes:,.0f} MB | {self.run_seconds:.0f} s "
            f"| {result} |"
        )


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the folder in which commands run.

    Attributes:
        path: folder of the environment.
        work: folder in which commands run.
    """

    path: Path
    work: Path

    def install(self, requirement: str, constraints: Path) -> None:
        """Make the environment anew, and install a requirement into it."""
        python = str(self.path / "bin" / "python")
        _uv("venv", "--clear", "--python", sys.executable, str(self.path))
        _uv("pip", "install", "--python", python, "--constraint", str(constraints), requirement)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command; its output is captured."""
        words = shlex.split(command.format(root=ROOT, release=ROOT / "release", work=self.work))
        variables = self._variables(is_python=words[0] == "python")
        return subprocess.run(
            [shutil.which(words[0], path=variables["PATH"]) or words[0], *words[1:]],
            cwd=self.work,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def megabytes(self) -> float:
        """Return the size of all files."""
        return sum(path.lstat().st_size for path in self.path.rglob("*")) / 1e6

    def _variables(self, is_python: bool) -> Mapping[str, str]:
        """Return the variables of a command; only scripts of this repository see the helpers of its tests."""
        others = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        variables = {name: value for name, value in os.environ.items() if name not in others}
        variables |= {"PATH": f"{self.path / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(self.path)}
        variables |= {"HF_HUB_OFFLINE": "1", "PYTHONNOUSERSITE": "1", "NO_MKDOCS_2_WARNING": "1"}
        # All environments have the same path and the same files of packages, so that these are compiled once.
        variables["PYTHONPYCACHEPREFIX"] = str(self.path.with_name("bytecode"))
        return variables | ({"PYTHONPATH": str(HELPERS)} if is_python else {})


def main(arguments: list[str] | None = None) -> int:
    """Check the extras that are named, or all; return 1 if a command failed."""
    names = extras_of(ROOT / "pyproject.toml")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"{', '.join(names)}; default: all")
    parser.add_argument("--wheel", type=Path, help="wheel to install; default: the newest of dist/")
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt", help="releases to install")
    options = parser.parse_args(arguments)
    if unknown := set(options.extras) - set(names):
        parser.error(f"pyproject.toml has no extra {min(unknown)}: choose from {', '.join(names)}")
    wheel = options.wheel or newest_wheel(ROOT / "dist")
    if wheel is None:
        parser.error("dist/ has no wheel: run make package, or give --wheel")

    outcomes = []
    with tempfile.TemporaryDirectory(prefix="narrlit-extras-") as folder:
        environment = Environment(Path(folder) / "environment", Path(folder) / "work")
        environment.work.mkdir()
        chosen = [name for name in options.extras or names if name not in SKIPPED]
        outcome = check_without(environment, wheel.resolve(), options.constraints.resolve(), chosen)
        outcomes.append(report(outcome))
        data = environment.work.rename(Path(folder) / "data")
        for extra in chosen:
            shutil.copytree(data, environment.work)
            outcome = check(extra, environment, wheel.resolve(), options.constraints.resolve())
            outcomes.append(report(outcome))
            shutil.rmtree(environment.work)

    print("\n| extra | installation | environment | commands | result |\n|---|--:|--:|--:|---|")
    for outcome in outcomes:
        print(outcome.row())
    for extra, reason in SKIPPED.items():
        print(f"| {extra} | | | | skipped: {reason} |")
    return 1 if any(outcome.problems for outcome in outcomes) else 0


def extras_of(pyproject: Path) -> list[str]:
    """Read the names of all extras."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"])


def newest_wheel(folder: Path) -> Path | None:
    """Find the wheel that was built last."""
    return max(folder.glob("narrlit-*.whl"), key=lambda path: path.stat().st_mtime, default=None)


def check(extra: str, environment: Environment, wheel: Path, constraints: Path) -> Outcome:
    """Install an extra, and run its commands."""
    requirement = str(wheel) if extra == NO_EXTRA else f"{wheel}[{extra}]"
    start = time.monotonic()
    environment.install(requirement, constraints)
    installed = time.monotonic()
    problems = []
    for command in COMMANDS[extra]:
        result = environment.run(command)
        if result.returncode != 0:
            problems.append(problem(f"exit code {result.returncode}", command, result.stdout))
    return Outcome(extra, installed - start, environment.megabytes(), time.monotonic() - installed, problems)


def check_without(environment: Environment, wheel: Path, constraints: Path, extras: Iterable[str]) -> Outcome:
    """Check the environment without extras: its own commands, and that those of an extra print its pip command."""
    outcome = check(NO_EXTRA, environment, wheel, constraints)
    for extra in extras:
        if extra in NOT_REQUIRED:
            continue
        command = COMMANDS[extra][-1]
        result = environment.run(command)
        if result.returncode == 0 or f"pip install 'narrlit[{extra}]'" not in result.stdout:
            outcome.problems.append(problem(f"without narrlit[{extra}], no pip command", command, result.stdout))
    return outcome


def problem(title: str, command: str, output: str) -> str:
    """Describe a command that failed."""
    end = "\n    ".join(output.strip().splitlines()[-12:])
    return f"{title}: {command}\n    {end}"


def report(outcome: Outcome) -> Outcome:
    """Print the problems of an extra, or that there are none; return it."""
    print(outcome.row(), *outcome.problems, sep="\n", flush=True)
    return outcome


def _uv(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *words], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
