"""Tables of a datamodule's stories before and after pseudonymization."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from narrlit.data.schema import (
    Story,
    StoryTable,
    TrainingExamples,
    Triples,
    texts_of,
    with_texts,
)
from narrlit.data.storyworld import SyntheticStory
from narrlit.distributed import from_first
from narrlit.preprocessing.pseudonyms import PseudonymOptions, pseudonymize_texts

StoryGroup = tuple[int, ...]
"""Indices of stories with a common mapping of names."""


class StoryTables:
    """Tables of stories before and after pseudonymization, which are the same table if names are not replaced.

    Attributes:
        options: settings of pseudonymization.
        source: stories before pseudonymization.
        stories: stories after pseudonymization, which the encoder reads.

    >>> tables = StoryTables(PseudonymOptions("none"), lambda index: None)
    >>> tables.convert([(tables.source.add("Anna ran."),)]), tables.stories is tables.source
    ([(0,)], True)
    """

    def __init__(self, options: PseudonymOptions, synthetic_story: Callable[[int], SyntheticStory | None]) -> None:
        """Create empty tables.

        Args:
            options: settings of pseudonymization.
            synthetic_story: function that returns the StoryWorld plan of a story, which contains its names, by its
                index in `source`; None for other stories.
        """
        self.options = options
        self.source = StoryTable()
        self.stories = self.source if options.backend == "none" else StoryTable()
        self._synthetic_story = synthetic_story
        self._converted: dict[StoryGroup, dict[int, int]] = {}
        self._source_of: dict[int, int] = {}

    @property
    def replaces_names(self) -> bool:
        """True if names are replaced, so that the two tables differ."""
        return self.stories is not self.source

    def source_of(self, index: int) -> int:
        """Return the index in `source` of a story in `stories`; the first one if there are several."""
        return self._source_of.get(index, index)

    def examples(self, read: TrainingExamples) -> TrainingExamples:
        """Convert training examples over `source` to examples over `stories`."""
        converted = self.convert([row.indices for row in read])
        rows = []
        for (anchor, positive, *negatives), row in zip(converted, read, strict=True):
            rows.append(replace(row, anchor=anchor, positive=positive, negatives=tuple(negatives)))
        return TrainingExamples(self.stories, rows)

    def triples(self, read: Triples) -> Triples:
        """Convert triples over `source` to triples over `stories`."""
        converted = self.convert([row.indices for row in read])
        rows = []
        for (anchor, a, b), row in zip(converted, read, strict=True):
            rows.append(replace(row, anchor=anchor, a=a, b=b))
        return Triples(self.stories, rows, read.report)

    def convert(self, rows: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Convert rows of indices in `source` to rows of indices in `stories`, and add the new stories.

        Raises:
            OptionError: for backend `given`, if a story comes without names.
        """
        if not self.replaces_names:
            return list(rows)
        scopes_by_row = [self._scopes(row) for row in rows]
        distinct_scopes = dict.fromkeys(chain.from_iterable(scopes_by_row))
        new = [scope for scope in distinct_scopes if scope not in self._converted]
        if new:
            self._replace_names(new)
        converted = []
        for row, scopes in zip(rows, scopes_by_row, strict=True):
            indices = [self._converted[scope][index] for index, scope in zip(row, scopes, strict=True)]
            converted.append(tuple(indices))
        return converted

    def _scopes(self, row: tuple[int, ...]) -> list[StoryGroup]:
        """Return the scope of each story in a row: the story alone, or all stories of the row."""
        if self.options.scope == "story":
            return [(index,) for index in row]
        return [tuple(dict.fromkeys(row))] * len(row)

    def _replace_names(self, scopes: Sequence[StoryGroup]) -> None:
        """Add the stories of scopes to `stories`, with placeholders instead of names."""
        groups = []
        for scope in scopes:
            groups.append([self.source[index] for index in scope])
        # Names are found and replaced in one process only, so that the others need not load spaCy.
        new_groups = from_first(partial(_pseudonymized, groups, self.options, self._names(scopes)))
        for scope, stories in zip(scopes, new_groups, strict=True):
            self._converted[scope] = {}
            for index, story in zip(scope, stories, strict=True):
                added = self.stories.add(story.text, id=story.id, views=story.views, original=story.original)
                self._source_of.setdefault(added, index)
                self._converted[scope][index] = added

    def _names(self, scopes: Sequence[StoryGroup]) -> list[Mapping[str, str]] | None:
        """Collect the names in each scope for backend `given`; None for other backends or if a story has no names."""
        if self.options.backend != "given":
            return None
        names: list[Mapping[str, str]] = []
        for scope in scopes:
            label_of: dict[str, str] = {}
            for index in scope:
                story = self._synthetic_story(index)
                if story is None:
                    return None
                label_of |= story.names
            names.append(label_of)
        return names


def _pseudonymized(
    groups: Sequence[Sequence[Story]], options: PseudonymOptions, names: Sequence[Mapping[str, str]] | None
) -> list[list[Story]]:
    """Replace the names in groups of stories, with one mapping for each group."""
    texts = [texts_of(group) for group in groups]
    results = pseudonymize_texts(texts, options, names, lead=options.scope == "story")
    new_groups = []
    for group, result in zip(groups, results, strict=True):
        new_texts = [text.text for text in result]
        new_groups.append(with_texts(group, new_texts))
    return new_groups
