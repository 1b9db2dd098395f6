"""Which measure finds the other version of a story? Measures side by side, with the hubs of each.

    python benchmarks/likeness.py                        the 24 sample tales, and pairs of StoryWorld
    python benchmarks/likeness.py twins/stories.jsonl --same work
    python benchmarks/likeness.py --sweep                settings of the matching of passages, in place of measures

The figures are those of `narrlit retrieval --same`.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import narrlit
from narrlit.data.readers import read_stories
from narrlit.data.storyworld import StoryWorld
from narrlit.data.tales import sample_tales
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.experiments.version_ranking import rank_versions
from narrlit.measures import MEASURES, CollectionSimilarity
from narrlit.measures.fit import MeasureFit
from narrlit.measures.matching import Matching, PassageVectors
from narrlit.measures.representations import Contents
from narrlit.preprocessing.passages import PASSAGE_WORDS, split_passages
from narrlit.results import Result

Floats = NDArray[np.floating[Any]]
WORLD_PAIRS = 100


@dataclass(frozen=True)
class Setting:
    """How passages are cut and matched.

    Attributes:
        matching: spread and support.
        words: of a passage.
    """

    matching: Matching = Matching()
    words: int = PASSAGE_WORDS

    def __str__(self) -> str:
        """All settings."""
        return f"spread {self.matching.spread:g}, support {self.matching.support:g}, {self.words} words"


SETTINGS = [
    Setting(),
    *[Setting(Matching(spread=spread)) for spread in (inf, 0.8, 0.2)],
    *[Setting(Matching(support=support)) for support in (0.0, 0.6)],
    *[Setting(words=words) for words in (12, 50)],
]
"""The default, and others of which each differs in one setting."""


def tales() -> pd.DataFrame:
    """Tabulate the sample tales, three of each type."""
    return pd.DataFrame(sample_tales()).drop(columns="file_name")


def story_world(pairs: int, seed: int = 11) -> pd.DataFrame:
    """Tabulate anchors with the story that is like each (of one pair), and one that is not (of none)."""
    rows = []
    for number, triple in enumerate(StoryWorld(seed).triples(pairs, "test")):
        rows.append({"text": triple.anchor.text, "pair": number})
        rows.append({"text": triple.positive.text, "pair": number})
        rows.append({"text": triple.negative.text, "pair": None})
    return pd.DataFrame(rows)


def passages(texts: Sequence[str], words: int, encoder: StoryEncoder) -> PassageVectors:
    """Embed the passages of texts."""
    pieces = [split_passages(text, words) for text in texts]
    joined: list[str] = []
    for piece in pieces:
        joined += piece
    vectors = unit_vectors(encoder.embed(joined))
    ends = np.cumsum([len(piece) for piece in pieces])
    return PassageVectors.of(np.split(vectors, ends[:-1]))


def sweep(collection: narrlit.Collection, settings: Sequence[Setting] = SETTINGS) -> Iterator[tuple[str, Floats]]:
    """Compare all stories with all, (N, N), by their passages with each setting."""
    texts = collection.frame["text"].tolist()
    for setting in settings:
        contents = Contents(collection.vectors, texts, passages(texts, setting.words, collection.encoder))
        fit, every = MeasureFit.of("passages", contents, setting.matching), np.arange(len(contents))
        hubs = fit.hubness(fit.reader.represent(contents).take, contents.vectors, every, every)
        yield str(setting), CollectionSimilarity(fit, contents, hubs).matrix()


def evaluate(stories: Any, same: str, encoder: StoryEncoder, by_settings: bool) -> Result:
    """Evaluate all measures, or the settings of one."""
    collection = narrlit.Collection.of(stories, encoder)
    if by_settings:
        return rank_versions(sweep(collection), collection.frame, same)
    return narrlit.retrieval(collection, same=same, measures=MEASURES)


def main(words: Sequence[str] | None = None) -> None:
    """Print tables of each collection, or all as one line of JSON."""
    options = argparse.ArgumentParser(description="measures of similarity on versions of stories")
    options.add_argument("stories", nargs="?", help="file of stories (default: the sample tales and StoryWorld)")
    options.add_argument("--same", default="work", help="column of the file: equal values are versions (default: work)")
    options.add_argument("--model", default="minilm", help="encoder (default: minilm)")
    options.add_argument("--sweep", action="store_true", help="compare settings of passages in place of measures")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = options.parse_args(words)
    encoder = narrlit.load(chosen.model, cache="runs/embeddings")
    collections: dict[str, tuple[Any, str]] = {
        "tales": (tales(), "atu"),
        "StoryWorld": (story_world(WORLD_PAIRS), "pair"),
    }
    if chosen.stories:
        collections = {chosen.stories: (read_stories(chosen.stories), chosen.same)}
    records = {}
    for name, (stories, same) in collections.items():
        result = evaluate(stories, same, encoder, chosen.sweep)
        records[name] = result.record
        if not chosen.json:
            print(f"# {name}\n\n{result}\n")
    if chosen.json:
        print(json.dumps(records))


if __name__ == "__main__":
    main()
