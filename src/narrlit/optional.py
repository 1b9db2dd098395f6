"""Optional packages, asked for by the name of the extra that brings them."""

import importlib
from types import ModuleType

from narrlit.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, which the extra `extra` installs.

    Raises:
        MissingExtraError: with the pip command, where the package is absent.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(f"{module} is not installed: pip install 'narrlit[{extra}]'") from error
