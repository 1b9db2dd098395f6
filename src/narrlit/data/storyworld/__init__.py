"""StoryWorld: synthetic stories, in triples that set structure against surface.

Some negatives share names and setting with their anchor, some one of the two, some nothing: similarity of words
predicts the answer weakly, and never perfectly.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any, TypeVar

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
"""The persons of each split have names of their own, so that no story is in two."""

SHARED_SURFACE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((), ("names", "setting")),
    ((), ("names",)),
    ((), ("setting",)),
    (("setting",), ("names",)),
    (("names",), ("setting",)),
    *(((), ()),) * 3,
)
"""Parts of the anchor's surface that a triple's positive and negative share; all cases equally likely."""

SLOT = re.compile(r"\{(a:)?(\w+)\}")
"""A gap in a sentence: `{hero}`, or `{a:job}` where "a" or "an" has to precede the filling."""

_NAME_KINDS = {"place": "PLACE", "org": "ORGANIZATION"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """Place and time of a story."""

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
    """All texts; every theme, event and outcome has several wordings."""

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
    folder = files("narrlit.data.storyworld") / "inventory"
    parts = ("themes", "courses", "outcomes", "settings", "names")
    read: dict[str, Any] = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in parts}
    names, settings = read.pop("names"), read.pop("settings")
    return Inventory(**read, **names, settings={key: Setting(**parts) for key, parts in settings.items()})


@dataclass(frozen=True, slots=True)
class Structure:
    """Theme, course of action and outcome of a story, as keys of the inventory."""

    theme: str
    action: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Index of the wording of the theme, of each event and of the outcome."""

    theme: int
    events: tuple[int, ...]
    outcome: int


@dataclass(frozen=True, slots=True)
class Person:
    """A person's name, and the part of it that is used after the first mention."""

    full: str
    alias: str


@dataclass(frozen=True, slots=True)
class Surface:
    """Surface of a story: all except theme, course of action, outcome and their wording."""

    split: str
    setting: str
    persons: Mapping[str, Person]  # by role
    fillings: Mapping[str, str]  # of the other slots
    opening: str
    companion: str
    subplot: str
    theme_at: int  # sentences before the theme's, 0 to 2; 3: just before the outcome
    subplot_at: float  # position of the subplot among the events, 0 to 1


@dataclass(frozen=True, slots=True)
class SyntheticStory:
    """A story, its true views, and each name in it with PERSON, PLACE or ORGANIZATION."""

    text: str
    views: Views
    names: Mapping[str, str]
    structure: Structure
    wording: Wording
    surface: Surface


@dataclass(frozen=True, slots=True)
class SyntheticTriple:
    """An anchor, a story of the same structure in other words, and a story of another structure."""

    anchor: SyntheticStory
    positive: SyntheticStory
    negative: SyntheticStory


class StoryWorld:
    """A seeded source of synthetic English stories.

    A story has a theme, a course of action and an outcome, chosen independently, and a surface (names, setting,
    wording, order) which tells nothing about them. The same seed and arguments give the same stories everywhere.

    >>> world = StoryWorld(seed=1)
    >>> triple = world.triples(1)[0]
    >>> triple.anchor.structure == triple.positive.structure
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._inventory = load_inventory()

    def triples(self, count: int, split: str = "train") -> list[SyntheticTriple]:
        """Return the first `count` triples of a split (see SPLITS); a larger count adds further ones."""
        if split not in SPLITS:
            raise OptionError(f"split is {split!r}; choose one of {', '.join(SPLITS)}")
        return [self._triple(split, number) for number in range(count)]

    def one_aspect_negatives(
        self, anchor: SyntheticStory, per_aspect: int = 3, false_negatives: float = 0.0
    ) -> list[tuple[str, SyntheticStory]]:
        """Return stories that share exactly one aspect with an anchor, and that aspect.

        They come in the order of ASPECTS and share nothing of the anchor's surface and wording; a share
        `false_negatives` of them (0 to 1) agrees in all aspects. The same world gives the same ones for a text; a
        larger `per_aspect` adds further ones.
        """
        if per_aspect < 0 or not 0 <= false_negatives <= 1:
            raise OptionError("per_aspect must be 0 or more, and false_negatives between 0 and 1")
        negatives: list[tuple[str, SyntheticStory]] = []
        for aspect in ASPECTS:
            for number in range(per_aspect):
                rng = Random(f"storyworld/{self._seed}/{aspect}/{number}/{anchor.text}")
                structure = anchor.structure
                if rng.random() >= false_negatives:
                    shared = {aspect: getattr(structure, aspect)}
                    structure = replace(self._structure(rng, unlike=structure), **shared)
                negatives.append((aspect, self._other_surface(rng, anchor, structure)))
        return negatives

    def _triple(self, split: str, number: int) -> SyntheticTriple:
        rng = Random(f"storyworld/{self._seed}/{split}/{number}")
        structure = self._structure(rng)
        anchor = self._write(structure, self._wording(rng, structure), self._surface(rng, split))
        near, far = _pick(rng, SHARED_SURFACE)
        positive = self._other_surface(rng, anchor, structure, near)
        negative = self._other_surface(rng, anchor, self._structure(rng, unlike=structure), far)
        return SyntheticTriple(anchor, positive, negative)

    def _other_surface(
        self, rng: Random, anchor: SyntheticStory, structure: Structure, shared: Collection[str] = ()
    ) -> SyntheticStory:
        """Write a story with nothing of the anchor's wording, and only the shared parts of its surface."""
        surface = self._surface(rng, anchor.surface.split, unlike=anchor)
        old = anchor.surface
        if "names" in shared:
            fillings = {**surface.fillings, "place": old.fillings["place"], "org": old.fillings["org"]}
            surface = replace(surface, persons=old.persons, fillings=fillings)
        if "setting" in shared:
            names = {name: surface.fillings[name] for name in ("place", "org") if "names" not in shared}
            split, persons = surface.split, surface.persons
            surface = replace(old, split=split, persons=persons, fillings={**old.fillings, **names})
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
        used = Wording(-1, (-1,) * len(course), -1)
        if unlike is not None:
            old, same = unlike.wording, unlike.structure
            used = Wording(
                old.theme if same.theme == structure.theme else -1,
                old.events if same.action == structure.action else used.events,
                old.outcome if same.outcome == structure.outcome else -1,
            )
        return Wording(
            theme=_pick(rng, range(len(self._inventory.themes[structure.theme])), {used.theme}),
            events=tuple(_pick(rng, range(len(event)), {n}) for event, n in zip(course, used.events, strict=True)),
            outcome=_pick(rng, range(len(self._inventory.outcomes[structure.outcome])), {used.outcome}),
        )

    def _surface(self, rng: Random, split: str, unlike: SyntheticStory | None = None) -> Surface:
        """Draw a surface; it shares no setting and no word of a name with another story."""
        inventory = self._inventory
        taken = {word for name in unlike.names for word in name.split()} if unlike else set()
        key = _pick(rng, list(inventory.settings), {unlike.surface.setting} if unlike else ())
        setting = inventory.settings[key]
        persons: dict[str, Person] = {}
        for role in ("hero", "rival", "extra"):
            last = _pick(rng, inventory.surnames, taken)
            own = (SPLITS.index(split) - inventory.surnames.index(last)) % len(SPLITS)
            first = _pick(rng, inventory.first_names[own :: len(SPLITS)], taken)
            persons[role] = Person(f"{first} {last}", alias=_pick(rng, (first, last)))
            taken |= {first, last}
        job = _pick(rng, setting.jobs)
        return Surface(
            split=split,
            setting=key,
            persons=persons,
            fillings={
                "place": _pick(rng, setting.places),
                "org": f"{_pick(rng, inventory.organisation_stems, taken)} {_pick(rng, setting.organisations)}",
                "job": job,
                "job2": _pick(rng, setting.jobs, {job}),
                "site": _pick(rng, setting.sites),
                "thing": _pick(rng, setting.things),
            },
            opening=_pick(rng, setting.openings),
            companion=_pick(rng, setting.companions),
            subplot=_pick(rng, setting.subplots),
            theme_at=_pick(rng, range(4)),
            subplot_at=rng.random(),
        )

    def _write(self, structure: Structure, wording: Wording, surface: Surface) -> SyntheticStory:
        inventory = self._inventory
        course = inventory.courses[structure.action]
        templates = {f"event{i}": event[n] for i, (event, n) in enumerate(zip(course, wording.events, strict=True))}
        order = list(templates)
        order.insert(int(surface.subplot_at * (len(course) + 1)), "subplot")
        order = ["opening", "companion", *order]
        order.insert(surface.theme_at if surface.theme_at < 3 else len(order), "theme")
        templates |= {
            "opening": surface.opening,
            "companion": surface.companion,
            "subplot": surface.subplot,
            "theme": inventory.themes[structure.theme][wording.theme],
            "outcome": inventory.outcomes[structure.outcome][wording.outcome],
        }
        names: dict[str, str] = {}
        sentences = {part: _fill(templates[part], surface, names) for part in [*order, "outcome"]}
        events = "\n".join(sentences[f"event{i}"] for i in range(len(course)))
        views = Views(sentences["theme"], events, sentences["outcome"])
        return SyntheticStory(" ".join(sentences.values()), views, names, structure, wording, surface)


def _fill(template: str, surface: Surface, names: dict[str, str]) -> str:
    """Fill a sentence's slots and note its names: a person's full name at first, the alias from then on."""

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
    """Draw a choice; by `random()` alone, which is the same in every Python version."""
    left = [choice for choice in choices if choice not in avoid]
    return left[int(rng.random() * len(left))]


def synthetic_triples(triples: Sequence[SyntheticTriple], stories: StoryTable, views: bool = False) -> Triples:
    """Add triples to a table; in about half of them A is the closer, as each anchor's text decides."""
    rows = []
    for triple in triples:
        first = a_comes_first(triple.anchor.text)
        candidates = (triple.positive, triple.negative) if first else (triple.negative, triple.positive)
        anchor, a, b = [_add(story, stories, views) for story in (triple.anchor, *candidates)]
        rows.append(Triple(anchor, a, b, first))
    return Triples(stories, rows)


def synthetic_examples(
    triples: Sequence[SyntheticTriple],
    negatives: Sequence[Sequence[tuple[str, SyntheticStory]]],
    stories: StoryTable,
    views: bool = False,
) -> TrainingExamples:
    """Add training examples to a table: each triple's own negative first, then the further ones with their kinds."""
    rows = []
    for triple, more in zip(triples, negatives, strict=True):
        kinds, others = zip(("triple", triple.negative), *more, strict=True)
        anchor, positive, *rest = [_add(story, stories, views) for story in (triple.anchor, triple.positive, *others)]
        rows.append(TrainingExample(anchor, positive, tuple(rest), kinds))
    return TrainingExamples(stories, rows)


def _add(story: SyntheticStory, stories: StoryTable, views: bool) -> int:
    return stories.add(story.text, views=story.views if views else None)
