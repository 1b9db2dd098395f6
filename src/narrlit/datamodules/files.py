"""Stories from files: JSON Lines or CSV, in any of the layouts that the readers know."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.readers import Reading, file_digest, read_examples, read_stories, read_triples
from narrlit.data.records import Example, Triple
from narrlit.data.table import StoryTable
from narrlit.datamodules.base import Stage, StoryData
from narrlit.datamodules.loading import Loading

T = TypeVar("T")


@dataclass(frozen=True)
class Extra:
    """Stories beside the training rows proper, apart so that a system can be tried without them.

    Attributes:
        synthetic: files of training rows that a language model wrote; they train like the others.
        unlabelled: files of stories without labels, for transductive objectives alone.
    """

    synthetic: str | list[str] | None = None
    unlabelled: str | list[str] | None = None


class FileData(StoryData):
    """Training examples and judged triples from files."""

    def __init__(
        self,
        train: str | list[str] | None = None,
        validation: str | None = None,
        validation_labels: str | None = None,
        test: str | None = None,
        test_labels: str | None = None,
        predict: str | None = None,
        extra: Extra = Extra(),
        loading: Loading = Loading(),  # noqa: B008 (frozen)
    ) -> None:
        """Args name files.

        Args:
            train: examples, or labelled triples; several files are read one after the other.
            validation: labelled triples, judged after every epoch.
            validation_labels: their labels, where they stand apart.
            test: labelled triples, judged by `narrlit test` alone.
            test_labels: their labels, where they stand apart.
            predict: triples, with or without labels.
            extra: synthetic training rows and unlabelled stories.
            loading: batches.
        """
        super().__init__(loading)
        self.train = _listed(train)
        self.extra = extra
        self.unlabelled_given = bool(_listed(extra.unlabelled))
        self.files: dict[Stage, str | None] = {"validation": validation, "test": test, "predict": predict}
        self.labels: dict[Stage, str | None] = {"validation": validation_labels, "test": test_labels}

    def read_examples(self) -> list[Example]:
        """Every training file's examples."""
        files = [*self.train, *_listed(self.extra.synthetic)]
        readings = [read_examples(path, strict=self.loading.strict) for path in files]
        self.synthetic_rows = sum(len(reading.records) for reading in readings[len(self.train) :])
        self.provenance["train"] = {"files": [_provenance(reading) for reading in readings]}
        return [example for reading in readings for example in reading.records]

    def read_triples(self, stage: Stage) -> list[Triple]:
        """A stage's triples; those to predict must all be there, since answers keep the rows' order."""
        path = self.files[stage]
        if path is None:
            return []
        strict = self.loading.strict or stage == "predict"
        reading = read_triples(path, labels=self.labels.get(stage), strict=strict)
        self.provenance[stage] = {"files": [_provenance(reading)]}
        return reading.records

    def read_unlabelled(self) -> list[str]:
        """The unlabelled stories' texts, each once."""
        readings = [read_stories(path, strict=self.loading.strict) for path in _listed(self.extra.unlabelled)]
        if readings:
            self.provenance["unlabelled"] = {"files": [_provenance(reading) for reading in readings]}
        return StoryTable(story.text for reading in readings for story in reading.records).texts


def _listed(files: str | list[str] | None) -> list[str]:
    return [files] if isinstance(files, str) else list(files or [])


def _provenance(reading: Reading[T]) -> dict[str, Any]:
    rank_zero_info(reading.summary())
    return {
        "path": str(Path(reading.path)),
        "sha256": file_digest(reading.path),
        "rows": reading.total,
        "dropped": dict(reading.dropped),
    }
