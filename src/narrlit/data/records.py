"""What is read from files and generated: stories, judged triples and training examples, as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

DIMENSIONS = ("theme", "structure", "outcome")
"""The three dimensions of narrative similarity; `structure` is the course of action."""

KINDS = (*DIMENSIONS, "mined", "triple")
"""What a negative can be: like the anchor in that one of DIMENSIONS only; `mined`: near the anchor by a model's
vectors; `triple`: the dissimilar story of a judged triple. None stands for an unknown kind."""


@dataclass(frozen=True, slots=True)
class Story:
    """One story, and the name its source gives it, if any."""

    text: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Triple:
    """An anchor and two candidates, A and B; `a_is_closer` is None where the label is held back."""

    anchor: str
    a: str
    b: str
    a_is_closer: bool | None = None

    @property
    def texts(self) -> tuple[str, str, str]:
        """Anchor, A and B."""
        return self.anchor, self.a, self.b

    def with_texts(self, texts: Sequence[str]) -> "Triple":
        """The same triple of other texts, in the order of `texts`."""
        anchor, a, b = texts
        return Triple(anchor, a, b, self.a_is_closer)


@dataclass(frozen=True, slots=True)
class Negative:
    """A story unlike an anchor; `kind` is one of KINDS, None if unknown."""

    text: str
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """An anchor, a story like it, and K >= 0 stories unlike it: what contrastive training reads.

    Examples with the same `group` are copies of one source, such as its translations back and forth; None: unknown.
    """

    anchor: str
    positive: str
    negatives: tuple[Negative, ...] = ()
    group: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Anchor, positive and negatives, in this order."""
        return self.anchor, self.positive, *(negative.text for negative in self.negatives)

    def with_texts(self, texts: Sequence[str]) -> "Example":
        """The same example of other texts, in the order of `texts`."""
        anchor, positive, *others = texts
        negatives = (Negative(text, old.kind) for text, old in zip(others, self.negatives, strict=True))
        return Example(anchor, positive, tuple(negatives), self.group)


def example_of(triple: Triple) -> Example:
    """The training example a labelled triple makes: the closer candidate is the positive, the other the negative.

    Raises:
        ValueError: if the triple has no label.

    >>> example_of(Triple("x", "far", "near", a_is_closer=False))
    Example(anchor='x', positive='near', negatives=(Negative(text='far', kind='triple'),), group=None)
    """
    if triple.a_is_closer is None:
        raise ValueError("a triple without a label can't train")
    near, far = (triple.a, triple.b) if triple.a_is_closer else (triple.b, triple.a)
    return Example(triple.anchor, near, (Negative(far, "triple"),))


def triple_of(example: Example) -> Triple | None:
    """The labelled triple an example holds: its first negative of kind `triple`; None where it has none.

    >>> triple_of(Example("x", "near", (Negative("far", "triple"),)))
    Triple(anchor='x', a='far', b='near', a_is_closer=False)
    """
    far = next((negative.text for negative in example.negatives if negative.kind == "triple"), None)
    if far is None:
        return None
    first = a_comes_first(example.anchor)
    a, b = (example.positive, far) if first else (far, example.positive)
    return Triple(example.anchor, a, b, first)


def a_comes_first(anchor: str) -> bool:
    """Whether the closer candidate stands as A: for about half of all anchors, so that a tie is right half the time."""
    return sha256(anchor.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0
