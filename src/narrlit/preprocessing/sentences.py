"""Rule-based sentence splitter, for English prose and by Unicode for any script (no model), and segments."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import regex

from narrlit.preprocessing.words import UNSPACED, joined_text

Rounding = Literal["down", "symmetric"]
"""Rounding of segments if the ratios do not give whole numbers of sentences."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations and other words, without the final period.
_TITLES = _set(  # a name follows
    "Mr Mrs Ms Mx Dr Prof Rev Fr Hon Gen Col Maj Capt Cmdr Lt Sgt Cpl Pvt Adm Gov Sen Rep Pres Supt Insp Det Msgr "
    "Messrs Mme Mlle Mt Ft"
)
_LINKS = _set("e.g i.e eg ie vs v cf viz")  # the sentence always continues
_COUNTED = _set(  # the sentence continues before a number
    "No Nos nos Vol vol Op Fig Ch Pt Ep p pp c ca approx Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"
)
_CLOSING = _set("Jr Sr Esq Inc Ltd Co Corp Bros St Ave Blvd Rd al")  # the next word decides
STARTERS = _set(  # if capitalized, these words begin a sentence, not a name
    "A After All Although An And Another As At Back Because Before Both But By Despite During Each Eventually Every "
    "Everyone Finally For From He Her Here His How However I If In Instead It Its Later Many Meanwhile Most My No Not "
    "Now Of On Once One Or Our She Since So Some Soon Suddenly That The Their Then There These They This Those Though "
    "Through To Two Under Unfortunately Until Upon We What When Where Which While Who Why With Without Yet You Your"
)
_TIMES = _set("a.m p.m A.M P.M")
_AFTER_TIMES = _set(  # "5 p.m. Eastern"
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Eastern Central Pacific Greenwich EST EDT CST PST GMT UTC"
)
_SPEECH = _set(  # "Help!" Anna cried
    "added agreed answers answered asks asked begs begged calls called cries cried demands demanded exclaims "
    "exclaimed jokes mutters muttered replies replied says said screams screamed shouts shouted sobs thinks thought "
    "warns warned whispers whispered wonders wondered yells yelled"
)

# A blank line, or a line break before a list item: a bullet, "12." or "12)", "b)".
_BLOCK = re.compile(r"\n[^\S\n]*(?:\n\s*|(?=(?:[-*•‣◦–]|\d{1,2}[.)]|[a-z]\))(?:\s|\Z)))")
# A stop, the quotes and brackets that it closes, and the optional space after them. Quotes that open in one language
# and close in another close before a space. In Thai and Lao, which have no stops, a space is one; in Greek ; is ?.
_CLOSERS = r"((?:[\"'”’»)\]}」』】》〉）］｝｣]|[“‘«](?=\s|\Z)|[^\S\n]»(?=\s|\Z))*)(\s*)"
_STOP = re.compile(r"(\.(?:[^\S\n]\.){2,}|[.!?…]+)" + _CLOSERS)
_STOP_OF_ANY_SCRIPT = regex.compile(
    r"(\.(?:[^\S\n]\.){2,}|(?:[.!?…\p{Sentence_Break=STerm}།༎]|．(?!\d)|(?<=\p{Greek});)+"
    r"|(?<=[\p{Thai}\p{Lao}])(?<![\dๆ])(?=[^\S\n]+(?![\dๆ])[\p{Thai}\p{Lao}]))" + _CLOSERS
)
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u203c\u203d\u2047-\u2049\u2cf9-\U0010ffff]")
_LATIN_STOPS = re.compile(r"[.!?…\s]+")
_OPENING = re.compile(r"[\"'“‘«(\[{¿¡–—「『【《〈（［｛-]*\s*")
_UNSPACED = regex.compile(UNSPACED)
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LAST_WORD = re.compile(r"[\w.]*\Z")
_NUMBERING = re.compile(r"\W{0,3}(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})\Z")
_ACRONYM = re.compile(r"(?:[A-Za-z]{1,2}\.)+[A-Za-z]{1,2}\Z")
_PRONOUN = re.compile(r"(?:^|\s)[a-z][\w'’]*,?\s+I\Z")
_CONTINUING = frozenset(",;:.!?…&/)]}，、；：،؛")
_LONGEST_ABBREVIATION = 16


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences; only the white space between them is removed.

    A blank line always ends a sentence, as does a line break before a list item; any other line break is white space. A
    stop (. ! ? …), with its closing quotes and brackets, ends a sentence before a capital letter, a number or a letter
    of a script without case, and never before a lower-case letter. Exceptions:

    - A sentence continues after titles (Mr., Dr.), connectives (e.g., vs.) and list numbers (1.), and before a number
      also after No., p. and months.
    - Initials (J. R. R. Tolkien), acronyms (U.S.), Jr., Co., St. and ellipses end a sentence before a word that begins
      sentences but not names, such as "The" or "She", and not before other capitals. Four dots end it before both.
    - A sentence continues after a quoted question or exclamation if a speaker follows: "Help!" Anna cried.
    - Without a space, a stop ends a sentence only between a lower-case letter and a capitalized word: "ended.Then".

    The stops of other scripts (。！？।؟۔ and all others of Unicode's property STerm) end a sentence, with or without a
    space, but for a quotation that と continues; so does ! ? or . before a character of a script without spaces.

    >>> split_sentences('Mr. Lee met J. R. R. Tolkien at 5 p.m. "Who are you?" he asked. Nobody... Then he left.')
    ['Mr. Lee met J. R. R. Tolkien at 5 p.m.', '"Who are you?" he asked.', 'Nobody...', 'Then he left.']
    """
    sentences: list[str] = []
    for block in _BLOCK.split(text):
        sentences += _split_block(block.strip())
    return sentences


def _split_block(block: str) -> list[str]:
    """Split a text without blank lines or list items into sentences."""
    if not block:
        return []
    starts = [0]
    seen, has_word = 0, False
    stops = _STOP if _OTHER_SCRIPT.search(block) is None else _STOP_OF_ANY_SCRIPT
    for stop in stops.finditer(block):
        has_word = has_word or _WORD.search(block, seen, stop.start()) is not None
        seen = stop.end()
        if has_word and seen < len(block) and _ends(block, starts[-1], stop):
            starts.append(seen)
            has_word = False
    if len(starts) > 1 and _WORD.search(block, starts[-1]) is None:
        starts.pop()  # punctuation alone, such as a quote after a space, is not a sentence
    return [block[start:end].strip() for start, end in pairwise([*starts, len(block)])]


def _ends(block: str, start: int, stop: regex.Match[str]) -> bool:
    """Decide if the sentence that begins at `start` ends with a stop, which is between a word and other text."""
    marks, closers, space = stop.groups()
    opening = _OPENING.match(block, stop.end())
    position = opening.end() if opening else stop.end()
    if _continues(block, stop, position):
        return False
    if _LATIN_STOPS.fullmatch(marks) is None:
        return not (closers and block.startswith(("と", "って"), position))
    word = _WORD.match(block, position)
    following = word.group() if word else ""
    if not space and not (block[stop.start() - 1].islower() and _is_capitalized(following)):
        return marks.strip("…") != "" and _UNSPACED.match(block, position) is not None
    if "!" in marks or "?" in marks:
        in_quotes = closers.strip(")]}") != ""
        return not (in_quotes and word and _names_speaker(block, word))
    # "A." and "I." are initials, not words that begin a sentence.
    is_initial = block.startswith(".", position + len(following))
    starts = following in STARTERS and not is_initial
    if marks == ".":
        return _ends_at_full_stop(block, start, stop, following, starts)
    return _ends_at_dots(block, start, stop, following, starts)


def _continues(block: str, stop: regex.Match[str], position: int) -> bool:
    """Decide if the sentence continues, by the character at `position`, the first after a stop and its quotes."""
    first = block[position : position + 1]
    is_lower_case = first.islower() and first != first.title()  # letters of Georgian have no capitals in sentences
    if not first or is_lower_case or first in _CONTINUING:
        return True
    return first.isdigit() and block[stop.end()] in "(["  # the year after a title: "Oklahoma! (1955)"


def _is_capitalized(word: str) -> bool:
    """Return True for a word that begins with a capital and a lower-case letter, and for I and A."""
    return word[:1].isupper() and (word[1:2].islower() or word in ("I", "A"))


def _names_speaker(block: str, word: regex.Match[str]) -> bool:
    """Return True if one of the next two words is a verb of speaking: "Anna cried", "Anna Lee cried"."""
    position = word.end()
    for _ in range(2):
        next_word = _WORD.match(block, position + 1)
        if next_word is None:
            return False
        if next_word.group() in _SPEECH:
            return True
        position = next_word.end()
    return False


def _ends_at_full_stop(block: str, start: int, stop: regex.Match[str], following: str, starts: bool) -> bool:
    """Decide if a sentence ends with a single period; `starts`: the following word begins sentences, not names."""
    before = stop.start()
    if _NUMBERING.match(block, start, before):
        return False
    nearby = max(start, before - _LONGEST_ABBREVIATION)
    matched = _LAST_WORD.search(block, nearby, before)
    last = matched.group() if matched else ""
    if _never_ends(last):
        return False
    if last in _COUNTED:
        return not following[:1].isdigit()
    if last in _TIMES:
        return following not in _AFTER_TIMES
    if last == "I" and _PRONOUN.search(block, nearby, before):
        return starts or len(following) > 1  # "So do I. Anna left", but "by I. M. Pei"
    return starts or not _is_abbreviation(last)


def _never_ends(word: str) -> bool:
    """Return True for an abbreviation that never ends a sentence, such as Mr. and e.g., also in capitals."""
    is_title = word in _TITLES or (word.isupper() and word.capitalize() in _TITLES)
    return is_title or word.lower() in _LINKS


def _is_abbreviation(word: str) -> bool:
    """Return True for an abbreviation that can end a sentence, such as Jr., an initial or an acronym."""
    is_initial = len(word) == 1 and word.isupper()
    return word in _CLOSING or is_initial or _ACRONYM.match(word) is not None


def _ends_at_dots(block: str, start: int, stop: regex.Match[str], following: str, starts: bool) -> bool:
    """Decide if a sentence ends with an ellipsis; `starts`: the following word begins sentences, not names."""
    marks = stop[1]
    if marks.count(".") > 3 or ("…" in marks and "." in marks):
        return True
    if following[:1].isupper():
        return starts and not block.endswith(following, start, stop.start())  # "I... I know"
    return following != "" and not following[0].isdigit()  # a script without case


def positional_segments(
    sentences: Sequence[str],
    ratios: tuple[float, float, float] = (0.25, 0.5, 0.25),
    rounding: Rounding = "down",
) -> tuple[str, str, str]:
    """Split a story into segments for theme, action and outcome.

    By default, the theme is the first quarter of the sentences, the action the middle half, and the outcome the last
    quarter. With n sentences, the action begins at sentence floor(n / 4), counted from 0. With rounding `down`, the
    outcome begins at floor(3 n / 4), so that ten sentences are split into 2, 5 and 3; with `symmetric`, it has the last
    floor(n / 4) sentences (2, 6 and 2).

    Each segment has at least one sentence. Segments overlap only in stories of one or two sentences: with two
    sentences, the theme has the first, the outcome the second, and the action both; a single sentence is in all three.

    Args:
        sentences: sentences of a story.
        ratios: relative lengths of the segments.
        rounding: rounding of the segments.

    Returns:
        Text of each segment, with sentences joined by `joined_text`.

    Raises:
        ValueError: if there is no sentence, or the ratios are not three positive numbers.

    Source:
        Mendel292, section 2.6, which does not state the rounding.

    >>> positional_segments(["A king fell ill.", "His sons rode out.", "They met a fox.", "All came home."])
    ('A king fell ill.', 'His sons rode out. They met a fox.', 'All came home.')
    """
    if not sentences:
        raise ValueError("a story without a sentence has no theme, action and outcome")
    if len(ratios) != 3 or not all(math.isfinite(ratio) and ratio > 0 for ratio in ratios):
        raise ValueError(f"ratios of theme, action and outcome must be three numbers above 0, not {ratios}")
    n = len(sentences)
    if n < 3:
        return sentences[0], joined_text(sentences), sentences[-1]

    def whole_sentences(ratio: float) -> int:
        # Add 1e-9, because 0.29 * 100 is 28.999999999999996 in floating point.
        return math.floor(n * ratio / sum(ratios) + 1e-9)

    action = min(max(whole_sentences(ratios[0]), 1), n - 2)
    outcome = whole_sentences(ratios[0] + ratios[1])
    if rounding == "symmetric":
        outcome = n - whole_sentences(ratios[2])
    outcome = min(max(outcome, action + 1), n - 1)
    segments = sentences[:action], sentences[action:outcome], sentences[outcome:]
    theme, course, end = map(joined_text, segments)
    return theme, course, end
