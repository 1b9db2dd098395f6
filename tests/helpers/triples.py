"""Labelled triples from their texts."""

from narrlit.data.schema import StoryTable, Triple, Triples


def triples_of(rows):
    """Triples of rows (anchor, A, B), or (anchor, A, B, label)."""
    stories = StoryTable()
    triples = []
    for anchor, a, b, *label in rows:
        triples.append(Triple(stories.add(anchor), stories.add(a), stories.add(b), *label))
    return Triples(stories, triples)
