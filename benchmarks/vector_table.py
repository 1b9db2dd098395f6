"""Vector tables: time and memory to write, room on disk, time of a search with and without a vector index.

    python benchmarks/vector_table.py --stories 10000 --stories 100000 --stories 1000000

Stories of about 120 words are joined from five passages of StoryWorld. Each plot is told twenty times, with half of its
passages replaced. minilm embeds each different passage once; a story's vector is the mean of its passages' vectors,
because embedding a million stories takes hours. Each phase runs in a process of its own, whose peak memory contains
that of the libraries (`--stories 1` measures it).
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from indexing import passage_pool

import narrlit
from narrlit.data.schema import FloatArray
from narrlit.encoding.story_encoder import Passages, unit_vectors
from narrlit.library import vector_table_writing
from narrlit.library.arrow_columns import vector_array
from narrlit.library.options import TableOptions
from narrlit.library.story_frame import VECTOR
from narrlit.library.vector_table import VectorTable
from narrlit.library.vector_table_writing import ROW, TableWriter

PASSAGES_PER_STORY = 5
TELLINGS = 20
NEAREST = 10
T = TypeVar("T")


@dataclass(frozen=True)
class Searches:
    """Searches of a table in a new process.

    Attributes:
        first_seconds: time to open the table and to find the first results.
        median_milliseconds: median time of the other searches.
        p95_milliseconds: 95th percentile of their times.
        memory_megabytes: peak memory of the process.
        rows: rows of the ten best stories for each query.
    """

    first_seconds: float
    median_milliseconds: float
    p95_milliseconds: float
    memory_megabytes: float
    rows: list[list[int]]


@dataclass(frozen=True)
class Figures:
    """What a vector table costs.

    Attributes:
        stories: number of stories.
        writing_seconds: time to commit all parts, and to merge their files.
        writing_megabytes: peak memory of the process that writes.
        disk_gigabytes: room of the table on disk.
        exhaustive: searches without a vector index.
        indexing_seconds: time to make the vector index.
        indexing_megabytes: peak memory of the process that makes it.
        index_gigabytes: room of the vector index on disk.
        indexed: searches with the vector index.
        recall: share of the ten best stories that a search with the vector index finds.
    """

    stories: int
    writing_seconds: float
    writing_megabytes: float
    disk_gigabytes: float
    exhaustive: Searches
    indexing_seconds: float
    indexing_megabytes: float
    index_gigabytes: float
    indexed: Searches
    recall: float


def vectors_and_rows(pool: Passages, count: int, generator: np.random.Generator) -> tuple[FloatArray, Any]:
    """Draw stories: their unit vectors (N, D), and the rows of their passages in the pool (N, S)."""
    plots = generator.integers(len(pool.texts), size=(-(-count // TELLINGS), PASSAGES_PER_STORY))
    plot_of_story = plots.repeat(TELLINGS, axis=0)[:count]
    others = generator.integers(len(pool.texts), size=plot_of_story.shape)
    rows = np.where(generator.random(plot_of_story.shape) < 0.5, plot_of_story, others)
    return unit_vectors(pool.vectors[rows].mean(axis=1)), rows


def parts(pool: Passages, count: int, part_rows: int) -> Iterator[pa.Table]:
    """Make the rows of each part of a table."""
    generator = np.random.default_rng(count)
    for start in range(0, count, part_rows):
        stop = min(start + part_rows, count)
        vectors, rows = vectors_and_rows(pool, stop - start, generator)
        texts = [" ".join(pool.texts[row] for row in story) for story in rows]
        ids = [str(row + 1) for row in range(start, stop)]
        columns = {
            "id": pa.array(ids),
            "title": pa.array([""] * len(ids)),
            "text": pa.array(texts),
            ROW: pa.array(range(start, stop), pa.int64()),
            VECTOR: vector_array(vectors),
        }
        yield pa.table(columns)


def write(address: str, pool: Passages, count: int) -> tuple[float, float]:
    """Write a table without a vector index; return the seconds that it takes, and the peak memory in MB."""
    vector_table_writing.INDEXED_FROM = count + 1
    part_rows = TableOptions().part_rows
    writer = TableWriter(address, VectorTable(address)._table, part_rows)
    seconds = 0.0
    for number, rows in enumerate(parts(pool, count, part_rows)):
        began = time.perf_counter()
        writer.commit(number, rows)
        seconds += time.perf_counter() - began
    began = time.perf_counter()
    writer.finish()
    return seconds + time.perf_counter() - began, peak_megabytes()


def make_index(address: str) -> tuple[float, float]:
    """Make the vector index; return the seconds that it takes, and the peak memory in MB."""
    vector_table_writing.INDEXED_FROM = 1
    writer = TableWriter(address, VectorTable(address)._table, TableOptions().part_rows)
    began = time.perf_counter()
    writer.finish()
    return time.perf_counter() - began, peak_megabytes()


def search(address: str, queries: FloatArray) -> Searches:
    """Search a table by vectors (Q, D)."""
    began = time.perf_counter()
    table = VectorTable(address)
    table._nearest(queries[0], NEAREST, None)
    first_seconds = time.perf_counter() - began
    times, rows = [], []
    for query in queries[1:]:
        began = time.perf_counter()
        results = table._nearest(query, NEAREST, None)
        times.append(1000 * (time.perf_counter() - began))
        rows.append(results[ROW].astype(int).tolist())
    median, p95 = np.percentile(times, [50, 95]).tolist()
    return Searches(first_seconds, median, p95, peak_megabytes(), rows)


def peak_megabytes() -> float:
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def alone(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def disk_gigabytes(folder: str) -> float:
    """Return the room of the newest version of a table on disk, in GB."""
    time.sleep(2)
    table = VectorTable(f"file://{folder}")._table
    table.optimize(cleanup_older_than=timedelta(seconds=1))
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e9


def measure(count: int, pool: Passages, num_queries: int, model: str) -> Figures:
    """Make a table of some size, and measure what it costs."""
    generator = np.random.default_rng(0)
    queries, _ = vectors_and_rows(pool, num_queries + 1, generator)
    with tempfile.TemporaryDirectory() as folder:
        # One embedded story, which makes the table and is removed again.
        path = Path(folder, "one.csv")
        path.write_text("text\nA knight seeks a grail.\n", encoding="utf-8")
        place = f"{folder}/table"
        address = f"file://{place}"
        VectorTable.create(address, path, model)._table.delete("true")
        writing_seconds, writing_megabytes = alone(write, address, pool, count)
        disk = disk_gigabytes(place)
        exhaustive = alone(search, address, queries)
        indexing_seconds, indexing_megabytes = alone(make_index, address)
        index_size = disk_gigabytes(place) - disk
        indexed = alone(search, address, queries)
    recalls = []
    for best, rows in zip(exhaustive.rows, indexed.rows, strict=True):
        recalls.append(len(set(best) & set(rows)) / NEAREST)
    return Figures(
        stories=count,
        writing_seconds=writing_seconds,
        writing_megabytes=writing_megabytes,
        disk_gigabytes=disk,
        exhaustive=exhaustive,
        indexing_seconds=indexing_seconds,
        indexing_megabytes=indexing_megabytes,
        index_gigabytes=index_size,
        indexed=indexed,
        recall=float(np.mean(recalls)),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures of each size, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, action="append", help="number of stories (10,000, 100,000, 1,000,000)")
    parser.add_argument("--triples", type=int, default=20, help="triples of StoryWorld whose passages are joined")
    parser.add_argument("--queries", type=int, default=100, help="number of searches")
    parser.add_argument("--model", default="minilm", help="model of the passages")
    parser.add_argument("--out", help="JSON file")
    options = parser.parse_args(argv)
    os.environ["HF_HUB_OFFLINE"] = "1"
    pool = passage_pool(narrlit.load(options.model, cache=None), options.triples)
    figures = []
    for count in options.stories or (10_000, 100_000, 1_000_000):
        row = asdict(measure(count, pool, options.queries, options.model))
        for searches in (row["exhaustive"], row["indexed"]):
            del searches["rows"]
        figures.append(row)
        print(json.dumps(row, indent=2), flush=True)
        if options.out:
            Path(options.out).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
