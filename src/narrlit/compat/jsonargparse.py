"""Private names of jsonargparse, checked with 4.45 and 4.53."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from jsonargparse import ArgumentParser, Namespace


def merge_settings(parser: ArgumentParser, settings: Mapping[str, Any], config: Namespace | None = None) -> Namespace:
    """Let settings override a configuration, as a config file does on the command line: without defaults.

    A public `parse_object` always checks that no required setting is missing, which holds for a whole configuration
    only; an option `skip_validation`, as `get_defaults` has, would replace this. The settings are copied, because the
    parser changes them.
    """
    merged: Namespace = parser.parse_object(deepcopy(settings), config, defaults=False, _skip_validation=True)
    return merged
