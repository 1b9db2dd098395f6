"""Texts with their names replaced, again and again until nothing is found any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from tqdm import tqdm

from narrlit.errors import OptionError
from narrlit.text.pseudonyms.linking import LinkedEntity, link
from narrlit.text.pseudonyms.mentions import Mention, MentionFinder
from narrlit.text.pseudonyms.options import Pseudonyms
from narrlit.text.pseudonyms.replacing import Piece, Replacement, replace, replacements
from narrlit.text.pseudonyms.rules import Rules

_TOGETHER = 256  # texts that a backend gets at once


@dataclass(frozen=True, slots=True)
class PseudonymisedGroup:
    """Texts that share a mapping.

    Attributes:
        texts: with placeholders for names.
        entities: each placeholder that was given, and the forms of the name that it replaced.
        replacements: of each text, in order; `replacing.restore` takes them back.
    """

    texts: tuple[str, ...]
    entities: dict[str, tuple[str, ...]]
    replacements: tuple[tuple[Replacement, ...], ...]


def open_backend(options: Pseudonyms) -> MentionFinder:
    """The backend that finds names.

    Raises:
        OptionError: if it is `none`.
        ModelError, MissingExtraError: if a pipeline or a package is not there.
    """
    if options.backend == "rules":
        return Rules()
    if options.backend == "none":
        raise OptionError("backend none finds no names; choose rules, spacy or spacy+coref")
    from narrlit.text.pseudonyms.spacy_backend import open_spacy

    return open_spacy(options.pipeline, options.coref_model if options.backend == "spacy+coref" else None)


def pseudonymise(
    groups: Sequence[Sequence[str]], finder: MentionFinder, progress: bool = True, *, led: bool = False
) -> list[PseudonymisedGroup]:
    """Replace the names in groups of texts; each group has a mapping of its own, which knows nothing of the others.

    What came out is looked through again until no name is found in it, so that pseudonymising it once more changes
    nothing. Placeholders in the texts given stay what they are.

    Args:
        groups: texts that share a mapping; one text a group where each stands by itself.
        finder: from `open_backend`.
        progress: show a bar on stderr.
        led: a group's first text becomes what it would by itself; the others take over its mapping, and further names
            in them get the next placeholders that are free.

    Returns:
        The groups, in order.
    """
    works = [_Work(texts) for texts in groups]
    for part in (slice(1), slice(1, None)) if led else (slice(None),):
        _replace(works, part, finder, progress)
    return [work.result() for work in works]


def _replace(works: Sequence["_Work"], part: slice, finder: MentionFinder, progress: bool) -> None:
    """Replace the names in some texts of each group, until none is found in them."""
    waiting = [(group, number) for group, work in enumerate(works) for number in work.turn_to(part)]
    while waiting:
        mentions = _find(finder, [works[group].text(number) for group, number in waiting], progress)
        news: dict[int, dict[int, list[Mention]]] = {}
        for (group, number), found in zip(waiting, mentions, strict=True):
            news.setdefault(group, {})[number] = found
        waiting = [(group, number) for group, new in news.items() for number in works[group].take(new)]


def _find(finder: MentionFinder, texts: Sequence[str], progress: bool) -> list[list[Mention]]:
    found = []
    with tqdm(total=len(texts), desc="finding names", unit="text", disable=not progress, delay=0.5) as bar:
        for start in range(0, len(texts), _TOGETHER):
            some = texts[start : start + _TOGETHER]
            found += finder.find(some)
            bar.update(len(some))
    return found


class _Work:
    """A group on its way: its texts in pieces, those whose turn it is, and the entities found so far."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.pieces = [[Piece(text)] for text in texts]
        self._turn = range(len(texts))
        self._entities: dict[str, LinkedEntity] = {}

    def turn_to(self, part: slice) -> range:
        """From now on replace names in these texts alone; their numbers."""
        self._turn = range(len(self.pieces))[part]
        return self._turn

    def text(self, number: int) -> str:
        return "".join(piece.text for piece in self.pieces[number])

    def take(self, mentions: dict[int, list[Mention]]) -> list[int]:
        """Replace what was found, by number of the text; the numbers of the texts that changed."""
        texts = [self.text(number) for number in self._turn]
        found = [mentions.get(number, []) for number in self._turn]
        beside = [self.text(number) for number in range(len(self.pieces)) if number not in self._turn]
        spans: dict[int, list[tuple[tuple[int, int], str]]] = {}
        for entity in link(texts, found, tuple(self._entities.values()), beside):
            known = self._entities.setdefault(entity.placeholder, entity)
            known.keys |= entity.keys
            known.forms |= entity.forms
            for place, span in entity.places:
                spans.setdefault(self._turn[place], []).append((span, entity.placeholder))
        for number, replaced in spans.items():
            self.pieces[number] = replace(self.pieces[number], sorted(replaced))
        return sorted(spans)

    def result(self) -> PseudonymisedGroup:
        made = tuple(tuple(replacements(pieces)) for pieces in self.pieces)
        texts = tuple(self.text(number) for number in range(len(self.pieces)))
        return PseudonymisedGroup(texts, {given: tuple(found.forms) for given, found in self._entities.items()}, made)
