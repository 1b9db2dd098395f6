"""From places in a list of examples or triples to a batch; classes and not closures, so that workers can be spawned."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from narrlit.data.batch import ExampleBatch, TripleBatch
from narrlit.data.table import IndexedExamples, IndexedTriples
from narrlit.data.tokens import TokenTable


@dataclass(frozen=True)
class ExampleCollator:
    """Makes training batches."""

    examples: IndexedExamples
    tokens: TokenTable

    def __call__(self, chosen: list[int]) -> ExampleBatch:
        """The batch of the examples at these places."""
        examples, tokens = self.examples, self.tokens
        columns = [
            tokens.places(examples.anchors[chosen], "anchor"),
            tokens.places(examples.positives[chosen], "candidate"),
            tokens.places(examples.negatives[chosen], "candidate"),
        ]
        stories, (anchors, positives, negatives) = tokens.pack(columns)
        return ExampleBatch(stories, anchors, positives, negatives, torch.from_numpy(examples.kinds[chosen]))


@dataclass(frozen=True)
class TripleCollator:
    """Makes batches of triples to judge."""

    triples: IndexedTriples
    tokens: TokenTable

    def __call__(self, places: Sequence[int]) -> TripleBatch:
        """The batch of the triples at these places; -1 repeats the first triple and stays marked as -1."""
        triples, tokens = self.triples, self.tokens
        chosen = [max(place, 0) for place in places]
        columns = [
            tokens.places(triples.anchors[chosen], "anchor"),
            tokens.places(triples.a[chosen], "candidate"),
            tokens.places(triples.b[chosen], "candidate"),
        ]
        stories, (anchors, a, b) = tokens.pack(columns)
        return TripleBatch(stories, anchors, a, b, torch.from_numpy(triples.labels[chosen]), torch.tensor(places))
