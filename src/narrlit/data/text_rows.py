"""Rows of stories, triples or training examples, with the texts in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from narrlit.console import say
from narrlit.data.readers import TextsByPlace, replace_texts, row_texts
from narrlit.data.row_file import JSON_SUFFIXES, RowFile, numbered_rows
from narrlit.data.rows import Layout, read_rows
from narrlit.data.writers import OUTPUT_SUFFIXES, check_rows
from narrlit.errors import DataError, OptionError
from narrlit.preprocessing.pseudonyms import Scope


@dataclass(frozen=True)
class TextGroup:
    """Texts of a row that share one mapping of names, and their places in the row."""

    row: int
    places: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TextRows:
    """N rows with the texts in them.

    Attributes:
        file: unchanged rows.
        kind: kind of the rows.
        texts: texts of each row by their places in it; the views of a story are among its texts.
    """

    file: RowFile
    kind: Literal["stories", "triples", "examples"]
    texts: list[TextsByPlace]

    @classmethod
    def read(
        cls,
        source: str | Path | Sequence[str] | Sequence[Mapping[str, object]],
        layout: Layout = Layout(),
        *,
        progress: bool = False,
    ) -> "TextRows":
        """Find the texts in the rows of a file or folder, or in given rows.

        Args:
            source: file or folder of stories, triples or training examples, as for `read_stories` and `read_examples`;
                or a list of texts, or of rows with columns.
            layout: columns of a file of stories, and how a text file is divided.
            progress: print on stderr how the file was read.

        Raises:
            DataError: if there is no text, or the file can't be read.
        """
        if isinstance(source, str | Path):
            file = read_rows(source, layout)
        elif len(source):
            file = RowFile(Path("texts"), numbered_rows(source))
        else:
            raise DataError("no_text")
        if progress:
            for note in file.notes:
                say(f"{file.path.name}: {note}")
        return cls(file, *row_texts(file, layout))

    def check_output(self, path: str | Path) -> None:
        """Check that an output file can hold the rows, before they are computed.

        Raises:
            OptionError: if the suffix is unknown, or if it is that of a table and rows have lists of texts.
        """
        path = Path(path)
        if path.suffix.lower() not in (*OUTPUT_SUFFIXES, ".txt"):
            raise OptionError("text_output_suffix", path=path, suffixes=OUTPUT_SUFFIXES)
        has_lists = any("/" in place for _, place in self.places)
        if has_lists and path.suffix.lower() not in JSON_SUFFIXES:
            raise OptionError("lists_of_texts", path=path, source=self.file.path)
        check_rows(path, [row.value for row in self.file.rows])

    @property
    def places(self) -> set[tuple[int, str]]:
        """Places of all texts, each as the number of its row (from 0) and its place in the row."""
        places = set()
        for row, texts in enumerate(self.texts):
            for place in texts:
                places.add((row, place))
        return places

    def groups(self, scope: Scope) -> list[TextGroup]:
        """Group the texts that share one mapping: a story with its views, or all texts of a triple or example."""
        rows_are_groups = self.kind == "stories" or scope == "triple"
        groups = []
        for row, texts in enumerate(self.texts):
            if not rows_are_groups:
                for place, text in texts.items():
                    groups.append(TextGroup(row, (place,), (text,)))
            elif texts:
                groups.append(TextGroup(row, tuple(texts), tuple(texts.values())))
        return groups

    def with_texts(self, texts: Sequence[TextsByPlace]) -> list[Any]:
        """Copy the rows with new texts at their places."""
        return [replace_texts(row.value, new) for row, new in zip(self.file.rows, texts, strict=True)]
