"""What two sets of examples or triples have in common: stories, pairs and triples that leak from one to the other."""

from collections.abc import Iterable
from dataclasses import dataclass

_Pair = frozenset[str]
_Triple = tuple[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much two sets share; sizes are those of (one, other), each different story, pair or triple counted once."""

    shared_stories: int
    shared_pairs: int
    shared_triples: int
    stories: tuple[int, int]
    pairs: tuple[int, int]
    triples: tuple[int, int]

    def describe(self) -> str:
        """One line for logs.

        >>> overlap([("x", "y", "z")], [("X", "w")]).describe()
        'shared: 1 story (of 3 and 2), 0 pairs (of 2 and 1), 0 triples (of 1 and 0)'
        """
        parts = (
            _part(self.shared_stories, "story", "stories", self.stories),
            _part(self.shared_pairs, "pair", "pairs", self.pairs),
            _part(self.shared_triples, "triple", "triples", self.triples),
        )
        return f"shared: {', '.join(parts)}"


def overlap(one: Iterable[tuple[str, ...]], other: Iterable[tuple[str, ...]]) -> Overlap:
    """Compare two sets of items, each the texts of an example or a triple, anchor first; a lone story is a 1-tuple.

    Texts are compared without regard to case and to the kind and amount of white space. A pair is an anchor and one of
    its candidates, in either order; a triple is an anchor and its first two candidates, in either order.
    """
    normal: dict[str, str] = {}  # a story stands in many items: each is normalised once
    stories_one, pairs_one, triples_one = _sets(one, normal)
    stories_other, pairs_other, triples_other = _sets(other, normal)
    return Overlap(
        shared_stories=len(stories_one & stories_other),
        shared_pairs=len(pairs_one & pairs_other),
        shared_triples=len(triples_one & triples_other),
        stories=(len(stories_one), len(stories_other)),
        pairs=(len(pairs_one), len(pairs_other)),
        triples=(len(triples_one), len(triples_other)),
    )


def _sets(items: Iterable[tuple[str, ...]], normal: dict[str, str]) -> tuple[set[str], set[_Pair], set[_Triple]]:
    stories: set[str] = set()
    pairs: set[_Pair] = set()
    triples: set[_Triple] = set()
    for item in items:
        for text in item:
            if text not in normal:
                normal[text] = normal_text(text)
        anchor, *candidates = [normal[text] for text in item]
        stories.update((anchor, *candidates))
        pairs.update(frozenset((anchor, candidate)) for candidate in candidates)
        if len(candidates) >= 2:
            triples.add((anchor, frozenset(candidates[:2])))
    return stories, pairs, triples


def normal_text(text: str) -> str:
    """What is compared of a text: not its case, nor the kind and amount of its white space."""
    return " ".join(text.casefold().split())


def _part(shared: int, singular: str, plural: str, sizes: tuple[int, int]) -> str:
    return f"{shared} {singular if shared == 1 else plural} (of {sizes[0]} and {sizes[1]})"
