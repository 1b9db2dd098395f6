"""Stories as a bibliography in the form of BibTeX, for reference managers."""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from narrlit.errors import printable
from narrlit.files import write_text

FIELDS = {
    "author": ("author", "authors", "collector", "editor"),
    "year": ("year", "date", "published"),
    "language": ("language", "lang"),
    "url": ("url", "link", "source"),
}
"""Fields of an entry and the columns, in any case, from which they are taken; other columns become its note."""
_SPECIAL = re.compile(r"[\\{}$&#%_^~]")
_ESCAPES = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def write_bibliography(path: str | Path, stories: pd.DataFrame) -> None:
    """Write one entry `@misc` per story, with its title, the fields of FIELDS, and all other columns as a note.

    Args:
        path: file to write.
        stories: id, title, text, then the metadata columns; the texts are left out.
    """
    keys = entry_keys(stories["id"].tolist())
    records = stories.drop(columns="text").to_dict("records")
    write_text(path, "\n".join(map(_entry, keys, records)))


def entry_keys(ids: list[str]) -> list[str]:
    """Make distinct keys of letters, digits, hyphens and underscores from the ids of stories.

    >>> entry_keys(["Perrault 1697", "perrault, 1697", "灰姑娘"])
    ['Perrault-1697', 'perrault-1697-2', 'story']
    """
    taken: set[str] = set()
    keys = []
    for id in ids:
        ascii_id = unicodedata.normalize("NFKD", id).encode("ascii", "ignore").decode()
        base = re.sub(r"[^A-Za-z0-9_]+", "-", ascii_id).strip("-") or "story"
        key, number = base, 1
        while key.casefold() in taken:  # BibTeX does not distinguish case
            number += 1
            key = f"{base}-{number}"
        taken.add(key.casefold())
        keys.append(key)
    return keys


def _entry(key: str, story: Mapping[str, object]) -> str:
    """Format a story as an entry."""
    fields = {"title": str(story["title"] or story["id"])}
    notes = []
    for column, value in story.items():
        if column in ("id", "title") or value is None:
            continue
        field = _field_of(column)
        if field is None or field in fields:
            notes.append(f"{column}: {_text(value)}")
        else:
            fields[field] = _text(value)
    if notes:
        fields["note"] = "; ".join(notes)
    lines = [f"  {name} = {{{_escaped(value)}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}", ""])


def _field_of(column: str) -> str | None:
    """Return the field that a column belongs to; None: to the note."""
    name = column.strip().casefold()
    for field, columns in FIELDS.items():
        if name in columns:
            return field
    return None


def _text(value: object) -> str:
    """Format a value; a column of years with gaps holds 1697.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _escaped(value: str) -> str:
    r"""Write a value on one line, with the special characters of TeX escaped.

    >>> print(_escaped("50 % of {all}"))
    50 \% of \{all\}
    """
    line = printable(value, limit=10_000)
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match[0], rf"\{match[0]}"), line)
