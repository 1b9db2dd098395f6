"""Number formats of an index's vectors: room on disk and in memory, time of a search, and what quantization misses.

    python benchmarks/quantization.py --stories 100000

Vectors have the structure of real ones: each is the embedding of a story of Twice Told or StoryWorld by narrlit-mini,
plus the difference of the embeddings of two tellings of another plot, normalized. Texts are a few words, so that a
story's room is mostly that of its vector. Queries are made like the stories. The measure is `csls`; the ten best
are compared with those of float32, for which all stories are compared.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import get_args

import lancedb
import numpy as np
import pandas as pd
from indexing import memory

import narrlit
from narrlit.data.schema import FloatArray
from narrlit.data.storyworld import StoryWorld
from narrlit.data.twice_told import TwiceTold
from narrlit.encoding.options import CACHE
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.library.index import Index
from narrlit.library.index_record import IndexRecord
from narrlit.library.index_storage import EmbeddedStories, IndexStorage
from narrlit.library.options import SearchOptions, VectorFormat
from narrlit.library.ranking import Query
from narrlit.library.stories_fit import FOLDER
from narrlit.library.story_frame import DIGEST, content_digests, stories_of, story_frame
from narrlit.measures.representations import Contents
from narrlit.models.coverage import Coverage

BATCH = 10_000
QUERIES = 100
OPTIONS = SearchOptions(k=10, measure="csls")


@dataclass(frozen=True)
class Figures:
    """What an index costs whose vectors have one number format.

    Attributes:
        vectors: number format.
        stories: number of stories.
        writing_seconds: time to write all stories and, if vectors are quantized, their index.
        opening_seconds: time to open the index and to find the first results.
        milliseconds: median time to find the ten best stories for a vector.
        recall: share of the ten best stories that are found.
        disk_bytes: room of a story on disk.
        memory_megabytes: memory that opening and searching take.
    """

    vectors: VectorFormat
    stories: int
    writing_seconds: float
    opening_seconds: float
    milliseconds: float
    recall: float
    disk_bytes: float
    memory_megabytes: float


@dataclass(frozen=True)
class Searches:
    """Results of searching an index in a process of its own.

    Attributes:
        opening_seconds: time to open the index and to find the first results.
        milliseconds: median time of a search.
        memory_megabytes: memory that opening and searching take.
        best: ids of the ten best stories for each query.
    """

    opening_seconds: float
    milliseconds: float
    memory_megabytes: float
    best: list[set[str]]


class SyntheticVectors:
    """Vectors with the structure of the embeddings of real stories."""

    def __init__(self, encoder: StoryEncoder, triples: int) -> None:
        """Embed the tellings of Twice Told, and so many triples of StoryWorld."""
        tellings = TwiceTold.read().tellings
        texts = [telling.text for telling in tellings]
        self.versions: dict[str, list[int]] = {}
        for row, telling in enumerate(tellings):
            self.versions.setdefault(telling.plot, []).append(row)
        for number, triple in enumerate(StoryWorld(5).triples(triples)):
            self.versions[f"StoryWorld {number}"] = [len(texts), len(texts) + 1]
            texts += [triple.anchor.text, triple.positive.text]
        self.real = unit_vectors(encoder.embed(texts, progress=True))

    def draw(self, count: int, generator: np.random.Generator) -> FloatArray:
        """Draw unit vectors (count, D)."""
        pairs = []
        plots = list(self.versions.values())
        for plot in generator.integers(len(plots), size=count):
            pairs.append(generator.choice(plots[plot], 2, replace=False))
        first, second = np.array(pairs).T
        stories = self.real[generator.integers(len(self.real), size=count)]
        return unit_vectors(stories + self.real[first] - self.real[second])


def tabulate(count: int) -> pd.DataFrame:
    """Make the table of stories with texts of a few words."""
    stories = stories_of([f"Story {number}" for number in range(count)])
    frame = story_frame(stories)
    return frame.assign(**{DIGEST: content_digests(frame, list(stories))})


def write(
    folder: Path, frame: pd.DataFrame, vectors: FloatArray, encoder: StoryEncoder, number_format: VectorFormat
) -> None:
    """Write an index of stories with these vectors."""
    record = IndexRecord.of(encoder, number_format).model_copy(update={"passages": False})
    IndexStorage.create(folder, frame, record)
    storage = IndexStorage(folder)
    columns = storage.columns(frame)
    for start in range(0, len(vectors), BATCH):
        embedded = EmbeddedStories(vectors[start : start + BATCH], None, Coverage())
        storage.commit(columns.slice(start, BATCH), embedded, replaces=False)
    storage.finish(changed=True)


def search(path: Path, queries: FloatArray) -> Searches:
    """Search an index for the stories nearest to each query (Q, D)."""
    contents = [Query(Contents(vector[None], ["A query."])) for vector in queries]
    before = memory()
    times: list[float] = []
    best = []
    for query in contents:
        began = time.perf_counter()
        if not times:
            index = Index(path)
        stories = index.collection().measured(OPTIONS.measure)
        rows, _ = stories.nearest(query, OPTIONS)
        times.append(time.perf_counter() - began)
        best.append({stories.store.ids[row] for row in rows.tolist()})
    return Searches(times[0], 1000 * median(times[1:]), (memory() - before) / 1e6, best)


def disk_bytes(path: Path) -> int:
    """Return the size of an index, without versions that readers might still have open."""
    time.sleep(2)
    lancedb.connect(path).open_table("stories").optimize(cleanup_older_than=timedelta(seconds=1))
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def measure(vectors: FloatArray, queries: FloatArray, encoder: StoryEncoder) -> list[Figures]:
    """Make an index with each number format, and measure what it costs."""
    figures: list[Figures] = []
    exact: list[set[str]] = []
    frame = tabulate(len(vectors))
    with tempfile.TemporaryDirectory() as folder:
        fits = Path(folder, "fits")
        for number_format in get_args(VectorFormat):
            path = Path(folder, number_format)
            began = time.perf_counter()
            write(path, frame, vectors, encoder, number_format)
            writing_seconds = time.perf_counter() - began
            if fits.exists():
                shutil.copytree(fits, path / FOLDER)
            else:  # the fit is the same for all formats
                Index(path).collection().measured(OPTIONS.measure)
                shutil.copytree(path / FOLDER, fits)
            size = disk_bytes(path) - sum(file.stat().st_size for file in fits.iterdir())
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                searches = process.submit(search, path, queries).result()
            exact = exact or searches.best
            found = [len(best & others) for best, others in zip(exact, searches.best, strict=True)]
            row = Figures(
                vectors=number_format,
                stories=len(vectors),
                writing_seconds=writing_seconds,
                opening_seconds=searches.opening_seconds,
                milliseconds=searches.milliseconds,
                recall=sum(found) / (OPTIONS.k * len(queries)),
                disk_bytes=size / len(vectors),
                memory_megabytes=searches.memory_megabytes,
            )
            print(row, flush=True)
            figures.append(row)
            shutil.rmtree(path)
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures of each number format, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=100_000, help="number of stories (100,000)")
    parser.add_argument("--triples", type=int, default=200, help="triples of StoryWorld that are embedded (200)")
    parser.add_argument("--out", help="JSON file")
    options = parser.parse_args(argv)
    encoder = narrlit.load("narrlit-mini", cache=CACHE)
    source = SyntheticVectors(encoder, options.triples)
    generator = np.random.default_rng(0)
    vectors, queries = source.draw(options.stories, generator), source.draw(QUERIES, generator)
    figures = {row.vectors: asdict(row) for row in measure(vectors, queries, encoder)}
    if options.out:
        Path(options.out).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
