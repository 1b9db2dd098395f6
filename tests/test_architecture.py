"""Imports point one way: what stands further left must not know what stands further right."""

import ast
import importlib.util
import textwrap
from itertools import pairwise
from pathlib import Path

import narrlit

SOURCE = Path(narrlit.__file__).parent
LAYERS = [
    {"sentences", "english"},
    {"errors"},
    {"compat", "optional", "files", "json_records", "distributed", "seeds", "console", "configuration", "markdown"},
    {"signatures", "declarations"},
    {"arguments"},
    {"command_line"},
    {"losses", "preprocessing", "prompts", "servers"},
    {"data"},
    {"models"},
    {"statistics", "embedding_cache"},
    {"results"},
    {"encoding"},
    {"measures"},
    {"llm"},
    {"datamodules", "objectives"},
    {"api", "callbacks", "exporting", "submission", "pages"},
    {"library"},
    {"explore"},
    {"lightning_cli"},
    {"experiments"},
    {"serving"},
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


def module_name(path, source):
    """narrlit.data.rows for data/rows.py, narrlit.data for data/__init__.py."""
    names = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def at_run_time(node):
    """All nodes below one, without the bodies of `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            for other in child.orelse:
                yield from at_run_time(other)
        else:
            yield from at_run_time(child)


def module_graph(source):
    """{module: {module that it imports: line}}, imports inside functions included."""
    files = {module_name(path, source): path for path in sorted(source.rglob("*.py"))}
    graph = {}
    for module, path in files.items():
        edges = graph[module] = {}
        for node in at_run_time(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in files else node.module for name in inside]
            for name in names:
                if name in files:
                    edges.setdefault(name, node.lineno)
    return graph


def circle_through(module, graph):
    """The shortest way [module, ..., module] along imports; None if there is none."""
    ways, seen = [[module]], set()
    for way in ways:  # grows as it is read
        for target in graph[way[-1]]:
            if target == module:
                return [*way, module]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return None


def shown(circle, graph):
    """One line an import: narrlit.a imports narrlit.b (line 3)."""
    steps = pairwise(circle)
    return "\n".join(["a circle of imports:", *(f"  {a} imports {b} (line {graph[a][b]})" for a, b in steps)])


def test_no_imports_run_in_a_circle():
    graph = module_graph(SOURCE)
    assert graph["narrlit.cli"]["narrlit.errors"]
    for module in graph:
        circle = circle_through(module, graph)
        assert circle is None, shown(circle, graph)


def test_a_circle_is_found_within_functions_and_not_among_types(tmp_path):
    package = tmp_path / "narrlit"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text("import os\nfrom narrlit import two\n")
    (package / "two.py").write_text("def run():\n    from narrlit.three import thing\n")
    (package / "three.py").write_text("if TYPE_CHECKING:\n    from narrlit.one import Thing\n")
    graph = module_graph(package)

    assert [circle_through(module, graph) for module in graph] == [None] * 4

    (package / "three.py").write_text("import narrlit.one\n")
    graph = module_graph(package)
    circle = circle_through("narrlit.one", graph)

    assert circle == ["narrlit.one", "narrlit.two", "narrlit.three", "narrlit.one"]
    assert "narrlit.two imports narrlit.three (line 2)" in shown(circle, graph)


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
    for part in ("models", "data", "preprocessing", "losses", "statistics", "embedding_cache", "llm"):
        assert "lightning" not in libraries[part], part


def test_the_picture_is_what_its_script_draws():
    file = Path(__file__).parents[1] / "docs" / "architecture.py"
    spec = importlib.util.spec_from_file_location("architecture_picture", file)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    packages = [package for layer in script.read_layers() for package in layer]

    assert {package.name: package.level for package in packages} == LEVEL

    pairs = {(part, target) for _, part, (library, target) in imports() if library == "narrlit" and target in LEVEL}
    assert {(package.name, name) for package in packages for name in package.imports} == {
        (part, target) for part, target in pairs if part in LEVEL and part != target
    }
    for package in packages:
        assert 1 <= len(textwrap.wrap(package.description, script.LETTERS)) <= 2, package
    assert script.PICTURE.read_text(encoding="utf-8") == script.draw(), "run python docs/architecture.py"


EVERYWHERE = {"main"}
"""Names that mean one thing in every module that has them: the function of a program."""


def type_or_function(node):
    """The name of a class, an alias of a type, or a public function at the top of a module; None for anything else.

    Type variables have no meaning of their own.
    """
    if isinstance(node, ast.ClassDef):
        return node.name
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None if node.name.startswith("_") else node.name
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    is_variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("TypeVar", "ParamSpec")
    # Constants are in capitals throughout; _Step is private to its module.
    is_type = isinstance(target, ast.Name) and target.id[:1].isupper() and not target.id.isupper()
    return target.id if is_type and not is_variable else None


def test_a_type_or_public_function_is_defined_once():
    modules = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = module_name(path, SOURCE)
        if module.startswith("narrlit.commands"):
            continue  # a command is named like the function that it calls
        for name in filter(None, map(type_or_function, ast.parse(path.read_text(encoding="utf-8")).body)):
            modules.setdefault(name, []).append(module)

    assert {"StoryEncoder", "FloatArray", "search"} <= set(modules)
    assert {name: of for name, of in modules.items() if len(of) > 1 and name not in EVERYWHERE} == {}
