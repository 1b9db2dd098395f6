"""StoryWorld: as many invented stories as wanted, in triples that set structure against surface."""

from dataclasses import dataclass, replace
from math import prod
from random import Random

from narrlit.data.records import DIMENSIONS
from narrlit.data.storyworld.inventory import load_inventory
from narrlit.data.storyworld.realise import (
    InventedStory,
    Structure,
    Wording,
    draw_structure,
    draw_wording,
    realise,
    wording_of,
)
from narrlit.data.storyworld.surface import SPLITS, draw_surface, split_of
from narrlit.errors import OptionError

FIELDS = dict(zip(DIMENSIONS, ("theme", "course", "outcome"), strict=True))
"""The field of Structure that belongs to each dimension."""


@dataclass(frozen=True, slots=True)
class WorldTriple:
    """An anchor, a story with its structure in other words, and one with its surface and another structure."""

    anchor: InventedStory
    positive: InventedStory
    negative: InventedStory


class StoryWorld:
    """A seeded source of invented English stories.

    A story has a theme, a course of action and an outcome, chosen independently, and a surface (names, setting,
    wording, order) which says nothing about them. The same seed and arguments give the same stories everywhere.

    >>> world = StoryWorld(seed=1)
    >>> triple = world.triples(1)[0]
    >>> triple.anchor.structure == triple.positive.structure
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._inventory = load_inventory()

    @property
    def distinct_stories(self) -> int:
        """How many different stories there are at least: wordings, setting sentences and names of the hero."""
        inventory = self._inventory
        themes = sum(len(texts) for texts in inventory.themes.values())
        courses = sum(prod(len(event) for event in events) for events in inventory.courses.values())
        outcomes = sum(len(texts) for texts in inventory.outcomes.values())
        surfaces = sum(
            len(setting.places) * len(setting.openings) * len(setting.companions) * len(setting.subplots)
            for setting in inventory.settings.values()
        )
        return themes * courses * outcomes * surfaces * len(inventory.first_names) * len(inventory.surnames)

    def triples(self, count: int, split: str = "train") -> list[WorldTriple]:
        """The first `count` triples of a split; a larger count only adds to them.

        Args:
            count: how many.
            split: "train", "validation" or "test". No story is in two splits, as the persons' names differ.

        Raises:
            OptionError: if the count is negative or the split unknown.
        """
        if split not in SPLITS:
            raise OptionError(f"split is {split!r}; choose one of {', '.join(SPLITS)}")
        if count < 0:
            raise OptionError(f"count is {count}; it can't be negative")
        return [self._triple(split, number) for number in range(count)]

    def one_dimension_negatives(
        self, anchor: InventedStory, per_dimension: int = 3, false_negatives: float = 0.0
    ) -> list[tuple[str, InventedStory]]:
        """Stories that share exactly one of theme, course of action and outcome with `anchor`.

        They have other names, another setting and other realisations than the anchor, and belong to its split.
        The same world gives the same ones for a text; a larger `per_dimension` only adds to them.

        Args:
            anchor: a story of a StoryWorld.
            per_dimension: how many stories for each of DIMENSIONS.
            false_negatives: the share, from 0 to 1, of stories that in truth agree with the anchor in all
                dimensions, whatever dimension they come with.

        Returns:
            The dimension and the story, in the order of DIMENSIONS.

        Raises:
            OptionError: if an argument is out of range or the anchor isn't from a StoryWorld.
        """
        if per_dimension < 0 or not 0 <= false_negatives <= 1:
            raise OptionError("per_dimension must be 0 or more, and false_negatives between 0 and 1")
        wording = wording_of(self._inventory, anchor)
        negatives: list[tuple[str, InventedStory]] = []
        for dimension in DIMENSIONS:
            for number in range(per_dimension):
                rng = Random(f"storyworld/{self._seed}/{dimension}/{number}/{anchor.text}")
                structure = anchor.structure
                if rng.random() >= false_negatives:
                    kept = {FIELDS[dimension]: getattr(structure, FIELDS[dimension])}
                    structure = replace(draw_structure(rng, self._inventory, unlike=structure), **kept)
                negatives.append((dimension, self._retell(rng, anchor, wording, structure)))
        return negatives

    def _triple(self, split: str, number: int) -> WorldTriple:
        rng = Random(f"storyworld/{self._seed}/{split}/{number}")
        inventory = self._inventory
        structure = draw_structure(rng, inventory)
        wording = draw_wording(rng, inventory, structure)
        surface = draw_surface(rng, inventory, split)
        anchor = realise(inventory, structure, wording, surface)
        positive = self._retell(rng, anchor, wording, structure)
        other = draw_structure(rng, inventory, unlike=structure)
        negative = realise(inventory, other, draw_wording(rng, inventory, other), surface)
        return WorldTriple(anchor, positive, negative)

    def _retell(self, rng: Random, anchor: InventedStory, wording: Wording, structure: Structure) -> InventedStory:
        """A story of `structure` with nothing of the anchor's surface and wording."""
        inventory = self._inventory
        settings = {inventory.setting_of(name) for name, kind in anchor.names.items() if kind == "PLACE"} - {None}
        persons = [name for name, kind in anchor.names.items() if kind == "PERSON" and " " in name]
        words = {word for name in anchor.names for word in name.split()}
        surface = draw_surface(
            rng, inventory, split_of(inventory, persons[0]), words, {key for key in settings if key is not None}
        )
        other = draw_wording(rng, inventory, structure, unlike=(anchor.structure, wording))
        return realise(inventory, structure, other, surface)
