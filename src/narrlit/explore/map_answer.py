"""Map of a collection as the page draws it, in the server's answer and in map.html."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, PlainSerializer
from scipy.cluster.hierarchy import leaves_list

from narrlit.data.writers import is_exact
from narrlit.errors import printable
from narrlit.explore.story_map import StoryMap, Tree, plane_points

DIGITS = 4
"""Digits of similarities."""
BEGINNING = 160
"""Characters of a text that are shown where its point is pointed at."""


def _exact(value: str | int | float | bool | None) -> str | int | float | bool | None:
    """Return a value for JSON; integers are text if they are other numbers to a program in JavaScript."""
    return value if not isinstance(value, int) or is_exact(value) else str(value)


Value = Annotated[str | int | float | bool | None, PlainSerializer(_exact, when_used="json")]
Metadata = dict[str, Value]


class MapPoint(BaseModel):
    """Story in the plane; group 0 is no group, and the beginning is empty if the title is the beginning."""

    id: str
    title: str
    beginning: str
    x: float
    y: float
    group: int
    metadata: Metadata


class MapGroup(BaseModel):
    """Group of stories, with words that more of its stories use than others do, and its most central story."""

    number: int
    label: str
    count: int
    central: str


class MapTree(BaseModel):
    """Dendrogram of N stories.

    Attributes:
        merges: N - 1 joins (branch, branch, height, number of stories) as SciPy numbers them.
        order: ids of the stories at the leaves.
        top: similarity at height 0.
    """

    merges: list[tuple[int, int, float, int]]
    order: list[str]
    top: float


class MapAnswer(BaseModel):
    """Map of a collection; of up to 300 stories with a tree, and similarities in its order."""

    points: list[MapPoint]
    groups: list[MapGroup]
    tree: MapTree | None
    similarities: list[list[float]] | None
    facts: dict[str, str]


def map_answer(story_map: StoryMap, metadata: Sequence[Metadata], facts: Mapping[str, str]) -> MapAnswer:
    """Describe a map for the page.

    Args:
        story_map: map of N stories.
        metadata: N values of the metadata columns.
        facts: what the map was made from: model, measure, words read, languages, accuracy, hubs.
    """
    ids = story_map.frame["id"].tolist()
    answer = MapAnswer(
        points=_points(story_map, metadata),
        groups=_groups(story_map, ids),
        tree=None,
        similarities=None,
        facts={**facts, "method": story_map.arrangement.method},
    )
    tree = story_map.arrangement.tree
    if tree is not None:
        order = leaves_list(tree.linkage)
        answer.tree = MapTree(merges=_merges(tree), order=[ids[row] for row in order], top=tree.top)
        ordered = tree.similarities[np.ix_(order, order)].astype(float)
        answer.similarities = np.round(ordered, DIGITS).tolist()
    return answer


def _points(story_map: StoryMap, metadata: Sequence[Metadata]) -> list[MapPoint]:
    frame = story_map.frame
    points = []
    for row, (x, y) in enumerate(plane_points(story_map.arrangement).tolist()):
        has_title = bool(frame["title"].iat[row])
        point = MapPoint(
            id=frame["id"].iat[row],
            title=story_map.labels[row],
            beginning=printable(frame["text"].iat[row], BEGINNING) if has_title else "",
            x=x,
            y=y,
            group=int(story_map.groups[row]) + 1,
            metadata=metadata[row],
        )
        points.append(point)
    return points


def _groups(story_map: StoryMap, ids: Sequence[str]) -> list[MapGroup]:
    groups = []
    for number, (label, central) in enumerate(zip(story_map.names, story_map.central, strict=True)):
        count = int((story_map.groups == number).sum())
        groups.append(MapGroup(number=number + 1, label=label, count=count, central=ids[central]))
    return groups


def _merges(tree: Tree) -> list[tuple[int, int, float, int]]:
    """Return the joins of a dendrogram: two branches, their height, and the number of stories."""
    merges = []
    for left, right, height, count in tree.linkage.tolist():
        merges.append((int(left), int(right), height, int(count)))
    return merges
