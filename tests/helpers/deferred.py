"""Options of a model as a command gets them."""

from narrlit.arguments import CallOptions, Deferred, options_of
from narrlit.commands import COMMANDS

BY_NAME = {command.name: command for command in COMMANDS}


def deferred(command="embed", **options):
    """The encoder that a command opens, with some options changed."""
    part = encoder_of(options_of(BY_NAME[command]).call)
    return Deferred(part, {option.name: option.default for option in part.options} | options)


def name_and_rest(words):
    """The name of a command, of one word or two, and the words after it."""
    number = 2 if words[0] == "data" else 1
    return " ".join(words[:number]), list(words[number:])


def encoder_of(part):
    """The part that opens an encoder, in a call or in one of its parts."""
    for name, member in part.members.items():
        if isinstance(member, CallOptions):
            found = member if name == "encoder" else encoder_of(member)
            if found is not None:
                return found
    return None
