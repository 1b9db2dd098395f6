"""Measures fitted on the stories of an index, stored on disk: means, scales, and the hubness and passages of stories.

Letters in shapes: N stories, F references among them, P passages of N stories, S of one story, D dimension, K
components.
"""

import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from tqdm import tqdm

from narrlit.console import say
from narrlit.data.schema import Floats, IntArray
from narrlit.errors import DataError, OptionError, reason
from narrlit.files import atomic_path
from narrlit.library.index_snapshot import IndexSnapshot
from narrlit.measures.candidates import principal_components
from narrlit.measures.collection import REFERENCES, MeasureFit, highest, reference_rows
from narrlit.measures.corrections import centered, hubness
from narrlit.measures.matching import Matching, PassageVectors
from narrlit.measures.names import READ_PASSAGES, MeasureName
from narrlit.measures.readers import FusedReader, PassageReader, Reader, VectorReader, WordReader, passage_reader
from narrlit.measures.representations import Contents, Scale

FOLDER = "fits"
READ_WORDS = ("fused", "lexical")
"""Measures that read the texts of stories."""
HUB_CANDIDATES = 200
"""Number of references, nearest by centered vectors, with whose passages those of a story are compared.

With 100 references, the ten nearest were the same as with all references for .96 of 400 stories; with 50, for .94.
"""
DELETED = 0.1
"""Maximum share of deleted references for which a fit remains valid."""
GROWTH = 2
"""Maximum growth of an index, as a factor, for which a fit remains valid."""
BLOCK = 128
"""Number of stories whose passages are read at once."""
PATIENCE = 2
"""Seconds after which progress is shown."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class KeptPassages:
    """Passages of stories, reduced to principal components, by which candidates are chosen.

    Attributes:
        reader: reader of passages.
        components: (D, K) principal components of the references' passages.
        stories: (S, K) passages of each story in half precision, by its digest.
    """

    reader: PassageReader
    components: Floats
    stories: Mapping[str, Floats]

    @classmethod
    def fit(cls, reader: Reader, references: Contents) -> "KeptPassages | None":
        """Compute the components; return None for a measure without passages."""
        reads_passages = passage_reader(reader)
        if reads_passages is None:
            return None
        passages = reads_passages.represent(references).passages
        return cls(reads_passages, principal_components(passages.vectors), {})

    def updated(self, snapshot: IndexSnapshot) -> "KeptPassages":
        """Return the passages of all stories of an index; those of new stories are read."""
        stories, new = known_and_new(self.stories, snapshot.digests)
        for start in range(0, len(new), BLOCK):
            rows = new[start : start + BLOCK]
            passages = self.reader.represent(contents(snapshot, "passages", rows)).passages
            reduced = (passages.vectors @ self.components).astype(np.float16)
            projected = PassageVectors(reduced, passages.starts)
            for number, row in enumerate(rows):
                stories[snapshot.digests[row]] = projected.story(number)
        return KeptPassages(self.reader, self.components, stories)

    def of(self, digests: Sequence[str]) -> PassageVectors:
        """Return the passages of stories, (P, K)."""
        return PassageVectors.of([self.stories[digest].astype(np.float32) for digest in digests])


@dataclass(frozen=True, eq=False)
class IndexFit:
    """Measure fitted on an index.

    The F references are the stories with the smallest digests, at most 1,000: a random sample that does not depend on
    the order in which stories were added.

    Attributes:
        measure: measure fitted on the references.
        references: digests of the references.
        hubs: hubness of each story, by its digest.
        passages: passages of each story; None for a measure without passages.
    """

    measure: MeasureFit
    references: Sequence[str]
    hubs: Mapping[str, float]
    passages: KeptPassages | None = None

    @classmethod
    def current(cls, name: MeasureName, snapshot: IndexSnapshot) -> "IndexFit":
        """Read the fit of a measure from its file, update it for the current stories, and write it.

        The cosine has no file, because it is not fitted. If the file is damaged or of an earlier version, the fit is
        computed again, with a message on stderr. If the folder can't be written to, it is computed each time.
        """
        if name == "cosine":
            return cls.updated(name, snapshot)
        path = snapshot.path / FOLDER / f"{name}.npz"
        try:
            earlier = cls.read(path, name) if path.exists() else None
        except DataError as error:
            say(f"{error}; it is computed again")
            earlier = None
        fit = cls.updated(name, snapshot, earlier)
        if fit is not earlier:
            with suppress(OSError, OptionError):
                fit.write(path)
        return fit

    @classmethod
    def updated(cls, name: MeasureName, snapshot: IndexSnapshot, earlier: "IndexFit | None" = None) -> "IndexFit":
        """Fit a measure or, if an earlier fit is still valid, add the new stories to it.

        An earlier fit is valid while all stories are the same; in an index of more than 1,000 stories, while at least
        nine tenths of its references exist and the index has at most doubled in size.
        """
        if earlier is not None and earlier.hubs.keys() == set(snapshot.digests):
            return earlier
        if earlier is None or earlier.is_outdated(snapshot.digests):
            earlier = cls._of_references(name, snapshot)
        references: IntArray = np.flatnonzero(np.isin(snapshot.digests, earlier.references))
        hubs, new = known_and_new(earlier.hubs, snapshot.digests)
        hubness_of_new = _hubness(earlier.measure, snapshot, references, new)
        hubs.update(zip(_digests_at(snapshot, new), hubness_of_new.tolist(), strict=True))
        passages = None if earlier.passages is None else earlier.passages.updated(snapshot)
        return cls(earlier.measure, _digests_at(snapshot, references), hubs, passages)

    @classmethod
    def _of_references(cls, name: MeasureName, snapshot: IndexSnapshot) -> "IndexFit":
        """Fit a measure on the references, without the hubness and passages of stories."""
        rows = reference_rows(snapshot.digests)
        references = contents(snapshot, name, rows)
        measure = MeasureFit.of(name, references)
        passages = KeptPassages.fit(measure.reader, references)
        return cls(measure, _digests_at(snapshot, rows), {}, passages)

    def is_outdated(self, digests: Sequence[str]) -> bool:
        """Return True if the measure must be fitted again on the stories with these digests."""
        if len(digests) <= REFERENCES or len(digests) > GROWTH * len(self.hubs):
            return True
        deleted = set(self.references).difference(digests)
        return len(deleted) > DELETED * len(self.references)

    @cached_property
    def record(self) -> dict[str, object]:
        """Measure and settings, as plain data for reports."""
        return self.measure.record

    def hubs_of(self, digests: Sequence[str]) -> Floats:
        """Return the hubness of stories, (N,)."""
        return np.array([self.hubs[digest] for digest in digests], dtype=np.float32)

    def write(self, path: Path) -> None:
        """Write the fit."""
        arrays = {
            "mean": self.measure.mean,
            "references": np.array(self.references, "S64"),
            "digests": np.array(list(self.hubs), "S64"),
            "hubs": np.array(list(self.hubs.values()), np.float32),
            **_reader_arrays(self.measure.reader),
        }
        if self.passages is not None:
            stories = [self.passages.stories[digest] for digest in self.hubs]
            arrays["components"] = self.passages.components
            arrays["passages"] = np.concatenate(stories)
            arrays["sizes"] = np.array(list(map(len, stories)))
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # its allow_pickle is new in numpy 2.3

    @classmethod
    def read(cls, path: Path, name: MeasureName) -> "IndexFit":
        """Read the fit of a measure.

        Raises:
            DataError: if the file is damaged.
        """
        try:
            with np.load(path) as arrays:
                references = arrays["references"].astype(str).tolist()
                measure = MeasureFit(name, _reader(name, arrays), arrays["mean"], len(references))
                digests = arrays["digests"].astype(str).tolist()
                hubs = dict(zip(digests, arrays["hubs"].tolist(), strict=True))
                reader = passage_reader(measure.reader)
                if reader is None:
                    return cls(measure, references, hubs)
                ends = np.cumsum(arrays["sizes"])
                stories = np.split(arrays["passages"], ends[:-1])
                passages = KeptPassages(reader, arrays["components"], dict(zip(digests, stories, strict=True)))
                return cls(measure, references, hubs, passages)
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise DataError("broken_fit", path=path, reason=reason(error)) from error


def known_and_new(known: Mapping[str, T], digests: Sequence[str]) -> tuple[dict[str, T], IntArray]:
    """Divide stories into those of which something is known and new ones.

    Args:
        known: what is known of stories, by their digests.
        digests: digests of N stories.

    Returns:
        What is known of these stories, by their digests; and the rows of the new stories among the N.

    >>> known_and_new({"a": 1, "b": 2}, ["b", "c"])
    ({'b': 2}, array([1]))
    """
    still_known: dict[str, T] = {}
    new = []
    for row, digest in enumerate(digests):
        if digest in known:
            still_known[digest] = known[digest]
        else:
            new.append(row)
    return still_known, np.array(new, dtype=np.int64)


def _digests_at(snapshot: IndexSnapshot, rows: IntArray) -> list[str]:
    """Return the digests of some stories of an index."""
    return [snapshot.digests[row] for row in rows]


def contents(snapshot: IndexSnapshot, measure: MeasureName, rows: IntArray | None = None) -> Contents:
    """Return what a measure reads of some stories of an index, by their rows; None: of all stories."""
    vectors = snapshot.vectors if rows is None else snapshot.vectors_at(rows)
    texts = snapshot.texts(rows) if measure in READ_WORDS else [""] * len(vectors)
    passages = snapshot.passage_vectors(rows) if measure in READ_PASSAGES else None
    return Contents(vectors, texts, passages)


def all_contents(snapshot: IndexSnapshot, rows: IntArray) -> Contents:
    """Return everything that measures read of some stories of an index."""
    passages = snapshot.passage_vectors(rows) if snapshot.has_passages else None
    return Contents(snapshot.vectors_at(rows), snapshot.texts(rows), passages)


def _hubness(measure: MeasureFit, snapshot: IndexSnapshot, references: IntArray, rows: IntArray) -> Floats:
    """Compute the hubness of some stories: the mean similarity with the ten most similar references.

    A measure that reads passages compares a story with the 200 references that are nearest by centered vectors.

    Args:
        measure: measure of similarity.
        snapshot: the index.
        references: rows of the references.
        rows: (R,) rows of the stories.

    Returns:
        (R,) hubness of each story.
    """
    if not measure.removes_hubs or len(references) < 2:
        return np.zeros(len(rows), np.float32)
    compared = measure.reader.represent(contents(snapshot, measure.measure, references))
    vectors = centered(snapshot.vectors, measure.mean)
    count = HUB_CANDIDATES if measure.measure in READ_PASSAGES else len(references)
    means = np.empty(len(rows), np.float32)
    with tqdm(total=len(rows), desc="comparing", unit="story", delay=PATIENCE) as bar:
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            stories = measure.reader.represent(contents(snapshot, measure.measure, block))
            cosines = vectors[block] @ vectors[references].T
            is_itself = block[:, None] == references
            others = np.where(is_itself, -np.inf, cosines)
            nearest = highest(others, min(count, len(references)))
            for number, columns in enumerate(nearest.rows):
                story, candidates = stories.take(np.array([number])), compared.take(columns)
                similarities = story.similarities(candidates)
                similarities[:, is_itself[number, columns]] = -np.inf
                means[start + number] = hubness(similarities)[0]
            bar.update(len(block))
    return means


def _reader_arrays(reader: Reader) -> dict[str, Floats]:
    """Return what a reader is fitted to, as arrays, except the mean of the references' vectors."""
    if isinstance(reader, PassageReader):
        matching = reader.matching
        return {"passage_mean": reader.mean, "matching": np.array([matching.spread, matching.support])}
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
            return PassageReader(arrays["passage_mean"], Matching(*arrays["matching"].tolist()))
        case "lexical":
            if "words" not in arrays:
                raise ValueError("an earlier version of narrlit weighted words in another way")
            words = arrays["words"].tobytes().decode().splitlines()
            return WordReader(words, arrays["rarity"], "english" if arrays["stop_words"] == "english" else None)
        case "fused":
            first, second = arrays["scales"].tolist()
            return FusedReader(_reader("passages", arrays), _reader("lexical", arrays), (Scale(*first), Scale(*second)))
