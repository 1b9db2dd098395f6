"""`narrlit.catalog`: propose values of a column, such as the tale type, for stories that lack it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.console import counted
from narrlit.data.schema import IntArray, normal_form
from narrlit.data.writers import OUTPUT_SUFFIXES, write_table
from narrlit.errors import DataError, OptionError, printable
from narrlit.explore.catalog_fit import CalibratedCandidates, CandidateValues, LabeledNeighbors, calibrate
from narrlit.files import check_writable
from narrlit.library.collection import Collection, column_values
from narrlit.markdown import markdown_table
from narrlit.statistics.estimates import Estimate, estimate, estimate_count, estimate_text

VALUES, EVIDENCE = 3, 3
"""Largest numbers of values that are proposed for a story, and of similar stories that are named for a value."""
SHOWN, WIDTH = 20, 40
"""Largest number of proposals that are printed, and characters of a title."""
BOUNDS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Bounds of the probabilities that are compared with the share of right proposals."""


@dataclass(frozen=True)
class SimilarStory:
    """A story with the proposed value that is similar to the story without one."""

    id: str
    title: str
    similarity: float


@dataclass(frozen=True)
class ProposedValue:
    """A value that is proposed for a story.

    Attributes:
        value: the value, as text.
        probability: that it is right, 0 to 1. The probabilities of a story's values need not have the sum 1: its value
            may be none of those that others have.
        stories: stories that have the value, nearest first.
    """

    value: str
    probability: float
    stories: Sequence[SimilarStory]


@dataclass(frozen=True)
class Proposal:
    """Proposed values of a story, the most probable first."""

    id: str
    title: str
    values: Sequence[ProposedValue]

    @property
    def best(self) -> ProposedValue:
        """The most probable value."""
        return self.values[0]


@dataclass(frozen=True)
class Reliability:
    """Most probable values of stories with a known value, by their cross-validated probability.

    Attributes:
        low: lowest probability.
        high: highest probability.
        mean: mean probability.
        right: share of these values that are right.
    """

    low: float
    high: float
    mean: float
    right: Estimate


@dataclass(frozen=True, eq=False)
class Catalog:
    """Proposed values of a column for the stories that lack it, and how often such proposals are right.

    Attributes:
        collection: N stories.
        column: the column.
        proposals: proposals for the stories without a value, the most probable first.
        accuracy: cross-validated: the share of stories with a value whose most probable value is right.
        baseline: the share of stories that have the most frequent value.
        most_frequent: this value.
        reliability: the same stories by the probability of their most probable value.
    """

    collection: Collection
    column: str
    proposals: Sequence[Proposal]
    accuracy: Estimate
    baseline: Estimate
    most_frequent: str
    reliability: Sequence[Reliability]

    @property
    def record(self) -> dict[str, object]:
        """The result as plain data."""
        reliability = []
        for part in self.reliability:
            reliability.append({"low": part.low, "high": part.high, "mean": part.mean, "right": part.right._asdict()})
        return {
            "column": self.column,
            "accuracy": self.accuracy._asdict(),
            "baseline": self.baseline._asdict(),
            "most_frequent": self.most_frequent,
            "reliability": reliability,
            "proposals": list(map(asdict, self.proposals)),
        }

    def table(self) -> pd.DataFrame:
        """Tabulate the proposals.

        Returns:
            One row per story and proposed value, the most probable first: id, title, value, probability, stories (those
            that have the value, with their similarities), and an empty column `accepted` for `read_accepted`.
        """
        rows = []
        for proposal in self.proposals:
            for proposed in proposal.values:
                rows.append(
                    {
                        "id": proposal.id,
                        "title": proposal.title,
                        "value": proposed.value,
                        "probability": proposed.probability,
                        "stories": _listed(proposed.stories),
                        "accepted": "",
                    }
                )
        return pd.DataFrame(rows, columns=["id", "title", "value", "probability", "stories", "accepted"])

    def write(self, path: str | Path) -> None:
        """Write the table: .csv, .tsv, .xlsx, .jsonl, .parquet.

        Raises:
            DataError: if no story lacks a value.
            OptionError: if the suffix is unknown.
        """
        check_writable(path, *OUTPUT_SUFFIXES)
        if not self.proposals:
            raise DataError("no_proposal", path=path, column=self.column)
        write_table(path, self.table().to_dict("records"))

    def probable(self, at_least: float) -> dict[str, str]:
        """Return the most probable value of each story without one, by id, if its probability is at least a threshold.

        Raises:
            OptionError: if the threshold is not between 0 and 1.
        """
        if not 0 <= at_least <= 1:
            raise OptionError("range_of_share", option="at_least", found=at_least)
        values = {}
        for proposal in self.proposals:
            if proposal.best.probability >= at_least:
                values[proposal.id] = proposal.best.value
        return values

    def fill(self, accepted: Mapping[str, str]) -> "FilledCatalog":
        """Fill in accepted values.

        Args:
            accepted: value of each story, by id, such as `probable(0.9)` or what `read_accepted` returns.

        Raises:
            DataError: if there is no such story, or it has a value.
        """
        accepted = {normal_form(id): value for id, value in accepted.items()}
        lacking = {proposal.id for proposal in self.proposals}
        known = set(self.collection.frame["id"])
        for id in accepted:
            if id in lacking:
                continue
            if id in known:
                raise DataError("value_already", id=printable(id, 60), column=self.column)
            raise DataError("accepted_stranger", id=printable(id, 60), source=self.collection.about["source"])
        return FilledCatalog(self.collection, self.column, accepted)

    def __str__(self) -> str:
        """Accuracy, how far probabilities are right, and the first proposals, in Markdown."""
        column = printable(self.column, WIDTH)
        reliability = []
        for part in self.reliability:
            reliability.append(
                {
                    "probability": f"{part.low:.1f} to {part.high:.1f}",
                    "mean": f"{part.mean:.2f}",
                    "n": part.right.n,
                    "right": estimate_text(*part.right[:3]),
                }
            )
        lines = [
            f"Of {counted(self.accuracy.n, 'story')} with a value in the column {column}, the others propose the right "
            f"one for {estimate_text(*self.accuracy[:3])}.",
            f"The most frequent value, {printable(self.most_frequent, WIDTH)}, is that of "
            f"{estimate_text(*self.baseline[:3])}.",
            "",
            markdown_table("", reliability),
        ]
        if not self.proposals:
            return "\n".join([*lines, "No story lacks a value."])
        rows = []
        for proposal in self.proposals[:SHOWN]:
            rows.append(
                {
                    "story": printable(proposal.title or proposal.id, WIDTH),
                    column: printable(proposal.best.value, WIDTH),
                    "probability": f"{proposal.best.probability:.2f}",
                    "because of": _listed(proposal.best.stories[:2]),
                }
            )
        lines.append(markdown_table(f"Proposed values of {column}", rows))
        shown = f"; the first {SHOWN} are shown" if len(self.proposals) > SHOWN else ""
        return "\n".join([*lines, f"{counted(len(self.proposals), 'story')} without a value{shown}."])


@dataclass(frozen=True, eq=False)
class FilledCatalog:
    """Stories with accepted values in a column.

    Attributes:
        collection: N stories.
        column: the column.
        accepted: accepted value of each story that lacked one, by id.
    """

    collection: Collection
    column: str
    accepted: Mapping[str, str]

    def table(self) -> pd.DataFrame:
        """Tabulate the stories: all columns, with the accepted values filled in, and `COLUMN_source`.

        The new column is `given` or `accepted`, and None for a story without a value.
        """
        frame = self.collection.frame.copy()
        column = normal_form(self.column)
        value_of_name = {str(value): value for value in frame[column] if value is not None}
        values: list[object] = []
        sources: list[str | None] = []
        for id, value in zip(frame["id"], frame[column], strict=True):
            if value is not None:
                values.append(value)
                sources.append("given")
            elif id in self.accepted:
                name = self.accepted[id]
                values.append(value_of_name.get(name, name))
                sources.append("accepted")
            else:
                values.append(None)
                sources.append(None)
        frame[column] = pd.Series(values, dtype=object)
        frame[f"{column}_source"] = pd.Series(sources, dtype=object)
        return frame

    def write(self, path: str | Path) -> None:
        """Write the table: .csv, .tsv, .xlsx, .jsonl, .parquet.

        Raises:
            OptionError: if the suffix is unknown, or a text is too long for Excel.
        """
        check_writable(path, *OUTPUT_SUFFIXES)
        write_table(path, self.table().to_dict("records"))

    def __str__(self) -> str:
        """Number of accepted values."""
        return f"{counted(len(self.accepted), 'accepted value')} of {printable(self.column, WIDTH)}"


def catalog(collection: Collection, column: str, *, k: int = 10) -> Catalog:
    """Propose values of a column for the stories that lack it, from their nearest neighbors that have it.

    A value gets votes from the k nearest stories with a value, weighted by exp(similarity / deviation of unrelated
    stories). Its probability is a logistic regression of its share of the votes and the similarity of its nearest
    story, fitted on the stories with a value, each predicted by the others. With n such stories, no probability is
    above (n + 1) / (n + 2). The accuracy and its reliability are cross-validated in up to ten folds of stories. A value
    that only one story has can't be found for that story, which lowers all probabilities, as a value that no story has
    would.

    Args:
        collection: N stories, some of them with a value in the column.
        column: the column, such as a tale type, an author or a genre.
        k: number of nearest stories that vote.

    Returns:
        A `Catalog`: `.accuracy`, `.proposals`, `.table()`, `.write(path)`, `.fill(accepted)`.

    Raises:
        DataError: if there are too few values to learn from.
        OptionError: if there is no such column, or k is below 1.

    >>> from narrlit.data.tales import sample_tales
    >>> tales = pd.DataFrame(sample_tales())
    >>> tales.loc[18, "atu"] = None
    >>> result = catalog(Collection.of(tales, measure="csls"), "atu")
    >>> best = result.proposals[0].values[0]
    >>> result.proposals[0].title, best.value, best.stories[0].title
    ('The Tiger, the Brahman and the Jackal', '155', 'The Wolf of Zhongshan')
    """
    if k < 1:
        raise OptionError("at_least", option="k", found=k, least=1)
    codes, names = _codes(collection, column)
    labeled = np.flatnonzero(codes >= 0)
    neighbors = LabeledNeighbors.of(collection.similarities, labeled, min(k, len(labeled) - 1))
    try:
        calibrated = calibrate(CandidateValues.of(neighbors, codes), codes)
    except ValueError as error:
        raise DataError("too_few_values", column=column, reason=error) from error
    best = calibrated.best()
    is_known = codes[calibrated.candidates.stories[best]] >= 0
    best_of_known = best[is_known]
    known = calibrated.candidates.take(best_of_known)
    is_right = known.codes == codes[known.stories]
    sizes = np.bincount(codes[labeled])
    frame = collection.frame
    evidence = _Evidence(frame["id"].tolist(), frame["title"].tolist(), codes, names, neighbors)
    proposals = [evidence.proposal(calibrated, row) for row in np.flatnonzero(codes < 0).tolist()]
    proposals.sort(key=lambda proposal: -proposal.best.probability)
    return Catalog(
        collection=collection,
        column=column,
        proposals=proposals,
        accuracy=estimate_count(int(is_right.sum()), len(labeled)),
        baseline=estimate_count(int(sizes.max()), len(labeled)),
        most_frequent=names[int(sizes.argmax())],
        reliability=_reliability(calibrated.probabilities[best_of_known], is_right),
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What proposals are made of: the neighbors of N stories, with the names of their values.

    Attributes:
        ids: N ids.
        titles: N titles.
        codes: (N,) number of each story's value; -1: it has none.
        names: names of the values.
        neighbors: nearest stories with a value.
    """

    ids: Sequence[str]
    titles: Sequence[str]
    codes: IntArray
    names: Sequence[str]
    neighbors: LabeledNeighbors

    def proposal(self, calibrated: CalibratedCandidates, row: int) -> Proposal:
        """Propose the most probable values of a story."""
        candidates = calibrated.candidates
        start, end = np.searchsorted(candidates.stories, (row, row + 1))
        order = start + np.argsort(-calibrated.probabilities[start:end], kind="stable")
        values = []
        for candidate in order[:VALUES].tolist():
            code = int(candidates.codes[candidate])
            probability = float(calibrated.probabilities[candidate])
            values.append(ProposedValue(self.names[code], probability, self._similar(row, code)))
        return Proposal(self.ids[row], self.titles[row], values)

    def _similar(self, row: int, code: int) -> list[SimilarStory]:
        """List the nearest neighbors of a story that have a value."""
        similar = []
        for neighbor, similarity in zip(self.neighbors.rows[row], self.neighbors.similarities[row], strict=True):
            if self.codes[neighbor] == code:
                similar.append(SimilarStory(self.ids[neighbor], self.titles[neighbor], float(similarity)))
        return similar[:EVIDENCE]


def _codes(collection: Collection, column: str) -> tuple[IntArray, list[str]]:
    """Number the values of a column (N,), -1 where it is empty, and name them.

    Raises:
        DataError: if fewer than two values occur, or no two stories share one.
        OptionError: if there is no such column.
    """
    values = column_values(collection, column, "column")
    source = collection.about["source"]
    numbers: dict[str, int] = {}
    codes = np.full(len(values), -1)
    for row, value in enumerate(values):
        if value is not None:
            codes[row] = numbers.setdefault(str(value), len(numbers))
    if len(numbers) < 2:
        raise DataError("few_values", column=column, source=source)
    if np.bincount(codes[codes >= 0]).max() < 2:
        raise DataError("no_shared_value", column=column)
    return codes, list(numbers)


def _reliability(probabilities: NDArray[np.float64], is_right: NDArray[np.bool_]) -> list[Reliability]:
    """Compare probabilities with the share of right values, in intervals that are not empty, the highest first."""
    inside = np.clip(np.digitize(probabilities, BOUNDS) - 1, 0, len(BOUNDS) - 2)
    parts = []
    for part in range(len(BOUNDS) - 2, -1, -1):
        in_part = inside == part
        if not in_part.any():
            continue
        mean = float(probabilities[in_part].mean())
        parts.append(Reliability(BOUNDS[part], BOUNDS[part + 1], mean, estimate(is_right[in_part])))
    return parts


def _listed(stories: Sequence[SimilarStory]) -> str:
    """List stories by their titles, with similarities."""
    listed = []
    for story in stories:
        listed.append(f"{printable(story.title or story.id, WIDTH)} ({story.similarity:.3f})")
    return "; ".join(listed)
