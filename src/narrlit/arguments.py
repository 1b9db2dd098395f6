"""Parse the arguments of a command by its signature: parameters become options, the docstring their help."""

import functools
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, UnusedCliTokensError

from narrlit.compat.cyclopts import refuse_inexact_numbers
from narrlit.errors import OptionError, WriteOption, as_parameter, mistake_behind
from narrlit.files import Output, OutputOptions, check_apart, check_free, check_suffix, check_writable

Command = Callable[..., int | None]
OUTPUT_OPTIONS = "output_options"
"""Name of the parameter added to commands that write files."""
_SETTING = re.compile(r"(data|model|trainer|checkpoint|last_checkpoint)\.[a-z_.]+|config|ckpt_path|seeds")
"""Pattern of a setting of `narrlit fit`."""
_OPTIONS = {
    "pseudonyms": "pseudonymize",
    "backbones": "backbone",
    "tasks": "mteb",
}
"""Options with other names than the library's parameters."""
METAVARS = {"STR": "VALUE", "INT": "N", "FLOAT": "X"}
"""Names of value types in help, keyed by those of cyclopts."""


def call(command: Command, name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments of a command and call it.

    Args:
        command: function whose parameters are arguments or, after `*`, options. The fields of a dataclass are options,
            too; `*rest` takes all words that are not options of the command.
        name: its name on the command line.
        arguments: words after the name.

    Returns:
        The exit code; 0 if the command returns None.

    Raises:
        OptionError: if the arguments are invalid, an output is also an input, or an output exists and `--overwrite` is
            not given.
    """
    with options_as(_flags_of(command)):
        return _call(command, name, arguments)


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


def _flags_of(command: Command) -> WriteOption:
    """Write parameters of the library as options of a command and, if it accepts them, of `narrlit fit`."""
    options = {name for name, _ in (*_hints(command), *_hints(OutputOptions))}
    names = dict(_OPTIONS)
    for option, output in outputs_of(command):
        if output.parameter is not None:
            names[output.parameter] = option
    parameters = inspect.signature(command).parameters.values()
    takes_settings = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    write_other = setting_flag if takes_settings else as_parameter

    def write_option(name: str, value: str) -> str:
        option = names.get(name, name)
        return _flag(option.replace("_", "-"), value) if option in options else write_other(name, value)

    return write_option


def _call(command: Command, name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments of a command, check its outputs and call it."""
    app = parser(command, name)
    words = [_accepted_word(word) for word in arguments]
    try:
        parsed, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        raise OptionError("invalid_arguments", problem=_describe(error), command=name) from error
    bound.apply_defaults()
    if parsed is app.default_command:  # without the usage text
        _check_outputs(command, bound.arguments)
    return parsed(*bound.args, **bound.kwargs) or 0


def _accepted_word(word: str) -> str:
    """Write a word of the command line as cyclopts accepts it."""
    if word == "-":  # cyclopts would read it as an option
        return "/dev/stdin"
    return re.sub("^--pseudonymise", "--pseudonymize", word)  # the former spelling


def _describe(error: CycloptsError) -> str:
    """Describe invalid arguments in a few words."""
    if isinstance(error, UnusedCliTokensError):
        return f"Unexpected argument: {' '.join(error.unused_tokens or [])}"
    if isinstance(error, MissingArgumentError) and error.keyword is None and error.argument is not None:
        return f"{error.argument.name} is missing"
    message = " ".join(str(error).split()).rstrip(".")
    return message.replace("Parameter ", "").replace(" requires", " needs")


def setting_flag(name: str, value: str) -> str:
    """Write a setting of a fit as an option of `narrlit fit`.

    >>> setting_flag("data.train", "FILE"), setting_flag("ckpt_path", ""), setting_flag("k", "1")
    ('--data.train FILE', '--ckpt_path', '`k=1`')
    """
    return _flag(name, value) if _SETTING.fullmatch(name) else as_parameter(name, value)


def _flag(option: str, value: str) -> str:
    """Write an option, with its value if there is one."""
    return f"--{option} {value}" if value else f"--{option}"


def parser(command: Command, name: str) -> App:
    """Build the parser of a command; options have hyphens, underscores are accepted."""
    flattened = _flattened(command)
    app = App(
        name=f"narrlit {name}",
        help_format="plaintext",
        help_formatter=Help(_optional_arguments(flattened)),
        version_flags=[],
        result_action="return_value",
        group_parameters=Group("Options"),
        default_parameter=Parameter(negative=(), show_default=_shown),
    )
    app["--help"].show = False
    app.default(flattened)
    return app


def _optional_arguments(command: Command) -> str:
    """Write the arguments that may be omitted as in a usage line, such as `[TEST]` or `[FIT...]`."""
    arguments = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments.append(f"[{parameter.name.upper()}...]")
        elif parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is not parameter.empty:
            arguments.append(f"[{parameter.name.upper()}]")
    return " ".join(arguments)


def _flattened(command: Command) -> Command:
    """Return the command with the fields of dataclasses as options of their own, and `*rest` for any words.

    A command with outputs also gets the options of `OutputOptions`.
    """
    hints = get_type_hints(command)

    def position(parameter: inspect.Parameter) -> tuple[int, bool]:
        # Shared options (dataclasses) come last, so that help begins with the command's own options.
        return parameter.kind, is_dataclass(hints[parameter.name])

    parameters = []
    for parameter in sorted(inspect.signature(command).parameters.values(), key=position):
        parameters.append(_flattened_parameter(parameter, hints[parameter.name]))
    is_extended = OUTPUT_OPTIONS not in hints and any(not output.continued for _, output in outputs_of(command))
    if is_extended:
        added = inspect.Parameter(OUTPUT_OPTIONS, inspect.Parameter.KEYWORD_ONLY)
        parameters.append(_flattened_parameter(added, OutputOptions))

    @functools.wraps(command)
    def flattened(*arguments: object, **options: object) -> int | None:
        if is_extended:
            del options[OUTPUT_OPTIONS]
        return command(*arguments, **options)

    flattened.__annotations__ = hints | {parameter.name: parameter.annotation for parameter in parameters}
    flattened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    return flattened


def _flattened_parameter(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    """Return a parameter of a command for cyclopts: fields are options only, all others work by position or by name."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        words = Parameter(allow_leading_hyphen=True, help="options of `narrlit fit`, such as --config.")
        return parameter.replace(annotation=Annotated[str, words])
    if is_dataclass(hint) and isinstance(hint, type):
        return parameter.replace(annotation=Annotated[hint, Parameter(name="*")], default=hint())
    if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        return parameter.replace(annotation=hint, kind=parameter.POSITIONAL_ONLY)
    return parameter.replace(annotation=hint)


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
    meaning = _plain(option.description)
    if option.required:
        meaning += " [required]"
    if option.default is not None:
        meaning += f" [default: {option.default}]"
    return [f"  {name} {value}".rstrip(), *_wrapped(meaning, 6)]


def _plain(text: object) -> str:
    """Convert a text of cyclopts or rich to one line without style."""
    text = getattr(text, "primary_renderable", text)
    return " ".join(str(getattr(text, "plain", text)).split())


def _wrapped(text: str, indent: int, further: int = 0) -> list[str]:
    """Wrap a text to the terminal; all lines but the first are indented further."""
    width = min(100, shutil.get_terminal_size().columns)
    return textwrap.wrap(text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + further))


def outputs_of(command: Command | type) -> list[tuple[str, Output]]:
    """List the parameters of a command, including fields of dataclasses, that name files it writes."""
    outputs = []
    for name, hint in get_type_hints(command, include_extras=True).items():
        if is_dataclass(hint) and isinstance(hint, type):
            outputs += outputs_of(hint)
        for metadata in _metadata(hint):
            if isinstance(metadata, Output):
                outputs.append((name, metadata))
    return outputs


def _metadata(hint: Any) -> list[Any]:
    """Collect the metadata of a type, or of all members of a union."""
    if get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    metadata = []
    for member in get_args(hint):
        metadata += _metadata(member)
    return metadata


def _check_outputs(command: Command, arguments: Mapping[str, object]) -> None:
    """Refuse an output that has a wrong suffix, is also an input or another output, can't be written, or exists."""
    outputs, values = outputs_of(command), dict(_flat(arguments))
    for name, output in outputs:
        if values.get(name) is not None:
            check_suffix(values[name], output.suffixes)
    check_apart(_written_files(outputs, values), _input_words(command, values))
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


def _input_words(command: Command, values: Mapping[str, object]) -> list[str]:
    """List the words that may name a command's inputs: values of options that are neither outputs nor choices."""
    outputs = {name for name, _ in outputs_of(command)}
    hints = dict(_hints(command))
    words = list[str]()
    for name, value in values.items():
        if name not in outputs and not _is_choice(hints.get(name)):
            words += _words(value)
    return words


def _flat(values: Mapping[str, object]) -> Iterator[tuple[str, Any]]:
    """Yield options and their values; a dataclass is replaced by its fields."""
    for name, value in values.items():
        if is_dataclass(value):
            yield from _flat(vars(value))
        else:
            yield name, value


def _hints(command: Command | type) -> Iterator[tuple[str, Any]]:
    """Yield options and their types; a dataclass is replaced by its fields."""
    for name, hint in get_type_hints(command).items():
        if is_dataclass(hint) and isinstance(hint, type):
            yield from _hints(hint)
        else:
            yield name, hint


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
