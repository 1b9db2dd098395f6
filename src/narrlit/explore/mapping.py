"""`narrlit.map_stories`: draw a collection, with its groups, nearest stories and linked passages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from narrlit.console import counted
from narrlit.data.writers import write_table
from narrlit.errors import OptionError, printable
from narrlit.explore.agreement import Agreement, neighbor_agreement
from narrlit.explore.map_drawing import write_map_svg
from narrlit.explore.map_page import map_page, matched_pairs
from narrlit.explore.story_map import StoryMap, arrange_stories
from narrlit.files import PAGE_SUFFIXES, atomic_path, check_writable
from narrlit.library.collection import Collection, column_values
from narrlit.measures.names import DESCRIPTIONS
from narrlit.models.checkpoints import read_record
from narrlit.models.coverage import language_warning
from narrlit.pages import in_frame
from narrlit.statistics.diagnostics import SimilarityDiagnostics
from narrlit.statistics.evaluations import estimate_of

NOT_MEASURED = "not measured on labeled triples"


@dataclass(frozen=True, eq=False)
class CollectionMap:
    """Map of a collection: up to 300 stories as a dendrogram with a heat map, more as a scatter plot.

    Attributes:
        collection: N stories.
        arranged: order or positions of the stories, their groups and nearest stories.
        agreement: agreement of the nearest stories with a column; None without a column.
        values: (N) values of that column; empty without one.
        accuracy: sentence about the accuracy of the encoder, if known.
        diagnostics: hubness of the similarities.
    """

    collection: Collection
    arranged: StoryMap
    agreement: Agreement | None
    values: Sequence[str]
    accuracy: str
    diagnostics: SimilarityDiagnostics

    def table(self) -> pd.DataFrame:
        """Tabulate each story's nearest stories: id, title, rank, id and title of the neighbor, similarity."""
        return pd.DataFrame(self.arranged.neighbor_rows())

    def groups(self) -> pd.DataFrame:
        """Tabulate each story's group, counted from 1, and the name of the group; empty for a story without a group."""
        return pd.DataFrame(self.arranged.group_rows())

    @cached_property
    def html(self) -> str:
        """The map as a self-contained HTML page, with links between passages of near stories."""
        encoder = self.collection.encoder
        pairs = None
        if self.arranged.arrangement.tree is not None and encoder.facts.reads == "text":
            pairs = matched_pairs(self.collection, self.arranged.neighbors)
        name = Path(self.collection.about["source"]).name
        return map_page(self.arranged, name, self.facts, self.agreement, pairs, self.collection)

    def write(self, path: str | Path) -> list[Path]:
        """Write NAME.html, NAME-neighbors.csv, NAME-groups.csv and NAME.svg, a picture for articles.

        Returns:
            The files that were written, the page first.
        """
        target = Path(path)
        check_writable(target, *PAGE_SUFFIXES)
        page = self.html
        neighbors = target.with_name(f"{target.stem}-neighbors.csv")
        groups = target.with_name(f"{target.stem}-groups.csv")
        drawing = target.with_name(f"{target.stem}.svg")
        with atomic_path(drawing) as temporary:
            write_map_svg(self.arranged, temporary)
        write_table(neighbors, self.arranged.neighbor_rows())
        write_table(groups, self.arranged.group_rows())
        with atomic_path(target) as temporary:
            temporary.write_text(page, encoding="utf-8")
        return [target, neighbors, groups, drawing]

    def __str__(self) -> str:
        """Describe the groups, and how the nearest stories agree with the column."""
        arranged = self.arranged
        groups = counted(len(arranged.names), "group")
        lines = [f"{len(self.collection):,} stories, {groups}: {arranged.arrangement.method}"]
        for name, central in zip(arranged.names, arranged.central, strict=True):
            lines.append(f"  {name} ({arranged.labels[central]})")
        lines += ["Hubs: " + str(self.diagnostics), *self.diagnostics.warnings]
        if self.agreement is None:
            return "\n".join(lines)
        lines += self.agreement.lines()
        lines.append(f"Closest pairs with different {printable(self.agreement.column, 60)}:")
        for i, j, similarity in self.agreement.surprises:
            first = f"{arranged.labels[i]} ({self.values[i]})"
            second = f"{arranged.labels[j]} ({self.values[j]})"
            lines.append(f"  {similarity:.3f} {first}, {second}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return in_frame(self.html)

    @property
    def facts(self) -> dict[str, str]:
        """Model, measure, share of words read, languages, accuracy and hubs, each as a sentence."""
        about, measure = self.collection.about, self.collection.measure
        languages = Counter(about["languages"]).most_common()
        checked = ", ".join(f"{language} {count}" for language, count in languages) or "none recognized"
        warning = language_warning(self.collection.encoder.facts.vocabulary, about["languages"])
        return {
            "model": about["model"],
            "measure": f"{measure}: {DESCRIPTIONS[measure]}",
            "read": f"{100 * about['share_read']:.4g} % of the words",
            "languages": f"{checked} of the stories checked" + (f"; {warning}" if warning else ""),
            "accuracy": self.accuracy,
            "hubs": " ".join(self.diagnostics.warnings) or str(self.diagnostics),
        }


def map_stories(
    collection: Collection, *, group: str | None = None, accuracy: str | None = None, k: int = 10
) -> CollectionMap:
    """Draw a collection: arrange its stories by similarity, find groups and name them.

    Args:
        collection: N stories, three or more.
        group: column of labels; the map shows how often nearest stories share a label, against the rate expected by
            chance.
        accuracy: accuracy of the encoder, for the header of the page, such as `str(narrlit.evaluate(...))`; None: the
            accuracy recorded in its run.
        k: number of nearest stories listed per story.

    Returns:
        A `CollectionMap`: `.table()`, `.groups()`, `.html`, `.write(path)`. A notebook shows the page.

    Raises:
        DataError: if there are fewer than three stories, or the column has no categories.
        OptionError: if there is no such column, or k is below 1.

    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> map_stories(tales, k=1).table()["neighbor_id"].tolist()
    ['2', '1', '1']
    """
    if k < 1:
        raise OptionError("at_least", option="k", found=k, least=1)
    compared, values = None, list[str]()
    if group is not None:
        values = _labels(collection, group)
        compared = neighbor_agreement(collection.similarities, group, values, k)
    known = recorded_accuracy(collection.encoder.name) if accuracy is None else accuracy
    arranged = arrange_stories(collection.frame, collection.similarities, k)
    return CollectionMap(collection, arranged, compared, values, known, collection.similarities.diagnostics())


def _labels(collection: Collection, column: str) -> list[str]:
    """Return the value of each story in a column, as text; empty for a story without one.

    Raises:
        OptionError: if there is no such column.
    """
    values = column_values(collection, column, "group")
    return ["" if value is None else printable(value, 60) for value in values]


def recorded_accuracy(model: str) -> str:
    """Describe the accuracy in the record of a model's run."""
    record = read_record(model)
    best = None if record is None else record.best
    if best is None or best.accuracy is None:
        return NOT_MEASURED
    accuracy = f"{estimate_of(best)} on the validation triples of its run"
    return accuracy + "; the best of several evaluations, and therefore too high"
