"""Folk tales that come with the package: eight tale types, each in three versions from different countries."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from narrlit.files import atomic_path, check_free, check_writable

TABLE = files("narrlit") / "tales" / "tales.csv"


@dataclass(frozen=True)
class WrittenTales:
    """Sample tales that were written to a folder.

    Attributes:
        folder: the folder.
        tales: one text file per tale.
        table: CSV file of all tales with their titles, countries and tale types.
    """

    folder: Path
    tales: tuple[Path, ...]
    table: Path

    def __str__(self) -> str:
        """One line: folder, number of tales, table."""
        return f"{self.folder}: {len(self.tales)} tales and {self.table.name}"


def sample_tales() -> list[dict[str, str]]:
    """Read the 24 sample tales, each with file_name, title, country, atu (number of the tale type) and text.

    Source:
        Plots of traditional tales, retold for this package; type numbers after Hans-Jörg Uther, The Types of
        International Folktales (2004).

    >>> [tale["title"] for tale in sample_tales() if tale["atu"] == "510A"]
    ['Cinderella', 'Ye Xian', 'Rhodopis']
    """
    with TABLE.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_tales(out: str | Path, *, overwrite: bool = False) -> WrittenTales:
    """Write the 24 sample tales, one text file each, and tales.csv with their titles, countries and tale types.

    Args:
        out: folder to write to.
        overwrite: replace existing files whose content differs.

    Returns:
        A `WrittenTales`: `.tales`, `.table`.

    Raises:
        OptionError: if a file exists with different content and `overwrite` is False; nothing is written.

    >>> written = write_tales(getfixture("tmp_path") / "tales")
    >>> len(written.tales), written.table.name
    (24, 'tales.csv')
    """
    folder = Path(out)
    contents: dict[Path, bytes] = {}
    for tale in sample_tales():
        contents[folder / tale["file_name"]] = f"{tale['text']}\n".encode()
    tales = tuple(contents)
    table = folder / TABLE.name
    contents[table] = TABLE.read_bytes()
    for path in contents:
        check_writable(path)
    changed = []
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            changed.append(path)
    check_free(changed, overwrite, " with other content", "folder")
    for path, content in contents.items():
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    return WrittenTales(folder, tales, table)
