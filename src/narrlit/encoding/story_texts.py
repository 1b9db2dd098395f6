"""Preparation of stories for an encoder: views are attached, and names replaced with placeholders."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from narrlit.console import say
from narrlit.data.rows import file_digest
from narrlit.data.schema import Story, StoryTable, Triple, Triples, texts_of, with_texts
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.errors import OptionError
from narrlit.preprocessing.pseudonyms import PseudonymOptions, pseudonymize_texts


@dataclass(frozen=True)
class StoryTexts:
    """Settings for preparing stories: views are attached, then names in text and views are replaced.

    Attributes:
        views: files of views, and how to handle stories without views; None: stories keep their own views.
        pseudonyms: settings of pseudonymization; None: names are kept.
    """

    views: ViewFiles | None = None
    pseudonyms: PseudonymOptions | None = None

    def prepare(self, stories: Sequence[Story]) -> list[Story]:
        """Prepare stories independently of each other.

        Raises:
            DataError: if a story lacks required views.
            OptionError: if the scope of pseudonymization is `triple`.
        """
        table = self._with_views(StoryTable(stories), range(len(stories)), "stories")
        if self.pseudonyms is None:
            return table.rows
        if self.pseudonyms.scope == "triple":
            raise OptionError("scope_of_single_stories")
        return self._without_names([[story] for story in table.rows], self.pseudonyms)

    def prepare_triples(self, triples: Triples) -> Triples:
        """Prepare the stories of triples: independently, or with one mapping of names for each triple.

        Raises:
            DataError: if a story lacks required views.
        """
        indices = triples.indices.ravel().tolist()
        table = self._with_views(triples.stories, indices, "triples")
        if self.pseudonyms is None:
            return Triples(table, triples.rows, triples.report)
        stories = [table[index] for index in indices]
        group_size = 1 if self.pseudonyms.scope == "story" else 3
        groups = [stories[start : start + group_size] for start in range(0, len(stories), group_size)]
        prepared = StoryTable()
        new_indices: list[int] = []
        for story in self._without_names(groups, self.pseudonyms):
            new_indices.append(prepared.add(story.text, views=story.views, original=story.original))
        rows: list[Triple] = []
        for triple, (anchor, a, b) in zip(triples, np.reshape(new_indices, (-1, 3)).tolist(), strict=True):
            rows.append(Triple(anchor, a, b, triple.a_is_closer))
        return Triples(prepared, rows, triples.report)

    @property
    def settings(self) -> dict[str, object]:
        """Settings that affect the texts, as plain data: digests of files, not their names."""
        settings: dict[str, object] = {}
        if self.views is not None:
            digests = [file_digest(path) for path in self.views.paths]
            settings["views"] = {"files": digests, "missing": self.views.missing}
        if self.pseudonyms is not None:
            settings["pseudonyms"] = asdict(self.pseudonyms)
        return settings

    @property
    def provenance(self) -> dict[str, object] | None:
        """Files of the views, as plain data for records; None if there are none."""
        return None if self._files is None else self._files.provenance()

    @cached_property
    def _files(self) -> StoryViews | None:
        """Views by the text of their story; None if there are none."""
        if self.views is None:
            return None
        files = StoryViews(self.views)
        say(f"views: {files.summary()}")
        return files

    @cached_property
    def _replaced(self) -> dict[tuple[str, ...], list[str]]:
        """Cache of pseudonymized texts, by the texts of a group, because finding names is slow."""
        return {}

    def _with_views(self, stories: StoryTable, indices: Iterable[int], name: str) -> StoryTable:
        """Return a copy of a table in which the stories at these indices have views."""
        table = StoryTable(stories)
        if self._files is not None:
            say(self._files.attach(table, indices, name).summary(name))
        return table

    def _without_names(self, groups: Sequence[Sequence[Story]], options: PseudonymOptions) -> list[Story]:
        """Replace the names in stories and their views, with one mapping for each group; return one list."""
        texts_by_group = [tuple(texts_of(group)) for group in groups]
        self._pseudonymize_uncached(texts_by_group, options)
        stories: list[Story] = []
        for group, texts in zip(groups, texts_by_group, strict=True):
            stories += with_texts(group, self._replaced[texts])
        return stories

    def _pseudonymize_uncached(self, texts_by_group: Sequence[tuple[str, ...]], options: PseudonymOptions) -> None:
        """Pseudonymize the texts of the groups that are not yet cached, each distinct group once."""
        uncached = [texts for texts in dict.fromkeys(texts_by_group) if texts not in self._replaced]
        if uncached:
            results = pseudonymize_texts(uncached, options, lead=options.scope == "story")
            for texts, result in zip(uncached, results, strict=True):
                self._replaced[texts] = [pseudonymized.text for pseudonymized in result]


def story_texts(
    views: str | Path | Sequence[str] | None,
    missing_views: Literal["refuse", "positional"],
    pseudonyms: PseudonymOptions | bool,
) -> StoryTexts:
    """Build the settings for preparing stories from the parameters of `load`."""
    return StoryTexts(_view_files(views, missing_views), _pseudonym_options(pseudonyms))


def _view_files(views: str | Path | Sequence[str] | None, missing: Literal["refuse", "positional"]) -> ViewFiles | None:
    """Convert the parameters of `load` to files of views; None if stories keep their own views."""
    if views is None and missing == "refuse":
        return None
    if views is None or isinstance(views, str):
        return ViewFiles.parse(views, missing)
    if isinstance(views, Path):
        return ViewFiles(str(views), missing)
    return ViewFiles(list(views), missing)


def _pseudonym_options(pseudonyms: PseudonymOptions | bool) -> PseudonymOptions | None:
    """Convert the parameter of `load` to settings of pseudonymization; None if names are kept."""
    if isinstance(pseudonyms, bool):
        return PseudonymOptions("spacy") if pseudonyms else None
    return None if pseudonyms.backend == "none" else pseudonyms
