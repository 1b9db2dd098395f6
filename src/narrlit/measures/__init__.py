"""How alike two stories are, as a number: the measures, behind one interface."""

from narrlit.measures.opening import MEANMAX, measure_of, open_measure
from narrlit.measures.similarity import Cosine, Lexical, MeanMaxSimilarity, Similarity

__all__ = ["MEANMAX", "Cosine", "Lexical", "MeanMaxSimilarity", "Similarity", "measure_of", "open_measure"]
