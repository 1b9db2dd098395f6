"""Imports of files into collections, which survive the end of the server at any moment."""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp

from narrlit.console import counted, say
from narrlit.data.schema import normal_form
from narrlit.data.sources import is_hidden
from narrlit.data.writers import write_rows
from narrlit.errors import DataError, NarrlitError
from narrlit.files import atomic_path
from narrlit.json_records import read_json
from narrlit.serving.import_models import (
    Amount,
    ChosenColumns,
    EmbedJob,
    EmbedReport,
    FileRecord,
    ImportAnswer,
    ImportChanges,
    ImportRecord,
    ReadJob,
    ReadResult,
)
from narrlit.serving.messages import Message, message_of
from narrlit.serving.problems import RefusedError, missing
from narrlit.serving.settings import ServerSettings
from narrlit.serving.shelf import NAME, Shelf
from narrlit.serving.understanding import collected, understand
from narrlit.serving.uploads import UPLOAD_SUFFIXES, Upload, stored_name
from narrlit.serving.worker_process import WorkerProcess

FOLDER = "imports"
RECORD, STORIES, UPLOADS, ROWS = "import.json", "stories.jsonl", "uploads", "rows"
NEW = ".new-"
READER, EMBEDDER = "narrlit.serving.reading_worker", "narrlit.serving.embedding_worker"
NO_STORY = "no file has a story: choose the columns of texts, or upload other files"
SAVED_SECONDS = 2
"""Seconds between two records of progress."""


@dataclass
class Pace:
    """Speed of an embedding process.

    Attributes:
        began: time of its first report.
        words: words that were embedded at that time.
    """

    began: float
    words: int

    def seconds_left(self, done: Amount, total: Amount) -> float | None:
        """Estimate the time that is left; None at the beginning."""
        embedded = done.words - self.words
        if embedded <= 0:
            return None
        elapsed = time.monotonic() - self.began
        return (total.words - done.words) * elapsed / embedded


class Imports:
    """Imports of a server. All methods are called by its event loop.

    Attributes:
        folder: folder of the imports.
    """

    def __init__(self, settings: ServerSettings, shelf: Shelf) -> None:
        self.folder = settings.data / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self._settings, self._limits, self._shelf = settings, settings.limits, shelf
        self._records: dict[str, ImportRecord] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._paces: dict[str, Pace] = {}
        self._saved = 0.0
        self._embedding = asyncio.Lock()
        self._embedder: asyncio.Task[WorkerProcess] | None = None
        self._reading = asyncio.Lock()

    # Life ------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the records, and go on with what was interrupted."""
        for path in sorted(self.folder.iterdir()):
            if path.name.startswith(NEW):
                shutil.rmtree(path, ignore_errors=True)
            elif (path / RECORD).is_file():
                self._load(path)
        for record in self._records.values():
            self._continue(record)

    async def close(self) -> None:
        """Stop all work; it goes on at the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._embedder is not None:
            await (await self._embedder).stop()

    def _load(self, path: Path) -> None:
        try:
            record = read_json(path / RECORD, ImportRecord, "broken_import")
        except DataError as error:
            say(f"warning: {error}")
            return
        self._records[record.id] = record

    def _continue(self, record: ImportRecord) -> None:
        if record.status == "reading":
            self._run(record.id, self._read(record.id))
        elif record.status == "embedding":
            self._run(record.id, self._embed(record.id))

    def _run(self, id: str, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine in the background; a mistake or a fault in it becomes the state of the import."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001  (nothing else may end the server's work)
                if id in self._records:
                    self._fail(id, _problem_of(error))

        self._tasks[id] = asyncio.get_running_loop().create_task(guarded())

    async def _stop(self, id: str) -> None:
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # Records ---------------------------------------------------------------------------------------------------------

    def all(self) -> list[ImportAnswer]:
        """Describe the imports, the newest first."""
        return [self.get(id) for id in reversed(self._records)]

    def get(self, id: str) -> ImportAnswer:
        """Describe an import."""
        record = self._record(id)
        pace = self._paces.get(id)
        if pace is None or record.status != "embedding":
            return record.answer()
        return record.answer(pace.seconds_left(record.done, record.amount))

    def writing_to(self, collection: str) -> str | None:
        """Return the id of the import that writes to a collection, or will when it is resumed."""
        for record in self._records.values():
            if record.collection == collection and record.status in ("embedding", "paused"):
                return record.id
        return None

    def _record(self, id: str) -> ImportRecord:
        record = self._records.get(id)
        if record is None:
            raise missing("import", id)
        return record

    def _change(self, id: str, *, save: bool = True, **changes: object) -> ImportRecord:
        """Change the record of an import, in memory and on disk."""
        record = self._record(id).model_copy(update=changes)
        self._records[id] = record
        if save:
            _write_record(self.folder / id, record)
        return record

    def _fail(self, id: str, problem: Message) -> ImportRecord:
        """Record that an import has failed, and why."""
        return self._change(id, status="failed", message=problem.message, problem=problem)

    def _is_due(self) -> bool:
        """Return True if progress was not recorded for some seconds."""
        is_due = time.monotonic() - self._saved > SAVED_SECONDS
        if is_due:
            self._saved = time.monotonic()
        return is_due

    # Files -----------------------------------------------------------------------------------------------------------

    async def receive(self, content_type: str, chunks: AsyncIterator[bytes]) -> ImportAnswer:
        """Take the files of a request, and begin to read them."""
        folder = self._new_folder()
        try:
            files = await Upload(folder / UPLOADS, self._limits.files).receive(content_type, chunks)
            return self._begin(folder, files)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def take(self, source: Path) -> None:
        """Take a file or folder of this machine, and import it into a collection of its name, unless it is there."""
        name = collection_name(source.stem if source.is_file() else source.name)
        sources = {record.source for record in self._records.values()}
        if name in self._shelf.names() or str(source) in sources:
            return
        folder = self._new_folder()
        files = await asyncio.to_thread(_copied, source, folder / UPLOADS)
        self._begin(folder, files, name=name, collection=name, source=str(source))

    def _new_folder(self) -> Path:
        folder = Path(mkdtemp(prefix=NEW, dir=self.folder))
        for name in (UPLOADS, ROWS):
            (folder / name).mkdir()
        return folder

    def _begin(
        self,
        folder: Path,
        files: list[FileRecord],
        *,
        name: str | None = None,
        collection: str | None = None,
        source: str | None = None,
    ) -> ImportAnswer:
        """Record new files, and begin to read them."""
        id = f"{time.strftime('%Y%m%d-%H%M%S')}-{token_hex(3)}"
        proposed = name or proposed_name([file.name for file in files])
        record = ImportRecord(id=id, name=proposed, files=files, collection=collection, source=source)
        _write_record(folder, record)
        folder.rename(self.folder / id)
        self._records[id] = record
        if self._embedder is None:  # it gets ready while the files are read and looked at
            self._embedder = asyncio.get_running_loop().create_task(WorkerProcess.start(EMBEDDER))
        self._run(id, self._read(id))
        return record.answer()

    # Reading ---------------------------------------------------------------------------------------------------------

    async def _read(self, id: str) -> None:
        """Read the files that are not read yet, then describe them; start if the collection was named beforehand."""
        async with self._reading:
            while pending := self._record(id).unread_files:
                self._change(id, message=_files_read(self._record(id).files))
                await self._read_some(id, pending)
            record = await asyncio.to_thread(understand, self.folder / id, self._record(id))
        if record.amount.stories > self._limits.stories:
            stories, limit = record.amount.stories, self._limits.stories
            message = f"{stories:,} stories, but {limit:,} at most are imported at once: leave files out"
            raise RefusedError(413, message, code="too_many_stories", values={"stories": stories, "limit": limit})
        understood = self._set_understood(id, record)
        if understood.status == "ready" and record.collection is not None:
            await self._begin_embedding(id, record.collection)

    def _set_understood(self, id: str, record: ImportRecord) -> ImportRecord:
        """Record what the files are: the import is ready, or has failed if none of them could be read."""
        self._change(id, save=False, files=record.files, name=record.name)
        if not any(file.has_rows for file in record.files):
            return self._fail(id, _nothing_read(record))
        return self._change(id, status="ready", message=_summary(record), problem=None)

    async def _read_some(self, id: str, pending: list[FileRecord]) -> None:
        """Read files in a process until it ends; a file that ends it, or takes too long, counts as read."""
        readable = []
        for file in pending:
            if file.stored is None:
                message = f"{file.name}: files of this type are not read"
                problem = Message(message=message, code="unknown_type")
                self._note(id, ReadResult(number=file.number, problem=problem))
            else:
                readable.append(file)
        if not readable:
            return
        limits = self._limits
        worker = await WorkerProcess.start(READER)
        megabytes, seconds = limits.reading_bytes // 2**20, f"{limits.reading_seconds:g}"
        problem = Message(
            message=f"can't be read with {megabytes:,} MB of memory: it may be damaged",
            code="reading_memory",
            values={"megabytes": megabytes},
        )
        try:
            await worker.send(self._read_job(id, readable).model_dump_json())
            async for line in worker.reports(limits.reading_seconds):
                self._note(id, ReadResult.model_validate_json(line))
        except TimeoutError:
            problem = Message(
                message=f"takes more than {seconds} seconds to read: divide it",
                code="reading_time",
                values={"seconds": seconds},
            )
        finally:
            await worker.stop()
        sent = {file.number for file in readable}
        for file in self._record(id).unread_files:
            if file.number in sent:  # the first one ended the process, those after it are read by another
                named = problem.model_copy(update={"message": f"{file.name} {problem.message}"})
                self._note(id, ReadResult(number=file.number, problem=named))
                return

    def _read_job(self, id: str, files: list[FileRecord]) -> ReadJob:
        return ReadJob(
            folder=str(self.folder / id),
            files=files,
            most_bytes=self._limits.reading_bytes,
            most_unpacked=self._limits.unpacked_bytes,
            most_files=self._limits.files,
            most_rows=self._limits.stories,
        )

    def _note(self, id: str, result: ReadResult) -> None:
        """Record what was found in a file, and the files of an archive."""
        files = list(self._record(id).files)
        for place, file in enumerate(files):
            if file.number == result.number:
                changes = {"is_read": True, "kind": result.kind, "notes": result.notes, "problem": result.problem}
                files[place] = file.model_copy(update=changes)
        last = max(file.number for file in files)
        for number, unpacked in enumerate(result.unpacked, start=last + 1):
            files.append(FileRecord(number=number, name=unpacked.name, stored=unpacked.stored or None))
        is_due = bool(result.unpacked) or self._is_due()
        self._change(id, save=is_due, files=files, message=_files_read(files))

    # Corrections -----------------------------------------------------------------------------------------------------

    async def correct(self, id: str, changes: ImportChanges) -> ImportAnswer:
        """Correct columns, files that are left out, or the name, before the stories are embedded."""
        record = self._record(id)
        if record.status not in ("ready", "failed"):
            raise _not_possible(record, "it can be corrected when it is ready")
        files = [_corrected(file, changes) for file in record.files]
        name = collection_name(changes.name) if changes.name is not None else record.name
        corrected = record.model_copy(update={"files": files, "name": name})
        understood = await asyncio.to_thread(understand, self.folder / id, corrected)
        self._set_understood(id, understood)
        return self.get(id)

    # Embedding -------------------------------------------------------------------------------------------------------

    async def begin(self, id: str, collection: str | None) -> ImportAnswer:
        """Begin to embed the stories of an import."""
        record = self._record(id)
        if record.status not in ("ready", "failed"):
            raise _not_possible(record, "it can be started when it is ready")
        await self._begin_embedding(id, collection or record.name)
        return self.get(id)

    async def _begin_embedding(self, id: str, collection: str) -> None:
        self._shelf.path_of(collection)
        record = self._record(id)
        other = self.writing_to(collection)
        if other not in (None, id):
            message = f"another import adds to {collection}: give another name"
            raise RefusedError(409, message, "collection", code="other_import", values={"name": collection})
        if not record.amount.stories:
            raise RefusedError(400, NO_STORY, "files", code="no_story")
        await asyncio.to_thread(_write_stories, self.folder / id, record)
        self._change(
            id, status="embedding", collection=collection, message="waiting to begin", problem=None, done=Amount()
        )
        self._run(id, self._embed(id))

    async def pause(self, id: str) -> ImportAnswer:
        """Stop to embed; what is embedded is kept."""
        if self._record(id).status != "embedding":
            raise _not_possible(self._record(id), "there is nothing to pause")
        await self._stop(id)
        if self._record(id).status == "embedding":  # it may have ended in this moment
            self._change(id, status="paused", message="paused")
        return self.get(id)

    async def resume(self, id: str) -> ImportAnswer:
        """Go on to embed."""
        record = self._record(id)
        if record.status not in ("paused", "failed") or not (self.folder / id / STORIES).exists():
            raise _not_possible(record, "there is nothing to resume")
        self._change(id, status="embedding", message="waiting to begin", problem=None)
        self._run(id, self._embed(id))
        return self.get(id)

    async def remove(self, id: str) -> None:
        """Stop an import and remove its files; stories that are in the collection stay there."""
        self._record(id)
        await self._stop(id)
        del self._records[id]
        self._paces.pop(id, None)
        await asyncio.to_thread(shutil.rmtree, self.folder / id, ignore_errors=True)

    async def _embed(self, id: str) -> None:
        """Embed the stories of an import in a process, one import at a time."""
        async with self._embedding:
            record = self._record(id)
            index = self._shelf.path_of(str(record.collection))
            settings = self._settings
            stories = str(self.folder / id / STORIES)
            job = EmbedJob(stories=stories, index=str(index), model=settings.model, loading=settings.loading)
            self._change(id, message="loading the model")
            embedder, self._embedder = self._embedder, None
            worker = await (embedder or WorkerProcess.start(EMBEDDER))
            self._paces.pop(id, None)
            try:
                await worker.send(job.model_dump_json())
                async for line in worker.reports():
                    progress = EmbedReport.model_validate_json(line)
                    if progress.problem is not None:
                        problem = progress.problem
                        raise RefusedError(400, problem.message, code=problem.code, values=problem.values)
                    done = progress.done or Amount()
                    self._paces.setdefault(id, Pace(time.monotonic(), done.words))
                    self._change(
                        id,
                        save=self._is_due(),
                        done=done,
                        latest=progress.latest,
                        message=_progress(done, record.amount),
                    )
            finally:
                await asyncio.shield(worker.stop())
        self._finish(id)

    def _finish(self, id: str) -> None:
        """Check that all stories were embedded, and remove the uploaded files."""
        record = self._record(id)
        if record.done.stories < record.amount.stories:
            message = "the process that embeds stories has ended too early: resume the import"
            raise RefusedError(500, message, code="embedding_ended")
        self._change(id, status="done", message=f"{record.done.stories:,} stories are in {record.collection}")
        for name in (UPLOADS, ROWS):
            shutil.rmtree(self.folder / id / name, ignore_errors=True)
        (self.folder / id / STORIES).unlink(missing_ok=True)


def collection_name(text: str) -> str:
    """Turn a text into the name of a collection.

    >>> collection_name("My tales: 1812/1857"), collection_name("...")
    ('My tales 1812 1857', 'stories')
    """
    words = re.sub(r"[^\w .()'-]", " ", normal_form(text)).split()
    name = " ".join(words).strip(" .()'-_")[:80].strip()
    return name if NAME.fullmatch(name) else "stories"


def proposed_name(names: list[str]) -> str:
    """Propose the name of a collection: that of the folder or the only file."""
    folder, separator, _ = names[0].partition("/")
    if separator:
        return collection_name(folder)
    if len(names) == 1:
        return collection_name(Path(names[0]).stem)
    return "stories"


def files_of(source: Path) -> list[Path]:
    """List a file, or the files of a folder and its folders that may have stories.

    Raises:
        DataError: if there are none.
    """
    paths = [source] if source.is_file() else sorted(source.rglob("*"))
    files = []
    for path in paths:
        name = _name_in(source, path)
        if path.is_file() and not is_hidden(name) and stored_name(0, name) is not None:
            files.append(path)
    if not files:
        raise DataError("no_file_to_import", source=source, suffixes=UPLOAD_SUFFIXES)
    return files


def _name_in(source: Path, path: Path) -> str:
    """Return the name of a file with its folders below the source."""
    return path.name if path == source else str(path.relative_to(source))


def _copied(source: Path, folder: Path) -> list[FileRecord]:
    """Copy a file, or the files of a folder."""
    files = []
    for number, path in enumerate(files_of(source), start=1):
        name = _name_in(source, path)
        stored = stored_name(number, name)
        shutil.copyfile(path, folder / str(stored))
        files.append(FileRecord(number=number, name=name, stored=stored))
    return files


def _write_record(folder: Path, record: ImportRecord) -> None:
    with atomic_path(folder / RECORD) as temporary:
        temporary.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _write_stories(folder: Path, record: ImportRecord) -> None:
    """Write the stories of an import for the process that embeds them."""
    rows = [story.row for story in collected(folder, record)]
    write_rows(folder / STORIES, rows)


def _corrected(file: FileRecord, changes: ImportChanges) -> FileRecord:
    """Apply corrections to a file."""
    update: dict[str, object] = {}
    if isinstance(changes.columns, ChosenColumns):
        if file.kind in ("table", "metadata"):
            update["wanted"] = changes.columns
    elif changes.columns is not None and file.name in changes.columns:
        update["wanted"] = changes.columns[file.name]
    if changes.skip is not None:
        update["skipped"] = file.name in changes.skip
    return file.model_copy(update=update)


def _problem_of(error: Exception) -> Message:
    """Describe the error with which the work on an import ended."""
    if isinstance(error, RefusedError):
        return Message(message=error.message, code=error.code, values=dict(error.values))
    if isinstance(error, NarrlitError):
        return message_of(error)
    name = type(error).__name__
    return Message(message=f"unexpected error: {name}", code="unexpected_error", values={"error": name})


def _not_possible(record: ImportRecord, remedy: str) -> RefusedError:
    """Return the refusal of what can't be done with an import now."""
    return RefusedError(409, f"the import is {record.status}: {remedy}", "status", code="import_status")


def _nothing_read(record: ImportRecord) -> Message:
    """Describe why no file of an import could be read, and what to do."""
    suffixes = ", ".join(UPLOAD_SUFFIXES)
    remedy = f"upload other files, which may be {suffixes}"
    problems = [file.problem.message for file in record.files if file.problem is not None]
    if not problems:
        return Message(
            message=f"no file could be read (there is none in the archive): {remedy}",
            code="empty_archive",
            values={"suffixes": suffixes},
        )
    more = f"; {len(problems) - 1:,} more" if len(problems) > 1 else ""
    return Message(
        message=f"no file could be read ({problems[0]}{more}): {remedy}",
        code="nothing_read",
        values={"suffixes": suffixes},
    )


def _summary(record: ImportRecord) -> str:
    amount = record.amount
    if not amount.stories:
        return NO_STORY
    verb = "is" if amount.stories == 1 else "are"
    return f"{counted(amount.stories, 'story')} with {counted(amount.words, 'word')} {verb} ready"


def _files_read(files: Sequence[FileRecord]) -> str:
    read = sum(file.is_read for file in files)
    return f"{read:,} of {counted(len(files), 'file')} read"


def _progress(done: Amount, total: Amount) -> str:
    return f"{done.words:,} of {counted(total.words, 'word')} embedded"
