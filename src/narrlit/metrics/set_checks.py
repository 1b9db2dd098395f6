"""Checks of training, validation and test data: stories that sets share, and shortcuts that solve their triples."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from narrlit.console import counted
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
from narrlit.data.rows import Layout, read_rows
from narrlit.data.schema import normal_text
from narrlit.data.splits import overlap
from narrlit.metrics.baselines import BASELINES
from narrlit.metrics.significance import wilson_interval

Check = dict[str, Any]
Near = dict[str, dict[str, float]]
"""Near-duplicates of each text, with their Jaccard index."""

WORDS_PER_SHINGLE, PERMUTATIONS = 3, 128
HIGHEST_THRESHOLD = 0.99
"""Highest threshold of LSH, above which datasketch refuses its single band; the exact index decides in any case."""
MOST_VALUES = 12
"""Largest number of values of a column that counts as sources of rows."""
QUICK_ROWS = 1000
"""Rows of a set, evenly spaced, that a quick check probes."""
PROBES = {
    "always_a": "always A",
    "always_b": "always B",
    "longer": "the longer candidate",
    "shorter": "the shorter candidate",
    "jaccard": "word overlap (Jaccard)",
    "tfidf": "word overlap (TF-IDF)",
}
"""Probes by the words that name them; the last one is too slow for a quick check."""
EASY = {("jaccard", "tfidf"): 0.7, ("longer", "shorter"): 0.7, ("always_a", "always_b"): 0.55}
"""Groups of probes, with the accuracy that the interval of one must exceed to be called a shortcut."""


@dataclass(frozen=True)
class CheckedSet:
    """Rows of one role."""

    name: str  # train, validation or test
    rows: Sequence[tuple[str, ...]]  # texts, anchor first; of a story, its text alone
    labels: Sequence[bool | None]  # True where the second text is closer than the third, None where unknown
    sided: bool = False  # the second text is candidate A; otherwise it is the positive
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # cells of columns that were not read
    lines: Sequence[int] = ()  # line numbers of the rows
    report: ReadReport | None = None  # of the reader


def read_set(name: str, path: str, labels: str | None = None, layout: Layout = Layout()) -> CheckedSet:
    """Read a file of triples, training examples or stories; rows of `train` are dropped as for a fit.

    Raises:
        DataError: if a file can't be read, the labels don't fit, or no row can be used.
    """
    file = read_rows(path, layout)
    if labels is not None:
        file = with_labels(file, read_rows(labels))

    def usable(row: Any) -> Any:
        if name == "train" and isinstance(row, ExampleRow):
            training_texts(row)
        return row

    results, report = collect(file, models_of(file, layout), f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}", False, usable)
    model = type(results[0][1])
    unread = report.unread if issubclass(model, ExampleRow) else ()
    return CheckedSet(
        name,
        [tuple(row.texts) for _, row in results],
        [row.text_a_is_closer if model is TripleRow else True if len(row.texts) > 2 else None for _, row in results],
        sided=all("text_a" in row.value for row, _ in results),
        columns={column: [str(row.value.get(column)) for row, _ in results] for column in unread},
        lines=[row.line for row, _ in results],
        report=report,
    )


def check_sets(sets: Sequence[CheckedSet], threshold: float | None = None) -> Check:
    """Check sets of rows.

    Args:
        sets: train, validation and perhaps test.
        threshold: Jaccard index of shingles from which stories are near-duplicates; None: a quick check, about a second
            without near-duplicates and TF-IDF, with at most QUICK_ROWS rows of a set probed.

    Returns:
        Plain data: `files`, `shared`, `probes` and `sources` are flat rows of tables, `verdict` sentences, `warnings`
        those of them that a fit shows, `duplicates` pairs of lines.
    """
    stories = [{normal_text(text): i for i, row in reversed([*enumerate(each.rows)]) for text in row} for each in sets]
    quick = threshold is None
    near = near_duplicates([*dict.fromkeys(text for own in stories for text in own)], threshold) if threshold else {}
    check: Check = {"threshold": threshold, "files": [], "shared": [], "probes": [], "sources": []}
    for each, own in zip(sets, stories, strict=True):
        read = each.report
        file = {"file": read.path.name, "dropped": sum(read.dropped.values())} if read else {}
        entry = {"set": each.name, **file, "rows": len(each.rows), "stories": len(own)}
        check["files"].append(entry | ({} if quick else {"near_duplicates": sum(_any(near, t, own) for t in own)}))
        known = [i for i, label in enumerate(each.labels) if label is not None]
        spread = known[:: -(-len(known) // QUICK_ROWS) or 1]
        check["probes"] += _probe(each, spread, [*PROBES][:-1]) if quick else _probe(each, known, [*PROBES])
        check["sources"] += [] if quick else _sources(each, known)
    at = {each.name: place for place, each in enumerate(sets)}
    for of, within in (("validation", "train"), ("test", "train"), ("validation", "test")):
        if of in at and within in at:
            own, others = stories[at[of]], stories[at[within]]
            entry = _shared(sets[at[of]], sets[at[within]])
            alike = sum(text not in others and _any(near, text, others) for text in own)
            check["shared"].append(entry | ({} if quick else {"near_duplicates": alike}))
    sentences = list(_verdict(check))
    check |= {"verdict": [line for line, _ in sentences], "warnings": [line for line, warns in sentences if warns]}
    return check if quick else check | {"duplicates": list(_duplicates(sets, stories, near))}


# Shared stories ------------------------------------------------------------------------------------------------------


def near_duplicates(texts: Sequence[str], threshold: float) -> Near:
    """Find texts whose sets of shingles of three words have a Jaccard index of at least `threshold`.

    MinHash LSH (Broder 1997) proposes pairs, of which the exact index decides: none is wrong, few are missed.

    >>> near_duplicates(["a knight rides at dawn", "a knight rides at night", "a farm"], 0.5)["a knight rides at dawn"]
    {'a knight rides at night': 0.5}
    """
    from datasketch import MinHash, MinHashLSH

    # Missed pairs weigh more than needless ones, which the exact index removes.
    index = MinHashLSH(min(threshold, HIGHEST_THRESHOLD), PERMUTATIONS, weights=(0.1, 0.9))
    sets = [_shingles(text) for text in texts]
    near: Near = {text: {} for text in texts}
    words = ([shingle.encode("utf-8", "replace") for shingle in each] for each in sets)
    for place, sketch in enumerate(MinHash.generator(words, num_perm=PERMUTATIONS)):
        for other in index.query(sketch):
            jaccard = len(sets[place] & sets[other]) / len(sets[place] | sets[other])
            if jaccard >= threshold:
                near[texts[place]][texts[other]] = near[texts[other]][texts[place]] = jaccard
        index.insert(place, sketch)
    return near


def _shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text) or [text]
    return {" ".join(words[i : i + WORDS_PER_SHINGLE]) for i in range(max(1, len(words) - WORDS_PER_SHINGLE + 1))}


def _any(near: Near, text: str, stories: Mapping[str, int]) -> bool:
    return any(twin in stories for twin in near.get(text, ()))


def _shared(of: CheckedSet, within: CheckedSet) -> Check:
    common = overlap(of.rows, within.rows)
    own, others = ({text for row in each.rows for text in row} for each in (of, within))
    entry = {"of": of.name, "within": within.name, "stories": len(set(map(normal_text, own)))}
    entry |= {"shared": common.shared_stories, "exact": len(own & others)}
    if all(any(len(row) > 1 for row in each.rows) for each in (of, within)):
        entry |= {"anchors": common.shared_anchors, "pairs": common.shared_pairs}
    return entry


def _duplicates(sets: Sequence[CheckedSet], stories: Sequence[Mapping[str, int]], near: Near) -> Iterator[Check]:
    """Yield lines with the same story in two sets, or with near-duplicates in one or two; the first line of each."""
    for place, (one, own) in enumerate(zip(sets, stories, strict=True)):
        for text, row in own.items():
            for other, others in zip(sets[place:], stories[place:], strict=True):
                for twin, jaccard in {**near[text], **({} if other is one else {text: 1.0})}.items():
                    if twin in others and (other is not one or text < twin):
                        lines = {"line": one.lines[row], "other_line": other.lines[others[twin]]}
                        yield {"set": one.name, "other": other.name, **lines, "jaccard": round(jaccard, 3)}


# Probes --------------------------------------------------------------------------------------------------------------


def _probe(each: CheckedSet, known: Sequence[int], names: Sequence[str]) -> list[Check]:
    """Accuracy of probes on labeled rows, each with its 95 % interval (Wilson)."""
    triples: Any = [each.rows[i][:3] for i in known]
    truth = np.array([each.labels[i] for i in known])
    entries = []
    for name in names if known else ():
        if name.startswith("always"):
            if not each.sided:
                continue
            answers = np.full(len(known), name == "always_a")
        else:
            a, b = BASELINES["longer" if name == "shorter" else name](triples).T
            answers = a < b if name == "shorter" else a > b
        correct, n = int((answers == truth).sum()), len(known)
        result = {"n": n, "correct": correct, "accuracy": correct / n, "interval": [*wilson_interval(correct, n)]}
        entries.append({"set": each.name, "probe": name, **result})
    return entries


def _sources(each: CheckedSet, known: Sequence[int]) -> Iterator[Check]:
    """Yield share of A and accuracy of word overlap by the values of columns that may tell where a row comes from."""
    for column, cells in each.columns.items():
        values = Counter(cells[i] for i in known)
        if 1 < len(values) <= min(MOST_VALUES, len(known) // 5):
            for value, _ in values.most_common():
                rows = [i for i in known if cells[i] == value]
                for entry in _probe(each, rows, ("always_a", "jaccard")):
                    yield {"set": each.name, "column": column, "value": value, **entry}


# Verdict and tables --------------------------------------------------------------------------------------------------


def _verdict(check: Check) -> Iterator[tuple[str, bool]]:
    """Yield sentences, each with True if a fit warns of it; shared pairs are a flag of its record."""
    for row in check["shared"]:
        yield _sharing(row), bool(row["shared"]) and not row.get("pairs")
    probes: dict[str, dict[str, Check]] = {}
    for probe in check["probes"]:
        probes.setdefault(probe["probe"], {})[probe["set"]] = probe
    for names, least in EASY.items():
        lines = [line for name in names if (line := _shortcut(probes.get(name, {}), least))]
        yield from [(line, True) for line in lines[:1]]
    for name in ("validation", "test"):
        known = [by_set[name] for by_set in probes.values() if name in by_set]
        if known:
            best = max(known, key=lambda probe: int(probe["correct"]))
            yield f"A system has to beat {PROBES[best['probe']]}: {_share(best)}.", False


def _sharing(row: Check) -> str:
    of, within, pairs = row["of"], row["within"], row.get("pairs")
    line = f"{row['shared']} of {row['stories']} {of} stories are also in {within}"
    if not row["shared"]:
        line = f"No {of} story is in {within}"
    elif pairs is None:
        line += "; a file of stories has no pairs to compare"
    elif pairs:
        learned, graded = ("train", of) if within == "train" else (of, within)
        line += (
            f", {counted(pairs, 'pair')} of anchor and candidate too: training on {learned} may tell labels of {graded}"
        )
        line += "; leave these rows out"
    else:
        seen = "a model has read these texts" if within == "train" else "a transductive method sees them"
        line += f", in other triples; no pair is shared: labels do not leak, but {seen}"
    near = row.get("near_duplicates")
    return f"{line}{f'; {near} more have near-duplicates there' if near else ''}."


def _shortcut(by_set: Mapping[str, Check], least: float) -> str | None:
    """Describe a probe that solves one of the sets; None where it solves none."""
    easy = [name for name, probe in by_set.items() if probe["interval"][0] > least]
    if not easy:
        return None
    first = by_set[easy[0]]
    line = f"Shortcut: {PROBES[first['probe']]} alone solves {_share(first)}"
    others = [probe for name, probe in by_set.items() if name != easy[0]]
    for probe in others:
        line += f" {'but' if probe['interval'][1] < first['interval'][0] else 'and'} {_share(probe)}"
    if easy != ["train"]:
        return f"{line}: accuracy on {easy[-1]} may be nothing else."
    return f"{line}: a model can learn it{', and validation cut from train says nothing' if others else ''}."


def _share(probe: Check) -> str:
    return f"{100 * probe['accuracy']:.1f} % of {probe['set']} ({probe['correct']} of {probe['n']})"


def check_tables(check: Check) -> dict[str, list[dict[str, Any]]]:
    """Format a check as tables: rows of cells by title."""
    titles = {"files": "Files", "shared": "Shared stories", "probes": "Probes", "sources": "Probes by source"}
    return {title: [_cells(row) for row in check[name]] for name, title in titles.items() if check[name]}


def _cells(row: Check) -> dict[str, Any]:
    cells = {name.replace("_", " "): value for name, value in row.items() if name != "interval"}
    if "interval" in row:
        cells["probe"] = PROBES[row["probe"]]
        cells["accuracy"] = "{:.3f} [{:.3f}, {:.3f}]".format(row["accuracy"], *row["interval"])
    return cells
