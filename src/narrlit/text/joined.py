"""A story and its views as one text: what encoders of views read, here and in an exported model.

The story's text comes first, then each view behind a line that names it:

    A knight seeks the grail. ...
    [theme]
    Devotion tested by a long search.
    [plot]
    The knight sets out. He fails the first test. ...
    [outcome]
    He sees the grail, and dies in peace.
"""

from dataclasses import dataclass

VIEWS = ("theme", "plot", "outcome")
"""A story's views, in the order in which they are joined; plot is the course of action."""

_MARKERS = tuple(f"\n[{view}]\n" for view in VIEWS)


@dataclass(frozen=True, slots=True)
class Views:
    """What a story is about, what happens, and how it ends."""

    theme: str
    plot: str
    outcome: str

    @property
    def texts(self) -> tuple[str, str, str]:
        """The views in the order of VIEWS."""
        return self.theme, self.plot, self.outcome


def join(text: str, views: Views) -> str:
    r"""The story and its views as one text, which `split` takes apart again.

    Raises:
        ValueError: if a part already holds a line that marks a view.

    >>> join("A knight rode out.", Views("A quest.", "He rides.", "He rests."))
    'A knight rode out.\n[theme]\nA quest.\n[plot]\nHe rides.\n[outcome]\nHe rests.'
    """
    for part in (text, *views.texts):
        found = next((marker for marker in _MARKERS if marker in f"\n{part}\n"), None)
        if found is not None:
            raise ValueError(f"it has a line {found.strip()}, which separates a story from its views")
    return text + "".join(marker + view for marker, view in zip(_MARKERS, views.texts, strict=True))


def split(joined: str) -> tuple[str, Views | None]:
    r"""The story's text and its views; None where it has none.

    Raises:
        ValueError: if some of the lines that mark views are missing, doubled or in another order.

    >>> split("A knight rode out.\n[theme]\nA quest.\n[plot]\nHe rides.\n[outcome]\nHe rests.")[1].plot
    'He rides.'
    >>> split("A knight rode out.")
    ('A knight rode out.', None)
    """
    counts = [joined.count(marker) for marker in _MARKERS]
    if not any(counts):
        return joined, None
    parts = [joined]
    for marker in _MARKERS:
        *before, last = parts
        parts = [*before, *last.split(marker, 1)]
    if counts != [1, 1, 1] or len(parts) != 1 + len(_MARKERS):
        raise ValueError("the lines [theme], [plot] and [outcome] must stand in it once, in this order, or not at all")
    return parts[0], Views(*parts[1:])


def has_views(text: str) -> bool:
    r"""Whether a text has a line that separates a story from a view; `split` says whether all are there.

    >>> has_views("A knight rode out."), has_views("A knight rode out.\n[theme]\nA quest.")
    (False, True)
    """
    return any(marker in text for marker in _MARKERS)
