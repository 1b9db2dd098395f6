"""From places in a list of examples or triples to a batch; classes and not closures, so that workers can be spawned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from narrlit.data.batch import ExampleBatch, TripleBatch, ViewBatch
from narrlit.data.places import PlaceTable
from narrlit.data.table import IndexedExamples, IndexedTriples


@dataclass(frozen=True)
class ExampleCollator:
    """Makes training batches."""

    examples: IndexedExamples
    table: PlaceTable[Any]

    def __call__(self, chosen: list[int]) -> ExampleBatch:
        """The batch of the examples at these places."""
        examples, table = self.examples, self.table
        columns = [
            table.places(examples.anchors[chosen], "anchor"),
            table.places(examples.positives[chosen], "candidate"),
            table.places(examples.negatives[chosen], "candidate"),
        ]
        stories, (anchors, positives, negatives) = table.pack(columns)
        return ExampleBatch(stories, anchors, positives, negatives, torch.from_numpy(examples.kinds[chosen]))


@dataclass(frozen=True)
class ViewCollator:
    """Makes training batches of anchors alone, each beside another: the next of the batch, which is in random order."""

    examples: IndexedExamples
    table: PlaceTable[Any]

    def __call__(self, chosen: list[int]) -> ViewBatch:
        """The batch of the anchors of the examples at these places; one alone gets another from without the batch."""
        anchors = self.examples.anchors
        others = anchors[[*chosen[1:], chosen[0]]]
        if len(chosen) == 1:
            different = anchors[anchors != anchors[chosen[0]]]
            others = different[[chosen[0] % len(different)]] if len(different) else others
        columns = [self.table.places(rows, "anchor") for rows in (anchors[chosen], others)]
        stories, (places, beside) = self.table.pack(columns)
        return ViewBatch(stories, places, beside)


@dataclass(frozen=True)
class TripleCollator:
    """Makes batches of triples to judge."""

    triples: IndexedTriples
    table: PlaceTable[Any]

    def __call__(self, places: Sequence[int]) -> TripleBatch:
        """The batch of the triples at these places; -1 repeats the first triple and stays marked as -1."""
        triples, table = self.triples, self.table
        chosen = [max(place, 0) for place in places]
        columns = [
            table.places(triples.anchors[chosen], "anchor"),
            table.places(triples.a[chosen], "candidate"),
            table.places(triples.b[chosen], "candidate"),
        ]
        stories, (anchors, a, b) = table.pack(columns)
        return TripleBatch(stories, anchors, a, b, torch.from_numpy(triples.labels[chosen]), torch.tensor(places))
