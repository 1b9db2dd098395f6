"""sentence-transformers' TripletEvaluator and narrlit agree on the same triples and the same model."""

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.evaluation import TripletEvaluator

from narrlit.data.readers import read_triples
from narrlit.encoding.loading import load
from narrlit.experiments.evaluation import evaluate


def test_triplet_evaluator_has_the_accuracy_of_evaluate(tiny, world_files, tmp_path):
    triples = read_triples(world_files / "validation.jsonl")
    anchors, positives, negatives = [], [], []
    for triple, (anchor, a, b) in zip(triples, triples.texts(), strict=True):
        anchors.append(anchor)
        positives.append(a if triple.a_is_closer else b)
        negatives.append(b if triple.a_is_closer else a)
    evaluator = TripletEvaluator(anchors, positives, negatives, name="world", main_similarity_function="cosine")

    result = evaluate(triples, load(tiny(), long="truncate"))
    scores = evaluator(SentenceTransformer(tiny(), device="cpu"), output_path=str(tmp_path))

    accuracy = result.estimate().value
    assert accuracy not in (0, 0.5, 1)  # flipped labels would show
    assert scores["world_cosine_accuracy"] == pytest.approx(accuracy, abs=1e-9)  # shares of whole numbers
