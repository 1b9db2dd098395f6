"""Structure of the openai package that its documentation leaves open, checked with 2.32 to 3.54."""

from importlib import import_module
from types import ModuleType


def http_library(sdk: ModuleType) -> ModuleType:
    """Return the HTTP library that the clients of the package openai derive from: httpx or httpx2, by its release.

    It takes any client of that library, but does not name it; a public name would replace this.
    """
    base: type = sdk.DefaultAsyncHttpxClient.__bases__[0]
    return import_module(base.__module__.partition(".")[0])
