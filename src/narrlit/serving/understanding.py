"""Description of the files of an import: stories, columns of tables, and warnings before they are embedded."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from narrlit.console import counted
from narrlit.data.documents.division import titles_inside
from narrlit.data.joining import FileNames, described_files
from narrlit.data.readers import Stories, counts, parse_stories
from narrlit.data.row_file import FileRow, RowFile
from narrlit.data.rows import Layout
from narrlit.data.schema import normal_form, normal_text
from narrlit.errors import NarrlitError, printable
from narrlit.library.story_frame import RESERVED
from narrlit.preprocessing.languages import detect_languages
from narrlit.preprocessing.words import num_characters, num_words
from narrlit.serving.import_models import ChosenColumns, FileRecord, ImportRecord, RowRecord, StoryPreview
from narrlit.serving.messages import Message, message_of

PREVIEWED = 5
BEGINNING = 240
"""Characters of a story in a preview."""
SHORT, LONG = 30, 20_000
"""Words below and above which a story is worth a look."""
RowCells = Mapping[str, object]
"""RowCells of a row, by the names of their columns."""


@dataclass(frozen=True)
class FoundStory:
    """Story of an import.

    Attributes:
        id: id in the collection.
        title: title, may be empty.
        text: text.
        metadata: values of the other columns.
    """

    id: str
    title: str
    text: str
    metadata: RowCells = field(default_factory=dict)

    @property
    def words(self) -> int:
        """Number of words."""
        return num_words(self.text)

    @property
    def row(self) -> dict[str, object]:
        """The story as a row of stories.jsonl."""
        return {"id": self.id, "title": self.title, "text": self.text, **self.metadata}


@dataclass(frozen=True, eq=False)
class FoundFile:
    """File with its stories.

    Attributes:
        record: what is recorded of it.
        stories: its stories.
    """

    record: FileRecord
    stories: Sequence[FoundStory] = ()


@dataclass(frozen=True)
class Descriptions:
    """Files of an import as its tables describe them.

    Attributes:
        cells: cells of each file by column, by its name.
        warnings: what to look at in each table that describes files, by the number of the table.
    """

    cells: Mapping[str, RowCells]
    warnings: Mapping[int, list[Message]]


def understand(folder: Path, record: ImportRecord) -> ImportRecord:
    """Describe the files of an import by the rows that were read from them.

    Args:
        folder: folder of the import.
        record: the import, whose files have been read.
    """
    files = [_described(found) for found in found_files(folder, record.files)]
    return record.model_copy(update={"files": files})


def collected(folder: Path, record: ImportRecord) -> Iterator[FoundStory]:
    """Yield the stories of all files that are not left out; every id is unique."""
    for found in found_files(folder, record.files):
        if not found.record.skipped:
            yield from found.stories


def found_files(folder: Path, records: Sequence[FileRecord]) -> Iterator[FoundFile]:
    """Read the rows of files again, give each story a unique id, and add the columns of tables that describe files."""
    descriptions = _descriptions(folder, records)
    top = _common_folder([record.name for record in records if record.kind != "archive"])
    taken: Counter[str] = Counter()
    for record in records:
        found = _found(folder, record, descriptions, top)
        stories = found.stories
        if record.is_story:
            stories = [_with_cells(story, descriptions.cells.get(record.name, {})) for story in stories]
        ids = Counter() if record.skipped else taken  # a file that is left out takes no ids from others
        stories, warnings = _unique(stories, ids)
        described = found.record.model_copy(update={"warnings": [*found.record.warnings, *warnings]})
        yield FoundFile(described, stories)


def _descriptions(folder: Path, records: Sequence[FileRecord]) -> Descriptions:
    """Find the tables that describe other files of an import."""
    names = FileNames(record.name for record in records if record.is_story)
    cells: dict[str, RowCells] = {}
    warnings: dict[int, list[Message]] = {}
    for record in records:
        wanted = record.wanted or ChosenColumns()
        if record.kind not in ("table", "metadata") or wanted.text is not None or not record.has_rows:
            continue
        try:
            columns = {"title": wanted.title, "id": wanted.id}
            described = described_files(Path(), record.name, _rows(folder, record).rows, names, columns)
        except NarrlitError as error:
            warnings[record.number] = [message_of(error)]
            continue
        if described.is_table:
            warnings[record.number] = list(map(message_of, described.notes))
            if not record.skipped:
                cells |= described.cells
    return Descriptions(cells, warnings)


def _common_folder(names: Sequence[str]) -> str:
    """Return the folder in which all files are, with `/` at its end; empty if there is none."""
    tops = {name.partition("/")[0] for name in names}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""


def _found(folder: Path, record: FileRecord, descriptions: Descriptions, top: str) -> FoundFile:
    """Find the stories of one file."""
    if not record.has_rows:
        problems = [] if record.problem is None else [record.problem]
        return FoundFile(record.model_copy(update={"warnings": problems}))
    rows = _rows(folder, record)
    if record.is_story:
        return _document(record, rows, top)
    found = record.model_copy(update={"columns": rows.columns})
    if record.number in descriptions.warnings:
        warnings = descriptions.warnings[record.number]
        described = {"kind": "metadata", "warnings": warnings, "chosen": record.wanted or ChosenColumns()}
        return FoundFile(found.model_copy(update=described))
    return _table_of_stories(found.model_copy(update={"kind": "table"}), rows)


def _rows(folder: Path, record: FileRecord) -> RowFile:
    """Return the rows of a file, as they were read."""
    rows = []
    with (folder / "rows" / f"{record.number:05d}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = RowRecord.model_validate(json.loads(line))
            rows.append(FileRow(row.line, row.value))
    return RowFile(Path(record.name), rows)


def _document(record: FileRecord, rows: RowFile, top: str) -> FoundFile:
    """Take a file as one story, whose id is the path of the file in the folder of all."""
    [row] = rows.rows
    text = str(row.value.get("text", ""))
    path = PurePosixPath(record.name.removeprefix(top)).with_suffix("")
    story = FoundStory(str(path), str(row.value.get("title") or ""), text)
    warnings = [note for note in record.notes if note.code not in ("one_story", "several_stories_inside")]
    warnings += _warnings_of_text(text)
    return FoundFile(record.model_copy(update={"warnings": warnings}), [story])


def _table_of_stories(found: FileRecord, rows: RowFile) -> FoundFile:
    """Take the rows of a file as stories, by the columns that were chosen, or else by their names."""
    wanted = found.wanted or ChosenColumns()
    try:
        stories = parse_stories(rows, strict=False, layout=Layout(wanted.text, wanted.id, wanted.title))
    except NarrlitError as error:
        problem = message_of(error)
        return FoundFile(found.model_copy(update={"warnings": [problem], "chosen": wanted}))
    columns = stories.columns
    chosen = ChosenColumns(text=columns.get("text"), title=columns.get("title"), id=columns.get("id"))
    warnings = [*found.notes, *_warnings_of_rows(stories)]
    return FoundFile(found.model_copy(update={"chosen": chosen, "warnings": warnings}), _stories_of(found, stories))


def _stories_of(record: FileRecord, stories: Stories) -> list[FoundStory]:
    """Return the stories of a table; one without an id is named by the file and its number."""
    stem = PurePosixPath(record.name).stem
    found = []
    rows = zip(stories, stories.ids, stories.titles, stories.metadata, strict=True)
    for number, (story, id, title, cells) in enumerate(rows, start=1):
        found.append(FoundStory(id or f"{stem}-{number}", title or "", story.source_text, _metadata(cells)))
    return found


def _with_cells(story: FoundStory, cells: RowCells) -> FoundStory:
    """Add the cells of a table that describes files to the story of a file."""
    others = dict(cells)
    others.pop("text", None)
    title = str(others.pop("title", "") or story.title)
    id = str(others.pop("id", "") or story.id)
    return replace(story, id=id, title=title, metadata=_metadata(others))


def _metadata(cells: RowCells) -> dict[str, object]:
    """Return cells by names that columns of an index may have."""
    return {_column_name(name): value for name, value in cells.items()}


def _unique(stories: Sequence[FoundStory], taken: Counter[str]) -> tuple[list[FoundStory], list[Message]]:
    """Number ids that occur before; also return a warning about them."""
    unique = []
    repeated = []
    for story in stories:
        own_id = id = normal_form(story.id)
        while id in taken:
            taken[own_id] += 1
            id = f"{own_id} ({taken[own_id]})"
        if id != own_id:
            repeated.append(own_id)
        taken[id] += 1
        unique.append(replace(story, id=id))
    if not repeated:
        return unique, []
    n, first = len(repeated), printable(repeated[0], 40)
    message = f"{counted(n, 'id')} occur more than once, such as {first}: a number is added"
    return unique, [Message(message=message, code="repeated_ids", values={"n": n, "id": first})]


def _column_name(name: str) -> str:
    """Return a name that a column of an index may have.

    >>> _column_name("author.name"), _column_name("rank"), _column_name("_")
    ('author name', 'rank_', 'column')
    """
    cleaned = name.replace(".", " ").replace("`", "'").strip().lstrip("_") or "column"
    return f"{cleaned}_" if cleaned in RESERVED else cleaned


def _described(found: FoundFile) -> FileRecord:
    """Count the stories of a file and show the first ones."""
    texts = [story.text for story in found.stories]
    characters = list(map(num_characters, texts))
    languages = detect_languages(texts)
    preview = []
    for story in found.stories[:PREVIEWED]:
        beginning = printable(story.text, BEGINNING)
        title = story.title or story.id
        preview.append(
            StoryPreview(
                id=story.id,
                title=title,
                words=story.words,
                characters=num_characters(story.text),
                beginning=beginning,
            )
        )
    changes = {
        "stories": len(texts),
        "words": sum(story.words for story in found.stories),
        "characters": None if None in characters else sum(filter(None, characters)) or None,
        "languages": dict(languages),
        "preview": preview,
    }
    return found.record.model_copy(update=changes)


def _warnings_of_rows(stories: Stories) -> list[Message]:
    """Warn of odd rows of a table."""
    report = stories.report
    warnings = []
    if report.dropped:
        dropped = sum(report.dropped.values())
        message = f"{counted(dropped, 'row')} left out: {counts(report.dropped)}"
        warnings.append(Message(message=message, code="left_out_rows", values={"n": dropped}))
    if report.suspicious:
        suspicious = sum(report.suspicious.values())
        message = f"look at the encoding: {counts(report.suspicious)}"
        warnings.append(Message(message=message, code="wrong_characters", values={"n": suspicious}))
    texts = [story.text for story in stories]
    warnings += _warnings_of_lengths(list(map(num_words, texts)))
    copies = len(texts) - len(set(map(normal_text, texts)))
    if copies:
        message = f"{counted(copies, 'story')} with the text of another one"
        warnings.append(Message(message=message, code="same_text", values={"n": copies}))
    return warnings


def _warnings_of_lengths(lengths: Sequence[int]) -> list[Message]:
    """Warn of stories with very few or very many words."""
    short = sum(length < SHORT for length in lengths)
    long = sum(length > LONG for length in lengths)
    warnings = []
    if short:
        message = f"{counted(short, 'story')} with fewer than {SHORT} words"
        warnings.append(Message(message=message, code="short_stories", values={"n": short, "words": SHORT}))
    if long:
        message = f"{counted(long, 'story')} with more than {LONG:,} words: a part would compare better"
        warnings.append(Message(message=message, code="long_stories", values={"n": long, "words": LONG}))
    return warnings


def _warnings_of_text(text: str) -> list[Message]:
    """Warn of the text of a file that is very short or long, or has titles of several stories."""
    warnings = _warnings_of_lengths([num_words(text)])
    titles = titles_inside(text)
    if titles:
        named = "; ".join(titles[:3])
        message = f"may hold several stories ({named}): if it does, make a file of each"
        warnings.append(Message(message=message, code="several_stories", values={"titles": named}))
    return warnings
