"""Collections of stories in memory, with their embeddings."""

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories, parse_stories, read_stories
from narrlit.data.row_file import FileRow, RowFile, column_names
from narrlit.data.rows import Layout
from narrlit.data.schema import FloatArray, Floats, Story, normal_form
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import Passages, StoryEncoder, unit_vectors
from narrlit.errors import DataError, OptionError, did_you_mean, nearest, reason
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.corrections import centered
from narrlit.measures.matching import PassageVectors
from narrlit.measures.names import DEFAULT_MEASURE, READ_PASSAGES, MeasureName, check_measure
from narrlit.measures.representations import Contents
from narrlit.models.config import DEFAULT_MODEL
from narrlit.models.coverage import language_warning
from narrlit.preprocessing.languages import detect_languages

HIDDEN = ("vector", "passages", "passage_texts", "content_sha256")
"""Columns of an index that are not shown."""
RESERVED = ("id", "title", "text", *HIDDEN, "rank", "similarity", "snippet")
"""Reserved column names: those of an index and of its results."""


@dataclass(frozen=True, eq=False)
class Collection:
    """N stories with metadata, unit embeddings and the encoder that computed them.

    Attributes:
        frame: one row per story: id, title (may be empty), text, then the metadata columns.
        vectors: (N, D) embeddings; row i belongs to row i of the frame.
        encoder: encoder of the embeddings.
        about: source, model, dimension, long, share_read (share of words read, 0 to 1) and languages (number of texts
            by ISO code).
        measure: measure of similarity: `passages`, `fused`, `csls`, `centered`, `cosine` or `lexical`.

    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> len(tales), tales.vectors.shape, tales["2"].text
    (3, (3, 384), 'A diver seeks a pearl.')
    """

    frame: pd.DataFrame
    vectors: FloatArray
    encoder: StoryEncoder
    about: dict[str, Any]
    measure: MeasureName = DEFAULT_MEASURE

    @classmethod
    def read(
        cls,
        source: str | Path,
        encoder: StoryEncoder | str | Path = DEFAULT_MODEL,
        *,
        measure: MeasureName | None = None,
        layout: Layout = Layout(),
        progress: bool = False,
    ) -> "Collection":
        """Read the stories of a file or folder and embed them.

        Args:
            source: a folder with one story per file, a table (CSV, TSV, Excel, Parquet, JSON Lines), a text file or a
                document.
            encoder: encoder from `narrlit.load`, or the name of a model.
            measure: measure of similarity; None: `passages`, or `csls` for a model that can't embed passages.
            layout: columns and lines of the stories.
            progress: print how files were read, and show a progress bar, on stderr.

        Raises:
            DataError: if the stories can't be read, or two have the same id.
            ModelError: if the model can't be loaded, or has separate prompts for anchors and candidates.
        """
        stories = read_stories(str(source), layout=layout)
        if progress:
            say(stories.report.summary())
        return cls.of(stories, encoder, measure=measure, source=str(source), progress=progress)

    @classmethod
    def of(
        cls,
        stories: Stories | pd.DataFrame | Sequence[str],
        encoder: StoryEncoder | str | Path = DEFAULT_MODEL,
        *,
        measure: MeasureName | None = None,
        source: str = "stories",
        progress: bool = False,
    ) -> "Collection":
        """Embed stories.

        Args:
            stories: texts, a DataFrame with a column text (and id, title, metadata), or the result of `read_stories`.
            encoder: encoder from `narrlit.load`, or the name of a model.
            measure: measure of similarity; None: `passages`, or `csls` for a model that can't embed passages.
            source: origin of the stories, for reports.
            progress: show a progress bar on stderr.

        Raises:
            DataError: if two stories have the same id.
            ModelError: if the model can't be loaded, or has separate prompts for anchors and candidates.
        """
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        frame, texts = story_frame(rows), list(rows)
        model = encoder if isinstance(encoder, StoryEncoder) else load(encoder)
        model = model.fitted_for(texts)
        model.require_one_prompt("a collection")
        chosen = measure_for(model, measure)
        vectors = model.embed(texts, progress=progress)
        if progress:
            say_truncated(model.coverage, model.facts.max_length, *model.facts.unit)
        about = {
            "source": source,
            "model": model.name,
            "dimension": model.dimension,
            "long": model.loading.long,
            "share_read": model.coverage.share,
            "languages": languages(model, frame["text"].tolist()),
        }
        return cls(frame, unit_vectors(vectors), model, about, chosen)

    @cached_property
    def passages(self) -> list[Passages]:
        """Passages of each story, which are embedded on first access, in half precision as in an index.

        Raises:
            ModelError: if the model can't embed single texts.
        """
        passages = []
        for story in self.encoder.passages(self.stories, progress=True):
            passages.append(Passages(story.texts, story.vectors.astype(np.float16).astype(np.float32)))
        return passages

    @cached_property
    def similarities(self) -> CollectionSimilarity:
        """Similarities of the stories by the measure of the collection."""
        return self.similarities_by(self.measure)

    def similarities_by(self, measure: MeasureName) -> CollectionSimilarity:
        """Fit another measure on the collection."""
        return CollectionSimilarity.of(measure, self.contents(measure), digests=self._digests)

    @cached_property
    def _digests(self) -> list[str]:
        """Digests of the stories, by which the references of a measure are chosen as in an index of these stories."""
        return content_digests(self.frame, self.stories)

    def compared_by(self, measure: MeasureName | None) -> "Collection":
        """Return the collection with another measure; None returns it unchanged.

        Raises:
            ModelError: if the measure needs passages, and the encoder can't embed them.
            OptionError: if there is no such measure.
        """
        if measure is None:
            return self
        return replace(self, measure=measure_for(self.encoder, measure))

    def contents(self, measure: MeasureName) -> Contents:
        """Return what a measure needs of the stories."""
        texts = self.frame["text"].tolist()
        if measure not in READ_PASSAGES:
            return Contents(self.vectors, texts)
        return Contents(self.vectors, texts, passage_vectors(self.passages))

    @property
    def stories(self) -> list[Story]:
        """The stories, with their ids."""
        return list(map(Story, self.frame["id"], self.frame["text"]))

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self.frame)

    def __getitem__(self, id: str) -> Story:
        """Return the story with an id.

        Raises:
            KeyError: if there is none.
        """
        rows = self.frame[self.frame["id"] == normal_form(id)]
        if rows.empty:
            raise KeyError(f"no story {id!r}{did_you_mean(id, self.frame['id'])}")
        row = rows.iloc[0]
        return Story(row["title"] or row["id"], row["text"])

    def table(self) -> pd.DataFrame:
        """Return a copy of the frame."""
        return self.frame.copy()

    def __repr__(self) -> str:
        return f"Collection({counted(len(self), 'story')} of {self.about['source']}, {self.encoder.name})"

    def _repr_html_(self) -> str:
        shown = self.frame.head().to_html(index=False)
        return f"<p>{escape(repr(self))}</p>{shown}"


def content_digests(frame: pd.DataFrame, stories: Sequence[Story]) -> list[str]:
    """Hash the content of N stories: id, title, text and metadata in the rows of a frame, and views."""
    digests = []
    for row, story in zip(frame.to_dict("records"), stories, strict=True):
        values = {name: value for name, value in row.items() if value is not None}
        content = json.dumps([values, story.views and story.views.texts], default=str)
        digests.append(hashlib.sha256(content.encode()).hexdigest())
    return digests


def measure_for(encoder: StoryEncoder, measure: MeasureName | None) -> MeasureName:
    """Choose a measure for an encoder: `passages`, or `csls` if it can't embed passages.

    Raises:
        ModelError: if the requested measure needs passages, and the encoder can't embed them.
        OptionError: if there is no such measure.
    """
    if measure is None:
        return DEFAULT_MEASURE if encoder.facts.reads == "text" else "csls"
    if check_measure(measure) in READ_PASSAGES:
        encoder.require_text()
    return measure


def stories_of(stories: pd.DataFrame | Sequence[str]) -> Stories:
    """Read texts, or the rows of a DataFrame with a column of texts, like the rows of a file."""
    values = _records(stories) if isinstance(stories, pd.DataFrame) else list(stories)
    if not values:
        raise DataError("no_stories")
    rows = [FileRow(number, value) for number, value in enumerate(values, start=1)]
    return parse_stories(RowFile(Path("stories"), rows), strict=True)


def _records(frame: pd.DataFrame) -> list[dict[Hashable, object]]:
    """Return the rows of a table, with None for missing values.

    Whole numbers with gaps, of which pandas makes floats, become integers again.
    """
    integers = {}
    for name, column in frame.select_dtypes("float").items():
        numbers = column.dropna()
        has_gaps = 0 < len(numbers) < len(column)
        if has_gaps and (numbers % 1 == 0).all() and numbers.abs().max() <= 2**53:
            integers[name] = "Int64"
    records: list[dict[Hashable, object]] = plain(frame.astype(integers)).to_dict("records")
    return records


def metadata_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the metadata columns of a collection's frame: those after id, title and text."""
    return list(frame.columns[3:])


def column_values(collection: Collection, column: str, option: str) -> list[object]:
    """Return the value (N,) of each story in a metadata column; None for an empty cell.

    Args:
        collection: N stories.
        column: name of the column.
        option: option that has the name, for messages.

    Raises:
        OptionError: if there is no such column.
    """
    columns = metadata_columns(collection.frame)
    column = normal_form(column)
    if column not in columns:
        raise OptionError(
            "unknown_column",
            option=option,
            column=column,
            source=collection.about["source"],
            near=nearest(column, columns),
            known=columns or "none",
        )
    return list(collection.frame[column])


def rows_by_id(frame: pd.DataFrame) -> dict[str, int]:
    """Return the row of each story, by its id."""
    return dict(zip(frame["id"], range(len(frame)), strict=True))


def texts_by_id(frame: pd.DataFrame) -> dict[str, str]:
    """Return the text of each story, by its id."""
    return dict(zip(frame["id"], frame["text"], strict=True))


def passage_vectors(stories: Sequence[Passages]) -> PassageVectors:
    """Join the vectors of the passages of N stories."""
    return PassageVectors.of([story.vectors for story in stories])


def centered_passages(passages: PassageVectors, mean: Floats) -> PassageVectors:
    """Subtract a mean (D,) from the vectors of passages, in single precision, and normalize the results."""
    return PassageVectors(centered(passages.vectors.astype(np.float32), mean), passages.starts)


def story_frame(stories: Stories) -> pd.DataFrame:
    """Tabulate stories: id, title (may be empty), text, then the metadata columns.

    Raises:
        DataError: if two ids are equal, or a column has a reserved name.
    """
    rows = []
    for id, title, story, metadata in zip(stories.story_ids, stories.titles, stories, stories.metadata, strict=True):
        row: dict[str, object] = {"id": id, "title": title or "", "text": story.source_text}
        for name, value in metadata.items():
            # An empty cell is a missing value: CAST(year AS INT) fails on "", and unknown authors are not the same one.
            row[name] = None if value == "" else value
        rows.append(row)
    for name in column_names(stories.metadata):
        if _is_reserved(name):
            raise DataError("reserved_column", path=stories.report.path, column=name)
    for row in rows:
        _require_text(row, stories.report.path)
    return plain(pd.DataFrame(rows, dtype=object))  # otherwise integers with gaps become floats


def _is_reserved(name: str) -> bool:
    """Return True for the name of a column that an index reserves or forbids."""
    return name in RESERVED or "." in name or name[:1] in ("", "_")


def _require_text(row: Mapping[str, object], path: Path) -> None:
    """Raise DataError for text that is not Unicode, which pandas 3 refuses and earlier releases pass to the index."""
    for name, value in row.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise DataError("column_without_text", path=path, column=name, reason=reason(error)) from error


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace missing values of any kind with None."""
    return frame.astype(object).where(frame.notna(), None)


def languages(encoder: StoryEncoder, texts: Sequence[str]) -> dict[str, int]:
    """Count the texts of a sample by language; warn of languages that the encoder does not support."""
    counts = detect_languages(texts)
    warning = language_warning(encoder.facts.vocabulary, counts)
    if warning:
        say(warning)
    return dict(counts)
