"""Measures fitted on stories, and stored in the folder of an index: means, scales, hubness and passages of stories.

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

from narrlit.console import say
from narrlit.data.schema import Floats, IntArray
from narrlit.errors import DataError, OptionError, reason
from narrlit.files import atomic_path
from narrlit.library.story_store import StoryStore
from narrlit.measures.fit import BLOCK, REFERENCES, MeasureFit, reference_rows
from narrlit.measures.matching import PassageVectors
from narrlit.measures.names import MeasureName
from narrlit.measures.readers import PassageReader, passage_reader
from narrlit.measures.representations import Representation

FOLDER = "fits"
DELETED = 0.1
"""Maximum share of deleted references for which a fit remains valid."""
GROWTH = 2
"""Maximum growth of an index, as a factor, for which a fit remains valid."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class StoriesFit:
    """Measure fitted on stories.

    The F references are the stories with the smallest digests, at most 1,000: a random sample that does not depend on
    the order in which stories were added.

    Attributes:
        measure: measure fitted on the references.
        references: digests of the references.
        hubs: hubness of each story, by its digest.
        passages: (S, K) passages of each story in half precision, by its digest, reduced to the principal components of
            the measure; None for a measure without passages.
    """

    measure: MeasureFit
    references: Sequence[str]
    hubs: Mapping[str, float]
    passages: Mapping[str, Floats] | None = None

    @classmethod
    def current(cls, name: MeasureName, stories: StoryStore) -> "StoriesFit":
        """Read the fit of a measure from its file, update it for the current stories, and write it.

        Stories in memory have no file, nor has the cosine, which is not fitted. If the file is damaged or of an earlier
        version, the fit is computed again, with a message on stderr. If the folder can't be written to, it is computed
        each time.
        """
        if name == "cosine" or stories.path is None:
            return cls.updated(name, stories)
        path = stories.path / FOLDER / f"{name}.npz"
        try:
            earlier = cls.read(path, name) if path.exists() else None
        except DataError as error:
            say(f"{error}; it is computed again")
            earlier = None
        fit = cls.updated(name, stories, earlier)
        if fit is not earlier:
            with suppress(OSError, OptionError):
                fit.write(path)
        return fit

    @classmethod
    def updated(cls, name: MeasureName, stories: StoryStore, earlier: "StoriesFit | None" = None) -> "StoriesFit":
        """Fit a measure or, if an earlier fit is still valid, add the new stories to it.

        An earlier fit is valid while all stories are the same; in an index of more than 1,000 stories, while at least
        nine tenths of its references exist and the index has at most doubled in size.
        """
        if earlier is not None and earlier.hubs.keys() == set(stories.digests):
            return earlier
        if earlier is None or earlier.is_outdated(stories.digests):
            earlier = cls._of_references(name, stories)
        references: IntArray = np.flatnonzero(np.isin(stories.digests, earlier.references))
        measure, every = earlier.measure, stories.digests

        def represent(rows: IntArray) -> Representation:
            return measure.reader.represent(stories.contents(name, rows))

        hubs, new = known_and_new(earlier.hubs, every)
        hubness_of_new = measure.hubness(represent, stories.vectors, references, new)
        hubs.update(zip(_digests_at(stories, new), hubness_of_new.tolist(), strict=True))
        passages, reader = None, passage_reader(measure.reader)
        if reader is not None:
            passages = _reduced_passages(reader, stories, earlier.passages or {})
        return cls(measure, _digests_at(stories, references), hubs, passages)

    @classmethod
    def _of_references(cls, name: MeasureName, stories: StoryStore) -> "StoriesFit":
        """Fit a measure on the references, without the hubness and passages of stories."""
        rows = reference_rows(stories.digests)
        measure = MeasureFit.of(name, stories.contents(name, rows))
        return cls(measure, _digests_at(stories, rows), {})

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

    def passages_of(self, digests: Sequence[str]) -> PassageVectors | None:
        """Return the reduced passages of stories, (P, K); None for a measure without passages."""
        if self.passages is None:
            return None
        return PassageVectors.of([self.passages[digest].astype(np.float32) for digest in digests])

    def hubs_of(self, digests: Sequence[str]) -> Floats:
        """Return the hubness of stories, (N,)."""
        return np.array([self.hubs[digest] for digest in digests], dtype=np.float32)

    def write(self, path: Path) -> None:
        """Write the fit."""
        arrays = {
            **self.measure.arrays(),
            "references": np.array(self.references, "S64"),
            "digests": np.array(list(self.hubs), "S64"),
            "hubs": np.array(list(self.hubs.values()), np.float32),
        }
        if self.passages is not None:
            stories = [self.passages[digest] for digest in self.hubs]
            arrays["passages"] = np.concatenate(stories)
            arrays["sizes"] = np.array(list(map(len, stories)))
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # its allow_pickle is new in numpy 2.3

    @classmethod
    def read(cls, path: Path, name: MeasureName) -> "StoriesFit":
        """Read the fit of a measure.

        Raises:
            DataError: if the file is damaged.
        """
        try:
            with np.load(path) as arrays:
                references = arrays["references"].astype(str).tolist()
                measure = MeasureFit.from_arrays(name, arrays, len(references))
                digests = arrays["digests"].astype(str).tolist()
                hubs = dict(zip(digests, arrays["hubs"].tolist(), strict=True))
                if passage_reader(measure.reader) is None:
                    return cls(measure, references, hubs)
                ends = np.cumsum(arrays["sizes"])
                stories = np.split(arrays["passages"], ends[:-1])
                return cls(measure, references, hubs, dict(zip(digests, stories, strict=True)))
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise DataError("broken_fit", path=path, reason=reason(error)) from error


def _reduced_passages(reader: PassageReader, stories: StoryStore, known: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the reduced passages of all stories of an index, by digest; only those of new stories are read."""
    passages_of, new = known_and_new(known, stories.digests)
    for start in range(0, len(new), BLOCK):
        rows = new[start : start + BLOCK]
        reduced = reader.reduce(stories.contents("passages", rows))
        halved = PassageVectors(reduced.vectors.astype(np.float16), reduced.starts)
        passages_of.update(zip(_digests_at(stories, rows), halved, strict=True))
    return passages_of


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


def _digests_at(stories: StoryStore, rows: IntArray) -> list[str]:
    """Return the digests of some stories of an index."""
    return [stories.digests[row] for row in rows]
