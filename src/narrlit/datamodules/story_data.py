"""StoryData, the base class of datamodules: reads, prepares and loads data, with one table of stories."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

import lightning as L
import numpy as np
from lightning_utilities.core.rank_zero import rank_zero_warn
from torch.utils.data import DataLoader

from narrlit.compat.lightning import undeclared, uses_distributed_sampler
from narrlit.data.batch import Collator, StoryInputs, StoryReader
from narrlit.data.sampling import (
    DistinctBatchSampler,
    ProcessShare,
    PseudoLabelCollator,
    StorySettings,
    TripleCollator,
    padded_share,
)
from narrlit.data.schema import PADDING, IntArray, StoryTable, TrainingExamples, Triples
from narrlit.data.splits import Overlap, overlap
from narrlit.data.storyworld import SyntheticStory
from narrlit.datamodules.hard_examples import HardExampleSampling
from narrlit.datamodules.loaders import LoaderOptions, ResumableLoader
from narrlit.datamodules.preparation import Preparation, Prepared, TrainingSet, TripleSet, divide_triples
from narrlit.datamodules.provenance import ContaminationFlags, DivisionRecord, Provenance
from narrlit.datamodules.pseudo_labels import PseudoLabels
from narrlit.datamodules.story_tables import StoryTables
from narrlit.errors import OptionError
from narrlit.results.findings import with_verdict
from narrlit.seeds import run_seed
from narrlit.statistics.set_checks import CheckedSet, CheckRecord, check_sets

Stage = Literal["validation", "test", "predict"]
STAGE_OF: Mapping[str, Stage] = {
    "fit": "validation",
    "validate": "validation",
    "test": "test",
    "predict": "predict",
}
"""Triples that are evaluated in each stage of a trainer."""


class StoryData(L.LightningDataModule):
    """Base class of the datamodules; a subclass reads examples and triples into a table of stories.

    Attributes:
        tables: tables of the stories before and after pseudonymization.
        stories: stories of all stages that were set up, after pseudonymization, training stories first.
        training: training set; None before a fit.
        prepared: prepared training data; None before the model is built and after the fit.
        sets: triples by stage.
        minable: validation triples that can be mined.
        validation_share: share of the validation triples that are evaluated; the others can be mined.
        setting_share: share of the examples with a setting that are put in batches with a single setting.
        provenance: provenance of each set, as plain data for run.json.
        synthetic_rows: number of training examples written by a language model, which come last.
        original_texts: training stories before their names were replaced by other ones.
    """

    has_views = False
    has_unlabelled = False  # True if unlabeled stories are given
    validation_share = 1.0
    setting_share = 0.0

    def __init__(
        self,
        loading: LoaderOptions,
        hard_examples: HardExampleSampling = HardExampleSampling(),
        pseudo_labels: PseudoLabels = PseudoLabels(),
    ) -> None:
        super().__init__()
        self.loading = loading
        self.hard_examples = hard_examples
        self.pseudo_labels = pseudo_labels
        self.tables = StoryTables(loading.pseudonyms, self.synthetic_story)
        self.stories = self.tables.stories
        self.training: TrainingSet | None = None
        self.prepared: Prepared | None = None
        self.sets: dict[Stage, TripleSet] = {}
        self.minable = TripleSet(Triples(self.tables.source, []), Triples(self.stories, []))
        self.provenance: dict[str, dict[str, object]] = {}
        self.synthetic_rows = 0
        self.original_texts: list[str] = []
        self._records: dict[str, Provenance] = {}
        self._inputs: StoryInputs[Any] | None = None
        self._loader: ResumableLoader | None = None
        self._skip = 0

    # Rows ------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Read the training examples, add their stories to a table, and `note` their provenance."""

    @abstractmethod
    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Read the triples of a stage, if any, add their stories to a table, and `note` their provenance."""

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Read unlabeled stories, add them to a table, and return their indices; the base class has none."""
        return []

    def synthetic_story(self, index: int) -> SyntheticStory | None:
        """Return the StoryWorld plan of a story by its index in `tables.source`; None for other stories."""
        return None

    def note(self, name: str, provenance: Provenance) -> None:
        """Record the provenance of a set, for run.json."""
        self._records[name] = provenance
        self.provenance[name] = provenance.as_dict()

    def noted(self, name: str) -> Provenance:
        """Return the provenance of a set; it is empty if the set was not read."""
        return self._records.get(name, Provenance())

    @property
    def examples(self) -> TrainingExamples:
        """Training examples, including mined validation triples."""
        if self.prepared is not None:
            return self.prepared.examples
        return TrainingExamples(self.stories, []) if self.training is None else self.training.examples

    @property
    def triples(self) -> dict[Stage, Triples]:
        """Triples that are evaluated in each stage."""
        return {stage: rows.triples for stage, rows in self.sets.items()}

    @property
    def reader(self) -> StoryReader:
        """The objective of the trainer."""
        return cast(StoryReader, cast(L.Trainer, self.trainer).lightning_module)

    # Stages ----------------------------------------------------------------------------------------------------------

    def setup(self, stage: str) -> None:
        """Read the examples and triples of a stage, unless they have been read already."""
        if self.trainer is not None:
            self._check(stage)
        if stage == "fit" and self.training is None:
            self.training = self._read_training()
        name = STAGE_OF[stage]
        if name not in self.sets:
            self._read_stage(name)
        self._check_triples(stage, self.sets[name].triples)

    def _read_training(self) -> TrainingSet:
        """Read training examples and, for a transductive run, unlabeled stories."""
        read = self.read_examples(self.tables.source)
        if not read:
            raise OptionError("no_training_data")
        examples = self.tables.examples(read)
        self._note_pseudonyms("train")
        if not self.pseudo_labels.transductive:
            return TrainingSet(read, examples, np.empty(0, dtype=np.int64))
        rows = [(index,) for index in self.read_unlabelled(self.tables.source)]
        unlabeled = np.array(self.tables.convert(rows), dtype=np.int64).ravel()
        if rows:
            self._note_pseudonyms("unlabelled")
        not_in_examples = np.setdiff1d(unlabeled, examples.story_indices)
        if not len(not_in_examples):
            raise OptionError("no_unlabeled_stories")
        return TrainingSet(read, examples, not_in_examples)

    def _read_stage(self, name: Stage) -> None:
        """Read the triples of a stage; set some validation triples apart, according to `validation_share`."""
        read = self.read_triples(name, self.tables.source)
        rows = TripleSet(read, self.tables.triples(read))
        if read:
            self._note_pseudonyms(name)
        if name == "validation":
            evaluated, self.minable = divide_triples(rows, self.validation_share)
            if evaluated is not rows:
                division = DivisionRecord(
                    self.validation_share, evaluated=len(evaluated.triples), set_apart=len(self.minable.triples)
                )
                self.note(name, replace(self.noted(name), divided=division))
            rows = evaluated
        self.sets[name] = rows

    def _note_pseudonyms(self, name: str) -> None:
        if self.tables.replaces_names:
            self.note(name, replace(self.noted(name), pseudonyms=self.loading.pseudonyms))

    def _check(self, stage: str) -> None:
        trainer, objective = cast(L.Trainer, self.trainer), type(self.reader).__name__
        if trainer.world_size > 1 and uses_distributed_sampler(trainer):
            raise OptionError("distributed_sampler")
        if stage == "fit" and self.has_unlabelled and not self.pseudo_labels.transductive:
            raise OptionError("unlabeled_without_transductive")
        if self.has_views and not self.reader.reads_views:
            raise OptionError("unread_views", objective=objective)
        if self.reader.reads_views and not self.has_views:
            raise OptionError("objective_reads_views", objective=objective)

    def _check_triples(self, stage: str, triples: Triples) -> None:
        name = STAGE_OF[stage]
        if stage != "fit" and not triples:
            raise OptionError("no_data", name=name, option=f"data.{name}")
        if name != "predict" and PADDING in triples.labels:
            unread = triples.report.unread if triples.report else ()
            option = f"data.{name}_labels"
            if unread:
                raise OptionError("labels_in_other_column", name=name, option=option, columns=list(unread))
            raise OptionError("triples_without_labels", name=name, option=option)

    def prepare_inputs(self, stage: str = "fit") -> StoryInputs[Any]:
        """Compute the encoder inputs of all stories and, for a fit, prepare its data, unless already done."""
        if self._inputs is None or self._inputs.num_stories != len(self.stories):
            self._inputs = self.reader.story_inputs(list(self.stories), stage)
            self.provenance["inputs"] = {"stories": len(self.stories), **self._inputs.provenance}
        if stage == "fit" and self.prepared is None and self.training is not None:
            self.prepared = self._prepare(self.training)
        return self._inputs

    def _prepare(self, training: TrainingSet) -> Prepared:
        """Prepare the training data, and record their provenance."""
        preparation = Preparation(
            self.hard_examples,
            self.pseudo_labels,
            self.validation_share,
            self.reader,
            cast(L.Trainer, self.trainer),
            lambda index: self.synthetic_story(self.tables.source_of(index)),
        )
        prepared = preparation.prepare(training, self.minable)
        noted = self.noted("train")
        self.note("train", replace(noted, hard_examples=prepared.hard_examples, pseudo_labels=prepared.pseudo_labels))
        return prepared

    def teardown(self, stage: str) -> None:
        """Release the inputs and the prepared data of a fit, which depend on its objective."""
        if stage == "fit":
            self._inputs = self.prepared = None

    # Checks ----------------------------------------------------------------------------------------------------------

    def flags(self) -> ContaminationFlags:
        """Return the contamination flags of the run."""
        mined, transductive = self.hard_examples.mine_validation, self.pseudo_labels.transductive
        return {"mined_validation": mined, "transductive": transductive}

    def train_validation_overlap(self, anchors_only: bool = False) -> Overlap:
        """Count the stories that training and validation data share, before pseudonymization.

        Args:
            anchors_only: compare only the anchors of the training examples, if no other story is trained on.
        """
        rows = [*self._original_training_texts()]
        if self.prepared is not None:
            minable = self.minable.read.texts()
            rows += [minable[number] for number in self.prepared.mined]
        if anchors_only:
            rows = [row[:1] for row in rows]
        rows += [(text,) for text in self.original_texts]
        return overlap(rows, self._original_validation().texts())

    def _original_training_texts(self) -> list[tuple[str, ...]]:
        """Return the texts of the training examples before pseudonymization; empty before a fit."""
        return [] if self.training is None else self.training.read.texts()

    def _original_validation(self) -> Triples:
        """Return the validation triples before pseudonymization; empty if they were not read."""
        return self.sets["validation"].read if "validation" in self.sets else Triples(self.tables.source, [])

    def check(self) -> CheckRecord:
        """Check the data of a fit before pseudonymization, and warn about shortcuts and shared stories."""
        sets = [CheckedSet.of_examples("train", self._original_training_texts())]
        validation = self._original_validation()
        if validation:
            labels = [triple.a_is_closer for triple in validation]
            sets.append(CheckedSet("validation", validation.texts(), labels, sided=True))
        result = with_verdict(check_sets(sets))
        if result["warnings"]:
            rank_zero_warn(" ".join([*result["warnings"], "(run.json: data_check)"]))
        return result

    # Loaders ---------------------------------------------------------------------------------------------------------

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the loader of training batches, in a random order that depends only on seed and epoch."""
        inputs = self.prepare_inputs("fit")
        prepared, loading = cast(Prepared, self.prepared), self.loading
        examples = prepared.examples
        sampler = DistinctBatchSampler(
            anchors=examples.groups[examples.anchors],
            positives=examples.groups[examples.positives],
            batch_size=loading.batch_size,
            seed=run_seed(),
            share=self._share(),
            weights=prepared.weights,
            limit=loading.samples_per_epoch,
            settings=self._settings(examples),
            near=examples.near,
        )
        collator = self.reader.collator(examples, inputs)
        if prepared.labels is not None:
            collator = self._labeling(collator, inputs, prepared.labels, prepared.unlabelled)
        self._loader = ResumableLoader(
            range(len(examples)),  # type: ignore[arg-type]  # declared as Dataset; torch accepts any sequence
            batch_sampler=sampler,
            collate_fn=collator,
            num_workers=loading.workers,
            pin_memory=self._on_gpu(),
        )
        self._loader.skip, self._skip = self._skip, 0
        return self._loader

    def _settings(self, examples: TrainingExamples) -> StorySettings | None:
        """Return the settings of the examples for batches with a single setting; None if they are not used."""
        if not self.setting_share or (examples.settings == PADDING).all():
            return None
        return StorySettings(examples.settings, self.setting_share)

    def _labeling(
        self, collator: Collator, inputs: StoryInputs[Any], labels: IntArray, unlabeled: IntArray
    ) -> PseudoLabelCollator:
        """Wrap a collator so that it adds pseudo-labels, and this process's share of the unlabeled stories."""
        share = self._share()
        count = len(unlabeled) // share.world  # the same number per process, and no story twice in a joint batch
        share_of_process = unlabeled[share.rank :: share.world][:count]
        return PseudoLabelCollator(collator, inputs, labels, share_of_process, run_seed())

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        """Return the loader of validation triples, in file order; an empty list if there are none."""
        return self._triple_loader("validation") if self.sets["validation"].triples else []

    def test_dataloader(self) -> DataLoader[Any]:
        """Return the loader of test triples, in file order."""
        return self._triple_loader("test")

    def predict_dataloader(self) -> DataLoader[Any]:
        """Return the loader of triples to predict, in file order."""
        return self._triple_loader("predict")

    def _triple_loader(self, name: Stage) -> DataLoader[Any]:
        triples = self.sets[name].triples
        stage = self.trainer.state.fn.value if self.trainer is not None and self.trainer.state.fn else "validate"
        return DataLoader(
            padded_share(len(triples), self._share()),  # type: ignore[arg-type]  # as above
            batch_size=self.loading.evaluation_batch_size,
            collate_fn=TripleCollator(triples, self.prepare_inputs(stage)),
            num_workers=self.loading.workers,
            pin_memory=self._on_gpu(),
        )

    def _share(self) -> ProcessShare:
        return ProcessShare(self.trainer.global_rank, self.trainer.world_size) if self.trainer else ProcessShare()

    def _on_gpu(self) -> bool:
        return self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"

    def state_dict(self) -> dict[str, Any]:
        """Return the number of training batches that were loaded in this epoch; 0 after the last batch."""
        ended = self._loader is None or self.trainer is None or self.trainer.is_last_batch
        return {"taken": 0 if ended or self._loader is None else self._loader.taken}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume within the epoch, even if the loader does not exist yet."""
        self._skip = state_dict.get("taken", 0)
        if self._loader is not None:
            self._loader.skip, self._skip = self._skip, 0


def data_of(trainer: L.Trainer) -> StoryData:
    """Return the datamodule of the stage that a trainer runs."""
    return cast(StoryData, undeclared(trainer).datamodule)
