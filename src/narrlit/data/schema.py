"""Stories in a table, and triples and training examples as indices into it.

Letters in shapes: N rows, K negatives of an example.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from narrlit.data.readers import ReadReport

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
Floats = npt.NDArray[np.floating]
"""Numbers of any precision."""
Role = Literal["anchor", "candidate"]
"""Position of a story in a comparison; asymmetric encoders have a prompt for each."""
Track = Literal["a", "b"]
"""Track of the shared task: a, which candidate is closer; b, one vector for each story."""


ASPECTS: tuple[str, str, str] = ("theme", "action", "outcome")
"""The three aspects of narrative similarity; `action` is the course of action."""

KINDS = (*ASPECTS, "mined", "triple")
"""Kinds of a negative: similar to the anchor in that one aspect only; `mined`: close to the anchor by a model's
embeddings; `triple`: the dissimilar story of a triple. None stands for an unknown kind."""

PADDING = -1
"""Padding of rows with fewer negatives; also an unknown kind, a missing label or pseudo-label."""


@dataclass(frozen=True, slots=True)
class Views:
    """Texts about one aspect of a story each."""

    theme: str
    action: str
    outcome: str

    @property
    def texts(self) -> tuple[str, str, str]:
        """The views in the order of ASPECTS."""
        return self.theme, self.action, self.outcome


@dataclass(frozen=True, slots=True)
class Story:
    """One story.

    Attributes:
        id: id in its source; by default its story index.
        text: what an encoder reads.
        views: views of the story, if there are any.
        original: the text before pseudonymization; None where names were never replaced.
    """

    id: str
    text: str
    views: Views | None = None
    original: str | None = None

    @property
    def source_text(self) -> str:
        """The text with its names, pseudonymized or not."""
        return self.text if self.original is None else self.original

    @property
    def texts(self) -> tuple[str, ...]:
        """Text, then views if there are any."""
        return (self.text,) if self.views is None else (self.text, *self.views.texts)

    def with_texts(self, texts: Sequence[str]) -> "Story":
        """Copy the story with other texts, in the order of `texts`; its own text becomes the original.

        >>> Story("0", "Anna ran.").with_texts(["Character_A ran."]).source_text
        'Anna ran.'
        """
        text, *views = texts
        return Story(self.id, text, Views(*views) if views else None, original=self.text)


def texts_of(stories: Iterable[Story]) -> list[str]:
    """List the texts and views of stories, one after the other."""
    texts: list[str] = []
    for story in stories:
        texts += story.texts
    return texts


def with_texts(stories: Iterable[Story], texts: Iterable[str]) -> list[Story]:
    """Copy stories with other texts and views, in the order of `texts_of`."""
    remaining = iter(texts)
    return [story.with_texts(list(islice(remaining, len(story.texts)))) for story in stories]


R = TypeVar("R")


class Rows(Sequence[R]):
    """A sequence over its attribute `rows`."""

    rows: list[R]

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> list[R]: ...
    def __getitem__(self, index: int | slice) -> R | list[R]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)


class StoryTable(Rows[Story]):
    """Stories by index; an added text occurs once, with the first of its ids and originals.

    >>> table = StoryTable.of(["a", "b", "a"])
    >>> table.add("b"), len(table), table[1].text
    (1, 2, 'b')
    """

    def __init__(self, stories: Iterable[Story] = ()) -> None:
        self.rows = list(stories)
        self._index: dict[str, int] = {}
        for index, story in enumerate(self.rows):
            self._index.setdefault(story.text, index)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "StoryTable":
        """Build a table of texts."""
        table = cls()
        for text in texts:
            table.add(text)
        return table

    def add(self, text: str, *, id: str | None = None, views: Views | None = None, original: str | None = None) -> int:
        """Return the index of a text, adding the story if it is new; views complete a story that has none."""
        index = self._index.setdefault(text, len(self))
        if index == len(self):
            self.rows.append(Story(str(index) if id is None else id, text, views, original))
        elif views is not None and self[index].views is None:
            self.set_views(index, views)
        return index

    def set_views(self, index: int, views: Views) -> None:
        """Give a story its views."""
        self.rows[index] = replace(self.rows[index], views=views)

    @property
    def texts(self) -> list[str]:
        """A copy of the texts in order of their indices."""
        return [story.text for story in self.rows]


@dataclass(frozen=True, slots=True)
class Triple:
    """Story indices of an anchor and two candidates, A and B; `a_is_closer` is None where there is no label."""

    anchor: int
    a: int
    b: int
    a_is_closer: bool | None = None

    @property
    def indices(self) -> tuple[int, int, int]:
        """Anchor, A and B."""
        return self.anchor, self.a, self.b


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """Story indices of an anchor, a similar story, and K >= 0 dissimilar ones, each with its kind.

    Attributes:
        anchor: a story.
        positive: a story that is similar to it.
        negatives: stories that are not.
        kinds: of each negative.
        group: examples with the same group are versions of one story, or copies of one source, such as its
            back-translations; None: unknown.
        setting: what the anchor shares with stories of other groups, such as the place or the author; None: unknown.
    """

    anchor: int
    positive: int
    negatives: tuple[int, ...] = ()
    kinds: tuple[str | None, ...] = ()
    group: str | None = None
    setting: str | None = None

    def __post_init__(self) -> None:
        if len(self.kinds) != len(self.negatives):
            raise ValueError(f"{len(self.kinds)} kinds for {len(self.negatives)} negatives")

    @property
    def indices(self) -> tuple[int, ...]:
        """Anchor, positive and negatives."""
        return self.anchor, self.positive, *self.negatives


@dataclass
class Triples(Rows[Triple]):
    """N triples of stories of a table."""

    stories: StoryTable
    rows: list[Triple]
    report: "ReadReport | None" = None

    def texts(self) -> list[tuple[str, str, str]]:
        """Texts of anchor, A and B, row by row."""
        return [(self.stories[x].text, self.stories[a].text, self.stories[b].text) for x, a, b in self.indices.tolist()]

    @cached_property
    def indices(self) -> IntArray:
        """Story indices (N, 3) of anchor, A and B."""
        return np.array([row.indices for row in self.rows], dtype=np.int64).reshape(-1, 3)

    @cached_property
    def labels(self) -> IntArray:
        """Labels (N,): 1 where A is closer, 0 where B is, PADDING where there is no label."""
        labels = [PADDING if row.a_is_closer is None else int(row.a_is_closer) for row in self.rows]
        return np.array(labels, dtype=np.int64)


@dataclass
class TrainingExamples(Rows[TrainingExample]):
    """N training examples of stories of a table; K is the largest number of negatives."""

    stories: StoryTable
    rows: list[TrainingExample]
    report: "ReadReport | None" = None

    def texts(self) -> list[tuple[str, ...]]:
        """Texts of anchor, positive and negatives, row by row."""
        return [tuple(self.stories[index].text for index in row.indices) for row in self.rows]

    @cached_property
    def anchors(self) -> IntArray:
        """Story indices (N,)."""
        return np.array([row.anchor for row in self.rows], dtype=np.int64)

    @cached_property
    def positives(self) -> IntArray:
        """Story indices (N,)."""
        return np.array([row.positive for row in self.rows], dtype=np.int64)

    @cached_property
    def negatives(self) -> IntArray:
        """Story indices (N, K), PADDING where a row has fewer."""
        return _padded([row.negatives for row in self.rows])

    @cached_property
    def story_indices(self) -> IntArray:
        """Indices of the different stories that the examples mention, ascending."""
        return np.array(sorted({index for row in self.rows for index in row.indices}), dtype=np.int64)

    @cached_property
    def groups(self) -> IntArray:
        """Group (S,) of each story of the table; stories of one group are never each other's negatives.

        Anchors and positives of examples with the same `group` are one group, a story of several groups joins them;
        every other story is alone.
        """
        first: dict[str, int] = {}
        links: list[tuple[int, int]] = []
        for row in self.rows:
            if row.group is not None:
                root = first.setdefault(row.group, row.anchor)
                links += [(root, row.anchor), (root, row.positive)]
        if not links:
            return np.arange(len(self.stories), dtype=np.int64)
        return connected(links, len(self.stories))

    @cached_property
    def settings(self) -> IntArray:
        """Number (N,) of each example's setting, PADDING where it has none."""
        numbers: dict[str, int] = {}
        known = [PADDING if row.setting is None else numbers.setdefault(row.setting, len(numbers)) for row in self.rows]
        return np.array(known, dtype=np.int64)

    @cached_property
    def kinds(self) -> IntArray:
        """Indices (N, K) into KINDS, PADDING where unknown or no negative."""
        return _padded([[PADDING if kind is None else KINDS.index(kind) for kind in row.kinds] for row in self.rows])


def connected(links: Sequence[tuple[int, int]], size: int) -> IntArray:
    """Number the groups (size,) that links join, directly or through others."""
    from scipy.sparse import coo_array, csgraph  # light services and help read stories without it

    first, second = np.array(links, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(size, size))
    groups: IntArray = csgraph.connected_components(graph, directed=False)[1].astype(np.int64)
    return groups


def _padded(rows: Sequence[Sequence[int]]) -> IntArray:
    padded = np.full((len(rows), max(map(len, rows), default=0)), PADDING, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def triple_cosines(vectors: FloatArray) -> npt.NDArray[np.float64]:
    """Compute the cosines (N, 2) of anchors with A and with B from embeddings (N, 3, D) of anchor, A and B."""
    anchors, pairs = np.split(vectors.astype(np.float64), [1], axis=1)
    lengths = np.linalg.norm(anchors, axis=-1) * np.linalg.norm(pairs, axis=-1)
    cosines: npt.NDArray[np.float64] = (anchors * pairs).sum(-1) / np.maximum(lengths, 1e-12)
    return cosines


def example_of(triple: Triple) -> TrainingExample:
    """Convert a labeled triple: the closer candidate is the positive, the other the negative.

    >>> example_of(Triple(0, 1, 2, a_is_closer=False))
    TrainingExample(anchor=0, positive=2, negatives=(1,), kinds=('triple',), group=None, setting=None)
    """
    if triple.a_is_closer is None:
        raise ValueError("a triple without a label is no training example")
    near, far = (triple.a, triple.b) if triple.a_is_closer else (triple.b, triple.a)
    return TrainingExample(triple.anchor, near, (far,), ("triple",))


def triple_of(example: TrainingExample, stories: StoryTable) -> Triple | None:
    """Convert an example to a labeled triple with its first negative of kind `triple`; None where it has none."""
    if "triple" not in example.kinds:
        return None
    far = example.negatives[example.kinds.index("triple")]
    first = a_comes_first(stories[example.anchor].source_text)
    a, b = (example.positive, far) if first else (far, example.positive)
    return Triple(example.anchor, a, b, first)


def a_comes_first(anchor: str) -> bool:
    """Decide by an anchor's text whether the closer candidate is A: for about half of all anchors."""
    return sha256(anchor.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


def normal_text(text: str) -> str:
    """Normalize case and white space, to compare texts."""
    return " ".join(text.casefold().split())
