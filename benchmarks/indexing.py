"""Index of long stories: the time of indexing and searching, what two stages miss, the room on disk and in memory.

    python benchmarks/indexing.py --stories 342 --stories 10000

Stories of about 1,600 words are joined from passages of StoryWorld. Each plot is told twenty times (`--tellings`), with
half of its passages replaced. minilm embeds each different passage once; a story's vector is the mean of its passages'
vectors, as embedding 16 million words takes hours. What `narrlit index` does besides embedding is timed, and its
embedding on some stories (`--embedded`, 20).
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import lancedb
import numpy as np

import narrlit
from narrlit.data.storyworld import StoryWorld
from narrlit.encoding.story_encoder import Passages, StoryEncoder, unit_vectors
from narrlit.library.index import Index
from narrlit.library.index_record import IndexRecord
from narrlit.library.index_storage import EmbeddedStories, IndexStorage
from narrlit.library.options import SearchOptions
from narrlit.library.ranking import MeasuredStories, Query
from narrlit.library.story_frame import DIGEST, content_digests, stories_of, story_frame
from narrlit.measures.collection import CollectionSimilarity
from narrlit.models.coverage import Coverage
from narrlit.preprocessing.passages import split_passages

PASSAGES_PER_STORY = 65
BATCH = 500
QUERIES = 30
NEAREST = 10


@dataclass(frozen=True)
class Figures:
    """What an index of long stories costs.

    Attributes:
        stories: number of stories.
        words: of all stories.
        embedding_words_per_second: of `narrlit index`, by minilm.
        writing_seconds: time to write all stories, join their files and index their words.
        fitting_seconds: time to fit the measure and to find the hubs.
        loading_seconds: time to open the index and to find the first results.
        text_milliseconds: median time to find the stories for a passage of another story.
        like_milliseconds: median time to find the stories like one.
        text_recall: share of the ten best stories for such a passage that two stages find.
        like_recall: share of the ten most similar stories that two stages find.
        disk_kilobytes: room of a story on disk.
        memory_kilobytes: room of a story in memory, after searching.
    """

    stories: int
    words: int
    embedding_words_per_second: float
    writing_seconds: float
    fitting_seconds: float
    loading_seconds: float
    text_milliseconds: float
    like_milliseconds: float
    text_recall: float
    like_recall: float
    disk_kilobytes: float
    memory_kilobytes: float


def passage_pool(encoder: StoryEncoder, count: int) -> Passages:
    """Return different passages of StoryWorld, with their vectors."""
    different: dict[str, None] = {}
    for triple in StoryWorld(5).triples(count):
        for story in (triple.anchor, triple.positive, triple.negative):
            different.update(dict.fromkeys(split_passages(story.text)))
    texts = list(different)
    return Passages(texts, unit_vectors(encoder.embed(texts, progress=True)))


def other_passages(count: int) -> list[str]:
    """Return passages of StoryWorld that no indexed story has, as queries."""
    passages = [split_passages(triple.anchor.text)[0] for triple in StoryWorld(6).triples(count)]
    return list(dict.fromkeys(passages))


def long_stories(pool: Passages, count: int, tellings: int, generator: np.random.Generator) -> list[Passages]:
    """Join passages to stories, some tellings of each plot."""
    stories = []
    for number in range(count):
        if number % tellings == 0:
            plot = generator.integers(len(pool.texts), size=PASSAGES_PER_STORY)
        others = generator.integers(len(pool.texts), size=PASSAGES_PER_STORY)
        rows = np.where(generator.random(PASSAGES_PER_STORY) < 0.5, plot, others)
        stories.append(Passages([pool.texts[row] for row in rows], pool.vectors[rows]))
    return stories


def write(folder: Path, stories: Sequence[Passages], encoder: StoryEncoder) -> int:
    """Write an index of stories that are embedded; return the number of their words."""
    texts = [" ".join(story.texts) for story in stories]
    rows = stories_of(texts)
    frame = story_frame(rows)
    frame[DIGEST] = content_digests(frame, list(rows))
    IndexStorage.create(folder, frame, IndexRecord.of(encoder))
    storage = IndexStorage(folder)
    columns = storage.columns(frame)
    for start in range(0, len(stories), BATCH):
        part = stories[start : start + BATCH]
        vectors = unit_vectors(np.stack([story.vectors.mean(axis=0) for story in part]))
        storage.commit(columns.slice(start, BATCH), EmbeddedStories(vectors, part, Coverage()), replaces=False)
    storage.finish(changed=True)
    return sum(len(text.split()) for text in texts)


def exact_nearest(stories: MeasuredStories, query: Query) -> set[int]:
    """Compare a query with all stories; return the rows of the ten best."""
    count, name = len(stories.store), stories.fit.measure.measure
    hubs = stories.fit.hubs_of(stories.store.digests)
    represented = stories.fit.measure.reader.represent(query.contents)
    scores = []
    for start in range(0, count, BATCH):
        rows = np.arange(start, min(start + BATCH, count))
        part = CollectionSimilarity(stories.fit.measure, stories.store.contents(name, rows), hubs[rows])
        others = stories.fit.measure.reader.represent(stories.store.contents(name, rows))
        scores.append(represented.similarities(others)[0] - part.hubs / 2)
    similarities = np.concatenate(scores)
    if query.row is not None:
        similarities[query.row] = -np.inf
    return set(np.argsort(-similarities)[:NEAREST].tolist())


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def memory_of_searching(path: Path, query: str) -> int:
    """Return the bytes that an index takes in a process that searches it by a text and by a story."""
    encoder = narrlit.load("minilm", cache=None)
    encoder.embed([query])
    before = memory()
    index = Index(path)
    index._encoder = encoder
    index.search(query).table()
    index.like("1").table()
    return memory() - before


def memory() -> int:
    """Return the bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(count: int, pool: Passages, encoder: StoryEncoder, embedded: int, tellings: int) -> Figures:
    """Make an index of long stories, and measure what it costs."""
    generator = np.random.default_rng(count)
    texts = [" ".join(story.texts) for story in long_stories(pool, embedded, tellings, generator)]
    words = sum(len(text.split()) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        embedding_seconds = timed(lambda: Index.create(Path(folder, "embedded"), texts, encoder))
        path = Path(folder, "index")
        began = time.perf_counter()
        total_words = write(path, long_stories(pool, count, tellings, generator), encoder)
        writing_seconds = time.perf_counter() - began
        fitting_seconds = timed(lambda: Index(path).like("1").table())
        queries = other_passages(QUERIES)
        ids = [str(row + 1) for row in generator.integers(count, size=QUERIES)]
        began = time.perf_counter()
        index = Index(path)
        index._encoder = encoder
        index.search(queries[0]).table()
        loading_seconds = time.perf_counter() - began
        text_times = [timed(lambda: index.search(query).table()) for query in queries]  # noqa: B023
        like_times = [timed(lambda: index.like(id).table()) for id in ids]  # noqa: B023
        with ProcessPoolExecutor(1, get_context("spawn")) as pool_of_one:
            room = pool_of_one.submit(memory_of_searching, path, queries[0]).result()
        ranked = index.collection().measured()
        text_recall: list[float] = []
        like_recall: list[float] = []
        for query, id in zip(queries[: QUERIES // 3], ids, strict=False):
            text = Query(index.collection()._contents_of([query]))
            row = int(id) - 1
            like = Query(ranked.store.contents("fused", np.array([row])), row)
            for story, recalls in ((text, text_recall), (like, like_recall)):
                best = set(ranked.nearest(story, SearchOptions(k=NEAREST))[0].tolist())
                recalls.append(len(best & exact_nearest(ranked, story)) / NEAREST)
        time.sleep(2)
        stored = lancedb.connect(path).open_table("stories")
        stored.optimize(cleanup_older_than=timedelta(seconds=1))  # versions that readers may still have open
        disk = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Figures(
        stories=count,
        words=total_words,
        embedding_words_per_second=words / embedding_seconds,
        writing_seconds=writing_seconds,
        fitting_seconds=fitting_seconds,
        loading_seconds=loading_seconds,
        text_milliseconds=1000 * median(text_times),
        like_milliseconds=1000 * median(like_times),
        text_recall=float(np.mean(text_recall)),
        like_recall=float(np.mean(like_recall)),
        disk_kilobytes=disk / count / 1000,
        memory_kilobytes=room / count / 1000,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line of figures a size, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, action="append", help="number of stories (342 and 10,000)")
    parser.add_argument("--triples", type=int, default=100, help="triples of StoryWorld whose passages are joined")
    parser.add_argument("--tellings", type=int, default=20, help="stories of a plot")
    parser.add_argument("--embedded", type=int, default=20, help="stories that are embedded to time it")
    parser.add_argument("--out", help="JSON file")
    options = parser.parse_args(argv)
    encoder = narrlit.load("minilm", cache=None)
    pool = passage_pool(encoder, options.triples)
    rows = []
    for count in options.stories or (342, 10_000):
        figures = measure(count, pool, encoder, options.embedded, options.tellings)
        rows.append(asdict(figures))
        for name, value in rows[-1].items():
            print(f"{name:28} {value:,.3f}" if isinstance(value, float) else f"{name:28} {value:,}", flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
