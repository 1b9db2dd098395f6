"""Import of optional packages, which extras of narrlit install."""

import importlib
from types import ModuleType

from narrlit.errors import MissingExtraError


def require(module: str, extra: str, also: str | None = None) -> ModuleType:
    """Import `module`, which the extra `extra` installs.

    Args:
        module: its name, with dots where it is part of a package.
        extra: extra of narrlit that installs the package, or its dependencies.
        also: further pip command, for a package that an extra can't name.

    Raises:
        MissingExtraError: if the package is absent, with the pip command.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        commands = f"pip install 'narrlit[{extra}]'" + (f" && {also}" if also else "")
        raise MissingExtraError(f"{module} is not installed: {commands}") from error
