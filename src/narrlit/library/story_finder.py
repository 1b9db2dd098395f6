"""Lookup of stories by id, by file or by text."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.console import say
from narrlit.data.readers import read_stories
from narrlit.data.rows import Layout
from narrlit.data.schema import Story, composed, normal_form
from narrlit.errors import OptionError, nearest, printable
from narrlit.preprocessing.words import num_words

if TYPE_CHECKING:
    from narrlit.library.collection import Collection

FEWEST_WORDS = 3
"""Minimum number of words in a text, as opposed to a mistyped file name or id."""


@dataclass(frozen=True)
class StoryFinder:
    """Find stories by id, by file or by text.

    Attributes:
        stories: stories by id; each is named by its title.
        source: file or folder of these stories; None if there are none.
        layout: columns and lines of files.

    >>> StoryFinder({"grail": Story("The Grail", "A knight seeks a grail.")}, "tales").find("grail").id
    'The Grail'
    >>> StoryFinder().find("A diver seeks a pearl.").text
    'A diver seeks a pearl.'
    """

    stories: Mapping[str, Story] = field(default_factory=dict)
    source: str | None = None
    layout: Layout = Layout()

    @classmethod
    def read(cls, source: str, layout: Layout = Layout(), *, progress: bool = False) -> "StoryFinder":
        """Read the stories of a file or folder.

        Raises:
            DataError: if the file can't be read, or two stories have the same id.
        """
        read = read_stories(source, layout=layout)
        if progress:
            say(read.report.summary())
        texts = [story.text for story in read]
        return cls(_titled(read.story_ids, read.titles, texts), source, layout)

    @classmethod
    def of(cls, collection: "Collection", layout: Layout = Layout()) -> "StoryFinder":
        """Look up ids in a collection."""
        frame = collection.frame
        stories = _titled(frame["id"], frame["title"], frame["text"])
        return cls(stories, str(collection.about["source"]), layout)

    @property
    def texts(self) -> list[str]:
        """Texts of the stories that have ids."""
        return [story.text for story in self.stories.values()]

    def find(self, word: str) -> Story:
        """Find a story by an id, a file with one story, or a text.

        Raises:
            DataError: if the file can't be read.
            OptionError: if the file has several stories, or the word is too short for a text.
        """
        id = normal_form(word)
        if id in self.stories:
            return self.stories[id]
        if os.path.exists(word) and not os.path.isdir(word):  # noqa: PTH110, PTH112 (a text is longer than Path accepts)
            return self._only_story(word)
        if num_words(word) >= FEWEST_WORDS:
            return Story(printable(word, 40), composed(word))
        if self.source is None:
            raise OptionError("no_story_nor_ids", word=word)
        near = nearest(word, self.stories)
        raise OptionError("no_such_story", word=word, source=str(self.source), near=near)

    def _only_story(self, path: str) -> Story:
        """Read the one story of a file."""
        read = read_stories(path, strict=True, layout=self.layout)
        if len(read) != 1:
            raise OptionError("several_stories_of_file", path=path, stories=len(read))
        return Story(read.titles[0] or Path(path).stem, read[0].text)


def _titled(ids: Iterable[str], titles: Iterable[str | None], texts: Iterable[str]) -> dict[str, Story]:
    """Return stories by id; each is named by its title or, without a title, by its id."""
    stories = {}
    for id, title, text in zip(ids, titles, texts, strict=True):
        stories[id] = Story(title or id, text)
    return stories
