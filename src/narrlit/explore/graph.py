"""Stories and their similarities as a network: GraphML for Gephi and other programs, a table for Palladio."""

from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import pandas as pd

from narrlit.data.writers import write_table
from narrlit.errors import printable
from narrlit.files import atomic_path


def write_graph(path: Path, stories: pd.DataFrame, pairs: pd.DataFrame, groups: pd.DataFrame | None = None) -> None:
    """Write stories and their pairs as GraphML: nodes with title and metadata, edges with their similarity.

    Args:
        path: file to write.
        stories: id, title, text, then the metadata columns; the texts are left out.
        pairs: id_a, id_b and similarity, which is also the weight of the edge.
        groups: id and group of the stories that are in one, which is 0 for the others; None: nodes have no group.
    """
    graph = nx.Graph()
    group_of = {} if groups is None else dict(zip(groups["id"], groups["group"], strict=True))
    for story in stories.drop(columns="text").to_dict("records"):
        story["label"] = story["title"] or story["id"]
        if groups is not None:
            story["group"] = group_of.get(story["id"], 0)
        graph.add_node(printable(story["id"]), **_graphml_values(story))
    for a, b, similarity in pairs[["id_a", "id_b", "similarity"]].itertuples(index=False):
        graph.add_edge(printable(a), printable(b), weight=similarity, similarity=similarity)
    with atomic_path(path) as temporary:
        nx.write_graphml(graph, temporary)


LATITUDES, LONGITUDES = ("lat", "latitude", "breite"), ("lon", "lng", "long", "longitude", "länge")
"""Columns of coordinates, in any case."""


def write_palladio(path: Path, stories: pd.DataFrame, pairs: pd.DataFrame) -> None:
    """Write a table for Palladio (https://hdlab.stanford.edu/palladio): one row for each story and near one.

    In its graph, `Story` is the source and `Similar story` the target; facets and timeline have the metadata columns of
    the story. Latitude and longitude become the column `Coordinates` of its map. Titles that several stories have are
    followed by the id.

    Args:
        path: file to write, a CSV.
        stories: id, title, text, then the metadata columns; the texts are left out.
        pairs: id_a, id_b and similarity; each is written in both directions.
    """
    titles = stories["title"].where(stories["title"] != "", stories["id"])
    repeated = titles.duplicated(keep=False)
    names = titles.where(~repeated, titles + " (" + stories["id"] + ")")
    name_of = dict(zip(stories["id"], names, strict=True))
    metadata = {
        story["id"]: _with_coordinates(story) for story in stories.drop(columns=["title", "text"]).to_dict("records")
    }
    both = pd.concat([pairs, pairs.rename(columns={"id_a": "id_b", "id_b": "id_a"})])
    rows: list[dict[str, object]] = []
    for a, b, similarity in both[["id_a", "id_b", "similarity"]].itertuples(index=False):
        link = {"Story": name_of[a], "Similar story": name_of[b], "Similarity": round(similarity, 4)}
        rows.append({**link, **metadata[a]})
    rows.sort(key=lambda row: str(row["Story"]))
    write_table(path, rows)


def _with_coordinates(story: Mapping[str, object]) -> dict[str, object]:
    """Return the metadata of a story, with latitude and longitude in one column."""
    places = {str(name).casefold(): value for name, value in story.items() if value is not None}
    latitude = next((places[name] for name in LATITUDES if name in places), None)
    longitude = next((places[name] for name in LONGITUDES if name in places), None)
    values = dict(story)
    if latitude is not None and longitude is not None:
        values["Coordinates"] = f"{latitude},{longitude}"
    return values


def _graphml_values(attributes: Mapping[str, object]) -> dict[str, int | float | str]:
    """Convert a node's attributes: XML has no control characters, GraphML neither lists nor missing values."""
    values: dict[str, int | float | str] = {}
    for name, value in attributes.items():
        if value is not None:
            if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63):
                values[printable(name)] = value
            else:
                values[printable(name)] = printable(value)
    return values
