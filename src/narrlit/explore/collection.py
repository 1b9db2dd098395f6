"""Collections of stories with their vectors: read from an index, or embedded from a file or folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.console import say, say_truncated
from narrlit.data.readers import Stories, parse_stories
from narrlit.data.rows import Row, RowFile
from narrlit.data.schema import FloatArray
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, reason
from narrlit.options import InputOptions, ModelOptions, StoryOptions
from narrlit.preprocessing.languages import detect_languages

if TYPE_CHECKING:
    import pandas as pd

RESERVED = ("id", "title", "text", "vector", "content_sha256", "rank", "similarity", "snippet")
"""Columns of an index, and of its results, that no metadata can be named as."""


@dataclass(frozen=True, eq=False)
class Collection:
    """N stories and their unit vectors.

    Attributes:
        frame: a row a story: id, title (may be empty), text, then the metadata columns.
        vectors: (N, D), row i for row i of the frame.
        about: source, model, dimension, long, share_read (of the words, 0 to 1) and languages (texts by ISO code).
        encoder: of the vectors.
    """

    frame: "pd.DataFrame"
    vectors: FloatArray
    about: dict[str, Any]
    encoder: StoryEncoder


def load_collection(source: str, use: ModelOptions, read: StoryOptions, inputs: InputOptions) -> Collection:
    """Load the stories of an index with the vectors there, or embed the stories of a file or folder.

    Args:
        source: an index folder, or stories as `narrlit embed` reads them.
        use: the model; minilm where none is named. An index has its own.
        read: what the model reads of a story; an index has its own settings.
        inputs: columns and lines of the stories.

    Raises:
        DataError: if the stories or the index can't be read.
        OptionError: for options that can't change an index.
    """
    from narrlit.explore.index import index_at, open_index

    if index_at(source):
        return open_index(source, use, read, inputs).collection()
    stories = inputs.read(source)
    frame = story_frame(stories)
    encoder = read.load(use.model or "minilm", use).fitted_for(list(stories))
    encoder.require_one_prompt("a collection")
    vectors = encoder.embed(list(stories), progress=True)
    say_truncated(encoder.coverage, encoder.facts.max_length, *encoder.facts.unit)
    about = {
        "source": source,
        "model": encoder.name,
        "dimension": encoder.dimension,
        "long": use.long,
        "share_read": encoder.coverage.share,
        "languages": languages(encoder, frame["text"].tolist()),
    }
    return Collection(frame, unit_vectors(vectors), about, encoder)


def stories_of(stories: "pd.DataFrame | Sequence[str]") -> Stories:
    """Read texts, or the rows of a table with a column of texts, as those of a file."""
    rows = list(stories.to_dict("records") if hasattr(stories, "to_dict") else stories)
    if not rows:
        raise DataError("there is no story: give at least one")
    file = RowFile(Path("stories"), [Row(number, row) for number, row in enumerate(rows, start=1)])
    return parse_stories(file, strict=True)


def story_frame(stories: Stories) -> "pd.DataFrame":
    """Tabulate stories: id, title (may be empty), text, then the metadata columns.

    Raises:
        DataError: for two equal ids, or the name of a column that is taken.
    """
    import pandas as pd

    own = zip(stories.story_ids, stories.titles, stories, stories.metadata, strict=True)
    rows = [
        # An empty cell is a missing value: CAST(year AS INT) fails on "", and unknown authors are not the same author.
        {
            "id": id,
            "title": title or "",
            "text": story.source_text,
            **{n: None if v == "" else v for n, v in data.items()},
        }
        for id, title, story, data in own
    ]
    names = dict.fromkeys(name for data in stories.metadata for name in data)
    wrong = [name for name in names if name in RESERVED or "." in name or name[:1] in ("", "_")]
    if wrong:
        raise DataError(f"{stories.report.path}: rename its column {wrong[0]!r}: an index needs or forbids this name")
    try:
        return plain(pd.DataFrame.from_records(rows))
    except UnicodeEncodeError as error:
        raise DataError(f"{stories.report.path}: a title or another column is not text ({reason(error)})") from error


def plain(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Put None for missing values of any kind."""
    return frame.astype(object).where(frame.notna(), None)


def languages(encoder: StoryEncoder, texts: Sequence[str]) -> dict[str, int]:
    """Count the texts of a sample by language; warn of languages that the encoder does not read."""
    from narrlit.models.registry import language_warning

    counts = detect_languages(texts)
    warning = language_warning(encoder.facts.vocabulary, counts)
    if warning:
        say(warning)
    return dict(counts)
