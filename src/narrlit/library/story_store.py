"""Stories with their vectors and passages, from which collections read: in memory, or in an index at one version.

Letters in shapes: N stories, R rows of some of them, D dimension.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray, Floats, IntArray, Story, normal_form
from narrlit.encoding.story_encoder import Passages, StoryEncoder
from narrlit.library.arrow_columns import column_arrays
from narrlit.library.story_frame import passage_vectors
from narrlit.measures.matching import PassageVectors
from narrlit.measures.names import READ_PASSAGES, MeasureName
from narrlit.measures.representations import Contents
from narrlit.optional import require

READ_WORDS = ("fused", "lexical")
"""Measures that read the texts of stories."""


class StoryStore(ABC):
    """N stories, identified by their rows.

    Attributes:
        ids: (N,) ids of the stories.
        digests: (N,) digests of their contents.
        path: folder in which fits of measures are kept; None: they are kept nowhere.
    """

    ids: Sequence[str]
    digests: Sequence[str]
    path: Path | None

    @property
    @abstractmethod
    def table(self) -> Any:
        """LanceDB table of the stories, for conditions on their columns."""

    @property
    @abstractmethod
    def vectors(self) -> FloatArray:
        """Unit vectors of all stories, (N, D)."""

    @property
    @abstractmethod
    def has_passages(self) -> bool:
        """True if the model embeds passages."""

    @abstractmethod
    def frame(self, rows: IntArray | None = None) -> pd.DataFrame:
        """Return id, title, text and metadata of the stories in `rows` (R,); None: of all stories."""

    @abstractmethod
    def passages(self, rows: IntArray | None = None) -> list[Passages]:
        """Return the passages of the stories in `rows` (R,); None: of all stories."""

    @property
    def has_vector_index(self) -> bool:
        """True if the nearest stories are found by an index of quantized vectors, `by_vector`."""
        return False

    @property
    def has_word_index(self) -> bool:
        """True if stories are found by an index of words, `by_words`."""
        return False

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self.ids)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each story, by the `normal_form` of its id, in which indexes of earlier releases do not have ids."""
        return {normal_form(id): row for row, id in enumerate(self.ids)}

    def vectors_at(self, rows: IntArray) -> FloatArray:
        """Return the vectors (R, D) of some stories."""
        return self.vectors[rows]

    def texts(self, rows: IntArray | None = None) -> list[str]:
        """Return the texts of the stories in `rows` (R,); None: of all stories."""
        texts: list[str] = self.frame(rows)["text"].tolist()
        return texts

    def passage_vectors(self, rows: IntArray | None = None) -> PassageVectors:
        """Return the passage vectors of the stories in `rows` (R,); None: of all stories."""
        return passage_vectors(self.passages(rows))

    def matching(self, where: str) -> NDArray[np.bool_]:
        """Return a mask (N,) of the stories that satisfy an SQL condition."""
        ids = self.table.search().where(where).select(["id"]).limit(None).to_arrow()["id"].to_pylist()
        is_matching = np.zeros(len(self), dtype=bool)
        is_matching[[self.row_of[normal_form(id)] for id in ids]] = True
        return is_matching

    def by_words(self, text: str, limit: int, where: str | None = None) -> IntArray:
        """Find the rows of the stories that share most words with a text, best first, by an index of words."""
        raise NotImplementedError

    def by_vector(self, vector: Floats, limit: int, where: str | None = None) -> IntArray:
        """Find the rows of the stories with the highest cosines to a vector (D,), by an index of vectors."""
        raise NotImplementedError

    def contents(self, measure: MeasureName, rows: IntArray | None = None) -> Contents:
        """Return what a measure reads of the stories in `rows` (R,); None: of all stories."""
        vectors = self.vectors if rows is None else self.vectors_at(rows)
        texts = self.texts(rows) if measure in READ_WORDS else [""] * len(vectors)
        return Contents(vectors, texts, self.passage_vectors(rows) if measure in READ_PASSAGES else None)


class StoriesInMemory(StoryStore):
    """N stories in memory, whose passages are embedded when they are first read."""

    path = None

    def __init__(self, frame: pd.DataFrame, digests: Sequence[str], vectors: FloatArray, encoder: StoryEncoder) -> None:
        """Take the rows of N stories, digests of their contents, their unit vectors (N, D), and their encoder."""
        self.ids = frame["id"].tolist()
        self.digests = digests
        self._frame, self._vectors, self._encoder = frame, vectors, encoder

    @cached_property
    def table(self) -> Any:
        """LanceDB table in memory."""
        pa, lancedb = require("pyarrow", "explore"), require("lancedb", "explore")
        return lancedb.connect("memory://").create_table("stories", pa.table(column_arrays(self._frame)))

    @property
    def vectors(self) -> FloatArray:
        """Unit vectors of all stories, (N, D)."""
        return self._vectors

    @property
    def has_passages(self) -> bool:
        """True if the model embeds passages."""
        return self._encoder.facts.reads == "text"

    def frame(self, rows: IntArray | None = None) -> pd.DataFrame:
        """Return id, title, text and metadata of the stories in `rows` (R,); None: of all stories."""
        return self._frame if rows is None else self._frame.iloc[rows].reset_index(drop=True)

    def passages(self, rows: IntArray | None = None) -> list[Passages]:
        """Return the passages of the stories in `rows` (R,), in half precision as in an index; None: of all stories."""
        return self._passages if rows is None else [self._passages[row] for row in rows.tolist()]

    @cached_property
    def _passages(self) -> list[Passages]:
        stories = list(map(Story, self._frame["id"], self._frame["text"]))
        passages = []
        for story in self._encoder.passages(stories, progress=True):
            passages.append(Passages(story.texts, story.vectors.astype(np.float16).astype(np.float32)))
        return passages
