"""Run of a fit: its directory, its record and its accuracies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from narrlit.errors import ModelError, OptionError
from narrlit.json_records import read_json
from narrlit.models.checkpoints import find_record
from narrlit.models.run_file import (
    ANSWERS,
    HIGHEST_ACCURACY,
    RECORD,
    AnswersFile,
    NewerRecordError,
    RunFile,
)
from narrlit.results import Estimate
from narrlit.statistics.evaluations import accuracy_text, estimate_of

LAST, BEST, REFERENCE = "last_epoch", "best_epoch", "reference"
"""Evaluations of a fit: after the last epoch, the best one, and of the encoder before training."""


@dataclass(frozen=True)
class Run:
    """Directory of a fit and its record; it can be used as a path: `narrlit.load(run)` loads its best checkpoint.

    Attributes:
        folder: the directory.
        record: contents of run.json.
        reason: reason why the fit ended early, if known.
    """

    folder: Path
    record: RunFile
    reason: str | None = None

    @classmethod
    def read(cls, folder: str | Path) -> "Run":
        """Read the record of a run; in a folder of versions, that of the newest.

        Raises:
            OptionError: if there is none.
            ModelError: if it is damaged, or was written by a later version of narrlit.
        """
        path = find_record(str(folder))
        if path is None:
            raise OptionError("not_a_run", folder=folder, record=RECORD)
        return cls(path.parent, RunFile.read(path))

    @classmethod
    def at(cls, folder: Path, reason: str | None = None) -> "Run":
        """Read the run in a directory; its record is empty if there is none, or it is damaged.

        Raises:
            NewerRecordError: if a later version of narrlit wrote it.
        """
        try:
            return cls(folder, RunFile.read(folder / RECORD), reason)
        except NewerRecordError:
            raise
        except ModelError:
            return cls(folder, RunFile(), reason)

    @property
    def status(self) -> str | None:
        """Status of the fit: finished, interrupted, failed, diverged or pruned."""
        return self.record.status

    @property
    def finished(self) -> bool:
        """True if the fit ran to its end."""
        return self.status == "finished"

    @property
    def best(self) -> Estimate | None:
        """Validation accuracy of the saved checkpoint, too high if it is the best of several; None without one."""
        return None if self.record.best is None else estimate_of(self.record.best)

    def table(self) -> pd.DataFrame:
        """Tabulate the evaluations on the validation triples: epoch, step, n, correct, accuracy, low, high."""
        rows = []
        for evaluation in self.record.validations:
            low, high = evaluation.interval or (None, None)
            figures = evaluation.model_dump(include={"epoch", "step", "n", "correct", "accuracy"})
            rows.append({**figures, "low": low, "high": high})
        return pd.DataFrame(rows, columns=["epoch", "step", "n", "correct", "accuracy", "low", "high"])

    def answers_file(self) -> AnswersFile:
        """Read the recorded answers: digest of the triples, and wrong answers by evaluation.

        Raises:
            DataError: if they are missing or damaged.
        """
        return read_json(self.folder / ANSWERS, AnswersFile, "broken_answers_of_fit", folder=self.folder)

    def check_evaluated(self) -> None:
        """Check that the fit evaluated its validation triples, or that the reason is known why it did not.

        Raises:
            OptionError: if it did not.
        """
        if not self.record.validations and self.reason is None:
            raise OptionError("fit_without_evaluation", folder=self.folder)

    def answers(self) -> pd.DataFrame:
        """Tabulate the answers to the validation triples after the last epoch, in the best one, and before training.

        Returns:
            One row for each evaluation and triple: metric (`last_epoch`, `best_epoch` and, if the fit evaluated it,
            `reference`: the frozen encoder or, without a new head, the model before training), epoch (from 0; None
            before training), triple (its position), right (1 or 0; NaN if a score was NaN), stories (digests of its
            texts; None if they are unknown), and ties (equal scores in the whole evaluation).

        Raises:
            OptionError: if the fit evaluated nothing.
            DataError: if its answers are missing or damaged.
        """
        self.check_evaluated()
        record, file = self.record, self.answers_file()
        wrong: dict[tuple[int, int | None], list[int] | None] = {}
        for answered in file.evaluations:
            for step in (answered.step, None):  # records of old releases have no step
                wrong[answered.epoch, step] = answered.wrong
        last = record.validations[-1]
        best = record.best or last  # there is no best evaluation if all scores are NaN
        evaluations = {
            LAST: (last, wrong[last.epoch or 0, last.step]),
            BEST: (best, wrong[best.epoch or 0, best.step]),
        }
        if record.reference is not None:
            evaluations[REFERENCE] = (record.reference, file.untrained if record.frozen is None else file.frozen)
        rows = []
        for metric, (evaluation, positions) in evaluations.items():
            right = np.full(evaluation.n, np.nan if positions is None else 1.0)
            right[positions or []] = 0.0
            stories: Sequence[Sequence[int] | None] = file.stories or []
            if len(stories) != evaluation.n:  # only some of the triples were evaluated
                stories = [None] * evaluation.n
            for triple in range(evaluation.n):
                rows.append((metric, evaluation.epoch, triple, right[triple], stories[triple], evaluation.ties))
        answers = pd.DataFrame(rows, columns=["metric", "epoch", "triple", "right", "stories", "ties"], dtype=object)
        return answers.astype({"triple": int, "right": float, "ties": int})

    def __fspath__(self) -> str:
        return str(self.folder)

    def __str__(self) -> str:
        """Format directory, status and best accuracy as one line."""
        is_highest = self.record.selected_by == HIGHEST_ACCURACY
        selected = "best validation accuracy" if is_highest else f"{self.record.selected_by}: validation accuracy"
        best = "no accuracy" if self.record.best is None else f"{selected} {accuracy_text(self.record.best)}"
        return f"{self.folder}: {self.status}, {best}"
