"""Similar pairs, groups of retellings and their threshold."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from measured import similarities_of
from refusals import refused

from narrlit.explore.graph import write_graph
from narrlit.explore.pairs import chance_threshold, retelling_groups, similar_pairs
from narrlit.library.story_frame import plain


def collection(vectors, measure="cosine", **columns):
    """Stories s0, s1, ... with these vectors, made unit vectors."""
    vectors = np.asarray(vectors, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"s{row}" for row in range(len(vectors))]
    frame = plain(pd.DataFrame({"id": ids, "title": [f"Title {i}" for i in ids], "text": "a story", **columns}))
    return SimpleNamespace(frame=frame, similarities=similarities_of(vectors, measure=measure))


def retold(works, versions, noise, seed=0, dimension=64):
    """Vectors of versions of unrelated works."""
    rng = np.random.default_rng(seed)
    centers = np.repeat(rng.normal(size=(works, dimension)), versions, axis=0)
    return centers + noise * rng.normal(size=centers.shape)


def test_pairs_come_once_most_similar_first_with_mutual_ones_marked():
    found = similar_pairs(collection([[1, 0], [1, 0.1], [1, 0.5], [0, 1]]), k=1)
    assert found[["id_a", "id_b", "mutual"]].to_numpy().tolist() == [
        ["s0", "s1", True],
        ["s1", "s2", False],
        ["s2", "s3", False],
    ]
    assert found["similarity"].is_monotonic_decreasing
    assert found.loc[1, "similarity"] == pytest.approx(1.05 / np.sqrt(1.01 * 1.25), abs=1e-6)
    assert found.loc[0, "title_b"] == "Title s1"


def test_one_story_is_refused():
    with refused("no_pair"):
        similar_pairs(collection([[1, 0]]))


@pytest.mark.parametrize(("works", "singles"), [(8, 0), (8, 8), (300, 700)])
def test_groups_are_the_versions_of_a_work(works, singles):
    vectors = np.concatenate([retold(works, 3, 0.4), retold(singles, 1, 0, seed=1)])
    groups, threshold, reason = retelling_groups(collection(vectors))
    assert groups.groupby("group")["id"].agg(list).tolist() == [
        [f"s{3 * work + version}" for version in range(3)] for work in range(works)
    ]
    assert groups["similarity"].min() > threshold
    assert f"Threshold {threshold:.3f}: of {len(vectors) * (len(vectors) - 1) // 2:,} pairs" in reason


def test_a_collection_without_retellings_has_hardly_a_group():
    assert len(retelling_groups(collection(retold(1000, 1, 0)))[0]) <= 4


def test_a_given_threshold_is_used_and_larger_groups_come_first():
    stories = collection([[1, 0, 0], [1, 0.1, 0], [0, 1, 0], [0, 1, 0.2], [0, 1, 0.1], [0, 0, 1]])
    groups, _, reason = retelling_groups(stories, threshold=0.9)
    assert groups["id"].tolist() == ["s2", "s3", "s4", "s0", "s1"]
    assert groups["group"].tolist() == [1, 1, 1, 2, 2]
    assert reason == "Threshold 0.9, as requested."
    assert retelling_groups(stories, threshold=1.0)[0].empty


def test_only_mutual_neighbors_join_a_group():
    """s0 to s2 are each other's nearest; s3 is close to them, but not among their nearest."""
    stories = collection([[1, 0], [1, 0.01], [1, 0.02], [1, 0.3]])
    assert retelling_groups(stories, 0.9, similar_pairs(stories, k=2))[0]["id"].tolist() == ["s0", "s1", "s2"]


def test_the_threshold_rises_with_the_number_of_pairs():
    similarities = collection(retold(1500, 1, 0)).similarities
    few, many = (chance_threshold(similarities.take(np.arange(n)))[0] for n in (40, 1500))
    assert 0.2 < few < many < 0.9


@pytest.mark.parametrize("measure", ["cosine", "csls"])
def test_all_copies_of_a_text_are_one_group_even_if_all_stories_are_similar(measure):
    alike = retold(40, 1, 0) * 0.2 + 1
    copies = collection(np.concatenate([alike, alike[:1].repeat(30, axis=0)]), measure)
    groups, _, _ = retelling_groups(copies)
    assert groups["id"].tolist()[:31] == ["s0", *(f"s{row}" for row in range(40, 70))]
    assert (groups["group"] == 1).sum() == 31


def test_a_graph_contains_titles_metadata_groups_and_similarities(tmp_path):
    stories = collection([[1, 0], [1, 0.1], [0, 1]], atu=["510A", None, "333\x00"], year=[1697, 860, 1812])
    found = similar_pairs(stories, k=1)
    write_graph(tmp_path / "g.graphml", stories.frame, found, retelling_groups(stories, 0.9, found)[0])
    graph = nx.read_graphml(tmp_path / "g.graphml")

    assert graph.nodes["s0"] == {
        "id": "s0",
        "title": "Title s0",
        "label": "Title s0",
        "atu": "510A",
        "year": 1697,
        "group": 1,
    }
    assert graph.nodes["s2"]["atu"] == "333"
    assert graph.nodes["s2"]["group"] == 0
    assert "atu" not in graph.nodes["s1"]
    assert graph.edges["s0", "s1"]["weight"] == pytest.approx(1 / np.sqrt(1.01), abs=1e-6)
    assert len(graph.edges) == len(found) == 2
