"""Passages of triples matched: against plain loops, and without what other stories could tell."""

import json

import numpy as np
import pytest
from refusals import refused
from triples import triples_of

from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.measures import Cosine, PassageSimilarity, open_measure
from narrlit.measures.matching import Matching, matches
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.preprocessing.passages import split_passages

SENTENCES = [
    "A king with three sons fell ill one winter, and no doctor in his whole country could tell what ailed him.",
    "The youngest son rode out alone to find the water of life, although his brothers laughed at him.",
    "In a deep forest he met an old fox, who spoke and wanted nothing but a piece of his bread.",
    "They came home at last with the water, and the king rose from his bed and danced.",
]
TEXTS = [
    (" ".join(SENTENCES), " ".join(SENTENCES[::-1]), " ".join(SENTENCES[:2])),
    (SENTENCES[2], SENTENCES[3], " ".join(SENTENCES[1:])),
]


@pytest.fixture(scope="module")
def encoder(tiny):
    return StoryEncoder(Encoder(EncoderConfig(tiny())).eval())


@pytest.mark.parametrize("matching", [Matching(), Matching(float("inf"), 0.0), Matching(0.2, 0.6)])
def test_passage_similarity_is_the_mean_weight_of_best_matches(encoder, matching):
    def vectors(text):
        own = encoder.embed(split_passages(text)).astype(float)
        return own / np.linalg.norm(own, axis=1, keepdims=True)

    expected = []
    for anchor, *candidates in TEXTS:
        row = []
        for text in candidates:
            weights = matches(vectors(anchor), vectors(text), matching)
            row.append((weights.max(axis=1).mean() + weights.max(axis=0).mean()) / 2)
        expected.append(row)

    measure = PassageSimilarity(encoder, matching)

    np.testing.assert_allclose(measure.score(triples_of(TEXTS)), expected, atol=1e-6)  # float32 embeddings


def test_the_score_of_a_triple_does_not_depend_on_others(encoder):
    measure = PassageSimilarity(encoder)
    alone = measure.score(triples_of(TEXTS[:1]))
    np.testing.assert_allclose(measure.score(triples_of(TEXTS[::-1]))[1], alone[0], atol=1e-6)
    copy = measure.score(triples_of([(TEXTS[0][0], TEXTS[0][0], TEXTS[0][1])]))
    assert copy[0, 0] > copy[0, 1]  # the order of passages counts


def test_measures_are_opened_by_name(encoder):
    def load(model):
        return {"model": encoder}[model]

    assert open_measure("passages:model", load) == PassageSimilarity(encoder)
    assert open_measure("model", load) == Cosine(encoder)
    with refused("model_after_prefix", prefix="passages:"):
        open_measure("passages:", load)


def test_the_command_matches_passages(narrlit, tiny, world_files):
    triples = world_files / "validation.jsonl"
    found = narrlit("evaluate", triples, "--model", tiny(), "--scorer", "passages", "--json")
    record = json.loads(found.out)

    settings = record["settings"]
    assert (settings["scorer"], settings["spread"], settings["support"]) == ("passages", 0.4, 0.3)
    assert record["figures"][0]["n"] == 9

    found = narrlit("compare", triples, "--models", f"{tiny()},passages:{tiny()}")
    assert "passages:" in found.out
