"""Invented stories as data: nothing to download, and the truth about every story is known."""

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.records import Example, Triple
from narrlit.data.storyworld import StoryWorld, example, judged_triples
from narrlit.datamodules.base import Loading, Stage, StoryData


class StoryWorldData(StoryData):
    """Examples and triples of StoryWorld, made from a seed of their own; splits share no story."""

    def __init__(
        self,
        train: int = 400,
        validation: int = 200,
        test: int = 200,
        world_seed: int = 0,
        negatives_per_dimension: int = 0,
        loading: Loading = Loading(),  # noqa: B008 (frozen)
    ) -> None:
        """Args give sizes.

        Args:
            train: training examples.
            validation: triples judged after every epoch.
            test: triples judged by `narrlit test` and answered by `narrlit predict`.
            world_seed: decides the stories; apart from the run's seed, so that seeds can be compared on the same data.
            negatives_per_dimension: for every example, stories like its anchor in one dimension only.
            loading: batches.
        """
        super().__init__(loading)
        self.sizes = {"train": train, "validation": validation, "test": test, "predict": test}
        self.world = StoryWorld(world_seed)
        self.world_seed = world_seed
        self.negatives_per_dimension = negatives_per_dimension

    def read_examples(self) -> list[Example]:
        """The training examples, the triple's negative first."""
        self._note("train")
        return [
            example(triple, self.world.one_dimension_negatives(triple.anchor, self.negatives_per_dimension))
            if self.negatives_per_dimension
            else example(triple)
            for triple in self.world.triples(self.sizes["train"], "train")
        ]

    def read_triples(self, stage: Stage) -> list[Triple]:
        """A stage's triples."""
        self._note(stage)
        split = "test" if stage == "predict" else stage
        return judged_triples(self.world.triples(self.sizes[stage], split))

    def _note(self, stage: str) -> None:
        self.provenance[stage] = {"storyworld": {"seed": self.world_seed, "triples": self.sizes[stage]}}
        rank_zero_info(f"StoryWorld (seed {self.world_seed}): {self.sizes[stage]} {stage} triples")
