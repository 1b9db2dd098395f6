"""`narrlit.search`: find the stories of an index most similar to texts, or to a story."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from narrlit import library
from narrlit.console import say
from narrlit.data.readers import read_stories
from narrlit.data.rows import Layout
from narrlit.data.writers import write_table
from narrlit.errors import OptionError, printable
from narrlit.files import atomic_path, check_writable
from narrlit.library.index import Index
from narrlit.library.options import SEARCH_SUFFIXES, is_address
from narrlit.library.vector_table import VectorTable
from narrlit.measures.names import MeasureName
from narrlit.pages import render_page

WIDTH, NAME_WIDTH = 100, 24
"""Width of the screen, and maximum width of an id or title, in characters."""


@dataclass(frozen=True, eq=False)
class SearchResults:
    """Results of a search: the stories of an index most similar to queries.

    Attributes:
        queries: the texts, the id of the story, or the file with a story.
        frame: one row per story, best first, as returned by `Index.search`.
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
        template = Path(library.__path__[0], "search_page.html")
        title = printable(f"Stories like {'; '.join(self.queries)}", 100)
        rows = self.frame.to_dict("records")
        return render_page(template, [], title=title, columns=list(self.frame), rows=rows)

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


def search(  # noqa: PLR0913 (options)
    index: Index | VectorTable | str | Path,
    text: str | Sequence[str] | None = None,
    *,
    like: str | Path | None = None,
    k: int = 10,
    where: str | None = None,
    measure: MeasureName | None = None,
    exclude_same: str | None = None,
    distinct: float | None = None,
    leave_out_text: bool = False,
    layout: Layout = Layout(),
    progress: bool = False,
) -> SearchResults:
    """Find the stories of an index most similar to a text, to each of several, or to a story.

    Args:
        index: an index or a vector table, or its folder or address; a vector table is searched by `cosine`, with `k`
            and `where`.
        text: a query, or a whole story; or several, which are embedded together.
        like: instead of a text, the id of a story in the index, or a file with one story, which is excluded from the
            results.
        k: number of results per query.
        where: SQL condition on the columns, such as `year < 1900`.
        measure: measure of similarity: `passages`, `fused`, `csls`, `centered`, `cosine` or `lexical`; None:
            `passages`, or `csls` for a model that can't embed passages.
        exclude_same: column, such as author; stories with the same value as the story `like` of the index are excluded.
        distinct: exclude stories with at least this cosine to a better result, or to the story `like`.
        leave_out_text: exclude stories with the text of the query, whatever its case and white space.
        layout: columns and lines of a file.
        progress: print on stderr how a file was read.

    Returns:
        The `SearchResults`: `.table()`, `.write(path)`. They are printed as a table, and displayed as one in notebooks.

    Raises:
        DataError: if there is no index, or a file can't be read.
        ModelError: if the model is no longer at its recorded path.
        OptionError: if neither text nor story is given, or the condition is invalid.

    >>> stories = ["A knight seeks a grail.", "A bank lowers its rates."]
    >>> index = Index.create(getfixture("tmp_path") / "tales.index", stories)
    >>> print(search(index, "A diver seeks a pearl.", k=1))
     #  similarity  id  snippet
     1       0.174  1   A knight seeks a grail.
    """
    if (text is None) == (like is None):
        raise OptionError("no_query")
    queries = [text] if isinstance(text, str) else list(text or [str(like)])
    stories = _opened(index)
    if isinstance(stories, VectorTable):
        if measure not in (None, "cosine") or exclude_same is not None or distinct is not None or leave_out_text:
            raise _needs_index(stories)
        frame = stories.like(str(like), k, where=where) if text is None else stories.search(text, k, where=where)
        return SearchResults(queries, frame)
    if like is not None and _is_file(like, stories):
        text, leave_out_text = _only_story(like, layout, progress), True
    if text is None:
        frame = stories.like(str(like), k, where=where, measure=measure, exclude_same=exclude_same, distinct=distinct)
        return SearchResults(queries, frame)
    if exclude_same is not None:
        raise OptionError("exclude_same_of_text")
    frame = stories.search(text, k, where=where, measure=measure, distinct=distinct, leave_out_text=leave_out_text)
    return SearchResults(queries, frame)


def _needs_index(table: VectorTable) -> OptionError:
    """Return the error of options that a vector table does not have."""
    return OptionError("options_of_index", address=table.address)


def _opened(index: Index | VectorTable | str | Path) -> Index | VectorTable:
    """Open the index in a folder, or the vector table at an address."""
    if isinstance(index, Index | VectorTable):
        return index
    return VectorTable(str(index)) if is_address(index) else Index(index)


def _is_file(like: str | Path, stories: Index) -> bool:
    """Return True if `like` is a file; ids of the index have precedence."""
    path = Path(like)
    return str(like) not in stories and path.exists() and not path.is_dir()


def _only_story(path: str | Path, layout: Layout, progress: bool) -> str:
    """Read the one story of a file."""
    stories = read_stories(path, strict=True, layout=layout)
    if progress:
        say(stories.report.summary())
    if len(stories) != 1:
        raise OptionError("several_stories_in_file", path=path, stories=len(stories))
    text: str = stories[0].text
    return text


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
