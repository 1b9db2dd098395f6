"""Maps of collections, which are computed in the background and kept until the collection changes."""

from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from narrlit.explore.mapping import map_stories
from narrlit.explore.story_map import StoryMap, in_groups, plane_points
from narrlit.serving.collection_models import MapAnswer, MapGroup, MapPoint, MapTree
from narrlit.serving.shelf import ServedCollection, Snapshot
from narrlit.serving.workers import Workers

DIGITS = 4
"""Digits of similarities in answers."""


@dataclass(frozen=True)
class MapKey:
    """Key of a cached map: the collection, its version, and the number of groups."""

    collection: str
    version: int
    groups: int | None


class Maps:
    """Maps that were computed or are being computed."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._maps: dict[MapKey, Future[MapAnswer]] = {}

    def get(self, collection: ServedCollection, snapshot: Snapshot, groups: int | None) -> "Future[MapAnswer]":
        """Return the map of a collection's stories, whose computation begins at the first call."""
        key = MapKey(collection.name, snapshot.version, groups)
        if key not in self._maps:
            for other in list(self._maps):
                if other.collection == key.collection and other.version != key.version:
                    self._maps.pop(other).cancel()
            self._maps[key] = self._workers.submit(map_of, snapshot, groups)
        return self._maps[key]

    def forget(self, key_of_failed: "Future[MapAnswer]") -> None:
        """Forget a map that could not be computed, so that the next request tries again."""
        self._maps = {key: future for key, future in self._maps.items() if future is not key_of_failed}


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
    tree, heat = None, None
    if story_map.arrangement.tree is not None:
        tree, heat = _tree(story_map)
    return MapAnswer(points=_points(snapshot, story_map), groups=_groups(story_map), tree=tree, similarities=heat)


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


def _tree(story_map: StoryMap) -> tuple[MapTree, list[list[float]]]:
    """Return the dendrogram, and the similarities in the order of its leaves."""
    tree = story_map.arrangement.tree
    if tree is None:
        raise ValueError("a map in a plane has no tree")
    merges = [(int(a), int(b), height, int(count)) for a, b, height, count in tree.linkage.tolist()]
    order = leaves_list(tree.linkage)
    ids = story_map.frame["id"].tolist()
    heat = np.round(tree.similarities[np.ix_(order, order)].astype(float), DIGITS)
    return MapTree(merges=merges, order=[ids[row] for row in order]), heat.tolist()
