"""narrlit sample: folk tales to try the other commands on."""

from typing import Annotated

from narrlit.console import say
from narrlit.data.tales import write_tales
from narrlit.files import Output, OutputOptions


def sample(out: Annotated[str, Output(continued=True)], *, output_options: OutputOptions) -> None:
    """Write 24 folk tales, one a text file, and tales.csv with their titles, countries and tale types.

    Args:
        out: folder to write into.
        output_options: whether files of the same names with other content are replaced.
    """
    say(str(write_tales(out, overwrite=output_options.overwrite)))
    say(f"next: narrlit index {out} --out {out}.index\n      narrlit map {out}.index --out map.html")
