"""From structure, wording and surface to a story: its text, its true views and the names in it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from narrlit.data.storyworld.inventory import SLOT, Inventory
from narrlit.data.storyworld.surface import Surface, pick, pick_other
from narrlit.errors import OptionError

NAME_TYPES = {"place": "PLACE", "org": "ORGANIZATION"}
"""The slots whose fillings are proper names, other than the persons."""


@dataclass(frozen=True, slots=True)
class Structure:
    """What makes stories alike: keys of the inventory of themes, courses of action and outcomes."""

    theme: str
    course: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Views:
    """What a story tells of its theme, its events in order, and its outcome; the sentences as in its text."""

    theme: str
    events: tuple[str, ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class InventedStory:
    """A story, what it was made from, and each proper name in it with PERSON, PLACE or ORGANIZATION."""

    text: str
    structure: Structure
    views: Views
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wording:
    """Which realisation of the theme, of each event and of the outcome is used."""

    theme: int
    events: tuple[int, ...]
    outcome: int


class Writer:
    """Fills the slots of sentences in reading order: a person's full name first, the alias from then on."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self.names: dict[str, str] = {}

    def write(self, template: str) -> str:
        """The sentence that `template` makes here."""
        text = SLOT.sub(self._fill, template)
        return text[0].upper() + text[1:]

    def _fill(self, slot: re.Match[str]) -> str:
        role = slot.group(2)
        if role in self._surface.persons:
            person = self._surface.persons[role]
            name = person.alias if person.full in self.names else person.full
            self.names[name] = "PERSON"
            return name
        filling = self._surface.fillings[role]
        if role in NAME_TYPES:
            self.names[filling] = NAME_TYPES[role]
        return with_article(filling) if slot.group(1) else filling


def with_article(noun: str) -> str:
    """The noun with "a" or "an" before it.

    >>> with_article("oyster diver"), with_article("net mender")
    ('an oyster diver', 'a net mender')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def realise(inventory: Inventory, structure: Structure, wording: Wording, surface: Surface) -> InventedStory:
    """Tell the story of `structure` in this wording, on this surface."""
    course = inventory.courses[structure.course]
    templates = {f"event{i}": event[n] for i, (event, n) in enumerate(zip(course, wording.events, strict=True))}
    order = list(templates)
    order.insert(int(surface.subplot_at * (len(course) + 1)), "subplot")
    order = ["opening", "companion", *order]
    order.insert(surface.theme_at if surface.theme_at < 3 else len(order), "theme")
    order.append("outcome")
    templates |= {
        "opening": surface.opening,
        "companion": surface.companion,
        "subplot": surface.subplot,
        "theme": inventory.themes[structure.theme][wording.theme],
        "outcome": inventory.outcomes[structure.outcome][wording.outcome],
    }
    writer = Writer(surface)
    sentences = {part: writer.write(templates[part]) for part in order}
    events = tuple(sentences[f"event{i}"] for i in range(len(course)))
    return InventedStory(
        text=" ".join(sentences.values()),
        structure=structure,
        views=Views(sentences["theme"], events, sentences["outcome"]),
        names=writer.names,
    )


def draw_wording(
    rng: Random, inventory: Inventory, structure: Structure, unlike: tuple[Structure, Wording] | None = None
) -> Wording:
    """Draw a wording of `structure`; where it agrees with the structure in `unlike`, no realisation is used again."""
    course = inventory.courses[structure.course]
    used_theme: set[int] = set()
    used_events: list[set[int]] = [set() for _ in course]
    used_outcome: set[int] = set()
    if unlike is not None:
        other, wording = unlike
        if other.theme == structure.theme:
            used_theme = {wording.theme}
        if other.course == structure.course:
            used_events = [{number} for number in wording.events]
        if other.outcome == structure.outcome:
            used_outcome = {wording.outcome}
    return Wording(
        theme=_number(rng, inventory.themes[structure.theme], used_theme),
        events=tuple(_number(rng, event, used) for event, used in zip(course, used_events, strict=True)),
        outcome=_number(rng, inventory.outcomes[structure.outcome], used_outcome),
    )


def draw_structure(rng: Random, inventory: Inventory, unlike: Structure | None = None) -> Structure:
    """Draw a structure; it differs from `unlike` in theme, course of action and outcome."""
    avoid = unlike or Structure("", "", "")
    return Structure(
        theme=pick_other(rng, list(inventory.themes), {avoid.theme}),
        course=pick_other(rng, list(inventory.courses), {avoid.course}),
        outcome=pick_other(rng, list(inventory.outcomes), {avoid.outcome}),
    )


def wording_of(inventory: Inventory, story: InventedStory) -> Wording:
    """Which realisations `story` was told with.

    Raises:
        OptionError: if its views aren't made of the inventory's sentences.
    """
    course = inventory.courses[story.structure.course]
    return Wording(
        theme=_recognise(inventory.themes[story.structure.theme], story.views.theme),
        events=tuple(_recognise(event, text) for event, text in zip(course, story.views.events, strict=True)),
        outcome=_recognise(inventory.outcomes[story.structure.outcome], story.views.outcome),
    )


def _number(rng: Random, texts: Sequence[str], used: set[int]) -> int:
    return pick(rng, [number for number in range(len(texts)) if number not in used])


def _recognise(templates: Sequence[str], sentence: str) -> int:
    for number, template in enumerate(templates):
        fixed = SLOT.split(template)[:: SLOT.groups + 1]
        if re.fullmatch(".+".join(re.escape(part) for part in fixed), sentence, re.IGNORECASE):
            return number
    raise OptionError(f"not a sentence of an invented story: {sentence!r}; pass a story that StoryWorld made")
