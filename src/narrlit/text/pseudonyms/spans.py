"""Where a name begins and ends: what a model marks, without articles, titles, possessives and placeholders."""

import re

Span = tuple[int, int]
"""A place in a text: first character, and the place after the last."""

# First names too, such as Dean, Earl and Duke, are no titles here: what is cut off stays in the text.
_TITLES = (
    "mr mrs ms miss mister madam madame sir lady lord dame dr doctor prof professor captain capt colonel col major maj "
    "general gen lieutenant lt sergeant sgt corporal private admiral commander inspector detective officer sheriff "
    "king queen prince princess emperor empress tsar tsarina sultan count countess baron baroness duchess "
    "president senator governor mayor ambassador judge father mother brother sister uncle aunt pope bishop "
    "reverend rev monsieur mademoiselle herr frau don doña señor señora signor signora"
)
_TITLE = rf"(?:{'|'.join(_TITLES.split())})"
_LONE_TITLE = re.compile(rf"{_TITLE}\.?", re.IGNORECASE)
_LEADING_TITLE = re.compile(rf"{_TITLE}\b\.?\s+", re.IGNORECASE)
_LEADING_WORD = re.compile(r"(?:[Tt]he|THE|an?|and|or|of)\s+|['’][sS](?!\w)")
_POSSESSIVE = re.compile(r"['’][sS]$")
_EDGES = " \t\r\n\"'“”‘’«»,;:!?"


def outside(span: Span, blocked: list[Span]) -> list[Span]:
    """What is left of a span without the blocked ones, which are in order.

    >>> outside((0, 10), [(2, 4), (9, 12)])
    [(0, 2), (4, 9)]
    """
    pieces, start = [], span[0]
    for first, end in blocked:
        if end <= start or first >= span[1]:
            continue
        pieces.append((start, first))
        start = end
    pieces.append((start, span[1]))
    return [piece for piece in pieces if piece[0] < piece[1]]


def trimmed(text: str, span: Span, person: bool = False) -> Span | None:
    """A name alone: without an article before it, a possessive after it and quotation marks around it.

    Args:
        text: where it stands.
        span: what a model marked.
        person: cut titles too; a title alone is no name.

    Returns:
        The smaller span; None where no letter or digit is left.

    >>> trimmed("the Captain Ahab's", (0, 18), person=True)
    (12, 16)
    """
    start, end = span
    before = None
    while before != (start, end):
        before = start, end
        leading = _LEADING_WORD.match(text, start, end) or (person and _LEADING_TITLE.match(text, start, end))
        start = leading.end() if leading else start
        start = end - len(text[start:end].lstrip(_EDGES))
        end = start + len(text[start:end].rstrip(_EDGES))
        possessive = _POSSESSIVE.search(text[start:end])
        end = start + possessive.start() if possessive else end
    name = text[start:end]
    if not any(letter.isalnum() for letter in name) or (person and _LONE_TITLE.fullmatch(name)):
        return None
    return start, end
