"""Accuracies by fusion weights of text and views, and of the best weights of a grid, chosen on other folds.

Letters in shapes: T triples, U different stories, W weights, D dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from narrlit.data.schema import FloatArray, IntArray, TrainingExamples, Triples, example_of
from narrlit.data.splits import grouped_folds, story_groups, story_numbers
from narrlit.experiments.fusion_weights import (
    FusedAnswers,
    Weights,
    best_elsewhere,
    best_setting,
    fused_answers,
    simplex_grid,
)
from narrlit.metrics.significance import AccuracySummary, PairedComparison
from narrlit.models.config import PRESETS, Fusion
from narrlit.models.coverage import Coverage


@dataclass(frozen=True)
class EvaluatedSetting:
    """Accuracy of one setting of the weights.

    Attributes:
        name: name of the setting.
        weights: weights of full text, theme, action and outcome.
        accuracy: accuracy with its interval.
        difference: difference to the full text alone.
    """

    name: str
    weights: Sequence[float]
    accuracy: AccuracySummary
    difference: PairedComparison

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "name": self.name,
            "weights": list(self.weights),
            **self.accuracy.as_dict(),
            "difference_to_full": self.difference.as_dict(),
        }


@dataclass(frozen=True)
class FoldSetting:
    """Setting of the grid that was best on the other folds.

    Attributes:
        fold: number of the fold.
        weights: weights of the setting.
        on_others: accuracy on the other folds, which selected the setting.
        accuracy: accuracy on the fold.
    """

    fold: int
    weights: Sequence[float]
    on_others: AccuracySummary
    accuracy: AccuracySummary

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "fold": self.fold,
            "weights": list(self.weights),
            "on_others": self.on_others.as_dict(),
            **self.accuracy.as_dict(),
        }


@dataclass(frozen=True)
class SelectedByFold:
    """Accuracy of the best settings of the grid; each fold is evaluated with the setting that was best on the others.

    Attributes:
        accuracy: accuracy on all folds.
        difference: difference to the full text alone.
        folds: setting of each fold.
    """

    accuracy: AccuracySummary
    difference: PairedComparison
    folds: Sequence[FoldSetting]

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            **self.accuracy.as_dict(),
            "difference_to_full": self.difference.as_dict(),
            "by_fold": [fold.as_dict() for fold in self.folds],
        }


@dataclass(frozen=True)
class SelectedHere:
    """Best setting of the grid on all triples; its accuracy is not a valid result, because they selected it."""

    weights: Sequence[float]
    accuracy: AccuracySummary

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {"weights": list(self.weights), **self.accuracy.as_dict()}


@dataclass(frozen=True)
class FusionAccuracies:
    """Accuracies of a model by the weights of text and views.

    Attributes:
        settings: named settings.
        best_on_other_folds: settings of the grid that were selected on other folds.
        best_on_these_triples: setting of the grid that was selected on the same triples.
    """

    settings: Sequence[EvaluatedSetting]
    best_on_other_folds: SelectedByFold
    best_on_these_triples: SelectedHere

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "settings": [setting.as_dict() for setting in self.settings],
            "best_on_other_folds": self.best_on_other_folds.as_dict(),
            "best_on_these_triples": self.best_on_these_triples.as_dict(),
        }


@dataclass(frozen=True)
class ModelFusions:
    """Model and its accuracies.

    Attributes:
        model: name of the model.
        accuracies: accuracies by weights.
        max_length: maximum length of a text in tokens.
        long: how longer texts are handled.
        coverage: share of texts and views that was read.
        seen_in_training: reason why the accuracies are not valid results; None if there is none.
    """

    model: str
    accuracies: FusionAccuracies
    max_length: int
    long: str
    coverage: Coverage
    seen_in_training: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "model": self.model,
            **self.accuracies.as_dict(),
            "max_length": self.max_length,
            "long": self.long,
            **self.coverage.record,
            "seen_in_training": self.seen_in_training,
        }


@dataclass(frozen=True, eq=False)
class GridSearch:
    """Labeled triples, their folds, and a grid of weights.

    Attributes:
        triples: triples as encoders read them.
        stories: (T, 3) numbers of their stories; equal stories have the same number.
        folds: positions of the triples of each fold.
        weights: (W, 4) weights of the grid.
        step: step of the grid.
        fold_seed: seed of the division into folds.
        groups: number of groups of triples that share stories.
    """

    triples: Triples
    stories: IntArray
    folds: list[IntArray]
    weights: Weights
    step: float
    fold_seed: int
    groups: int

    @classmethod
    def divide(cls, triples: Triples, prepared: Triples, step: float, folds: int, fold_seed: int) -> "GridSearch":
        """Divide labeled triples into folds that share no stories.

        Stories are compared by the texts in `triples`, because equal stories may have different placeholders in
        `prepared`.

        Raises:
            OptionError: if the step does not divide 1, or there are fewer groups of triples than folds.
        """
        weights = simplex_grid(step)
        examples = TrainingExamples(triples.stories, list(map(example_of, triples)))
        groups = story_groups(examples)
        positions = grouped_folds(groups, folds, fold_seed)
        return cls(prepared, story_numbers(triples), positions, weights, step, fold_seed, len(np.unique(groups)))

    def as_dict(self) -> dict[str, object]:
        """Convert to JSON values."""
        return {
            "grid": self.step,
            "grid_settings": len(self.weights),
            "folds": len(self.folds),
            "fold_seed": self.fold_seed,
            "groups": self.groups,
        }

    def evaluate(self, embeddings: FloatArray, settings: Mapping[str, Fusion]) -> FusionAccuracies:
        """Evaluate settings, and the best settings of the grid, with unit vectors (U, 4, D) of texts and views."""
        compared = [PRESETS["full_only"], *settings.values()]
        answers = self._answers(embeddings, np.array([setting.weights for setting in compared]))
        full = answers.at(0)
        evaluated = []
        for number, (name, setting) in enumerate(settings.items(), start=1):
            setting_answers = answers.at(number)
            difference = setting_answers.difference_to(full)
            evaluated.append(EvaluatedSetting(name, setting.weights, setting_answers.summary, difference))
        grid = self._answers(embeddings, self.weights)
        return FusionAccuracies(evaluated, self._select_by_fold(grid, full), self._select_here(grid))

    def _answers(self, embeddings: FloatArray, weights: Weights) -> FusedAnswers:
        return fused_answers(embeddings, self.triples.indices, self.triples.labels, weights, self.stories)

    def _select_by_fold(self, grid: FusedAnswers, full: FusedAnswers) -> SelectedByFold:
        """Evaluate each fold with the setting that is best on the other folds."""
        triples = np.arange(len(self.triples))
        setting_of = np.empty(len(triples), dtype=np.int64)
        folds = []
        best_settings = best_elsewhere(grid.right, self.weights, self.folds)
        for number, (fold, best) in enumerate(zip(self.folds, best_settings, strict=True)):
            setting_of[fold] = best
            others = np.setdiff1d(triples, fold)
            on_others = grid.at(best, others).summary
            on_fold = grid.at(best, fold).summary
            folds.append(FoldSetting(number, self.weights[best].tolist(), on_others, on_fold))
        answers = grid.at(setting_of, triples)
        return SelectedByFold(answers.summary, answers.difference_to(full), folds)

    def _select_here(self, grid: FusedAnswers) -> SelectedHere:
        """Select the setting that is best on all triples."""
        best = best_setting(grid.right, self.weights)
        return SelectedHere(self.weights[best].tolist(), grid.at(best).summary)
