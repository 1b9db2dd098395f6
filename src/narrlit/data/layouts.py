"""Which fields hold which story: the layouts of files of triples and of training examples."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from narrlit.data.fields import RowError, id_of, label_of, mapping_of, text_of
from narrlit.data.reading import Parsed
from narrlit.data.records import KINDS, Example, Negative, Triple, example_of

LABEL = "text_a_is_closer"
TRIPLES_KNOWN = "anchor_text,text_a,text_b[,text_a_is_closer] or anchor_story,similar_story,dissimilar_story"
EXAMPLES_KNOWN = f"{TRIPLES_KNOWN} or anchor,positive[,negatives] or anchor,positive,neg_theme_1,neg_structure_1,..."

STORY_COLUMNS = ("text", "story")
"""Either holds a story; the first that is there."""

_ANCHORS = ("anchor", "anchor_text", "anchor_story")
_POSITIVES = ("positive", "positive_text", "similar_text", "similar_story")
# neg_theme_1, but also negative, negative_2 and neg_outcome, which say no number or no kind.
_NUMBERED = re.compile(rf"neg(?:ative)?(?:_([a-z][a-z_]*?))?_(\d+)|neg(?:ative)?(?:_({'|'.join(KINDS)}))?")


@dataclass(frozen=True, slots=True)
class TripleLayout:
    """The fields of a triple; without a label field, `a` is always the closer."""

    anchor: str
    a: str
    b: str
    label: str | None

    def parse(self, value: object) -> Parsed[Triple]:
        """A row's triple.

        Raises:
            RowError: if a text is missing, empty or not text, or the label is neither true nor false.
        """
        row = mapping_of(value)
        anchor, a, b = (text_of(row, name) for name in (self.anchor, self.a, self.b))
        label = label_of(row.get(self.label), self.label) if self.label else True
        return Triple(anchor, a, b, label), {self.anchor: anchor, self.a: a, self.b: b}


TRIPLE_LAYOUTS = (
    TripleLayout("anchor_text", "text_a", "text_b", LABEL),
    TripleLayout("anchor_story", "similar_story", "dissimilar_story", None),
)


@dataclass(frozen=True, slots=True)
class LabelledTriples:
    """Training examples from the rows of a file of triples."""

    triples: TripleLayout

    def parse(self, value: object) -> Parsed[Example]:
        """A row's example: the closer candidate is the positive.

        Raises:
            RowError: if the row has no triple or no label, or can't train.
        """
        row = mapping_of(value)
        triple, texts = self.triples.parse(row)
        if triple.a_is_closer is None:
            raise RowError("no label")
        example = example_of(triple)
        more = _listed(row.get("negatives")) + _numbered(row)
        texts["negatives"] = "\n".join(negative.text for negative in more)
        return _usable(replace(example, negatives=(*example.negatives, *more), group=id_of(row, "group"))), texts


@dataclass(frozen=True, slots=True)
class Anchored:
    """Training examples with a named positive, and negatives in a list, in numbered fields, or in both."""

    anchor: str
    positive: str

    def parse(self, value: object) -> Parsed[Example]:
        """A row's example.

        Raises:
            RowError: if a text can't be used, a kind is unknown, or the example can't train.
        """
        row = mapping_of(value)
        anchor, positive = text_of(row, self.anchor), text_of(row, self.positive)
        negatives = _listed(row.get("negatives")) + _numbered(row)
        # One name for all the negatives: mojibake among them is counted by row.
        texts = {self.anchor: anchor, self.positive: positive, "negatives": "\n".join(n.text for n in negatives)}
        return _usable(Example(anchor, positive, tuple(negatives), id_of(row, "group"))), texts


ExampleLayout = LabelledTriples | Anchored


def triple_layout(columns: Collection[str]) -> TripleLayout | None:
    """The layout of a row of a file of triples, by its keys; None if there is none for them."""
    for layout in TRIPLE_LAYOUTS:
        if {layout.anchor, layout.a, layout.b} <= set(columns):
            return layout
    return None


def example_layout(columns: Collection[str]) -> ExampleLayout | None:
    """The layout of a row of a file of examples, by its keys; None if there is none for them."""
    triples = triple_layout(columns)
    if triples is not None:
        return LabelledTriples(triples)
    anchor = next((name for name in _ANCHORS if name in columns), None)
    positive = next((name for name in _POSITIVES if name in columns), None)
    return Anchored(anchor, positive) if anchor and positive else None


def is_numbered_negative(name: str) -> bool:
    """Whether a field of this name holds a negative by itself: neg_theme_1, negative, neg_outcome."""
    return _NUMBERED.fullmatch(name) is not None


def example_fault(example: Example) -> str | None:
    """Why an example can't train, None if it can: no story may stand on both sides of a comparison."""
    negatives = {negative.text for negative in example.negatives}
    if example.anchor == example.positive:
        return "anchor is its positive"
    if example.anchor in negatives:
        return "anchor among its negatives"
    if example.positive in negatives:
        return "positive among its negatives"
    return None


def _usable(example: Example) -> Example:
    reason = example_fault(example)
    if reason is not None:
        raise RowError(reason)
    return example


def _listed(value: object) -> list[Negative]:
    if value is None or value == "":
        return []
    if not isinstance(value, list):
        raise RowError("negatives is not a list")
    return [_negative(item) for item in value]


def _negative(item: object) -> Negative:
    # Named "negative" for the reason: "empty text" would leave open which of the row's texts it is.
    text = item.get("text") if isinstance(item, Mapping) else item
    kind = _stated_kind(item) if isinstance(item, Mapping) else None
    return Negative(text_of({"negative": text}, "negative"), kind)


def _stated_kind(item: Mapping[str, object]) -> str | None:
    """The kind under its name or under `dimension`, which older files write."""
    kinds = {kind for kind in (_kind(item.get("kind")), _kind(item.get("dimension"))) if kind is not None}
    if len(kinds) > 1:
        raise RowError("kind and dimension differ")
    return kinds.pop() if kinds else None


def _numbered(row: Mapping[str, object]) -> list[Negative]:
    """The negatives of numbered fields, in the order of KINDS and of their numbers, unknown kinds last."""
    found: list[tuple[int, int, Negative]] = []
    for name, value in row.items():
        match = _NUMBERED.fullmatch(name)
        # None too is padding here: a row with fewer negatives than its file has fields is a sound row.
        if match is None or value is None or (isinstance(value, str) and not value.strip()):
            continue
        kind = _kind(match[1] or match[3])
        rank = len(KINDS) if kind is None else KINDS.index(kind)
        found.append((rank, int(match[2] or 0), Negative(text_of(row, name), kind)))
    return [negative for _, _, negative in sorted(found, key=lambda entry: entry[:2])]


def _kind(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or value not in KINDS:
        raise RowError("unknown kind")
    return value
