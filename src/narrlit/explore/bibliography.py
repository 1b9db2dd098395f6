"""Stories as references for reference managers and word processors: BibTeX, RIS, CSL JSON."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from narrlit.errors import printable
from narrlit.files import write_text


@dataclass(frozen=True)
class Field:
    """Field of a reference.

    Attributes:
        columns: columns from which it is taken, in any case and in English or German, the first one that has a value.
        bibtex: its name in BibTeX (biblatex).
        ris: its tag in RIS.
        csl: its name in CSL JSON.
    """

    columns: tuple[str, ...]
    bibtex: str
    ris: str
    csl: str


PEOPLE = {
    "author": Field(("author", "authors", "autor", "autorin", "collector", "sammler"), "author", "AU", "author"),
    "translator": Field(
        ("translator", "translators", "translated by", "übersetzer", "übersetzerin"), "translator", "A4", "translator"
    ),
    "editor": Field(("editor", "editors", "herausgeber", "herausgeberin"), "editor", "A2", "editor"),
}
"""Fields of names, which are separated by semicolons or "and"."""
WORDS = {
    "year": Field(("year", "date", "published", "jahr"), "year", "PY", "issued"),
    "book": Field(("book", "booktitle", "buch"), "booktitle", "T2", "container-title"),
    "publisher": Field(("publisher", "verlag"), "publisher", "PB", "publisher"),
    "language": Field(("language", "lang", "sprache"), "language", "LA", "language"),
    "keywords": Field(("keywords", "tags", "reader_tags", "schlagwörter"), "keywords", "KW", "keyword"),
    "url": Field(("url", "link", "source", "quelle"), "url", "UR", "URL"),
    "note": Field((), "note", "N1", "note"),
}
FIELDS = {**PEOPLE, **WORDS}
_SPECIAL = re.compile(r"[\\{}$&#%_^~]")
_ESCAPES = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


@dataclass(frozen=True)
class Reference:
    """Story as a reference.

    Attributes:
        key: distinct key of letters, digits, hyphens and underscores.
        id: id of the story.
        title: its title; its id if it has none.
        values: values of the fields that it has, by the names in FIELDS; columns of no field are the note.
    """

    key: str
    id: str
    title: str
    values: Mapping[str, str]

    def people(self, field: str) -> list[str]:
        """Return the names in a field."""
        return [name.strip() for name in re.split(r";|\band\b|\bund\b", self.values.get(field, "")) if name.strip()]

    @property
    def keywords(self) -> list[str]:
        """The keywords, which semicolons or commas separate."""
        return [word.strip() for word in re.split("[;,]", self.values.get("keywords", "")) if word.strip()]


def write_bibliography(path: str | Path, stories: pd.DataFrame) -> None:
    """Write one reference per story, with its title, the fields of FIELDS, and all other columns as a note.

    Args:
        path: file to write: .bib (BibTeX, with biblatex's field for translators), .ris (RIS) or .json (CSL JSON).
        stories: id, title, text, then the metadata columns; the texts are left out.
    """
    formats: dict[str, Callable[[Iterable[Reference]], str]] = {".bib": _bibtex, ".ris": _ris, ".json": _csl}
    write_text(path, formats[Path(path).suffix](references(stories)))


def references(stories: pd.DataFrame) -> list[Reference]:
    """Make a reference of each story.

    Args:
        stories: id, title, text, then the metadata columns.

    >>> frame = pd.DataFrame({"id": ["wolf"], "title": ["The Wolf"], "text": ["A wolf."], "Translator": ["A. Lang"]})
    >>> references(frame)[0].values
    {'translator': 'A. Lang'}
    """
    made = []
    keys = entry_keys(stories["id"].tolist())
    for key, story in zip(keys, stories.drop(columns="text").to_dict("records"), strict=True):
        values: dict[str, str] = {}
        notes = []
        for column, value in story.items():
            if column in ("id", "title") or value is None:
                continue
            text = _text(value)
            field = _field_of(str(column), text)
            if field is None or field in values:
                notes.append(f"{column}: {text}")
            else:
                values[field] = text
        if notes:
            values["note"] = "; ".join(notes)
        made.append(Reference(key, str(story["id"]), str(story["title"] or story["id"]), values))
    return made


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


def _field_of(column: str, text: str) -> str | None:
    """Return the field that a column belongs to; None: to the note, as a source that is no address."""
    name = column.strip().casefold()
    for field, known in FIELDS.items():
        if name in known.columns and (field != "url" or text.startswith(("http://", "https://"))):
            return field
    return None


def _text(value: object) -> str:
    """Format a value; a column of years with gaps holds 1697.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _family_and_given(name: str) -> tuple[str, str]:
    """Divide a name.

    >>> _family_and_given("George Fyler Townsend"), _family_and_given("Arnim, Bettina von"), _family_and_given("Aesop")
    (('Townsend', 'George Fyler'), ('Arnim', 'Bettina von'), ('Aesop', ''))
    """
    family, comma, given = name.partition(",")
    if comma:
        return family.strip(), given.strip()
    given, _, family = name.rpartition(" ")
    return family, given


def _bibtex(stories: Iterable[Reference]) -> str:
    """Format references as BibTeX."""
    entries = []
    for story in stories:
        fields = {"title": story.title}
        for field, value in story.values.items():
            text = value
            if field in PEOPLE:
                text = " and ".join(story.people(field))
            elif field == "keywords":
                text = ", ".join(story.keywords)  # as biblatex separates them
            fields[FIELDS[field].bibtex] = text
        kind = "incollection" if "book" in story.values else "misc"
        lines = [f"  {name} = {{{_escaped(value)}}}," for name, value in fields.items()]
        entries.append("\n".join([f"@{kind}{{{story.key},", *lines, "}", ""]))
    return "\n".join(entries)


def _escaped(value: str) -> str:
    r"""Write a value on one line, with the special characters of TeX escaped.

    >>> print(_escaped("50 % of {all}"))
    50 \% of \{all\}
    """
    line = printable(value, limit=10_000)
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match[0], rf"\{match[0]}"), line)


def _ris(stories: Iterable[Reference]) -> str:
    """Format references as RIS; a chapter of a book is the one type in which all programs know translators."""
    lines = []
    for story in stories:
        lines += ["TY  - CHAP", f"ID  - {story.key}", f"TI  - {printable(story.title, 10_000)}"]
        for field, value in story.values.items():
            values = [value]
            if field in PEOPLE:
                values = [", ".join(filter(None, _family_and_given(name))) for name in story.people(field)]
            elif field == "keywords":
                values = story.keywords
            lines += [f"{FIELDS[field].ris}  - {printable(text, 10_000)}" for text in values]
        lines += ["ER  - ", ""]
    return "\r\n".join(lines)  # as the format prescribes


def _csl(stories: Iterable[Reference]) -> str:
    """Format references as CSL JSON, for Zotero, Pandoc and citeproc."""
    items: list[dict[str, object]] = []
    for story in stories:
        item: dict[str, object] = {"id": story.key, "type": "chapter", "title": story.title}
        for field, value in story.values.items():
            name = FIELDS[field].csl
            if field in PEOPLE:
                item[name] = [_csl_name(person) for person in story.people(field)]
            elif field == "year":
                item[name] = {"date-parts": [[int(value)]]} if re.fullmatch(r"-?\d{1,4}", value) else {"literal": value}
            else:
                item[name] = value
        items.append(item)
    return json.dumps(items, ensure_ascii=False, indent=1) + "\n"


def _csl_name(name: str) -> dict[str, str]:
    family, given = _family_and_given(name)
    return {"family": family, "given": given} if given else {"literal": family}
