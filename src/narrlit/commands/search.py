"""narrlit search: the stories of an index most similar to a text or a story."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrlit import explore
from narrlit.commands.collections import open_index
from narrlit.console import counted, say
from narrlit.data.writers import write_table
from narrlit.errors import OptionError, printable
from narrlit.explore.index import SearchOptions
from narrlit.files import Output, atomic_path, check_writable
from narrlit.options import InputOptions, ModelOptions
from narrlit.pages import render_page

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".html")
WIDTH = 100
OF_TEXTS = ("leave_out_text", "nearest_sentence")
"""Options that a story of the index does not have."""


def search(
    index: str,
    text: str | None = None,
    *,
    how: SearchOptions,
    use: ModelOptions,
    inputs: InputOptions,
    like: str | None = None,
    out: Annotated[str | None, Output()] = None,
) -> None:
    """Find the stories of an index most similar to a text, or to a story.

    Args:
        index: the folder that narrlit index wrote.
        text: what to search for, in quotes.
        like: id of a story of the index, or a file with one story; that story itself is left out.
        out: file to write, .csv, .tsv, .jsonl, .parquet, .xlsx or .html; by default a table on the screen.
        how: which stories, and in which order.
        use: where the model is now and how it is loaded, if not as when the index was made.
        inputs: columns and lines of the file of --like.
    """
    if text is not None and how.exclude_same is not None:
        raise OptionError("--exclude-same needs a story of the index (--like ID): a text has no columns")
    if (text is None) == (like is None):
        raise OptionError('give a text in quotes, or --like ID or FILE: narrlit search INDEX "a pact with the devil"')
    if out is not None:
        check_writable(out, *SUFFIXES)
    stories = open_index(index, use, inputs=inputs if like is None else InputOptions())
    title = f"Stories like {text or like}"
    if like is not None and like not in stories and Path(like).exists() and not Path(like).is_dir():
        source = inputs.read(like)
        if len(source) != 1:
            raise OptionError(f"--like {like}: the file has {len(source)} stories; give a file with one")
        text, how = source[0].text, replace(how, leave_out_text=True)
    options = vars(how)
    if text is None:
        given = {name: value for name, value in options.items() if name not in OF_TEXTS}
        results = stories.like(str(like), **given)
    else:
        given = {name: value for name, value in options.items() if name != "exclude_same"}
        results = stories.search(text, **given)
    if out is None:
        print(screen_table(results))
        return
    rows = results.to_dict("records")
    if out.endswith(".html"):
        template = Path(explore.__path__[0], "search_page.html")
        page = render_page(template, [], title=printable(title, 100), columns=list(results), rows=rows)
        with atomic_path(out) as temporary:
            temporary.write_text(page, encoding="utf-8")
    else:
        write_table(out, rows)
    say(f"{out}: {counted(len(results), 'story')}")


def screen_table(results: "pd.DataFrame") -> str:
    """Format results for a screen of 100 columns: rank, similarity, id, title where there are any, snippet."""
    if results.empty:
        return "no story fits"
    names = ["id", "title", "snippet"] if results.title.any() else ["id", "snippet"]
    cells = {name: [printable(value, 24 if name != "snippet" else WIDTH) for value in results[name]] for name in names}
    widths = {name: max(map(len, [name, *cells[name]])) for name in names}
    lines = ["  ".join([" #", "similarity", *(name.ljust(widths[name]) for name in names)])]
    for row, (rank, similarity) in enumerate(zip(results["rank"], results.similarity, strict=True)):
        own = (cells[name][row].ljust(widths[name]) for name in names)
        lines.append("  ".join([f"{rank:>2}", f"{similarity:>10.3f}", *own]))
    return "\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in map(str.rstrip, lines))
