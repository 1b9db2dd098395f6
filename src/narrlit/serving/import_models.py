"""Records of imports, on disk and in answers."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from narrlit.encoding.options import Loading
from narrlit.serving.bodies import RequestBody
from narrlit.serving.messages import Message

FileKind = Literal["text", "document", "table", "metadata", "archive", "unknown"]
ImportStatus = Literal["reading", "ready", "embedding", "paused", "done", "failed"]


class ChosenColumns(RequestBody):
    """Columns of a table that hold text, title and id; None: there is none."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = None
    title: str | None = None
    id: str | None = None


class StoryPreview(BaseModel):
    """Beginning of a story."""

    id: str
    title: str
    words: int
    characters: int | None = None
    beginning: str


class FileAnswer(BaseModel):
    """File of an import, as it was understood.

    Attributes:
        name: name with which it was uploaded, with folders.
        kind: text or document, which is one story; table; metadata, a table of columns for other files.
        stories: number of stories.
        words: number of words.
        characters: number of characters, by which a length is told in scripts without spaces; null in others.
        languages: number of its stories by language, as ISO code; of a sample, if there are many.
        columns: columns of a table.
        chosen: columns of text, title and id.
        warnings: what the reader of the page should look at.
        preview: first stories.
        skipped: the file is left out.
    """

    name: str
    kind: FileKind = "unknown"
    stories: int = 0
    words: int = 0
    characters: int | None = None
    languages: dict[str, int] = {}
    columns: list[str] = []
    chosen: ChosenColumns = ChosenColumns()
    warnings: list[Message] = []
    preview: list[StoryPreview] = []
    skipped: bool = False


class FileRecord(FileAnswer):
    """File of an import, as it is recorded.

    Attributes:
        number: number of the file, which names it on disk.
        stored: name of its copy in the folder `uploads`; None: there is none.
        is_read: it was read, or can't be.
        problem: why it can't be read.
        notes: notes on how it was read.
        wanted: columns that were chosen by hand.
    """

    number: int
    stored: str | None = None
    is_read: bool = False
    problem: Message | None = None
    notes: list[Message] = []
    wanted: ChosenColumns | None = None

    @property
    def has_rows(self) -> bool:
        """True if rows were read from it."""
        return self.problem is None and self.kind not in ("unknown", "archive")

    @property
    def is_story(self) -> bool:
        """True if the whole file is one story."""
        return self.kind in ("text", "document")

    def answer(self) -> FileAnswer:
        """Return the file without what is only recorded."""
        fields = {name: getattr(self, name) for name in FileAnswer.model_fields}
        return FileAnswer.model_construct(**fields)  # not validated again: an import may have thousands of files


class Amount(BaseModel):
    """Number of stories and words."""

    stories: int = 0
    words: int = 0


class ImportAnswer(BaseModel):
    """Import of files into a collection.

    Attributes:
        id: id of the import.
        name: proposed name of the collection.
        status: what is happening.
        files: files in the order of their names.
        files_read: number of files that have been opened, while the import is read.
        stories: number of stories of all files.
        words: number of words of all files.
        collection: collection that the stories are added to.
        done: what is embedded.
        latest: titles of some stories that were embedded last.
        seconds_left: estimate of the time that is left; None: not known.
        message: status in a sentence.
        problem: why the import has failed.
    """

    id: str
    name: str
    status: ImportStatus
    files: Sequence[FileAnswer] = []
    files_read: int = 0
    stories: int = 0
    words: int = 0
    collection: str | None = None
    done: Amount = Amount()
    latest: Sequence[str] = ()
    seconds_left: float | None = None
    message: str = ""
    problem: Message | None = None


class ImportRecord(BaseModel):
    """Import as it is recorded in import.json.

    Attributes:
        id: id of the import.
        name: proposed name of the collection.
        status: what is happening.
        files: files in the order in which they came.
        collection: collection that the stories are added to.
        done: what was embedded when the record was written.
        latest: titles of some stories that were embedded last.
        message: status in a sentence.
        problem: why the import has failed.
        source: file or folder from which the server took the files itself.
    """

    id: str
    name: str
    status: ImportStatus = "reading"
    files: list[FileRecord] = []
    collection: str | None = None
    done: Amount = Amount()
    latest: Sequence[str] = ()
    message: str = ""
    problem: Message | None = None
    source: str | None = None

    @property
    def unread_files(self) -> list[FileRecord]:
        """Files that are still to be read."""
        return [file for file in self.files if not file.is_read]

    @property
    def used_files(self) -> list[FileRecord]:
        """Files that are not left out."""
        return [file for file in self.files if not file.skipped]

    @property
    def amount(self) -> Amount:
        """Number of stories and words of all files that are not left out."""
        stories = sum(file.stories for file in self.used_files)
        words = sum(file.words for file in self.used_files)
        return Amount(stories=stories, words=words)

    def answer(self, seconds_left: float | None = None) -> ImportAnswer:
        """Return the import without what is only recorded."""
        amount = self.amount
        files = [file.answer() for file in self.files if file.kind != "archive"]
        return ImportAnswer(
            id=self.id,
            name=self.name,
            status=self.status,
            files=sorted(files, key=lambda file: file.name),
            files_read=sum(file.is_read for file in self.files if file.kind != "archive"),
            stories=amount.stories,
            words=amount.words,
            collection=self.collection,
            done=self.done,
            latest=self.latest,
            seconds_left=seconds_left,
            message=self.message,
            problem=self.problem,
        )


class ImportChanges(RequestBody):
    """Corrections of an import before its stories are embedded.

    Attributes:
        columns: columns of text, title and id, of all tables or by the name of a file.
        skip: names of the files that are left out.
        name: name of the collection.
    """

    columns: ChosenColumns | dict[str, ChosenColumns] | None = None
    skip: list[str] | None = None
    name: Annotated[str, Field(max_length=80)] | None = None


class StartBody(RequestBody):
    """Name of the collection that the stories are added to; None: the proposed one."""

    collection: str | None = None


class ReadJob(BaseModel):
    """Files for the process that reads them, and its limits.

    Attributes:
        folder: folder of the import.
        files: numbers, names and copies of the files.
        most_bytes: memory beyond what the process has at its start.
        most_unpacked: bytes of all files in archives.
        most_files: number of files in archives.
        most_rows: number of rows of a file.
    """

    folder: str
    files: list[FileRecord]
    most_bytes: int
    most_unpacked: int
    most_files: int
    most_rows: int


class UnpackedFile(BaseModel):
    """File of an archive, and the name of its copy."""

    name: str
    stored: str


class ReadResult(BaseModel):
    """Result of reading one file, as the reading process reports it."""

    number: int
    kind: FileKind = "unknown"
    notes: list[Message] = []
    problem: Message | None = None
    unpacked: list[UnpackedFile] = []


class EmbedJob(BaseModel):
    """Stories for the process that embeds them."""

    stories: str
    index: str
    model: str
    loading: Loading


class EmbedReport(BaseModel):
    """Progress or failure of the process that embeds stories."""

    done: Amount | None = None
    latest: Sequence[str] = ()
    problem: Message | None = None


class RowRecord(BaseModel):
    """Row of a file."""

    line: int
    value: Any
