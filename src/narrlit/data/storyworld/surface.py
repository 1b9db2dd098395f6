"""What a reader sees first and what should not count: names, setting, and the order of the side remarks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from narrlit.data.storyworld.inventory import Inventory
from narrlit.errors import OptionError

SPLITS = ("train", "validation", "test")
"""The splits; the persons of each have names of their own, so that no story can be in two."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Person:
    """A person's full name, and the part of it that is used after the first mention."""

    first: str
    last: str
    alias: str

    @property
    def full(self) -> str:
        """First name and surname."""
        return f"{self.first} {self.last}"


@dataclass(frozen=True, slots=True)
class Surface:
    """One choice of everything but theme, course of action, outcome and their wording.

    `fillings` maps the slots that aren't persons to their text. `theme_at` counts the sentences before the theme's
    (0 to 2; 3 is just before the outcome); `subplot_at`, from 0 to 1, is the subplot's place among the events.
    """

    setting: str
    persons: dict[str, Person]
    fillings: dict[str, str]
    opening: str
    companion: str
    subplot: str
    theme_at: int
    subplot_at: float


def pick(rng: Random, choices: Sequence[T]) -> T:
    """One of `choices`; made of `random()` alone, which is the same in every Python version."""
    return choices[int(rng.random() * len(choices))]


def pick_other(rng: Random, choices: Sequence[T], avoid: Collection[T]) -> T:
    """One of `choices` that isn't in `avoid`."""
    return pick(rng, [choice for choice in choices if choice not in avoid])


def draw_surface(
    rng: Random, inventory: Inventory, split: str, names: Collection[str] = (), settings: Collection[str] = ()
) -> Surface:
    """Draw a surface.

    Args:
        rng: source of the choices.
        inventory: texts to choose from.
        split: one of SPLITS.
        names: words that must not occur in the names of persons and organisations.
        settings: keys of settings that must not be used.
    """
    key = pick_other(rng, list(inventory.settings), settings)
    setting = inventory.settings[key]
    persons: dict[str, Person] = {}
    taken = set(names)
    for role in ("hero", "rival", "extra"):
        persons[role] = _draw_person(rng, inventory, split, taken)
        taken |= {persons[role].first, persons[role].last}
    job = pick(rng, setting.jobs)
    stem = pick_other(rng, inventory.organisation_stems, taken)
    fillings = {
        "place": pick(rng, setting.places),
        "org": f"{stem} {pick(rng, setting.organisations)}",
        "job": job,
        "job2": pick_other(rng, setting.jobs, {job}),
        "site": pick(rng, setting.sites),
        "thing": pick(rng, setting.things),
    }
    return Surface(
        setting=key,
        persons=persons,
        fillings=fillings,
        opening=pick(rng, setting.openings),
        companion=pick(rng, setting.companions),
        subplot=pick(rng, setting.subplots),
        theme_at=pick(rng, range(4)),
        subplot_at=rng.random(),
    )


def split_of(inventory: Inventory, full_name: str) -> str:
    """The split whose stories may have a person of this name.

    Raises:
        OptionError: if the name isn't made of the inventory's.
    """
    first, _, last = full_name.partition(" ")
    if first not in inventory.first_names or last not in inventory.surnames:
        raise OptionError(f"{full_name!r} is no person of an invented story; pass a story that StoryWorld made")
    return SPLITS[(inventory.first_names.index(first) + inventory.surnames.index(last)) % len(SPLITS)]


def _draw_person(rng: Random, inventory: Inventory, split: str, taken: Collection[str]) -> Person:
    last = pick_other(rng, inventory.surnames, taken)
    own = (SPLITS.index(split) - inventory.surnames.index(last)) % len(SPLITS)
    first = pick_other(rng, inventory.first_names[own :: len(SPLITS)], taken)
    return Person(first, last, alias=pick(rng, (first, last)))
