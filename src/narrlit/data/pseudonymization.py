"""Replacement of the names in rows of texts by placeholders, and its reversal.

Public as `narrlit.pseudonymize` and `narrlit.restore_names`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from narrlit.console import counted
from narrlit.data.readers import TextsByPlace
from narrlit.data.rows import Layout, read_rows
from narrlit.data.text_rows import TextRows
from narrlit.data.writers import write_table
from narrlit.errors import DataError, OptionError, reading
from narrlit.files import atomic_path
from narrlit.preprocessing.pseudonyms import (
    ClusterParts,
    NameSource,
    PseudonymOptions,
    Replacement,
    Scope,
    pseudonymize_texts,
    restore,
)


@dataclass(frozen=True)
class TextReplacements:
    """Replacements in one text of a row.

    Attributes:
        row: number of the row, counted from 0.
        id: id of the row; None if it has none.
        field: place of the text in the row, such as text or negatives/0/text; empty for a row that is a text.
        replacements: replacements in the order of the text.
    """

    row: int
    id: object
    field: str
    replacements: tuple[Replacement, ...]

    @property
    def record(self) -> dict[str, object]:
        """Plain data for one line of the map."""
        identity = {} if self.id is None else {"id": self.id}
        replacements = [asdict(replacement) for replacement in self.replacements]
        return {"row": self.row, **identity, "field": self.field, "replacements": replacements}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TextReplacements":
        """Build the replacements from their `record`.

        Raises:
            pydantic.ValidationError: if a value is missing or of the wrong type.
        """
        return TypeAdapter(cls).validate_python({"id": None, **record})


@dataclass(frozen=True, eq=False)
class Pseudonymized:
    """N rows with placeholders in place of names.

    Attributes:
        rows: rows in their original order, with all other columns.
        replacements: replacements in each text, that is, the map by which names can be restored.
    """

    rows: list[Any]
    replacements: list[TextReplacements]

    @property
    def num_replaced(self) -> int:
        """Number of replacements in all texts."""
        return sum(len(text.replacements) for text in self.replacements)

    def table(self) -> pd.DataFrame:
        """Tabulate the replacements.

        Returns:
            A table with the columns row (from 0), id, field, placeholder, original, start and end; start and end are
            characters of the new text.
        """
        rows = []
        for text in self.replacements:
            place = {"row": text.row, "id": text.id, "field": text.field}
            for replacement in text.replacements:
                rows.append({**place, **asdict(replacement)})
        return pd.DataFrame(rows, columns=["row", "id", "field", "placeholder", "original", "start", "end"])

    def write(self, path: str | Path) -> None:
        """Write the rows in the format of the suffix: .jsonl, .csv, .tsv, .xlsx, .parquet, or .txt (texts only)."""
        write_table(path, self.rows)

    def write_map(self, path: str | Path) -> None:
        """Write the map as JSON Lines, one line per text; only the owner of the file can read it."""
        lines = [json.dumps(text.record, ensure_ascii=False) + "\n" for text in self.replacements]
        with atomic_path(path, private=True) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")

    def __str__(self) -> str:
        """One line: number of rows and of replaced names."""
        return f"{counted(len(self.rows), 'row')}, {counted(self.num_replaced, 'name')} replaced"


@dataclass(frozen=True, eq=False)
class Restored:
    """N rows with their original names."""

    rows: list[Any]

    def write(self, path: str | Path) -> None:
        """Write the rows, like `Pseudonymized.write`."""
        write_table(path, self.rows)

    def __str__(self) -> str:
        """One line: number of rows."""
        return f"{counted(len(self.rows), 'row')} with their original names"


def pseudonymize(  # noqa: PLR0913 (options)
    source: str | Path | Sequence[str] | Sequence[Mapping[str, object]] | TextRows,
    *,
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    coref: bool = False,
    coref_model: str = PseudonymOptions.coref_model,
    cluster: ClusterParts = "names",
    names: str | Path | Mapping[str, str] | None = None,
    layout: Layout = Layout(),
    progress: bool = False,
) -> Pseudonymized:
    """Replace names by placeholders such as Character_A and Location_1.

    The number of rows, their order and all other columns stay the same.

    Args:
        source: file or folder of stories (with their views, if any), triples or training examples; or a list of texts,
            or of rows with columns.
        scope: texts that share one mapping of names: a `story` with its views, or all texts of a `triple` or example.
        pipeline: name or folder of the spaCy pipeline that finds names.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        cluster: parts of a coreference cluster that are replaced: its `names`, or all its `mentions`, also pronouns and
            descriptions.
        names: names with their kinds (PERSON, PLACE or ORGANIZATION), to be used instead of spaCy; or a file of stories
            with their names, such as the *_views.jsonl of `narrlit data storyworld`.
        layout: columns of a file of stories, and how a text file is divided.
        progress: print on stderr how the file was read, and show a progress bar.

    Returns:
        A `Pseudonymized`: `.rows`, `.table()` of the replacements, `.write(path)`, `.write_map(path)`.

    Raises:
        DataError: if there is no text, or the file can't be read.
        ModelError: if the pipeline or the coreference model can't be loaded.
        OptionError: if `cluster` is "mentions" without `coref`, or `scope` is "triple" and `source` has stories.

    >>> result = pseudonymize(["Anna meets Bob.", "Bob runs."], names={"Anna": "PERSON", "Bob": "PERSON"})
    >>> result.rows
    ['Character_A meets Character_B.', 'Character_A runs.']
    >>> result.table()[["row", "placeholder", "original"]].values.tolist()
    [[0, 'Character_A', 'Anna'], [0, 'Character_B', 'Bob'], [1, 'Character_A', 'Bob']]
    """
    rows = source if isinstance(source, TextRows) else TextRows.read(source, layout, progress=progress)
    if rows.kind == "stories" and scope == "triple":
        raise OptionError("scope_of_stories", path=rows.file.path)
    backend: NameSource = "spacy" if names is None else "given"
    options = PseudonymOptions(backend, scope, pipeline, coref, coref_model, cluster)
    groups = rows.groups(scope)
    distinct_texts = list(dict.fromkeys(group.texts for group in groups))
    names_of_texts = None if names is None else _names_of(distinct_texts, names)
    is_story = rows.kind == "stories"
    results = pseudonymize_texts(distinct_texts, options, names_of_texts, lead=is_story, progress=progress)
    result_of = dict(zip(distinct_texts, results, strict=True))
    new_texts: list[TextsByPlace] = [{} for _ in rows.texts]
    replacements = []
    for group in groups:
        id = rows.file.rows[group.row].cells.get("id")
        for place, new in zip(group.places, result_of[group.texts], strict=True):
            new_texts[group.row][place] = new.text
            replacements.append(TextReplacements(group.row, id, place, new.replacements))
    return Pseudonymized(rows.with_texts(new_texts), replacements)


def restore_names(
    source: str | Path | Sequence[str] | Sequence[Mapping[str, object]] | TextRows,
    replacements: str | Path | Sequence[TextReplacements],
    *,
    layout: Layout = Layout(),
) -> Restored:
    """Restore the original names in pseudonymized rows, exactly as they were.

    Args:
        source: rows with placeholders, in any form that `pseudonymize` accepts.
        replacements: map of these rows: a file, or `Pseudonymized.replacements`.
        layout: columns of a file of stories, and how a text file is divided.

    Returns:
        A `Restored`: `.rows`, `.write(path)`.

    Raises:
        DataError: if a file can't be read, or the map belongs to other rows.

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
    places = {(text.row, text.field) for text in replacements}
    if places != rows.places:
        raise DataError("map_of_other_rows", map=name, path=path)
    originals: list[TextsByPlace] = [{} for _ in rows.texts]
    for text in replacements:
        try:
            originals[text.row][text.field] = restore(rows.texts[text.row][text.field], text.replacements)
        except DataError as error:
            line = rows.file.rows[text.row].line
            raise DataError("map_does_not_fit", path=path, line=line, problem=error) from error
    return Restored(rows.with_texts(originals))


def _read_map(path: str | Path, source: Path) -> list[TextReplacements]:
    """Read the map that was written together with the rows of a file."""
    replacements = []
    with reading("unreadable_map", path, source=source):
        for row in read_rows(path).rows:
            try:
                replacements.append(TextReplacements.from_record(row.value))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"]))
                raise DataError(
                    "broken_map", path=path, line=row.line, field=place, problem=first["msg"], source=source
                ) from error
    return replacements


def _names_of(groups: Sequence[tuple[str, ...]], names: str | Path | Mapping[str, str]) -> list[Mapping[str, str]]:
    """Return the names of each group of texts, with their kinds."""
    if isinstance(names, Mapping):
        return [names] * len(groups)
    names_of_text = _read_names(names)
    names_of_groups: list[Mapping[str, str]] = []
    for group in groups:
        merged: dict[str, str] = {}
        for text in group:
            merged |= names_of_text.get(text, {})
        names_of_groups.append(merged)
    return names_of_groups


def _read_names(path: str | Path) -> dict[str, dict[str, str]]:
    """Read the names in each text of a file, with their kinds."""
    names_of_text = {}
    with reading("unreadable_names", path):
        for row in read_rows(path).rows:
            names_of_text[row.value["text"]] = dict(row.value["names"])
    return names_of_text
