"""Which measure finds the other version of a story? Measures side by side, with what length and hubs do to each.

    python benchmarks/likeness.py                        the 24 sample tales, and pairs of StoryWorld
    python benchmarks/likeness.py twins/stories.jsonl --same work

For each measure: the share of stories whose nearest story is another version (recall@1) and the mean reciprocal rank of
the nearest version (MRR), of the stories that have one; the correlation of a story's mean similarity with its log
length; and the skewness of how often a story is among the ten nearest of others.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew

import narrlit
from narrlit.data.readers import read_stories
from narrlit.data.storyworld import StoryWorld
from narrlit.data.tales import sample_tales
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.measures.corrections import centered, csls, hubness
from narrlit.measures.matching import Matching, PassageVectors, match_scores
from narrlit.metrics.retrieval import lexical_vectors, ranks
from narrlit.preprocessing.passages import split_passages

Floats = NDArray[np.floating[Any]]
NEIGHBORS = 10
WORLD_PAIRS = 100


@dataclass(frozen=True)
class Versions:
    """Stories, and the group (tale type, work) that each is a version of."""

    name: str
    texts: Sequence[str]
    groups: Sequence[str]


@dataclass(frozen=True)
class Figures:
    """How well a measure finds versions, and what else it follows."""

    measure: str
    recall_at_1: float
    mrr: float
    n: int
    length: float
    hubs: float


def tales() -> Versions:
    """Return the sample tales, three of each type."""
    rows = sample_tales()
    return Versions("tales", [row["text"] for row in rows], [row["atu"] for row in rows])


def story_world(pairs: int, seed: int = 11) -> Versions:
    """Return anchors with the story that is like them, and one that is not."""
    texts: list[str] = []
    groups: list[str] = []
    for number, triple in enumerate(StoryWorld(seed).triples(pairs, "test")):
        texts += [triple.anchor.text, triple.positive.text, triple.negative.text]
        groups += [f"pair {number}", f"pair {number}", f"negative {number}"]
    return Versions("StoryWorld", texts, groups)


def of_file(path: str, column: str) -> Versions:
    """Return the stories of a file, by a column of it."""
    stories = read_stories(path)
    return Versions(path, [story.text for story in stories], [str(row[column]) for row in stories.metadata])


def without_hubs(similarities: Floats) -> Floats:
    """Subtract hubness from the similarities (N, N) of a collection."""
    others = similarities.copy()
    np.fill_diagonal(others, -np.inf)
    hubs = hubness(others)
    return csls(similarities, hubs, hubs)


def passage_vectors(encoder: StoryEncoder, texts: Sequence[str]) -> PassageVectors:
    """Embed the passages of N stories; the mean of all is subtracted."""
    pieces = [split_passages(text) for text in texts]
    passages: list[str] = []
    for piece in pieces:
        passages += piece
    vectors = unit_vectors(encoder.embed(passages))
    ends = np.cumsum([len(piece) for piece in pieces])
    return PassageVectors.of(np.split(centered(vectors, vectors.mean(axis=0)), ends[:-1]))


def matched(passages: PassageVectors, matching: Matching) -> Floats:
    """Score each story with all, (N, N)."""
    return np.stack([match_scores(passages.story(number), passages, matching) for number in range(len(passages))])


def similarities(encoder: StoryEncoder, texts: Sequence[str]) -> dict[str, Floats]:
    """Compute the similarities (N, N) of stories by each measure."""
    vectors = unit_vectors(encoder.embed(list(texts)))
    moved = centered(vectors, vectors.mean(axis=0))
    words, others = lexical_vectors("tfidf", texts, texts)
    passages = passage_vectors(encoder, texts)
    plain: dict[str, Floats] = {
        "TF-IDF": np.asarray((words @ others.T).todense()),
        "cosine": vectors @ vectors.T,
        "centered": moved @ moved.T,
    }
    for spread in (inf, 1.0, 0.6, 0.4, 0.3):
        for support in (0.0, 0.3, 0.5):
            plain[f"passages, spread {spread:g}, support {support:g}"] = matched(passages, Matching(spread, support))
    measures: dict[str, Floats] = {}
    for name, found in plain.items():
        measures[name] = found
        measures[f"{name}, CSLS"] = without_hubs(found)
    return measures


def figures_of(measure: str, found: Floats, versions: Versions) -> Figures:
    """Describe a measure by its similarities (N, N) of stories."""
    groups, own = np.array(versions.groups), np.eye(len(found), dtype=bool)
    same = (groups[:, None] == groups[None, :]) & ~own
    with_partner = same.any(axis=1)
    places = ranks(np.where(own, -np.inf, found))
    best = np.where(same, places, len(found)).min(axis=1)[with_partner]
    means = found.mean(axis=1, where=~own)
    lengths = np.log([len(text.split()) for text in versions.texts])
    occurrences = ((places <= NEIGHBORS) & ~own).sum(axis=0)
    return Figures(
        measure,
        recall_at_1=float((best == 1).mean()),
        mrr=float((1 / best).mean()),
        n=int(with_partner.sum()),
        length=float(np.corrcoef(means, lengths)[0, 1]),
        hubs=float(skew(occurrences)),
    )


def main(words: Sequence[str] | None = None) -> None:
    """Print a table for each collection, or all as one line of JSON."""
    options = argparse.ArgumentParser(description="measures of similarity on versions of stories")
    options.add_argument("stories", nargs="?", help="file of stories (default: the sample tales and StoryWorld)")
    options.add_argument("--same", default="work", help="column of the file: equal values are versions (default: work)")
    options.add_argument("--model", default="minilm", help="encoder (default: minilm)")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = options.parse_args(words)
    encoder = narrlit.load(chosen.model, cache="runs/embeddings")
    collections = [of_file(chosen.stories, chosen.same)] if chosen.stories else [tales(), story_world(WORLD_PAIRS)]
    content = {}
    for versions in collections:
        measured = similarities(encoder, versions.texts)
        rows = [figures_of(name, found, versions) for name, found in measured.items()]
        content[versions.name] = [asdict(row) for row in rows]
        if not chosen.json:
            print(f"{versions.name}: {len(versions.texts)} stories, {rows[0].n} with another version")
            print(f"{'measure':42}  recall@1    MRR  length   hubs")
            for row in rows:
                print(f"{row.measure:42}  {row.recall_at_1:8.3f}  {row.mrr:.3f}  {row.length:+6.2f}  {row.hubs:+5.2f}")
    if chosen.json:
        print(json.dumps(content))


if __name__ == "__main__":
    main()
