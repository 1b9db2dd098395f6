"""Snippets of docs/integrations print what the pages say, where the package is installed; peers' lines are counted."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import narrlit as library
from narrlit.data.tales import sample_tales

PAGES = Path(__file__).parents[1] / "docs" / "integrations"
PACKAGES = {
    "langchain": "langchain_huggingface",
    "llamaindex": "llama_index.embeddings.huggingface",
    "haystack": "haystack_integrations.components.embedders.sentence_transformers",
    "bertopic": "bertopic",
}
SNIPPET = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def test_every_page_has_one_snippet_with_output():
    assert {path.stem for path in PAGES.glob("*.md")} == set(PACKAGES)
    for name in PACKAGES:
        assert len(SNIPPET.findall((PAGES / f"{name}.md").read_text(encoding="utf-8"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_the_exported_folder_works_there(narrlit, name):
    pytest.importorskip(PACKAGES[name])
    assert narrlit("data", "sample", "tales").code == 0
    assert narrlit("export", "minilm", "--out", "model").code == 0

    code, output = SNIPPET.search((PAGES / f"{name}.md").read_text(encoding="utf-8")).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), {"__name__": "__main__"})

    assert printed.getvalue().split() == output.split()


@pytest.mark.parametrize("name", ["langchain", "llamaindex", "haystack"])
def test_the_pages_show_the_cosines_of_minilm(name):
    """Also where the package is not installed."""
    code, output = SNIPPET.search((PAGES / f"{name}.md").read_text(encoding="utf-8")).groups()
    (query,) = re.findall(r'"(A slow runner .*?)"', code)
    tales = sample_tales()
    encoder = library.load("minilm", long="truncate")
    cosines = encoder.embed([tale["text"] for tale in tales]) @ encoder.embed([query])[0]
    best = sorted(zip(cosines, tales, strict=True), key=lambda pair: -pair[0])[:3]
    lines = [f"{cosine:.2f} {tale['file_name'].removesuffix('.txt')}" for cosine, tale in best]
    assert lines == output.splitlines()


def test_the_table_of_other_tools_counts_the_lines_of_its_scripts():
    page = (PAGES.parent / "compare-tools.md").read_text(encoding="utf-8")
    header, _, lines = (row.strip("| ").split(" | ") for row in re.findall(r"^\|.*\|$", page, re.MULTILINE)[:3])
    scripts = dict(re.findall(r"^### ([\w-]+)$.*?```python\n(.*?)```", page, re.MULTILINE | re.DOTALL))
    for tool, count in zip(header[1:], lines[2:], strict=True):
        assert int(count) == sum(bool(line.strip()) for line in scripts[tool.split()[0]].splitlines()), tool
