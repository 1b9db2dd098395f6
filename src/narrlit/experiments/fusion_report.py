"""Report on fusion weights of text and views: tables by model, notes, and the data that were read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from narrlit.data.rows import file_digest
from narrlit.data.schema import Triples
from narrlit.encoding.story_texts import StoryTexts
from narrlit.experiments import report
from narrlit.experiments.fusion_evaluation import GridSearch, ModelFusions
from narrlit.experiments.report import Entry, Report
from narrlit.metrics.significance import AccuracySummary, PairedComparison
from narrlit.models.config import PARTS


@dataclass(frozen=True, eq=False)
class FusionData:
    """Labeled triples as they are in their file, and which texts of their stories are read."""

    triples: Triples
    texts: StoryTexts

    @property
    def path(self) -> str | None:
        """File of the triples; None for triples in memory."""
        return None if self.triples.report is None else str(self.triples.report.path)

    @cached_property
    def sha256(self) -> str | None:
        """Digest of the file of the triples; None for triples in memory."""
        return None if self.path is None else file_digest(self.path)

    @property
    def record(self) -> dict[str, object]:
        """Description of triples, views and pseudonyms as plain data."""
        triples: dict[str, object] = {"n": len(self.triples)}
        if self.path is not None:
            triples = {"path": self.path, "sha256": self.sha256, **triples}
        pseudonyms = self.texts.pseudonyms
        return {
            "triples": triples,
            "views": self.texts.provenance,
            "pseudonyms": None if pseudonyms is None else asdict(pseudonyms),
        }

    @property
    def lines(self) -> list[str]:
        """Sentences about triples, views and pseudonyms."""
        lines = [f"Triples: {self.path or 'in memory'}; views: {self._views}."]
        pseudonyms = self.texts.pseudonyms
        if pseudonyms is not None:
            scope = f"the same within a {pseudonyms.scope}"
            lines.append(f"Names, found by {pseudonyms.backend}, are replaced with placeholders, {scope}.")
        return lines

    @property
    def _views(self) -> str:
        """Files of the views."""
        views = self.texts.views
        if views is None:
            return "those of the stories"
        files = ", ".join(views.paths) or "no file"
        if views.missing == "positional":
            return f"{files}; stories without views are split by position"
        return files


def fusion_report(models: Sequence[ModelFusions], search: GridSearch, data: FusionData) -> Report:
    """Report the accuracies of one or more models."""
    tables: dict[str, list[Entry]] = {}
    warnings: list[str] = []
    records: list[Entry] = []
    intervals: dict[str, Entry] = {}
    for model in models:
        tables[model.model] = _setting_rows(model)
        tables[f"{model.model}, grid by fold"] = _fold_rows(model)
        if model.seen_in_training is not None:
            warnings.append(f"{model.model}: {model.seen_in_training}.")
        for setting in model.accuracies.settings:
            record = {"model": model.model, **setting.as_dict()}
            records.append(record)
            intervals[f"{model.model}, {setting.name}"] = record
    notes = _notes([setting.name for setting in models[0].accuracies.settings], search)
    as_dicts = [model.as_dict() for model in models]
    return Report(
        content={**data.record, **search.as_dict(), "notes": notes, "models": as_dicts},
        tables=tables,
        notes=[*report.note_lines(notes), report.method_note(_is_by_story(models)), *warnings, *data.lines],
        records=records,
        intervals=intervals,
    )


def _is_by_story(models: Sequence[ModelFusions]) -> bool:
    """Return True if triples share stories."""
    return models[0].accuracies.settings[0].accuracy.by_story is not None


def _notes(settings: Sequence[str], search: GridSearch) -> dict[str, str]:
    """Explain the accuracies and differences, by name."""
    count = len(search.weights)
    notes = {
        "weights": f"weights of {', '.join(PARTS)}, in this order",
        "best_on_other_folds": f"each of {len(search.folds)} folds is evaluated with the one of {count} settings "
        f"(multiples of {search.step:g}) that was best on the other folds; triples that share stories are in the same "
        "fold",
        "best_on_these_triples": f"the best of {count} settings on the triples that selected it: NOT A RESULT",
        "difference_to_full": "accuracy minus that of the full texts alone; lost: only the full text is right, won: "
        f"only the row is right; p is not corrected for {len(settings) + 1} comparisons per model",
    }
    if "submitted" in settings:
        notes["submitted"] = "selected by ttda704 on the task's development triples (Table 2): not a valid result there"
    return notes


def _setting_rows(model: ModelFusions) -> list[Entry]:
    """Format the settings, and the best settings of the grid."""
    accuracies = model.accuracies
    by_fold, here = accuracies.best_on_other_folds, accuracies.best_on_these_triples
    rows = []
    for setting in accuracies.settings:
        weights = _weights_text(setting.weights)
        rows.append(_setting_row(setting.name, weights, setting.accuracy, setting.difference))
    return [
        *rows,
        _setting_row("best on other folds", "by fold, below", by_fold.accuracy, by_fold.difference),
        _setting_row("best on these triples, NOT A RESULT", _weights_text(here.weights), here.accuracy),
    ]


def _setting_row(
    name: str, weights: str, accuracy: AccuracySummary, difference: PairedComparison | None = None
) -> Entry:
    """Format an accuracy and, if known, its difference to the full text."""
    return {
        "setting": name,
        "weights": weights,
        "n": accuracy.n,
        "accuracy": report.accuracy_cell(accuracy.as_dict()),
        "difference to full only": report.difference_cell(difference),
    }


def _fold_rows(model: ModelFusions) -> list[Entry]:
    """Format the folds of the grid search."""
    rows = []
    for fold in model.accuracies.best_on_other_folds.folds:
        row = {
            "fold": fold.fold,
            "weights, selected on the others": _weights_text(fold.weights),
            "accuracy on the others": report.accuracy_cell(fold.on_others.as_dict()),
            "n": fold.accuracy.n,
            "accuracy": report.accuracy_cell(fold.accuracy.as_dict()),
        }
        rows.append(row)
    return rows


def _weights_text(weights: Sequence[float]) -> str:
    """Format weights.

    >>> _weights_text([0.5, 0.25, 0.25, 0.0])
    '0.5, 0.25, 0.25, 0'
    """
    return ", ".join(f"{weight:g}" for weight in weights)
