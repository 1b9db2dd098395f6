"""Optional packages, asked for by the name of the extra that brings them."""

import importlib
from types import ModuleType

from narrlit.errors import MissingExtraError


def require(module: str, extra: str, also: str | None = None) -> ModuleType:
    """Import `module`, which the extra `extra` installs.

    Args:
        module: its name, with dots where it is part of a package.
        extra: the extra of narrlit that brings the package or what it stands on.
        also: a further command, for a package that no extra can name.

    Raises:
        MissingExtraError: with the pip command, where the package is absent.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        commands = f"pip install 'narrlit[{extra}]'" + (f" && {also}" if also else "")
        raise MissingExtraError(f"{module} is not installed: {commands}") from error
