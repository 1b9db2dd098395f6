"""Where a server is and which key opens it."""

import os
import re
from urllib.parse import urlsplit

from narrlit.errors import OptionError

PLACEHOLDER_KEY = "none"
"""What is sent where no key is given: servers of one's own ask for none, but the client wants one."""

CONNECT_SECONDS = 10


def checked_url(url: str, key_option: str) -> str:
    """The URL without a slash at its end.

    Args:
        url: where the interface begins, as http://localhost:8000/v1.
        key_option: the option that says where the key is, for messages.

    Raises:
        OptionError: if it is none, or holds what has no place in configs and records.
    """
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        sound = False
    if not sound:
        raise OptionError("an endpoint's URL begins with http:// or https:// and a host, as http://localhost:8000/v1")
    # What stands there goes into configs and messages.
    if parts.username or parts.password or parts.query or parts.fragment:
        raise OptionError(
            f"the endpoint's URL at {parts.hostname} holds a name, a password or a query: leave them out; the key is "
            f"read from the environment variable that {key_option} names"
        )
    return url.rstrip("/")


def check_variable(name: str, option: str) -> None:
    """Refuse what can't be the name of an environment variable.

    Args:
        name: the value of the option.
        option: the option's name, for messages.

    Raises:
        OptionError: without the value, as it may be the key itself: keys have hyphens or small letters.
    """
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise OptionError(
            f"{option} is no name of an environment variable (capitals, digits and _): "
            "put the key into such a variable and name that here, never the key itself"
        )


def key_in_environment(variable: str) -> str | None:
    """The key as the environment holds it now; None where the variable is unset or empty.

    Raises:
        OptionError: if it has characters that no request's header can hold; they are not repeated.
    """
    return checked_key(os.environ.get(variable, ""), f"the environment variable {variable}")


def checked_key(key: str, place: str) -> str | None:
    """The key without white space around it; None where nothing is left.

    Args:
        key: as it was given.
        place: where it was given, for messages.

    Raises:
        OptionError: if it has characters that no request's header can hold; they are not repeated.
    """
    key = key.strip()
    if not all("!" <= character <= "~" for character in key):
        raise OptionError(f"{place} holds spaces or characters beside ASCII, which no key has: set it anew")
    return key or None
