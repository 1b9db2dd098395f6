"""Files of fusion settings: named weights of a story's text and views, for `narrlit fuse` to compare."""

from pathlib import Path
from typing import Any

import yaml

from narrlit.commands.training import find_config
from narrlit.errors import OptionError
from narrlit.models.fusion import PARTS, Fusion

DEFAULT = "configs/ablations/ttda704_fusion.yaml"
_KEY = "settings"


def is_fusion_settings(content: Any) -> bool:
    """Whether a YAML file's content is of fusion settings, and so no overlay of a fit: `settings` is its only key."""
    return isinstance(content, dict) and set(content) == {_KEY}


def read_settings(path: str | None) -> dict[str, Fusion]:
    """Settings by their names, in the file's order.

    Args:
        path: a YAML file whose only key, settings, maps names to four weights; None: those of ttda704.

    Raises:
        OptionError: naming the file, and the setting that is broken.
    """
    found = Path(find_config(path or DEFAULT, "--settings"))
    try:
        content = yaml.safe_load(found.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"--settings {found}: it is no YAML ({error})") from error
    if not is_fusion_settings(content) or not isinstance(content[_KEY], dict) or not content[_KEY]:
        raise OptionError(f"--settings {found}: write under settings, its only key, a line NAME: [{', '.join(PARTS)}]")
    return {str(name): _fusion(f"--settings {found}: {name}", weights) for name, weights in content[_KEY].items()}


def _fusion(where: str, weights: Any) -> Fusion:
    numbers = weights if isinstance(weights, list) else []
    if len(numbers) != len(PARTS) or not all(type(number) in (int, float) for number in numbers):
        raise OptionError(f"{where}: four numbers are needed, the weights of {', '.join(PARTS)}")
    try:
        return Fusion(*numbers)
    except OptionError as error:
        raise OptionError(f"{where}: {error}") from error
