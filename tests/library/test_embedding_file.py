"""Files of embeddings written from Python: embeddings in the order of the stories, with the columns of their rows."""

import numpy as np
import pytest
from json_files import read_json_lines
from refusals import refused

import narrlit
from narrlit.data.rows import Layout, read_rows
from narrlit.library.embedding_file import embed_to_file

ROWS = [{"id": "a", "plot": "A king fell ill."}, {"id": "b", "plot": "A diver found a pearl."}]
PLOT = Layout("plot")


def test_vectors_and_columns_are_in_the_order_of_the_stories(make, tiny, tmp_path):
    encoder = narrlit.load(tiny())
    stories = make("s.jsonl", ROWS)
    written = embed_to_file(stories, tmp_path / "v.npy", encoder, layout=PLOT)
    expected = encoder.embed([row["plot"] for row in ROWS])

    assert abs(np.load(written.path) - expected).max() < 1e-6
    assert np.array_equal(written.embeddings, np.load(written.path))
    assert written.table()["id"].tolist() == ["a", "b"]
    assert str(written) == f"{tmp_path / 'v.npy'}: 2 embeddings of 32 dimensions"

    columns = [row.value for row in read_rows(tmp_path / "v.columns.csv").rows]
    assert columns == [{"row": "0", "id": "a"}, {"row": "1", "id": "b"}]

    embed_to_file(stories, tmp_path / "v.jsonl", encoder, layout=PLOT)
    lines = read_json_lines(tmp_path / "v.jsonl")
    assert [line["row"] for line in lines] == [0, 1]
    assert [line["plot"] for line in lines] == [row["plot"] for row in ROWS]
    assert np.allclose([line["embedding"] for line in lines], expected)


def test_columns_of_replaced_embeddings_are_removed(make, tiny, tmp_path):
    encoder = narrlit.load(tiny())
    embed_to_file(make("s.jsonl", ROWS), tmp_path / "v.npy", encoder, layout=PLOT)
    assert (tmp_path / "v.columns.csv").exists()

    stories = narrlit.read_stories(make("bare.jsonl", [{"text": "A king fell ill."}]))
    embed_to_file(stories, tmp_path / "v.npy", encoder)
    assert not (tmp_path / "v.columns.csv").exists()
    assert np.load(tmp_path / "v.npy").shape == (1, 32)


def test_what_cannot_be_written_is_refused_before_the_model_is_loaded(make, tmp_path):
    absent = narrlit.load("no-such-model")
    with refused("wrong_suffix", path="v.txt"):
        embed_to_file(make("s.jsonl", ROWS), tmp_path / "v.txt", absent, layout=PLOT)

    for column in ("row", "embedding"):
        stories = make("s.jsonl", [{"text": "A king fell ill.", column: 1}])
        with refused("reserved_output_column", name=column):
            embed_to_file(stories, tmp_path / "v.jsonl", absent)

    assert not [*tmp_path.glob("v.*")]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "xlsx", "parquet"])
def test_embeddings_are_read_back_and_embedded_again(make, tiny, tmp_path, suffix):
    encoder = narrlit.load(tiny())
    rows = [
        {"id": "a", "plot": "A king fell ill.", "year": 1890},
        {"id": "b", "plot": "A diver drowned.", "year": None},
    ]
    first = embed_to_file(make("s.jsonl", rows), tmp_path / f"v.{suffix}", encoder, layout=PLOT)
    again = embed_to_file(first.path, tmp_path / f"w.{suffix}", encoder, layout=PLOT)
    assert np.array_equal(first.embeddings, again.embeddings)
    columns = [list(read_rows(written.path).rows[0].value) for written in (first, again)]
    assert columns[0] == columns[1]
    assert first.table()["year"].tolist() == [1890, None]
    assert [row["row"] for row in again.rows] == [0, 1]
    assert narrlit.read_stories(first.path, layout=PLOT).metadata[0].keys() == {"year"}
