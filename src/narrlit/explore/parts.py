"""`narrlit.embed_to_folder`: embed collections larger than the memory into a folder of parts.

A part is embedded and written at once. Its record, with the sizes and digests of its files, is written before the part
gets its final name, so that a truncated or changed part is recognized and embedded again. Processes divide the parts by
number and do not communicate: any number of them can be stopped and restarted at any time.
"""

import json
import logging
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import BaseModel
from tqdm import tqdm

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories, parse_stories
from narrlit.data.rows import DELIMITERS, JSON_SUFFIXES, Layout, Row, RowFile, file_digest, stream_rows
from narrlit.data.schema import FloatArray
from narrlit.data.writers import write_parquet, write_table
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, OptionError, mistake_behind, on_interrupt, reading
from narrlit.explore.collection import languages
from narrlit.explore.embedding_file import check_columns, other_columns, save_vectors
from narrlit.explore.options import PartOptions, columns_file
from narrlit.files import LOCK, atomic_path, check_writable, exclusive
from narrlit.json_records import read_json
from narrlit.models.config import Role
from narrlit.models.coverage import Coverage
from narrlit.optional import require

MANIFEST = "manifest.json"
"""File with the settings and the list of parts."""
RECORDS = "_parts"
"""Folder with a record of each part; readers of data sets skip names that begin with an underscore."""
SUFFIXES = (*JSON_SUFFIXES, *DELIMITERS, ".parquet")
SAMPLE = 1000
"""Number of rows at the beginning of the input in which the text column is looked up."""


class InputFile(NamedTuple):
    """Input file: its path in the file system of the stories, and its size in bytes."""

    path: str
    size: int


class Process(NamedTuple):
    """One of the processes that share the parts: its number, and how many there are."""

    rank: int = 0
    world: int = 1

    def writes(self, part: int) -> bool:
        """Return True if this process writes the part with this number."""
        return part % self.world == self.rank


ALONE = Process()


@dataclass(frozen=True)
class InputPart:
    """Rows of the input that form a part.

    Attributes:
        stop: number of the first row after the part.
        rows: the rows; None if the part is already written, or another process writes it.
    """

    stop: int
    rows: list[Row] | None


@dataclass(frozen=True)
class PartCoverage:
    """Share of the text of a part's stories that the encoder has read.

    Attributes:
        coverage: coverage of the stories.
        limit: maximum length of a text in tokens.
        unit: name of such a text, singular and plural.
    """

    coverage: Coverage
    limit: int
    unit: tuple[str, str]


@dataclass(frozen=True)
class DonePart:
    """Finished part.

    Attributes:
        stop: number of the first row after the part.
        rows: number of rows that were embedded now.
        read: share of their text that was read; None if the part was already written, or another process writes it.
    """

    stop: int
    rows: int
    read: PartCoverage | None


class FileRecord(BaseModel):
    """Size and digest of a file."""

    bytes: int
    sha256: str


class PartRecord(BaseModel):
    """Record of a part: its number of rows, the dimension of its embeddings, and its files by name."""

    rows: int
    dimension: int
    files: dict[str, FileRecord]

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
    drop_invalid: bool = False,
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
        layout: columns of the text.
        drop_invalid: drop and count rows without a text instead of stopping at the first one.
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
    if layout.split is not None or (steps is not None and steps.transductive):
        raise OptionError(
            "`transductive`, `layout.split=lines` and `layout.split=blank-lines` read all stories at once: "
            "name a file, `out=FILE`"
        )
    fitted = encoder.fitted_for([])
    return EmbeddingRun(Path(out), str(stories), fitted, role, layout, drop_invalid, parts).run()


@dataclass(frozen=True)
class EmbeddingRun:
    """Embedding of the rows of files in parts; the fields are the parameters of `embed_to_folder`."""

    folder: Path
    stories: str
    encoder: StoryEncoder
    role: Role | None
    layout: Layout
    drop_invalid: bool
    parts: PartOptions

    def run(self) -> Manifest:
        """Embed the missing parts; the process that finds all parts written completes the manifest.

        Raises:
            DataError: if the input can't be read or a row has no text.
            OptionError: if the folder contains something else, or parts with other settings.
        """
        process = self._process
        with exclusive(self.folder, name=f"{LOCK}-{process.rank}-of-{process.world}"):
            manifest = self._begin()
            self._remove_damaged(process)
            if manifest.complete:
                paths = map(self.path, range(len(manifest.parts)))
                if all(path.exists() for path in paths):
                    say(f"{self.folder}: complete, {counted(len(manifest.parts), 'part')}; nothing to do")
                    return manifest
                manifest = self._write_manifest(Manifest(complete=False, settings=manifest.settings, parts=[]))
            with on_interrupt(f"finished parts are kept in {self.folder}: repeat the command to resume"):
                total = self._embed(self._by_ray() if self.parts.engine == "ray" else self._here())
            return self._finish(manifest, total)

    @cached_property
    def files(self) -> list[InputFile]:
        """Input files, in order."""
        with reading("stories", self.stories, "check the path"):
            infos = _file_infos(self.stories)
        files = []
        for info in infos:
            is_hidden = info.base_name.startswith((".", "_"))
            if info.is_file and not is_hidden and info.path.lower().endswith(SUFFIXES):
                files.append(InputFile(info.path, info.size))
        if not files:
            kinds = ", ".join(SUFFIXES)
            raise DataError(f"{self.stories}: no {kinds} file, which `out=FOLDER` needs; other kinds: `out=FILE.npy`")
        return sorted(files)

    @cached_property
    def sample(self) -> Stories:
        """Stories of the first rows."""
        first_rows = [row for row in islice(self._rows(lambda _: True), SAMPLE) if row is not None]
        if not first_rows:
            raise DataError(f"{self.stories} has no rows; name a file with data in it")
        check_columns([row.value for row in first_rows], self.stories)
        return parse_stories(RowFile(Path(self.stories), first_rows), strict=False, layout=self.layout)

    @cached_property
    def loaded(self) -> StoryEncoder:
        """Encoder of this process, on a GPU of its own if there are several."""
        if torch.cuda.device_count() > 1:
            local_rank = _environment_number("LOCAL_RANK", "SLURM_LOCALID", default=0)
            torch.cuda.set_device(local_rank % torch.cuda.device_count())
        encoder = self.encoder
        if self.role is None:
            encoder.require_one_prompt("embed")
        languages(encoder, [story.text for story in self.sample])
        return encoder

    def path(self, number: int) -> Path:
        """Return the path of a part."""
        return self.folder / f"part-{number:05d}.{self.parts.format}"

    @property
    def _process(self) -> Process:
        """Rank of this process, and number of processes that share the parts."""
        world = _environment_number("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", default=1)
        if world <= 1:
            return Process(0, world)
        return Process(_environment_number("RANK", "SLURM_PROCID", default=0), world)

    def record(self, number: int) -> PartRecord | None:
        """Read the record of a part; return None if there is none, or it is damaged."""
        try:
            return read_json(self._record_path(number), PartRecord, "record", "remove it")
        except DataError:
            return None

    def unfinished(self, process: Process = ALONE) -> Iterator[InputPart]:
        """Read the input in order, and yield its parts, with rows only for those that this process must write."""
        size, stop = self.parts.part_rows, 0
        is_wanted = lru_cache(lambda number: process.writes(number) and not self.path(number).exists())
        rows = self._rows(lambda row: is_wanted(row // size))
        while part := list(islice(rows, size)):
            stop += len(part)
            wanted = [row for row in part if row is not None]  # all or none
            yield InputPart(stop, wanted or None)

    def embed_part(self, part: InputPart) -> DonePart:
        """Embed and write the rows of a part, if it has rows."""
        if part.rows is None:
            return DonePart(part.stop, 0, None)
        return DonePart(part.stop, len(part.rows), self.write(part.stop, part.rows))

    def write(self, stop: int, rows: list[Row]) -> PartCoverage:
        """Embed the rows of a part, up to the row `stop` of the input, and write its files."""
        start, text_column = stop - len(rows), self.sample.columns.get("text") or "text"
        valid_rows: list[Row] = []
        table: list[dict[str, object]] = []
        for number, row in enumerate(rows, start):
            cells = row.value if isinstance(row.value, Mapping) else {"text": row.value}
            if not self.drop_invalid or _is_text(cells.get(text_column)):
                valid_rows.append(row)
                table.append({"row": number, **cells})
        embeddings, coverage = self._embedded(valid_rows)
        self._save(start // self.parts.part_rows, table, embeddings, text_column)
        return PartCoverage(coverage, self.loaded.facts.max_length, self.loaded.facts.unit)

    def _embedded(self, rows: list[Row]) -> tuple[FloatArray, Coverage]:
        """Embed N rows, (N, D), and return the share of their text that was read."""
        if not rows:
            return np.empty((0, self.loaded.dimension), dtype=np.float32), Coverage()
        layout = Layout(self.sample.columns.get("text"))
        parsed = parse_stories(RowFile(Path(self.stories), rows), strict=True, layout=layout)
        stories = self.loaded.prepare(list(parsed))
        return self.loaded.read(stories, [self.role or "story"] * len(stories))

    def _save(self, number: int, table: list[dict[str, object]], embeddings: FloatArray, text: str) -> None:
        """Write the files of a part, and its record before the files get their final names.

        Args:
            number: number of the part.
            table: columns of the N rows.
            embeddings: (N, D) embeddings.
            text: name of the text column.
        """
        path = self.path(number)
        with ExitStack() as names:
            written = {path.name: names.enter_context(atomic_path(path))}
            if self.parts.format == "parquet":
                write_parquet(written[path.name], table, embeddings)
            else:
                others = other_columns(table, text)
                if others:
                    columns = columns_file(path)
                    written[columns.name] = names.enter_context(atomic_path(columns))
                    write_table(written[columns.name], others)
                save_vectors(written[path.name], embeddings)
            files = {}
            for name, temporary in written.items():
                files[name] = FileRecord(bytes=temporary.stat().st_size, sha256=file_digest(temporary))
            record = PartRecord(rows=len(embeddings), dimension=embeddings.shape[1], files=files)
            with atomic_path(self._record_path(number)) as temporary:
                temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def _record_path(self, number: int) -> Path:
        """Return the path of the record of a part."""
        return self.folder / RECORDS / f"{number:05d}.json"

    def _rows(self, wanted: Callable[[int], bool]) -> Iterator[Row | None]:
        """Read all files as one input; `wanted` and None as in `stream_rows`, with row numbers of the whole input."""
        start = 0
        system, _ = _file_system(self.stories)
        for input_file in self.files:
            with system.open_input_file(input_file.path) as file:
                for row in stream_rows(file, Path(input_file.path), wanted, start):
                    start += 1
                    yield row

    def _begin(self) -> Manifest:
        """Read the manifest of the folder, or create it."""
        check_writable(self.folder / MANIFEST)
        settings = self._settings()
        files = list(self.folder.glob("[!._]*"))  # first: another process may be writing the manifest
        if (self.folder / MANIFEST).is_file():
            manifest = read_json(self.folder / MANIFEST, Manifest, "manifest", "name a new folder")
            difference = _first_difference(manifest.settings, settings)
            if difference is None:
                return manifest
            if any(file.name.startswith("part-") for file in files):
                raise OptionError(f"{self.folder} contains embeddings with other {difference}: name a new folder")
        elif files:
            raise OptionError(f"{self.folder} is not empty and has no {MANIFEST}: name a new folder")
        return self._write_manifest(Manifest(complete=False, settings=settings, parts=[]))

    def _settings(self) -> dict[str, object]:
        """Return the settings that determine the embeddings, for the manifest."""
        return {
            **self.encoder.record,
            "inputs": [{"file": Path(file.path).name, "bytes": file.size} for file in self.files],
            "text_column": self.sample.columns.get("text"),
            "role": self.role or "story",
            "drop_invalid": self.drop_invalid,
            "part_rows": self.parts.part_rows,
            "format": self.parts.format,
        }

    def _remove_damaged(self, process: Process) -> None:
        """Remove parts of this process whose files have changed since they were written."""
        for path in sorted(self.folder.glob(f"part-*.{self.parts.format}")):
            number = int(path.stem.removeprefix("part-"))
            if not process.writes(number):
                continue
            record = self.record(number)
            problem = "it has no record" if record is None else record.problem(self.folder)
            if problem is not None:
                say(f"{path} is damaged ({problem}): embedded again")
                path.unlink()

    def _embed(self, parts: Iterator[DonePart]) -> int:
        """Show progress while parts are finished; return the number of rows of the input."""
        total, coverage, last = 0, Coverage(), None
        with tqdm(desc="embedding", unit="story", delay=0.5) as bar:
            for part in parts:
                total = max(total, part.stop)
                bar.update(part.rows)
                if part.read is not None:
                    coverage, last = coverage + part.read.coverage, part.read
        if last is not None:
            say_truncated(coverage, last.limit, *last.unit)
        return total

    def _here(self) -> Iterator[DonePart]:
        """Embed the parts of this process."""
        for part in self.unfinished(self._process):
            yield self.embed_part(part)

    def _by_ray(self) -> Iterator[DonePart]:
        """Embed the parts with Ray Data: one task reads them, workers embed and write them.

        Ray's own readers are not used, because they convert the id "007" to a number and some texts to dates; nor is
        its writer, which can't resume after an interruption. Ray passes the work of a lost worker to another.
        """
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_BACKEND_LOG_LEVEL="fatal")
        ray, data = require("ray", "ray"), require("ray.data", "ray")
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        logging.getLogger("ray.data").setLevel("ERROR")
        context = data.DataContext.get_current()
        context.enable_progress_bars, context.target_max_block_size = False, 1  # a part is a block, however small
        resources = _resources_of_worker(ray.cluster_resources(), self.parts.workers)
        run = replace(
            self,
            folder=self.folder.absolute(),  # workers have another working directory
            stories=self.stories if "://" in self.stories else str(Path(self.stories).absolute()),
            encoder=self.encoder.for_worker(),
        )

        def parts(_: Any) -> Iterator[dict[str, object]]:
            """Read the missing parts."""
            for part in run.unfinished():
                yield {"part": [pickle.dumps(part)]}

        try:
            pool = data.ActorPoolStrategy(size=self.parts.workers)
            rows_of_parts = data.from_items([0]).map_batches(parts, batch_size=1)
            done = rows_of_parts.map_batches(
                _Worker, fn_constructor_args=(run,), batch_size=1, compute=pool, **resources
            )
            for row in done.iter_rows():
                yield pickle.loads(row["done"])  # noqa: S301  (what the worker has just written)
        except Exception as error:
            raise mistake_behind(getattr(error, "cause", error)) or error from error
        finally:
            ray.shutdown()

    def _finish(self, manifest: Manifest, total: int) -> Manifest:
        """Complete the manifest if all parts are there."""
        count = -(-total // self.parts.part_rows)
        parts, dimension = self._written_parts(count)
        missing = count - len(parts)
        if missing:
            say(f"{self.folder}: {missing} of {counted(count, 'part')} are missing: other processes write them")
            return manifest
        rows = sum(part.rows for part in parts)
        completed = {"complete": True, "rows": rows, "dimension": dimension, "parts": parts}
        manifest = self._write_manifest(manifest.model_copy(update=completed))
        for leftover in self.folder.glob(".*part-*"):  # temporary files of killed processes
            leftover.unlink(missing_ok=True)
        dropped = f"; left out {counted(total - rows, 'row')} without a text" if rows < total else ""
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


class _Worker:
    """Ray worker that embeds parts; it loads the model once."""

    def __init__(self, run: EmbeddingRun) -> None:
        self.run = run

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, object]:
        """Embed a part, unless it is already written."""
        part = pickle.loads(batch["part"][0])  # noqa: S301  (what the reading task has just written)
        return {"done": [pickle.dumps(self.run.embed_part(part))]}


def _environment_number(*names: str, default: int) -> int:
    """Return the number in the first of some environment variables that is set and not empty."""
    for name in names:
        value = os.environ.get(name)
        if value:
            return int(value)
    return default


def _first_difference(earlier: Mapping[str, object], settings: Mapping[str, object]) -> str | None:
    """Name the first setting that has changed, with both values for messages; return None if there is none."""
    for name in {**earlier, **settings}:
        there, now = earlier.get(name), settings.get(name)
        if there != now:
            return name if name == "inputs" else f"{name} ({name}: {there} there, {now} now)"
    return None


def _resources_of_worker(cluster: Mapping[str, float], workers: int) -> dict[str, float]:
    """Return the resources of a Ray worker: a GPU or, without GPUs, a share of all processors but the reading one."""
    if cluster.get("GPU", 0):
        return {"num_gpus": 1}
    processors = max((cluster.get("CPU", 0) - 1) / workers, 0.1)
    return {"num_cpus": int(processors) if processors > 1 else processors}


def _is_text(value: object) -> bool:
    """Return True for text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _file_infos(stories: str) -> list[Any]:
    """List a file, the files of a folder, or the files that match a pattern, at a path or an address."""
    system, path = _file_system(stories)
    if has_magic(path) and not Path(path).exists():
        return list(system.get_file_info(glob(path)))  # noqa: PTH207  (Path.glob takes no absolute pattern)
    infos = system.get_file_info([path])
    if infos[0].is_file:
        return list(infos)
    return list(system.get_file_info(require("pyarrow.fs", "parquet").FileSelector(path)))


def _file_system(stories: str) -> tuple[Any, str]:
    """Return the file system of a path or an address, and the path within it."""
    fs = require("pyarrow.fs", "parquet")
    system, path = fs.FileSystem.from_uri(stories) if "://" in stories else (fs.LocalFileSystem(), stories)
    return system, path
