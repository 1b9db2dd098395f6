"""Measures of the similarity of stories: for triples, and for the stories of a collection."""

from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.names import DEFAULT_MEASURE, MEASURES, MeasureName
from narrlit.measures.similarity import (
    MEANMAX,
    Cosine,
    Lexical,
    MeanMaxSimilarity,
    PassageSimilarity,
    Similarity,
    measure_of,
    open_measure,
)

__all__ = [
    "DEFAULT_MEASURE",
    "MEANMAX",
    "MEASURES",
    "CollectionSimilarity",
    "Cosine",
    "Lexical",
    "MeanMaxSimilarity",
    "MeasureName",
    "PassageSimilarity",
    "Similarity",
    "measure_of",
    "open_measure",
]
