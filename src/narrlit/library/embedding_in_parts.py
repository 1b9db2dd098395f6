"""Embedding of files in parts: the parts that a folder or a table lacks are embedded, and each is written at once.

Parts are embedded here or by workers of Ray, and written by this process alone, so that a part that two workers have
embedded, because one of them seemed lost, is written once. A sink records which parts it has: an interruption at any
moment loses the parts that are being embedded.
"""

from typing import NamedTuple, Protocol

from tqdm import tqdm

from narrlit.console import say_truncated
from narrlit.errors import on_interrupt
from narrlit.library.options import PartOptions, TableOptions
from narrlit.library.part_source import EmbeddedPart, MissingParts, PartSource
from narrlit.library.ray_parts import by_ray
from narrlit.models.coverage import Coverage


class PartSink(Protocol):
    """Place that takes parts, each as a whole or not at all."""

    @property
    def place(self) -> str:
        """Path or address, for messages."""

    def written(self) -> frozenset[int]:
        """Return the numbers of the parts that are written."""

    def write(self, part: EmbeddedPart) -> None:
        """Write a part."""


class PartTotals(NamedTuple):
    """Numbers of an input: rows and parts in all, parts embedded now, and their rows without a text."""

    rows: int
    parts: int
    embedded: int
    dropped: int


def embed_in_parts(
    source: PartSource, sink: PartSink, options: PartOptions | TableOptions, rank: int = 0, world: int = 1
) -> PartTotals:
    """Embed the parts that a sink lacks, and write each as soon as it is embedded.

    Args:
        source: the stories.
        sink: place of the parts.
        options: engine and workers.
        rank: number of this process.
        world: number of processes that share the parts.

    Raises:
        DataError: if the input can't be read, or a row has no text.
    """
    missing = MissingParts(source, sink.written(), rank, world)
    parts = by_ray(missing, options.workers) if options.engine == "ray" else map(source.embed, missing)
    rows = number_of_parts = embedded = dropped = 0
    coverage = Coverage()
    with (
        tqdm(desc="embedding", unit="story", delay=0.5) as bar,
        on_interrupt(f"finished parts are kept in {sink.place}: repeat the command to resume"),
    ):
        for part in parts:
            rows, number_of_parts = max(rows, part.stop), number_of_parts + 1
            if not part.is_new:
                continue
            sink.write(part)
            embedded, dropped, coverage = embedded + 1, dropped + part.dropped, coverage + part.coverage
            bar.update(len(part.numbers))
    if embedded:
        say_truncated(coverage, source.encoder.facts.max_length, *source.encoder.facts.unit)
    return PartTotals(rows, number_of_parts, embedded, dropped)
