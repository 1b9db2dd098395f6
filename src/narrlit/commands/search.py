"""narrlit search: the stories of an index most similar to a text or a story."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from narrlit.console import counted, say
from narrlit.data.writers import write_table
from narrlit.errors import OptionError, printable
from narrlit.files import atomic_path, check_writable
from narrlit.options import InputOptions, ModelOptions

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".html")
WIDTH = 100
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 1em auto; max-width: 70em; padding: 0 1em; overflow-x: auto }}
table {{ border-collapse: collapse }}
td, th {{ border-bottom: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top }}
</style>
<h1>{title}</h1>
{table}
</html>
"""


def search(  # noqa: PLR0912, PLR0913 - its parameters are the command's options
    index: str,
    text: str | None = None,
    *,
    use: ModelOptions,
    inputs: InputOptions,
    like: str | None = None,
    k: int = 10,
    where: str | None = None,
    hybrid: bool = False,
    rerank: Literal["meanmax"] | None = None,
    exclude_same: str | None = None,
    distinct: float | None = None,
    out: str | None = None,
) -> None:
    """Find the stories of an index most similar to a text, or to a story.

    Args:
        index: the folder that narrlit index wrote.
        text: what to search for, in quotes.
        like: id of a story of the index, or a file with one story; that story itself is left out.
        k: number of stories.
        where: condition on the columns in SQL, such as "country = 'France' AND year < 1900".
        hybrid: rank by vectors and by words together.
        rerank: rank the first hundred again, by their sentences too; takes seconds.
        exclude_same: column, such as author; stories with the value of the story of --like are left out.
        distinct: leave out near-copies, stories whose similarity with a better one reaches this; 0.95 is usual.
        out: file to write, .csv, .tsv, .jsonl, .parquet, .xlsx or .html; by default a table on the screen.
        use: where the model is now and how it is loaded, if not as when the index was made.
        inputs: columns and lines of the file of --like.
    """
    if (text is None) == (like is None):
        raise OptionError(
            'give a text in quotes, or --like ID or FILE: narrlit search INDEX "a bargain with the devil"'
        )
    if out is not None:
        if Path(out).suffix not in SUFFIXES:
            raise OptionError(f"--out {out}: name a file that ends in {', '.join(SUFFIXES)}")
        check_writable(out)
    from narrlit.explore.index import Index

    stories = Index(index, model=use.model, device=use.device, trust_remote_code=use.trust_remote_code)
    title = f"Stories like {text or like}"
    if text is not None and exclude_same is not None:
        raise OptionError("--exclude-same needs --like ID: a text has no columns")
    if like is not None and like not in stories and Path(like).is_file():
        if exclude_same is not None:
            raise OptionError("--exclude-same needs the id of a story of the index: a file has no columns")
        source = inputs.read(like)
        if len(source) != 1:
            raise OptionError(f"--like {like}: the file has {len(source)} stories; give a file with one")
        text = source[0].text
    options = {"k": k, "where": where, "hybrid": hybrid, "rerank": rerank, "distinct": distinct}
    if text is not None:
        results = stories.search(text, **options, leave_out_text=like is not None)
    else:
        results = stories.like(str(like), **options, exclude_same=exclude_same)
    if out is None:
        print(screen_table(results))
    elif out.endswith(".html"):
        table = results.to_html(index=False, border=0, float_format="{:.3f}".format, na_rep="")
        with atomic_path(out) as temporary:
            temporary.write_text(PAGE.format(title=escape(printable(title, 100)), table=table), encoding="utf-8")
    else:
        write_table(out, results.to_dict("records"))
    if out is not None:
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
