"""What the files of an import are: stories, tables with columns, and what to look at before they are embedded."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from narrlit.console import counted
from narrlit.data.readers import Stories, counts, parse_stories
from narrlit.data.rows import Layout, Row, RowFile
from narrlit.errors import NarrlitError, printable
from narrlit.explore.collection import RESERVED
from narrlit.preprocessing.languages import detect_languages
from narrlit.serving.import_models import ChosenColumns, FileRecord, ImportRecord, RowRecord, StoryPreview

PREVIEWED = 5
BEGINNING = 240
"""Characters of a story in a preview."""
FILE_NAME = "file_name"
"""Column with which a table describes other files."""
SHORT, LONG = 30, 20_000
"""Words below and above which a story is worth a look."""
TITLE_CHARACTERS, TITLE_WORDS = 60, 8
"""Most characters and words of a line that may be the title of another story."""
WORDS_BETWEEN = 60
"""Words between two titles of stories."""


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
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self.text.split())

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
        cells: for a table of columns for other files, the cells of each by its file name.
    """

    record: FileRecord
    stories: Sequence[FoundStory] = ()
    cells: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def understand(folder: Path, record: ImportRecord) -> ImportRecord:
    """Describe the files of an import by the rows that were read from them.

    Args:
        folder: folder of the import.
        record: the import, whose files have been read.
    """
    files = []
    for found in found_files(folder, record.files):
        files.append(_described(found))
    return record.model_copy(update={"files": files})


def collected(folder: Path, record: ImportRecord) -> Iterator[FoundStory]:
    """Yield the stories of all files that are not left out; every id is unique."""
    for found in found_files(folder, record.files):
        if not found.record.skipped:
            yield from found.stories


def found_files(folder: Path, records: Sequence[FileRecord]) -> Iterator[FoundFile]:
    """Read the rows of files again, give each story a unique id, and add the columns of tables that describe files."""
    cells: dict[str, Mapping[str, object]] = {}
    for record in records:
        if not record.skipped:
            cells |= _columns_of_files(folder, record)
    taken: Counter[str] = Counter()
    for record in records:
        found = _found(folder, record)
        stories = [_with_cells(story, record, cells) for story in found.stories]
        stories, warnings = _unique(stories, Counter() if record.skipped else taken)
        described = record.model_copy(update={"warnings": [*found.record.warnings, *warnings]})
        kept = {"kind": found.record.kind, "columns": found.record.columns, "chosen": found.record.chosen}
        yield FoundFile(described.model_copy(update=kept), stories, found.cells)


def _columns_of_files(folder: Path, record: FileRecord) -> dict[str, Mapping[str, object]]:
    """Return the cells of a table for other files, by the names of these."""
    return dict(_found(folder, record).cells) if record.kind in ("table", "metadata") else {}


def _found(folder: Path, record: FileRecord) -> FoundFile:
    """Find the stories of one file."""
    if not record.has_rows:
        problems = [] if record.problem is None else [record.problem]
        return FoundFile(record.model_copy(update={"warnings": problems}))
    rows = _rows(folder, record)
    if record.kind in ("text", "document"):
        return _document(record, rows)
    return _table(record, rows)


def _rows(folder: Path, record: FileRecord) -> RowFile:
    """Return the rows of a file, as they were read."""
    rows = []
    with (folder / "rows" / f"{record.number:05d}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = RowRecord.model_validate(json.loads(line))
            rows.append(Row(row.line, row.value))
    return RowFile(Path(record.name), rows, tuple(record.notes))


def _document(record: FileRecord, rows: RowFile) -> FoundFile:
    """Take a file as one story, whose id is the name of the file."""
    [row] = rows.rows
    text = str(row.value.get("text", ""))
    stem = PurePosixPath(record.name).stem
    story = FoundStory(stem, str(row.value.get("title") or ""), text)
    warnings = [note for note in record.notes if "not one per line" not in note]
    warnings += _warnings_of_text(text)
    return FoundFile(record.model_copy(update={"warnings": warnings}), [story])


def _table(record: FileRecord, rows: RowFile) -> FoundFile:
    """Take the rows of a file as stories, by its columns; or as columns of other files."""
    columns = rows.columns
    if FILE_NAME in columns and record.wanted is None:
        cells = {}
        for row in rows.rows:
            name = str(row.value.get(FILE_NAME) or "")
            hidden = (FILE_NAME, "text")
            cells[name] = {key: cell for key, cell in row.value.items() if key not in hidden and cell not in (None, "")}
        if cells.keys() - {""}:
            found = record.model_copy(update={"kind": "metadata", "columns": columns, "warnings": []})
            return FoundFile(found, cells=cells)
    wanted = record.wanted or ChosenColumns()
    found = record.model_copy(update={"kind": "table", "columns": columns})
    try:
        stories = parse_stories(rows, strict=False, layout=Layout(wanted.text, wanted.id, wanted.title))
    except NarrlitError as error:
        message = printable(error, 300).replace("`layout.text` names another", "choose another")
        return FoundFile(found.model_copy(update={"warnings": [message], "chosen": wanted}))
    chosen = ChosenColumns(**{role: stories.columns.get(role) for role in ("text", "title", "id")})
    warnings = [*record.notes, *_warnings_of_rows(stories)]
    return FoundFile(found.model_copy(update={"chosen": chosen, "warnings": warnings}), _stories_of(record, stories))


def _stories_of(record: FileRecord, stories: Stories) -> list[FoundStory]:
    """Return the stories of a table; one without an id is named by the file and its number."""
    stem = PurePosixPath(record.name).stem
    found = []
    rows = zip(stories, stories.ids, stories.titles, stories.metadata, strict=True)
    for number, (story, id, title, metadata) in enumerate(rows, start=1):
        cells = {_column_name(name): value for name, value in metadata.items()}
        found.append(FoundStory(id or f"{stem}-{number}", title or "", story.source_text, cells))
    return found


def _with_cells(story: FoundStory, record: FileRecord, cells: Mapping[str, Mapping[str, object]]) -> FoundStory:
    """Add the columns of a table that describes files to the story of a file."""
    if record.kind not in ("text", "document"):
        return story
    path = PurePosixPath(record.name)
    row = dict(cells.get(path.name) or cells.get(path.stem) or {})
    title = str(row.pop("title", "") or story.title)
    id = str(row.pop("id", "") or story.id)
    return replace(story, id=id, title=title, metadata={_column_name(name): value for name, value in row.items()})


def _unique(stories: Sequence[FoundStory], taken: Counter[str]) -> tuple[list[FoundStory], list[str]]:
    """Number ids that occur before; also return a warning about them."""
    unique = []
    repeated = []
    for story in stories:
        id = story.id
        while id in taken:
            taken[story.id] += 1
            id = f"{story.id} ({taken[story.id]})"
        if id != story.id:
            repeated.append(story.id)
        taken[id] += 1
        unique.append(replace(story, id=id))
    if not repeated:
        return unique, []
    first = printable(repeated[0], 40)
    return unique, [f"{counted(len(repeated), 'id')} occur more than once, such as {first}: a number is added"]


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
    languages = detect_languages(texts).most_common(1)
    preview = []
    for story in found.stories[:PREVIEWED]:
        beginning = printable(story.text, BEGINNING)
        title = story.title or story.id
        preview.append(StoryPreview(id=story.id, title=title, words=story.words, beginning=beginning))
    changes = {
        "stories": len(texts),
        "words": sum(story.words for story in found.stories),
        "language": languages[0][0] if languages else None,
        "preview": preview,
    }
    return found.record.model_copy(update=changes)


def _warnings_of_rows(stories: Stories) -> list[str]:
    """Say what is odd about the rows of a table."""
    report = stories.report
    warnings = []
    if report.dropped:
        warnings.append(f"{counted(sum(report.dropped.values()), 'row')} left out: {counts(report.dropped)}")
    if report.suspicious:
        warnings.append(f"look at the encoding: {counts(report.suspicious)}")
    lengths = [len(story.text.split()) for story in stories]
    warnings += _warnings_of_lengths(lengths)
    texts = Counter(story.text for story in stories)
    copies = sum(count - 1 for count in texts.values())
    if copies:
        warnings.append(f"{counted(copies, 'story')} with the text of another one")
    return warnings


def _warnings_of_lengths(lengths: Iterable[int]) -> list[str]:
    counted_lengths = list(lengths)
    short = sum(length < SHORT for length in counted_lengths)
    long = sum(length > LONG for length in counted_lengths)
    warnings = []
    if short:
        warnings.append(f"{counted(short, 'story')} with fewer than {SHORT} words")
    if long:
        warnings.append(f"{counted(long, 'story')} with more than {LONG:,} words: a part would compare better")
    return warnings


def _warnings_of_text(text: str) -> list[str]:
    """Say what is odd about the text of a file: its length, or titles of several stories."""
    warnings = _warnings_of_lengths([len(text.split())])
    titles = titles_inside(text)
    if titles:
        named = ", ".join(f"“{title}”" for title in titles[:3])
        warnings.append(f"may hold several stories ({named}): if it does, make a file of each")
    return warnings


def titles_inside(text: str) -> list[str]:
    r"""Find lines that look like titles of further stories: short, between blank lines, with long texts around.

    >>> story = "A king fell ill, and his sons rode out. " * 10
    >>> titles_inside(f"The King\n\n{story}\n\nThe Fox\n\n{story}")
    ['The Fox']
    """
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text)]
    titles = []
    words_before = 0
    for number, block in enumerate(blocks):
        words_after = sum(len(later.split()) for later in blocks[number + 1 : number + 4])
        if _looks_like_title(block) and min(words_before, words_after) >= WORDS_BETWEEN:
            titles.append(block.lstrip("# "))
            words_before = 0
        words_before += len(block.split())
    return titles


def _looks_like_title(block: str) -> bool:
    line = block.lstrip("# ")
    is_short = 0 < len(line) <= TITLE_CHARACTERS and len(line.split()) <= TITLE_WORDS and "\n" not in line
    return is_short and (line[0].isupper() or line[0].isdigit()) and line[-1].isalnum()
