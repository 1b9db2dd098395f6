"""Folk tales that come with the package: eight tale types, each in three versions from different countries."""

import csv
from importlib.resources import files

TABLE = files("narrlit") / "tales" / "tales.csv"


def sample_tales() -> list[dict[str, str]]:
    """Read the 24 sample tales: file_name, title, country, atu (number of the tale type) and text of each.

    Source:
        Plots of traditional tales, retold for this package; type numbers after Hans-Jörg Uther, The Types of
        International Folktales (2004).

    >>> [tale["title"] for tale in sample_tales() if tale["atu"] == "510A"]
    ['Cinderella', 'Ye Xian', 'Rhodopis']
    """
    with TABLE.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
