"""Table of stories, and triples and training examples as indices into it.

Letters in shapes: N rows, K negatives of an example, S stories of a table.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from narrlit.data.readers import ReadReport

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
DoubleArray = NDArray[np.float64]
Floats = NDArray[np.floating]
"""Array of floating-point numbers of any precision."""
TripleRole = Literal["anchor", "candidate"]
"""Role of a story in a comparison; asymmetric encoders have a prompt for each role."""
Track = Literal["a", "b"]
"""Track of the shared task: in `a`, a system selects the closer candidate; in `b`, it embeds each story."""


Aspect = Literal["theme", "action", "outcome"]
ASPECTS: tuple[Aspect, Aspect, Aspect] = ("theme", "action", "outcome")
"""The three aspects of narrative similarity; `action` is the course of action."""

NEGATIVE_KINDS = (*ASPECTS, "mined", "triple")
"""Kinds of negatives. An aspect: similar to the anchor in this aspect only; `mined`: close to the anchor by a model's
embeddings; `triple`: the dissimilar story of a triple. None stands for an unknown kind."""

_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces other than the ordinary one: no-break, thin, ideographic and others."""

PADDING = -1
"""Padding of rows with fewer negatives; also stands for an unknown kind and for a missing label or pseudo-label."""


@dataclass(frozen=True, slots=True)
class Views:
    """Views of a story, one for each aspect."""

    theme: str
    action: str
    outcome: str

    @property
    def texts(self) -> tuple[str, str, str]:
        """The views in the order of ASPECTS."""
        return self.theme, self.action, self.outcome

    @property
    def by_aspect(self) -> dict[str, str]:
        """The views by their aspects, in the order of ASPECTS."""
        return dict(zip(ASPECTS, self.texts, strict=True))


@dataclass(frozen=True, slots=True)
class Story:
    """Story with an id, a text and, optionally, views.

    Attributes:
        id: id in its source; by default its story index.
        text: text that an encoder reads.
        views: views of the story; None if it has none.
        original: text before pseudonymization; None if no names were replaced.
    """

    id: str
    text: str
    views: Views | None = None
    original: str | None = None

    @property
    def source_text(self) -> str:
        """The text with its original names."""
        return self.text if self.original is None else self.original

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, followed by the views if there are any."""
        return (self.text,) if self.views is None else (self.text, *self.views.texts)

    def with_texts(self, texts: Sequence[str]) -> "Story":
        """Copy the story with new texts, in the order of the property `texts`; the original text is kept.

        >>> Story("0", "Anna ran.").with_texts(["Character_A ran."]).source_text
        'Anna ran.'
        """
        text, *views = texts
        return Story(self.id, text, Views(*views) if views else None, original=self.source_text)


def texts_of(stories: Iterable[Story]) -> list[str]:
    """List the texts and views of stories, story by story."""
    texts: list[str] = []
    for story in stories:
        texts += story.texts
    return texts


def with_texts(stories: Iterable[Story], texts: Iterable[str]) -> list[Story]:
    """Copy stories with new texts and views, in the order of `texts_of`."""
    remaining = iter(texts)
    copies = []
    for story in stories:
        own_texts = list(islice(remaining, len(story.texts)))
        copies.append(story.with_texts(own_texts))
    return copies


R = TypeVar("R")


class Rows(Sequence[R]):
    """Base class of sequences over an attribute `rows`."""

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
    """Table of stories; a text that is added several times is stored once, with its first id and original.

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
        """Add a story unless its text is in the table, and return its story index.

        If the text is in the table without views, the given views are attached to it.
        """
        index = self._index.setdefault(text, len(self))
        if index == len(self):
            self.rows.append(Story(str(index) if id is None else id, text, views, original))
        elif views is not None and self[index].views is None:
            self.set_views(index, views)
        return index

    def set_views(self, index: int, views: Views) -> None:
        """Attach views to a story."""
        self.rows[index] = replace(self.rows[index], views=views)

    @property
    def texts(self) -> list[str]:
        """Copy of the texts, in the order of the story indices."""
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
    """Story indices of an anchor, a positive and any number of negatives.

    Attributes:
        anchor: anchor.
        positive: story that is similar to the anchor.
        negatives: stories that are not similar to the anchor.
        kinds: kind of each negative (see NEGATIVE_KINDS).
        group: name of a group of examples that are versions of one story, or copies of one source such as
            back-translations; None: unknown.
        setting: what the anchor shares with stories of other groups, such as the place or the author; None: unknown.
        near: groups that are not in a batch with this example, because their stories are too similar for negatives.
    """

    anchor: int
    positive: int
    negatives: tuple[int, ...] = ()
    kinds: tuple[str | None, ...] = ()
    group: str | None = None
    setting: str | None = None
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.kinds) != len(self.negatives):
            raise ValueError(f"{len(self.kinds)} kinds for {len(self.negatives)} negatives")

    @property
    def indices(self) -> tuple[int, ...]:
        """Anchor, positive and negatives."""
        return self.anchor, self.positive, *self.negatives


@dataclass
class Triples(Rows[Triple]):
    """N triples over the stories of a table."""

    stories: StoryTable
    rows: list[Triple]
    report: "ReadReport | None" = None

    def texts(self) -> list[tuple[str, str, str]]:
        """Texts of anchor, A and B, row by row."""
        texts = []
        for anchor, a, b in self.indices.tolist():
            texts.append((self.stories[anchor].text, self.stories[a].text, self.stories[b].text))
        return texts

    @cached_property
    def indices(self) -> IntArray:
        """Story indices (N, 3) of anchor, A and B."""
        return np.array([row.indices for row in self.rows], dtype=np.int64).reshape(-1, 3)

    @cached_property
    def labels(self) -> IntArray:
        """Labels (N,): 1 where A is closer, 0 where B is, PADDING where there is no label."""
        labels = np.full(len(self.rows), PADDING, dtype=np.int64)
        for position, row in enumerate(self.rows):
            if row.a_is_closer is not None:
                labels[position] = row.a_is_closer
        return labels


@dataclass
class TrainingExamples(Rows[TrainingExample]):
    """N training examples over the stories of a table; K is their largest number of negatives."""

    stories: StoryTable
    rows: list[TrainingExample]
    report: "ReadReport | None" = None

    def texts(self) -> list[tuple[str, ...]]:
        """Texts of anchor, positive and negatives, row by row."""
        texts = []
        for row in self.rows:
            texts.append(tuple(self.stories[index].text for index in row.indices))
        return texts

    @cached_property
    def anchors(self) -> IntArray:
        """Story indices (N,) of the anchors."""
        return np.array([row.anchor for row in self.rows], dtype=np.int64)

    @cached_property
    def positives(self) -> IntArray:
        """Story indices (N,) of the positives."""
        return np.array([row.positive for row in self.rows], dtype=np.int64)

    @cached_property
    def negatives(self) -> IntArray:
        """Story indices (N, K) of the negatives, PADDING where an example has fewer."""
        return _padded([row.negatives for row in self.rows])

    @cached_property
    def story_indices(self) -> IntArray:
        """Story indices of the distinct stories of the examples, ascending."""
        distinct: set[int] = set()
        for row in self.rows:
            distinct.update(row.indices)
        return np.array(sorted(distinct), dtype=np.int64)

    @cached_property
    def groups(self) -> IntArray:
        """Group (S,) of each story of the table; stories of one group are never each other's negatives.

        The anchors and positives of examples with the same `group` form one group. Groups that share a story are
        merged. Every other story is a group by itself.
        """
        root_of_group: dict[str, int] = {}
        links: list[tuple[int, int]] = []
        for row in self.rows:
            if row.group is not None:
                root = root_of_group.setdefault(normal_form(row.group), row.anchor)
                links += [(root, row.anchor), (root, row.positive)]
        if not links:
            return np.arange(len(self.stories), dtype=np.int64)
        return connected(links, len(self.stories))

    @cached_property
    def near(self) -> list[list[int]]:
        """Groups, as in `groups`, that are not in a batch with each of the N examples."""
        number_of: dict[str, int] = {}
        for row in self.rows:
            if row.group is not None:
                number_of[normal_form(row.group)] = int(self.groups[row.anchor])
        return [[number_of[name] for name in row.near if name in number_of] for row in self.rows]

    @cached_property
    def settings(self) -> IntArray:
        """Number (N,) of each example's setting, PADDING where it has none."""
        numbers: dict[str, int] = {}
        settings = np.full(len(self.rows), PADDING, dtype=np.int64)
        for position, row in enumerate(self.rows):
            if row.setting is not None:
                settings[position] = numbers.setdefault(row.setting, len(numbers))
        return settings

    @cached_property
    def kinds(self) -> IntArray:
        """Indices (N, K) of the negatives' kinds in NEGATIVE_KINDS; PADDING if unknown or without negative."""
        return _padded([list(map(_kind_index, row.kinds)) for row in self.rows])


def connected(links: Sequence[tuple[int, int]], size: int) -> IntArray:
    """Number the connected components of `size` nodes, as an array (size,), by the links between the nodes."""
    from scipy.sparse import coo_array, csgraph  # light services and help read stories without it

    first, second = np.array(links, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(size, size))
    _, group_of = csgraph.connected_components(graph, directed=False)
    groups: IntArray = group_of.astype(np.int64)
    return groups


def _kind_index(kind: str | None) -> int:
    """Return the index of a kind in NEGATIVE_KINDS; PADDING if the kind is unknown."""
    return PADDING if kind is None else NEGATIVE_KINDS.index(kind)


def _padded(rows: Sequence[Sequence[int]]) -> IntArray:
    longest = max(map(len, rows), default=0)
    padded = np.full((len(rows), longest), PADDING, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def triple_cosines(vectors: FloatArray) -> NDArray[np.float64]:
    """Compute the cosines (N, 2) of the anchor with A and with B from embeddings (N, 3, D) of anchor, A and B."""
    anchors, pairs = np.split(vectors.astype(np.float64), [1], axis=1)
    lengths = np.linalg.norm(anchors, axis=-1) * np.linalg.norm(pairs, axis=-1)
    cosines: NDArray[np.float64] = (anchors * pairs).sum(-1) / np.maximum(lengths, 1e-12)
    return cosines


def example_of(triple: Triple) -> TrainingExample:
    """Convert a labeled triple to a training example: the closer candidate is the positive, the other the negative.

    >>> example_of(Triple(0, 1, 2, a_is_closer=False))
    TrainingExample(anchor=0, positive=2, negatives=(1,), kinds=('triple',), group=None, setting=None, near=())
    """
    if triple.a_is_closer is None:
        raise ValueError("a triple without a label can't be a training example")
    positive, negative = triple.a, triple.b
    if not triple.a_is_closer:
        positive, negative = negative, positive
    return TrainingExample(triple.anchor, positive, (negative,), ("triple",))


def triple_of(example: TrainingExample, stories: StoryTable) -> Triple | None:
    """Convert a training example to a labeled triple by its first negative of kind `triple`; None if it has none."""
    if "triple" not in example.kinds:
        return None
    a, b = example.positive, example.negatives[example.kinds.index("triple")]
    a_is_closer = a_comes_first(stories[example.anchor].source_text)
    if not a_is_closer:
        a, b = b, a
    return Triple(example.anchor, a, b, a_is_closer)


def a_comes_first(anchor: str) -> bool:
    """Decide by a hash of the anchor's text if the closer candidate is A, as for about half of all anchors."""
    return sha256(anchor.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


def composed(text: str) -> str:
    """Compose letters and their marks (Unicode's NFC), as every text that is read."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def normal_form(text: str) -> str:
    r"""Normalize the characters of a text for comparison: Unicode's NFC, and the ordinary space for other spaces.

    Ids, names of files and columns, and values of columns are compared in this form, stories in that of `normal_text`.

    >>> normal_form("Ma\u0308rchen\u00a07") == "M\u00e4rchen 7"
    True
    """
    return text if text.isascii() else _SPACE.sub(" ", composed(text))


def normal_text(text: str) -> str:
    """Normalize characters, case and white space of a text for comparison."""
    folded = normal_form(text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())  # folding decomposes some characters
