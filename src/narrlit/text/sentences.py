"""Sentences of English prose, by rule: no model, no data, thousands of stories a second."""

import re

from narrlit.text.words import CLOSING, COUNTED, DAYS, LINKS, SPEECH, STARTERS, TIMES, TITLES

# A blank line, or a line break before a list's item: a bullet, "12." or "12)", "b)".
_BLOCK = re.compile(r"\n[^\S\n]*(?:\n\s*|(?=(?:[-*•‣◦–]|\d{1,2}[.)]|[a-z]\))(?:\s|\Z)))")
# A stop, the quotes and brackets that it closes, and the space after them, which may be missing.
_STOP = re.compile(r"(\.(?:[^\S\n]\.){2,}|[.!?…]+)([\"'”’»)\]}]*)(\s*)")
_OPENING = re.compile(r"[\"'“‘«(\[{¿¡–—-]*\s*")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LAST_WORD = re.compile(r"[\w.]*\Z")
_NUMBERING = re.compile(r"\W{0,3}(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})\Z")
_ACRONYM = re.compile(r"(?:[A-Za-z]{1,2}\.)+[A-Za-z]{1,2}\Z")
_PRONOUN = re.compile(r"(?:^|\s)[a-z][\w'’]*,?\s+I\Z")
_CONTINUING = frozenset(",;:.!?…&/)]}")
_LONGEST = 16


def sentences(text: str) -> list[str]:
    """Cut a text into its sentences, in order; no character is lost but white space between them.

    A blank line always ends a sentence, and so does the end of a line before a list's item; any other line break is
    white space. A stop (. ! ? …), with the quotes and brackets that it closes, ends a sentence before a capital, a
    number or a letter of a script without cases, and never before a small letter. Beyond that:

    - Titles (Mr., Dr.), links (e.g., vs.) and numbers in lists (1.) go on; No., p. and months go on before a number.
    - Initials (J. R. R. Tolkien), acronyms (U.S.), Jr., Co. and St. may end a sentence or not: they do before a word
      that begins sentences and no names, such as "The" or "She", and not before another capital.
    - So does an ellipsis, written "...", ". . ." or "…", for after it a capital is as often a name in the middle of its
      sentence; not before the word just said ("I... I know"). Four dots are an ellipsis and a stop, and end it.
    - A quoted question or call goes on if who said it follows: "Help!" Anna cried.
    - Without a space, a stop ends a sentence between a small letter and a capitalised word: "ended.Then".

    What rules can't know: "in the U.S. Anna came" stays one sentence, whoever Anna is. Marks between blank lines, such
    as "* * *", are a sentence of their own.

    Args:
        text: prose, of any length.

    Returns:
        Sentences without white space around them, none of them empty; none at all for a text of white space.

    >>> sentences('Mr. Lee met J. R. R. Tolkien at 5 p.m. "Who are you?" he asked. Nobody... Then he left.')
    ['Mr. Lee met J. R. R. Tolkien at 5 p.m.', '"Who are you?" he asked.', 'Nobody...', 'Then he left.']
    """
    found = []
    for block in _BLOCK.split(text):
        found += _cut(block)
    return found


def _cut(block: str) -> list[str]:
    block = block.strip()
    if not block:
        return []
    starts = [0]
    seen, has_word = 0, False
    for stop in _STOP.finditer(block):
        has_word = has_word or _WORD.search(block, seen, stop.start()) is not None
        seen = stop.end()
        if has_word and seen < len(block) and _ends(block, starts[-1], stop):
            starts.append(seen)
            has_word = False
    if len(starts) > 1 and _WORD.search(block, starts[-1]) is None:
        starts.pop()  # marks alone, such as a quote after a space, are no sentence
    return [block[start:end].strip() for start, end in zip(starts, [*starts[1:], len(block)], strict=True)]


def _ends(block: str, start: int, stop: re.Match[str]) -> bool:
    """Whether the sentence that begins at `start` ends with this stop; a word stands before, and something after."""
    marks, closers, space = stop.groups()
    opening = _OPENING.match(block, stop.end())
    place = opening.end() if opening else stop.end()
    first = block[place : place + 1]
    if not first or first.islower() or first in _CONTINUING:
        return False
    word = _WORD.match(block, place)
    following = word.group() if word else ""
    if not space and not _runs_on(block, stop, following):
        return False
    if first.isdigit() and block[stop.end()] in "([":
        return False  # a year after a title: "Oklahoma! (1955)"
    if "!" in marks or "?" in marks:
        return not (closers.strip(")]}") and word and _tells_who_spoke(block, word))
    # "A." and "I." are initials, not words that begin a sentence.
    starts = following in STARTERS and block[place + len(following) : place + len(following) + 1] != "."
    if marks == ".":
        return _ends_at_stop(block, start, stop, following, starts)
    return _ends_at_ellipsis(block, start, stop, following, starts)


def _runs_on(block: str, stop: re.Match[str], following: str) -> bool:
    """Whether a new sentence follows without a space: a small letter, the stop, a capitalised word."""
    capitalised = following[:1].isupper() and (following[1:2].islower() or following in ("I", "A"))
    return capitalised and block[stop.start() - 1].islower()


def _tells_who_spoke(block: str, word: re.Match[str]) -> bool:
    """Whether a verb of speaking follows within two words of this one: "Anna cried", "Anna Lee cried"."""
    place = word.end()
    for _ in range(2):
        after = _WORD.match(block, place + 1)
        if after is None:
            return False
        if after.group() in SPEECH:
            return True
        place = after.end()
    return False


def _ends_at_ellipsis(block: str, start: int, stop: re.Match[str], following: str, starts: bool) -> bool:
    marks = stop.group(1)
    if marks.count(".") > 3 or ("…" in marks and "." in marks):
        return True
    if not following or following[0].isdigit():
        return False
    if not following[0].isupper():
        return True  # a script without cases
    return starts and not block.endswith(following, start, stop.start())


def _ends_at_stop(block: str, start: int, stop: re.Match[str], following: str, starts: bool) -> bool:
    """Whether a single full stop ends its sentence: the word before it says so, or leaves it to the next one."""
    before = stop.start()
    if _NUMBERING.match(block, start, before):
        return False
    nearby = max(start, before - _LONGEST)
    found = _LAST_WORD.search(block, nearby, before)
    last = found.group() if found else ""
    if last in TITLES or last.lower() in LINKS or (last.isupper() and last.capitalize() in TITLES):
        ends = False
    elif last in COUNTED:
        ends = not following[:1].isdigit()
    elif last in TIMES:
        ends = following not in DAYS
    elif last == "I" and _PRONOUN.search(block, nearby, before):
        ends = starts or len(following) > 1  # "So do I. Anna left", but "by I. M. Pei"
    else:
        named = last in CLOSING or (len(last) == 1 and last.isupper()) or _ACRONYM.match(last)
        ends = starts or not named
    return ends
