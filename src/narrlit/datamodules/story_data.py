"""StoryData: one table of stories for all stages, its inputs made once, loaders of packed batches."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import lightning as L
import numpy as np
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from torch.utils.data import DataLoader

from narrlit.data.batch import StoryInputs, StoryReader
from narrlit.data.sampling import DistinctBatchSampler, PseudoLabelCollator, Share, TripleCollator, padded_share
from narrlit.data.schema import (
    ASPECTS,
    PADDING,
    IntArray,
    StoryTable,
    TrainingExample,
    TrainingExamples,
    Triple,
    Triples,
    Views,
    example_of,
)
from narrlit.data.splits import Overlap, overlap, random_share
from narrlit.data.storyworld import SyntheticStory
from narrlit.datamodules.hard_examples import HardExampleSampling, example_cosines, hard_examples
from narrlit.datamodules.pseudo_labels import (
    LABELS_FILE,
    PseudoLabels,
    positional_labels,
    read_labels,
    truth_labels,
    write_labels,
)
from narrlit.distributed import from_first
from narrlit.errors import OptionError
from narrlit.metrics.data_check import CheckedSet, check_sets
from narrlit.preprocessing.pseudonyms import PseudonymOptions, pseudonymize_texts
from narrlit.seeds import run_seed

Stage = Literal["validation", "test", "predict"]
STAGE_OF: dict[str, Stage] = {"fit": "validation", "validate": "validation", "test": "test", "predict": "predict"}
"""The triples that each of the trainer's stages evaluates."""


@dataclass(frozen=True)
class Loading:
    """Settings that turn rows into batches.

    Attributes:
        batch_size: training examples per process.
        evaluation_batch_size: triples per process in evaluation.
        workers: processes that assemble batches; 0: the training process, which is fast enough for packed tokens.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
        samples_per_epoch: training examples of an epoch over all processes, others in each epoch; None: all.
        pseudonyms: placeholders in place of names, in all stories.
    """

    batch_size: int = 16
    evaluation_batch_size: int = 32
    workers: int = 0
    strict: bool = False
    samples_per_epoch: int | None = None
    pseudonyms: PseudonymOptions = field(default_factory=PseudonymOptions)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.evaluation_batch_size < 1 or self.workers < 0:
            raise OptionError("loading: batch_size and evaluation_batch_size must be at least 1, workers at least 0")
        if self.samples_per_epoch is not None and self.samples_per_epoch < 1:
            raise OptionError(f"loading.samples_per_epoch is {self.samples_per_epoch}: a positive number is needed")


class ResumableLoader(DataLoader[Any]):
    """Training batches of an epoch, of which a resumed fit skips those that it has seen."""

    taken = 0  # batches of this epoch that were handed out
    skip = 0  # batches to skip in the next epoch

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        sampler = cast(DistinctBatchSampler, self.batch_sampler)
        sampler.skip = self.taken = self.skip
        self.skip = 0
        for batch in super().__iter__():
            self.taken += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Return nothing: trainers need the method to resume a loader, but load its state too late."""
        return {}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Ignore the state: the datamodule sets `skip`."""


class StoryData(L.LightningDataModule):
    """Base of the datamodules: a subclass reads examples and triples into a table of stories.

    Attributes:
        stories: every story that a stage reads, training stories first, as the encoder reads it.
        examples: what trains, mined validation triples included.
        triples: what each stage evaluates.
        validation_share: how many of the validation triples are evaluated; the others can be mined.
        provenance: plain data for run.json.
        synthetic_rows: how many of the training examples, the last ones, a language model wrote.
    """

    has_views = False
    has_unlabelled = False  # the user named unlabelled stories
    validation_share = 1.0

    def __init__(
        self,
        loading: Loading,
        hard_examples: HardExampleSampling = HardExampleSampling(),
        pseudo_labels: PseudoLabels = PseudoLabels(),
    ) -> None:
        super().__init__()
        self.loading = loading
        self.hard_examples = hard_examples
        self.pseudo_labels = pseudo_labels
        self.stories = StoryTable()
        self.source = self.stories if loading.pseudonyms.backend == "none" else StoryTable()
        """Stories as read, with their names."""
        self.examples = TrainingExamples(self.stories, [])
        self.triples: dict[Stage, Triples] = {}
        self.provenance: dict[str, dict[str, Any]] = {}
        self.synthetic_rows = 0
        self._read_examples = TrainingExamples(self.source, [])
        self._read_triples: dict[Stage, Triples] = {}
        self._minable = Triples(self.stories, [])
        self._read_minable = Triples(self.source, [])
        self._mined: list[int] = []
        self._unlabelled: IntArray = np.empty(0, dtype=np.int64)
        self._pseudonymized: dict[tuple[int, ...], dict[int, int]] = {}
        self._source_of: dict[int, int] = {}
        self._inputs: StoryInputs[Any] | None = None
        self._labels: IntArray | None = None
        self._weights: np.ndarray[Any, np.dtype[np.float64]] | None = None
        self._prepared = False
        self._loader: ResumableLoader | None = None
        self._skip = 0

    @abstractmethod
    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Read the training examples into a table; note their files in `provenance`."""

    @abstractmethod
    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Read the triples of a stage into a table, none where there are none; note their files."""

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Read stories without labels into a table and return their indices; none here."""
        return []

    def synthetic_story(self, index: int) -> SyntheticStory | None:
        """Return what StoryWorld made a story, as read, of; None where it did not."""
        return None

    @property
    def reader(self) -> StoryReader:
        """The objective, as far as a datamodule uses it."""
        return cast(StoryReader, self.trainer.lightning_module)  # type: ignore[union-attr]

    def setup(self, stage: str) -> None:
        """Read what the stage needs, once."""
        if self.trainer is not None:
            self._check(stage)
        if stage == "fit" and not self.examples:
            self._read_examples = self.read_examples(self.source)
            if not self._read_examples:
                raise OptionError("no training data: give --data.train FILE")
            rows = self._encoded([row.indices for row in self._read_examples], "train")
            pairs = zip(rows, self._read_examples, strict=True)
            examples = [TrainingExample(x, p, tuple(n), old.kinds, old.group) for (x, p, *n), old in pairs]
            self.examples = TrainingExamples(self.stories, examples)
            if self.pseudo_labels.transductive:
                unlabelled = self._encoded([(index,) for index in self.read_unlabelled(self.source)], "unlabelled")
                indices = np.array(unlabelled, dtype=np.int64).ravel()
                self._unlabelled = np.setdiff1d(indices, self.training_indices)
                if not len(self._unlabelled):
                    raise OptionError(
                        "pseudo_labels.transductive needs stories without labels: give --data.extra.unlabelled FILE"
                    )
        name = STAGE_OF[stage]
        if name not in self.triples:
            read = self._read_triples[name] = self.read_triples(name, self.source)
            rows = self._encoded([row.indices for row in read], name)
            labeled = [Triple(x, a, b, old.a_is_closer) for (x, a, b), old in zip(rows, read, strict=True)]
            self.triples[name] = Triples(self.stories, labeled, read.report)
            if name == "validation":
                self._divide_validation()
        self._check_triples(stage, self.triples[name])

    def _divide_validation(self) -> None:
        """Keep a share of the validation triples, and set the others apart for mining; of a whole, all can be mined."""
        triples, read = self.triples["validation"], self._read_triples["validation"]
        self._minable, self._read_minable = triples, read
        if self.validation_share == 1 or not triples:
            return
        chosen, others = random_share(len(triples), self.validation_share)
        if not len(chosen):
            raise OptionError(f"data.validation_share {self.validation_share:g} of {len(triples)} triples is none")

        def take(rows: Triples, numbers: IntArray) -> Triples:
            return Triples(rows.stories, [rows[number] for number in numbers.tolist()], rows.report)

        self.triples["validation"], self._read_triples["validation"] = take(triples, chosen), take(read, chosen)
        self._minable, self._read_minable = take(triples, others), take(read, others)
        counts = {"share": self.validation_share, "evaluated": len(chosen), "set_apart": len(others)}
        self.provenance["validation"]["divided"] = counts
        rank_zero_info(f"validation: {len(chosen)} of {len(triples)} triples are evaluated")

    def _check(self, stage: str) -> None:
        trainer, objective = cast(L.Trainer, self.trainer), type(self.reader).__name__
        if trainer.world_size > 1 and trainer._accelerator_connector.use_distributed_sampler:
            raise OptionError("several processes need trainer.use_distributed_sampler: false (batches are shared here)")
        if stage == "fit" and self.has_unlabelled and not self.pseudo_labels.transductive:
            raise OptionError("data.extra.unlabelled is read with data.pseudo_labels.transductive: true only")
        if self.has_views and not self.reader.reads_views:
            raise OptionError(f"the data have views, which {objective} does not read: remove data.views")
        if self.reader.reads_views and not self.has_views:
            raise OptionError(
                f"{objective} reads views: give --data.views.files FILE, or --data.views.missing positional "
                "(with StoryWorldData: --data.views true)"
            )

    def _check_triples(self, stage: str, triples: Triples) -> None:
        name = STAGE_OF[stage]
        if stage != "fit" and not triples:
            raise OptionError(f"no {name} data: give --data.{name} FILE")
        if name != "predict" and any(triple.a_is_closer is None for triple in triples):
            unread = triples.report.unread if triples.report else ()
            hint = f" (labels are read from text_a_is_closer; other columns: {', '.join(unread)})" if unread else ""
            raise OptionError(f"the {name} triples have no labels: give --data.{name}_labels FILE{hint}")

    # Pseudonymization ------------------------------------------------------------------------------------------------

    def _encoded(self, rows: Sequence[tuple[int, ...]], name: str) -> list[tuple[int, ...]]:
        """Map rows of indices in `source` to indices in `stories`, whose names are replaced if that is wanted."""
        options = self.loading.pseudonyms
        if options.backend == "none" or not rows:
            return list(rows)
        self.provenance.setdefault(name, {})["pseudonyms"] = asdict(options)

        def scopes(row: tuple[int, ...]) -> list[tuple[int, ...]]:
            return [(index,) for index in row] if options.scope == "story" else [tuple(dict.fromkeys(row))] * len(row)

        new = dict.fromkeys(scope for row in rows for scope in scopes(row) if scope not in self._pseudonymized)
        self._pseudonymize(list(new))
        return [tuple(self._pseudonymized[s][i] for s, i in zip(scopes(row), row, strict=True)) for row in rows]

    def _pseudonymize(self, scopes: Sequence[tuple[int, ...]]) -> None:
        """Add the stories of each scope, with one mapping of names, to `stories`."""
        options, names = self.loading.pseudonyms, None
        if options.backend == "given":
            known = [[self.synthetic_story(index) for index in scope] for scope in scopes]
            if all(story is not None for group in known for story in group):
                names = [{k: v for story in group if story for k, v in story.names.items()} for group in known]
        groups = [[self.source[index] for index in scope] for scope in scopes]
        texts = [[t for s in group for t in (s.text, *(s.views.texts if s.views else ()))] for group in groups]

        def replace() -> list[list[str]]:
            """Replace names, which takes spaCy: in one process for all."""
            results = pseudonymize_texts(texts, options, names, lead=self.has_views and options.scope == "story")
            return [[each.text for each in result] for result in results]

        for scope, group, result in zip(scopes, groups, from_first(replace), strict=True):
            done = iter(result)
            for index, old in zip(scope, group, strict=True):
                text, views = next(done), Views(next(done), next(done), next(done)) if old.views else None
                new = self.stories.add(text, id=old.id, views=views, original=old.text)
                self._source_of.setdefault(new, index)
                self._pseudonymized.setdefault(scope, {})[index] = new

    # Inputs, hard examples, pseudo-labels ----------------------------------------------------------------------------

    @property
    def training_indices(self) -> IntArray:
        """Indices of the stories that training examples mention, ascending."""
        return np.unique(np.array([index for row in self.examples for index in row.indices], dtype=np.int64))

    def prepare_inputs(self, stage: str = "fit") -> StoryInputs[Any]:
        """Make the inputs of all stories, and for a fit the weights and labels of its examples, once."""
        if self._inputs is None or self._inputs.num_stories != len(self.stories):
            self._inputs = self.reader.story_inputs(list(self.stories), stage)
            self.provenance["inputs"] = {"stories": len(self.stories), **self._inputs.provenance}
        if stage == "fit" and not self._prepared:
            self._prepared = True
            self._sample_hard_examples()
            self._label_stories()
        return self._inputs

    def _sample_hard_examples(self) -> None:
        settings = self.hard_examples
        if settings.weight == 1 and not settings.mine_validation:
            return
        hard, wrong = hard_examples(*example_cosines(self.examples, self.reader), settings.share)
        weights = np.ones(len(self.examples))
        weights[hard] = settings.weight
        allowed = int(settings.share * len(weights))
        note: dict[str, Any] = {"wrong": wrong, "allowed": allowed, "hard": len(hard)}
        unbound = "" if wrong > allowed else f": all of them, since share {settings.share:g} allows {allowed}"
        of = f"{wrong} of {len(weights)} ranked wrongly"
        rank_zero_info(f"hard examples: {of}, {len(hard)} drawn more often{unbound}")
        if settings.mine_validation:
            if not self._minable:
                raise OptionError("hard_examples.mine_validation needs validation triples: give --data.validation FILE")
            candidates = TrainingExamples(self.stories, [example_of(triple) for triple in self._minable])
            rows, wrong = hard_examples(*example_cosines(candidates, self.reader), settings.share)
            self._mined = rows.tolist()
            self.examples = TrainingExamples(self.stories, [*self.examples, *(candidates[row] for row in self._mined)])
            weights = np.concatenate([weights, np.full(len(rows), settings.weight)])
            note["mined_validation"] = len(rows)
            mined = f"{len(rows)} validation triples train, of {wrong} ranked wrongly"
            if self.validation_share == 1:
                rank_zero_warn(f"{mined}: validation accuracy is no estimate for other triples")
            else:
                rank_zero_info(f"{mined}, of {len(self._minable)} that are not evaluated")
        self._weights = weights if settings.weight != 1 else None
        self.provenance["train"]["hard_examples"] = note

    def _label_stories(self) -> None:
        settings = self.pseudo_labels
        if settings.source == "none":
            return
        indices = np.concatenate([self.training_indices, self._unlabelled])
        self._labels = np.full((len(self.stories), len(ASPECTS)), PADDING, dtype=np.int64)
        if settings.source == "truth":
            known = [self.synthetic_story(self._source_of.get(index, index)) for index in indices.tolist()]
            truths = [astuple(story.structure) for story in known if story is not None]
            if len(truths) < len(known):
                raise OptionError("pseudo_labels.source is truth, which StoryWorldData alone knows: use positional")
            self._labels[indices] = truth_labels(truths)
            return
        texts = [self.stories[index].text for index in indices.tolist()]
        labels, note = self._positional_labels(texts)
        self._labels[indices] = labels
        self.provenance["train"]["pseudo_labels"] = {**note, "transductive": bool(len(self._unlabelled))}

    def _positional_labels(self, texts: list[str]) -> tuple[IntArray, dict[str, Any]]:
        """Read the labels of the run that is resumed, else cluster; write them to the run's folder."""
        trainer = cast(L.Trainer, self.trainer)
        before = Path(trainer.ckpt_path).parents[1] if trainer.ckpt_path else None
        if before is not None and (before / LABELS_FILE).is_file():
            labels, note = read_labels(before, texts), {"source": "positional", "resumed_from": str(before)}
        else:
            settings = self.pseudo_labels
            labels, note = positional_labels(texts, self.reader.text_embeddings, settings.clusters, settings.rounding)
        # K-means adds up in another order on another processor: the first process's labels count.
        labels = trainer.strategy.broadcast(labels, 0)
        folder = trainer.log_dir  # a collective call; without a logger it is the working directory
        if folder and trainer.loggers and not trainer.fast_dev_run and trainer.is_global_zero:  # type: ignore[attr-defined]
            write_labels(Path(folder), texts, labels)
        return labels, note

    def flags(self) -> dict[str, bool]:
        """Return contamination notes of the run."""
        mined, transductive = self.hard_examples.mine_validation, self.pseudo_labels.transductive
        return {"mined_validation": mined, "transductive": transductive}

    def train_validation_overlap(self, anchors_only: bool = False) -> Overlap:
        """Compare the training data (or its anchors, where nothing else trains) with the validation data, as read."""
        validation = self._read_triples.get("validation", Triples(self.source, [])).texts()
        minable = self._read_minable.texts()
        rows = [*self._read_examples.texts(), *(minable[row] for row in self._mined)]
        return overlap([row[:1] for row in rows] if anchors_only else rows, validation)

    def check(self) -> dict[str, Any]:
        """Check the data of a fit quickly, as read, and warn of stories that its sets share and of shortcuts."""
        train, validation = self._read_examples.texts(), self._read_triples.get("validation")
        sets = [CheckedSet("train", train, [True if len(row) > 2 else None for row in train])]
        if validation:
            sets.append(CheckedSet("validation", validation.texts(), [t.a_is_closer for t in validation], sided=True))
        result = check_sets(sets)
        if result["warnings"]:
            rank_zero_warn(" ".join([*result["warnings"], "(run.json: data_check)"]))
        return result

    # Loaders ---------------------------------------------------------------------------------------------------------

    def train_dataloader(self) -> DataLoader[Any]:
        """Return batches in random order, the same for the same seed and epoch."""
        inputs = self.prepare_inputs("fit")
        examples, loading = self.examples, self.loading
        sampler = DistinctBatchSampler(
            examples.anchors,
            examples.positives,
            loading.batch_size,
            run_seed(),
            self._share(),
            self._weights,
            loading.samples_per_epoch,
        )
        collator = self.reader.collator(examples, inputs)
        if self._labels is not None:
            share = self._share()
            # As many in each process, and no story twice in a batch of all.
            own = self._unlabelled[share.rank :: share.world][: len(self._unlabelled) // share.world]
            collator = PseudoLabelCollator(collator, inputs, self._labels, own, run_seed())
        self._loader = ResumableLoader(
            range(len(examples)),  # type: ignore[arg-type]
            batch_sampler=sampler,
            collate_fn=collator,
            num_workers=loading.workers,
            pin_memory=self._on_gpu(),
        )
        self._loader.skip, self._skip = self._skip, 0
        return self._loader

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        """Return validation triples in file order; nothing where there are none."""
        return self._triple_loader("validation") if self.triples["validation"] else []

    def test_dataloader(self) -> DataLoader[Any]:
        """Return test triples in file order."""
        return self._triple_loader("test")

    def predict_dataloader(self) -> DataLoader[Any]:
        """Return triples to predict, in file order."""
        return self._triple_loader("predict")

    def _triple_loader(self, name: Stage) -> DataLoader[Any]:
        triples = self.triples[name]
        stage = self.trainer.state.fn.value if self.trainer is not None and self.trainer.state.fn else "validate"
        return DataLoader(
            padded_share(len(triples), self._share()),  # type: ignore[arg-type]
            batch_size=self.loading.evaluation_batch_size,
            collate_fn=TripleCollator(triples, self.prepare_inputs(stage)),
            num_workers=self.loading.workers,
            pin_memory=self._on_gpu(),
        )

    def _share(self) -> Share:
        return Share(self.trainer.global_rank, self.trainer.world_size) if self.trainer else Share()

    def _on_gpu(self) -> bool:
        return self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"

    def state_dict(self) -> dict[str, Any]:
        """Return how many training batches of this epoch were handed out; 0 after its last."""
        ended = self._loader is None or self.trainer is None or self.trainer.is_last_batch
        return {"taken": 0 if ended or self._loader is None else self._loader.taken}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume within the epoch, whether the loader exists already or not."""
        self._skip = state_dict.get("taken", 0)
        if self._loader is not None:
            self._loader.skip, self._skip = self._skip, 0

    def teardown(self, stage: str) -> None:
        """Forget what belongs to the objective of a fit: another may come."""
        if stage != "fit":
            return
        self._inputs = self._labels = self._weights = None
        self._prepared = False
        if self._mined:
            self.examples = TrainingExamples(self.stories, self.examples.rows[: -len(self._mined)])
            self._mined = []
