"""The texts that invented stories are put together from: JSON resources, read once and checked."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

from narrlit.errors import DataError

SLOT = re.compile(r"\{(a:)?(\w+)\}")
"""A gap in a sentence: `{hero}`, or `{a:job}` where "a" or "an" has to be put before the filling."""

STRUCTURE_SLOTS = frozenset({"hero", "rival"})
EVENT_SLOTS = STRUCTURE_SLOTS | {"org", "thing", "site"}
LEAST = {"themes": 12, "courses": 20, "outcomes": 10, "settings": 10}
"""How many entries of each kind there are at least."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a story plays: what its surface is coloured with."""

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
    """All texts. Every theme, event and outcome has several realisations, which differ in their words."""

    themes: Mapping[str, tuple[str, ...]]
    courses: Mapping[str, tuple[tuple[str, ...], ...]]
    outcomes: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Setting]
    first_names: tuple[str, ...]
    surnames: tuple[str, ...]
    organisation_stems: tuple[str, ...]

    def setting_of(self, place: str) -> str | None:
        """The key of the setting that has the place `place`, None if there is none."""
        return next((key for key, setting in self.settings.items() if place in setting.places), None)


@lru_cache(maxsize=1)
def load_inventory() -> Inventory:
    """The inventory that comes with the package.

    Raises:
        DataError: if a resource is missing or does not hold what it should.
    """
    names = _read("names")
    inventory = Inventory(
        themes={key: tuple(texts) for key, texts in _read("themes").items()},
        courses={key: tuple(tuple(event) for event in events) for key, events in _read("courses").items()},
        outcomes={key: tuple(texts) for key, texts in _read("outcomes").items()},
        settings={key: _setting(key, parts) for key, parts in _read("settings").items()},
        first_names=tuple(names["first_names"]),
        surnames=tuple(names["surnames"]),
        organisation_stems=tuple(names["organisation_stems"]),
    )
    check(inventory)
    return inventory


def check(inventory: Inventory) -> None:
    """Check counts, slots and that nothing occurs twice.

    Raises:
        DataError: naming the entry that is wrong.
    """
    for kind, least in LEAST.items():
        _need(len(getattr(inventory, kind)) >= least, f"{kind}: fewer than {least} entries")
    for kind, entries in (("themes", inventory.themes), ("outcomes", inventory.outcomes)):
        for key, texts in entries.items():
            _need(len(texts) >= 5, f"{kind}/{key}: fewer than 5 realisations")
            _check_slots(f"{kind}/{key}", texts, allowed=STRUCTURE_SLOTS)
    for key, events in inventory.courses.items():
        _check_course(f"courses/{key}", events)
    for key, setting in inventory.settings.items():
        _check_setting(f"settings/{key}", setting)
    _check_unique("themes", (text for texts in inventory.themes.values() for text in texts))
    _check_unique("outcomes", (text for texts in inventory.outcomes.values() for text in texts))
    _check_unique("courses", (text for events in inventory.courses.values() for event in events for text in event))
    _check_unique("places", (place for setting in inventory.settings.values() for place in setting.places))
    _check_unique("names", (*inventory.first_names, *inventory.surnames, *inventory.organisation_stems))


def _read(name: str) -> dict[str, Any]:
    resource = files(__package__ or "narrlit.data.storyworld") / "inventory" / f"{name}.json"
    try:
        content = json.loads(resource.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"the resource inventory/{name}.json can't be read ({error}); reinstall narrlit") from error
    _need(isinstance(content, dict), f"{name}: not a mapping")
    return dict(content)


def _setting(key: str, parts: Mapping[str, list[str]]) -> Setting:
    expected = {field.name for field in fields(Setting)}
    _need(set(parts) == expected, f"settings/{key}: has {sorted(parts)} instead of {sorted(expected)}")
    return Setting(**{name: tuple(texts) for name, texts in parts.items()})


def _check_course(name: str, events: tuple[tuple[str, ...], ...]) -> None:
    _need(4 <= len(events) <= 6, f"{name}: {len(events)} events instead of 4 to 6")
    for number, event in enumerate(events):
        _need(len(event) >= 4, f"{name}[{number}]: fewer than 4 realisations")
        _check_slots(f"{name}[{number}]", event, allowed=EVENT_SLOTS)
    for role in sorted(STRUCTURE_SLOTS):
        surely = any(all(f"{{{role}}}" in text for text in event) for event in events)
        _need(surely, f"{name}: no event names the {role} in every realisation")


def _check_setting(name: str, setting: Setting) -> None:
    for field in fields(Setting):
        least = 3 if field.name == "organisations" else 5
        texts = getattr(setting, field.name)
        _need(len(texts) >= least, f"{name}/{field.name}: fewer than {least} entries")
        _check_unique(f"{name}/{field.name}", texts)
    for kind, slots in (
        ("openings", {"hero", "job", "place", "org"}),
        ("companions", {"rival", "job2", "site"}),
        ("subplots", {"extra"}),
    ):
        _check_slots(f"{name}/{kind}", getattr(setting, kind), allowed=slots, needed=slots)
    for text in setting.subplots:
        _need(text.count("{extra}") >= 2, f"{name}/subplots: {text!r} names its person only once")


def _check_slots(name: str, texts: Iterable[str], allowed: Iterable[str], needed: Iterable[str] = ()) -> None:
    for text in texts:
        found = {match.group(2) for match in SLOT.finditer(text)}
        _need(found <= set(allowed), f"{name}: unknown slot in {text!r}")
        _need(found >= set(needed), f"{name}: a slot is missing from {text!r}")
        _need("{" not in SLOT.sub("", text), f"{name}: broken slot in {text!r}")
        _need(text.endswith("."), f"{name}: no full stop at the end of {text!r}")


def _check_unique(name: str, texts: Iterable[str]) -> None:
    seen: set[str] = set()
    for text in texts:
        _need(text not in seen, f"{name}: {text!r} occurs twice")
        seen.add(text)


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise DataError(f"story inventory, {message}")
