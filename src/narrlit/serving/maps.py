"""Maps of collections, as the server answers them."""

from narrlit.explore.map_answer import MapAnswer, map_answer
from narrlit.explore.mapping import map_stories
from narrlit.explore.story_map import in_groups
from narrlit.serving.shelf import Snapshot


def map_of(snapshot: Snapshot, groups: int | None) -> MapAnswer:
    """Draw the map of a collection's stories.

    Args:
        snapshot: the stories, three or more.
        groups: number of groups; None: chosen by the map.

    Raises:
        DataError: if there are fewer than three stories.
        OptionError: if the number of groups is out of range.
    """
    drawn = map_stories(snapshot.stories)
    story_map = drawn.arranged
    if groups is not None:
        story_map = in_groups(story_map, snapshot.stories.similarities, groups)
    return map_answer(story_map, [snapshot.metadata(row) for row in range(len(snapshot))], drawn.facts)


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
