"""Parse a command's arguments by its signature: annotations are the options, the docstring is their help."""

import functools
import inspect
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError
from cyclopts._convert import _converters

from narrlit.errors import OptionError
from narrlit.files import check_apart

Command = Callable[..., int | None]
OUTPUTS = frozenset({"out", "map", "report", "log"})
"""Options that name what a command writes."""
METAVARS = {"STR": "VALUE", "INT": "N", "FLOAT": "X"}


def call(command: Command, name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments of a command and call it.

    Args:
        command: function whose parameters are arguments or, behind `*`, options. A dataclass stands for the options
            that its fields are; `*rest` takes whatever the command has no option for.
        name: its name on the command line.
        arguments: words behind the name.

    Returns:
        The exit code; 0 where the command returns None.

    Raises:
        OptionError: for arguments that do not fit, or an output that is also an input.
    """
    app = parser(command, name)
    arguments = [re.sub("^--pseudonymise", "--pseudonymize", word) for word in arguments]  # its former spelling
    arguments = ["/dev/stdin" if word == "-" else word for word in arguments]  # cyclopts takes - for an option
    try:
        parsed, bound, _ = app.parse_args(arguments, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        message = " ".join(str(error).split()).rstrip(".").replace("Parameter ", "").replace(" requires", " needs")
        if isinstance(error, UnusedCliTokensError):
            message = f"Unexpected argument: {' '.join(error.unused_tokens or [])}"
        raise OptionError(f"{message}; narrlit {name} --help lists the options") from error
    bound.apply_defaults()
    _check_outputs(bound.arguments)
    return parsed(*bound.args, **bound.kwargs) or 0


def parser(command: Command, name: str) -> App:
    """Build the parser of a command; options are spelled with hyphens, underscores are understood."""
    app = App(
        name=f"narrlit {name}",
        help_format="plaintext",
        help_formatter=Help(),
        version_flags=[],
        result_action="return_value",
        group_parameters=Group("Options"),
        default_parameter=Parameter(negative=(), show_default=_shown),
    )
    app["--help"].show = False
    app.default(_flattened(command))
    return app


def _flattened(command: Command) -> Command:
    """Return the command with dataclasses as flat, optional options, and `*rest` for any word."""
    hints = get_type_hints(command)
    parameters = []
    # Dataclasses, which commands share, come last, so that help begins with a command's own options.
    ordered = sorted(
        inspect.signature(command).parameters.values(), key=lambda p: (p.kind, is_dataclass(hints[p.name]))
    )
    for parameter in ordered:
        kind: Any = hints[parameter.name]
        changes: dict[str, Any] = {}
        if parameter.kind is parameter.VAR_POSITIONAL:
            kind = Annotated[str, Parameter(allow_leading_hyphen=True, help="options of narrlit fit, --config first")]
        elif is_dataclass(kind):
            changes["default"] = kind()  # type: ignore[operator]
            kind = Annotated[kind, Parameter(name="*")]
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            changes["kind"] = parameter.POSITIONAL_ONLY
        hints[parameter.name] = kind
        parameters.append(parameter.replace(annotation=kind, **changes))

    @functools.wraps(command)
    def flattened(*arguments: Any, **options: Any) -> int | None:
        return command(*arguments, **options)

    flattened.__annotations__ = hints
    flattened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flattened


def _shown(default: object) -> str | None:
    """Format a default for help; None where it is not shown."""
    if default is None or default is False or default == ():
        return None
    return ",".join(map(str, default)) if isinstance(default, list | tuple) else str(default)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


# By default 1.5 would be rounded where a whole number is needed.
_converters.update({int: int, float: _finite})


class Help:
    """Print the help of a command: required options first, choices in place of types, changes last."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print one panel of options."""
        if not panel.entries:
            return
        lines = [f"{panel.title}:"]
        for entry in sorted(panel.entries, key=lambda entry: not entry.required):
            names = [entry.positional_label] if entry.positional_label else entry.positive_names[:1]
            value = "|".join(entry.choices or ()) or ("" if entry.positional_label else METAVARS.get(entry.metavar, ""))
            head = f"  {names[0]}{f' {value}' if value else ''}"
            notes = ["[required]"] * entry.required + [f"[default: {entry.default}]"] * (entry.default is not None)
            meaning = " ".join([_plain(entry.description), *notes])
            lines += [head, *_wrapped(meaning, 6)]
        print("\n".join([*lines, ""]))

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print the usage line."""
        words = [METAVARS.get(word, word) for word in _plain(usage).split()]
        print("\n".join([*_wrapped(f"Usage: {' '.join(words)}", 0, 2), ""]))

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print the docstring's paragraphs."""
        for paragraph in str(getattr(description.primary_renderable, "plain", description)).split("\n\n"):
            print("\n".join([*_wrapped(paragraph, 0), ""]))


def _plain(text: Any) -> str:
    text = getattr(text, "primary_renderable", text)
    return " ".join(str(getattr(text, "plain", text)).split())


def _wrapped(text: str, indent: int, further: int = 0) -> list[str]:
    width = min(100, shutil.get_terminal_size().columns)
    return textwrap.wrap(text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + further))


def _check_outputs(values: Mapping[str, Any]) -> None:
    """Refuse an output that is also an input or another output."""
    paths = list(_paths(values))
    check_apart(
        {f"--{name}": path for name, path, whole in paths if name in OUTPUTS and whole},
        [path for name, path, _ in paths if name not in OUTPUTS],
    )


def _paths(values: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Options with the strings that they hold, whole and divided at commas."""
    for name, value in values.items():
        if is_dataclass(value):
            yield from _paths(vars(value))
        elif isinstance(value, str | tuple | list):
            for word in [value] if isinstance(value, str) else value:
                yield name, str(word), True
                yield from ((name, part.strip(), False) for part in str(word).split(",") if part.strip())
