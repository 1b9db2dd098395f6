"""One fold of a cross-validation: the rows of one part are judged, the others train."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn

from narrlit.data.folds import grouped_folds, story_groups
from narrlit.data.records import Example, Triple, triple_of
from narrlit.data.table import IntArray
from narrlit.datamodules.base import Stage, StoryData
from narrlit.errors import OptionError


@dataclass(frozen=True)
class FoldRows:
    """What one fold trains on and judges.

    Attributes:
        examples: they train.
        triples: they are judged.
        description: plain data for records; its digest changes with any text of the fold.
    """

    examples: list[Example]
    triples: list[Triple]
    description: dict[str, Any]


class FoldData(StoryData):
    """The training rows of other data, divided: one fold's rows are judged after every epoch, the other folds' train.

    A row is judged by its own dissimilar story, a negative of kind "triple"; rows without one, and synthetic ones, only
    train, and not where they share a story with a row that is judged. The other data's validation triples are not read.
    """

    def __init__(
        self, source: StoryData, fold: int = 0, folds: int = 5, fold_seed: int = 0, ungrouped: bool = False
    ) -> None:
        """Args say how the rows are divided.

        Args:
            source: the data whose training rows are divided; also gives the test triples, and how batches are made.
            fold: which fold is judged, counted from 0.
            folds: how many there are.
            fold_seed: of the division; apart from the run's seed, so that seeds can be compared on the same folds.
            ungrouped: divide by row, though the same story may then train and be judged; to see what that hides.

        Raises:
            OptionError: for a fold that there is not.
        """
        if not 0 <= fold < folds:
            raise OptionError(f"data.fold is {fold}: with {folds} folds, a number from 0 to {folds - 1} is needed")
        super().__init__(source.loading)
        self.source = source
        self.unlabelled_given = source.unlabelled_given
        self.joins_views = source.joins_views
        self.fold = fold
        self.folds = folds
        self.fold_seed = fold_seed
        self.ungrouped = ungrouped

    def read_examples(self) -> list[Example]:
        """The other folds' rows."""
        found = self.rows(self.fold)
        self._note("train", found)
        rank_zero_info(f"fold {self.fold} of {self.folds}: {len(found.examples)} rows train")
        return found.examples

    def read_triples(self, stage: Stage) -> list[Triple]:
        """The fold's rows as triples; those to test and to predict are the other data's."""
        if stage != "validation":
            triples = self.source.read_triples(stage)
            self.provenance[stage] = self.source.provenance.get(stage, {})
            return triples
        found = self.rows(self.fold)
        self._note(stage, found)
        rank_zero_info(f"fold {self.fold} of {self.folds}: {len(found.triples)} rows are judged")
        if self.ungrouped:
            rank_zero_warn("these folds are not grouped by story: what is judged may have been trained on")
        return found.triples

    def read_unlabelled(self) -> list[str]:
        """The other data's."""
        texts = self.source.read_unlabelled()
        if texts:
            self.provenance["unlabelled"] = self.source.provenance.get("unlabelled", {})
        return texts

    def read_truths(self, texts: Sequence[str]) -> list[tuple[str, str, str] | None]:
        """As the other data knows them."""
        return self.source.read_truths(texts)

    def rows(self, fold: int) -> FoldRows:
        """What a fold, this one or another, trains on and judges.

        Raises:
            OptionError: if there are no rows to judge, or not enough groups of them.
        """
        rows, groups, judged_by_fold = self._examples, self._groups, self._judged_by_fold
        judged = judged_by_fold[fold]
        trains = ~np.isin(groups, groups[judged])
        examples = [example for example, goes in zip(rows, trains, strict=True) if goes]
        triples = [triple for row in judged if (triple := triple_of(rows[row])) is not None]
        unjudgeable = len(rows) - sum(map(len, judged_by_fold))
        description = {
            "fold": fold,
            "folds": self.folds,
            "fold_seed": self.fold_seed,
            "ungrouped": self.ungrouped,
            "groups": len(np.unique(groups[judged])),
            "trained": len(examples),
            "judged": len(triples),
            # They share a story with a row of the fold, but have no dissimilar story to judge them by.
            "left_out": len(rows) - len(examples) - len(triples),
            "all_rows": len(rows),
            "all_groups": len(np.unique(groups)),
            "largest_group": int(np.unique(groups, return_counts=True)[1].max()),
            "never_judged": unjudgeable,
            "sha256": _digest(examples, triples),
        }
        return FoldRows(examples, triples, description)

    @cached_property
    def _examples(self) -> list[Example]:
        examples = self.source.read_examples()
        if not examples:
            raise OptionError("no training data: give --data.train FILE")
        return examples

    @cached_property
    def _groups(self) -> IntArray:
        """(N,) each row's group."""
        return np.arange(len(self._examples)) if self.ungrouped else story_groups(self._examples)

    @cached_property
    def _judged_by_fold(self) -> list[IntArray]:
        examples = self._examples  # read first: reading tells how many of them are synthetic
        real = examples[: len(examples) - self.source.synthetic_rows]
        judged = np.array([row for row, example in enumerate(real) if triple_of(example)], dtype=np.int64)
        if not len(judged):
            raise OptionError(
                "no training row has a dissimilar story of its own, so none can be judged: name a file of labelled "
                'triples, or rows with a negative of kind "triple"'
            )
        return [judged[places] for places in grouped_folds(self._groups[judged], self.folds, self.fold_seed)]

    def _note(self, stage: str, found: FoldRows) -> None:
        self.provenance[stage] = {**self.source.provenance.get("train", {}), "fold": found.description}


def _digest(examples: list[Example], triples: list[Triple]) -> str:
    parts = [(*example.texts, *(str(negative.kind) for negative in example.negatives)) for example in examples]
    parts += [(*triple.texts, str(triple.a_is_closer)) for triple in triples]
    return sha256(json.dumps(parts).encode()).hexdigest()
