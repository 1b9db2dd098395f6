"""Stories into another language and back, sentence by sentence: versions of training rows that say the same anew.

Source: Mendel292, section 2.5.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from narrlit.data.layouts import example_fault
from narrlit.data.leakage import normal_text
from narrlit.data.records import Example
from narrlit.models.translation_log import Translation
from narrlit.text.sentences import sentences

Translate = Callable[[Sequence[str]], list[Translation]]

EMPTY = "a sentence came back empty"
UNFINISHED = "a translation did not end"
IDENTICAL = "a story came back as it was"


@dataclass(frozen=True, slots=True)
class Returned:
    """A story that has been there and back; `fault` says why it can't be used, None if it can."""

    text: str
    fault: str | None = None


@dataclass(frozen=True)
class Versions:
    """The versions of N rows through one language.

    Attributes:
        examples: of each row its version, None where it is left out.
        left_out: how many are, by the reason.
        stories: every different story of the rows that are not left out, and its version.
    """

    examples: list[Example | None]
    left_out: Counter[str]
    stories: dict[str, str]


def back_translate(texts: Sequence[str], there: Translate, back: Translate) -> list[Returned]:
    """Translate stories there and back.

    They go sentence by sentence, so that no story is longer than a model reads, and come back with a space between two
    sentences, whatever white space was there.

    Args:
        texts: N English stories.
        there: out of English.
        back: into English.
    """
    cut = [sentences(text) for text in texts]
    away = there([sentence for parts in cut for sentence in parts])
    home = back([sentence.text for sentence in away])
    found, begin = [], 0
    for text, parts in zip(texts, cut, strict=True):
        span = slice(begin, begin + len(parts))
        found.append(_returned(text, away[span], home[span]))
        begin += len(parts)
    return found


def _returned(text: str, away: Sequence[Translation], home: Sequence[Translation]) -> Returned:
    version = " ".join(sentence.text for sentence in home if sentence.text)
    if not all(sentence.text for sentence in home):
        return Returned(version, EMPTY)
    if not all(sentence.ended for sentence in (*away, *home)):
        return Returned(version, UNFINISHED)
    return Returned(version, IDENTICAL if normal_text(version) == normal_text(text) else None)


def versions(examples: Sequence[Example], returned: Mapping[str, Returned]) -> Versions:
    """Rows of translated stories: anchor, positive and negatives of each, in their order and of their kinds.

    A version is left out whole if one of its stories can't be used, so that it always has what its source has.

    Args:
        examples: N rows.
        returned: of every text of the rows what has come back.
    """
    found = Versions([], Counter(), {})
    for example in examples:
        stories = [returned[text] for text in example.texts]
        version = example.with_texts([story.text for story in stories])
        reason = next((story.fault for story in stories if story.fault), None) or example_fault(version)
        if reason is None:
            found.examples.append(version)
            found.stories.update(zip(example.texts, version.texts, strict=True))
        else:
            found.examples.append(None)
            found.left_out[reason] += 1
    return found


def with_versions(examples: Sequence[Example], of_pivots: Sequence[Versions]) -> list[Example]:
    """Every row and after it its versions, all of one group, which a fold takes or leaves as a whole."""
    rows = []
    for place, example in enumerate(examples):
        group = group_of(example)
        of_row = (example, *(found.examples[place] for found in of_pivots))
        rows += [replace(row, group=group) for row in of_row if row is not None]
    return rows


def group_of(example: Example) -> str:
    """A row's own group, else one that its texts alone decide."""
    if example.group is not None:
        return example.group
    return sha256(json.dumps(example.texts).encode()).hexdigest()[:16]
