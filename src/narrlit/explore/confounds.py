"""What the nearest neighbors of stories share besides their plot: length, language, and any column of a catalog."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from narrlit.errors import DataError
from narrlit.explore.agreement import NeighborAgreement, neighbor_agreement
from narrlit.measures.collection import CollectionSimilarity
from narrlit.preprocessing.languages import BEGINNING, detect_language
from narrlit.statistics.significance import holm
from narrlit.statistics.versions import Strata

CONFOUNDERS = (
    "language",
    "lang",
    "dialect",
    "translator",
    "editor",
    "collector",
    "author",
    "source",
    "book",
    "edition",
)
"""Names of columns, in any case, that make stories similar without being their plot."""
LEAST_EXCESS = 0.1
"""Share of nearest neighbors above chance from which a confounder is worth a warning."""
SIGNIFICANT = 0.05
ConfoundKind = Literal["length", "language", "column"]


class Confound(NamedTuple):
    """Property that a story may share with its nearest neighbor besides its plot.

    Attributes:
        kind: the length of texts, in five strata; their detected language; or a column.
        name: name of the column; else that of the kind.
        agreement: share of stories with the value of their nearest neighbor, and by chance.
        p_adjusted: its p, adjusted for the number of properties (Holm).
        is_warning: the property is no part of the plot, and explains nearest neighbors more than chance does.
    """

    kind: ConfoundKind
    name: str
    agreement: NeighborAgreement
    p_adjusted: float
    is_warning: bool


def confounds(
    similarities: CollectionSimilarity, texts: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> list[Confound]:
    """Compare the nearest neighbor of each story with lengths, languages and columns, by permutation of their values.

    Args:
        similarities: similarities of N stories.
        texts: (N,) texts.
        columns: (N,) values of each column by its name; empty: unknown.

    Returns:
        The properties that differ between stories and are shared by some, the largest excess over chance first.
    """
    lengths = Strata.of_lengths(texts).numbers
    languages = [detect_language(text[:BEGINNING]) or "" for text in texts]
    properties: list[tuple[ConfoundKind, str, Sequence[str]]] = [
        ("length", "length", [str(number) for number in lengths]),
        ("language", "language", languages),
    ]
    properties += [("column", name, values) for name, values in columns.items()]
    found: list[tuple[ConfoundKind, str, NeighborAgreement]] = []
    for kind, name, values in properties:
        try:
            result = neighbor_agreement(similarities, name, values, 1)
        except DataError:  # one value only, or none that two stories share
            continue
        found.append((kind, name, result.shares[0]))
    adjusted = holm([share.p for _, _, share in found])
    results = []
    for (kind, name, share), p in zip(found, adjusted, strict=True):
        is_confounder = kind != "column" or name.strip().casefold() in CONFOUNDERS
        explains = p < SIGNIFICANT and share.share - share.chance >= LEAST_EXCESS
        results.append(Confound(kind, name, share, float(p), is_confounder and explains))
    return sorted(results, key=lambda each: each.agreement.chance - each.agreement.share)
