"""Process that reads uploaded files, with limits of memory, so that no file can harm the server.

python -m narrlit.serving.reading_worker
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from narrlit.data.row_file import DOCUMENT_SUFFIXES, TEXT_SUFFIXES
from narrlit.data.rows import read_rows
from narrlit.data.sources import archive_names, is_hidden
from narrlit.data.writers import write_rows
from narrlit.errors import DataError, NarrlitError, reason
from narrlit.optional import require
from narrlit.serving.import_models import FileKind, FileRecord, ReadJob, ReadResult, UnpackedFile
from narrlit.serving.messages import Message, hide, message_of
from narrlit.serving.uploads import clean_name, stored_name
from narrlit.serving.worker_process import receive_job, send_line

ARCHIVE = ".zip"
SIGNATURES = {**dict.fromkeys((".docx", ".odt", ".xlsx", ".epub", ARCHIVE), b"PK"), ".pdf": b"%PDF", ".rtf": b"{\\rtf"}
"""First bytes of files, whatever their names say."""
MOST_EXPANDED = 256 * 2**20
"""Bytes of a document after it is unpacked."""
MOST_PARTS = 20_000
"""Files in a document, which is an archive."""
COPY_BYTES = 2**20


def main() -> None:
    """Read the files of a job, and report each."""
    job = ReadJob.model_validate_json(receive_job())
    folder = Path(job.folder)
    _import_readers(job.files)
    _limit_memory(job.most_bytes)
    for file in job.files:
        send_line(_read(folder, file, job).model_dump_json())


def _read(folder: Path, file: FileRecord, job: ReadJob) -> ReadResult:
    """Read a file, or unpack an archive; a file that can't be read is reported with the problem."""
    path = folder / "uploads" / str(file.stored)
    try:
        _check_content(path)
        if path.suffix == ARCHIVE:
            return ReadResult(number=file.number, kind="archive", unpacked=_unpack(path, file, job))
        rows = read_rows(path)
        _check_rows(path, len(rows.rows), job.most_rows)
        values = [{"line": row.line, "value": row.value} for row in rows.rows]
        write_rows(folder / "rows" / f"{file.number:05d}.jsonl", values)
    except NarrlitError as error:
        return ReadResult(number=file.number, problem=hide(message_of(error), {str(path): file.name}))
    except Exception as error:  # noqa: BLE001  (of any library, for any content)
        cause = reason(error)
        problem = Message(message=f"{file.name} can't be read: {cause}", code="unreadable", values={"reason": cause})
        return ReadResult(number=file.number, problem=problem)
    return ReadResult(number=file.number, kind=_kind(path), notes=list(map(message_of, rows.notes)))


def _kind(path: Path) -> FileKind:
    if path.suffix in TEXT_SUFFIXES:
        return "text"
    return "document" if path.suffix in DOCUMENT_SUFFIXES else "table"


def _check_rows(path: Path, rows: int, most: int) -> None:
    if rows > most:
        raise DataError("too_many_rows", path=path, rows=rows, limit=most)


def _check_content(path: Path) -> None:
    """Check that a file is what its suffix says, and that a document does not grow when it is unpacked."""
    signature = SIGNATURES.get(path.suffix)
    if signature is None:
        return
    with path.open("rb") as opened:
        beginning = opened.read(1024)
    if signature not in beginning:
        raise DataError("wrong_type", path=path, type=path.suffix[1:])
    if signature == b"PK" and path.suffix != ARCHIVE:
        _check_expansion(path)


def _check_expansion(path: Path) -> None:
    """Refuse a document that is much larger inside (a zip bomb)."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    size = _size(parts)
    if size > MOST_EXPANDED or len(parts) > MOST_PARTS:
        raise DataError("large_inside", path=path, bytes=size, limit=MOST_EXPANDED)


def _unpack(path: Path, file: FileRecord, job: ReadJob) -> list[UnpackedFile]:
    """Copy the files of an archive; archives in it are not unpacked."""
    with zipfile.ZipFile(path) as archive:
        parts = _parts(archive)
        size = _size(parts.values())
        if len(parts) > job.most_files:
            raise DataError("many_files_inside", path=path, files=len(parts), limit=job.most_files)
        if size > job.most_unpacked:
            raise DataError("large_inside", path=path, bytes=size, limit=job.most_unpacked)
        unpacked = []
        for number, (name_inside, part) in enumerate(parts.items(), start=1):
            name = clean_name(f"{file.name.removesuffix(ARCHIVE)}/{name_inside}")
            stored = stored_name(number, name)
            if stored is None or PurePosixPath(stored).suffix == ARCHIVE:
                unpacked.append(UnpackedFile(name=name, stored=""))
                continue
            stored = f"{file.number:05d}-{stored}"
            _copy(archive, part, path.parent / stored)
            unpacked.append(UnpackedFile(name=name, stored=stored))
    job.most_unpacked -= size
    job.most_files -= len(parts)
    return unpacked


def _parts(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files of an archive that are not left out, by their names."""
    files = [part for part in archive.infolist() if not part.is_dir()]
    named = zip(archive_names(files), files, strict=True)
    return {name: part for name, part in named if not is_hidden(clean_name(name))}


def _size(parts: Iterable[zipfile.ZipInfo]) -> int:
    """Number of bytes of files after they are unpacked."""
    return sum(part.file_size for part in parts)


def _copy(archive: zipfile.ZipFile, part: zipfile.ZipInfo, target: Path) -> None:
    """Copy a file of an archive; zipfile reads no more bytes than the archive declares."""
    if part.flag_bits & 1:
        raise DataError("encrypted", path=str(archive.filename))
    with archive.open(part) as source, target.open("wb") as copy:
        while block := source.read(COPY_BYTES):
            copy.write(block)


def _import_readers(files: list[FileRecord]) -> None:
    """Import what reads documents before memory is limited."""
    suffixes = {Path(str(file.stored)).suffix for file in files}
    try:
        if suffixes & set(DOCUMENT_SUFFIXES):
            for module in ("mammoth", "lxml.html", "pdfminer.high_level", "striprtf.striprtf"):
                require(module, "documents")
        if ".xlsx" in suffixes:
            require("openpyxl", "documents")
    except NarrlitError:
        return  # reported with each file


def _limit_memory(most_bytes: int) -> None:
    """Limit the memory of this process to what it has and a number of bytes, if the system can."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + most_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return  # not Linux: only the time is limited


if __name__ == "__main__":
    main()
