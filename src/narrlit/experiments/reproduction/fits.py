"""Fits of the rows of a paper's tables: options, runs and cross-validations."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from narrlit.experiments.crossval import crossval
from narrlit.experiments.fitting import parse_fit
from narrlit.experiments.plan import Plan, PlannedFit, keep_config
from narrlit.experiments.reproduction.inputs import ReproductionInputs
from narrlit.experiments.reproduction.record import RecordedCell
from narrlit.experiments.reproduction.tables import PaperRow
from narrlit.experiments.run import Run

PURPOSE = "a reproduction"


@dataclass(frozen=True)
class RowFits:
    """Fits of the rows of a paper's tables."""

    inputs: ReproductionInputs

    def run(self, row: PaperRow, seed: int) -> Path:
        """Return the run of a row with a seed; fit it unless it is finished.

        Raises:
            NarrlitError: if a file is missing, or the fit fails.
        """
        folder = self._folder(row, f"seed{seed}")
        options = ["--data.validation", str(self.inputs.dev()), "--seed_everything", str(seed)]
        config, _ = parse_fit(self.arguments(row, *options), PURPOSE)
        self._note_pseudonyms(config["data"]["init_args"]["loading"]["pseudonyms"])
        keep_config(folder.with_name(f"{folder.name}.yaml"), config, folder)
        if not Run.at(folder).finished:
            fit = PlannedFit(folder.name, config, row.fit or "")
            Plan(self.inputs.folder, [fit], {}).run_fits()
        return folder

    def cross_validate(self, row: PaperRow) -> RecordedCell:
        """Cross-validate the fit of a row, and return the accuracy after the last epoch, pooled over the folds.

        Raises:
            NarrlitError: if a file is missing, or a fit fails.
        """
        folder = self._folder(row, "cv")
        figures = crossval([], self.arguments(row), folder=folder).figures
        pooled = figures[figures["metric"] == "accuracy_last_epoch"].iloc[0].replace({np.nan: None})
        interval = None if pooled["low"] is None else [pooled["low"], pooled["high"]]
        return RecordedCell(
            system=str(folder),
            n=pooled["n"],
            accuracy=pooled["value"],
            interval=interval,
            standard_deviation=pooled["deviation"],
            flags={},
        )

    def _note_pseudonyms(self, settings: Mapping[str, object]) -> None:
        """Record the settings of pseudonymization that differ from the paper's."""
        paper = self.inputs.tables.pseudonyms
        if settings["backend"] == "none":
            return
        different = [name for name in paper if settings[name] != paper[name]]
        if different:
            ours = ", ".join(f"{name} {settings[name]}" for name in different)
            theirs = ", ".join(f"{name} {paper[name]}" for name in different)
            self.inputs.record.stand_ins["pseudonyms"] = f"{ours} for {theirs}"

    def arguments(self, row: PaperRow, *options: str) -> list[str]:
        """Return the options of a row's fit: those of the table, the encoder, `options`, and the user's.

        Raises:
            DataError: if a file is missing.
        """
        words = shlex.split(self.inputs.tables.fits[row.fit or ""])
        resolved = [self._with_files(word, row) for word in words]
        encoder = self.inputs.backbone(row).options
        return [*resolved, *encoder, *options, *self.inputs.record.options]

    def _with_files(self, word: str, row: PaperRow) -> str:
        """Replace names of files, such as `{dev}`, with paths."""
        return re.sub(r"{(\w+)}", lambda match: self._paths(match[1], row), word)

    def _paths(self, name: str, row: PaperRow) -> str:
        """Format the path of a file by its name in tables; several paths are a JSON list."""
        paths = [str(path) for path in self.inputs.files(name, row)]
        return paths[0] if len(paths) == 1 else json.dumps(paths)

    def _folder(self, row: PaperRow, ending: str) -> Path:
        """Return the folder of a row's run, which rows with the same fit, encoder and views share."""
        names = []
        for part in (row.fit, row.encoder, row.views):
            if part:
                names.append(Path(part).name)
        return self.inputs.folder / "-".join([*names, ending])
