"""Pseudonymization: replacement of names by placeholders such as Character_A and Location_1, and its reversal.

Source: ttda704 (SemEval-2026 Task 4), section 4.1, with two differences: by default only the names of a coreference
cluster are replaced, because pronouns and descriptions do not reveal names (`cluster: mentions` replaces them, as the
paper does); and a name is replaced wherever it occurs in its scope. Where mentions overlap, which the paper does not
decide, the shorter one is replaced, so that fewer words are lost.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Literal, get_args

from narrlit.errors import DataError, OptionError
from narrlit.preprocessing.entities import open_spacy
from narrlit.preprocessing.mentions import (
    NAME_KINDS,
    PLACEHOLDER,
    Mention,
    MentionFinder,
    NameKind,
    Span,
    kind_of_label,
)

NameSource = Literal["none", "spacy", "given"]
Scope = Literal["story", "triple"]
ClusterParts = Literal["names", "mentions"]


@dataclass(frozen=True)
class PseudonymOptions:
    """Settings of pseudonymization.

    Attributes:
        backend: source of the names: a `spacy` pipeline with an entity recognizer, names `given` with the data (as in
            StoryWorld), or `none`, which leaves texts unchanged.
        scope: texts with a common mapping of names: each `story` by itself, or the stories of a `triple`, as in ttda704
            for Track A (the text of a story then depends on its triple).
        pipeline: name or folder of the spaCy pipeline.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        cluster: parts of a coreference cluster that are replaced: its `names`, or all its `mentions`, also pronouns and
            descriptions, as in ttda704; a cluster without a name is never replaced.
    """

    backend: NameSource = "none"
    scope: Scope = "story"
    pipeline: str = "en_core_web_sm"
    coref: bool = False
    coref_model: str = "biu-nlp/f-coref"
    cluster: ClusterParts = "names"

    def __post_init__(self) -> None:
        if self.cluster not in get_args(ClusterParts):
            raise OptionError("unknown_cluster", cluster=self.cluster, known=list(get_args(ClusterParts)))
        if self.cluster == "mentions" and not self.coref:
            raise OptionError("mentions_need_coref")
        if self.coref and self.backend == "given":
            raise OptionError("coref_of_given_names")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Placeholder at characters `start` to `end` of the new text, with the original words."""

    placeholder: str
    original: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PseudonymizedText:
    """Text with placeholders, and its replacements in order."""

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
    """Replace the names in groups of texts, with one mapping for each group.

    Changed texts are searched again until no name is found, so that a second run changes nothing. Placeholders in the
    input are kept, and not assigned to other names.

    Args:
        groups: groups of texts with a common mapping, according to `options.scope`.
        options: settings of pseudonymization.
        names: names in each group with their labels (PERSON, PLACE or ORGANIZATION), for backend `given`.
        lead: replace the first text of each group independently, and the others (its views) by its mapping.
        progress: show a progress bar on stderr.

    Returns:
        The texts of each group with placeholders.

    Raises:
        OptionError: if names are missing for backend `given`.
        ModelError: if the spaCy pipeline or the coreference model can't be loaded.

    >>> [[result]] = pseudonymize_texts([["Anna Lee met Bert. Anna left."]], PseudonymOptions("given"),
    ...     [{"Anna Lee": "PERSON", "Anna": "PERSON", "Bert": "PERSON"}])
    >>> result.text, restore(result.text, result.replacements)
    ('Character_A met Character_B. Character_A left.', 'Anna Lee met Bert. Anna left.')
    """
    scopes = [_Scope(number, group) for number, group in enumerate(groups)]
    if options.backend != "none":
        finder = _open_finder(options, names, len(groups), progress)
        parts = [slice(1), slice(1, None)] if lead else [slice(None)]
        for part in parts:
            _replace_names(scopes, part, finder)
    return [scope.texts for scope in scopes]


def _replace_names(scopes: Sequence["_Scope"], part: slice, finder: MentionFinder) -> None:
    """Replace the names in some texts of each scope, and search changed texts again until no name is found."""
    for scope in scopes:
        scope.unsearched = list(scope.indices(part))
    while unfinished := [scope for scope in scopes if scope.unsearched]:
        waiting = [(scope, index) for scope in unfinished for index in scope.unsearched]
        texts = [scope.texts[index].text for scope, index in waiting]
        groups = [scope.group for scope, _ in waiting]
        mentions: dict[_Scope, dict[int, Sequence[Mention]]] = {scope: {} for scope in unfinished}
        for (scope, index), found in zip(waiting, finder(texts, groups), strict=True):
            mentions[scope][index] = found
        for scope in unfinished:
            scope.replace(mentions[scope], part)


def restore(text: str, replacements: Sequence[Replacement]) -> str:
    """Restore the original text exactly.

    Raises:
        DataError: if a placeholder is not at the position of its replacement.

    >>> restore("Character_A ran.", [Replacement("Character_A", "Anna", 0, 11)])
    'Anna ran.'
    """
    for replacement in sorted(replacements, key=attrgetter("start"), reverse=True):
        start, end = replacement.start, replacement.end
        if text[start:end] != replacement.placeholder:
            raise DataError("placeholder_moved", placeholder=replacement.placeholder, start=start, end=end)
        text = text[:start] + replacement.original + text[end:]
    return text


NameKey = frozenset[str]
"""Lower-case words of a name; different spellings of a name have the same key."""
Cluster = tuple[int, int]
"""Index of a text in its group, and number of a coreference cluster in the text."""


@dataclass(slots=True)
class _Name:
    """Name in the texts, with its spellings, votes for its kind, and its coreference clusters."""

    forms: set[str] = field(default_factory=set)
    votes: Counter[NameKind] = field(default_factory=Counter)
    clusters: list[Cluster] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Entity:
    """Person, place or thing, with its names, votes for its kind, and its placeholder (None: not yet assigned)."""

    keys: set[NameKey] = field(default_factory=set)
    votes: Counter[NameKind] = field(default_factory=Counter)
    placeholder: str | None = None

    @property
    def kind(self) -> NameKind:
        """Kind of the placeholder if there is one, else the kind with the most votes."""
        if self.placeholder is not None:
            return next(kind for kind in NAME_KINDS if self.placeholder.startswith(kind))
        return max(NAME_KINDS, key=lambda kind: self.votes[kind])

    def overlaps(self, key: NameKey) -> bool:
        """Return True if a name of the entity is part of another name, or contains it."""
        return any(key < entity_key or entity_key < key for entity_key in self.keys)


class _Scope:
    """Texts of a group, with a common mapping of names.

    Attributes:
        group: index of the group.
        texts: the texts, with the placeholders so far.
        unsearched: indices of the texts that are not yet searched for names, or changed since.
    """

    def __init__(self, group: int, texts: Sequence[str]) -> None:
        self.group = group
        self.texts = [PseudonymizedText(text) for text in texts]
        self.unsearched: list[int] = []
        self._entities: list[_Entity] = []
        self._forms: dict[str, _Entity] = {}
        self._taken = set(PLACEHOLDER.findall("\n".join(texts)))

    def indices(self, part: slice) -> range:
        """Return the indices of some of the texts."""
        return range(len(self.texts))[part]

    def replace(self, mentions: Mapping[int, Sequence[Mention]], part: slice) -> None:
        """Replace names in some of the texts; those that change have to be searched again.

        Args:
            mentions: mentions that were found, by the index of their text.
            part: slice of the texts in which all known names are replaced.
        """
        entity_by_cluster = self._link(mentions)
        self.unsearched = []
        if not self._forms:
            return
        pattern = self._pattern()
        for index in self.indices(part):
            text = self.texts[index]
            spans: list[tuple[Span, _Entity]] = []
            for mention in sorted(mentions.get(index, ()), key=lambda mention: mention.end - mention.start):
                if mention.kind is None and mention.cluster is not None:
                    spans.append((mention.span, entity_by_cluster[index, mention.cluster]))
            for match in pattern.finditer(text.text):
                spans.append((match.span(), self._forms[match.group()]))
            placeholders = [(span, self._placeholder(entity)) for span, entity in _without_overlap(spans)]
            if placeholders:
                self.texts[index] = _replaced(text, placeholders)
                self.unsearched.append(index)

    def _pattern(self) -> re.Pattern[str]:
        """Compile a pattern of all names, the longest first."""
        forms = sorted(self._forms, key=lambda form: (-len(form), form))
        alternatives = "|".join(map(re.escape, forms))
        # Only at word boundaries, so that no letters remain next to a placeholder, and none in it are replaced.
        return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")

    def _link(self, mentions: Mapping[int, Sequence[Mention]]) -> dict[Cluster, _Entity]:
        """Assign each name to an entity with the same name, the same coreference cluster, or a longer name.

        Returns:
            The entity of each cluster that has a name.
        """
        names = self._collect_names(mentions)
        entity_by_cluster: dict[Cluster, _Entity] = {}
        for key, name in sorted(names.items(), key=lambda item: -len(item[0])):
            linked = [entity_by_cluster[cluster] for cluster in name.clusters if cluster in entity_by_cluster]
            entity = self._entity(key, name.votes, linked)
            entity.keys.add(key)
            entity.votes += name.votes
            for cluster in name.clusters:
                entity_by_cluster.setdefault(cluster, entity)
            for form in name.forms:
                self._forms[form] = entity
        return entity_by_cluster

    def _collect_names(self, mentions: Mapping[int, Sequence[Mention]]) -> dict[NameKey, _Name]:
        """Collect the names of the mentions by their keys."""
        names: defaultdict[NameKey, _Name] = defaultdict(_Name)
        for index, text_mentions in sorted(mentions.items()):
            for mention in text_mentions:
                if mention.kind is None:
                    continue
                form = self.texts[index].text[mention.start : mention.end]
                name = names[frozenset(re.findall(r"\w+", form.casefold()))]
                name.forms.add(form)
                name.votes[mention.kind] += 1
                if mention.cluster is not None:
                    name.clusters.append((index, mention.cluster))
        return names

    def _entity(self, key: NameKey, votes: Counter[NameKind], linked: Sequence[_Entity]) -> _Entity:
        """Find or create the entity of a name.

        Args:
            key: key of the name.
            votes: votes for the kind of the name.
            linked: entities that share a coreference cluster with the name.
        """
        for entity in self._entities:
            if key in entity.keys:
                return entity
        if linked:
            return linked[0]
        kind = _Entity(votes=votes).kind
        related = [entity for entity in self._entities if entity.kind == kind and entity.overlaps(key)]
        if len(related) == 1:
            return related[0]
        self._entities.append(_Entity())
        return self._entities[-1]

    def _placeholder(self, entity: _Entity) -> str:
        """Return the placeholder of an entity, and assign the next free one if it has none."""
        if entity.placeholder is None:
            number = 1
            while _numbered(entity.kind, number) in self._taken:
                number += 1
            entity.placeholder = _numbered(entity.kind, number)
            self._taken.add(entity.placeholder)
        return entity.placeholder


def _without_overlap(spans: Sequence[tuple[Span, _Entity]]) -> list[tuple[Span, _Entity]]:
    """Drop each span that overlaps an earlier one in the sequence, and sort the others by position."""
    chosen: list[tuple[Span, _Entity]] = []
    for (start, end), entity in spans:
        if all(end <= other_start or start >= other_end for (other_start, other_end), _ in chosen):
            chosen.append(((start, end), entity))
    return sorted(chosen, key=itemgetter(0))


def _replaced(result: PseudonymizedText, spans: Sequence[tuple[Span, str]]) -> PseudonymizedText:
    """Replace spans of a text by placeholders; the spans are in order and do not overlap."""
    text = result.text
    replacements = list(result.replacements)
    for (start, end), placeholder in reversed(spans):
        shift = len(placeholder) - (end - start)
        for i, earlier in enumerate(replacements):
            if earlier.start >= end:
                replacements[i] = replace(earlier, start=earlier.start + shift, end=earlier.end + shift)
        replacements.append(Replacement(placeholder, text[start:end], start, start + len(placeholder)))
        text = text[:start] + placeholder + text[end:]
    return PseudonymizedText(text, tuple(sorted(replacements, key=attrgetter("start"))))


def _numbered(kind: NameKind, number: int) -> str:
    """Create a placeholder, such as Character_A or Location_1."""
    name = _letters(number) if kind == "Character" else str(number)
    return f"{kind}_{name}"


def _letters(number: int) -> str:
    """Convert a number, from 1, to letters, like the columns of a spreadsheet.

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
    """Return the function that finds the names, with spaCy or among the given names of each group."""
    if options.backend == "spacy":
        coref_model = options.coref_model if options.coref else None
        return open_spacy(options.pipeline, coref_model, progress, descriptions=options.cluster == "mentions")
    if names is None or len(names) != groups:
        raise OptionError("given_names_needed")

    def find(texts: Sequence[str], group_of_text: Sequence[int]) -> list[list[Mention]]:
        return [_mentions(text, names[group]) for text, group in zip(texts, group_of_text, strict=True)]

    return find


def _mentions(text: str, names: Mapping[str, str]) -> list[Mention]:
    """Find the first mention of each name in a text, given the labels of the names."""
    mentions = []
    for name, label in names.items():
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
        kind = kind_of_label(label)
        if match is not None and kind is not None:
            mentions.append(Mention(*match.span(), kind))
    return mentions
