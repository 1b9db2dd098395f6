"""Preparation of a fit's rows, between reading and loading: hard examples are chosen, stories are labeled.

Letters in shapes: N examples, S stories, M unlabelled ones.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import lightning as L
import numpy as np
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from numpy.typing import NDArray

from narrlit.data.batch import StoryReader
from narrlit.data.schema import ASPECTS, PADDING, IntArray, StoryTable, TrainingExamples, Triples, example_of
from narrlit.data.splits import random_share
from narrlit.data.storyworld import SyntheticStory
from narrlit.datamodules.hard_examples import (
    HardExampleRecord,
    HardExampleSampling,
    example_cosines,
    hard_examples,
)
from narrlit.datamodules.pseudo_labels import PseudoLabelRecord, PseudoLabels, run_labels, truth_labels
from narrlit.errors import OptionError


@dataclass(frozen=True)
class TrainingSet:
    """Training examples as they were read, the same of the stories that the encoder reads, and stories without labels.

    Attributes:
        read: examples of the stories as they were read.
        examples: examples of the stories that the encoder reads.
        unlabelled: (M,) indices of stories that no example mentions, of a transductive run.
    """

    read: TrainingExamples
    examples: TrainingExamples
    unlabelled: IntArray


@dataclass(frozen=True)
class TripleSet:
    """Triples as they were read, and the same of the stories that the encoder reads."""

    read: Triples
    triples: Triples

    def take(self, rows: IntArray) -> "TripleSet":
        """Select some of the triples."""
        return TripleSet(_take(self.read, rows), _take(self.triples, rows))


def divide(validation: TripleSet, share: float) -> tuple[TripleSet, TripleSet]:
    """Divide validation triples into those that are evaluated and those that may be mined; of a whole, all may be.

    Raises:
        OptionError: if the share is less than one triple.
    """
    if share == 1 or not validation.triples:
        return validation, validation
    count = len(validation.triples)
    evaluated, others = random_share(count, share)
    if not len(evaluated):
        raise OptionError(f"data.validation_share {share:g} of {count} triples is none")
    rank_zero_info(f"validation: {len(evaluated)} of {count} triples are evaluated")
    return validation.take(evaluated), validation.take(others)


@dataclass(frozen=True)
class Prepared:
    """Rows that a fit trains on, as loaders take them.

    Attributes:
        examples: training examples, then the mined validation triples.
        unlabelled: (M,) indices of stories that train without examples.
        mined: numbers of the mined triples among those that may be, as the examples have them.
        weights: (N,) how often an example is drawn, relative to the others; None: each once an epoch.
        labels: (S, 3) pseudo-labels of each story's aspects, PADDING where there is none; None: there are none.
        hard_examples: counts for run.json.
        pseudo_labels: origin of the labels, for run.json.
    """

    examples: TrainingExamples
    unlabelled: IntArray
    mined: tuple[int, ...] = ()
    weights: NDArray[np.float64] | None = None
    labels: IntArray | None = None
    hard_examples: HardExampleRecord | None = None
    pseudo_labels: PseudoLabelRecord | None = None


@dataclass(frozen=True)
class Preparation:
    """Preparation of a fit's rows by a frozen encoder, or by the plans of StoryWorld's stories.

    Attributes:
        hard_examples: sampling of hard examples.
        pseudo_labels: labels of the training stories' aspects.
        validation_share: share of the validation triples that is evaluated.
        reader: the objective, by whose encoder examples are ranked and stories clustered.
        trainer: of the fit.
        synthetic_story: returns the StoryWorld plan of a story, by its index; None for other stories.
    """

    hard_examples: HardExampleSampling
    pseudo_labels: PseudoLabels
    validation_share: float
    reader: StoryReader
    trainer: L.Trainer
    synthetic_story: Callable[[int], SyntheticStory | None]

    def prepare(self, training: TrainingSet, minable: TripleSet) -> Prepared:
        """Choose hard examples, mine validation triples and label the stories, as the settings say.

        Args:
            training: what was read.
            minable: validation triples that may train.

        Raises:
            OptionError: if there is nothing to mine, or no label is known.
        """
        prepared = Prepared(training.examples, training.unlabelled)
        if self.hard_examples.weight != 1 or self.hard_examples.mine_validation:
            prepared = self._with_hard_examples(prepared)
        if self.hard_examples.mine_validation:
            prepared = self._with_mined_triples(prepared, minable.triples)
        if self.pseudo_labels.source == "truth":
            prepared = self._with_true_labels(prepared)
        if self.pseudo_labels.source == "positional":
            prepared = self._with_positional_labels(prepared)
        return prepared

    def _with_hard_examples(self, prepared: Prepared) -> Prepared:
        """Draw examples more often if the encoder ranks them wrongly."""
        settings, count = self.hard_examples, len(prepared.examples)
        hard, wrong = hard_examples(*example_cosines(prepared.examples, self.reader), settings.share)
        record = HardExampleRecord(wrong, allowed=int(settings.share * count), hard=len(hard))
        line = f"hard examples: {wrong} of {count} ranked wrongly, {len(hard)} drawn more often"
        if wrong <= record.allowed:
            line += f": all of them, since share {settings.share:g} allows {record.allowed}"
        rank_zero_info(line)
        if settings.weight == 1:
            return replace(prepared, hard_examples=record)
        weights = np.ones(count)
        weights[hard] = settings.weight
        return replace(prepared, weights=weights, hard_examples=record)

    def _with_mined_triples(self, prepared: Prepared, minable: Triples) -> Prepared:
        """Add the validation triples to the examples that the encoder ranks wrongly."""
        settings, record = self.hard_examples, prepared.hard_examples
        if not minable:
            raise OptionError(
                "`data.hard_examples.mine_validation` needs validation triples: give `data.validation=FILE`"
            )
        candidates = TrainingExamples(minable.stories, [example_of(triple) for triple in minable])
        mined, wrong = hard_examples(*example_cosines(candidates, self.reader), settings.share)
        line = f"{len(mined)} validation triples train, of {wrong} ranked wrongly"
        if self.validation_share == 1:
            rank_zero_warn(f"{line}: validation accuracy is no estimate for other triples")
        else:
            rank_zero_info(f"{line}, of {len(minable)} that are not evaluated")
        added = [candidates[number] for number in mined.tolist()]
        weights = prepared.weights
        if weights is not None:
            weights = np.concatenate([weights, np.full(len(added), settings.weight)])
        return replace(
            prepared,
            examples=TrainingExamples(minable.stories, [*prepared.examples, *added]),
            mined=tuple(mined.tolist()),
            weights=weights,
            hard_examples=None if record is None else replace(record, mined_validation=len(added)),
        )

    def _with_true_labels(self, prepared: Prepared) -> Prepared:
        """Label the training stories by their StoryWorld plans."""
        indices = prepared.examples.story_indices
        truths = []
        for index in indices.tolist():
            story = self.synthetic_story(index)
            if story is None:
                raise OptionError("pseudo_labels.source is truth, which StoryWorldData alone knows: use positional")
            truths.append(astuple(story.structure))
        return replace(prepared, labels=_labels(prepared.examples.stories, indices, truth_labels(truths)))

    def _with_positional_labels(self, prepared: Prepared) -> Prepared:
        """Label the training stories, and those without examples, by clusters of their segments."""
        stories = prepared.examples.stories
        indices = np.concatenate([prepared.examples.story_indices, prepared.unlabelled])
        texts = [stories[index].text for index in indices.tolist()]
        labels, record = run_labels(texts, self.reader.text_embeddings, self.pseudo_labels, self.trainer)
        record = replace(record, transductive=bool(len(prepared.unlabelled)))
        return replace(prepared, labels=_labels(stories, indices, labels), pseudo_labels=record)


def _take(triples: Triples, rows: IntArray) -> Triples:
    return Triples(triples.stories, [triples[row] for row in rows.tolist()], triples.report)


def _labels(stories: StoryTable, indices: IntArray, known: IntArray) -> IntArray:
    """Return labels (S, 3) of all stories, those at these indices known."""
    labels = np.full((len(stories), len(ASPECTS)), PADDING, dtype=np.int64)
    labels[indices] = known
    return labels
