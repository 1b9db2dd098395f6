"""Checks of training, validation and test data, for stories that sets share and for shortcuts in their triples."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

from narrlit.data.readers import (
    EXAMPLES_KNOWN,
    STORIES_KNOWN,
    ExampleRow,
    ReadReport,
    TripleRow,
    collect,
    models_of,
    training_texts,
    with_labels,
)
from narrlit.data.row_file import FileRow
from narrlit.data.rows import Layout, read_rows
from narrlit.data.schema import normal_text
from narrlit.data.splits import overlap
from narrlit.preprocessing.words import index_words
from narrlit.statistics.baselines import BASELINES, TripleTexts
from narrlit.statistics.estimates import estimate
from narrlit.statistics.words import WEIGHTED, stop_words_of

CheckRecord = dict[str, Any]
Near = dict[str, dict[str, float]]
"""Near-duplicates of each text, with the Jaccard index."""

WORDS_PER_SHINGLE, PERMUTATIONS = 3, 128
HIGHEST_THRESHOLD = 0.99
"""Highest threshold that datasketch's LSH supports; the exact Jaccard index is checked afterwards anyway."""
MOST_VALUES = 12
"""Maximum number of values of a column that may indicate the sources of rows."""
QUICK_ROWS = 1000
"""Maximum number of rows of a set, evenly spaced, in a quick check."""
PROBES = {
    "always_a": "always A",
    "always_b": "always B",
    "longer": "the longer candidate",
    "shorter": "the shorter candidate",
    "jaccard": "word overlap (Jaccard)",
    "tfidf": "word overlap (TF-IDF)",
    "bm25": "word overlap (BM25)",
}
"""Names and descriptions of probes, which answer triples without a model."""
QUICK_PROBES = [name for name in PROBES if name not in WEIGHTED]
SOURCE_PROBES = ("always_a", "jaccard")
SIDED_PROBES = ("always_a", "always_b")
"""Probes of the order of the candidates; they do not apply to training examples, whose first text is the positive."""
COMPARED_SETS = (("validation", "train"), ("test", "train"), ("validation", "test"))
"""Pairs of sets; stories of the first are searched in the second."""
TABLES = {"files": "Files", "shared": "Shared stories", "probes": "Probes", "sources": "Probes by source"}
"""Parts of a check that are shown as tables, with their titles."""


@dataclass(frozen=True)
class CheckedSet:
    """Rows of training, validation or test data.

    Attributes:
        name: train, validation or test.
        rows: texts of each row: anchor and candidates, or a single story.
        labels: True if the second text is closer than the third, None if unknown.
        sided: True if the second text is candidate A; otherwise it is the positive.
        columns: cells of the columns other than texts and labels.
        lines: line number of each row in its file.
        report: report of the reader; None without a file.
    """

    name: str
    rows: Sequence[tuple[str, ...]]
    labels: Sequence[bool | None]
    sided: bool = False
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lines: Sequence[int] = ()
    report: ReadReport | None = None

    @classmethod
    def of_examples(cls, name: str, rows: Sequence[tuple[str, ...]]) -> "CheckedSet":
        """Create a set of training examples from their texts: anchor, positive and negatives."""
        return cls(name, rows, list(map(_label_of_example, rows)))

    @cached_property
    def stories(self) -> dict[str, int]:
        """Index of the first row of each distinct story, by its normalized text."""
        first_rows: dict[str, int] = {}
        for index in reversed(range(len(self.rows))):  # earlier rows overwrite later ones
            for text in self.rows[index]:
                first_rows[normal_text(text)] = index
        return first_rows

    def line_of(self, story: str) -> int:
        """Return the line of the first row that contains a story, given by its normalized text."""
        return self.lines[self.stories[story]]

    @property
    def texts(self) -> set[str]:
        """Distinct texts, not normalized."""
        return set(chain.from_iterable(self.rows))

    @property
    def labeled_rows(self) -> list[int]:
        """Indices of the rows with a label."""
        return [index for index, label in enumerate(self.labels) if label is not None]

    @property
    def has_candidates(self) -> bool:
        """False for a set of single stories."""
        return any(len(row) > 1 for row in self.rows)

    def num_near_duplicates(self, near: Near, other: "CheckedSet") -> int:
        """Count the stories that are not in another set but have a near-duplicate there.

        If `other` is the set itself, count its stories with a near-duplicate in the same set.
        """
        count = 0
        for text in self.stories:
            if other is not self and text in other.stories:
                continue
            duplicates = near.get(text, {})
            if not other.stories.keys().isdisjoint(duplicates):
                count += 1
        return count


def read_set(name: str, path: str, labels: str | None = None, layout: Layout = Layout()) -> CheckedSet:
    """Read a file of triples, training examples or stories; invalid rows of `train` are dropped as in training.

    Raises:
        DataError: if a file can't be read, the labels do not match, or no row is valid.
    """
    file = read_rows(path, layout)
    if labels is not None:
        file = with_labels(file, read_rows(labels))

    def check_row(parsed: Any) -> Any:
        if name == "train" and isinstance(parsed, ExampleRow):
            training_texts(parsed)
        return parsed

    known = f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}"
    results, report = collect(file, models_of(file, layout), known, strict=False, convert=check_row)
    rows: list[FileRow] = []
    texts: list[tuple[str, ...]] = []
    labels_of_rows: list[bool | None] = []
    for row, parsed in results:
        rows.append(row)
        texts.append(tuple(parsed.texts))
        labels_of_rows.append(_label(parsed))
    _, first_parsed = results[0]
    return CheckedSet(
        name,
        texts,
        labels_of_rows,
        sided=all("text_a" in row.value for row in rows),
        columns=_cells_by_column(rows, report.unread) if isinstance(first_parsed, ExampleRow) else {},
        lines=[row.line for row in rows],
        report=report,
    )


def _cells_by_column(rows: Sequence[FileRow], columns: Iterable[str]) -> dict[str, list[str]]:
    """Return the cells of some columns, row by row."""
    cells: dict[str, list[str]] = {}
    for column in columns:
        cells[column] = [str(row.value.get(column)) for row in rows]
    return cells


def _label(parsed: Any) -> bool | None:
    """Return the label of a triple, a training example or a single story."""
    if isinstance(parsed, TripleRow):
        return parsed.text_a_is_closer
    return _label_of_example(parsed.texts)


def _label_of_example(texts: Sequence[str]) -> bool | None:
    """Return the label of a training example: True if it has a negative, because its second text is the positive."""
    return True if len(texts) > 2 else None


def check_sets(sets: Sequence[CheckedSet], threshold: float | None = None) -> CheckRecord:
    """Check sets of rows.

    Args:
        sets: train, validation and perhaps test.
        threshold: Jaccard index of shingles from which stories are near-duplicates; None: a quick check of about a
            second, without near-duplicates and TF-IDF, with at most QUICK_ROWS rows of each set.

    Returns:
        Plain data: `files`, `shared`, `probes` and `sources` are rows of tables, `duplicates` are pairs of lines.
    """
    near = None if threshold is None else near_duplicates(_distinct_stories(sets), threshold)
    by_name = {checked.name: checked for checked in sets}
    shared: list[CheckRecord] = []
    for name, other_name in COMPARED_SETS:
        if name in by_name and other_name in by_name:
            shared.append(_compare(by_name[name], by_name[other_name], near))
    probes: list[CheckRecord] = []
    sources: list[CheckRecord] = []
    for checked in sets:
        labeled = checked.labeled_rows
        if near is None:
            probes += _probe(checked, _evenly_spaced(labeled), QUICK_PROBES)
        else:
            probes += _probe(checked, labeled, list(PROBES))
            sources += _sources(checked, labeled)
    check: CheckRecord = {
        "threshold": threshold,
        "files": [_file_record(checked, near) for checked in sets],
        "shared": shared,
        "probes": probes,
        "sources": sources,
    }
    if near is not None:
        check["duplicates"] = list(_duplicates(sets, near))
    return check


def _distinct_stories(sets: Sequence[CheckedSet]) -> list[str]:
    """List the distinct normalized texts of all sets."""
    distinct: dict[str, None] = {}
    for checked in sets:
        distinct |= dict.fromkeys(checked.stories)
    return list(distinct)


def _evenly_spaced(rows: Sequence[int]) -> Sequence[int]:
    """Select at most QUICK_ROWS rows, evenly spaced."""
    step = max(1, math.ceil(len(rows) / QUICK_ROWS))
    return rows[::step]


def _file_record(checked: CheckedSet, near: Near | None) -> CheckRecord:
    """Count the rows and stories of a set."""
    record: CheckRecord = {"set": checked.name}
    if checked.report is not None:
        record["file"] = checked.report.path.name
        record["dropped"] = sum(checked.report.dropped.values())
    record |= {"rows": len(checked.rows), "stories": len(checked.stories)}
    if near is not None:
        record["near_duplicates"] = checked.num_near_duplicates(near, checked)
        probed = [checked.rows[row][:3] for row in checked.labeled_rows]
        record["stop_words"] = stop_words_of(list(chain.from_iterable(probed or checked.rows)))
    return record


# Shared stories ------------------------------------------------------------------------------------------------------


def near_duplicates(texts: Sequence[str], threshold: float) -> Near:
    """Find texts whose sets of three-word shingles have a Jaccard index of at least `threshold`.

    MinHash LSH (Broder 1997) proposes pairs, for which the exact index is computed: few pairs are missed, none is
    wrong.

    >>> texts = ["a knight rides to the old castle at dawn", "a knight rides to the old castle at night", "a farm"]
    >>> near_duplicates(texts, 0.5)[texts[0]]
    {'a knight rides to the old castle at night': 0.75}
    """
    # False negatives have the higher weight, because the exact index removes false positives.
    index = MinHashLSH(min(threshold, HIGHEST_THRESHOLD), PERMUTATIONS, weights=(0.1, 0.9))
    shingles = [_shingles(text) for text in texts]
    near: Near = {text: {} for text in texts}
    sketches = MinHash.generator(map(_encoded, shingles), num_perm=PERMUTATIONS)
    for number, sketch in enumerate(sketches):
        for other in index.query(sketch):
            common = len(shingles[number] & shingles[other])
            jaccard = common / len(shingles[number] | shingles[other])
            if jaccard >= threshold:
                near[texts[number]][texts[other]] = near[texts[other]][texts[number]] = jaccard
        index.insert(number, sketch)
    return near


def _shingles(text: str) -> set[str]:
    """Collect the sequences of three words in a text; a shorter text is one shingle."""
    words = index_words(text) or [text]
    count = max(1, len(words) - WORDS_PER_SHINGLE + 1)
    return {" ".join(words[start : start + WORDS_PER_SHINGLE]) for start in range(count)}


def _encoded(shingles: set[str]) -> list[bytes]:
    """Encode shingles in UTF-8."""
    return [shingle.encode("utf-8", "replace") for shingle in shingles]


def _compare(of: CheckedSet, within: CheckedSet, near: Near | None) -> CheckRecord:
    """Count the stories of a set that are in another one.

    `shared` ignores case and white space, `exact` does not; there are no `anchors` and `pairs` (of an anchor and a
    candidate) if one of the sets consists of single stories, and `near_duplicates` are further stories.
    """
    common = overlap(of.rows, within.rows)
    row: CheckRecord = {
        "of": of.name,
        "within": within.name,
        "stories": len(of.stories),
        "shared": common.shared_stories,
        "exact": len(of.texts & within.texts),
    }
    if of.has_candidates and within.has_candidates:
        row |= {"anchors": common.shared_anchors, "pairs": common.shared_pairs}
    if near is not None:
        row["near_duplicates"] = of.num_near_duplicates(near, within)
    return row


def _duplicates(sets: Sequence[CheckedSet], near: Near) -> Iterator[CheckRecord]:
    """Yield pairs of lines with the same story in two sets, or with near-duplicates in one or two sets.

    The line of a story is the first one that contains it.
    """
    for number, checked in enumerate(sets):
        for text in checked.stories:
            for other in sets[number:]:
                yield from _duplicates_of_story(text, checked, other, near[text])


def _duplicates_of_story(
    text: str, checked: CheckedSet, other: CheckedSet, near: Mapping[str, float]
) -> Iterator[CheckRecord]:
    """Yield the line of a story of a set with each line of the same or another set that has a duplicate of it."""
    duplicates = near if other is checked else {**near, text: 1.0}
    for duplicate, jaccard in duplicates.items():
        already_listed = other is checked and duplicate < text
        if duplicate in other.stories and not already_listed:
            yield {
                "set": checked.name,
                "other": other.name,
                "line": checked.line_of(text),
                "other_line": other.line_of(duplicate),
                "jaccard": round(jaccard, 3),
            }


# Probes --------------------------------------------------------------------------------------------------------------


def _probe(checked: CheckedSet, rows: Sequence[int], probes: Sequence[str]) -> list[CheckRecord]:
    """Compute the accuracies of probes on labeled rows."""
    if not rows:
        return []
    triples: list[TripleTexts] = []
    for row in rows:
        anchor, first, second = checked.rows[row][:3]
        triples.append((anchor, first, second))
    labels = np.array([checked.labels[row] for row in rows])
    results = []
    for probe in probes:
        if checked.sided or probe not in SIDED_PROBES:
            right = _answers(probe, triples) == labels
            accuracy = estimate(right)
            counts = {"n": accuracy.n, "correct": int(right.sum()), "accuracy": accuracy.value}
            interval = [accuracy.low, accuracy.high]
            results.append({"set": checked.name, "probe": probe, **counts, "interval": interval})
    return results


def _answers(probe: str, triples: Sequence[TripleTexts]) -> NDArray[np.bool_]:
    """Answer triples by a probe: True for the second text, False for the third."""
    if probe in SIDED_PROBES:
        return np.full(len(triples), probe == "always_a")
    if probe == "shorter":
        lengths = BASELINES["longer"](triples)
        return lengths[:, 0] < lengths[:, 1]
    scores = BASELINES[probe](triples)
    return scores[:, 0] > scores[:, 1]


def _sources(checked: CheckedSet, labeled: Sequence[int]) -> Iterator[CheckRecord]:
    """Yield accuracies of "always A" and word overlap by the values of columns that may indicate the source of rows."""
    for column, cells in checked.columns.items():
        rows_by_value: dict[str, list[int]] = {}
        for row in labeled:
            rows_by_value.setdefault(cells[row], []).append(row)
        if not 1 < len(rows_by_value) <= min(MOST_VALUES, len(labeled) // 5):
            continue
        most_frequent_first = sorted(rows_by_value, key=lambda value: len(rows_by_value[value]), reverse=True)
        for value in most_frequent_first:
            for result in _probe(checked, rows_by_value[value], SOURCE_PROBES):
                yield {"set": checked.name, "column": column, "value": value, **result}


# Tables ---------------------------------------------------------------------------------------------------------------


def check_tables(check: CheckRecord) -> dict[str, list[dict[str, Any]]]:
    """Format a check as tables, as rows of cells by title."""
    tables = {}
    for name, title in TABLES.items():
        if check[name]:
            tables[title] = list(map(_cells, check[name]))
    return tables


def _cells(row: CheckRecord) -> dict[str, Any]:
    """Format a row of a table."""
    cells = {name.replace("_", " "): value for name, value in row.items()}
    if "interval" in row:
        low, high = cells.pop("interval")
        cells["probe"] = PROBES[row["probe"]]
        cells["accuracy"] = f"{row['accuracy']:.3f} [{low:.3f}, {high:.3f}]"
    if "stop_words" in row:
        cells["stop words"] = row["stop_words"] or "none"
    return cells
