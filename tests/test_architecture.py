"""Imports point one way: what stands further left must not know what stands further right."""

import ast
from pathlib import Path

import narrlit

SOURCE = Path(narrlit.__file__).parent
LAYERS = [
    {"errors"},
    {"optional", "files", "json_records", "distributed", "seeds", "console", "configuration", "tables"},
    {"arguments"},
    {"losses", "preprocessing", "prompts", "servers"},
    {"data"},
    {"models"},
    {"metrics", "cache"},
    {"encoding"},
    {"measures"},
    {"llm"},
    {"datamodules", "objectives"},
    {"api", "callbacks", "export", "submission", "options", "pages"},
    {"explore"},
    {"lightning_cli"},
    {"experiments"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
# The demo runs the commands that a person would type.
ALLOWED = {("commands", "cli")}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports():
    """(file, part, imported part or library) of every import in the package."""
    for path in sorted(SOURCE.rglob("*.py")):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are absolute here"
                names = [
                    f"{node.module}.{alias.name}" if node.module == "narrlit" else node.module for alias in node.names
                ]
            else:
                continue
            for name in names:
                first, _, rest = name.partition(".")
                yield path, part, ("narrlit", rest.partition(".")[0]) if first == "narrlit" else (first, "")


def test_every_part_has_its_place():
    parts = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert parts == set(LEVEL)


def test_imports_point_one_way():
    seen = 0
    for path, part, (library, target) in imports():
        if library != "narrlit" or part == "__init__" or target in ("", "__version__", part):
            continue
        seen += 1
        assert LEVEL[target] < LEVEL[part] or (part, target) in ALLOWED, f"{path}: {part} imports {target}"
    assert seen > 60


def test_objectives_and_datamodules_do_not_know_each_other():
    pairs = {(part, target) for _, part, (library, target) in imports() if library == "narrlit"}
    assert ("objectives", "datamodules") not in pairs
    assert ("datamodules", "objectives") not in pairs
    assert ("objectives", "data") in pairs


def test_losses_know_torch_alone_and_models_no_lightning():
    libraries = {}
    for _, part, (library, target) in imports():
        libraries.setdefault(part, set()).add(library if target != part else part)
    assert libraries["losses"] <= {"losses", "torch", "typing", "math", "collections"}
    for part in ("models", "data", "preprocessing", "losses", "metrics", "cache", "llm"):
        assert "lightning" not in libraries[part], part
