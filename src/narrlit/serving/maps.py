"""Maps of collections, as the server answers them."""

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from narrlit.explore.mapping import map_stories
from narrlit.explore.story_map import StoryMap, Tree, in_groups, plane_points
from narrlit.serving.collection_models import MapAnswer, MapGroup, MapPoint, MapTree
from narrlit.serving.shelf import Snapshot

DIGITS = 4
"""Digits of similarities in answers."""


def map_of(snapshot: Snapshot, groups: int | None) -> MapAnswer:
    """Draw the map of a collection's stories.

    Args:
        snapshot: the stories, three or more.
        groups: number of groups; None: chosen by the map.

    Raises:
        DataError: if there are fewer than three stories.
        OptionError: if the number of groups is out of range.
    """
    similarities = snapshot.stories.similarities
    story_map = map_stories(snapshot.stories).arranged
    if groups is not None:
        story_map = in_groups(story_map, similarities, groups)
    answer = MapAnswer(points=_points(snapshot, story_map), groups=_groups(story_map), tree=None, similarities=None)
    tree = story_map.arrangement.tree
    if tree is not None:
        order = leaves_list(tree.linkage)
        ids = story_map.frame["id"].iloc[order].tolist()
        answer.tree = MapTree(merges=_merges(tree), order=ids)
        ordered = tree.similarities[np.ix_(order, order)].astype(float)
        answer.similarities = np.round(ordered, DIGITS).tolist()
    return answer


def with_metadata(answer: MapAnswer, snapshot: Snapshot) -> MapAnswer:
    """Return a map with the present titles and metadata of its stories, which may have changed since it was drawn."""
    points = []
    for point in answer.points:
        row = snapshot.row_of(point.id)
        present: dict[str, object] = {"metadata": snapshot.metadata(row)}
        if row in snapshot.edited.get("title", {}):
            present["title"] = snapshot.title(row)
        points.append(point.model_copy(update=present))
    return answer.model_copy(update={"points": points})


def _points(snapshot: Snapshot, story_map: StoryMap) -> list[MapPoint]:
    points = []
    ids = story_map.frame["id"].tolist()
    for row, (x, y) in enumerate(plane_points(story_map.arrangement).tolist()):
        point = MapPoint(
            id=ids[row],
            title=story_map.labels[row],
            x=x,
            y=y,
            group=int(story_map.groups[row]) + 1,
            metadata=snapshot.metadata(row),
        )
        points.append(point)
    return points


def _groups(story_map: StoryMap) -> list[MapGroup]:
    groups = []
    for number, label in enumerate(story_map.names):
        count = int((story_map.groups == number).sum())
        groups.append(MapGroup(number=number + 1, label=label, count=count))
    return groups


def _merges(tree: Tree) -> list[tuple[int, int, float, int]]:
    """Return the joins of a dendrogram: two branches, their height, and the number of stories."""
    merges = []
    for left, right, height, count in tree.linkage.tolist():
        merges.append((int(left), int(right), height, int(count)))
    return merges
