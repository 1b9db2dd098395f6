"""Collections of stories with their vectors: read from an index, or embedded from a file or folder."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrlit.console import say_truncated
from narrlit.data.schema import FloatArray
from narrlit.errors import OptionError
from narrlit.explore.index import Index, index_at, languages, story_frame, unit_vectors
from narrlit.options import InputOptions, ModelOptions, StoryOptions

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Collection:
    """N stories and their unit vectors.

    Attributes:
        frame: a row a story: id, title (may be empty), text, then the metadata columns.
        vectors: (N, D), row i for row i of the frame.
        about: source, model, dimension, long, share_read (of the words, 0 to 1) and languages (texts by ISO code).
    """

    frame: "pd.DataFrame"
    vectors: FloatArray
    about: dict[str, Any]


def load_collection(source: str, use: ModelOptions, read: StoryOptions, inputs: InputOptions) -> Collection:
    """Load the stories of an index with the vectors there, or embed the stories of a file or folder.

    Args:
        source: an index folder, or stories as `narrlit embed` reads them.
        use: the model; minilm where none is named. An index has its own.
        read: what the model reads of a story; an index has its own settings.
        inputs: columns and lines of the stories.

    Raises:
        DataError: if the stories or the index can't be read.
        OptionError: if the options contradict the index.
    """
    if index_at(source):
        if read != StoryOptions():
            raise OptionError(f"{source} is an index with settings of its own: leave out options of reading stories")
        return Index(source, model=use.model, device=use.device, trust_remote_code=use.trust_remote_code).collection()
    from narrlit.models.embedding import embed

    stories = inputs.read(source)
    frame, prepared = story_frame(stories), read.stories(stories)
    use = ModelOptions(**{**vars(use), "model": use.model or "minilm"})
    encoder = read.encoder(use)
    encoder.require_one_prompt("a collection")
    vectors, coverage = embed(encoder, prepared)
    say_truncated(coverage, encoder.max_length, *encoder.unit)
    about = {
        "source": source,
        "model": use.model,
        "dimension": encoder.dimension,
        "long": use.long,
        "share_read": coverage.share,
        "languages": languages(encoder, frame["text"].tolist()),
    }
    return Collection(frame, unit_vectors(vectors), about)
