"""Declaration of a command: the function that it calls, and what it writes. Imports nothing heavy, for `--help`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from narrlit.files import Output

OPTIONS = "Options"
"""Title of a command's own options in its help."""


@dataclass(frozen=True)
class Opener:
    """Function that opens the value of a parameter from options of its own.

    Attributes:
        function: the function, `module:function`.
        title: title of its options in help.
        constants: arguments that are no options.
    """

    function: str
    title: str = OPTIONS
    constants: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """Command of the command line.

    Attributes:
        name: words that a person types, such as `data check`.
        group: its group in `narrlit --help`.
        function: the function that it calls, `module:function`.
        out: what the option `--out` writes; None if the function declares its outputs itself, or writes nothing.
        opens: openers of parameters with other types, by parameter.
        without: options of openers that the command does not offer.
        json: the result can be printed as JSON.
    """

    name: str
    group: str
    function: str
    out: Output | None = None
    opens: Mapping[str, Opener] = field(default_factory=dict)
    without: Sequence[str] = ()
    json: bool = False
