"""Pseudonymization: placeholders such as Character_A and Location_1 in place of names, and back again.

Source: ttda704 (SemEval-2026 Task 4), section on pseudonymization. Unlike there, only a coreference cluster's names are
replaced (pronouns and descriptions give none away), and a name is replaced wherever it occurs in its scope.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from narrlit.errors import DataError, OptionError
from narrlit.preprocessing.entities import open_spacy
from narrlit.preprocessing.mentions import KINDS, PLACEHOLDER, Kind, Mention, MentionFinder, Span, kind_of_label

Backend = Literal["none", "spacy", "given"]
Scope = Literal["story", "triple"]


@dataclass(frozen=True)
class PseudonymOptions:
    """Settings of pseudonymization.

    Attributes:
        backend: source of the names: a `spacy` pipeline with an entity recognizer, the names `given` with the data (as
            StoryWorld does), or `none`, which leaves texts unchanged.
        scope: texts that share one mapping of names: each `story` by itself, or the stories of a `triple` together (the
            setting of ttda704 for Track A; a story's text then depends on its triple).
        pipeline: name or folder of the spaCy pipeline.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
    """

    backend: Backend = "none"
    scope: Scope = "story"
    pipeline: str = "en_core_web_sm"
    coref: bool = False
    coref_model: str = "biu-nlp/f-coref"

    def __post_init__(self) -> None:
        if self.coref and self.backend == "given":
            raise OptionError("pseudonyms: coref needs backend spacy; given names are linked already")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A placeholder at characters `start` to `end` of the new text, and the original words."""

    placeholder: str
    original: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PseudonymizedText:
    """A text with placeholders, and its replacements in order."""

    text: str
    replacements: tuple[Replacement, ...] = ()


def pseudonymize_texts(
    groups: Sequence[Sequence[str]],
    options: PseudonymOptions,
    names: Sequence[Mapping[str, str]] | None = None,
    *,
    lead: bool = False,
    progress: bool = True,
) -> list[list[PseudonymizedText]]:
    """Replace the names in groups of texts; each group has one mapping of its own.

    Names are searched again in the changed texts until none is found, so that a second run changes nothing.
    Placeholders in the input stay as they are, and are not assigned again.

    Args:
        groups: the texts that share a mapping; the caller forms them by `options.scope`.
        options: settings.
        names: for backend `given`, of each group the names with PERSON, PLACE or ORGANIZATION.
        lead: replace the first text of each group as if it stood alone; the others (views) take over its mapping.
        progress: show a bar on stderr.

    >>> [[done]] = pseudonymize_texts([["Anna Lee met Bert. Anna left."]], PseudonymOptions("given"),
    ...     [{"Anna Lee": "PERSON", "Anna": "PERSON", "Bert": "PERSON"}])
    >>> done.text, restore(done.text, done.replacements)
    ('Character_A met Character_B. Character_A left.', 'Anna Lee met Bert. Anna left.')
    """
    if options.backend == "none":
        return [[PseudonymizedText(text) for text in group] for group in groups]
    finder = _open_finder(options, names, len(groups), progress)
    scopes = [_Scope(group) for group in groups]
    for part in (slice(1), slice(1, None)) if lead else (slice(None),):
        waiting = [(scope, index) for scope in range(len(scopes)) for index in range(len(groups[scope]))[part]]
        while waiting:
            texts = [scopes[scope].texts[index].text for scope, index in waiting]
            mentions: dict[int, dict[int, list[Mention]]] = {}
            for (scope, index), names_of in zip(waiting, finder(texts, [s for s, _ in waiting]), strict=True):
                mentions.setdefault(scope, {})[index] = names_of
            waiting = [(scope, i) for scope, each in mentions.items() for i in scopes[scope].replace(each, part)]
    return [scope.texts for scope in scopes]


def restore(text: str, replacements: Sequence[Replacement]) -> str:
    """Put the original words back, to the letter; DataError if a placeholder is not where the replacements have it.

    >>> restore("Character_A ran.", [Replacement("Character_A", "Anna", 0, 11)])
    'Anna ran.'
    """
    for one in sorted(replacements, key=lambda one: -one.start):
        if text[one.start : one.end] != one.placeholder:
            raise DataError(f"{one.placeholder} is not at characters {one.start} to {one.end}: the text has changed")
        text = text[: one.start] + one.original + text[one.end :]
    return text


@dataclass(slots=True, eq=False)
class _Entity:
    """One person, place or thing: its names as sets of tokens, their spellings, and votes for its kind."""

    keys: set[frozenset[str]] = field(default_factory=set)
    votes: Counter[Kind] = field(default_factory=Counter)
    placeholder: str | None = None

    @property
    def kind(self) -> Kind:
        """Kind of the placeholder, or else the one with most votes."""
        if self.placeholder is not None:
            return next(kind for kind in KINDS if self.placeholder.startswith(kind))
        return min(self.votes, key=lambda kind: (-self.votes[kind], KINDS.index(kind)))


class _Scope:
    """The texts of a group with one mapping of names."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [PseudonymizedText(text) for text in texts]
        self._entities: list[_Entity] = []
        self._forms: dict[str, _Entity] = {}
        self._taken = {placeholder for text in texts for placeholder in PLACEHOLDER.findall(text)}

    def replace(self, mentions: Mapping[int, Sequence[Mention]], part: slice) -> list[int]:
        """Replace the mentioned names in these texts; return the indices of changed texts."""
        self._link(mentions)
        if not self._forms:
            return []
        alternatives = "|".join(re.escape(form) for form in sorted(self._forms, key=lambda form: (-len(form), form)))
        # Between characters of no word alone, so that nothing is glued to a placeholder or replaced within one.
        pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")
        changed = []
        for index in range(len(self.texts))[part]:
            places = [(found.span(), self._forms[found.group()]) for found in pattern.finditer(self.texts[index].text)]
            spans = [(span, entity.placeholder or self._assign(entity)) for span, entity in places]
            if spans:
                self.texts[index] = _replaced(self.texts[index], spans)
                changed.append(index)
        return changed

    def _link(self, mentions: Mapping[int, Sequence[Mention]]) -> None:
        """Assign each name to an entity: by equality, by its coreference cluster, or as part of a longer name."""
        votes: dict[frozenset[str], Counter[Kind]] = {}
        clusters: dict[frozenset[str], list[tuple[int, int]]] = {}
        forms: dict[str, frozenset[str]] = {}
        for index, found in sorted(mentions.items()):
            for mention in found:
                form = self.texts[index].text[mention.start : mention.end]
                key = frozenset(re.findall(r"\w+", form.casefold()))
                forms[form] = key
                votes.setdefault(key, Counter())[mention.kind] += 1
                if mention.cluster is not None:
                    clusters.setdefault(key, []).append((index, mention.cluster))
        entities: dict[frozenset[str], _Entity] = {}
        of_cluster: dict[tuple[int, int], _Entity] = {}
        for key in sorted(votes, key=lambda key: -len(key)):
            linked = [of_cluster[cluster] for cluster in clusters.get(key, ()) if cluster in of_cluster]
            entity = self._entity(key, votes[key], linked)
            entity.keys.add(key)
            entity.votes += votes[key]
            entities[key] = entity
            for cluster in clusters.get(key, ()):
                of_cluster.setdefault(cluster, entity)
        self._forms |= {form: entities[key] for form, key in forms.items()}

    def _entity(self, key: frozenset[str], votes: Counter[Kind], linked: Sequence[_Entity]) -> _Entity:
        for known in (*(entity for entity in self._entities if key in entity.keys), *linked):
            return known
        kind = _Entity(votes=votes).kind
        same_kind = [entity for entity in self._entities if entity.kind == kind]
        longer = [entity for entity in same_kind if any(key < other or other < key for other in entity.keys)]
        if len(longer) == 1:
            return longer[0]
        self._entities.append(_Entity())
        return self._entities[-1]

    def _assign(self, entity: _Entity) -> str:
        """Assign the next free placeholder of the entity's kind."""
        names = (f"{entity.kind}_{_letters(n) if entity.kind == 'Character' else n}" for n in count(1))
        entity.placeholder = next(name for name in names if name not in self._taken)
        self._taken.add(entity.placeholder)
        return entity.placeholder


def _replaced(done: PseudonymizedText, spans: Sequence[tuple[Span, str]]) -> PseudonymizedText:
    """Replace spans of a text, given in order and without overlap, from right to left."""
    text, replacements = done.text, list(done.replacements)
    for (start, end), placeholder in reversed(spans):
        shift = len(placeholder) - (end - start)
        for i, one in enumerate(replacements):
            if one.start >= end:
                replacements[i] = replace(one, start=one.start + shift, end=one.end + shift)
        replacements.append(Replacement(placeholder, text[start:end], start, start + len(placeholder)))
        text = text[:start] + placeholder + text[end:]
    return PseudonymizedText(text, tuple(sorted(replacements, key=lambda one: one.start)))


def _letters(number: int) -> str:
    """Letters of a number from 1 on, as spreadsheets name columns.

    >>> [_letters(number) for number in (1, 26, 27, 703)]
    ['A', 'Z', 'AA', 'AAA']
    """
    letters = ""
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def _open_finder(
    options: PseudonymOptions, names: Sequence[Mapping[str, str]] | None, groups: int, progress: bool
) -> MentionFinder:
    if options.backend == "spacy":
        return open_spacy(options.pipeline, options.coref_model if options.coref else None, progress)
    if names is None or len(names) != groups:
        raise OptionError("pseudonyms: backend given needs the names of every story; use backend spacy for other data")

    def find(texts: Sequence[str], of: Sequence[int]) -> list[list[Mention]]:
        mentions: list[list[Mention]] = [[] for _ in texts]
        for text, group, found in zip(texts, of, mentions, strict=True):
            for name, label in names[group].items():
                match, kind = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), kind_of_label(label)
                if match and kind is not None:
                    found.append(Mention(*match.span(), kind))
        return mentions

    return find
