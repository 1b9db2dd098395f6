"""Writing of an index: new and changed stories are embedded and committed, a second or two of work at a time."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from narrlit.console import counted, say
from narrlit.data.readers import Stories
from narrlit.data.schema import Story
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, NarrlitError, on_interrupt
from narrlit.explore.collection import languages, stories_of, story_frame
from narrlit.explore.index_snapshot import DIGEST
from narrlit.explore.index_storage import EmbeddedStories, IndexStorage, content_digests

SECONDS_PER_SPAN = 1.5
"""Time to embed and commit a span, which a killed process loses at most."""
FEWEST_WORDS = 200
"""Words of the first span, and of the shortest; a longer story is a span by itself."""


@dataclass(frozen=True, eq=False)
class NewStories:
    """Stories to index.

    Attributes:
        frame: their columns, and digests of their content.
        rows: as they were read.
        attached: with their views, where the model reads such.
    """

    frame: pd.DataFrame
    rows: Stories
    attached: Sequence[Story]

    @classmethod
    def of(cls, stories: Stories | pd.DataFrame | Sequence[str], encoder: StoryEncoder) -> "NewStories":
        """Tabulate stories; a story that lacks views which the model reads is refused."""
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        frame = story_frame(rows)
        attached = list(rows) if encoder.texts.views is None else encoder.prepare(list(rows))
        frame[DIGEST] = content_digests(frame, attached)
        return cls(frame, rows, attached)

    def __len__(self) -> int:
        return len(self.rows)

    def fresh(self, digests: Mapping[str, str], path: Path) -> list[int]:
        """Return the positions of stories that are new to an index, or changed.

        Args:
            digests: of the stories that are there, by id.
            path: the index, for messages.

        Raises:
            DataError: if the stories have no ids, and their numbers are ids of other stories.
        """
        known = self.frame["id"].map(digests)
        fresh: list[int] = np.flatnonzero(self.frame[DIGEST] != known).tolist()
        if not any(self.rows.ids) and known.notna().any() and len(fresh) == len(self):
            raise DataError(
                f"{self.rows.report.path} has no column of ids, and its numbers from 1 are ids of other stories in "
                f"{path}: give the stories ids, or make a new index"
            )
        return fresh

    def words(self, positions: Sequence[int]) -> list[int]:
        """Count the words of some of the stories."""
        return [len(self.attached[position].text.split()) for position in positions]

    def prepared(self, positions: Sequence[int], encoder: StoryEncoder) -> list[Story]:
        """Prepare some of the stories for the model: finding names takes long, and is done for few at a time."""
        stories = [self.attached[position] for position in positions]
        return stories if encoder.texts.views is not None else encoder.prepare(stories)


@dataclass(frozen=True)
class IndexingProgress:
    """Stories that are in the index, those that were there unchanged included, and their words."""

    stories: int
    words: int


OnProgress = Callable[[IndexingProgress], None]


def add_stories(
    storage: IndexStorage,
    encoder: StoryEncoder,
    new: NewStories,
    progress: bool,
    on_progress: OnProgress = lambda _: None,
) -> None:
    """Embed and commit the new and changed ones of some stories.

    Args:
        storage: the index.
        encoder: the one that it was made with.
        new: the stories.
        progress: print what is done, with a progress bar in words, on stderr.
        on_progress: is called at the beginning and whenever stories are committed.
    """
    known = storage.digests()
    fresh = new.fresh(known, storage.path)
    if progress and len(fresh) < len(new):
        say(f"{storage.path}: {len(new) - len(fresh):,} of {counted(len(new), 'story')} are there unchanged")
    sample = languages(encoder, new.frame["text"].tolist())
    if len(new) >= len(known):  # a few more stories are no sample of all
        storage.set_languages(sample)
    columns = storage.columns(new.frame)
    is_known = new.frame["id"].isin(known).to_numpy()
    words = new.words(fresh)
    words_there = sum(new.words(range(len(new)))) - sum(words)
    on_progress(IndexingProgress(len(new) - len(fresh), words_there))
    start, size = 0, FEWEST_WORDS
    bar = tqdm(
        total=sum(words), desc="indexing", unit="word", unit_scale=True, miniters=1, disable=not progress, delay=0.5
    )
    with bar, on_interrupt("what is committed is kept: repeat the command to resume"):
        try:
            while start < len(fresh):
                end = span_end(words, start, size)
                span = fresh[start:end]
                began = time.monotonic()
                embedded = embed_stories(encoder, new.prepared(span, encoder))
                storage.commit(columns.take(span), embedded, replaces=bool(is_known[span].any()))
                done = sum(words[start:end])
                bar.update(done)
                on_progress(IndexingProgress(len(new) - len(fresh) + end, words_there + sum(words[:end])))
                start, size = end, next_size(size, done, time.monotonic() - began)
        except NarrlitError:
            if not len(storage):  # its settings would refuse the remedy, such as long windows
                shutil.rmtree(storage.path)
            raise
    storage.finish(changed=len(fresh) > 0)


def embed_stories(encoder: StoryEncoder, stories: Sequence[Story]) -> EmbeddedStories:
    """Embed stories that are prepared, and their passages."""
    vectors, coverage = encoder.read(stories, ["story"] * len(stories))
    passages = encoder.passages_prepared(stories) if encoder.facts.reads == "text" else None
    return EmbeddedStories(unit_vectors(vectors), passages, coverage)


def span_end(words: Sequence[int], start: int, size: int) -> int:
    """Return where a span of stories ends that has a number of words at most, or one story.

    >>> span_end([5, 5, 5, 5], 1, size=10), span_end([50, 5], 0, size=10)
    (3, 1)
    """
    end, total = start + 1, words[start]
    while end < len(words) and total + words[end] <= size:
        total += words[end]
        end += 1
    return end


def next_size(size: int, done: int, seconds: float) -> int:
    """Choose the words of the next span, which is to take as long as a span should, growing in steps.

    Args:
        size: most words of the last span.
        done: words that it had.
        seconds: time that it took.

    >>> next_size(1000, 900, 0.1), next_size(8000, 8000, 3.0), next_size(2000, 1000, 10.0)
    (4000, 4000, 200)
    """
    wanted = round(done * SECONDS_PER_SPAN / max(seconds, 1e-3))
    return max(FEWEST_WORDS, min(4 * size, wanted))
