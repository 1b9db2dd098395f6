"""`narrlit.pseudonymize` and `narrlit.restore_names`: placeholders for the names in rows of texts, and back again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from narrlit.console import counted
from narrlit.data.readers import Texts
from narrlit.data.rows import Layout, read_rows
from narrlit.data.text_rows import TextRows
from narrlit.data.writers import write_table
from narrlit.errors import DataError, OptionError, reading
from narrlit.files import atomic_path
from narrlit.preprocessing.pseudonyms import (
    PseudonymOptions,
    Replacement,
    Scope,
    pseudonymize_texts,
    restore,
)

NAMES_REMEDY = "give JSON Lines with text and names, as narrlit storyworld writes *_views.jsonl"


@dataclass(frozen=True)
class TextReplacements:
    """Replacements in one text of a row.

    Attributes:
        row: its number from 0.
        id: its id, if it has one.
        field: place of the text in the row, such as text or negatives/0/text; empty for a row that is a text.
        replacements: in order.
    """

    row: int
    id: object
    field: str
    replacements: tuple[Replacement, ...]

    @property
    def record(self) -> dict[str, object]:
        """Plain data, for a line of a map."""
        identity = {} if self.id is None else {"id": self.id}
        replacements = [asdict(one) for one in self.replacements]
        return {"row": self.row, **identity, "field": self.field, "replacements": replacements}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TextReplacements":
        """Invert `record`.

        Raises:
            pydantic.ValidationError: for a missing value, or one of another type.
        """
        return TypeAdapter(cls).validate_python({"id": None, **record})


@dataclass(frozen=True, eq=False)
class Pseudonymized:
    """N rows with placeholders in place of names.

    Attributes:
        rows: in their order, with all other columns.
        replacements: of each text, the map that restores the names.
    """

    rows: list[Any]
    replacements: list[TextReplacements]

    @property
    def num_replaced(self) -> int:
        """Number of names that were replaced."""
        return sum(len(text.replacements) for text in self.replacements)

    def table(self) -> pd.DataFrame:
        """Tabulate the replacements: row from 0, id, field, placeholder, original, start and end in the new text."""
        rows = []
        for text in self.replacements:
            place = {"row": text.row, "id": text.id, "field": text.field}
            rows += [{**place, **asdict(one)} for one in text.replacements]
        return pd.DataFrame(rows, columns=["row", "id", "field", "placeholder", "original", "start", "end"])

    def write(self, path: str | Path) -> None:
        """Write the rows: .jsonl, .csv, .tsv, .xlsx, .parquet, or .txt for the texts alone."""
        write_table(path, self.rows)

    def write_map(self, path: str | Path) -> None:
        """Write the map as JSON Lines, a line a text; the file can be read by its owner only."""
        lines = [json.dumps(text.record, ensure_ascii=False) + "\n" for text in self.replacements]
        with atomic_path(path, private=True) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")

    def __str__(self) -> str:
        """Numbers of rows and of names, in one line."""
        return f"{counted(len(self.rows), 'row')}, {counted(self.num_replaced, 'name')} replaced"


@dataclass(frozen=True, eq=False)
class Restored:
    """N rows with their original names."""

    rows: list[Any]

    def write(self, path: str | Path) -> None:
        """Write the rows, as `Pseudonymized.write` does."""
        write_table(path, self.rows)

    def __str__(self) -> str:
        """Number of rows, in one line."""
        return f"{counted(len(self.rows), 'row')} with their original names"


def pseudonymize(
    source: str | Path | Sequence[str] | Sequence[Mapping[str, object]] | TextRows,
    *,
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    coref: bool = False,
    coref_model: str = PseudonymOptions.coref_model,
    names: str | Path | Mapping[str, str] | None = None,
    layout: Layout = Layout(),
    progress: bool = False,
) -> Pseudonymized:
    """Replace names by placeholders such as Character_A and Location_1; other columns, rows and their order stay.

    Args:
        source: a file or folder of stories (with their views, if any), triples or training examples; or texts, or rows
            with columns.
        scope: texts that share a mapping of names: a `story` with its views, or all texts of a `triple` or example.
        pipeline: name or folder of the spaCy pipeline that finds names.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        names: names with their kinds (PERSON, PLACE or ORGANIZATION), used instead of spaCy; or a file of stories with
            their names, as `narrlit storyworld` writes *_views.jsonl.
        layout: columns and lines of a file of stories.
        progress: print on stderr how the file is read, with a progress bar.

    Returns:
        A `Pseudonymized`: `.rows`, `.table()` of the replacements, `.write(path)`, `.write_map(path)`.

    Raises:
        DataError: if there is no text, or the file can't be read.
        ModelError: if the pipeline or the model is not there.
        OptionError: for `scope="triple"` of stories.

    >>> result = pseudonymize(["Anna meets Bob.", "Bob runs."], names={"Anna": "PERSON", "Bob": "PERSON"})
    >>> result.rows
    ['Character_A meets Character_B.', 'Character_A runs.']
    >>> result.table()[["row", "placeholder", "original"]].values.tolist()
    [[0, 'Character_A', 'Anna'], [0, 'Character_B', 'Bob'], [1, 'Character_A', 'Bob']]
    """
    rows = source if isinstance(source, TextRows) else TextRows.read(source, layout, progress=progress)
    if rows.kind == "stories" and scope == "triple":
        raise OptionError(
            f"`scope=triple`: {rows.file.path} has stories, and a story must not depend on others; use story"
        )
    options = PseudonymOptions("spacy" if names is None else "given", scope, pipeline, coref, coref_model)
    groups = rows.groups(scope)
    different = list(dict.fromkeys(group.texts for group in groups))
    given = None if names is None else _names_of(different, names)
    results = pseudonymize_texts(different, options, given, lead=rows.kind == "stories", progress=progress)
    by_texts = dict(zip(different, results, strict=True))
    changed: list[Texts] = [{} for _ in rows.texts]
    replacements = []
    for group in groups:
        value = rows.file.rows[group.row].value
        id = value.get("id") if isinstance(value, Mapping) else None
        for place, new in zip(group.places, by_texts[group.texts], strict=True):
            changed[group.row][place] = new.text
            replacements.append(TextReplacements(group.row, id, place, new.replacements))
    return Pseudonymized(rows.with_texts(changed), replacements)


def restore_names(
    source: str | Path | Sequence[str] | Sequence[Mapping[str, object]] | TextRows,
    replacements: str | Path | Sequence[TextReplacements],
    *,
    layout: Layout = Layout(),
) -> Restored:
    """Put the original names back into rows that were pseudonymized, to the letter.

    Args:
        source: the rows with placeholders, as `pseudonymize` takes them.
        replacements: their map: a file, or `Pseudonymized.replacements`.
        layout: columns and lines of a file of stories.

    Returns:
        A `Restored`: `.rows`, `.write(path)`.

    Raises:
        DataError: if a file can't be read, or the map is of other rows.

    >>> result = pseudonymize(["Anna meets Bob."], names={"Anna": "PERSON", "Bob": "PERSON"})
    >>> restore_names(result.rows, result.replacements).rows
    ['Anna meets Bob.']
    """
    rows = source if isinstance(source, TextRows) else TextRows.read(source, layout)
    path = rows.file.path
    name = "the map"
    if isinstance(replacements, str | Path):
        name = f"map {replacements}"
        replacements = _read_map(replacements, path)
    places = {(row, place) for row, texts in enumerate(rows.texts) for place in texts}
    if {(text.row, text.field) for text in replacements} != places:
        raise DataError(f"{name} has other rows than {path}; give the map of this file")
    originals: list[Texts] = [{} for _ in rows.texts]
    for text in replacements:
        try:
            originals[text.row][text.field] = restore(rows.texts[text.row][text.field], text.replacements)
        except DataError as error:
            line = rows.file.rows[text.row].line
            raise DataError(f"{path}:{line}: {error}; give the map of this file") from error
    return Restored(rows.with_texts(originals))


def _read_map(path: str | Path, source: Path) -> list[TextReplacements]:
    """Read the map that was written together with the rows of a file."""
    remedy = f"give the map that was written together with {source}"
    replacements = []
    with reading("map", path, remedy):
        for row in read_rows(path).rows:
            try:
                replacements.append(TextReplacements.from_record(row.value))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(str(part) for part in first["loc"])
                raise DataError(f"map {path}:{row.line}: {place}: {first['msg']}; {remedy}") from error
    return replacements


def _names_of(groups: Sequence[tuple[str, ...]], names: str | Path | Mapping[str, str]) -> list[Mapping[str, str]]:
    """Find the names of each group of texts, with their kinds."""
    if isinstance(names, Mapping):
        return [names] * len(groups)
    with reading("names", names, NAMES_REMEDY):
        of_text = {row.value["text"]: dict(row.value["names"]) for row in read_rows(names).rows}
    names_of_groups: list[Mapping[str, str]] = []
    for group in groups:
        merged: dict[str, str] = {}
        for text in group:
            merged |= of_text.get(text, {})
        names_of_groups.append(merged)
    return names_of_groups
