"""Results of a search: a table, a file, or lines on a screen."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from narrlit.data.writers import write_table
from narrlit.errors import printable
from narrlit.files import atomic_path, check_writable
from narrlit.library.options import SEARCH_SUFFIXES
from narrlit.pages import report_page, report_section

WIDTH, NAME_WIDTH = 100, 24
"""Width of the screen, and maximum width of an id or title, in characters."""


@dataclass(frozen=True, eq=False)
class SearchResults:
    """Results of a search: the stories of an index most similar to queries.

    Attributes:
        queries: the texts, the id of the story, or the file with a story.
        frame: one row per story, best first, with the columns of `table`.
    """

    queries: list[str]
    frame: pd.DataFrame

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self.frame)

    def table(self) -> pd.DataFrame:
        """Return a copy of the frame: rank, id, title, similarity, snippet, metadata; query, if there are several."""
        return self.frame.copy()

    def write(self, path: str | Path) -> None:
        """Write the stories: .csv, .tsv, .jsonl, .parquet, .xlsx, or an .html page.

        Raises:
            OptionError: if the suffix is not one of these.
        """
        check_writable(path, *SEARCH_SUFFIXES)
        if Path(path).suffix != ".html":
            write_table(path, self.frame.to_dict("records"))
            return
        with atomic_path(path) as temporary:
            temporary.write_text(self.html(), encoding="utf-8")

    def html(self) -> str:
        """The results as a self-contained HTML page."""
        title = printable(f"Stories like {'; '.join(self.queries)}", 100)
        return report_page(title, sections=[report_section("", {"": self.frame.to_dict("records")})])

    def __str__(self) -> str:
        """Format rank, similarity, id, title (if any) and snippet for a screen of 100 columns."""
        if "query" not in self.frame:
            return screen_table(self.frame)
        tables = []
        for number, query in enumerate(self.queries):
            results = self.frame[self.frame["query"] == number]
            tables.append(f"{printable(query, WIDTH)}\n{screen_table(results)}")
        return "\n\n".join(tables)

    def _repr_html_(self) -> str:
        table: str = self.frame.to_html(index=False)
        return table


def screen_table(results: pd.DataFrame) -> str:
    """Format results for a screen of 100 columns: rank, similarity, id, title (if any), snippet."""
    if results.empty:
        return "no matching stories"
    columns = [
        [" #", *(f"{rank:>2}" for rank in results["rank"])],
        ["similarity", *(f"{similarity:>10.3f}" for similarity in results["similarity"])],
        _padded_cells(results["id"], NAME_WIDTH),
    ]
    if results["title"].any():
        columns.append(_padded_cells(results["title"], NAME_WIDTH))
    columns.append(_padded_cells(results["snippet"], WIDTH))
    lines = []
    for cells in zip(*columns, strict=True):
        line = "  ".join(cells).rstrip()
        lines.append(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…")
    return "\n".join(lines)


def _padded_cells(values: pd.Series, width: int) -> list[str]:
    """Format a column as cells of the same width, at most `width` characters; the first one is its name."""
    cells = [str(values.name)]
    for value in values:
        cells.append(printable(value, width))
    longest = max(map(len, cells))
    return [cell.ljust(longest) for cell in cells]
