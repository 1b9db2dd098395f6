"""`narrlit.select`: choose stories of a collection, and export them for other programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from narrlit.console import counted
from narrlit.data.schema import IntArray, normal_form
from narrlit.data.writers import OUTPUT_SUFFIXES, write_table
from narrlit.errors import OptionError, nearest, printable
from narrlit.explore.bibliography import write_bibliography
from narrlit.explore.graph import write_graph, write_palladio
from narrlit.explore.map_drawing import write_map_svg
from narrlit.explore.pairs import similar_pairs
from narrlit.explore.story_map import arrange_stories
from narrlit.files import atomic_path, check_writable, write_text
from narrlit.library.collection import Collection
from narrlit.library.story_frame import rows_by_id
from narrlit.measures.collection import CollectionSimilarity

SELECTION_SUFFIXES = (*OUTPUT_SUFFIXES, ".graphml", ".svg", ".bib", ".ris", ".csl.json", ".palladio.csv", ".txt")
WIDTH = 60
"""Characters of a title that are printed."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Chosen stories of a collection.

    Attributes:
        collection: the collection.
        rows: (N,) rows of the chosen stories in it.
        k: number of nearest neighbors that a story is linked with in a graph.
    """

    collection: Collection
    rows: IntArray
    k: int

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per chosen story: id, title, text, then the metadata columns."""
        return self.collection.frame.iloc[self.rows].reset_index(drop=True)

    @cached_property
    def similarities(self) -> CollectionSimilarity:
        """Similarities of the chosen stories, as they are in the whole collection."""
        return self.collection.similarities.take(self.rows)

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self.rows)

    def table(self) -> pd.DataFrame:
        """Return a copy of the frame: id, title, text, then the metadata columns."""
        return self.frame.copy()

    def neighbors(self) -> pd.DataFrame:
        """Pair each story with its k nearest neighbors among the chosen stories.

        Returns:
            One row per pair, most similar first: id_a, title_a, id_b, title_b, similarity, mutual.

        Raises:
            DataError: if there is only one story.
        """
        return similar_pairs(self, self.k)

    def write(self, path: str | Path) -> None:
        """Write the stories in the format of the path's suffix.

        - .csv, .tsv, .xlsx, .jsonl, .parquet: all columns. No cell runs as a formula in a spreadsheet program.
        - .graphml: a graph of the nearest neighbors, with their similarities, for Gephi and other programs.
        - .palladio.csv: the same pairs as a table for Palladio.
        - .svg: a dendrogram or, of more than 300 stories, a scatter plot.
        - .bib, .ris, .csl.json: references in the form of BibTeX, RIS or CSL JSON (Zotero, Pandoc), with translators.
        - .txt: a numbered list of titles.

        Raises:
            DataError: if a graph would have only one story, or a picture fewer than three.
            OptionError: if the suffix is not one of these, or a text is too long for Excel.
        """
        target = Path(path)
        check_writable(target, *SELECTION_SUFFIXES)
        suffix = next((suffix for suffix in SELECTION_SUFFIXES[::-1] if target.name.endswith(suffix)), target.suffix)
        match suffix:
            case ".palladio.csv":
                write_palladio(target, self.frame, self.neighbors())
            case ".graphml":
                write_graph(target, self.frame, self.neighbors())
            case ".svg":
                arranged = arrange_stories(self.frame, self.similarities)
                with atomic_path(target) as temporary:
                    write_map_svg(arranged, temporary)
            case ".bib" | ".ris" | ".csl.json":
                write_bibliography(target, self.frame)
            case ".txt":
                write_text(target, f"{self}\n")
            case _:
                write_table(target, self.frame.to_dict("records"))

    def __str__(self) -> str:
        """The stories as a numbered list of titles, with the ids that differ from them."""
        lines = []
        for number, (id, title) in enumerate(zip(self.frame["id"], self.frame["title"], strict=True), start=1):
            line = f"{number}. {printable(title or id, WIDTH)}"
            if title and title != id:
                line += f" ({printable(id, WIDTH)})"
            lines.append(line)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Selection({counted(len(self), 'story')})"

    def _repr_html_(self) -> str:
        table: str = self.frame.to_html(index=False)
        return table


def select(collection: Collection, ids: Sequence[str] | None = None, *, k: int = 5) -> Selection:
    """Choose stories of a collection, to export them as a table, a graph, a bibliography or a list.

    Args:
        collection: N stories.
        ids: ids of the chosen stories, in any order; the selection has the order of `ids`. None: all stories.
        k: number of nearest neighbors that a story is linked with in a graph.

    Returns:
        A `Selection`: `.table()`, `.neighbors()`, `.write(path)`.

    Raises:
        OptionError: if there is no such story, none is chosen, or k is below 1.

    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> print(select(tales, ["3", "1"]))
    1. 3
    2. 1
    """
    if k < 1:
        raise OptionError("at_least", option="k", found=k, least=1)
    row_of = rows_by_id(collection.frame)
    selected = list(row_of) if ids is None else list(dict.fromkeys(map(normal_form, ids)))
    rows = []
    for id in selected:
        if id not in row_of:
            source = collection.about["source"]
            raise OptionError("unknown_id", source=source, id=printable(id, WIDTH), near=nearest(id, row_of))
        rows.append(row_of[id])
    if not rows:
        raise OptionError("no_id")
    return Selection(collection, np.array(rows, dtype=np.int64), k)
