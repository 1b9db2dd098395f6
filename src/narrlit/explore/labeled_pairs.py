"""`narrlit.label_pairs`: make training and test data from readers' decisions on pairs of stories."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from narrlit.console import counted
from narrlit.data.readers import LABEL_COLUMN
from narrlit.data.schema import a_comes_first, connected, normal_text
from narrlit.data.writers import OUTPUT_SUFFIXES, write_table
from narrlit.errors import DataError, printable
from narrlit.explore.pair_decisions import Decision, PairDecision, StoryPair
from narrlit.files import check_writable
from narrlit.library.collection import Collection
from narrlit.library.story_frame import rows_by_id, texts_by_id

VERSION_OF = "version_of"
"""Column of a table of stories in which versions of one story have the same value."""


@dataclass(frozen=True, eq=False)
class LabeledPairs:
    """Pairs of stories with a label, and the groups of versions and triples that follow from them.

    A pair is labeled `same` or `different` if all readers who are not unsure decided so. Stories that are joined by
    pairs labeled `same` are versions of one story.

    Attributes:
        collection: N stories.
        labels: the label of each pair, in the order of the decisions.
        disagreed: pairs on which readers disagree.
        unsure: number of pairs on which all readers are unsure.
        unknown: number of pairs with a story that the collection lacks.
    """

    collection: Collection
    labels: dict[StoryPair, Decision]
    disagreed: Sequence[StoryPair]
    unsure: int
    unknown: int

    @cached_property
    def contradictions(self) -> list[StoryPair]:
        """Pairs labeled `different` whose stories are joined by pairs labeled `same`; their groups are left out."""
        component_of = self._component_of
        return [pair for pair in self._labeled("different") if component_of[pair.a] == component_of[pair.b]]

    @cached_property
    def versions(self) -> dict[str, list[str]]:
        """Ids of two or more versions of one story, by the id of the first, in the order of the collection."""
        members: dict[int, list[str]] = {}
        for id, component in self._component_of.items():
            members.setdefault(component, []).append(id)
        for pair in self.contradictions:
            members.pop(self._component_of[pair.a], None)
        return {ids[0]: ids for ids in members.values() if len(ids) > 1}

    @cached_property
    def first_version(self) -> dict[str, str]:
        """Id of the first version of each story that has a known version, by the story's id."""
        first_version: dict[str, str] = {}
        for first, ids in self.versions.items():
            first_version.update(dict.fromkeys(ids, first))
        return first_version

    def table(self) -> pd.DataFrame:
        """Tabulate the labeled pairs: id_a, id_b, decision."""
        rows = [(pair.a, pair.b, label) for pair, label in self.labels.items()]
        return pd.DataFrame(rows, columns=["id_a", "id_b", "decision"])

    def groups(self) -> pd.DataFrame:
        """Tabulate all stories with the column `version_of`, for `narrlit fit` and `narrlit retrieval`.

        Returns:
            One row per story: id, title, text, version_of (id of the first version; None for a story without a known
            version), then the metadata columns.
        """
        frame = self.collection.frame.drop(columns=VERSION_OF, errors="ignore")
        first_versions = map(self.first_version.get, frame["id"])
        frame.insert(3, VERSION_OF, pd.Series(list(first_versions), dtype=object))
        return frame

    def triples(self) -> pd.DataFrame:
        """Tabulate labeled triples, for `narrlit evaluate`, `narrlit compare` and `narrlit fit`.

        Each story of a pair labeled `different` is the anchor of triples with each of its versions as the closer
        candidate and the other story of the pair as the other one.

        Returns:
            One row per triple: anchor_text, text_a, text_b, text_a_is_closer, group (id of the anchor's first version),
            and the ids of the three stories: anchor_id, id_a, id_b.
        """
        text_of = texts_by_id(self.collection.frame)
        rows = []
        for anchor, closer, other in self._triple_ids():
            is_a = a_comes_first(text_of[anchor])
            a, b = (closer, other) if is_a else (other, closer)
            rows.append(
                {
                    "anchor_text": text_of[anchor],
                    "text_a": text_of[a],
                    "text_b": text_of[b],
                    LABEL_COLUMN: is_a,
                    "group": self.first_version[anchor],
                    "anchor_id": anchor,
                    "id_a": a,
                    "id_b": b,
                }
            )
        return pd.DataFrame(rows)

    def write_groups(self, path: str | Path) -> None:
        """Write the stories with the column `version_of`.

        `narrlit fit --data.versions.files PATH --data.versions.same version_of` trains on them, and
        `narrlit retrieval PATH --same version_of` evaluates on them.

        Raises:
            DataError: if no pair is labeled `same`.
            OptionError: if the suffix is unknown.
        """
        check_writable(path, *OUTPUT_SUFFIXES)
        if not self.versions:
            raise DataError("no_version", path=path)
        write_table(path, self.groups().to_dict("records"))

    def write_triples(self, path: str | Path) -> None:
        """Write the labeled triples.

        `narrlit evaluate PATH` evaluates on them, and `narrlit fit --data.train PATH` trains on them.

        Raises:
            DataError: if there is no triple.
            OptionError: if the suffix is unknown.
        """
        check_writable(path, *OUTPUT_SUFFIXES)
        triples = self.triples()
        if triples.empty:
            raise DataError("no_triple", path=path)
        write_table(path, triples.to_dict("records"))

    def __str__(self) -> str:
        """Numbers of labeled pairs, groups and triples, and what was left out, a line each."""
        same, different = len(self._labeled("same")), len(self._labeled("different"))
        grouped = f"{len(self.first_version):,} of {counted(len(self.collection), 'story')}"
        triples = len(list(self._triple_ids()))
        lines = [
            f"{counted(same, 'pair')} of versions and {counted(different, 'pair')} of different stories: "
            f"{counted(len(self.versions), 'group')} with {grouped}, {counted(triples, 'triple')}"
        ]
        if self.disagreed:
            lines.append(f"left out, since readers disagree: {_shown(self.disagreed)}")
        if self.unsure:
            lines.append(f"left out, since all readers are unsure: {counted(self.unsure, 'pair')}")
        if self.contradictions:
            lines.append(
                "left out, with all versions of both, since they are different and yet joined by pairs that are the "
                f"same: {_shown(self.contradictions)}"
            )
        if self.unknown:
            source = self.collection.about["source"]
            lines.append(f"left out, since {source} lacks one of the stories: {counted(self.unknown, 'pair')}")
        return "\n".join(lines)

    def _labeled(self, label: Decision) -> list[StoryPair]:
        """List the pairs with a label, in the order of the decisions."""
        return [pair for pair, own_label in self.labels.items() if own_label == label]

    @cached_property
    def _component_of(self) -> dict[str, int]:
        """Number of the component to which pairs labeled `same` join each story, by id in the collection's order."""
        row_of = rows_by_id(self.collection.frame)
        links = [(row_of[pair.a], row_of[pair.b]) for pair in self._labeled("same")]
        return dict(zip(row_of, connected(links, len(row_of)).tolist(), strict=True))

    def _triple_ids(self) -> Iterator[tuple[str, str, str]]:
        """Yield the ids of anchor, closer candidate and other candidate, without triples that contain copies."""
        text_of = texts_by_id(self.collection.frame)
        for pair in self._labeled("different"):
            for anchor, other in ((pair.a, pair.b), (pair.b, pair.a)):
                if anchor not in self.first_version:
                    continue
                for version in self.versions[self.first_version[anchor]]:
                    distinct_texts = set(map(normal_text, (text_of[anchor], text_of[version], text_of[other])))
                    if len(distinct_texts) == 3:
                        yield anchor, version, other


def label_pairs(collection: Collection, decisions: Iterable[PairDecision]) -> LabeledPairs:
    """Label pairs of stories by readers' decisions, as training and test data.

    A pair is left out if readers disagree, or all are unsure.

    Args:
        collection: N stories.
        decisions: decisions, such as a `PairDecisions` or those that `read_decisions` returns.

    Returns:
        A `LabeledPairs`: `.groups()`, `.triples()`, `.write_groups(path)`, `.write_triples(path)`.

    >>> from narrlit.explore.pair_decisions import PairDecisions
    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> decisions = PairDecisions(getfixture("tmp_path") / "decisions.jsonl")
    >>> decisions.add("1", "2", "same")
    >>> decisions.add("2", "3", "different")
    >>> print(label_pairs(tales, decisions))
    1 pair of versions and 1 pair of different stories: 1 group with 2 of 3 stories, 1 triple
    """
    decisions_on: dict[StoryPair, set[Decision]] = {}
    for made in decisions:
        decisions_on.setdefault(made.pair, set()).add(made.decision)
    known = set(collection.frame["id"])
    labels: dict[StoryPair, Decision] = {}
    disagreed = []
    unsure = unknown = 0
    for pair, all_decisions in decisions_on.items():
        sure = all_decisions - {"unsure"}
        if pair.a not in known or pair.b not in known:
            unknown += 1
        elif not sure:
            unsure += 1
        elif len(sure) > 1:
            disagreed.append(pair)
        else:
            [labels[pair]] = sure
    return LabeledPairs(collection, labels, disagreed, unsure, unknown)


def _shown(pairs: Sequence[StoryPair], limit: int = 5) -> str:
    """List the first pairs by the ids of their stories, and count the others."""
    shown = [f"{printable(pair.a, 60)} and {printable(pair.b, 60)}" for pair in pairs[:limit]]
    if len(pairs) > limit:
        shown.append(f"{len(pairs) - limit:,} more")
    return "; ".join(shown)
