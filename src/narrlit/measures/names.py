"""Names of measures of collections, of measures of triples (scorers) and of baselines in options."""

from typing import Literal, get_args

from narrlit.errors import OptionError, nearest

BaselineName = Literal["random", "jaccard", "tfidf", "bm25", "longer"]
BASELINE_NAMES: tuple[BaselineName, ...] = get_args(BaselineName)
ScorerName = Literal["cosine", "meanmax", "passages"]
MeasureName = Literal["passages", "fused", "csls", "centered", "cosine", "lexical"]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)
DEFAULT_MEASURE: MeasureName = "passages"
DESCRIPTIONS: dict[MeasureName, str] = {
    "passages": "best matches of passages of about 25 words at similar positions of both stories, less hubness",
    "fused": "passages and words weighted by TF-IDF, both standardized, less hubness",
    "csls": "cosine of centered vectors, less hubness",
    "centered": "cosine of vectors less the mean of the collection",
    "cosine": "cosine of vectors",
    "lexical": "cosine of words weighted by TF-IDF, less hubness",
}
"""Description of each measure."""
READ_PASSAGES = ("passages", "fused")
"""Measures that need embeddings of passages."""


def check_measure(name: str) -> MeasureName:
    """Check the name of a measure.

    Raises:
        OptionError: if the name is unknown.
    """
    if name not in MEASURES:
        raise OptionError("unknown_measure", measure=name, near=nearest(name, MEASURES), known=list(MEASURES))
    return name
