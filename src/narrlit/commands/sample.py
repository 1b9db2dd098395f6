"""narrlit sample: folk tales to try the other commands on."""

from pathlib import Path

from narrlit.console import say
from narrlit.data.tales import TABLE, sample_tales
from narrlit.errors import OptionError
from narrlit.files import atomic_path


def sample(out: str) -> None:
    """Write 24 folk tales, one a text file, and tales.csv with their titles, countries and tale types.

    Args:
        out: folder to write into; a file of the same name with other content is not replaced.
    """
    contents = {Path(out, tale["file_name"]): f"{tale['text']}\n".encode() for tale in sample_tales()}
    contents[Path(out, TABLE.name)] = TABLE.read_bytes()
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            raise OptionError(f"{path} exists with other content: name another folder")
    for path, content in contents.items():
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    say(f"{out}: {len(contents) - 1} tales and {TABLE.name}")
    say(f"next: narrlit index {out} --out {out}.index\n      narrlit map {out}.index --out map.html")
