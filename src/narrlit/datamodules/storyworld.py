"""Invented stories as data: nothing to download, and the truth about every story is known."""

from collections.abc import Sequence
from dataclasses import astuple, replace

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.records import Example, Triple
from narrlit.data.storyworld import StoryWorld, WorldTriple, example, judged_triples
from narrlit.data.storyworld.realise import InventedStory
from narrlit.data.table import StoryTable
from narrlit.datamodules.base import Stage, StoryData
from narrlit.datamodules.loading import Loading
from narrlit.errors import OptionError
from narrlit.text.joined import Views, join


class StoryWorldData(StoryData):
    """Examples and triples of StoryWorld, made from a seed of their own; splits share no story."""

    def __init__(
        self,
        train: int = 400,
        validation: int = 200,
        test: int = 200,
        world_seed: int = 0,
        negatives_per_dimension: int = 0,
        false_negatives: float = 0.0,
        views: bool = False,
        loading: Loading = Loading(),  # noqa: B008 (frozen)
    ) -> None:
        """Args give sizes.

        Args:
            train: training examples.
            validation: triples judged after every epoch.
            test: triples judged by `narrlit test` and answered by `narrlit predict`.
            world_seed: decides the stories; apart from the run's seed, so that seeds can be compared on the same data.
            negatives_per_dimension: for every example, stories like its anchor in one dimension only.
            false_negatives: share of these, 0 to 1, that are in truth like the anchor; to plant what a teacher's mask
                must find.
            views: join each story with its true theme, course of action and outcome, as objective MultiView reads it.
            loading: batches.

        Raises:
            OptionError: for a share that is none.
        """
        if not 0 <= false_negatives <= 1:
            raise OptionError(f"data.false_negatives is {false_negatives}: a share from 0 to 1 is needed")
        super().__init__(loading)
        self.sizes = {"train": train, "validation": validation, "test": test, "predict": test, "unlabelled": test}
        self.world = StoryWorld(world_seed)
        self.world_seed = world_seed
        self.negatives_per_dimension = negatives_per_dimension
        self.false_negatives = false_negatives
        self.views = self.joins_views = views
        self._truths: dict[str, tuple[str, str, str]] = {}
        self.names: dict[str, dict[str, str]] = {}

    def read_examples(self) -> list[Example]:
        """The training examples, the triple's negative first."""
        self._note("train")
        self.provenance["train"]["storyworld"] |= {
            "negatives_per_dimension": self.negatives_per_dimension,
            "false_negatives": self.false_negatives,
        }
        found = []
        for told in self.world.triples(self.sizes["train"], "train"):
            negatives = [(kind, self._read(story)) for kind, story in self._negatives(told.anchor)]
            triple = self._read_triple(told)
            invented = (triple.anchor, triple.positive, triple.negative, *(story for _, story in negatives))
            self._truths.update({story.text: astuple(story.structure) for story in invented})
            found.append(example(triple, negatives))
        return found

    def _negatives(self, anchor: InventedStory) -> list[tuple[str, InventedStory]]:
        count = self.negatives_per_dimension
        return self.world.one_dimension_negatives(anchor, count, self.false_negatives) if count else []

    def _read(self, story: InventedStory) -> InventedStory:
        """The story as it is read: with its views, if they are wanted."""
        views = Views(story.views.theme, "\n".join(story.views.events), story.views.outcome)
        read = replace(story, text=join(story.text, views)) if self.views else story
        self.names[read.text] = dict(story.names)
        return read

    def _read_triple(self, triple: WorldTriple) -> WorldTriple:
        return WorldTriple(self._read(triple.anchor), self._read(triple.positive), self._read(triple.negative))

    def read_truths(self, texts: Sequence[str]) -> list[tuple[str, str, str] | None]:
        """What each training story was made of."""
        return [self._truths.get(text) for text in texts]

    def read_unlabelled(self) -> list[str]:
        """The stories of the test triples, each once."""
        triples = [self._read_triple(triple) for triple in self.world.triples(self.sizes["test"], "test")]
        self._note("unlabelled")
        return StoryTable(s.text for t in triples for s in (t.anchor, t.positive, t.negative)).texts

    def read_triples(self, stage: Stage) -> list[Triple]:
        """A stage's triples."""
        self._note(stage)
        split = "test" if stage == "predict" else stage
        told = self.world.triples(self.sizes[stage], split)
        # Which candidate is A is decided by the story alone, whether views stand behind it or not.
        as_read = {story.text: self._read(story).text for t in told for story in (t.anchor, t.positive, t.negative)}
        return [triple.with_texts([as_read[text] for text in triple.texts]) for triple in judged_triples(told)]

    def _note(self, stage: str) -> None:
        told = {"seed": self.world_seed, "triples": self.sizes[stage]}
        self.provenance[stage] = {"storyworld": {**told, "views": True} if self.views else told}
        rank_zero_info(f"StoryWorld (seed {self.world_seed}): {self.sizes[stage]} {stage} triples")
