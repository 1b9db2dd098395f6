"""Fits of the rows of a paper's tables: options, runs and cross-validations."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from narrlit.experiments.crossval import crossval
from narrlit.experiments.fitting import parse_fit
from narrlit.experiments.plan import Plan, PlannedFit, keep_config
from narrlit.experiments.reproduction.inputs import Inputs
from narrlit.experiments.reproduction.record import CellResult
from narrlit.experiments.reproduction.tables import PaperRow
from narrlit.experiments.run import Run

PURPOSE = "a reproduction"


@dataclass(frozen=True)
class RowFits:
    """Fits of the rows of a paper's tables."""

    inputs: Inputs

    def run(self, row: PaperRow, seed: int) -> Path:
        """Return the run of a row with a seed; fit it unless it is finished.

        Raises:
            NarrlitError: if a file is missing, or the fit fails.
        """
        folder = self._folder(row, f"seed{seed}")
        options = ["--data.validation", str(self.inputs.dev()), "--seed_everything", str(seed)]
        config, _ = parse_fit(self.arguments(row, *options), PURPOSE)
        keep_config(folder.with_name(f"{folder.name}.yaml"), config, folder)
        if not Run.at(folder).finished:
            fit = PlannedFit(folder.name, config, row.fit or "")
            Plan(self.inputs.folder, [fit], {}).run_fits()
        return folder

    def cross_validate(self, row: PaperRow) -> CellResult:
        """Cross-validate the fit of a row, and return the accuracy after the last epoch, pooled over the folds.

        Raises:
            NarrlitError: if a file is missing, or a fit fails.
        """
        folder = self._folder(row, "cv")
        content = crossval([], self.arguments(row), folder=folder).report.content
        spread = content["over_folds"]["last_epoch"]["standard_deviation"]
        pooled = content["pooled"]["last_epoch"]
        return CellResult(system=str(folder), **pooled, standard_deviation=spread, flags={})

    def arguments(self, row: PaperRow, *options: str) -> list[str]:
        """Return the options of a row's fit: those of the table, the encoder, `options`, and the user's.

        Raises:
            DataError: if a file is missing.
        """
        words = shlex.split(self.inputs.tables.fits[row.fit or ""])
        resolved = [self._with_files(word, row) for word in words]
        return [*resolved, *self.inputs.backbone(row).options, *options, *self.inputs.record.options]

    def _with_files(self, word: str, row: PaperRow) -> str:
        """Replace names of files, such as `{dev}`, with paths."""

        def paths(match: re.Match[str]) -> str:
            files = [str(path) for path in self.inputs.files(match[1], row)]
            return files[0] if len(files) == 1 else json.dumps(files)

        return re.sub(r"{(\w+)}", paths, word)

    def _folder(self, row: PaperRow, ending: str) -> Path:
        """Return the folder of a row's run, which rows with the same fit, encoder and views share."""
        parts = [Path(part).name for part in (row.fit, row.encoder, row.views) if part]
        return self.inputs.folder / "-".join([*parts, ending])
