"""Weights of a story's text and views compared on labelled triples, and the best of a grid chosen on other folds.

Letters of the shapes: T triples, U different stories, W settings of the grid, D dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from narrlit.data.folds import grouped_folds, story_groups
from narrlit.data.records import Triple, example_of
from narrlit.data.table import IndexedTriples, IntArray, index_triples
from narrlit.errors import ModelError, OptionError, reading
from narrlit.experiments import report
from narrlit.experiments.report import Entry, Report
from narrlit.metrics.fusion import Weights, best_elsewhere, best_setting, fused_answers, simplex_grid
from narrlit.metrics.triples import AccuracySummary
from narrlit.models.fusion import PARTS, PRESETS, Fusion

if TYPE_CHECKING:
    from narrlit.models.view_encoder import AnyEncoder

Bools = NDArray[np.bool_]


def read_settings(path: str | None) -> Mapping[str, Fusion]:
    """Read fusion settings: NAME: [full, theme, action, outcome] in a YAML file; None: the built-in presets.

    Raises:
        OptionError: naming the file and the setting.
    """
    if path is None:
        return PRESETS
    with reading("--settings", path, f"write lines NAME: [{', '.join(PARTS)}]", OptionError):
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        settings = dict(content.get("settings", content))
    found = {}
    for name, weights in settings.items():
        with reading("--settings", f"{path}: {name}", f"give four weights, {', '.join(PARTS)}", OptionError):
            full, theme, action, outcome = map(float, weights)
            found[str(name)] = Fusion(full, theme, action, outcome)
    if not found:
        raise OptionError(f"--settings {path} is empty: write lines NAME: [{', '.join(PARTS)}]")
    return found


@dataclass(frozen=True, eq=False)
class Contest:
    """Labelled triples, their folds, and the grid of weights.

    Attributes:
        index: the triples.
        folds: indices of the triples in each fold.
        grid: (W, 4) weights of which the best is selected.
        description: plain data for the report.
    """

    index: IndexedTriples
    folds: list[IntArray]
    grid: Weights
    description: Entry

    @classmethod
    def of(cls, triples: Sequence[Triple], viewed: Sequence[Triple], step: float, folds: int, seed: int) -> "Contest":
        """Divide labelled triples into folds that share no story.

        Args:
            triples: as read; they decide the folds, since placeholders hide which stories are the same.
            viewed: the same triples with views and placeholders.
            step: of the grid.
            folds: number of folds.
            seed: of the folds.

        Raises:
            OptionError: for a step that does not divide 1, or more folds than groups of triples that share stories.
        """
        index = index_triples(viewed)
        grid = simplex_grid(step)
        groups = story_groups([example_of(triple) for triple in triples])
        description = {"grid": step, "grid_settings": len(grid), "folds": folds, "fold_seed": seed}
        dealt = grouped_folds(groups, folds, seed)
        return cls(index, dealt, grid, {**description, "groups": len(np.unique(groups))})

    def evaluate(self, model: str, encoder: "AnyEncoder", settings: Mapping[str, Fusion]) -> tuple[Entry, int]:
        """Embed every text and view once and evaluate all settings.

        Returns:
            The model's entry, and the number of texts and views that were truncated.

        Raises:
            ModelError: if the model has prompts for roles, or its embeddings are not finite.
        """
        from narrlit.models.embedding import part_vectors

        encoder.require_one_prompt("fuse")
        embeddings, truncated = part_vectors(encoder, self.index.table.texts)
        if not np.isfinite(embeddings).all():
            raise ModelError(f"{model}: some embeddings are NaN or infinite, the model is broken; leave it out")
        about = {"max_length": encoder.max_length, "truncated": truncated}
        return {**self.entry(model, embeddings, settings), **about}, truncated

    def entry(self, model: str, embeddings: NDArray[np.float32], settings: Mapping[str, Fusion]) -> Entry:
        """Evaluate a model's fusion settings, and the best of the grid.

        Args:
            model: its name.
            embeddings: (U, 4, D) of text and views of the triples' stories.
            settings: by name.
        """
        named = np.array([setting.weights for setting in (PRESETS["full_only"], *settings.values())])
        right, ties = fused_answers(embeddings, *self._arrays, named)
        full = right[0]
        return {
            "model": model,
            "settings": [
                {"name": name, "weights": list(setting.weights), **_compared(own, tied, full)}
                for (name, setting), own, tied in zip(settings.items(), right[1:], ties[1:], strict=True)
            ],
            **self._best_of_grid(*fused_answers(embeddings, *self._arrays, self.grid), full),
        }

    @property
    def _arrays(self) -> tuple[IntArray, IntArray]:
        return np.stack([self.index.anchors, self.index.a, self.index.b], axis=1), self.index.labels

    def _best_of_grid(self, right: Bools, ties: Bools, full: Bools) -> Entry:
        chosen = best_elsewhere(right, self.grid, self.folds)
        own, tied = np.empty_like(full), np.empty_like(full)
        by_fold = []
        for fold, (rows, setting) in enumerate(zip(self.folds, chosen, strict=True)):
            own[rows], tied[rows] = right[setting, rows], ties[setting, rows]
            others = np.setdiff1d(np.arange(len(full)), rows)
            by_fold.append(
                {
                    "fold": fold,
                    "weights": self.grid[setting].tolist(),
                    "on_others": _accuracy(right[setting, others], ties[setting, others]),
                    **_accuracy(own[rows], tied[rows]),
                }
            )
        best = best_setting(right, self.grid)
        return {
            "best_on_other_folds": {**_compared(own, tied, full), "by_fold": by_fold},
            "best_on_these_triples": {"weights": self.grid[best].tolist(), **_accuracy(right[best], ties[best])},
        }


def _accuracy(right: Bools, ties: Bools) -> dict[str, Any]:
    return AccuracySummary(len(right), int(right.sum()), int(ties.sum())).as_dict()


def _compared(right: Bools, ties: Bools, full: Bools) -> Entry:
    """An accuracy, and its difference to that of the stories' texts alone."""
    wrong, wrong_full = (set(np.flatnonzero(~answers).tolist()) for answers in (right, full))
    return {**_accuracy(right, ties), "difference_to_full": report.paired(wrong, wrong_full, len(right))}


def fuse_report(entries: Sequence[Entry], contest: Contest, about: Entry) -> Report:
    """Report fusion settings of several models.

    Args:
        entries: of all models so far.
        contest: the triples and the grid.
        about: what was read: `triples`, `views` and `pseudonyms`.
    """
    tried, step, folds = (contest.description[name] for name in ("grid_settings", "grid", "folds"))
    notes = {
        "weights": f"of {', '.join(PARTS)}, in this order",
        "best_on_other_folds": f"each of {folds} folds is evaluated with those of {tried} settings (multiples of "
        f"{step:g}) that were best on the other folds; triples that share stories are in the same fold",
        "best_on_these_triples": f"the best of {tried} settings on the triples that selected it: NOT A RESULT",
        "difference_to_full": "accuracy minus that of the stories' texts alone; lost: only the text has them right, "
        f"won: only the row has; p is not corrected for {len(entries[0]['settings']) + 1} comparisons a model",
    }
    if any(setting["name"] == "submitted" for setting in entries[0]["settings"]):
        notes["submitted"] = "selected by ttda704 on the task's development triples (Table 2): no result there"
    records = [{"model": entry["model"], **setting} for entry in entries for setting in entry["settings"]]
    return Report(
        content={**about, **contest.description, "notes": notes, "models": list(entries)},
        tables={title: rows for entry in entries for title, rows in model_tables(entry).items()},
        notes=[*report.note_lines(notes), report.INDEPENDENCE, *_warnings(entries), *_sources(about)],
        records=records,
        intervals={f"{r['model']}, {r['name']}": r for r in records},
    )


def model_tables(entry: Entry) -> dict[str, list[Entry]]:
    """Format a model's settings and the folds of its grid search as two tables by title."""
    found, best = entry["best_on_other_folds"], entry["best_on_these_triples"]
    rows = [
        *((setting["name"], _weights(setting["weights"]), setting) for setting in entry["settings"]),
        ("best on other folds", "by fold, below", found),
        ("best on these triples, NOT A RESULT", _weights(best["weights"]), best),
    ]
    return {
        entry["model"]: [
            {
                "setting": name,
                "weights": weights,
                "n": one["n"],
                "accuracy": report.accuracy_cell(one),
                "ties": one["ties"],
                "difference to full only": report.difference_cell(one.get("difference_to_full")),
            }
            for name, weights, one in rows
        ],
        f"{entry['model']}, grid by fold": [
            {
                "fold": fold["fold"],
                "weights, selected on the others": _weights(fold["weights"]),
                "accuracy on the others": report.accuracy_cell(fold["on_others"]),
                "n": fold["n"],
                "accuracy": report.accuracy_cell(fold),
            }
            for fold in found["by_fold"]
        ],
    }


def _weights(weights: Sequence[float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights)


def _warnings(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry['model']}: {entry['seen_in_training']}." for entry in entries if entry.get("seen_in_training")]


def _sources(about: Entry) -> list[str]:
    views, names = about["views"], about["pseudonyms"]
    files = ", ".join(file["path"] for file in views["files"]) or "no file"
    lines = [f"Triples: {about['triples']['path']}; views: {files}, {views['by_position']} stories cut by position."]
    if names is not None:
        lines.append(f"Names: placeholders, found by {names['backend']}, the same within a {names['scope']}.")
    return lines
