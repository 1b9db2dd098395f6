"""Griffe extension: doctests in docstrings become code blocks; Markdown would read `>>>` as quotations."""

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Fence every doctest of a docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Put doctests, which end at a blank line, between fences."""
    lines: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if line.startswith(">>> ") and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join(lines).rstrip()
