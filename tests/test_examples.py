"""Every notebook of examples/ runs from its first cell to its last, in an empty folder."""

import ast
import shlex
from pathlib import Path

import pytest
from json_files import read_json

from narrlit.cli import main

pytestmark = [pytest.mark.usefixtures("memoized_minilm"), pytest.mark.slow, pytest.mark.long]

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


SHORTER = {
    "--train 64 --validation 60 --test 12": "--train 4 --validation 8 --test 2",
    '"data.train": 64': '"data.train": 4',
    '"data.validation": 60, "data.test": 12': '"data.validation": 8, "data.test": 2',
}
"""Sizes of the data in shared_task.ipynb, and sizes that are enough to run it."""


def cells_of(name):
    """Code of each cell."""
    notebook = read_json(EXAMPLES / name)
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shorter(code):
    """The code with less data."""
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


def run_cell(code, names):
    """Run a cell, commands after ! too; show the value of its last line as a notebook does."""
    lines = code.splitlines()
    for line in lines:
        if line.startswith("!narrlit "):
            assert main(shlex.split(line)[1:]) == 0, line
    tree = ast.parse("\n".join(line for line in lines if not line.startswith("!")))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        assert (value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)) is not None


def test_there_are_three():
    assert NOTEBOOKS == ["folk_tales.ipynb", "shared_task.ipynb", "story_search.ipynb"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for code in cells_of(name):
        run_cell(shorter(code), names)


def test_the_shorter_data_are_those_of_a_notebook():
    code = "\n".join(cells_of("shared_task.ipynb"))
    assert all(long in code for long in SHORTER)
