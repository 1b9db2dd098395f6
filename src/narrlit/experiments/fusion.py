"""Weights of a story's text and views compared on labeled triples, and the best of a grid chosen on other folds.

Letters of the shapes: T triples, U different stories, W weights, D dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.configuration import read_yaml
from narrlit.console import say_truncated
from narrlit.data.schema import FloatArray, IntArray, TrainingExamples, Triples, example_of
from narrlit.data.splits import grouped_folds, story_groups
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError, reading
from narrlit.experiments import report
from narrlit.experiments.report import Entry, Report
from narrlit.metrics.significance import AccuracySummary, paired
from narrlit.models.config import PARTS, PRESETS, Fusion

Bools = NDArray[np.bool_]
Weights = NDArray[np.float64]
FINEST_STEP = 0.01
"""Smallest step of a grid: 176,851 weights."""

_WEIGHTS_PER_PASS = 1024
_SHORTEST = 1e-12  # length of a fused vector, as in torch's `normalize`


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


def simplex_grid(step: float, parts: int = len(PARTS)) -> Weights:
    """List all weights (W, P) of P parts that are multiples of a step, at least 0, and sum to 1.

    >>> simplex_grid(1)
    array([[0., 0., 0., 1.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.],
           [1., 0., 0., 0.]])
    """
    steps = round(1 / step) if FINEST_STEP <= step <= 1 else 0
    if not steps or abs(steps * step - 1) > 1e-9:
        raise OptionError(f"--grid {step}: a step from {FINEST_STEP} to 1 that divides 1 is needed, such as 0.1")
    # A weight is the number of steps between two of P - 1 bars.
    bars = np.array(list(combinations(range(steps + parts - 1), parts - 1)), dtype=np.float64)
    return (np.diff(bars, prepend=-1, append=steps + parts - 1) - 1) / steps


def fused_scores(vectors: NDArray[np.float32], indices: IntArray, weights: Weights) -> Weights:
    """Compute cosines (W, T, 2) of the anchor with A and with B for many weights (W, 4) of the parts.

    With unit vectors x_p, y_q of two stories' parts, the product of the fused vectors is w^T G w with G_pq = x_p . y_q,
    and so are their squared lengths, with the blocks of each story with itself. No fused vector is ever computed.

    Source: ttda704, appendix A.4, for the fused vector.

    Args:
        vectors: (U, 4, D) unit vectors of full text, theme, action and outcome.
        indices: (T, 3) story indices of anchor, A and B.
        weights: of the parts.
    """
    ends = np.concatenate([indices[:, [0, 1]], indices[:, [0, 2]]])
    # Each pair is computed once, so that the same two stories have the same score to the last bit, and tie.
    pairs, inverse = np.unique(ends, axis=0, return_inverse=True)
    unit = vectors.astype(np.float64)
    outer = (weights[:, :, None] * weights[:, None, :]).reshape(len(weights), -1)
    squares = outer @ (unit @ unit.transpose(0, 2, 1)).reshape(len(unit), -1).T
    lengths = np.maximum(np.sqrt(np.maximum(squares, 0)), _SHORTEST)
    products = outer @ (unit[pairs[:, 0]] @ unit[pairs[:, 1]].transpose(0, 2, 1)).reshape(len(pairs), -1).T
    cosines = products / (lengths[:, pairs[:, 0]] * lengths[:, pairs[:, 1]])
    return np.stack(np.split(cosines[:, inverse.ravel()], 2, axis=1), axis=2)


def fused_answers(
    vectors: NDArray[np.float32], indices: IntArray, labels: IntArray, weights: Weights
) -> tuple[Bools, Bools]:
    """Answer triples, whose labels (T,) are 1 where A is closer, by each of many weights, as `fused_scores` takes them.

    Returns right answers (W, T), and ties (W, T), which are answers for B.
    """
    right = np.empty((len(weights), len(indices)), dtype=np.bool_)
    ties = np.empty_like(right)
    for start in range(0, len(weights), _WEIGHTS_PER_PASS):
        part = slice(start, start + _WEIGHTS_PER_PASS)
        scores = fused_scores(vectors, indices, weights[part])
        right[part] = (scores[..., 0] > scores[..., 1]) == (labels == 1)
        ties[part] = scores[..., 0] == scores[..., 1]
    return right, ties


def best_setting(right: Bools, weights: Weights) -> int:
    """Find the row of the weights (W, P) with the most right answers (W, T).

    Of equals it is the one nearest to equal weights, then the first.
    """
    # Rounded: 0.3 and 0.1 are as far from equal weights as 0.1 and 0.3, whatever the last bit.
    distances = np.square(weights - 1 / weights.shape[1]).sum(axis=1).round(9)
    return int(np.lexsort((distances, -right.sum(axis=1)))[0])


def best_elsewhere(right: Bools, weights: Weights, folds: Sequence[IntArray]) -> list[int]:
    """Find for each fold, given as rows of its triples, the weights that are best on all others."""
    everything = np.arange(right.shape[1])
    return [best_setting(right[:, np.setdiff1d(everything, fold)], weights) for fold in folds]
