"""StoryWorldData: synthetic stories, nothing to download, and the truth about every story is known."""

from collections.abc import Mapping
from dataclasses import astuple

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.schema import StoryTable, TrainingExamples, Triples
from narrlit.data.storyworld import (
    StoryWorld,
    SyntheticStory,
    SyntheticTriple,
    synthetic_examples,
    synthetic_triples,
)
from narrlit.datamodules.settings import HardExampleSampling, Loading, PseudoLabels
from narrlit.datamodules.story_data import Stage, StoryData
from narrlit.errors import OptionError


class StoryWorldData(StoryData):
    """Examples and triples of StoryWorld, made from a seed of their own; splits share no story."""

    def __init__(  # noqa: PLR0913, PLR0917 (a config's keys)
        self,
        train: int = 400,
        validation: int = 200,
        test: int = 200,
        world_seed: int = 0,
        negatives_per_aspect: int = 0,
        false_negatives: float = 0.0,
        views: bool = False,
        hard_examples: HardExampleSampling = HardExampleSampling(),
        pseudo_labels: PseudoLabels = PseudoLabels(),
        loading: Loading = Loading(),
    ) -> None:
        """Set the sizes.

        Args:
            train: training examples.
            validation: triples evaluated after every epoch.
            test: triples for `narrlit test` and `narrlit predict`.
            world_seed: decides the stories; apart from the run's seed, so that seeds can be compared on the same data.
            negatives_per_aspect: for every example, stories similar to its anchor in one aspect only.
            false_negatives: share of these, 0 to 1, that are similar in all aspects, for a teacher's mask to find.
            views: give each story its true theme, course of action and outcome as views.
            hard_examples: sampling of hard examples.
            pseudo_labels: labels of the training stories' aspects.
            loading: batches.

        Raises:
            OptionError: for a share out of range.
        """
        if not 0 <= false_negatives <= 1:
            raise OptionError(f"data.false_negatives is {false_negatives}: a share from 0 to 1 is needed")
        super().__init__(loading, hard_examples, pseudo_labels)
        self.sizes = {"train": train, "validation": validation, "test": test, "predict": test, "unlabelled": test}
        self.world = StoryWorld(world_seed)
        self.world_seed = world_seed
        self.negatives_per_aspect = negatives_per_aspect
        self.false_negatives = false_negatives
        self.has_views = views
        self._synthetic: dict[int, SyntheticStory] = {}

    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Make the training examples, each triple's own negative first."""
        self._note("train")
        self.provenance["train"]["storyworld"] |= {
            "negatives_per_aspect": self.negatives_per_aspect,
            "false_negatives": self.false_negatives,
        }
        triples = self.world.triples(self.sizes["train"], "train")
        more = [
            self.world.one_aspect_negatives(triple.anchor, self.negatives_per_aspect, self.false_negatives)
            for triple in triples
        ]
        examples = synthetic_examples(triples, more, stories, self.has_views)
        self._remember(stories, triples, [story for each in more for _, story in each])
        return examples

    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Make a stage's triples."""
        self._note(stage)
        triples = self.world.triples(self.sizes[stage], "test" if stage == "predict" else stage)
        rows = synthetic_triples(triples, stories, self.has_views)
        self._remember(stories, triples)
        return rows

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Make the stories of the test triples."""
        self._note("unlabelled")
        triples = self.world.triples(self.sizes["test"], "test")
        rows = synthetic_triples(triples, stories, self.has_views)
        self._remember(stories, triples)
        return list(dict.fromkeys(rows.indices.ravel().tolist()))

    def story_names(self, index: int) -> Mapping[str, str] | None:
        """Return the names in a story."""
        return self._synthetic[index].names

    def story_truth(self, index: int) -> tuple[str, str, str] | None:
        """Return what a story was made of."""
        story = self._synthetic.get(index)
        return None if story is None else astuple(story.structure)

    def _remember(
        self, stories: StoryTable, triples: list[SyntheticTriple], more: list[SyntheticStory] | None = None
    ) -> None:
        every = [story for t in triples for story in (t.anchor, t.positive, t.negative)] + (more or [])
        self._synthetic.update({stories.add(story.text): story for story in every})

    def _note(self, name: str) -> None:
        description = {"seed": self.world_seed, "triples": self.sizes[name]}
        self.provenance[name] = {"storyworld": {**description, "views": True} if self.has_views else description}
        rank_zero_info(f"StoryWorld (seed {self.world_seed}): {self.sizes[name]} {name} triples")
