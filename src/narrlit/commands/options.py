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
    """Parse `arguments` for `command`, call it, and return its exit code (0 for None).

    A command with a parameter `*rest` gets what it has no option for as it stands, to hand it on.
    """
    own, rest = split(command, arguments) if takes_rest(command) else (list(arguments), [])
    values = build_parser(command, name).parse_args([with_underscores(argument) for argument in own]).as_dict()
    for parameter, kind in _groups(command).items():
        values[parameter] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
    return command(*rest, **values) or 0


def takes_rest(command: Callable[..., int | None]) -> bool:
    """Whether a command hands options on."""
    return any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(command).parameters.values())


def split(command: Callable[..., int | None], arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments that are options of the command, each with its value, and the others.

    >>> def command(*rest: str, folds: int = 5, quick: bool = False) -> None: ...
    >>> split(command, ["--config", "c.yaml", "--folds", "3", "--quick", "--trainer.max_epochs=1"])
    (['--folds', '3', '--quick'], ['--config', 'c.yaml', '--trainer.max_epochs=1'])
    """
    parameters = inspect.signature(command).parameters
    own: list[str] = []
    rest: list[str] = []
    belongs_to = rest
    value_is_due = False
    for argument in arguments:
        if argument.startswith("-") and not value_is_due:
            name, equals, _ = with_underscores(argument).removeprefix("--").partition("=")
            known = name in parameters
            belongs_to = own if known or argument in ("-h", "--help") else rest
            value_is_due = known and not equals and parameters[name].default is not False
        else:
            value_is_due = False
        belongs_to.append(argument)
        if belongs_to is own and not value_is_due:
            belongs_to = rest
    return own, rest


def _groups(command: Callable[..., int | None]) -> dict[str, Any]:
    """The parameters that are dataclasses: each stands for several options."""
    return {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}


def build_parser(command: Callable[..., int | None], name: str) -> ArgumentParser:
    """The parser of a function.

    Parameters that are not keyword-only are positional, and may be left out where they have a default. Keyword-only
    ones are options; a bool that is False unless given is a flag, and a dataclass gives an option for each of its
    fields, under the field's name.
    """
    from docstring_parser import parse

    documented = parse(inspect.getdoc(command) or "")
    parser = CommandParser(prog=f"narrlit {name}", description=documented.short_description)
    groups = _groups(command)
    parameters = [p for p in inspect.signature(command).parameters.values() if p.name not in groups]
    flags: set[str] = {p.name for p in parameters if p.default is False}
    options: set[str] = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - flags
    positional: set[str] = {p.name for p in parameters if p.kind is not p.VAR_POSITIONAL} - flags - options
    # Of an optional one jsonargparse would make an option.
    optional: set[str] = {p.name for p in parameters if p.name in positional and p.default is not p.empty}
    skipped = {*flags, *groups, *optional}
    parser.add_function_arguments(command, as_group=False, as_positional=True, skip={*skipped, *options})
    meanings = {p.arg_name: p.description for p in documented.params}
    for parameter in parameters:
        if parameter.name in optional:
            usual, meaning = parameter.default, meanings.get(parameter.name)
            parser.add_argument(parameter.name, nargs="?", type=type(usual), default=usual, help=meaning)
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
