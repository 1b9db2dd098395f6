"""Fill values into sentences: lists, counts, and words that depend on a value."""

import re
from collections.abc import Collection
from string import Formatter


def counted(number: int, thing: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "file"), counted(2345, "story")
    ('1 file', '2,345 stories')
    """
    noun = thing if number == 1 else re.sub("y$", "ie", thing) + "s"
    return f"{number:,} {noun}"


class SentenceFormatter(Formatter):
    """Formatter of sentences: lists are joined by commas, `#thing` counts things, and `?` suggests a name, if any.

    >>> sentence = "{n:#row} in {files}: no column txt{near:?}"
    >>> SentenceFormatter().format(sentence, n=2, files=["a.csv", "b.csv"], near="text")
    '2 rows in a.csv, b.csv: no column txt (did you mean text?)'
    """

    def format_field(self, value: object, format_spec: str) -> str:
        """Format one value."""
        if format_spec.startswith("#"):
            return counted(int(str(value)), format_spec[1:])
        if format_spec == "?":
            return f" (did you mean {value}?)" if value else ""
        if isinstance(value, Collection) and not isinstance(value, str | bytes):
            return ", ".join(map(str, value))
        return str(super().format_field(value, format_spec))
