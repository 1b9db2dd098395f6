"""FoldData: cross-validation, with training on all folds except one, which is evaluated."""

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn

from narrlit.data.schema import IntArray, StoryTable, TrainingExamples, Triples, triple_of
from narrlit.data.splits import grouped_folds, story_groups
from narrlit.data.storyworld import SyntheticStory
from narrlit.datamodules.story_data import Stage, StoryData
from narrlit.errors import OptionError


@dataclass(frozen=True)
class FoldDescription:
    """Description of a fold for run.json.

    A group consists of rows that share a story, directly or through other rows.

    Attributes:
        fold: number of the fold, counted from 0.
        folds: number of folds.
        fold_seed: seed of the division.
        ungrouped: True if the data are divided by row, not by group.
        groups: number of groups among the evaluated rows.
        trained: number of training rows.
        evaluated: number of evaluated rows.
        left_out: number of rows that are in the group of an evaluated row, but are not evaluated.
        all_rows: number of rows in the data.
        all_groups: number of groups in the data.
        largest_group: number of rows in the largest group.
        never_evaluated: number of rows that no fold evaluates.
        synthetic: number of synthetic rows among the evaluated rows, of which they are the last.
        sha256: digest of the texts, kinds and labels.
    """

    fold: int
    folds: int
    fold_seed: int
    ungrouped: bool
    groups: int
    trained: int
    evaluated: int
    left_out: int
    all_rows: int
    all_groups: int
    largest_group: int
    never_evaluated: int
    synthetic: int
    sha256: str


class Fold(NamedTuple):
    """Rows of a fold.

    Attributes:
        examples: training rows.
        triples: evaluated rows.
        description: counts, and a digest of the texts.
    """

    examples: TrainingExamples
    triples: Triples
    description: FoldDescription


class FoldData(StoryData):
    """Cross-validation on the training rows of another datamodule.

    The model is trained on all folds except one, which is evaluated after every epoch. A row is evaluated as a triple,
    whose dissimilar story is its negative of kind "triple". Rows without such a negative are used in training only, and
    so are synthetic rows by default, unless they are in the group of an evaluated row. The validation triples of the
    other datamodule are not used.
    """

    def __init__(
        self,
        source: StoryData,
        fold: int = 0,
        folds: int = 5,
        fold_seed: int = 0,
        ungrouped: bool = False,
        evaluate_synthetic: bool = False,
    ) -> None:
        """Set the division.

        Args:
            source: datamodule whose training rows are divided, and whose test triples and settings are used.
            fold: fold to evaluate, counted from 0.
            folds: number of folds.
            fold_seed: seed of the division, separate from that of the run, so that runs with different seeds can be
                compared on the same folds.
            ungrouped: divide by row. A story can then be in both training and evaluation, which inflates accuracy.
            evaluate_synthetic: divide and evaluate synthetic rows as well, which word overlap alone nearly solves.
        """
        if not 0 <= fold < folds:
            raise OptionError("fold_number", fold=fold, folds=folds, last=folds - 1)
        super().__init__(source.loading, source.hard_examples, source.pseudo_labels)
        self.divided = source
        self.has_unlabelled = source.has_unlabelled
        self.has_views = source.has_views
        self.setting_share = source.setting_share
        self.fold = fold
        self.folds = folds
        self.fold_seed = fold_seed
        self.ungrouped = ungrouped
        self.evaluate_synthetic = evaluate_synthetic

    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Return the training rows, which are in the other folds."""
        fold = self.rows(self.fold)
        self._note_fold("train", fold)
        rank_zero_info(f"fold {self.fold} of {self.folds}: {len(fold.examples)} training rows")
        return fold.examples

    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Return the evaluated rows as triples; test and prediction triples come from the other datamodule."""
        if stage != "validation":
            triples = self.divided.read_triples(stage, stories)
            self.note(stage, self.divided.noted(stage))
            return triples
        fold = self.rows(self.fold)
        self._note_fold(stage, fold)
        rank_zero_info(f"fold {self.fold} of {self.folds}: {len(fold.triples)} evaluated rows")
        if self.ungrouped:
            rank_zero_warn("the folds are not grouped by story: evaluated stories can also be in the training rows")
        return fold.triples

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Read the unlabeled stories of the other datamodule."""
        indices = self.divided.read_unlabelled(stories)
        self.note("unlabelled", self.divided.noted("unlabelled"))
        return indices

    def synthetic_story(self, index: int) -> SyntheticStory | None:
        """Return the StoryWorld plan of a story of the other datamodule."""
        return self.divided.synthetic_story(index)

    def describe(self, fold: int) -> FoldDescription:
        """Describe a fold."""
        return self.rows(fold).description

    def rows(self, fold: int) -> Fold:
        """Return the training rows and the evaluated rows of a fold."""
        rows, evaluated = self._rows, self._evaluated[fold]
        in_evaluated_group = np.isin(self._groups, self._groups[evaluated])
        training_rows = [rows[row] for row in np.flatnonzero(~in_evaluated_group).tolist()]
        synthetic = int((evaluated >= len(rows) - self.divided.synthetic_rows).sum())
        evaluated_triples = []
        for row in evaluated.tolist():
            triple = triple_of(rows[row], rows.stories)
            if triple is not None:
                evaluated_triples.append(triple)
        examples = TrainingExamples(rows.stories, training_rows)
        triples = Triples(rows.stories, evaluated_triples)
        return Fold(examples, triples, self._description(fold, examples, triples, synthetic))

    def _description(self, fold: int, examples: TrainingExamples, triples: Triples, synthetic: int) -> FoldDescription:
        rows, groups = self._rows, self._groups
        _, group_sizes = np.unique(groups, return_counts=True)
        return FoldDescription(
            fold=fold,
            folds=self.folds,
            fold_seed=self.fold_seed,
            ungrouped=self.ungrouped,
            groups=len(np.unique(groups[self._evaluated[fold]])),
            trained=len(examples),
            evaluated=len(triples),
            left_out=len(rows) - len(examples) - len(triples),
            all_rows=len(rows),
            all_groups=len(group_sizes),
            largest_group=int(group_sizes.max()),
            never_evaluated=len(rows) - sum(map(len, self._evaluated)),
            synthetic=synthetic,
            sha256=_digest(examples, triples),
        )

    @cached_property
    def _rows(self) -> TrainingExamples:
        rows = self.divided.read_examples(self.tables.source)
        if not rows:
            raise OptionError("no_training_data")
        return rows

    @cached_property
    def _groups(self) -> IntArray:
        """Number (N,) of each row's group."""
        return np.arange(len(self._rows)) if self.ungrouped else story_groups(self._rows)

    @cached_property
    def _evaluated(self) -> list[IntArray]:
        """Evaluated rows of each fold."""
        rows = self._rows  # must be read first, because this sets synthetic_rows
        candidates = len(rows) if self.evaluate_synthetic else len(rows) - self.divided.synthetic_rows
        evaluable = [number for number, row in enumerate(rows[:candidates]) if "triple" in row.kinds]
        if not evaluable:
            raise OptionError("no_triple_to_evaluate")
        row_numbers = np.array(evaluable, dtype=np.int64)
        folds = grouped_folds(self._groups[row_numbers], self.folds, self.fold_seed)
        return [row_numbers[fold] for fold in folds]

    def _note_fold(self, name: str, fold: Fold) -> None:
        self.note(name, replace(self.divided.noted("train"), fold=asdict(fold.description)))


def _digest(examples: TrainingExamples, triples: Triples) -> str:
    """Hash the texts of a fold, the kinds of its negatives and its labels."""
    parts = []
    for texts, example in zip(examples.texts(), examples, strict=True):
        parts.append([*texts, *map(str, example.kinds)])
    for texts, triple in zip(triples.texts(), triples, strict=True):
        parts.append([*texts, str(triple.a_is_closer)])
    return sha256(json.dumps(parts).encode()).hexdigest()
