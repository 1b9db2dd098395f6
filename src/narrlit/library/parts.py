"""`narrlit.embed_to_folder`: embed collections larger than the memory into a folder of parts.

A part is embedded and written at once. Its record, with the sizes and digests of its files, is written before the part
gets its final name, so that a truncated or changed part is recognized and embedded again. Processes divide the parts by
number and do not communicate: any number of them can be stopped and restarted at any time.
"""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from narrlit.console import counted, say
from narrlit.data.rows import Layout, file_digest
from narrlit.data.writers import write_parquet, write_table
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, OptionError
from narrlit.files import LOCK, atomic_path, check_writable, exclusive
from narrlit.json_records import changed_settings, read_json
from narrlit.library.embedding_file import other_columns, save_vectors
from narrlit.library.embedding_in_parts import PartTotals, embed_in_parts
from narrlit.library.options import PartOptions, columns_file
from narrlit.library.part_source import EmbeddedPart, PartSource, environment_number
from narrlit.models.config import Role
from narrlit.optional import require

MANIFEST = "manifest.json"
"""File with the settings and the list of parts."""
RECORDS = "_parts"
"""Folder with a record of each part; readers of data sets skip names that begin with an underscore."""


class FileDigest(BaseModel):
    """Size and digest of a file."""

    bytes: int
    sha256: str


class PartRecord(BaseModel):
    """Record of a part: its number of rows, the dimension of its embeddings, and its files by name."""

    rows: int
    dimension: int
    files: dict[str, FileDigest]

    def problem(self, folder: Path) -> str | None:
        """Describe how the files of the part differ from those that were written; return None if they do not."""
        for name, file in self.files.items():
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != file.bytes:
                return f"{name} has {path.stat().st_size:,} of {file.bytes:,} bytes"
            if file_digest(path) != file.sha256:
                return f"the digest of {name} differs"
        return None


class PartFile(BaseModel):
    """File of a part, with its number of rows, its size and its digest."""

    file: str
    rows: int
    bytes: int
    sha256: str


class Manifest(BaseModel):
    """Contents of the manifest.

    Attributes:
        complete: all parts are written.
        settings: settings that determine the embeddings, and the input files with their sizes.
        rows: number of embeddings; None until all parts are written.
        dimension: dimension of the embeddings; None until all parts are written.
        parts: files with embeddings, in order; empty until all parts are written.
    """

    complete: bool
    settings: dict[str, object]
    rows: int | None = None
    dimension: int | None = None
    parts: list[PartFile]


def embed_to_folder(
    stories: str | Path,
    out: str | Path,
    encoder: StoryEncoder,
    *,
    role: Role | None = None,
    layout: Layout = Layout(),
    parts: PartOptions = PartOptions(),
) -> Manifest:
    r"""Embed any number of stories in parts; an interruption loses one part at most.

    Repeat the call to resume. Processes started by torchrun or srun divide the parts among them.

    Args:
        stories: JSON Lines, CSV or Parquet: a file, a folder, a glob pattern or an address in an object store (s3://,
            gs://).
        out: folder to write; new, or started with the same settings.
        encoder: encoder from `narrlit.load`; without a cache, embeddings are stored in the parts only.
        role: role whose prompt precedes each story, for models with separate prompts for anchors and candidates.
        layout: columns of the text, and whether a row without a text is left out or refused.
        parts: size, format and workers of the parts.

    Returns:
        The `Manifest`: `.complete`, `.rows`, `.dimension`, `.parts`. It is incomplete while other processes still write
        parts.

    Raises:
        DataError: if the input can't be read or a row has no text.
        OptionError: if the folder contains something else, or parts with other settings.

    >>> import narrlit
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "stories.csv").write_text("text\nA knight seeks a grail.\nA diver seeks a pearl.\n")
    >>> manifest = embed_to_folder(folder / "stories.csv", folder / "vectors", narrlit.load("minilm"))
    >>> manifest.complete, manifest.rows, [part.file for part in manifest.parts]
    (True, 2, ['part-00000.parquet'])
    """
    steps = encoder.postprocessing
    if layout.split != "none" or (steps is not None and steps.transductive):
        raise OptionError("whole_files_in_parts")
    if parts.engine == "ray":
        require("ray", "ray")  # which includes what reads the files
    source = PartSource(str(stories), encoder.fitted_for([]), role, layout, parts.part_rows)
    return PartFolder.of_process(Path(out), parts.format).fill(source, parts)


@dataclass(frozen=True)
class PartFolder:
    """Folder of parts, which several processes share by the numbers of the parts.

    Attributes:
        folder: the folder.
        format: format of the parts.
        rank: number of this process.
        world: number of processes.
    """

    folder: Path
    format: Literal["parquet", "npy"]
    rank: int = 0
    world: int = 1

    @classmethod
    def of_process(cls, folder: Path, format: Literal["parquet", "npy"]) -> "PartFolder":
        """Return a folder for this process, as torchrun or srun number it."""
        world = environment_number("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", default=1)
        rank = environment_number("RANK", "SLURM_PROCID", default=0) if world > 1 else 0
        return cls(folder, format, rank, world)

    def fill(self, source: PartSource, options: PartOptions) -> Manifest:
        """Embed the missing parts; the process that finds all parts written completes the manifest.

        Raises:
            DataError: if the input can't be read or a row has no text.
            OptionError: if the folder contains something else, or parts with other settings.
        """
        with exclusive(self.folder, name=f"{LOCK}-{self.rank}-of-{self.world}"):
            manifest = self._begin({**source.settings(), "format": self.format})
            self._remove_damaged()
            if manifest.complete:
                paths = map(self.path, range(len(manifest.parts)))
                if all(path.exists() for path in paths):
                    say(f"{self.folder}: complete, {counted(len(manifest.parts), 'part')}; nothing to do")
                    return manifest
                manifest = self._write_manifest(Manifest(complete=False, settings=manifest.settings, parts=[]))
            totals = embed_in_parts(source, self, options, self.rank, self.world)
            return self._finish(manifest, totals)

    def path(self, number: int) -> Path:
        """Return the path of a part."""
        return self.folder / f"part-{number:05d}.{self.format}"

    @property
    def place(self) -> str:
        """Path of the folder."""
        return str(self.folder)

    def written(self) -> frozenset[int]:
        """Return the numbers of the parts in the folder."""
        return frozenset(number_of(path) for path in self.folder.glob(f"part-*.{self.format}"))

    def record(self, number: int) -> PartRecord | None:
        """Read the record of a part; return None if there is none, or it is damaged."""
        try:
            return read_json(self._record_path(number), PartRecord, "broken_record_of_part")
        except DataError:
            return None

    def write(self, part: EmbeddedPart) -> None:
        """Write the files of a part, and its record before the files get their final names."""
        path, rows = self.path(part.number), part.rows
        with ExitStack() as names:
            written = {path.name: names.enter_context(atomic_path(path))}
            if self.format == "parquet":
                write_parquet(written[path.name], rows, part.embeddings)
            else:
                others = other_columns(
                    rows, "text" if part.stories is None else part.stories.columns.get("text", "text")
                )
                if others:
                    columns = columns_file(path)
                    written[columns.name] = names.enter_context(atomic_path(columns))
                    write_table(written[columns.name], others)
                save_vectors(written[path.name], part.embeddings)
            files = {}
            for name, temporary in written.items():
                files[name] = FileDigest(bytes=temporary.stat().st_size, sha256=file_digest(temporary))
            record = PartRecord(rows=len(rows), dimension=part.embeddings.shape[1], files=files)
            with atomic_path(self._record_path(part.number)) as temporary:
                temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def _record_path(self, number: int) -> Path:
        """Return the path of the record of a part."""
        return self.folder / RECORDS / f"{number:05d}.json"

    def _begin(self, settings: dict[str, object]) -> Manifest:
        """Read the manifest of the folder, or create it with these settings."""
        check_writable(self.folder / MANIFEST)
        files = list(self.folder.glob("[!._]*"))  # first: another process may be writing the manifest
        if (self.folder / MANIFEST).is_file():
            manifest = read_json(self.folder / MANIFEST, Manifest, "broken_manifest")
            changes = changed_settings(manifest.settings, settings)
            if not changes:
                return manifest
            if any(file.name.startswith("part-") for file in files):
                raise OptionError("other_embeddings", folder=self.folder, change=changes[0])
        elif files:
            raise OptionError("folder_without_manifest", folder=self.folder, manifest=MANIFEST)
        return self._write_manifest(Manifest(complete=False, settings=settings, parts=[]))

    def _remove_damaged(self) -> None:
        """Remove parts of this process whose files have changed since they were written."""
        for path in sorted(self.folder.glob(f"part-*.{self.format}")):
            number = number_of(path)
            if number % self.world != self.rank:
                continue
            record = self.record(number)
            problem = "it has no record" if record is None else record.problem(self.folder)
            if problem is not None:
                say(f"{path} is damaged ({problem}): embedded again")
                path.unlink()

    def _finish(self, manifest: Manifest, totals: PartTotals) -> Manifest:
        """Complete the manifest if all parts are there."""
        parts, dimension = self._written_parts(totals.parts)
        missing = totals.parts - len(parts)
        if missing:
            say(f"{self.folder}: {missing} of {counted(totals.parts, 'part')} are missing: other processes write them")
            return manifest
        rows = sum(part.rows for part in parts)
        completed = {"complete": True, "rows": rows, "dimension": dimension, "parts": parts}
        manifest = self._write_manifest(manifest.model_copy(update=completed))
        for leftover in self.folder.glob(".*part-*"):  # temporary files of killed processes
            leftover.unlink(missing_ok=True)
        dropped = f"; left out {counted(totals.rows - rows, 'row')} without a text" if rows < totals.rows else ""
        embeddings = f"{counted(rows, 'embedding')} of {dimension} dimensions"
        say(f"{self.folder}: {embeddings} in {counted(len(parts), 'part')}{dropped}")
        return manifest

    def _written_parts(self, count: int) -> tuple[list[PartFile], int]:
        """List the written parts among the first `count`, and return the dimension of their embeddings."""
        parts, dimension = [], 0
        for number in range(count):
            path, record = self.path(number), self.record(number)
            if record is None or not path.exists():
                continue
            file = record.files[path.name]
            parts.append(PartFile(file=path.name, rows=record.rows, bytes=file.bytes, sha256=file.sha256))
            dimension = record.dimension
        return parts, dimension

    def _write_manifest(self, manifest: Manifest) -> Manifest:
        """Write the manifest, without fields that were never set, and return it."""
        content = json.dumps(manifest.model_dump(exclude_unset=True), indent=2)
        with atomic_path(self.folder / MANIFEST) as temporary:
            temporary.write_text(f"{content}\n", encoding="utf-8")
        return manifest


def number_of(path: Path) -> int:
    """Return the number of a part, by its file."""
    return int(path.stem.removeprefix("part-"))
