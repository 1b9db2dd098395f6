"""narrlit sample: write sample stories for trying the other commands."""

from typing import Annotated, Literal

import narrlit
from narrlit.console import say
from narrlit.files import Output, OutputOptions


def sample(
    out: Annotated[str, Output(continued=True)],
    *,
    corpus: Literal["tales", "twice-told"] = "tales",
    output_options: OutputOptions,
) -> None:
    """Write sample stories: 24 folk tales with their titles, countries and tale types in a table, or Twice Told.

    Args:
        out: folder to write into.
        corpus: tales writes each folk tale to a text file, and tales.csv; twice-told writes 48 plots, each told in 8
            worlds, variants in which one aspect is changed, and labeled triples.
        output_options: option to overwrite existing files with other content.
    """
    if corpus == "twice-told":
        say(str(narrlit.write_twice_told(out, overwrite=output_options.overwrite)))
        return
    say(str(narrlit.write_tales(out, overwrite=output_options.overwrite)))
    say(f"next: narrlit index {out} --out {out}.index\n      narrlit map {out}.index --out map.html")
