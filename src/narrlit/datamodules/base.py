"""What every datamodule shares: stories once, tokens once, loaders of packed batches."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal, TypeVar

import lightning as L
import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from narrlit.data.collate import TripleCollator
from narrlit.data.leakage import Overlap, overlap
from narrlit.data.places import PlaceTable
from narrlit.data.pseudonyms import pseudonymised_examples, pseudonymised_stories, pseudonymised_triples
from narrlit.data.records import Example, Story, Triple
from narrlit.data.sampling import DistinctBatchSampler, Share, padded_share
from narrlit.data.table import IndexedExamples, IndexedTriples, index_examples, index_triples
from narrlit.datamodules.loading import Loading
from narrlit.datamodules.refusals import check_processes, check_read
from narrlit.datamodules.resumable import ResumableLoader
from narrlit.errors import OptionError
from narrlit.seeds import run_seed

Record = TypeVar("Record", Example, Triple)
Stage = Literal["validation", "test", "predict"]
STAGE_OF: dict[str, Stage] = {"fit": "validation", "validate": "validation", "test": "test", "predict": "predict"}
"""The triples that each of the trainer's stages judges."""


class StoryData(L.LightningDataModule):
    """Base of the datamodules: a subclass reads examples and triples, from files or elsewhere."""

    def __init__(self, loading: Loading) -> None:
        super().__init__()
        self.loading = loading
        self.examples: list[Example] = []
        self.triples: dict[Stage, list[Triple]] = {}
        self._examples_as_read: list[Example] = []
        self._triples_as_read: dict[Stage, list[Triple]] = {}
        self._originals: dict[str, str] = {}
        self._unlabelled: list[str] | None = None
        self.provenance: dict[str, dict[str, Any]] = {}
        self.synthetic_rows = 0
        """How many of the training examples, the last ones, a language model wrote; folds do not judge by them."""
        self._indexed: IndexedExamples | None = None
        self._loader: ResumableLoader | None = None
        self._skip = 0
        self._added = 0
        self._judged: dict[Stage, IndexedTriples] = {}
        self._tables: dict[str, PlaceTable[Any]] = {}
        self._weights: NDArray[np.float64] | None = None

    @abstractmethod
    def read_examples(self) -> list[Example]:
        """The training examples; also notes in `provenance` where they come from."""

    @abstractmethod
    def read_triples(self, stage: Stage) -> list[Triple]:
        """The triples of a stage, none where there are none; also notes where they come from."""

    def setup(self, stage: str) -> None:
        """Read what the stage needs, once.

        Raises:
            OptionError: if the stage has no data, nothing would read a part of them, or the trainer would replace the
                sampler.
        """
        if self.trainer is not None:
            check_processes(self.trainer, self.loading)
            check_read(self.trainer.lightning_module, self.joins_views, stage == "fit" and self.unlabelled_given)
        if stage == "fit" and not self.examples:
            read = self.read_examples()
            if not read:
                raise OptionError("no training data: give --data.train FILE")
            self._examples_as_read = read
            self.examples = self._pseudonymised("train", read, pseudonymised_examples)
            self._indexed = index_examples(self.examples)
        name = STAGE_OF[stage]
        if name not in self.triples:
            triples = self._triples_as_read[name] = self.read_triples(name)
            self.triples[name] = self._pseudonymised(name, triples, pseudonymised_triples)
            self._judged[name] = index_triples(self.triples[name])
        if stage != "fit" and not self.triples[name]:
            raise OptionError(f"no {name} data: give --data.{name} FILE")
        if name != "predict" and any(triple.a_is_closer is None for triple in self.triples[name]):
            raise OptionError(f"the {name} triples have no labels: give --data.{name}_labels FILE")

    def _pseudonymised(self, name: str, read: list[Record], pseudonymise: Callable[..., list[Record]]) -> list[Record]:
        """Records with placeholders for names, if that is wanted."""
        options = self.loading.pseudonyms
        if options.backend == "none" or not read:
            return read
        self.provenance.setdefault(name, {})["pseudonyms"] = asdict(options)
        found = pseudonymise(read, options, getattr(getattr(self, "source", self), "names", None))
        for new, old in zip(found, read, strict=True):
            self._originals.update(zip(new.texts, old.texts, strict=True))
        return found

    def train_dataloader(self) -> DataLoader[Any]:
        """Batches in random order, the same for the same seed and epoch."""
        indexed = self.indexed
        loading, table, share = self.loading, self.training_table(), self._share()
        sampler = DistinctBatchSampler(
            indexed.anchors,
            indexed.positives,
            loading.batch_size,
            run_seed(),
            share,
            self._weights,
            loading.samples_per_epoch,
        )
        objective: Any = self.trainer.lightning_module  # type: ignore[union-attr]
        self._loader = ResumableLoader(
            range(len(indexed)),  # type: ignore[arg-type]
            batch_sampler=sampler,
            collate_fn=objective.collator(indexed, table),
            num_workers=loading.workers,
            pin_memory=self._on_gpu(),
        )
        self._loader.skip, self._skip = self._skip, 0
        return self._loader

    def state_dict(self) -> dict[str, Any]:
        """Training batches of this epoch that were handed out, for checkpoints; 0 after its last."""
        ended = self._loader is None or self.trainer is None or self.trainer.is_last_batch
        return {"taken": 0 if ended or self._loader is None else self._loader.taken}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on within the epoch, whether the loader is there already or not."""
        self._skip = state_dict.get("taken", 0)
        if self._loader is not None:
            self._loader.skip, self._skip = self._skip, 0

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        """Validation triples in file order; nothing where there are none."""
        return self._judging_loader("validation") if self.triples["validation"] else []

    def test_dataloader(self) -> DataLoader[Any]:
        """Test triples in file order."""
        return self._judging_loader("test")

    def predict_dataloader(self) -> DataLoader[Any]:
        """Triples to predict, in file order."""
        return self._judging_loader("predict")

    def _judging_loader(self, stage: Stage) -> DataLoader[Any]:
        indexed = self._judged[stage]
        return DataLoader(
            padded_share(len(indexed), self._share()),  # type: ignore[arg-type]
            batch_size=self.loading.evaluation_batch_size,
            collate_fn=TripleCollator(indexed, self.judged_table(stage)),
            num_workers=self.loading.workers,
            pin_memory=self._on_gpu(),
        )

    def _table_of(self, name: str, texts: list[str]) -> PlaceTable[Any]:
        if name not in self._tables:
            objective: Any = self.trainer.lightning_module  # type: ignore[union-attr]
            table: PlaceTable[Any] = objective.story_table(texts, name)
            self._tables[name] = table
            self.provenance.setdefault(name, {}).update(stories=len(texts), **table.provenance)
        return self._tables[name]

    def _share(self) -> Share:
        return Share(self.trainer.global_rank, self.trainer.world_size) if self.trainer else Share()

    def _on_gpu(self) -> bool:
        return self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"

    def triples_as_read(self, stage: Stage) -> list[Triple]:
        """A stage's triples with the names that pseudonyms have taken out."""
        return list(self._triples_as_read.get(stage, []))

    def validation_texts(self) -> list[str]:
        """The validation stories' texts, by row."""
        return self._judged["validation"].table.texts if "validation" in self._judged else []

    def training_texts(self) -> list[str]:
        """The training stories' texts, by row."""
        return self._indexed.table.texts if self._indexed is not None else []

    def training_table(self) -> PlaceTable[Any]:
        """What stands for the training stories, by row."""
        return self._table_of("train", self.training_texts())

    def judged_table(self, stage: Stage) -> PlaceTable[Any]:
        """What stands for the stories of a stage's triples, by row."""
        return self._table_of(stage, self._judged[stage].table.texts)

    def stages_of(self, stage: str) -> list[Stage]:
        """The stages whose triples are judged in one of the trainer's stages; those without any are left out."""
        return [name for name in (STAGE_OF[stage],) if self.triples[name]]

    def judged(self, stage: Stage) -> IndexedTriples:
        """A stage's triples as rows of its table."""
        return self._judged[stage]

    @property
    def indexed(self) -> IndexedExamples:
        """The training examples as rows of their table.

        Raises:
            RuntimeError: before setup("fit").
        """
        if self._indexed is None:
            raise RuntimeError("setup('fit') comes first")
        return self._indexed

    joins_views = False
    """Whether behind each story's text stand its views."""

    unlabelled_given = False
    """Whether the user has named unlabelled stories, which only a transductive objective reads."""

    def read_unlabelled(self) -> list[str]:
        """Stories without any label; none here. Also notes where they come from."""
        return []

    def unlabelled_texts(self) -> list[str]:
        """Stories without any label that a transductive objective may train on."""
        if self._unlabelled is None:
            stories = [Story(text) for text in self.read_unlabelled()]
            self._unlabelled = [story.text for story in pseudonymised_stories(stories, self.loading.pseudonyms)]
        return self._unlabelled

    def read_truths(self, texts: Sequence[str]) -> list[tuple[str, str, str] | None]:
        """What stories, as they were read, were made of; None: nobody knows."""
        return [None] * len(texts)

    def story_truths(self, texts: Sequence[str]) -> list[tuple[str, str, str] | None]:
        """Theme, course of action and outcome of training stories as their maker knows them; None: nobody does."""
        return self.read_truths([self._originals.get(text, text) for text in texts])

    def teardown(self, stage: str) -> None:
        """Forget what the objective of a fit has made of the data: another may come."""
        if stage != "fit":
            return
        self._weights = None
        self._tables.clear()
        if self._added:
            self.examples, self._added = self.examples[: -self._added], 0
            self._indexed = index_examples(self.examples)

    def train_also(self, examples: list[Example]) -> None:
        """Add training examples to this fit; before the first batch."""
        self._added += len(examples)
        self.examples = [*self.examples, *examples]
        self._indexed = index_examples(self.examples)
        self._tables.pop("train", None)

    def weight(self, weights: NDArray[np.float64]) -> None:
        """Draw this fit's examples in proportion to weights (N,), with replacement; before the first batch."""
        if len(weights) != len(self.examples):
            raise ValueError(f"{len(weights)} weights for {len(self.examples)} examples")
        self._weights = weights

    def negative_kinds(self) -> set[str | None]:
        """Kinds of the negatives that the training examples have."""
        return {negative.kind for example in self.examples for negative in example.negatives}

    def train_validation_overlap(self, anchors_alone: bool = False) -> Overlap:
        """What training and validation data have in common, names and all.

        Args:
            anchors_alone: of the training data's anchors, where nothing else trains.
        """
        added = self.examples[len(self.examples) - self._added :]
        as_read = [example.with_texts([self._originals.get(text, text) for text in example.texts]) for example in added]
        examples = [*self._examples_as_read, *as_read]
        return overlap(
            ((example.anchor,) if anchors_alone else example.texts for example in examples),
            (triple.texts for triple in self.triples_as_read("validation")),
        )
