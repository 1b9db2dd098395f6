"""narrlit data sample: write sample stories for trying the other commands."""

from typing import Annotated, Literal

import narrlit
from narrlit.console import say
from narrlit.files import Output


def sample(
    folder: Annotated[str, Output(continued=True)],
    *,
    corpus: Literal["tales", "twice-told"] = "tales",
    overwrite: bool = False,
) -> None:
    """Write sample stories: 24 folk tales with their titles, countries and tale types in a table, or Twice Told.

    Args:
        folder: folder to write into.
        corpus: tales writes each folk tale to a text file, and tales.csv; twice-told writes 48 plots, each told in 8
            worlds, variants in which one aspect is changed, and labeled triples.
        overwrite: replace existing files with other content.
    """
    if corpus == "twice-told":
        say(str(narrlit.write_twice_told(folder, overwrite=overwrite)))
        return
    say(str(narrlit.write_tales(folder, overwrite=overwrite)))
    say(f"next: narrlit index {folder} --out {folder}.index\n      narrlit map {folder}.index --out map.html")
