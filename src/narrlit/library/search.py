"""`narrlit.search`: find the stories of an index most similar to texts, or to a story."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from narrlit.console import say
from narrlit.data.readers import read_stories
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.library.collection import Collection
from narrlit.library.index import Index
from narrlit.library.options import is_address
from narrlit.library.search_results import SearchResults
from narrlit.library.vector_table import VectorTable
from narrlit.measures.names import MeasureName


def search(  # noqa: PLR0913 (options)
    index: Index | Collection | VectorTable | str | Path,
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
        index: an index or a vector table, or its folder or address; or a collection. A vector table is searched by
            `cosine`, with `k` and `where`.
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
    if like is None and layout != Layout():
        changed = [item.name for item in fields(layout) if getattr(layout, item.name) != item.default]
        raise OptionError("options_need_option", options=changed, option="like")
    stories = _opened(index)
    if isinstance(stories, VectorTable):
        if measure not in (None, "cosine") or exclude_same is not None or distinct is not None or leave_out_text:
            raise _needs_index(stories)
        return stories.like(str(like), k, where=where) if text is None else stories.search(text, k, where=where)
    if like is not None and _is_file(like, stories):
        text, leave_out_text = _only_story(like, layout, progress), True
    if text is None:
        return stories.like(str(like), k, where=where, measure=measure, exclude_same=exclude_same, distinct=distinct)
    if exclude_same is not None:
        raise OptionError("exclude_same_of_text")
    results = stories.search(text, k, where=where, measure=measure, distinct=distinct, leave_out_text=leave_out_text)
    return results if like is None else SearchResults([str(like)], results.frame)


def _needs_index(table: VectorTable) -> OptionError:
    """Return the error of options that a vector table does not have."""
    return OptionError("options_of_index", address=table.address)


def _opened(index: Index | Collection | VectorTable | str | Path) -> Index | Collection | VectorTable:
    """Open the index in a folder, or the vector table at an address."""
    if not isinstance(index, str | Path):
        return index
    return VectorTable(str(index)) if is_address(index) else Index(index)


def _is_file(like: str | Path, stories: Index | Collection) -> bool:
    """Return True if `like` is a file; ids of the stories have precedence."""
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
