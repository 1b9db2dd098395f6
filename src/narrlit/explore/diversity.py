"""Diversity of a collection: how many different stories it amounts to, and which are nearly the same."""

from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.data.schema import FloatArray, normal_text
from narrlit.errors import DataError
from narrlit.explore.pairs import nearest
from narrlit.metrics.data_check import near_duplicates

if TYPE_CHECKING:
    from narrlit.explore.collection import Collection


def vendi_score(vectors: FloatArray) -> float:
    """Compute the Vendi score: the effective number of different stories, from 1 to N.

    It is exp of the entropy of the eigenvalues of the stories' cosines, divided by N (Friedman and Dieng 2023). Cosines
    (N, N) and the vectors' products (D, D) have the same eigenvalues above 0: the smaller matrix serves, without loss.

    Args:
        vectors: (N, D) unit vectors.

    >>> round(vendi_score(np.eye(5, dtype=np.float32)), 6), round(vendi_score(np.ones((5, 1), dtype=np.float32)), 6)
    (5.0, 1.0)
    """
    stories = vectors.astype(np.float64)
    products = stories.T @ stories if len(stories) > stories.shape[1] else stories @ stories.T
    values = np.linalg.eigvalsh(products / len(stories))
    values = values[values > 1e-12]
    return float(np.exp(-(values * np.log(values)).sum()))


def diversity(collection: "Collection", cosine: float, jaccard: float) -> dict[str, Any]:
    """Describe how varied N stories are, as plain data.

    Args:
        collection: N stories, N > 1.
        cosine: similarity from which the nearest neighbors count as nearly the same story.
        jaccard: index of three-word shingles from which texts are near-duplicates.

    Returns:
        `stories`; `vendi_score`; `mean_nearest_similarity`; `alike`: stories with a neighbor at `cosine` or above;
        `copies`: stories whose text is that of an earlier one but for case and white space; `near_duplicates`: further
        texts with one at `jaccard` or above; `most_alike`: ids and titles of the nearest two, with their similarity.
    """
    if len(collection.frame) < 2:
        raise DataError("one story has no neighbor: give two stories or more")
    rows, cosines = (values[:, 0] for values in nearest(collection.vectors, 1))
    texts = [*dict.fromkeys(map(normal_text, collection.frame["text"]))]
    first = int(cosines.argmax())
    two = collection.frame.iloc[[first, int(rows[first])]]
    return {
        "model": collection.about["model"],
        "stories": len(collection.frame),
        "vendi_score": vendi_score(collection.vectors),
        "mean_nearest_similarity": float(cosines.mean()),
        "alike": int((cosines >= cosine).sum()),
        "copies": len(collection.frame) - len(texts),
        "near_duplicates": sum(bool(twins) for twins in near_duplicates(texts, jaccard).values()),
        "most_alike": {"similarity": float(cosines[first]), "ids": two["id"].tolist(), "titles": two["title"].tolist()},
    }
