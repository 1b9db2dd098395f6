"""Fits of the rows of a paper's tables: settings, runs and cross-validations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from narrlit.configuration import FitSettings, read_configs
from narrlit.experiments.crossval import crossval
from narrlit.experiments.fitting import parse_experiment_fit
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
        settings = {"data.validation": self.inputs.dev(), "seed_everything": seed}
        config, _ = parse_experiment_fit(self.layers(row, settings), PURPOSE)
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
        figures = crossval(self.layers(row), out=folder).figures
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

    def layers(self, row: PaperRow, *settings: FitSettings) -> list[FitSettings]:
        """Return the settings of a row's fit: those of the table, the encoder, `settings`, and the user's.

        Raises:
            DataError: if a file is missing.
        """
        fit = self.inputs.tables.fits[row.fit or ""]
        files = {name: self._paths(file, row) for name, file in fit.files.items()}
        encoder = self.inputs.backbone(row).configs
        return read_configs([*fit.configs, files, *encoder, *settings, *self.inputs.record.options])

    def _paths(self, name: str, row: PaperRow) -> str | list[str]:
        """Return the path of a file by its name in tables, or a list of several."""
        paths = [str(path) for path in self.inputs.files(name, row)]
        return paths[0] if len(paths) == 1 else paths

    def _folder(self, row: PaperRow, ending: str) -> Path:
        """Return the folder of a row's run, which rows with the same fit, encoder and views share."""
        names = []
        for part in (row.fit, row.encoder, row.views):
            if part:
                names.append(Path(part).name)
        return self.inputs.folder / "-".join([*names, ending])
