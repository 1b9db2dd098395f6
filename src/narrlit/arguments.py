"""Options of a command, derived from the signature of the function that it calls.

Parameters become arguments and options, the docstring their help. A parameter whose value must be opened first, such as
an encoder, is replaced by the parameters of the function that opens it: those of `narrlit.load`.
"""

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter

from narrlit.declarations import OPTIONS, Command, Opener
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.signatures import Argument, Signature, Source, entries, signature_of

T = TypeVar("T")
REQUIRED, POSITIONAL = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
TEXTS = ("str", "Path", "PathLike[str]")
NUMBERS: dict[str, type] = {"bool": bool, "int": int, "float": float}
ARGUMENTS = "Arguments"
"""Title of positional arguments in help."""
OPTIONAL: Any = None
"""Default of a deferred value whose first option may be omitted."""
OPENERS = {
    "StoryEncoder": Opener("narrlit.encoding.loading:load", "Model", {"cache": "runs/embeddings"}),
    "Configs": Opener("narrlit.commands.fit_words:read_fit_words"),
    "PseudonymOptions": Opener("narrlit.commands.opening:pseudonyms", "Pseudonyms"),
    "Collection": Opener("narrlit.commands.opening:collection"),
    "Index": Opener("narrlit.commands.opening:index"),
    "EncoderLike": Opener("narrlit.encoding.loading:load", "Model", {"cache": "runs/embeddings"}),
    "System": Opener("narrlit.commands.opening:system"),
    "Similarity": Opener("narrlit.commands.opening:system"),
}
"""Openers by the name of the type that they return."""


class Deferred(Generic[T]):
    """Value that a command opens itself, such as a model that is not needed if a folder is an index."""

    def __init__(self, part: "CallOptions", values: Mapping[str, Any]) -> None:
        self._part, self._values = part, values

    @property
    def changed(self) -> list[str]:
        """Options that differ from their defaults."""
        return self._part.changed(self._values)

    def get(self, option: str) -> Any:
        """Return the value of an option."""
        return self._values[option]

    def open(self, **others: object) -> T:
        """Open the value.

        Args:
            **others: arguments of the function that opens it, in place of its options.
        """
        opened: T = self._part.call(self._values, **others)
        return opened


@cache
def panel(title: str) -> Group:
    """Return the panel of help with this title, one for all options; the command's own come first."""
    return Group(title, sort_key={ARGUMENTS: 0, OPTIONS: 1}.get(title, 2))


@dataclass(frozen=True)
class Option:
    """Option or positional argument.

    Attributes:
        name: name of the parameter.
        type: type of its value for cyclopts.
        default: default; `inspect.Parameter.empty` if it is required.
        help: its description.
        title: title of its panel in help.
        kind: kind of the parameter, as for `inspect.Parameter`.
        item: type of the items of a comma-separated list; None for other values.
        empty: value for the function if the option is not given.
        outputs: what the option writes; empty if it names no file to write.
    """

    name: str
    type: Any
    default: object
    help: str
    title: str
    kind: Any
    item: Callable[[str], Any] | None = None
    outputs: tuple[Output, ...] = ()
    empty: object = None

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return the value for the function."""
        value = values[self.name]
        if value is None:
            return self.empty
        if self.item is None:
            return value
        words = value if isinstance(value, str) else ",".join(value)
        try:
            return [self.item(word.strip()) for word in words.split(",") if word.strip()]
        except ValueError as error:
            raise OptionError("invalid_list", option=self.name, found=words) from error

    @property
    def panel(self) -> str:
        """Title of the panel of help in which it is shown."""
        return ARGUMENTS if self.kind is inspect.Parameter.POSITIONAL_ONLY else self.title

    @property
    def parameter(self) -> inspect.Parameter:
        """Parameter for cyclopts."""
        details = Parameter(help=self.help, group=panel(self.panel))
        if self.kind is inspect.Parameter.VAR_POSITIONAL:
            details = Parameter(help=self.help, allow_leading_hyphen=True)
        return inspect.Parameter(self.name, self.kind, default=self.default, annotation=Annotated[self.type, details])


@dataclass(frozen=True)
class CallOptions:
    """Call of a function or dataclass whose arguments are options, or parts themselves.

    Attributes:
        function: `module:function`, or a dataclass.
        members: options and parts by parameter.
        constants: further arguments.
        optional: the value is None unless its first option is given.
        deferred: the value is opened by the command.
    """

    function: str | type
    members: Mapping[str, "Option | CallOptions"]
    constants: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False
    deferred: bool = False

    @property
    def options(self) -> list[Option]:
        """All options, in order, each once."""
        options: dict[str, Option] = {}
        for member in self.members.values():
            for option in member.options if isinstance(member, CallOptions) else [member]:
                options.setdefault(option.name, option)
        return list(options.values())

    def changed(self, values: Mapping[str, Any]) -> list[str]:
        """List the options that differ from their defaults."""
        return [option.name for option in self.options if values[option.name] != option.default]

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return the value for the function of which this is an argument."""
        if self.deferred:
            return Deferred(self, values)
        first = self.options[0].name
        if self.optional and values[first] is None:
            others = self.changed(values)
            if others:
                raise OptionError("options_need_option", options=others, option=first)
            return None
        return self.call(values)

    def call(self, values: Mapping[str, Any], **others: object) -> Any:
        """Call the function with the values of the options."""
        arguments: dict[str, Any] = {**self.constants, **others}
        words: Sequence[Any] = ()
        for name, member in self.members.items():
            if isinstance(member, Option) and member.kind is inspect.Parameter.VAR_POSITIONAL:
                words = [*arguments.values(), *values[name]]  # parameters before these words have no names
                arguments = {}
            elif name not in arguments:
                arguments[name] = member.value(values)
        return _function(self.function)(*words, **arguments)


def _function(reference: str | type) -> Callable[..., Any]:
    """Import a function."""
    if isinstance(reference, type):
        return reference
    module, name = reference.split(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


@dataclass(frozen=True)
class CommandOptions:
    """Options of a command, and the call that they make.

    Attributes:
        command: the command.
        description: its description in help.
        call: the call.
        added: options that the function does not have: `--out`, `--overwrite` and `--json`.
    """

    command: Command
    description: str
    call: CallOptions
    added: Sequence[Option]

    @property
    def options(self) -> list[Option]:
        """All options; the command's own come first, and required ones before others."""
        options = [*self.call.options, *self.added]
        return sorted(options, key=lambda option: (option.kind, option.title != OPTIONS))

    @property
    def outputs(self) -> list[tuple[str, Output]]:
        """Options that name files to write."""
        return [(option.name, output) for option in self.options for output in option.outputs]


def options_of(command: Command) -> CommandOptions:
    """Derive the options of a command from the signature of its function."""
    signature = signature_of(command.function)
    call = _call_of(Opener(command.function), command, command.opens)
    own = {option.name for option in call.options}
    outputs = [output for option in call.options for output in option.outputs]
    added = []
    if command.out is not None and "out" not in own:
        added.append(_added("out", str | None, None, _written(command.out), command.out))
        outputs.append(command.out)
    if "overwrite" not in own and any(not output.continued for output in outputs):
        added.append(_added("overwrite", bool, False, "replace existing files, which are refused by default."))
    if command.json:
        added.append(_added("json", bool, False, "print one JSON object to stdout, and nothing else."))
    return CommandOptions(command, signature.description, call, added)


def _added(name: str, kind: Any, default: object, text: str, *outputs: Output) -> Option:
    """Create an option that the function does not have."""
    if any(output.required for output in outputs):
        default = REQUIRED
    return Option(name, kind, default, text, OPTIONS, inspect.Parameter.KEYWORD_ONLY, outputs=outputs)


def _written(output: Output) -> str:
    """Describe the files of an output for help."""
    if output.suffixes:
        return f"file to write ({', '.join(output.suffixes)})."
    names = [name.removeprefix("{path}/") for name in output.names]
    return f"folder for {', '.join(names)}."


def _call_of(
    opener: Opener,
    command: Command,
    opens: Mapping[str, Opener] = MappingProxyType({}),
    hidden: frozenset[str] = frozenset(),
    optional: bool = False,
) -> CallOptions:
    """Derive the call of a function from its signature; hidden parameters keep their defaults."""
    signature = signature_of(opener.function)
    omitted = {*hidden, *command.without, *opener.constants}
    shown = [argument for argument in signature.arguments if argument.name not in omitted]
    openers = {argument.name: opens.get(argument.name) or _opener_of(argument) for argument in shown}
    own = {argument.name for argument in shown if openers[argument.name] is None}
    members: dict[str, Option | CallOptions] = {}
    constants = dict(opener.constants)
    for argument in shown:
        inner = openers[argument.name]
        if inner is not None:
            part = _call_of(inner, command, hidden=hidden | own, optional=argument.default is None)
            deferred = any(name.startswith("Deferred[") for name in argument.type_names)
            members[argument.name] = replace(part, deferred=deferred)
        elif argument.name == "progress":
            constants["progress"] = True
        else:
            members[argument.name] = _member(argument, signature, opener.title, command)
    if optional:
        members = _without_first_default(members)
    return CallOptions(opener.function, members, constants, optional)


def _opener_of(argument: Argument) -> Opener | None:
    """Return the opener of a parameter by its type; None if its value is that of an option."""
    for name in argument.type_names:
        for type_name, opener in OPENERS.items():
            if name in (type_name, f"Deferred[{type_name}]"):
                return opener
    return None


def _without_first_default(members: Mapping[str, Option | CallOptions]) -> dict[str, Option | CallOptions]:
    """Return members of which the first, such as the name of a model, is None if it is not given."""
    name, *others = members
    first = members[name]
    if isinstance(first, Option):
        first = replace(first, default=None, type=first.type | None)
    return {name: first, **{other: members[other] for other in others}}


def _member(argument: Argument, signature: Signature, title: str, command: Command) -> Option | CallOptions:
    """Derive the option of a parameter, or the options of a dataclass."""
    value_type, item = _value_type(argument, signature.source)
    if isinstance(value_type, type) and is_dataclass(value_type):
        return _fields_of(value_type, optional=argument.default is None)
    outputs = tuple(metadata for metadata in argument.metadata if isinstance(metadata, Output))
    if command.out is not None and argument.name == "out":
        outputs = (command.out,)
    kind, default, empty = argument.kind, argument.default, None
    if kind is POSITIONAL:
        is_option = value_type in (bool, int, float) or argument.name == "out"
        is_option = is_option or (title != OPTIONS and default is not REQUIRED)
        kind = inspect.Parameter.KEYWORD_ONLY if is_option else inspect.Parameter.POSITIONAL_ONLY
    if isinstance(default, Sequence) and not isinstance(default, str):
        default, empty = ",".join(map(str, default)) or None, default
    elif item is not None and default not in (None, REQUIRED):
        default = str(default)
    if default is None:
        value_type = value_type | None
    text = signature.helps.get(argument.name, "")
    if item is not None and kind is inspect.Parameter.KEYWORD_ONLY and "comma-separated" not in text:
        text = f"comma-separated {text}"
    return Option(argument.name, value_type, default, text, title, kind, item, outputs, empty)


def _value_type(argument: Argument, source: Source) -> tuple[Any, Callable[[str], Any] | None]:
    """Return the type of a parameter for cyclopts, and the type of the items of a comma-separated list."""
    for node in argument.types:
        name = ast.unparse(node)
        if name.startswith("tuple["):
            return tuple[str, ...], str
        if name in TEXTS:
            return str, None
    for node in argument.types:
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Sequence", "Iterable"):
            inner = ast.unparse(source.types(node.slice)[0])
            return str, NUMBERS.get(inner, str)
    for node in argument.types:
        name = ast.unparse(node)
        if name != "None":
            return NUMBERS.get(name) or source.value(node), None
    raise TypeError(f"{source.module}: {argument.name} has no type")


def _fields_of(kind: type, optional: bool) -> CallOptions:
    """Derive the options of a dataclass from its fields."""
    docstring = inspect.cleandoc(kind.__doc__ or "")
    title, helps = re.split("[.;:]", docstring)[0], entries(docstring, "Attributes")
    hints = get_type_hints(kind, include_extras=True)
    members: dict[str, Option | CallOptions] = {}
    for item in fields(kind):
        default = REQUIRED if item.default is MISSING else item.default
        hint, outputs = hints[item.name], ()
        if get_origin(hint) is Annotated:
            hint, outputs = get_args(hint)[0], hint.__metadata__
        option = Option(item.name, hint, default, helps[item.name], title, inspect.Parameter.KEYWORD_ONLY)
        members[item.name] = replace(option, outputs=outputs)
    return CallOptions(kind, members, optional=optional)
