"""Whether a story that a model wrote can be used: each fault has a reason, by which it is counted."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from narrlit.data.leakage import normal_text
from narrlit.errors import OptionError
from narrlit.llm.soundness import is_broken, is_placeholder, is_refusal
from narrlit.text.language import same_language
from narrlit.text.pseudonyms.named import key_of
from narrlit.text.pseudonyms.rules import Rules
from narrlit.text.sentences import sentences

_GRAM = 5
_ECHO = 0.5  # of the prompt's own wording, a story has next to nothing
_SHORTEST_SENTENCE = 5
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True)
class ValidationOptions:
    """When a reply is refused.

    Attributes:
        max_overlap: of negatives, the share of word 5-grams that one may have in common with its anchor or with another
            story of its row, by the shorter of the two (0.2 if not given); of views, the share of the story's word
            5-grams that a view may repeat (0.8).
        length_ratio: a negative and its anchor may differ in length by this factor at most; the views of a story
            together may be longer than it (or than 500 characters) by this factor.
        allow_names: of negatives: let names of the anchor stand. They are found by rules for English prose.
    """

    max_overlap: float | None = None
    length_ratio: float = 2.0
    allow_names: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no use.

        Raises:
            OptionError: if a value is out of range.
        """
        if self.max_overlap is not None and not 0 <= self.max_overlap <= 1:
            raise OptionError(f"--max-overlap {self.max_overlap}: a share from 0 to 1 is needed")
        if not self.length_ratio > 1:
            raise OptionError(f"--length-ratio {self.length_ratio}: a factor above 1 is needed")


@dataclass(frozen=True)
class Measured:
    """A text, and what is compared of it, each found when it is first needed."""

    text: str

    @cached_property
    def grams(self) -> frozenset[tuple[str, ...]]:
        """Its runs of five words; of a shorter text its words as one run."""
        words = [word.casefold() for word in _WORD.findall(self.text)]
        starts = range(max(1, len(words) - _GRAM + 1))
        return frozenset(tuple(words[start : start + _GRAM]) for start in starts)

    @cached_property
    def sentences(self) -> frozenset[str]:
        """Its sentences of five words and more, without regard to case and white space."""
        return frozenset(normal_text(s) for s in sentences(self.text) if len(_WORD.findall(s)) >= _SHORTEST_SENTENCE)

    @cached_property
    def names(self) -> frozenset[frozenset[str]]:
        """Its proper names, each as its words."""
        mentions = Rules().find([self.text])[0]
        return frozenset(frozenset(key_of(self.text[m.start : m.end])) for m in mentions) - {frozenset()}

    @property
    def length(self) -> int:
        """In characters, white space counted as one each."""
        return len(normal_text(self.text))


def overlap(one: Measured, other: Measured) -> float:
    """The share of word 5-grams in common, of the text that has fewer.

    >>> overlap(Measured("a b c d e f"), Measured("x a b c d e"))
    0.5
    """
    return len(one.grams & other.grams) / min(len(one.grams), len(other.grams))


@dataclass(frozen=True)
class Case:
    """A story that a model wrote, and what it must not be like.

    Attributes:
        story: the new story.
        anchor: the story it was made for.
        others: stories that stand in the same row already.
        prompt: what the model was told.
        options: when to refuse.
    """

    story: Measured
    anchor: Measured
    others: Sequence[Measured]
    prompt: Measured
    options: ValidationOptions

    @property
    def most(self) -> float:
        """The share of word 5-grams that may be in common."""
        return 0.2 if self.options.max_overlap is None else self.options.max_overlap


def _is_echo(case: Case) -> bool:
    return is_placeholder(case.story.text, case.prompt.text) or overlap(case.story, case.prompt) > _ECHO


def _shares_a_name(case: Case) -> bool:
    """Whether a name of the one stands within a name of the other, such as "Radcliffe" in "Benedek Radcliffe"."""
    if case.options.allow_names:
        return False
    return any(one <= other or other <= one for one in case.story.names for other in case.anchor.names)


def _is_of_another_length(case: Case) -> bool:
    short, long = sorted((case.story.length, case.anchor.length))
    return long > case.options.length_ratio * max(1, short)


def _repeats(case: Case, other: Measured) -> bool:
    same = normal_text(case.story.text) == normal_text(other.text)
    return same or overlap(case.story, other) > case.most


CHECKS: dict[str, Callable[[Case], bool]] = {
    "empty": lambda case: not case.story.text.strip(),
    "broken characters": lambda case: is_broken(case.story.text),
    "refusal": lambda case: is_refusal(case.story.text),
    "placeholder": _is_echo,
    "near-copy of the anchor": lambda case: _repeats(case, case.anchor),
    "sentence of the anchor": lambda case: bool(case.story.sentences & case.anchor.sentences),
    "name of the anchor": _shares_a_name,
    "length": _is_of_another_length,
    "language": lambda case: not same_language(case.story.text, case.anchor.text),
    "duplicate": lambda case: any(_repeats(case, other) for other in case.others),
}
"""Reasons to refuse a new story, in the order in which they are looked for."""


def faults(case: Case) -> Iterator[str]:
    """The reasons to refuse a new story, each found when it is asked for; none at all where it is sound."""
    return (reason for reason, is_faulty in CHECKS.items() if is_faulty(case))
