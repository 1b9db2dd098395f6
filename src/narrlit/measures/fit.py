"""Fit of a measure on reference stories, for collections in memory and indexes alike, and its arrays in files.

Letters in shapes: N stories, R reference stories among them, B stories of a block, D dimension.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.candidates import highest_of
from narrlit.measures.corrections import centered, hubness, mean_of
from narrlit.measures.matching import Matching
from narrlit.measures.names import READ_PASSAGES, MeasureName
from narrlit.measures.readers import FusedReader, PassageReader, Reader, VectorReader, WordReader
from narrlit.measures.representations import Contents, Representation, Scale

KEEP_HUBS = ("centered", "cosine")
"""Measures without a correction for hubness."""
REFERENCES = 1000
"""Number of stories on which a measure is fitted; a smaller collection is used as a whole."""
HUB_CANDIDATES = 200
"""Number of references, nearest by centered vectors, with whose passages those of a story are compared.

With 100 references, the ten nearest were the same as with all references for .96 of 400 stories; with 50, for .94.
"""
BLOCK = 128
"""Number of stories that are compared with others at once."""
PATIENCE = 2
"""Seconds after which a progress bar is shown."""


@dataclass(frozen=True, eq=False)
class MeasureFit:
    """A measure fitted on R reference stories.

    Attributes:
        measure: name of the measure.
        reader: reader of stories, fitted on the references.
        mean: (D,) mean of the references' vectors.
        references: number R of references.
    """

    measure: MeasureName
    reader: Reader
    mean: Floats
    references: int

    @classmethod
    def of(cls, measure: MeasureName, references: Contents, matching: Matching = Matching()) -> "MeasureFit":
        """Fit a measure.

        Args:
            measure: name of the measure.
            references: R stories.
            matching: settings of matching.
        """
        reader: Reader
        match measure:
            case "cosine":
                reader = VectorReader()
            case "centered" | "csls":
                reader = VectorReader.fit(references)
            case "passages":
                reader = PassageReader.fit(references, matching)
            case "lexical":
                reader = WordReader.fit(references)
            case "fused":
                readers = PassageReader.fit(references, matching), WordReader.fit(references)
                reader = FusedReader.fit(readers, references)
        return cls(measure, reader, mean_of(references.vectors), len(references))

    @property
    def removes_hubs(self) -> bool:
        """True if hubness is subtracted from the similarities."""
        return self.measure not in KEEP_HUBS

    @property
    def record(self) -> dict[str, object]:
        """Measure and settings, as plain data for reports."""
        return {"measure": self.measure, "fitted_on": self.references, **self.reader.settings}

    def hubness(
        self, represent: Callable[[IntArray], Representation], vectors: Floats, references: IntArray, rows: IntArray
    ) -> Floats:
        """Compute the hubness of some stories: the mean similarity with the ten nearest references other than itself.

        A measure that reads passages compares a story with the 200 references that are nearest by centered vectors.

        Args:
            represent: function that represents stories, by their rows.
            vectors: (N, D) unit vectors of all stories.
            references: (R,) rows of the references.
            rows: rows of the stories whose hubness is computed.

        Returns:
            Hubness of each story in `rows`; zeros for a measure that does not remove hubs.
        """
        means = np.zeros(len(rows), np.float32)
        if not self.removes_hubs or len(references) < 2:
            return means
        compared, moved = represent(references), centered(vectors, self.mean)
        compares_all = self.measure not in READ_PASSAGES or len(references) <= HUB_CANDIDATES
        with tqdm(total=len(rows), desc="comparing", unit="story", delay=PATIENCE) as bar:
            for start in range(0, len(rows), BLOCK):
                block = rows[start : start + BLOCK]
                stories, is_itself = represent(block), block[:, None] == references
                if compares_all:
                    means[start : start + BLOCK] = hubness(_without(stories.similarities(compared), is_itself))
                else:
                    cosines = _without(moved[block] @ moved[references].T, is_itself)
                    for number in range(len(block)):
                        columns = np.sort(highest_of(cosines[number], HUB_CANDIDATES))
                        story, candidates = stories.take(np.array([number])), compared.take(columns)
                        similarities = _without(story.similarities(candidates), is_itself[[number]][:, columns])
                        means[start + number] = hubness(similarities)[0]
                bar.update(len(block))
        return means

    def arrays(self) -> dict[str, Floats]:
        """Return the fit as arrays by name, for a file."""
        return {"mean": self.mean, **_reader_arrays(self.reader)}

    @classmethod
    def from_arrays(cls, measure: MeasureName, arrays: Mapping[str, Floats], references: int) -> "MeasureFit":
        """Build the fit on a number of references from the arrays of a file.

        Raises:
            ValueError, KeyError: if an array is missing or not what it should be.
        """
        return cls(measure, _reader(measure, arrays), arrays["mean"], references)


def reference_rows(digests: Sequence[str]) -> IntArray:
    """Select the rows on which measures are fitted: the stories with the smallest digests, at most 1,000, ascending.

    This is a random sample that does not depend on the order of the stories.
    """
    smallest = np.argsort(np.array(digests), kind="stable")[:REFERENCES]
    return np.sort(smallest)


def _without(similarities: Floats, is_itself: Floats) -> Floats:
    """Replace the similarities of stories with themselves by -inf."""
    others: Floats = np.where(is_itself, -np.inf, similarities)
    return others


def _reader_arrays(reader: Reader) -> dict[str, Floats]:
    """Return what a reader is fitted to, as arrays, except the mean of the references' vectors."""
    if isinstance(reader, PassageReader):
        matching = reader.matching
        settings = np.array([matching.spread, matching.support])
        return {"passage_mean": reader.mean, "matching": settings, "components": reader.components}
    if isinstance(reader, WordReader):
        words = "\n".join(reader.words).encode()
        return {
            "words": np.frombuffer(words, np.uint8),
            "rarity": reader.rarity,
            "stop_words": np.array(reader.stop_words or ""),
        }
    if isinstance(reader, FusedReader):
        scales = [[scale.mean, scale.deviation] for scale in reader.scales]
        return {**_reader_arrays(reader.first), **_reader_arrays(reader.second), "scales": np.array(scales)}
    return {}


def _reader(name: MeasureName, arrays: Mapping[str, Floats]) -> Reader:
    """Build the reader of a measure from the arrays of its file."""
    match name:
        case "cosine":
            return VectorReader()
        case "centered" | "csls":
            return VectorReader(arrays["mean"])
        case "passages":
            matching = Matching(*arrays["matching"].tolist())
            return PassageReader(arrays["passage_mean"], matching, arrays["components"])
        case "lexical":
            if "words" not in arrays:
                raise ValueError("an earlier version of narrlit weighted words in another way")
            words = arrays["words"].tobytes().decode().splitlines()
            return WordReader(words, arrays["rarity"], "english" if arrays["stop_words"] == "english" else None)
        case "fused":
            first, second = arrays["scales"].tolist()
            return FusedReader(_reader("passages", arrays), _reader("lexical", arrays), (Scale(*first), Scale(*second)))
