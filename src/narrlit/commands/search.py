"""narrlit search: find the stories of an index most similar to a text or a story."""

from typing import Annotated

import narrlit
from narrlit.commands.collections import open_searchable
from narrlit.commands.options import ModelOptions
from narrlit.console import counted, say
from narrlit.data.rows import Layout
from narrlit.files import Output
from narrlit.library.options import SEARCH_SUFFIXES, SearchOptions


def search(
    index: str,
    text: str | None = None,
    *,
    options: SearchOptions,
    loading: ModelOptions,
    files: Layout,
    like: str | None = None,
    out: Annotated[str | None, Output(suffixes=SEARCH_SUFFIXES)] = None,
) -> None:
    """Find the stories of an index most similar to a text, or to a story.

    Args:
        index: folder or address written by `narrlit index`.
        text: text to search for, in quotes.
        like: id of a story in the index, or a file with one story; that story itself is excluded from the results.
        out: file to write (.csv, .tsv, .jsonl, .parquet, .xlsx or .html); default: print a table.
        options: number, measure and filters of the results.
        loading: path of the model, if it has moved since the index was made, and device.
        files: columns and lines of the file given as --like.
    """
    stories = open_searchable(index, loading, files=files if like is None else Layout())
    results = narrlit.search(stories, text, like=like, layout=files, progress=True, **vars(options))
    if out is None:
        print(results)
        return
    results.write(out)
    say(f"{out}: {counted(len(results), 'story')}")
