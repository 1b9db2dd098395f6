"""Invented stories as the records that training and judging read."""

from collections.abc import Sequence

from narrlit.data.records import Example, Negative, Triple, a_comes_first
from narrlit.data.storyworld.realise import InventedStory
from narrlit.data.storyworld.world import WorldTriple


def judged(triple: WorldTriple, a_is_closer: bool) -> Triple:
    """The labelled triple in which A, or else B, is the positive."""
    near, far = triple.positive.text, triple.negative.text
    a, b = (near, far) if a_is_closer else (far, near)
    return Triple(triple.anchor.text, a, b, a_is_closer)


def example(triple: WorldTriple, negatives: Sequence[tuple[str, InventedStory]] = ()) -> Example:
    """The training example of a triple: its own negative comes first, of kind `triple`, then `negatives`."""
    others = (Negative(story.text, kind) for kind, story in negatives)
    own = Negative(triple.negative.text, "triple")
    return Example(triple.anchor.text, triple.positive.text, (own, *others))


def judged_triples(triples: Sequence[WorldTriple]) -> list[Triple]:
    """Labelled triples; in about half of them A is the closer, as each anchor's text decides."""
    return [judged(triple, a_comes_first(triple.anchor.text)) for triple in triples]
