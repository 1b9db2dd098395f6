"""StoryWorldData: synthetic stories with known theme, course of action and outcome."""

from collections.abc import Sequence
from dataclasses import replace

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.schema import StoryTable, TrainingExamples, Triples
from narrlit.data.storyworld import StoryWorld, SyntheticStory, SyntheticTriple, synthetic_examples, synthetic_triples
from narrlit.datamodules.hard_examples import HardExampleSampling
from narrlit.datamodules.loaders import LoaderOptions
from narrlit.datamodules.provenance import Provenance, StoryWorldRecord
from narrlit.datamodules.pseudo_labels import PseudoLabels
from narrlit.datamodules.story_data import Stage, StoryData


class StoryWorldData(StoryData):
    """Training examples and triples of StoryWorld, without common stories between splits."""

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
        loading: LoaderOptions = LoaderOptions(),
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
        """Generate the training examples; the first negative of each example is that of its triple."""
        triples = self._generate("train", stories)
        negatives = []
        for triple in triples:
            added = self.world.one_aspect_negatives(triple.anchor, self.negatives_per_aspect, self.false_negatives)
            self._store_plans(stories, [negative.story for negative in added])
            negatives.append(added)
        record = replace(
            self._record(triples),
            negatives_per_aspect=self.negatives_per_aspect,
            false_negatives=self.false_negatives,
        )
        self.note("train", Provenance(storyworld=record))
        return synthetic_examples(triples, negatives, stories, self.has_views)

    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Generate the triples of a stage."""
        triples = self._generate(stage, stories)
        self.note(stage, Provenance(storyworld=self._record(triples)))
        return synthetic_triples(triples, stories, self.has_views)

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Generate the stories of the test triples, and return their indices."""
        triples = self._generate("unlabelled", stories)
        self.note("unlabelled", Provenance(storyworld=self._record(triples)))
        indices = synthetic_triples(triples, stories, self.has_views).indices
        return list(dict.fromkeys(indices.ravel().tolist()))

    def synthetic_story(self, index: int) -> SyntheticStory | None:
        """Return the StoryWorld plan of a story."""
        return self._synthetic.get(index)

    def _generate(self, name: str, stories: StoryTable) -> list[SyntheticTriple]:
        """Generate the triples of a set, and store the plans of their stories."""
        split = "test" if name in ("predict", "unlabelled") else name
        triples = self.world.triples(self.sizes[name], split)
        for triple in triples:
            self._store_plans(stories, [triple.anchor, triple.positive, triple.negative])
        rank_zero_info(f"StoryWorld (seed {self.world_seed}): {len(triples)} {name} triples")
        return triples

    def _store_plans(self, stories: StoryTable, synthetic: Sequence[SyntheticStory]) -> None:
        """Store the plans of stories by their story indices."""
        for story in synthetic:
            self._synthetic[stories.add(story.text)] = story

    def _record(self, triples: Sequence[SyntheticTriple]) -> StoryWorldRecord:
        return StoryWorldRecord(self.world_seed, len(triples), views=self.has_views or None)
