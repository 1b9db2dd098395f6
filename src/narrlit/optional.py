"""Import of optional packages, which are installed by extras of narrlit."""

import importlib
from types import ModuleType

from narrlit.errors import MissingExtraError


def require(module: str, extra: str, also: str | None = None) -> ModuleType:
    """Import a module of an optional package.

    Args:
        module: dotted name of the module.
        extra: extra of narrlit that installs the package or its dependencies.
        also: additional pip command, for a package that the extra can't install.

    Raises:
        MissingExtraError: if the package is not installed; the message gives the pip command.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        commands = f"pip install 'narrlit[{extra}]'" + (f" && {also}" if also else "")
        raise MissingExtraError("missing_extra", module=module, commands=commands) from error
