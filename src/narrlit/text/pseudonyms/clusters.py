"""Names joined with the clusters that refer to the same; heads of mentions by rules of English, as F-coref's are."""

import re
from collections.abc import Sequence
from dataclasses import replace

from narrlit.text.pseudonyms.mentions import Mention
from narrlit.text.pseudonyms.placeholders import protected
from narrlit.text.pseudonyms.spans import Span, trimmed

# What ends the part of an English mention that holds its head: "Anna, a nurse", "the king of France", "Bob who left".
_AFTER_HEAD = re.compile(
    r"\b(?:of|in|at|from|on|with|by|for|to|near|who|whom|whose|which|that|where|when|as)\b|[(–—]|\s-\s"
)
_COMMA = re.compile(r"[,;:]")
_SEVERAL = re.compile(r"\b(?:and|or|nor)\b|&")


def with_clusters(text: str, names: Sequence[Mention], clusters: Sequence[Sequence[Span]]) -> list[Mention]:
    """Names with the number of their cluster, and the clusters' other mentions, by their place.

    A name is of the cluster whose mention it is the head of: in "his wife Anna, who left Rome" that is Anna, whose span
    stays her name alone. A mention that only holds a name ("the king of France", "Anna and Bob") is left out, for the
    name is another's; so is one that reaches into a part of a name or holds a placeholder. What remains (pronouns,
    descriptions, names that the pipeline missed) votes for no kind.

    Args:
        text: one text.
        names: its names; they don't overlap.
        clusters: what `Coreference.clusters` says of it.
    """
    blocked = protected(text)
    numbers: dict[Mention, int] = {}
    others: dict[Span, int] = {}
    numbered = [(span, number) for number, cluster in enumerate(clusters) for span in cluster]
    # Where two clusters claim a name, the closer mention is right.
    for marked, number in sorted(numbered, key=lambda entry: (entry[0][1] - entry[0][0], entry)):
        span = trimmed(text, marked)
        if span is None or any(_overlap(span, other) for other in blocked):
            continue
        touched = [name for name in names if _overlap(span, (name.start, name.end))]
        head = _head(text, span, touched)
        if head is not None:
            numbers.setdefault(head, number)
        elif not touched:
            others.setdefault(span, number)
    found = [replace(name, cluster=numbers.get(name)) for name in names]
    found += [Mention(*span, kind=None, cluster=number) for span, number in others.items()]
    return sorted(found, key=lambda mention: (mention.start, mention.end))


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _head(text: str, span: Span, names: Sequence[Mention]) -> Mention | None:
    """The name that a mention is headed by, if it is one."""
    start, end = span
    masked = text[start:end]
    for name in names:
        if name.start < start or name.end > end:
            return None
        # What stands inside a name, as in University of London, rules nothing outside.
        masked = masked[: name.start - start] + "N" * (name.end - name.start) + masked[name.end - start :]
    after = _AFTER_HEAD.search(masked)
    masked = masked[: after.start()] if after else masked
    if _SEVERAL.search(masked):
        return None
    part = _COMMA.split(masked, maxsplit=1)[0].rstrip()
    return next((name for name in names if name.end == start + len(part)), None)
