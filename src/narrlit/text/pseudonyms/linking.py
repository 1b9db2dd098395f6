"""Which names speak of the same: one entity, one placeholder."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from narrlit.text.pseudonyms.mentions import Kind, Mention
from narrlit.text.pseudonyms.named import EVERYDAY, Key, key_of, named
from narrlit.text.pseudonyms.placeholders import Placeholders, protected, touches
from narrlit.text.pseudonyms.replacing import Span, without_overlap
from narrlit.text.pseudonyms.tokens import tokens

KINDS: tuple[Kind, ...] = ("Character", "Location", "Organization", "Entity")
"""In this order a tie of votes is broken."""


@dataclass(slots=True)
class LinkedEntity:
    """What one placeholder stands for.

    Attributes:
        placeholder: such as Character_A.
        kind: by the votes of its mentions.
        keys: its names, as they are compared.
        places: the number of a text and the span in it of each of its names, in order.
        forms: what stands in these places, in order, each once.
    """

    placeholder: str
    kind: Kind
    keys: set[Key]
    places: list[tuple[int, Span]]
    forms: dict[str, None]


@dataclass(slots=True)
class _Group:
    """Names that speak of the same, while they are put together; `known`: an entity found before."""

    keys: set[Key] = field(default_factory=set)
    votes: Counter[Kind] = field(default_factory=Counter)
    places: list[tuple[int, Span]] = field(default_factory=list)
    known: LinkedEntity | None = None

    @property
    def kind(self) -> Kind | None:
        if self.known is not None:
            return self.known.kind
        return min(self.votes, key=lambda kind: (-self.votes[kind], KINDS.index(kind)), default=None)

    def absorb(self, other: "_Group") -> None:
        self.keys |= other.keys
        self.votes += other.votes
        self.places += other.places
        self.known = self.known or other.known


def link(
    texts: Sequence[str],
    mentions: Sequence[Sequence[Mention]],
    known: Sequence[LinkedEntity] = (),
    beside: Sequence[str] = (),
) -> list[LinkedEntity]:
    """Put mentions together that speak of the same, over all texts that share a mapping.

    Mentions are one entity if they have the same name (whatever its case), if one is a part of the other's name
    ("Murphy", "Mary" of "Mary Ann Murphy") that would fit no other entity and whose own votes don't say otherwise, or
    if they are of one coreference cluster. The part may stand before the full name, and in another of the texts. Where
    a name stands that no mention covers, it belongs to its entity, too; an everyday word ("King", "Hope") does not if a
    sentence or a quotation begins with it.

    Of a cluster only names are given back, that is its capitalised mentions. Pronouns and descriptions ("she", "the old
    man") stay in the text, where ttda704 replaces all mentions of a cluster: they give no name away, and a story of
    placeholders alone is hard to read, for an encoder as well. A cluster without a name gives nothing.

    Args:
        texts: that share a mapping.
        mentions: those of each text, as a backend found them.
        known: entities that have been replaced already, in these texts or beside them.
        beside: texts that share the mapping and stay as they are; no placeholder that stands in one is given again.

    Returns:
        Entities in order of their first place, with the most frequent vote for a kind (ties in the order of KINDS,
        Entity where there is no vote) and a placeholder of their own, or that of the known entity they belong to.
        Places do not overlap; longer names win. No mention that touches a placeholder is among them.
    """
    groups = _with_aliases(_with_clusters(texts, mentions, known))
    kept = _places(texts, groups)
    given = Placeholders([*texts, *beside, *(entity.placeholder for entity in known)])
    entities = []
    for group, places in sorted(kept, key=lambda item: item[1][0]):
        kind = group.kind or "Entity"
        placeholder = group.known.placeholder if group.known else given.next(kind)
        forms = dict.fromkeys(texts[number][start:end] for number, (start, end) in places)
        entities.append(LinkedEntity(placeholder, kind, group.keys, places, forms))
    return entities


def _with_clusters(
    texts: Sequence[str], mentions: Sequence[Sequence[Mention]], known: Sequence[LinkedEntity]
) -> list[_Group]:
    """One group for each name, or for several that clusters join."""
    of_key: dict[Key, _Group] = {}
    for entity in known:
        group = _Group(set(entity.keys), known=entity)
        of_key |= dict.fromkeys(entity.keys, group)
    for number, (text, found) in enumerate(zip(texts, mentions, strict=True)):
        of_cluster: dict[int, Key] = {}
        for name in named(text, found):
            group = of_key.setdefault(name.key, _Group({name.key}))
            group.places.append((number, (name.start, name.end)))
            if name.kind is not None:
                group.votes[name.kind] += 1
            if name.cluster is not None:
                _join(of_key, of_cluster.setdefault(name.cluster, name.key), name.key)
    return list({id(group): group for group in of_key.values()}.values())


def _join(of_key: dict[Key, _Group], one: Key, other: Key) -> None:
    """Make the groups of two names one; two entities that have placeholders already stay two."""
    first, second = of_key[one], of_key[other]
    if first is second or (first.known and second.known):
        return
    first.absorb(second)
    of_key |= dict.fromkeys(second.keys, first)


def _with_aliases(groups: Sequence[_Group]) -> list[_Group]:
    """The groups, each whose name is a part of one other group's name absorbed by it, longer names first."""
    kept: list[_Group] = []
    of_word: dict[str, dict[int, _Group]] = {}
    for group in sorted(groups, key=lambda group: -max(map(len, group.keys))):
        beside = {number: other for key in group.keys for number, other in of_word.get(key[0], {}).items()}
        full = [other for other in beside.values() if not (group.known and other.known) and _is_alias(group, other)]
        if len(full) == 1:
            full[0].absorb(group)
        else:
            kept.append(group)
        owner = full[0] if len(full) == 1 else group
        for word in {word for key in group.keys for word in key}:
            of_word.setdefault(word, {})[id(owner)] = owner
    return kept


def _is_alias(group: _Group, full: _Group) -> bool:
    if group.kind is not None and full.kind not in (None, group.kind):
        return False
    return any(_is_part(short, long) for short in group.keys for long in full.keys)


def _is_part(short: Key, long: Key) -> bool:
    """Whether a name is made of some words of a longer one, in their order; of "X of Y", Y is no part.

    >>> _is_part(("john", "kennedy"), ("john", "f", "kennedy")), _is_part(("london",), ("tower", "of", "london"))
    (True, False)
    """
    words = iter(long[: long.index("of")] if "of" in long else long)
    return len(short) < len(long) and all(word in words for word in short)


def _places(texts: Sequence[str], groups: Iterable[_Group]) -> list[tuple[_Group, list[tuple[int, Span]]]]:
    """Each group that has places left, with them, in order: those of its mentions and where else its names stand."""
    spans: list[list[tuple[Span, _Group]]] = [[] for _ in texts]
    forms: dict[str, _Group] = {}
    for group in groups:
        forms |= dict.fromkeys(group.known.forms if group.known else (), group)
        for number, (start, end) in group.places:
            spans[number].append(((start, end), group))
            forms[texts[number][start:end]] = group
    everyday = {form for form in forms if set(key_of(form)) <= EVERYDAY}
    pattern = _forms_pattern(forms)
    found: dict[int, tuple[_Group, list[tuple[int, Span]]]] = {}
    for number, text in enumerate(texts):
        forbidden = protected(text)
        firsts = {token.start for token in tokens(text) if token.first} if everyday else set()
        for match in pattern.finditer(text) if pattern else ():
            begins = match.group() in everyday and match.start() in firsts
            if not begins and not touches(forbidden, *match.span()):
                spans[number].append((match.span(), forms[match.group()]))
        for span, group in without_overlap(spans[number]):
            found.setdefault(id(group), (group, []))[1].append((number, span))
    return list(found.values())


def _forms_pattern(forms: Iterable[str]) -> re.Pattern[str] | None:
    telling = [form for form in forms if any(c.isupper() for c in form)]
    longest_first = sorted(telling, key=lambda form: (-len(form), form))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)") if longest_first else None
