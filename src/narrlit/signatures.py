"""Signatures of functions, read from their source: the help of a command imports nothing heavy."""

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Argument:
    """Parameter of a function.

    Attributes:
        name: its name.
        types: expressions of its type; several for a union, whose aliases in the same module are resolved.
        metadata: values that `Annotated` adds to the type.
        default: default value; `inspect.Parameter.empty` if there is none.
        kind: kind of the parameter, as for `inspect.Parameter`.
    """

    name: str
    types: tuple[ast.expr, ...]
    metadata: tuple[object, ...]
    default: object
    kind: Any

    @property
    def type_names(self) -> set[str]:
        """The types as they are written."""
        return {ast.unparse(node) for node in self.types}


class Source(dict[str, Any]):
    """Source of a module, whose names are looked up without running the module.

    A name that the module imports is imported from where it is defined; one that the module assigns is evaluated.
    """

    def __init__(self, module: str) -> None:
        super().__init__()
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(module)
        self.module = module
        self.tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))

    def __missing__(self, name: str) -> Any:
        """Return the value of a name; `eval` looks names up here."""
        if name in self.assigned:
            return self.value(self.assigned[name])
        if name not in self.imported:
            return getattr(import_module(self.module), name) if name in self.defined else getattr(builtins(), name)
        module, attribute = self.imported[name]
        return getattr(import_module(module), attribute) if attribute else import_module(module)

    def value(self, node: ast.expr) -> Any:
        """Evaluate an expression."""
        return eval(compile(ast.Expression(node), self.module, "eval"), {}, self)  # noqa: S307  (narrlit's own source)

    def function(self, name: str) -> ast.FunctionDef:
        """Return a function of the module."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        raise AttributeError(f"{self.module} has no function {name}")

    @cached_property
    def defined(self) -> set[str]:
        """Names of the functions and classes of the module."""
        return {node.name for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """Values that the module assigns to names."""
        values = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values[node.targets[0].id] = node.value
        return values

    @cached_property
    def imported(self) -> dict[str, tuple[str, str | None]]:
        """Module and attribute of each imported name, also of those imported for type checkers only."""
        names: dict[str, tuple[str, str | None]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {alias.asname or alias.name: (alias.name, None) for alias in node.names}
        return names

    def types(self, node: ast.expr | None) -> tuple[ast.expr, ...]:
        """Split a type into the members of its union."""
        match node:
            case None:
                return ()
            case ast.Constant(value=str(text)):
                return self.types(ast.parse(text, mode="eval").body)
            case ast.BinOp(left=left, right=right):
                return (*self.types(left), *self.types(right))
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=elements)):
                return self.types(elements[0])
            case ast.Name(id=name) if name in self.assigned:
                return self.types(self.assigned[name])
            case _:
                return (node,)


def builtins() -> Any:
    """Return the module of Python's own names."""
    return import_module("builtins")


@dataclass(frozen=True)
class Signature:
    """Signature and docstring of a function.

    Attributes:
        source: module of the function.
        arguments: its parameters in order.
        docstring: its docstring, without indentation.
    """

    source: Source
    arguments: tuple[Argument, ...]
    docstring: str

    @property
    def description(self) -> str:
        """The docstring without its sections."""
        return re.split(r"\n\n(?:Args|Returns|Raises|Source):\n|\n\n>>>", self.docstring)[0]

    @property
    def helps(self) -> dict[str, str]:
        """Descriptions of the parameters."""
        return entries(self.docstring, "Args")


@cache
def signature_of(reference: str) -> Signature:
    """Read the signature of a function, `module:function`."""
    module, name = reference.split(":")
    source = Source(module)
    function = source.function(name)
    given = function.args
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    pairs: list[tuple[ast.arg, ast.expr | None, Any]] = []
    unset = [None] * (len(given.posonlyargs + given.args) - len(given.defaults))
    for argument, default in zip(given.posonlyargs + given.args, [*unset, *given.defaults], strict=True):
        pairs.append((argument, default, positional))
    if given.vararg is not None:
        pairs.append((given.vararg, None, inspect.Parameter.VAR_POSITIONAL))
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        pairs.append((argument, default, inspect.Parameter.KEYWORD_ONLY))
    arguments = []
    for argument, default, kind in pairs:
        value = inspect.Parameter.empty if default is None else source.value(default)
        types, metadata = source.types(argument.annotation), _metadata(source, argument.annotation)
        arguments.append(Argument(argument.arg, types, metadata, value, kind))
    return Signature(source, tuple(arguments), inspect.cleandoc(ast.get_docstring(function) or ""))


def _metadata(source: Source, node: ast.expr | None) -> tuple[object, ...]:
    """Evaluate the metadata of `Annotated[type, ...]`."""
    match node:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[_, *metadata])):
            return tuple(map(source.value, metadata))
        case _:
            return ()


def entries(docstring: str, section: str) -> dict[str, str]:
    r"""Read the entries of a section of a docstring, such as Args.

    >>> entries("Do.\n\nArgs:\n    a: first\n        of all.\n    *b: second.\n\nReturns:\n    c: no", "Args")
    {'a': 'first of all.', 'b': 'second.'}
    """
    found = re.search(rf"^{section}:\n((?:    .*\n?|\n(?=    ))+)", docstring, re.MULTILINE)
    texts: dict[str, str] = {}
    for entry in re.split(r"^    (?! )", found[1] if found else "", flags=re.MULTILINE)[1:]:
        name, text = entry.split(":", 1)
        texts[name.lstrip("*")] = " ".join(text.split())
    return texts


def summary_of(reference: str) -> str:
    """Return the first sentence of a function's docstring, without its period; only the function's file is read."""
    module, name = reference.split(":")
    path = Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py")
    found = re.search(
        rf'^def {name}\(.*?^    r?"""(.+?)\.?(?:"""|\n)', path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise AttributeError(f"{reference} has no docstring")
    return found[1]
