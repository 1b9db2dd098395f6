"""Draw the layers of narrlit, docs/images/architecture.svg, from the source alone.

    python docs/architecture.py

Layers are those that tests/test_architecture.py enforces; a package's description is the first line of its docstring; a
dot is an import.
"""

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "narrlit"
RULE = ROOT / "tests" / "test_architecture.py"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

# Pixels. Texts have room to spare: fonts differ between machines.
MARGIN = 14
HEAD = 100
LINE = 32
GAP = 7
BOX = 128
TEXT = 382
CELL = 12
FOOT = 38
BOX_LEFT = MARGIN + 8
TEXT_LEFT = BOX_LEFT + BOX + 10
DOTS_LEFT = TEXT_LEFT + TEXT
LETTERS = 60
"""Characters of a description's line."""
STYLE = """
.name { font: 600 12px ui-monospace, monospace; fill: #1f2328; }
.description { font: 11.5px system-ui, sans-serif; fill: #424a53; }
.column { font: 11px ui-monospace, monospace; fill: #57606a; }
.note { font: 12px system-ui, sans-serif; fill: #57606a; }
.layer { fill: #f6f8fa; stroke: #d0d7de; }
.guide { stroke: #e4e8ec; }
.box { fill: #ffffff; stroke: #8c959f; }
.itself { fill: #c3cad1; }
.import { fill: #0072b2; }
.exception { fill: #ffffff; stroke: #d55e00; stroke-width: 2; }
"""


@dataclass(frozen=True)
class Package:
    """A package or module of narrlit.

    Attributes:
        name: below narrlit.
        level: number of its layer, from 0.
        description: first line of its docstring.
        imports: names of the others that it imports, also within functions and for types.
    """

    name: str
    level: int
    description: str
    imports: frozenset[str]

    @classmethod
    def read(cls, name: str, level: int) -> "Package":
        """Read the source of a package."""
        module = SOURCE / f"{name}.py"
        files = [module] if module.is_file() else sorted((SOURCE / name).rglob("*.py"))
        main = module if module.is_file() else SOURCE / name / "__init__.py"
        docstring = ast.get_docstring(ast.parse(main.read_text(encoding="utf-8"))) or ""
        imports = {imported for file in files for imported in imports_of(file)} - {name, "__version__"}
        return cls(name, level, docstring.partition("\n")[0].replace("`", ""), frozenset(imports))


def imports_of(file: Path) -> Iterator[str]:
    """Yield the packages of narrlit that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "narrlit":
            modules = [f"narrlit.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            library, _, rest = module.partition(".")
            if library == "narrlit" and rest:
                yield rest.partition(".")[0]


def read_layers() -> list[list[Package]]:
    """Read the packages of each layer, in the order of the test."""
    for node in ast.parse(RULE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            layers = [[ast.literal_eval(name) for name in layer.elts] for layer in node.value.elts]
            return [[Package.read(name, level) for name in layer] for level, layer in enumerate(layers)]
    raise ValueError(f"{RULE}: it has no LAYERS")


def draw() -> str:
    """Draw the layers as rows, their packages as boxes, and imports as dots."""
    layers = read_layers()
    packages = [package for layer in layers for package in layer]
    width = DOTS_LEFT + CELL * len(packages) + 8 + MARGIN
    bottom = HEAD + LINE * len(packages) + GAP * (len(layers) - 1)
    height = bottom + FOOT
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>Layers of narrlit</title>",
        "<desc>The packages of narrlit, layer by layer, with a description and the imports of each.</desc>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    top = HEAD
    for layer in layers:
        shapes.append(rectangle("layer", MARGIN, top, width - 2 * MARGIN, LINE * len(layer)))
        top += LINE * len(layer) + GAP
    shapes += draw_columns(packages, bottom)
    top = HEAD
    for layer in layers:
        for package in layer:
            shapes += draw_package(package, packages, top)
            top += LINE
        top += GAP
    shapes += draw_notes(bottom + 24)
    return "\n".join([*shapes, "</svg>"]) + "\n"


def draw_columns(packages: Sequence[Package], bottom: int) -> Iterator[str]:
    """Draw the name of each column, upright, and a guide below it."""
    for column, package in enumerate(packages):
        x = center(column)
        yield f'<path class="guide" d="M{x} {HEAD} V{bottom}"/>'
        yield f'<text class="column" transform="translate({x + 4},{HEAD - 6}) rotate(-90)">{package.name}</text>'


def draw_package(package: Package, packages: Sequence[Package], top: int) -> Iterator[str]:
    """Draw the box of a package, its description, and a dot in the column of each import."""
    middle = top + LINE // 2
    yield rectangle("box", BOX_LEFT, top + 4, BOX, LINE - 8)
    yield text("name", BOX_LEFT + 8, middle + 4, package.name)
    lines = textwrap.wrap(package.description, LETTERS)
    first = middle + 4 - 7 * (len(lines) - 1)
    for number, words in enumerate(lines):
        yield text("description", TEXT_LEFT, first + 14 * number, words)
    for column, other in enumerate(packages):
        if other.name == package.name:
            yield rectangle("itself", center(column) - 4, middle - 4, 8, 8)
        elif other.name in package.imports:
            yield dot("import" if other.level < package.level else "exception", center(column), middle)


def draw_notes(y: int) -> Iterator[str]:
    """Explain the signs."""
    yield dot("import", MARGIN + 6, y - 4)
    yield text("note", MARGIN + 16, y, "the package of the row imports that of the column")
    yield dot("exception", MARGIN + 396, y - 4)
    yield text("note", MARGIN + 406, y, "an exception: the demo runs commands as a person types them")


def center(column: int) -> int:
    """Return the x of a column of dots."""
    return DOTS_LEFT + CELL * column + CELL // 2


def rectangle(kind: str, x: int, y: int, width: int, height: int) -> str:
    """Return a rectangle of a class of the style."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'


def text(kind: str, x: int, y: int, words: str) -> str:
    """Return a line of text."""
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'


def dot(kind: str, x: int, y: int) -> str:
    """Return a dot."""
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="3.5"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
