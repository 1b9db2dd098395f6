"""Texts that synthetic stories are made of: JSON resources, read once."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

SLOT = re.compile(r"\{(a:)?(\w+)\}")
"""A gap in a sentence: `{hero}`, or `{a:job}` where "a" or "an" has to precede the filling."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a story takes place."""

    places: tuple[str, ...]
    organisations: tuple[str, ...]
    jobs: tuple[str, ...]
    sites: tuple[str, ...]
    things: tuple[str, ...]
    openings: tuple[str, ...]
    companions: tuple[str, ...]
    subplots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All texts; every theme, event and outcome has several wordings."""

    themes: Mapping[str, tuple[str, ...]]
    courses: Mapping[str, tuple[tuple[str, ...], ...]]
    outcomes: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Setting]
    first_names: tuple[str, ...]
    surnames: tuple[str, ...]
    organisation_stems: tuple[str, ...]


@lru_cache(maxsize=1)
def load_inventory() -> Inventory:
    """Load the inventory of the package."""
    settings = {key: {name: tuple(texts) for name, texts in parts.items()} for key, parts in _read("settings").items()}
    return Inventory(
        themes={key: tuple(texts) for key, texts in _read("themes").items()},
        courses={key: tuple(map(tuple, events)) for key, events in _read("courses").items()},
        outcomes={key: tuple(texts) for key, texts in _read("outcomes").items()},
        settings={key: Setting(**parts) for key, parts in settings.items()},
        **{name: tuple(names) for name, names in _read("names").items()},
    )


def _read(name: str) -> dict[str, Any]:
    resource = files(__package__ or "narrlit.data.storyworld") / "inventory" / f"{name}.json"
    return dict(json.loads(resource.read_text(encoding="utf-8")))
