"""StoryWorld: synthetic stories, in triples that set structure against surface.

A negative shares names and setting with its anchor, one of the two, or neither. Lexical similarity is therefore only a
weak predictor of the closer story.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, NamedTuple, TypeVar

from narrlit.data.schema import (
    ASPECTS,
    StoryTable,
    TrainingExample,
    TrainingExamples,
    Triple,
    Triples,
    Views,
    a_comes_first,
)
from narrlit.errors import OptionError

SPLITS = ("train", "validation", "test")
"""Names of the splits. Persons have different names in each split, so that no story is in two splits."""

SHARED_SURFACE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((), ("names", "setting")),
    ((), ("names",)),
    ((), ("setting",)),
    (("setting",), ("names",)),
    (("names",), ("setting",)),
    *(((), ()),) * 3,
)
"""Parts of the anchor's surface that the positive and the negative of a triple share; all cases are equally likely."""

SLOT = re.compile(r"\{(a:)?(\w+)\}")
"""A slot of a sentence: `{hero}`, or `{a:job}` if the filling is preceded by "a" or "an"."""

_NAME_KINDS = {"place": "PLACE", "org": "ORGANIZATION"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of stories: fillings and sentences that fit one place and time."""

    places: Sequence[str]
    organisations: Sequence[str]
    jobs: Sequence[str]
    sites: Sequence[str]
    things: Sequence[str]
    openings: Sequence[str]
    companions: Sequence[str]
    subplots: Sequence[str]


@dataclass(frozen=True, slots=True)
class Inventory:
    """Sentences and names of all stories; every theme, event and outcome has several wordings."""

    themes: Mapping[str, Sequence[str]]
    courses: Mapping[str, Sequence[Sequence[str]]]
    outcomes: Mapping[str, Sequence[str]]
    settings: Mapping[str, Setting]
    first_names: Sequence[str]
    surnames: Sequence[str]
    organisation_stems: Sequence[str]


@lru_cache(maxsize=1)
def load_inventory() -> Inventory:
    """Load the inventory of the package."""
    settings = {}
    for key, content in _inventory_file("settings").items():
        settings[key] = Setting(**content)
    return Inventory(
        themes=_inventory_file("themes"),
        courses=_inventory_file("courses"),
        outcomes=_inventory_file("outcomes"),
        settings=settings,
        **_inventory_file("names"),
    )


def _inventory_file(name: str) -> dict[str, Any]:
    path = files("narrlit.data.storyworld") / "inventory" / f"{name}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@dataclass(frozen=True, slots=True)
class Structure:
    """Theme, course of action and outcome of a story, as keys of the inventory."""

    theme: str
    action: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Indices of the wordings of the theme, of each event and of the outcome."""

    theme: int
    events: tuple[int, ...]
    outcome: int


@dataclass(frozen=True, slots=True)
class Person:
    """Full name of a person, and the part of it (alias) that is used after the first mention."""

    full: str
    alias: str


@dataclass(frozen=True, slots=True)
class Surface:
    """Surface of a story: everything except theme, course of action, outcome and their wording."""

    split: str
    setting: str
    persons: Mapping[str, Person]  # by role
    fillings: Mapping[str, str]  # fillings of all other slots
    opening: str
    companion: str
    subplot: str
    theme_at: int  # number of sentences before that of the theme, 0 to 2; 3: just before the outcome
    subplot_at: float  # relative position of the subplot among the events, 0 to 1

    def with_names_of(self, other: "Surface") -> "Surface":
        """Copy the surface with the persons, the place and the organization of another."""
        names = {"place": other.fillings["place"], "org": other.fillings["org"]}
        return replace(self, persons=other.persons, fillings={**self.fillings, **names})


@dataclass(frozen=True, slots=True)
class SyntheticStory:
    """A story with its true views, its names, and the plan from which it was written."""

    text: str
    views: Views
    names: Mapping[str, str]  # kind of each name: PERSON, PLACE or ORGANIZATION
    structure: Structure
    wording: Wording
    surface: Surface


@dataclass(frozen=True, slots=True)
class SyntheticTriple:
    """An anchor, a story of the same structure in other words, and a story of another structure."""

    anchor: SyntheticStory
    positive: SyntheticStory
    negative: SyntheticStory


class AspectNegative(NamedTuple):
    """A story that is similar to an anchor in one aspect only, with this aspect."""

    aspect: str
    story: SyntheticStory


class StoryWorld:
    """Generator of synthetic English stories from a seed.

    A story has a theme, a course of action and an outcome, chosen independently, and a surface (names, setting,
    wording, order), which is independent of them. The same seed and arguments give the same stories on every machine.

    >>> world = StoryWorld(seed=1)
    >>> triple = world.triples(1)[0]
    >>> triple.anchor.structure == triple.positive.structure
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._inventory = load_inventory()

    def triples(self, count: int, split: str = "train") -> list[SyntheticTriple]:
        """Return the first `count` triples of a split (see SPLITS)."""
        if split not in SPLITS:
            raise OptionError("unknown_split", split=split, known=SPLITS)
        return [self._triple(split, number) for number in range(count)]

    def one_aspect_negatives(
        self, anchor: SyntheticStory, per_aspect: int = 3, false_negatives: float = 0.0
    ) -> list[AspectNegative]:
        """Return stories that share exactly one aspect with an anchor, and nothing of its surface and wording.

        The stories depend on the seed and the anchor's text only. A larger `per_aspect` adds stories to those of a
        smaller one.

        Args:
            anchor: anchor.
            per_aspect: number of stories for each aspect.
            false_negatives: share of the stories, 0 to 1, that agree with the anchor in all aspects.

        Returns:
            The stories with the shared aspect, in the order of ASPECTS.

        Raises:
            OptionError: if a number is out of range.
        """
        if per_aspect < 0 or not 0 <= false_negatives <= 1:
            raise OptionError("example_shares")
        negatives: list[AspectNegative] = []
        for aspect in ASPECTS:
            for number in range(per_aspect):
                rng = Random(f"storyworld/{self._seed}/{aspect}/{number}/{anchor.text}")
                structure = anchor.structure
                if rng.random() >= false_negatives:
                    shared = {aspect: getattr(structure, aspect)}
                    structure = replace(self._structure(rng, unlike=structure), **shared)
                negatives.append(AspectNegative(aspect, self._other_surface(rng, anchor, structure)))
        return negatives

    def _triple(self, split: str, number: int) -> SyntheticTriple:
        """Make a triple of a split; its random numbers depend only on seed, split and number."""
        rng = Random(f"storyworld/{self._seed}/{split}/{number}")
        structure = self._structure(rng)
        anchor = self._write(structure, self._wording(rng, structure), self._surface(rng, split))
        shared_by_positive, shared_by_negative = _pick(rng, SHARED_SURFACE)
        positive = self._other_surface(rng, anchor, structure, shared_by_positive)
        other_structure = self._structure(rng, unlike=structure)
        negative = self._other_surface(rng, anchor, other_structure, shared_by_negative)
        return SyntheticTriple(anchor, positive, negative)

    def _other_surface(
        self, rng: Random, anchor: SyntheticStory, structure: Structure, shared: Collection[str] = ()
    ) -> SyntheticStory:
        """Write a story that shares no wording with the anchor, and only the named parts of its surface."""
        surface = self._surface(rng, anchor.surface.split, unlike=anchor)
        if "names" in shared:
            surface = surface.with_names_of(anchor.surface)
        if "setting" in shared:
            surface = anchor.surface.with_names_of(surface)
        return self._write(structure, self._wording(rng, structure, unlike=anchor), surface)

    def _structure(self, rng: Random, unlike: Structure | None = None) -> Structure:
        """Draw a structure that differs from another in every aspect."""
        avoid = unlike or Structure("", "", "")
        return Structure(
            theme=_pick(rng, list(self._inventory.themes), {avoid.theme}),
            action=_pick(rng, list(self._inventory.courses), {avoid.action}),
            outcome=_pick(rng, list(self._inventory.outcomes), {avoid.outcome}),
        )

    def _wording(self, rng: Random, structure: Structure, unlike: SyntheticStory | None = None) -> Wording:
        """Draw a wording that shares no sentence with another story."""
        course = self._inventory.courses[structure.action]
        used_theme, used_events, used_outcome = -1, (-1,) * len(course), -1
        if unlike is not None:
            if unlike.structure.theme == structure.theme:
                used_theme = unlike.wording.theme
            if unlike.structure.action == structure.action:
                used_events = unlike.wording.events
            if unlike.structure.outcome == structure.outcome:
                used_outcome = unlike.wording.outcome
        theme = _pick_wording(rng, self._inventory.themes[structure.theme], used_theme)
        events = []
        for wordings, used_event in zip(course, used_events, strict=True):
            events.append(_pick_wording(rng, wordings, used_event))
        outcome = _pick_wording(rng, self._inventory.outcomes[structure.outcome], used_outcome)
        return Wording(theme, tuple(events), outcome)

    def _surface(self, rng: Random, split: str, unlike: SyntheticStory | None = None) -> Surface:
        """Draw a surface that shares neither the setting nor a word of a name with another story."""
        inventory = self._inventory
        taken = set(" ".join(unlike.names).split()) if unlike else set()
        key = _pick(rng, list(inventory.settings), {unlike.surface.setting} if unlike else ())
        setting = inventory.settings[key]
        persons = self._persons(rng, split, taken)
        for person in persons.values():
            taken.update(person.full.split())
        return Surface(
            split=split,
            setting=key,
            persons=persons,
            fillings=self._fillings(rng, setting, taken),
            opening=_pick(rng, setting.openings),
            companion=_pick(rng, setting.companions),
            subplot=_pick(rng, setting.subplots),
            theme_at=_pick(rng, range(4)),
            subplot_at=rng.random(),
        )

    def _persons(self, rng: Random, split: str, avoid: Collection[str]) -> dict[str, Person]:
        """Draw the persons of a split by their roles; no word of a name is used twice or is one of those to avoid."""
        surnames, first_names = self._inventory.surnames, self._inventory.first_names
        taken = set(avoid)
        persons: dict[str, Person] = {}
        for role in ("hero", "rival", "extra"):
            last = _pick(rng, surnames, taken)
            # The numbers of surname and first name add up to the number of the split, modulo the number of splits.
            start = (SPLITS.index(split) - surnames.index(last)) % len(SPLITS)
            first = _pick(rng, first_names[start :: len(SPLITS)], taken)
            persons[role] = Person(f"{first} {last}", alias=_pick(rng, (first, last)))
            taken |= {first, last}
        return persons

    def _fillings(self, rng: Random, setting: Setting, avoid: Collection[str]) -> dict[str, str]:
        """Draw the fillings of all slots but the persons; the organization has none of the names to avoid."""
        job = _pick(rng, setting.jobs)
        place = _pick(rng, setting.places)
        stem = _pick(rng, self._inventory.organisation_stems, avoid)
        organization = f"{stem} {_pick(rng, setting.organisations)}"
        return {
            "place": place,
            "org": organization,
            "job": job,
            "job2": _pick(rng, setting.jobs, {job}),
            "site": _pick(rng, setting.sites),
            "thing": _pick(rng, setting.things),
        }

    def _write(self, structure: Structure, wording: Wording, surface: Surface) -> SyntheticStory:
        """Order the sentences of a story by its surface, and fill their slots."""
        inventory = self._inventory
        course = inventory.courses[structure.action]
        templates = {
            "opening": surface.opening,
            "companion": surface.companion,
            "subplot": surface.subplot,
            "theme": inventory.themes[structure.theme][wording.theme],
            "outcome": inventory.outcomes[structure.outcome][wording.outcome],
        }
        events = [f"event{number}" for number in range(len(course))]
        for event, wordings, chosen in zip(events, course, wording.events, strict=True):
            templates[event] = wordings[chosen]
        names: dict[str, str] = {}
        sentences: dict[str, str] = {}
        for part in _order_of_parts(events, surface):
            sentences[part] = _fill(templates[part], surface, names)
        action = "\n".join([sentences[event] for event in events])
        views = Views(sentences["theme"], action, sentences["outcome"])
        return SyntheticStory(" ".join(sentences.values()), views, names, structure, wording, surface)


def _order_of_parts(events: Sequence[str], surface: Surface) -> list[str]:
    """Order the parts of a story: opening, companion, events and outcome, with theme and subplot among them."""
    middle = list(events)
    middle.insert(int(surface.subplot_at * (len(events) + 1)), "subplot")
    order = ["opening", "companion", *middle]
    order.insert(surface.theme_at if surface.theme_at < 3 else len(order), "theme")
    order.append("outcome")
    return order


def _fill(template: str, surface: Surface, names: dict[str, str]) -> str:
    """Fill the slots of a sentence, and add its names to `names`: a person's full name first, then the alias."""

    def filling(slot: re.Match[str]) -> str:
        role = slot.group(2)
        if role in surface.persons:
            person = surface.persons[role]
            name = person.alias if person.full in names else person.full
            names[name] = "PERSON"
            return name
        text = surface.fillings[role]
        if role in _NAME_KINDS:
            names[text] = _NAME_KINDS[role]
        article = "an " if text[0] in "aeiou" else "a "
        return article + text if slot.group(1) else text

    text = SLOT.sub(filling, template)
    return text[0].upper() + text[1:]


def _pick(rng: Random, choices: Sequence[T], avoid: Collection[T] = ()) -> T:
    """Draw a choice by `random()`, whose numbers are the same in every Python version."""
    allowed = [choice for choice in choices if choice not in avoid]
    return allowed[int(rng.random() * len(allowed))]


def _pick_wording(rng: Random, wordings: Sequence[str], used: int) -> int:
    """Draw the index of a wording other than the used one; -1: none is used."""
    return _pick(rng, range(len(wordings)), {used})


def synthetic_triples(triples: Sequence[SyntheticTriple], stories: StoryTable, views: bool = False) -> Triples:
    """Add triples to a table; in about half of them, depending on the anchor's text, A is the closer candidate.

    Args:
        triples: synthetic triples.
        stories: table to add the stories to.
        views: attach the true views to the stories.
    """
    rows = []
    for triple in triples:
        a_is_closer = a_comes_first(triple.anchor.text)
        a, b = triple.positive, triple.negative
        if not a_is_closer:
            a, b = b, a
        anchor = _add(triple.anchor, stories, views)
        rows.append(Triple(anchor, _add(a, stories, views), _add(b, stories, views), a_is_closer))
    return Triples(stories, rows)


def synthetic_examples(
    triples: Sequence[SyntheticTriple],
    negatives: Sequence[Sequence[AspectNegative]],
    stories: StoryTable,
    views: bool = False,
) -> TrainingExamples:
    """Add training examples to a table.

    Args:
        triples: synthetic triples; the negative of each is the first negative of its example.
        negatives: further negatives of each example, whose kind is their aspect.
        stories: table to add the stories to.
        views: attach the true views to the stories.
    """
    rows = []
    for triple, further in zip(triples, negatives, strict=True):
        anchor = _add(triple.anchor, stories, views)
        positive = _add(triple.positive, stories, views)
        indices = [_add(triple.negative, stories, views)]
        kinds = ["triple"]
        for negative in further:
            indices.append(_add(negative.story, stories, views))
            kinds.append(negative.aspect)
        rows.append(TrainingExample(anchor, positive, tuple(indices), tuple(kinds)))
    return TrainingExamples(stories, rows)


def _add(story: SyntheticStory, stories: StoryTable, views: bool) -> int:
    return stories.add(story.text, views=story.views if views else None)
