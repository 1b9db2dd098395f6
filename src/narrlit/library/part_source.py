"""Input of `narrlit.embed_to_folder` and `narrlit.VectorTable`: files that are read and embedded in parts.

Ray's own readers are not used, because they convert the id "007" to a number and some texts to dates.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from narrlit.data.readers import Stories, parse_stories
from narrlit.data.row_file import DELIMITERS, JSON_SUFFIXES, FileRow, RowFile
from narrlit.data.rows import Layout, stream_rows
from narrlit.data.schema import FloatArray
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, reading
from narrlit.library.collection import languages
from narrlit.library.embedding_file import check_columns
from narrlit.models.config import Role
from narrlit.models.coverage import Coverage
from narrlit.optional import require

SUFFIXES = (*JSON_SUFFIXES, *DELIMITERS, ".parquet")
SAMPLE = 1000
"""Number of rows at the beginning of the input in which the text column is looked up."""


class InputFile(NamedTuple):
    """Input file: its path in the file system of the stories, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class InputPart:
    """Rows of the input that form a part.

    Attributes:
        number: number of the part, from 0.
        stop: number of the first row after the part.
        rows: the rows; None if the part is already written, or another process writes it.
    """

    number: int
    stop: int
    rows: list[FileRow] | None


@dataclass(frozen=True, eq=False)
class EmbeddedPart:
    """Embedded rows of a part, N of them valid; none of a part that was not to be embedded.

    Attributes:
        number: number of the part, from 0.
        stop: number of the first row after the part.
        numbers: (N,) numbers of the rows in the input, from 0.
        stories: the N stories with all columns; None if N is 0.
        embeddings: (N, D) embeddings.
        dropped: number of rows without a text.
        coverage: share of the text that the encoder has read.
        is_new: the part was embedded.
    """

    number: int
    stop: int
    numbers: Sequence[int] = ()
    stories: Stories | None = None
    embeddings: FloatArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    dropped: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    is_new: bool = False

    @property
    def rows(self) -> list[dict[str, object]]:
        """Columns of the N rows, preceded by their numbers."""
        rows: list[dict[str, object]] = []
        values = [] if self.stories is None else self.stories.values
        for number, value in zip(self.numbers, values, strict=True):
            cells = value if isinstance(value, Mapping) else {"text": value}
            rows.append({"row": number, **cells})
        return rows


@dataclass(frozen=True)
class PartSource:
    """Stories of files, read as one input and embedded in parts.

    Attributes:
        stories: a file, a folder, a glob pattern or an address in an object store (s3://, gs://).
        encoder: encoder of the stories.
        role: role whose prompt precedes each story; None: the encoder must have one prompt for all.
        layout: columns of the stories, and whether rows without a text are refused.
        part_rows: number of rows per part.
    """

    stories: str
    encoder: StoryEncoder
    role: Role | None
    layout: Layout
    part_rows: int

    @cached_property
    def files(self) -> list[InputFile]:
        """Input files, in order."""
        with reading("unreadable_stories", self.stories):
            infos = _file_infos(self.stories)
        files = []
        for info in infos:
            is_hidden = info.base_name.startswith((".", "_"))
            if info.is_file and not is_hidden and info.path.lower().endswith(SUFFIXES):
                files.append(InputFile(info.path, info.size))
        if not files:
            raise DataError("no_file_of_parts", path=self.stories, suffixes=SUFFIXES)
        return sorted(files)

    @cached_property
    def sample(self) -> Stories:
        """Stories of the first rows."""
        first_rows = [row for row in islice(self._rows(lambda _: True), SAMPLE) if row is not None]
        if not first_rows:
            raise DataError("no_rows", path=self.stories)
        sample = parse_stories(RowFile(Path(self.stories), first_rows), strict=False, layout=self.layout)
        check_columns(sample.values, self.stories)
        return sample

    @cached_property
    def loaded(self) -> StoryEncoder:
        """Encoder of this process, on a GPU of its own if there are several."""
        import torch  # searches, which import this module, need none

        if torch.cuda.device_count() > 1:
            local_rank = environment_number("LOCAL_RANK", "SLURM_LOCALID", default=0)
            torch.cuda.set_device(local_rank % torch.cuda.device_count())
        encoder = self.encoder
        if self.role is None:
            encoder.require_one_prompt("embed")
        languages(encoder, [story.text for story in self.sample])
        return encoder

    @property
    def text_column(self) -> str:
        """Column of the texts."""
        return self.sample.columns.get("text") or "text"

    def settings(self) -> dict[str, object]:
        """Return the settings that determine the embeddings and their parts."""
        return {
            **self.encoder.record,
            "inputs": [{"file": Path(file.path).name, "bytes": file.size} for file in self.files],
            "text_column": self.sample.columns.get("text"),
            "role": self.role or "story",
            "strict": self.layout.strict,
            "part_rows": self.part_rows,
        }

    def parts(self, is_wanted: Callable[[int], bool]) -> Iterator[InputPart]:
        """Read the input in order, and yield its parts, with rows only for those whose numbers are wanted."""
        size, stop = self.part_rows, 0
        is_wanted = lru_cache(is_wanted)
        rows = self._rows(lambda row: is_wanted(row // size))
        while part := list(islice(rows, size)):
            number, stop = stop // size, stop + len(part)
            wanted = [row for row in part if row is not None]  # all or none
            yield InputPart(number, stop, wanted or None)

    def embed(self, part: InputPart) -> EmbeddedPart:
        """Embed the rows of a part, if it has rows."""
        if part.rows is None:
            return EmbeddedPart(part.number, part.stop)
        start = part.stop - len(part.rows)
        valid_rows, numbers = [], []
        for row_number, row in enumerate(part.rows, start):
            cells = row.value if isinstance(row.value, Mapping) else {"text": row.value}
            if self.layout.strict or _is_text(cells.get(self.text_column)):
                valid_rows.append(row)
                numbers.append(row_number)
        stories, embeddings, coverage = self._embedded(valid_rows)
        dropped = len(part.rows) - len(numbers)
        return EmbeddedPart(part.number, part.stop, numbers, stories, embeddings, dropped, coverage, is_new=True)

    def for_worker(self) -> "PartSource":
        """Return this source for another process, which may have another working directory and loads the weights."""
        is_address = "://" in self.stories
        stories = self.stories if is_address else str(Path(self.stories).absolute())
        return replace(self, stories=stories, encoder=self.encoder.for_worker())

    def _embedded(self, rows: list[FileRow]) -> tuple[Stories | None, FloatArray, Coverage]:
        """Embed N rows, (N, D), and return their stories and the share of their text that was read."""
        if not rows:
            return None, np.empty((0, self.loaded.dimension), dtype=np.float32), Coverage()
        layout = Layout(self.sample.columns.get("text"), self.layout.id_column, self.layout.title_column)
        parsed = parse_stories(RowFile(Path(self.stories), rows), strict=True, layout=layout)
        stories = self.loaded.prepare(list(parsed))
        embeddings, coverage = self.loaded.read(stories, [self.role or "story"] * len(stories))
        return parsed, embeddings, coverage

    def _rows(self, wanted: Callable[[int], bool]) -> Iterator[FileRow | None]:
        """Read all files as one input; `wanted` and None as in `stream_rows`, with row numbers of the whole input."""
        start = 0
        system, _ = _file_system(self.stories)
        for input_file in self.files:
            with system.open_input_file(input_file.path) as file:
                for row in stream_rows(file, Path(input_file.path), wanted, start):
                    start += 1
                    yield row


@dataclass(frozen=True)
class MissingParts:
    """Parts of an input that this process must embed; workers of Ray get a copy of it.

    Attributes:
        source: the stories.
        written: numbers of the parts that are written.
        rank: number of this process.
        world: number of processes that share the parts by their numbers, and do not communicate.
    """

    source: PartSource
    written: frozenset[int] = frozenset()
    rank: int = 0
    world: int = 1

    def is_missing(self, number: int) -> bool:
        """Return True if this process must embed the part with this number."""
        return number % self.world == self.rank and number not in self.written

    def __iter__(self) -> Iterator[InputPart]:
        """Read the input in order, and yield all of its parts, with rows for the missing ones."""
        return self.source.parts(self.is_missing)

    def for_worker(self) -> "MissingParts":
        """Return these parts for another process, which may have another working directory."""
        return replace(self, source=self.source.for_worker())


def environment_number(*names: str, default: int) -> int:
    """Return the number in the first of some environment variables that is set and not empty."""
    for name in names:
        value = os.environ.get(name)
        if value:
            return int(value)
    return default


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
