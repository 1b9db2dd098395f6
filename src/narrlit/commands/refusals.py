"""What parsers say of arguments they can't take, in one line."""

import re
from typing import NoReturn

from narrlit.errors import OptionError

# What jsonargparse adds about its own types: of no use to whoever mistyped an option.
NOISE = ("Does not validate against", "Subtypes:", "Errors:", "Given value", "- Expected a <class 'NoneType'>")


HINT = re.compile(r"; narrlit[\w ]* --help tells the options")


class Refusing:
    """Put before a parser class: mistakes become OptionErrors, instead of pages of usage."""

    prog: str

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Called by the parser with what is wrong.

        Raises:
            OptionError: always.
        """
        # A class inside a config has a parser of its own, whose refusal comes through this one again.
        said = HINT.sub("", one_line(message))
        raise OptionError(f"{said}; {self.prog.replace(' [options]', '')} --help tells the options")


def one_line(message: str) -> str:
    r"""The telling parts of a parser's message.

    >>> one_line("Parser key 'n':\n  Does not validate against any of the Union subtypes\n  Given value: x")
    "Parser key 'n': not x"
    >>> one_line("Parser key 'model':\n  Errors:\n    - Option 'scales' is not accepted\n  Given value: N(y=1)")
    "Parser key 'model': Option 'scales' is not accepted"
    """
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    telling = [line.removeprefix("- ") for line in lines[1:] if not line.startswith(NOISE)]
    # A class's value is its whole configuration, and the telling line names what is wrong in it.
    given = [line.replace("Given value:", "not") for line in lines[1:] if line.startswith("Given value:")]
    short = [line for line in given if "(" not in line]
    said = ", ".join([*telling, *short[:1]])
    return " ".join([*lines[:1], said]).strip().replace("Expected a typing.Literal", "one of ")
