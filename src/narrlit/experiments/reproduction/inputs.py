"""Files and encoders for the rows of a paper's tables, and stand-ins for missing ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from narrlit.data.readers import read_examples, read_triples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples, Triples
from narrlit.data.writers import write_examples
from narrlit.encoding.loading import load
from narrlit.encoding.mining import mine_negatives
from narrlit.encoding.options import CACHE
from narrlit.errors import DataError
from narrlit.experiments.reproduction.backbones import Backbone, model_name
from narrlit.experiments.reproduction.record import ReproductionRecord
from narrlit.experiments.reproduction.tables import PaperRow, PaperTables

FILES = {
    "dev": "dev/dev_track_a.jsonl",
    "sample": "sample/sample_track_a.jsonl",
    "synthetic": "synthetic/*classification*.jsonl",
    "test_a": "test/test_track_a.jsonl",
    "test_b": "test/test_track_b.jsonl",
    "labels_a": "test/labels/*track_a*",
    "labels_b": "test/labels/*track_b*",
    "views": "views/{}.jsonl",
    "negatives": "negatives/*.jsonl",
    "augmented": "augmented/*.jsonl",
}
"""Patterns of files in the data folder, by their names in tables."""
COMMANDS = {"views": "generate views", "negatives": "generate negatives", "augmented": "augment backtranslate"}
"""Commands of narrlit that write files which the official data do not contain."""
OFFICIAL_SYNTHETIC = 1900
"""Number of synthetic triples in the official data, on which the papers' systems are trained."""
TRANSLATOR = "Google Translate"
"""Translator of Mendel292's back-translations; files whose names contain "google" are taken as its own."""
EXTRACTOR = "o3-mini"
"""Language model that extracted the views of rows without an extractor; other views may replace them."""


def find_files(folder: Path, name: str, part: str = "") -> list[Path]:
    """Find files of a data folder by their name in tables.

    Args:
        folder: folder of the data.
        name: a key of `FILES`.
        part: part of the file name.

    Raises:
        DataError: if there are none; the message says how to get them.
    """
    pattern = FILES[name].format(f"*{part}*" if part else "*")
    paths = sorted(folder.glob(pattern))
    if not paths:
        if name in ("labels_a", "labels_b"):
            raise DataError("labels_not_given")
        if name in COMMANDS:
            raise DataError("no_generated_file", path=folder / pattern, command=COMMANDS[name])
        raise DataError("no_official_file", path=folder / pattern)
    return paths


@dataclass(frozen=True)
class ReproductionInputs:
    """Files and encoders of a reproduction; digests and stand-ins are added to its record.

    Attributes:
        tables: tables of the paper.
        data: folder with the layout of the task's repository.
        labels: files of test labels, by `labels_a` and `labels_b`; None: those in the data folder.
        record: record of the reproduction.
        folder: folder of the record and the runs.
    """

    tables: PaperTables
    data: Path
    labels: Mapping[str, Path | None]
    record: ReproductionRecord
    folder: Path

    def backbone(self, row: PaperRow) -> Backbone:
        """Return the encoder of a row."""
        return Backbone.of(row.encoder, self.tables.encoder, self.record.backbones)

    def model(self, row: PaperRow) -> str:
        """Return the name of the system that a row without a fit evaluates."""
        return (row.evaluate or "").format(encoder=self.backbone(row).model)

    def dev(self) -> Path:
        """Return the file of the development triples.

        Raises:
            DataError: if it is missing.
        """
        return self.files("dev")[0]

    def views(self, row: PaperRow) -> list[Path]:
        """Return the views that a row reads.

        Raises:
            DataError: if they are missing, and there is no stand-in.
        """
        return self._checked(self._views(row.views or EXTRACTOR))

    def files(self, name: str, row: PaperRow | None = None) -> list[Path]:
        """Return files by their name in tables, or their stand-ins.

        Args:
            name: a key of `FILES`.
            row: row that reads the files; needed for views and negatives.

        Raises:
            DataError: if they are missing, and there is no stand-in.
            OptionError: if a file has changed since it was recorded.
        """
        if row is not None and name == "views":
            return self.views(row)
        try:
            paths = self._checked(self._own_files(name))
        except DataError:
            if name == "augmented":
                self.record.stand_ins[name] = "dev triples without back-translations"
                return self.files("dev")
            if row is not None and name == "negatives":
                return self._checked([self._mined(self.backbone(row).model)])
            raise
        if name == "synthetic":
            count = sum(len(read_examples(path, stories=StoryTable())) for path in paths)
            if count < OFFICIAL_SYNTHETIC:
                self.record.stand_ins[name] = f"{count:,} of the {OFFICIAL_SYNTHETIC:,} official triples"
        if name == "augmented" and not all("google" in path.name.lower() for path in paths):
            names = ", ".join(path.name for path in paths)
            self.record.stand_ins[name] = f"{names} for back-translations by {TRANSLATOR}"
        return paths

    def triples(self, column: str) -> Triples:
        """Read the labeled triples of a column.

        Raises:
            DataError: if the triples or their labels are missing.
        """
        split, track = column.lower().split()
        if split == "dev":
            return read_triples(self.dev())
        return self._labeled(f"labels_{track}")

    def _own_files(self, name: str) -> list[Path]:
        """Return the user's files of labels, or files of the data folder."""
        labels = self.labels.get(name)
        return find_files(self.data, name) if labels is None else [labels]

    def _labeled(self, name: str) -> Triples:
        """Read labeled test triples; those of Track B are in the file of labels."""
        [labels, *_] = self.files(name)
        triples = read_triples(labels) if name == "labels_b" else read_triples(self.files("test_a")[0], labels)
        if (triples.labels < 0).any():
            raise DataError("empty_labels", labels=labels, n=int((triples.labels < 0).sum()))
        return triples

    def _views(self, extractor: str) -> list[Path]:
        """Find the views of an extractor; any other views replace those of `EXTRACTOR`."""
        try:
            return find_files(self.data, "views", extractor)
        except DataError:
            if extractor != EXTRACTOR:
                raise
        paths = find_files(self.data, "views")
        names = ", ".join(path.name for path in paths)
        self.record.stand_ins["views"] = f"{names} for those extracted by {EXTRACTOR}"
        return paths

    def _mined(self, model: str) -> Path:
        """Mine nine negatives for each synthetic triple, unless this has been done."""
        path = self.folder / "negatives.jsonl"
        if not path.is_file():
            stories = StoryTable()
            rows: list[TrainingExample] = []
            for source in self.files("synthetic"):
                rows += read_examples(source, stories=stories)
            encoder = load(model, long="truncate", cache=CACHE)
            write_examples(path, mine_negatives(encoder, TrainingExamples(stories, rows), 9).examples)
        self.record.stand_ins["negatives"] = f"mined by {model_name(model)}, for those that a language model generated"
        return path

    def _checked(self, paths: list[Path]) -> list[Path]:
        """Record the digests of files, or check them."""
        for path in paths:
            self.record.check_file(path, self.folder)
        return paths
