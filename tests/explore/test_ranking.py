"""Ranking of stories for a query, over a storage that holds vectors alone."""

import numpy as np
import pandas as pd
import pytest

from narrlit.explore.ranking import Query, SearchOptions, nearest, result_table


class Vectors:
    """Stories in a list, ordered by cosine as LanceDB does; counts how many were looked at."""

    def __init__(self, *angles):
        self.rows = []
        for number, angle in enumerate(angles):
            vector = np.array([np.cos(angle), np.sin(angle)], np.float32)
            self.rows.append({"id": f"s{number}", "title": "", "text": f"text {number}", "vector": vector, "year": 1})
        self.limits, self.words = [], None

    def require_stories(self):
        pass

    def check_condition(self, where):
        raise AssertionError("no condition was given")

    def candidates(self, vector, limit, words, where):
        self.limits.append(limit)
        self.words = words
        ordered = sorted(self.rows, key=lambda row: -float(row["vector"] @ vector))[:limit]
        return pd.DataFrame(ordered, columns=["id", "title", "text", "vector", "year"])


def query(angle=0.0, **left_out):
    return Query("the query", np.array([np.cos(angle), np.sin(angle)], np.float32), **left_out)


def ids(rows):
    return [int(id[1:]) for id in rows["id"]]


def test_the_nearest_come_first_with_their_cosines():
    rows = nearest(Vectors(0.9, 0.1, 0.5), query(), SearchOptions(k=2))
    assert ids(rows) == [1, 2]
    assert rows["similarity"].tolist() == pytest.approx(np.cos([0.1, 0.5]), abs=1e-6)


def test_the_query_itself_is_left_out_and_another_comes_in_its_place():
    storage = Vectors(0.0, 0.1, 0.5)
    assert ids(nearest(storage, query(column="id", value="s0"), SearchOptions(k=2))) == [1, 2]
    assert ids(nearest(storage, query(column="text", value="text 1"), SearchOptions(k=2))) == [0, 2]
    assert ids(nearest(storage, query(), SearchOptions(k=5))) == [0, 1, 2]


def test_copies_are_left_out_and_more_are_looked_at():
    """Of twelve stories ten are copies of the first: two searches are needed for two that differ."""
    storage = Vectors(*[0.1] * 10, 0.8, 1.5)
    rows = nearest(storage, query(), SearchOptions(k=2, distinct=0.99))
    assert ids(rows) == [0, 10]
    assert storage.limits == [3, 12]
    itself = nearest(storage, query(0.1, column="id", value="s0"), SearchOptions(k=2, distinct=0.99))
    assert ids(itself) == [10, 11]  # the other nine are copies of the query's own story
    assert storage.limits[2:] == [3, 12]


def test_words_count_in_a_hybrid_search_alone():
    storage = Vectors(0.1)
    nearest(storage, query(), SearchOptions())
    assert storage.words is None
    nearest(storage, query(), SearchOptions(hybrid=True))
    assert storage.words == "the query"


def test_no_story_is_left():
    rows = nearest(Vectors(0.1), query(column="id", value="s0"), SearchOptions(distinct=0.5))
    assert len(result_table(rows, [])) == 0


def test_results_have_ranks_snippets_and_metadata():
    rows = nearest(Vectors(0.9, 0.1), query(), SearchOptions())
    table = result_table(rows, ["near", "far"])
    assert table.columns.tolist() == ["rank", "id", "title", "similarity", "snippet", "year"]
    assert table[["rank", "id", "snippet"]].to_numpy().tolist() == [[1, "s1", "near"], [2, "s0", "far"]]
