"""Preparation of training data between reading and loading: hard examples and pseudo-labels.

Letters in shapes: N examples, S stories, M unlabeled stories.
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
    """Training examples before and after pseudonymization, and unlabeled stories.

    Attributes:
        read: examples before pseudonymization.
        examples: the same examples after pseudonymization.
        unlabelled: (M,) indices of the unlabeled stories of a transductive run, which are not in any example.
    """

    read: TrainingExamples
    examples: TrainingExamples
    unlabelled: IntArray


@dataclass(frozen=True)
class TripleSet:
    """Triples before and after pseudonymization.

    Attributes:
        read: triples before pseudonymization.
        triples: the same triples after pseudonymization.
    """

    read: Triples
    triples: Triples

    def take(self, rows: IntArray) -> "TripleSet":
        """Select triples by their row numbers."""
        return TripleSet(_take(self.read, rows), _take(self.triples, rows))


def divide_triples(validation: TripleSet, share: float) -> tuple[TripleSet, TripleSet]:
    """Divide validation triples into those to evaluate and those that can be mined.

    Args:
        validation: validation triples.
        share: share of the triples to evaluate; if it is 1, all are evaluated and all can be mined.

    Raises:
        OptionError: if there would be no triple to evaluate.
    """
    if share == 1 or not validation.triples:
        return validation, validation
    count = len(validation.triples)
    evaluated, others = random_share(count, share)
    if not len(evaluated):
        raise OptionError("small_validation_share", share=share, triples=count)
    rank_zero_info(f"validation: {len(evaluated)} of {count} triples are evaluated")
    return validation.take(evaluated), validation.take(others)


@dataclass(frozen=True)
class Prepared:
    """Training data that are ready for loading.

    Attributes:
        examples: training examples, followed by mined validation triples.
        unlabelled: (M,) indices of unlabeled stories, which are trained on without examples.
        mined: row numbers of the mined triples among those that can be mined, in the order of `examples`.
        weights: (N,) sampling weights of the examples; None: each example is drawn once per epoch.
        labels: (S, 3) pseudo-labels of each story's aspects, PADDING if a label is missing; None: no labels.
        hard_examples: counts of hard examples, for run.json.
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
    """Preparation of training data by a frozen encoder, or by the plans of StoryWorld's stories.

    Attributes:
        hard_examples: sampling of hard examples.
        pseudo_labels: pseudo-labels of the training stories' aspects.
        validation_share: share of the validation triples that are evaluated.
        reader: objective with the encoder that ranks examples and embeds stories for clustering.
        trainer: trainer of the fit.
        synthetic_story: function that returns the StoryWorld plan of a story by its index; None for other stories.
    """

    hard_examples: HardExampleSampling
    pseudo_labels: PseudoLabels
    validation_share: float
    reader: StoryReader
    trainer: L.Trainer
    synthetic_story: Callable[[int], SyntheticStory | None]

    def prepare(self, training: TrainingSet, minable: TripleSet) -> Prepared:
        """Select hard examples, mine validation triples and label the stories, according to the settings.

        Args:
            training: training set.
            minable: validation triples that can be mined.

        Raises:
            OptionError: if there is nothing to mine, or true labels are unknown.
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
        """Increase the sampling weights of hard examples."""
        settings, count = self.hard_examples, len(prepared.examples)
        near, far = example_cosines(prepared.examples, self.reader)
        hard, wrong = hard_examples(near, far, settings.share)
        record = HardExampleRecord(wrong, allowed=int(settings.share * count), hard=len(hard))
        line = f"hard examples: {wrong} of {count} ranked incorrectly, {len(hard)} drawn more often"
        if wrong <= record.allowed:
            line += f": all of them, because share {settings.share:g} allows {record.allowed}"
        rank_zero_info(line)
        if settings.weight == 1:
            return replace(prepared, hard_examples=record)
        weights = np.ones(count)
        weights[hard] = settings.weight
        return replace(prepared, weights=weights, hard_examples=record)

    def _with_mined_triples(self, prepared: Prepared, minable: Triples) -> Prepared:
        """Add hard validation triples to the examples."""
        settings, record = self.hard_examples, prepared.hard_examples
        if not minable:
            raise OptionError("mining_needs_triples")
        candidates = TrainingExamples(minable.stories, [example_of(triple) for triple in minable])
        near, far = example_cosines(candidates, self.reader)
        mined, wrong = hard_examples(near, far, settings.share)
        line = f"{len(mined)} validation triples added to training, of {wrong} ranked incorrectly"
        if self.validation_share == 1:
            rank_zero_warn(f"{line}: validation accuracy is no estimate of the accuracy on other triples")
        else:
            rank_zero_info(f"{line}, of {len(minable)} that are not evaluated")
        added = [candidates[number] for number in mined.tolist()]
        weights = prepared.weights
        if weights is not None:
            weights_of_added = np.full(len(added), settings.weight)
            weights = np.concatenate([weights, weights_of_added])
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
                raise OptionError("no_true_labels")
            truths.append(astuple(story.structure))
        return replace(prepared, labels=_labels(prepared.examples.stories, indices, truth_labels(truths)))

    def _with_positional_labels(self, prepared: Prepared) -> Prepared:
        """Label the training stories and the unlabeled stories by clusters of their segments."""
        stories = prepared.examples.stories
        indices = np.concatenate([prepared.examples.story_indices, prepared.unlabelled])
        texts = [stories[index].text for index in indices.tolist()]
        labels, record = run_labels(texts, self.reader.text_embeddings, self.pseudo_labels, self.trainer)
        record = replace(record, transductive=bool(len(prepared.unlabelled)))
        return replace(prepared, labels=_labels(stories, indices, labels), pseudo_labels=record)


def _take(triples: Triples, rows: IntArray) -> Triples:
    """Select triples by their row numbers."""
    selected = [triples[row] for row in rows.tolist()]
    return Triples(triples.stories, selected, triples.report)


def _labels(stories: StoryTable, indices: IntArray, known: IntArray) -> IntArray:
    """Return labels (S, 3) of all stories: known labels at these indices, PADDING elsewhere."""
    labels = np.full((len(stories), len(ASPECTS)), PADDING, dtype=np.int64)
    labels[indices] = known
    return labels
