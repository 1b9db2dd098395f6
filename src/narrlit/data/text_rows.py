"""Rows of files with the texts in them: stories, triples or training examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from narrlit.console import say
from narrlit.data.readers import Texts, row_texts, with_texts
from narrlit.data.rows import JSON_SUFFIXES, Layout, Row, RowFile, read_rows
from narrlit.data.writers import OUTPUT_SUFFIXES, check_rows
from narrlit.errors import DataError, OptionError
from narrlit.preprocessing.pseudonyms import (
    Scope,
)


@dataclass(frozen=True)
class TextGroup:
    """Texts of a row that share one mapping of names, and their positions in the row."""

    row: int
    places: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TextRows:
    """N rows with the texts in them.

    Attributes:
        file: the rows as they are.
        kind: of the rows.
        texts: of each row, by their places in it; a story's views are among its texts.
    """

    file: RowFile
    kind: Literal["stories", "triples", "examples"]
    texts: list[Texts]

    @classmethod
    def read(
        cls,
        source: str | Path | Sequence[str] | Sequence[Mapping[str, object]],
        layout: Layout = Layout(),
        *,
        progress: bool = False,
    ) -> "TextRows":
        """Read the rows of a file or folder of stories, triples or training examples, or take texts and rows.

        Args:
            source: a file or folder as `read_stories` and `read_examples` read it; or texts, or rows with columns.
            layout: columns and lines of a file of stories.
            progress: print on stderr how the file was read.

        Raises:
            DataError: if there is no text.
        """
        if isinstance(source, str | Path):
            file = read_rows(source, layout)
        elif len(source):
            file = RowFile(Path("texts"), [Row(number, value) for number, value in enumerate(source, start=1)])
        else:
            raise DataError("there is no text: give at least one")
        if progress:
            for note in file.notes:
                say(f"{file.path.name}: {note}")
        return cls(file, *row_texts(file, layout))

    def check_output(self, path: str | Path) -> None:
        """Refuse a file that can't hold the rows, before they are computed.

        Raises:
            OptionError: for an unknown suffix, or one of tables where rows have lists of texts.
        """
        path = Path(path)
        if path.suffix.lower() not in (*OUTPUT_SUFFIXES, ".txt"):
            raise OptionError(f"{path}: name a file that ends in {', '.join(OUTPUT_SUFFIXES)} or .txt")
        has_lists = any("/" in place for texts in self.texts for place in texts)
        if has_lists and path.suffix.lower() not in JSON_SUFFIXES:
            raise OptionError(f"{path}: {self.file.path} has lists of texts, which need JSON Lines: name a .jsonl file")
        check_rows(path, [row.value for row in self.file.rows])

    def groups(self, scope: Scope) -> list[TextGroup]:
        """Group the texts that share one mapping: a story with its views, or all texts of a triple or example."""
        groups = []
        for row, texts in enumerate(self.texts):
            if self.kind == "stories" or scope == "triple":
                groups.append(TextGroup(row, tuple(texts), tuple(texts.values())))
            else:
                groups += [TextGroup(row, (place,), (text,)) for place, text in texts.items()]
        return [group for group in groups if group.places]

    def with_texts(self, texts: Sequence[Texts]) -> list[Any]:
        """Copy the rows with other texts in their places."""
        return [with_texts(row.value, new) for row, new in zip(self.file.rows, texts, strict=True)]
