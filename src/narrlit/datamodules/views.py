"""Examples and triples from files, every story joined with its theme, course of action and outcome."""

from collections.abc import Iterator

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.records import Example, Triple
from narrlit.data.views import Joined, ViewBook, ViewFiles
from narrlit.datamodules.base import Stage
from narrlit.datamodules.files import Extra, FileData
from narrlit.datamodules.loading import Loading


class ViewData(FileData):
    """Data of stories with views, as objective MultiView reads them.

    For every anchor of a batch there are its whole text, its own views, and the views of another story. Candidates of
    training rows may be without views, since nothing trains on them.
    """

    joins_views = True

    def __init__(
        self,
        train: str | list[str] | None = None,
        validation: str | None = None,
        validation_labels: str | None = None,
        test: str | None = None,
        test_labels: str | None = None,
        predict: str | None = None,
        views: ViewFiles = ViewFiles(),  # noqa: B008 (frozen)
        loading: Loading = Loading(),  # noqa: B008 (frozen)
    ) -> None:
        """Args name files.

        Args:
            train: examples, or labelled triples, whose anchors train; several files are read one after the other.
            validation: labelled triples, judged after every epoch.
            validation_labels: their labels, where they stand apart.
            test: labelled triples, judged by `narrlit test` alone.
            test_labels: their labels, where they stand apart.
            predict: triples, with or without labels.
            views: of all these stories.
            loading: batches.
        """
        super().__init__(train, validation, validation_labels, test, test_labels, predict, Extra(), loading)
        self.views = views
        self._book: ViewBook | None = None

    def read_examples(self) -> list[Example]:
        """Every training file's examples; their anchors are joined with their views, candidates where they have any."""
        examples = super().read_examples()
        if not examples:
            return []
        self.book.joined([example.anchor for example in examples], "training anchors")
        texts = [text for example in examples for text in example.texts]
        found = self._noted("train", self.book.joined(texts, "training stories", partly=True))
        return [example.with_texts([next(found) for _ in example.texts]) for example in examples]

    def read_triples(self, stage: Stage) -> list[Triple]:
        """A stage's triples, their stories joined with their views."""
        triples = super().read_triples(stage)
        if not triples:
            return []
        texts = [text for triple in triples for text in triple.texts]
        found = self._noted(stage, self.book.joined(texts, f"{stage} triples"))
        return [triple.with_texts([next(found) for _ in triple.texts]) for triple in triples]

    @property
    def book(self) -> ViewBook:
        """The views, read at the first need."""
        if self._book is None:
            self._book = ViewBook(self.views, self.loading.strict)
            rank_zero_info(f"views: {self._book.summary()}")
        return self._book

    def _noted(self, stage: str, joined: Joined) -> Iterator[str]:
        """The joined texts, one after the other; what was joined is logged and noted."""
        rank_zero_info(joined.summary)
        self.provenance[stage]["views"] = joined.provenance
        return iter(joined.texts)
