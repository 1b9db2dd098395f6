"""A command line made from a typed function: its parameters are the options, its docstring is the help."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from jsonargparse import ArgumentParser

from narrlit.commands.refusals import Refusing


class CommandParser(Refusing, ArgumentParser):
    """A command's parser."""


def call(command: Callable[..., int | None], name: str, arguments: Sequence[str]) -> int:
    """Parse `arguments` for `command`, call it, and return its exit code (0 for None)."""
    parser = build_parser(command, name)
    values = parser.parse_args([with_underscores(argument) for argument in arguments]).as_dict()
    for parameter, kind in _groups(command).items():
        values[parameter] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
    return command(**values) or 0


def _groups(command: Callable[..., int | None]) -> dict[str, Any]:
    """The parameters that are dataclasses: each stands for several options."""
    return {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}


def build_parser(command: Callable[..., int | None], name: str) -> ArgumentParser:
    """The parser of a function.

    Parameters without a default are positional, keyword-only ones are options, and a bool that is False unless given
    is a flag. A keyword-only dataclass gives an option for each of its fields, under the field's name.
    """
    from docstring_parser import parse

    documented = parse(inspect.getdoc(command) or "")
    parser = CommandParser(prog=f"narrlit {name}", description=documented.short_description)
    groups = _groups(command)
    parameters = [p for p in inspect.signature(command).parameters.values() if p.name not in groups]
    flags: set[str] = {p.name for p in parameters if p.default is False}
    options: set[str] = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - flags
    positional: set[str] = {p.name for p in parameters} - flags - options
    skipped = {*flags, *groups}
    parser.add_function_arguments(command, as_group=False, as_positional=True, skip={*skipped, *options})
    for kind in groups.values():
        switches = {field.name for field in fields(kind) if field.default is False}
        parser.add_class_arguments(kind, as_group=False, skip=switches)
        _add_flags(parser, switches, inspect.getdoc(kind))
    parser.add_function_arguments(command, as_group=False, as_positional=False, skip={*skipped, *positional})
    _add_flags(parser, flags, inspect.getdoc(command))
    return parser


def _add_flags(parser: ArgumentParser, flags: set[str], documentation: str | None) -> None:
    from docstring_parser import parse

    meanings = {p.arg_name: p.description for p in parse(documentation or "").params}
    for flag in sorted(flags):
        parser.add_argument(f"--{flag}", action="store_true", help=meanings.get(flag))


def with_underscores(argument: str) -> str:
    """An option's name with underscores, as Python has it; `--track-a` and `--track_a` are the same.

    >>> with_underscores("--track-a=my-file"), with_underscores("my-file")
    ('--track_a=my-file', 'my-file')
    """
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument[2:].partition("=")
    return f"--{name.replace('-', '_')}{equals}{value}"
