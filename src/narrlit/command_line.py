"""Command line of a single command: parse its words, check its outputs, call its function, and print its result."""

import inspect
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from narrlit.arguments import ARGUMENTS, CommandOptions, options_of, panel
from narrlit.compat.cyclopts import refuse_inexact_numbers
from narrlit.console import say
from narrlit.declarations import OPTIONS, Command
from narrlit.errors import OptionError, WriteOption, as_parameter, mistake_behind
from narrlit.files import Output, check_apart, check_free, check_suffix, check_writable

_SETTING = re.compile(r"(data|model|trainer|checkpoint|last_checkpoint)\.[a-z_.]+|config|ckpt_path|seeds")
"""Pattern of a setting of `narrlit fit`."""
_NAMES = {"pseudonyms": "pseudonymize", "backbones": "backbone", "tasks": "mteb"}
"""Options with other names than the library's parameters in messages."""
FORMER_OPTIONS = {"--one-per-line": "--split=lines", "--by-blank-line": "--split=blank-lines"}
"""Options of earlier releases, which still work and print the new one."""
METAVARS = {"STR": "VALUE", "INT": "N", "FLOAT": "X"}
"""Names of value types in help, keyed by those of cyclopts."""


def call(command: Command, arguments: Sequence[str]) -> int:
    """Parse the arguments of a command, call its function, and print or write its result.

    Returns:
        The exit code: that of a function that returns a number, 1 for a result that is incomplete, else 0.

    Raises:
        OptionError: if the arguments are invalid, an output is also an input, or an output exists and `--overwrite` is
            not given.
    """
    plan = options_of(command)
    with options_as(_flags_of(plan)):
        values = parse(plan, arguments)
        if values is None:
            return 0
        _check_outputs(plan, values)
        result = plan.call.call(values)
        if result is None or isinstance(result, int):
            return result or 0
        return _finish(plan, result, values)


def _finish(plan: CommandOptions, result: Any, values: Mapping[str, Any]) -> int:
    """Write and print the result of a command; return the exit code."""
    out, output = values.get("out"), plan.command.out
    if out is not None and "out" in {option.name for option in plan.added}:
        result.write(out)
    is_line = out is not None and "\n" not in str(result)
    if values.get("json"):
        print(json.dumps(result.record))
    elif not is_line:
        print(result)
    if is_line:
        say(f"{out}: {result}")
    elif out is not None and output is not None and not output.continued:
        written = [str(file) for file in output.files(out, values) if file.exists()]
        say(f"written: {', '.join(written)}")
    return int(bool(getattr(result, "incomplete", False)))


@contextmanager
def options_as(write_option: WriteOption) -> Iterator[None]:
    """Let a NarrlitError raised in the block write options in its sentence by a function, such as `setting_flag`."""
    try:
        yield
    except Exception as error:
        mistake = mistake_behind(error)
        if mistake is not None:
            mistake.write_option = write_option
        raise


def _flags_of(plan: CommandOptions) -> WriteOption:
    """Write parameters of the library as options of a command and, if it accepts them, of `narrlit fit`."""
    options = {option.name for option in plan.options}
    takes_settings = any(option.kind is inspect.Parameter.VAR_POSITIONAL for option in plan.options)
    write_other = setting_flag if takes_settings else as_parameter

    def write_option(name: str, value: str) -> str:
        option = _NAMES.get(name, name)
        return _flag(option.replace("_", "-"), value) if option in options else write_other(name, value)

    return write_option


def setting_flag(name: str, value: str) -> str:
    """Write a setting of a fit as an option of `narrlit fit`.

    >>> setting_flag("data.train", "FILE"), setting_flag("ckpt_path", ""), setting_flag("k", "1")
    ('--data.train FILE', '--ckpt_path', '`k=1`')
    """
    return _flag(name, value) if _SETTING.fullmatch(name) else as_parameter(name, value)


def _flag(option: str, value: str) -> str:
    """Write an option, with its value if there is one."""
    return f"--{option} {value}" if value else f"--{option}"


def parse(plan: CommandOptions, arguments: Sequence[str]) -> dict[str, Any] | None:
    """Parse the arguments of a command into the values of its options; print help and return None for `--help`."""
    app = parser(plan)
    words = [_accepted_word(word) for word in arguments]
    try:
        parsed, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        raise OptionError("invalid_arguments", problem=_describe(error), command=plan.command.name) from error
    if parsed is not app.default_command:
        parsed(*bound.args, **bound.kwargs)
        return None
    bound.apply_defaults()
    return dict(bound.arguments)


def parser(plan: CommandOptions, name: str | None = None) -> App:
    """Build the parser of a command; options have hyphens, underscores are accepted."""

    def command(*arguments: object, **options: object) -> None:
        """Stand for the function, which is called with parts made of the options."""

    parameters = [option.parameter for option in plan.options]
    command.__doc__ = plan.description
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    app = App(
        name=name or f"narrlit {plan.command.name}",
        help_format="plaintext",
        help_formatter=Help(_optional_arguments(parameters)),
        version_flags=[],
        result_action="return_value",
        group_arguments=panel(ARGUMENTS),
        group_parameters=panel(OPTIONS),
        default_parameter=Parameter(negative=(), show_default=_shown),
    )
    app["--help"].show = False
    app.default(command)
    return app


def _accepted_word(word: str) -> str:
    """Write a word of the command line as cyclopts accepts it."""
    if word == "-":  # cyclopts would read it as an option
        return "/dev/stdin"
    if word in FORMER_OPTIONS:
        print(f"narrlit: note: {word} is {FORMER_OPTIONS[word]} now", file=sys.stderr)
        return FORMER_OPTIONS[word]
    return re.sub("^--pseudonymise", "--pseudonymize", word)  # the former spelling


def _describe(error: CycloptsError) -> str:
    """Describe invalid arguments in a few words."""
    if isinstance(error, UnusedCliTokensError):
        return f"Unexpected argument: {' '.join(error.unused_tokens or [])}"
    if isinstance(error, MissingArgumentError) and error.keyword is None and error.argument is not None:
        return f"{error.argument.name} is missing"
    message = " ".join(str(error).split()).rstrip(".")
    return message.replace("Parameter ", "").replace(" requires", " needs")


def _optional_arguments(parameters: Sequence[inspect.Parameter]) -> str:
    """Write the arguments that may be omitted as in a usage line, such as `[TEST]` or `[FIT...]`."""
    arguments = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments.append(f"[{parameter.name.upper()}...]")
        elif parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is not parameter.empty:
            arguments.append(f"[{parameter.name.upper()}]")
    return " ".join(arguments)


def _shown(default: object) -> str | None:
    """Format a default for help; return None if it is not shown."""
    if default is None or default is False or default == ():
        return None
    return ",".join(map(str, default)) if isinstance(default, list | tuple) else str(default)


refuse_inexact_numbers()


class Help:
    """Print the help of a command: required options first, choices instead of types."""

    def __init__(self, optional_arguments: str) -> None:
        """Store the optional arguments of the command, for the usage line."""
        self.optional_arguments = optional_arguments

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print one panel of options."""
        if not panel.entries:
            return
        lines = [f"{panel.title}:"]
        for option in sorted(panel.entries, key=lambda option: not option.required):
            lines += _option_help(option)
        print("\n".join([*lines, ""]))

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        """Print the usage line."""
        names = METAVARS | dict.fromkeys(("[ARGS]", "[ARGS...]"), self.optional_arguments)
        words = [names.get(word, word) for word in _plain(usage).split()]
        lines = _wrapped(f"Usage: {' '.join(words)}", 0, 2)
        print("\n".join([*lines, ""]))

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Print the docstring's paragraphs."""
        text = str(getattr(description.primary_renderable, "plain", description))
        for paragraph in text.split("\n\n"):
            print("\n".join([*_wrapped(paragraph, 0), ""]))


def _option_help(option: Any) -> list[str]:
    """Describe an option: its name with type or choices, and in the following lines its meaning."""
    if option.positional_label:
        name, value = option.positional_label, ""
    else:
        name, value = option.positive_names[0], METAVARS.get(option.metavar, "")
    if option.choices:
        value = "|".join(option.choices)
    meaning = _meaning(_plain(option.description))
    if option.required:
        meaning += " [required]"
    if option.default is not None:
        meaning += f" [default: {option.default}]"
    return [f"  {name} {value}".rstrip(), *_wrapped(meaning, 6)]


def _meaning(text: str) -> str:
    """Write a description of a parameter as that of an option: without code marks, and `default` for None."""
    return re.sub("`([^`]*)`", r"\1", re.sub(r"\bNone: ", "default: ", text))


def _plain(text: object) -> str:
    """Convert a text of cyclopts or rich to one line without style."""
    text = getattr(text, "primary_renderable", text)
    return " ".join(str(getattr(text, "plain", text)).split())


def _wrapped(text: str, indent: int, further: int = 0) -> list[str]:
    """Wrap a text to the terminal; all lines but the first are indented further."""
    width = min(100, shutil.get_terminal_size().columns)
    return textwrap.wrap(text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + further))


def _check_outputs(plan: CommandOptions, values: Mapping[str, Any]) -> None:
    """Refuse an output that has a wrong suffix, is also an input or another output, can't be written, or exists."""
    outputs = plan.outputs
    for name, output in outputs:
        if values.get(name) is not None:
            check_suffix(values[name], output.suffixes)
    check_apart(_written_files(outputs, values), _input_words(plan, values))
    new_files = list(_new_files(outputs, values))
    for file, _ in new_files:
        check_writable(file)
    for file, kind in new_files:
        check_free([file], values["overwrite"], kind=kind)


def _written_files(outputs: Sequence[tuple[str, Output]], values: Mapping[str, Any]) -> list[tuple[str, str | Path]]:
    """List what a command writes, each with its option: the paths that options name, then the files beside them."""
    named = dict[str, str | Path]()
    for name, _ in outputs:
        if values.get(name) is not None:
            named[f"--{name}"] = values[name]
    written = list(named.items())
    for name, output in outputs:
        value = values.get(name)
        for file in output.files(value, values):
            if value is None or file != Path(value):
                written.append((f"--{name} writes", file))
    return written


def _new_files(outputs: Sequence[tuple[str, Output]], values: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the files that may not exist yet, with `folder` for those in a folder that an option names, or `file`."""
    for name, output in outputs:
        if output.continued:
            continue
        value = values.get(name)
        folder = None if value is None else Path(value)
        for file in output.files(value, values):
            yield file, "folder" if file.parent == folder else "file"


def _input_words(plan: CommandOptions, values: Mapping[str, object]) -> list[str]:
    """List the words that may name a command's inputs: values of options that are neither outputs nor choices."""
    words = list[str]()
    for option in plan.options:
        if not option.outputs and not _is_choice(option.type):
            words += _words(values[option.name])
    return words


def _is_choice(hint: object) -> bool:
    """Return True for a type with fixed choices, which can't name a file."""
    return get_origin(hint) is Literal or any(map(_is_choice, get_args(hint)))


def _words(value: object) -> Iterator[str]:
    """Yield the strings in a value, both whole and split at commas."""
    if isinstance(value, str):
        yield value
        yield from filter(None, map(str.strip, value.split(",")))
    elif isinstance(value, tuple | list):
        for word in value:
            yield from _words(str(word))


def completion(words: Sequence[str], commands: Sequence[Command], stages: Mapping[str, str]) -> str:
    """Return the script with which a shell completes the words of all commands.

    Raises:
        OptionError: if the shell is unknown.
    """
    shells: dict[str, Literal["bash", "zsh", "fish"]] = {"bash": "bash", "zsh": "zsh", "fish": "fish"}
    shell = words[0] if words else ""
    if shell not in shells:
        raise OptionError("unknown_shell", shell=shell, known=list(shells))
    app = App(name="narrlit", help_format="plaintext", version_flags=[])
    groups: dict[str, App] = {}
    for stage, purpose in stages.items():
        app.command(App(name=stage, help=purpose))
    for command in commands:
        group, _, name = command.name.rpartition(" ")
        if group and group not in groups:
            groups[group] = App(name=group)
            app.command(groups[group])
        groups.get(group, app).command(parser(options_of(command), name))
    return app.generate_completion(shell=shells[shell])
