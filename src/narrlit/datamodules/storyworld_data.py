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
    """Training examples and triples of StoryWorld; splits share no story."""

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
            train: number of training examples.
            validation: number of triples evaluated after every epoch.
            test: number of triples for `narrlit test` and `narrlit predict`.
            world_seed: seed of the stories, separate from that of the run, so that runs with different seeds can be
                compared on the same data.
            negatives_per_aspect: number of negatives per example and aspect that are similar to the anchor in this
                aspect only.
            false_negatives: share of these negatives, 0 to 1, that are similar in all aspects, for a teacher to mask.
            views: use the true theme, course of action and outcome of each story as its views.
            hard_examples: sampling of hard examples.
            pseudo_labels: pseudo-labels of the training stories' aspects.
            loading: batch sizes and further settings of data loading.
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
        """Make the training examples; the first negative of each is that of its triple."""
        triples = self._make("train", stories)
        negatives = []
        for triple in triples:
            of_triple = self.world.one_aspect_negatives(triple.anchor, self.negatives_per_aspect, self.false_negatives)
            self._remember(stories, [negative.story for negative in of_triple])
            negatives.append(of_triple)
        record = replace(
            self._record(triples),
            negatives_per_aspect=self.negatives_per_aspect,
            false_negatives=self.false_negatives,
        )
        self.note("train", Provenance(storyworld=record))
        return synthetic_examples(triples, negatives, stories, self.has_views)

    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Make the triples of a stage."""
        triples = self._make(stage, stories)
        self.note(stage, Provenance(storyworld=self._record(triples)))
        return synthetic_triples(triples, stories, self.has_views)

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Make the stories of the test triples, and return their indices."""
        triples = self._make("unlabelled", stories)
        self.note("unlabelled", Provenance(storyworld=self._record(triples)))
        indices = synthetic_triples(triples, stories, self.has_views).indices
        return list(dict.fromkeys(indices.ravel().tolist()))

    def synthetic_story(self, index: int) -> SyntheticStory | None:
        """Return the StoryWorld plan of a story."""
        return self._synthetic.get(index)

    def _make(self, name: str, stories: StoryTable) -> list[SyntheticTriple]:
        """Make the triples of a set, and store the plans of their stories."""
        triples = self.world.triples(self.sizes[name], "test" if name in ("predict", "unlabelled") else name)
        for triple in triples:
            self._remember(stories, [triple.anchor, triple.positive, triple.negative])
        rank_zero_info(f"StoryWorld (seed {self.world_seed}): {len(triples)} {name} triples")
        return triples

    def _remember(self, stories: StoryTable, synthetic: Sequence[SyntheticStory]) -> None:
        """Store the plans of stories by their story indices."""
        self._synthetic.update({stories.add(story.text): story for story in synthetic})

    def _record(self, triples: Sequence[SyntheticTriple]) -> StoryWorldRecord:
        return StoryWorldRecord(self.world_seed, len(triples), views=self.has_views or None)
