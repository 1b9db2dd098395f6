"""narrlit sample: folk tales to try the other commands on."""

from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.data.tales import TABLE, sample_tales
from narrlit.files import Output, OutputOptions, atomic_path, check_free, check_writable


def sample(out: Annotated[str, Output(continued=True)], *, output_options: OutputOptions) -> None:
    """Write 24 folk tales, one a text file, and tales.csv with their titles, countries and tale types.

    Args:
        out: folder to write into.
        output_options: whether files of the same names with other content are replaced.
    """
    contents = {Path(out, tale["file_name"]): f"{tale['text']}\n".encode() for tale in sample_tales()}
    contents[Path(out, TABLE.name)] = TABLE.read_bytes()
    for path in contents:
        check_writable(path)
    others = [path for path, content in contents.items() if path.exists() and path.read_bytes() != content]
    check_free(others, output_options.overwrite, " with other content", "folder")
    for path, content in contents.items():
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    say(f"{out}: {len(contents) - 1} tales and {TABLE.name}")
    say(f"next: narrlit index {out} --out {out}.index\n      narrlit map {out}.index --out map.html")
