"""Weights of a story's text and views compared on labeled triples, and the best of a grid chosen on other folds.

Letters of the shapes: T triples, U different stories, W weights, D dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from narrlit.configuration import read_yaml
from narrlit.console import say_truncated
from narrlit.data.schema import FloatArray, IntArray, TrainingExamples, Triples, example_of
from narrlit.data.splits import grouped_folds, story_groups
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError, reading
from narrlit.experiments import report
from narrlit.experiments.fusion_weights import (
    Bools,
    Weights,
    best_elsewhere,
    best_setting,
    fused_answers,
    simplex_grid,
)
from narrlit.experiments.report import Entry, Report
from narrlit.metrics.significance import AccuracySummary, paired
from narrlit.models.config import PARTS, PRESETS, Fusion


def read_settings(path: str | None) -> Mapping[str, Fusion]:
    """Read fusion settings: NAME: [full, theme, action, outcome] in a YAML file; None: the built-in presets."""
    if path is None:
        return PRESETS
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise OptionError(f"--settings {path}: write lines NAME: [{', '.join(PARTS)}]")
    settings = {}
    for name, weights in content.items():
        with reading("--settings", f"{path}: {name}", f"give four weights, {', '.join(PARTS)}", OptionError):
            full, theme, action, outcome = map(float, weights)
            settings[str(name)] = Fusion(full, theme, action, outcome)
    return settings


@dataclass(frozen=True, eq=False)
class Contest:
    """Labeled triples, their folds, and the grid of weights."""

    triples: Triples
    folds: list[IntArray]
    """Positions of the triples in each fold."""
    grid: Weights
    """(W, 4) weights of which the best is selected."""
    description: Entry

    @classmethod
    def of(cls, triples: Triples, prepared: Triples, step: float, folds: int, seed: int) -> "Contest":
        """Divide labeled triples into folds that share no story.

        Folds are those of the triples as read, since placeholders, in `prepared`, hide which stories are the same.
        """
        grid = simplex_grid(step)
        groups = story_groups(TrainingExamples(triples.stories, [example_of(triple) for triple in triples]))
        rows = grouped_folds(groups, folds, seed)
        about = {"grid": step, "grid_settings": len(grid), "folds": folds, "fold_seed": seed}
        return cls(prepared, rows, grid, {**about, "groups": len(np.unique(groups))})

    def evaluate(self, encoder: StoryEncoder, settings: Mapping[str, Fusion]) -> Entry:
        """Embed every text and view once and evaluate all settings."""
        encoder.require_one_prompt("fuse")
        embeddings, coverage = encoder.embed_parts(self.triples.stories)
        limit = encoder.facts.max_length
        about = {"max_length": limit, "long": encoder.loading.long, **coverage.record}
        say_truncated(coverage, limit, "text or view", "texts and views")
        return {**self.entry(encoder.name, embeddings, settings), **about}

    def entry(self, model: str, embeddings: FloatArray, settings: Mapping[str, Fusion]) -> Entry:
        """Evaluate a model's fusion settings, and the best of the grid, by embeddings (U, 4, D) of text and views."""
        arrays = (embeddings, self.triples.indices, self.triples.labels)
        weights = np.array([setting.weights for setting in (PRESETS["full_only"], *settings.values())])
        right, ties = fused_answers(*arrays, weights)
        full = right[0]
        entries = [
            {"name": name, "weights": list(setting.weights), **_compared(own, tied, full)}
            for (name, setting), own, tied in zip(settings.items(), right[1:], ties[1:], strict=True)
        ]
        right, ties = fused_answers(*arrays, self.grid)
        own, tied = np.empty_like(full), np.empty_like(full)
        by_fold: list[Entry] = []
        for rows, setting in zip(self.folds, best_elsewhere(right, self.grid, self.folds), strict=True):
            own[rows], tied[rows] = right[setting, rows], ties[setting, rows]
            others = np.setdiff1d(np.arange(len(full)), rows)
            by_fold.append(
                {
                    "fold": len(by_fold),
                    "weights": self.grid[setting].tolist(),
                    "on_others": _accuracy(right[setting, others], ties[setting, others]),
                    **_accuracy(own[rows], tied[rows]),
                }
            )
        best = best_setting(right, self.grid)
        return {
            "model": model,
            "settings": entries,
            "best_on_other_folds": {**_compared(own, tied, full), "by_fold": by_fold},
            "best_on_these_triples": {"weights": self.grid[best].tolist(), **_accuracy(right[best], ties[best])},
        }


def _accuracy(right: Bools, ties: Bools) -> dict[str, Any]:
    return AccuracySummary(len(right), int(right.sum()), int(ties.sum())).as_dict()


def _compared(right: Bools, ties: Bools, full: Bools) -> Entry:
    """An accuracy, and its difference to that of the stories' texts alone."""
    wrong, wrong_full = (set(np.flatnonzero(~answers).tolist()) for answers in (right, full))
    return {**_accuracy(right, ties), "difference_to_full": paired(wrong, wrong_full, len(right))}


def fuse_report(entries: Sequence[Entry], contest: Contest, about: Entry) -> Report:
    """Report fusion settings of several models; `about` says what was read: `triples`, `views` and `pseudonyms`."""
    count, step, folds = (contest.description[name] for name in ("grid_settings", "grid", "folds"))
    notes = {
        "weights": f"of {', '.join(PARTS)}, in this order",
        "best_on_other_folds": f"each of {folds} folds is evaluated with those of {count} settings (multiples of "
        f"{step:g}) that were best on the other folds; triples that share stories are in the same fold",
        "best_on_these_triples": f"the best of {count} settings on the triples that selected it: NOT A RESULT",
        "difference_to_full": "accuracy minus that of the stories' texts alone; lost: only the text has them right, "
        f"won: only the row has; p is not corrected for {len(entries[0]['settings']) + 1} comparisons a model",
    }
    if any(setting["name"] == "submitted" for setting in entries[0]["settings"]):
        notes["submitted"] = "selected by ttda704 on the task's development triples (Table 2): no result there"
    files = ", ".join(file["path"] for file in about["views"]["files"]) or "no file"
    cut = "; stories without views are cut by position" if about["views"]["missing"] == "positional" else ""
    sources = [f"Triples: {about['triples']['path']}; views: {files}{cut}."]
    if about["pseudonyms"]:
        backend, scope = about["pseudonyms"]["backend"], about["pseudonyms"]["scope"]
        sources.append(f"Names: placeholders, found by {backend}, the same within a {scope}.")
    warnings = [f"{entry['model']}: {entry['seen_in_training']}." for entry in entries if entry.get("seen_in_training")]
    records = [{"model": entry["model"], **setting} for entry in entries for setting in entry["settings"]]
    return Report(
        content={**about, **contest.description, "notes": notes, "models": list(entries)},
        tables={title: rows for entry in entries for title, rows in model_tables(entry).items()},
        notes=[*report.note_lines(notes), report.INDEPENDENCE, *warnings, *sources],
        records=records,
        intervals={f"{record['model']}, {record['name']}": record for record in records},
    )


def model_tables(entry: Entry) -> dict[str, list[Entry]]:
    """Format a model's settings and the folds of its grid search as two tables by title."""
    grid, best = entry["best_on_other_folds"], entry["best_on_these_triples"]
    rows = [
        *((setting["name"], _weights(setting), setting) for setting in entry["settings"]),
        ("best on other folds", "by fold, below", grid),
        ("best on these triples, NOT A RESULT", _weights(best), best),
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
                "weights, selected on the others": _weights(fold),
                "accuracy on the others": report.accuracy_cell(fold["on_others"]),
                "n": fold["n"],
                "accuracy": report.accuracy_cell(fold),
            }
            for fold in grid["by_fold"]
        ],
    }


def _weights(entry: Entry) -> str:
    return ", ".join(f"{weight:g}" for weight in entry["weights"])
