"""StoryWorldData: synthetic stories, whose theme, course of action and outcome are known."""

from collections.abc import Sequence
from dataclasses import replace

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.schema import StoryTable, TrainingExamples, Triples
from narrlit.data.storyworld import StoryWorld, SyntheticStory, SyntheticTriple, synthetic_examples, synthetic_triples
from narrlit.datamodules.hard_examples import HardExampleSampling
from narrlit.datamodules.loaders import Loading
from narrlit.datamodules.provenance import Provenance, StoryWorldRecord
from narrlit.datamodules.pseudo_labels import PseudoLabels
from narrlit.datamodules.story_data import Stage, StoryData


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
        """
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
        per_aspect, false = self.negatives_per_aspect, self.false_negatives
        triples = self._make("train", stories)
        more = [self.world.one_aspect_negatives(triple.anchor, per_aspect, false) for triple in triples]
        for negatives in more:
            self._remember(stories, [story for _, story in negatives])
        record = replace(self._record(triples), negatives_per_aspect=per_aspect, false_negatives=false)
        self.note("train", Provenance(storyworld=record))
        return synthetic_examples(triples, more, stories, self.has_views)

    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Make a stage's triples."""
        triples = self._make(stage, stories)
        self.note(stage, Provenance(storyworld=self._record(triples)))
        return synthetic_triples(triples, stories, self.has_views)

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Make the stories of the test triples."""
        triples = self._make("unlabelled", stories)
        self.note("unlabelled", Provenance(storyworld=self._record(triples)))
        indices = synthetic_triples(triples, stories, self.has_views).indices
        return list(dict.fromkeys(indices.ravel().tolist()))

    def synthetic_story(self, index: int) -> SyntheticStory | None:
        """Return the StoryWorld plan of a story."""
        return self._synthetic.get(index)

    def _make(self, name: str, stories: StoryTable) -> list[SyntheticTriple]:
        """Make a set's triples, and keep the plans of their stories."""
        triples = self.world.triples(self.sizes[name], "test" if name in ("predict", "unlabelled") else name)
        for triple in triples:
            self._remember(stories, [triple.anchor, triple.positive, triple.negative])
        rank_zero_info(f"StoryWorld (seed {self.world_seed}): {len(triples)} {name} triples")
        return triples

    def _remember(self, stories: StoryTable, made: Sequence[SyntheticStory]) -> None:
        self._synthetic.update({stories.add(story.text): story for story in made})

    def _record(self, triples: Sequence[SyntheticTriple]) -> StoryWorldRecord:
        return StoryWorldRecord(self.world_seed, len(triples), views=self.has_views or None)
