"""Updates of an index: new and changed stories are embedded and committed in spans of a second or two."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from narrlit.console import counted, say
from narrlit.data.readers import Stories
from narrlit.data.schema import Story, normal_form
from narrlit.embedding_cache.pacing import next_size
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, NarrlitError, on_interrupt
from narrlit.library.collection import languages
from narrlit.library.index_storage import EmbeddedStories, IndexStorage
from narrlit.library.story_frame import DIGEST, content_digests, stories_of, story_frame
from narrlit.preprocessing.words import num_words

SECONDS_PER_SPAN = 1.5
"""Seconds to embed and commit a span; a process that is killed loses at most one span."""
LATEST = 5
"""Titles that are reported with the progress of an index."""
FEWEST_WORDS = 200
"""Minimum number of words in a span, and size of the first one; a longer story forms its own span."""


@dataclass(frozen=True, eq=False)
class NewStories:
    """Stories to index.

    Attributes:
        frame: their columns, and digests of their content.
        rows: the stories as they were read.
        attached: the stories with their views, if the model reads views.
    """

    frame: pd.DataFrame
    rows: Stories
    attached: Sequence[Story]

    @classmethod
    def of(cls, stories: Stories | pd.DataFrame | Sequence[str], encoder: StoryEncoder) -> "NewStories":
        """Tabulate stories.

        Raises:
            DataError: if the model reads views and a story has none.
        """
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        frame = story_frame(rows)
        attached = list(rows) if encoder.texts.views is None else encoder.prepare(list(rows))
        frame[DIGEST] = content_digests(frame, attached)
        return cls(frame, rows, attached)

    def __len__(self) -> int:
        return len(self.rows)

    def fresh(self, digests: Mapping[str, str]) -> list[int]:
        """Return the positions of stories that are new to an index with these digests by id, or changed."""
        fresh: list[int] = np.flatnonzero(self.frame[DIGEST] != self.frame["id"].map(digests)).tolist()
        return fresh

    def require_ids(self, digests: Mapping[str, str], fresh: Sequence[int], path: Path) -> None:
        """Refuse stories without ids whose numbers are ids of other stories in an index.

        Args:
            digests: digests of the stories in the index, by id.
            fresh: positions of the stories that are new to it, or changed.
            path: the index, for messages.

        Raises:
            DataError: if all numbers that the index knows are of other stories.
        """
        if not any(self.rows.ids) and len(fresh) == len(self) and self.frame["id"].isin(digests).any():
            raise DataError("no_ids", path=self.rows.report.path, index=path)

    def words(self, positions: Sequence[int]) -> list[int]:
        """Count the words of some of the stories."""
        return [num_words(self.attached[position].text) for position in positions]

    def prepared(self, positions: Sequence[int], encoder: StoryEncoder) -> list[Story]:
        """Prepare some of the stories for the model; only a few at a time, because finding names takes long."""
        stories = [self.attached[position] for position in positions]
        return stories if encoder.texts.views is not None else encoder.prepare(stories)


@dataclass(frozen=True)
class IndexingProgress:
    """Stories that are in the index, those that were there unchanged included.

    Attributes:
        stories: number of stories.
        words: number of their words.
        latest: titles, or ids, of some that were committed last.
    """

    stories: int
    words: int
    latest: Sequence[str] = ()


OnProgress = Callable[[IndexingProgress], None]


class Changes(NamedTuple):
    """Numbers of stories that an index got, replaced, lost and kept as they were."""

    added: int
    replaced: int
    removed: int
    unchanged: int

    def __str__(self) -> str:
        """Format the numbers as one line."""
        return ", ".join(f"{number:,} {name}" for name, number in self._asdict().items())


def commit_stories(
    storage: IndexStorage,
    encoder: StoryEncoder,
    new: NewStories,
    *,
    removes_others: bool = False,
    progress: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> Changes:
    """Embed and commit new and changed stories, then remove others if they are to be removed.

    Args:
        storage: the index.
        encoder: encoder with which the index was made.
        new: the stories.
        removes_others: remove the stories of the index that are not among `new`.
        progress: print messages, and show a progress bar in words, on stderr.
        on_progress: function to call at the beginning and whenever stories are committed.
    """
    known = storage.digests()
    stored_ids = {normal_form(id): id for id in known}  # indexes of earlier releases may have others
    new.frame["id"] = [stored_ids.get(id, id) for id in new.frame["id"]]
    fresh = new.fresh(known)
    if not removes_others:
        new.require_ids(known, fresh, storage.path)
    unchanged = len(new) - len(fresh)
    if progress and unchanged:
        say(f"{storage.path}: {unchanged:,} of {counted(len(new), 'story')} are unchanged")
    sample = languages(encoder, new.frame["text"].tolist())
    if len(new) >= len(known):  # a few additional stories are not representative
        storage.set_languages(sample)
    columns = storage.columns(new.frame)
    is_known = new.frame["id"].isin(known).to_numpy()
    words = new.words(fresh)
    unchanged_words = sum(new.words(range(len(new)))) - sum(words)
    on_progress(IndexingProgress(unchanged, unchanged_words))
    bar = tqdm(
        total=sum(words), desc="indexing", unit="word", unit_scale=True, miniters=1, disable=not progress, delay=0.5
    )
    with bar, on_interrupt("committed stories are kept: repeat the command to resume"), _removed_if_empty(storage):
        start, size = 0, FEWEST_WORDS
        while start < len(fresh):
            end = span_end(words, start, size)
            span = fresh[start:end]
            start_time = time.monotonic()
            embedded = embed_with_passages(encoder, new.prepared(span, encoder))
            storage.commit(columns.take(span), embedded, replaces=bool(is_known[span].any()))
            span_words = sum(words[start:end])
            bar.update(span_words)
            shown = new.frame.iloc[span[-LATEST:]]
            latest = shown["title"].where(shown["title"] != "", shown["id"]).tolist()
            on_progress(IndexingProgress(unchanged + end, unchanged_words + sum(words[:end]), latest))
            seconds = time.monotonic() - start_time
            start, size = end, next_size(size, span_words, seconds, SECONDS_PER_SPAN, FEWEST_WORDS)
    others = sorted(set(known).difference(new.frame["id"]))
    if removes_others:
        storage.delete(others)
    elif progress and others and is_known.any():  # otherwise these stories are a further part of the index
        source = new.rows.report.path.name
        say(f"{storage.path}: {counted(len(others), 'story')} of the index are not in {source}; --update removes them")
    removed = len(others) if removes_others else 0
    storage.finish(changed=bool(fresh) or removed > 0)
    replaced = int(is_known[fresh].sum())
    return Changes(len(fresh) - replaced, replaced, removed, unchanged)


@contextmanager
def _removed_if_empty(storage: IndexStorage) -> Iterator[None]:
    """Remove an index that is empty after an error; its settings would rule out the remedy, such as long windows."""
    try:
        yield
    except NarrlitError:
        if not len(storage):
            shutil.rmtree(storage.path)
        raise


def embed_with_passages(encoder: StoryEncoder, stories: Sequence[Story]) -> EmbeddedStories:
    """Embed prepared stories and their passages."""
    if encoder.facts.reads == "text":
        vectors, passages, coverage = encoder.read_with_passages(stories)
        return EmbeddedStories(unit_vectors(vectors), passages, coverage)
    vectors, coverage = encoder.read(stories, ["story"] * len(stories))
    return EmbeddedStories(unit_vectors(vectors), None, coverage)


def span_end(words: Sequence[int], start: int, size: int) -> int:
    """Return the end of a span that has at most `size` words, or a single story.

    >>> span_end([5, 5, 5, 5], 1, size=10), span_end([50, 5], 0, size=10)
    (3, 1)
    """
    end, total = start + 1, words[start]
    while end < len(words) and total + words[end] <= size:
        total += words[end]
        end += 1
    return end
