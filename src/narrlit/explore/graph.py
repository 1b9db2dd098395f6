"""Stories and their similarities as a network (GraphML) for Gephi and other programs."""

from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import pandas as pd

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
