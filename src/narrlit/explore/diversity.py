"""Diversity of a collection: effective number of distinct stories, and near-duplicates."""

from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np
import pandas as pd

from narrlit.data.schema import FloatArray, normal_text
from narrlit.errors import DataError, OptionError, printable
from narrlit.library.collection import Collection
from narrlit.statistics.set_checks import near_duplicates


def vendi_score(vectors: FloatArray) -> float:
    """Compute the Vendi score, the effective number of distinct stories, from 1 to N.

    It is the exponential of the entropy of the eigenvalues of the cosine matrix divided by N (Friedman and Dieng 2023).
    The matrices of cosines (N, N) and of products (D, D) have the same positive eigenvalues, so the smaller one is
    used.

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


class MostAlike(TypedDict):
    """Ids and titles of the two most similar stories, and their similarity."""

    similarity: float
    ids: list[str]
    titles: list[str]


@dataclass(frozen=True)
class Diversity:
    """Diversity of N stories.

    Attributes:
        model: name of the model.
        stories: N.
        vendi_score: effective number of distinct stories, 1 to N.
        mean_nearest_similarity: mean cosine of a story with the nearest other one.
        alike: number of stories whose nearest neighbor counts as nearly the same story.
        copies: number of stories with the same text as an earlier one, except for case and white space.
        near_duplicates: number of other texts whose Jaccard index with another text is at least `jaccard`.
        most_alike: ids and titles of the two nearest stories, with their similarity.
        cosine: similarity at or above which stories count as nearly the same.
        jaccard: Jaccard index of three-word shingles at or above which texts are near-duplicates.
    """

    model: str
    stories: int
    vendi_score: float
    mean_nearest_similarity: float
    alike: int
    copies: int
    near_duplicates: int
    most_alike: MostAlike
    cosine: float
    jaccard: float

    @property
    def record(self) -> dict[str, object]:
        """The figures as plain data."""
        figures = asdict(self)
        del figures["cosine"], figures["jaccard"]
        return figures

    def table(self) -> pd.DataFrame:
        """Tabulate the figures, one row each."""
        figures = self.record
        del figures["model"], figures["most_alike"]
        return pd.DataFrame({"figure": figures.keys(), "value": figures.values()})

    def __str__(self) -> str:
        """Format the figures, one per line."""
        pair = self.most_alike
        first, second = [printable(title or id, 60) for title, id in zip(pair["titles"], pair["ids"], strict=True)]
        return (
            f"Vendi score: {self.vendi_score:.1f} of {self.stories:,} stories (by {self.model})\n"
            f"similarity with the nearest story: {self.mean_nearest_similarity:.3f} on average\n"
            f"nearly the same story (cosine of {self.cosine:g} or more): {self.alike:,} stories\n"
            f"same text: {self.copies:,}; near-duplicate texts (Jaccard index of {self.jaccard:g} or more): "
            f"{self.near_duplicates:,}\n"
            f"most alike: {first} and {second} ({pair['similarity']:.3f})"
        )


def diversity(collection: Collection, *, cosine: float = 0.9, jaccard: float = 0.5) -> Diversity:
    """Measure how varied the stories of a collection are.

    Args:
        collection: N stories, N > 1.
        cosine: similarity at or above which nearest neighbors count as nearly the same story.
        jaccard: Jaccard index of three-word shingles at or above which texts are near-duplicates; above 0, at most 1.

    Raises:
        DataError: if there is only one story.
        OptionError: if `jaccard` is out of range.

    >>> from narrlit.library.collection import Collection
    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> diversity(tales).copies
    0
    """
    if not 0 < jaccard <= 1:
        raise OptionError("share_above_zero", option="jaccard", found=jaccard)
    if len(collection.frame) < 2:
        raise DataError("no_neighbor")
    nearest, similarities = collection.similarities_by("cosine").nearest(1)
    rows, cosines = nearest[:, 0], similarities[:, 0]
    distinct_texts = list(dict.fromkeys(map(normal_text, collection.frame["text"])))
    first = int(cosines.argmax())
    two = collection.frame.iloc[[first, int(rows[first])]]
    duplicates = near_duplicates(distinct_texts, jaccard)
    return Diversity(
        model=collection.about["model"],
        stories=len(collection.frame),
        vendi_score=vendi_score(collection.vectors),
        mean_nearest_similarity=float(cosines.mean()),
        alike=int((cosines >= cosine).sum()),
        copies=len(collection.frame) - len(distinct_texts),
        near_duplicates=sum(map(bool, duplicates.values())),
        most_alike={
            "similarity": float(cosines[first]),
            "ids": two["id"].tolist(),
            "titles": two["title"].tolist(),
        },
        cosine=cosine,
        jaccard=jaccard,
    )
