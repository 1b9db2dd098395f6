"""What `narrlit fuse` finds out of one model: named settings, and the best of a grid on triples that didn't choose it.

Letters of the shapes: T triples, U different stories, W settings of the grid, D dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.commands.reports import Entry, paired
from narrlit.data.folds import grouped_folds, story_groups
from narrlit.data.records import Triple, example_of
from narrlit.data.table import IndexedTriples, IntArray
from narrlit.metrics.fusion import Weights, best_elsewhere, best_setting, fused_answers, simplex_grid
from narrlit.metrics.triples import AccuracySummary
from narrlit.models.fusion import PRESETS, Fusion

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Contest:
    """Labelled triples, their folds, and the grid of settings.

    Attributes:
        index: the triples.
        folds: places of the triples in each fold.
        grid: (W, 4) settings of which the best is looked for.
        described: plain data for the report.
    """

    index: IndexedTriples
    folds: list[IntArray]
    grid: Weights
    described: Entry

    @classmethod
    def of(cls, triples: Sequence[Triple], index: IndexedTriples, step: float, folds: int, seed: int) -> "Contest":
        """The contest of labelled triples, which share stories within a fold alone.

        Raises:
            OptionError: for a step that does not divide 1, or more folds than groups of triples that share stories.
        """
        grid = simplex_grid(step)
        groups = story_groups([example_of(triple) for triple in triples])
        dealt = grouped_folds(groups, folds, seed)
        described = {"grid": step, "grid_settings": len(grid), "folds": folds, "fold_seed": seed}
        return cls(index, dealt, grid, {**described, "groups": len(np.unique(groups))})

    def entry(self, model: str, vectors: NDArray[np.float32], settings: dict[str, Fusion]) -> Entry:
        """What the report says of a model.

        Args:
            model: its name.
            vectors: (U, 4, D) of the parts of the triples' stories.
            settings: by name.
        """
        named = np.array([setting.weights for setting in (PRESETS["full_only"], *settings.values())])
        right, ties = fused_answers(vectors, self.index, named)
        full = right[0]
        return {
            "model": model,
            "settings": [
                {"name": name, "weights": list(setting.weights), **_judged(own, tied, full)}
                for (name, setting), own, tied in zip(settings.items(), right[1:], ties[1:], strict=True)
            ],
            **self._best_of_grid(*fused_answers(vectors, self.index, self.grid), full),
        }

    def _best_of_grid(self, right: Bools, ties: Bools, full: Bools) -> Entry:
        chosen = best_elsewhere(right, self.grid, self.folds)
        own, tied = np.empty_like(full), np.empty_like(full)
        by_fold = []
        for fold, (rows, place) in enumerate(zip(self.folds, chosen, strict=True)):
            own[rows], tied[rows] = right[place, rows], ties[place, rows]
            others = np.setdiff1d(np.arange(len(full)), rows)
            by_fold.append(
                {
                    "fold": fold,
                    "weights": self.grid[place].tolist(),
                    "on_others": _accuracy(right[place, others], ties[place, others]),
                    **_accuracy(own[rows], tied[rows]),
                }
            )
        best = best_setting(right, self.grid)
        return {
            "best_on_other_folds": {**_judged(own, tied, full), "by_fold": by_fold},
            "best_on_these_triples": {"weights": self.grid[best].tolist(), **_accuracy(right[best], ties[best])},
        }


def _accuracy(right: Bools, ties: Bools) -> dict[str, Any]:
    return AccuracySummary(len(right), int(right.sum()), int(ties.sum())).as_dict()


def _judged(right: Bools, ties: Bools, full: Bools) -> Entry:
    """An accuracy, and how it differs from that of the stories' texts alone."""
    wrong, wrong_full = (set(np.flatnonzero(~answers).tolist()) for answers in (right, full))
    return {**_accuracy(right, ties), "against_full_only": paired(wrong, wrong_full, len(right))}
