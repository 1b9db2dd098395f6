"""Number formats of an index's vectors: what is stored, which stories are found, and which vectors are read."""

import lancedb
import numpy as np
import pytest
from pandas.testing import assert_frame_equal
from refusals import refused
from tiny_models import world_texts

from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import unit_vectors
from narrlit.library import index_storage, ranking
from narrlit.library.index import Index
from narrlit.library.index_record import IndexRecord
from narrlit.library.index_storage import EmbeddedStories, IndexStorage
from narrlit.library.options import SearchOptions
from narrlit.library.ranking import Query
from narrlit.library.stored_snapshot import STORED
from narrlit.library.story_frame import DIGEST, content_digests, stories_of, story_frame
from narrlit.measures.representations import Contents
from narrlit.models.coverage import Coverage

COUNT, DIMENSION, MEASURES = 300, 256, ("csls", "centered", "cosine")


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Indexes of more than 100 stories count as large, and have 60 candidates."""
    for module in (ranking, index_storage):
        monkeypatch.setattr(module, "COMPARED_ALL", 100)
    monkeypatch.setattr(ranking, "CANDIDATES", 60)


def vectors_of(count, seed=0):
    """Unit vectors around ten centers, the same for each seed, with a common direction, as embeddings have."""
    centers = np.random.default_rng(9).normal(size=(10, DIMENSION)) + 1
    generator = np.random.default_rng(seed)
    noise = generator.normal(scale=0.3, size=(count, DIMENSION))
    return unit_vectors((centers[np.arange(count) % 10] + noise).astype(np.float32))


def write(storage, vectors, start=0):
    rows = stories_of([f"Story {start + number}" for number in range(len(vectors))])
    frame = story_frame(rows).assign(even=[number % 2 == 0 for number in range(len(vectors))])
    frame["id"] = [str(start + number) for number in range(len(vectors))]
    frame[DIGEST] = content_digests(frame, list(rows))
    storage.commit(storage.columns(frame), EmbeddedStories(vectors, None, Coverage()), replaces=False)
    storage.finish(changed=True)


@pytest.fixture
def build(tiny, tmp_path):
    def make(vectors):
        encoder = load(tiny())
        path = tmp_path / vectors
        frame = story_frame(stories_of(["Story 0"])).assign(even=True)
        frame[DIGEST] = "0" * 64
        record = IndexRecord.of(encoder, vectors).model_copy(update={"passages": False, "dimension": DIMENSION})
        IndexStorage.create(path, frame, record)
        write(IndexStorage(path), vectors_of(COUNT))
        return Index(path)

    return make


def stored(index):
    return lancedb.connect(index.path).open_table("stories")


def nearest(index, measure, vector):
    options = SearchOptions(k=5, measure=measure)
    rows, similarities = (
        index.collection().measured(options.measure).nearest(Query(Contents(vector[None], ["query"])), options)
    )
    return rows.tolist(), similarities


@pytest.mark.parametrize(
    ("vectors", "stored_as", "kinds"),
    [("float32", "float", []), ("float16", "halffloat", []), ("int8", "halffloat", ["IvfSq"]),
     ("binary", "halffloat", ["IvfRq"])],
)  # fmt: skip
def test_vectors_are_stored_in_their_format(build, vectors, stored_as, kinds):
    table = stored(build(vectors))

    assert str(table.schema.field("vector").type.value_type) == stored_as
    assert [index.index_type for index in table.list_indices() if "vector" in index.columns] == kinds


@pytest.mark.parametrize("vectors", ["float16", "int8", "binary"])
def test_a_search_finds_what_a_search_of_float32_finds(build, vectors):
    exact, other = build("float32"), build(vectors)
    queries = vectors_of(8, seed=1)
    for measure in MEASURES:
        shares = []
        for query in queries:
            rows, similarities = nearest(exact, measure, query)
            found, approximate = nearest(other, measure, query)
            shares.append(len(set(rows) & set(found)) / len(rows))
            if measure != "csls":  # the hubness of a query is computed on its candidates
                both = np.isin(rows, found), np.isin(found, rows)
                # Half precision rounds each number by at most 0.0005 of its value.
                np.testing.assert_allclose(np.sort(similarities[both[0]]), np.sort(approximate[both[1]]), atol=2e-3)

        assert np.mean(shares) > 0.9, measure


@pytest.mark.parametrize("vectors", ["int8", "binary"])
def test_only_the_vectors_of_candidates_are_read(build, vectors):
    index = build(vectors)
    index.like("7", measure="csls").table()  # fitted with all vectors
    again = Index(index.path)
    table = again.like("7", k=3, measure="csls", distinct=0.999).table()

    assert len(table) == 3
    assert "7" not in set(table["id"])
    assert "vectors" not in again._storage.snapshot().__dict__


@pytest.mark.parametrize("vectors", ["int8", "binary"])
def test_conditions_apply_before_candidates_are_chosen(build, vectors):
    index = build(vectors)
    table = index.like("7", k=10, where="even AND CAST(id AS INT) >= 280", measure="cosine").table()

    assert sorted(table["id"]) == sorted(map(str, range(280, 300, 2)))


@pytest.mark.parametrize("vectors", ["int8", "binary"])
def test_new_stories_are_found_and_a_doubled_index_is_quantized_anew(build, vectors):
    index = build(vectors)
    storage = IndexStorage(index.path)
    new = vectors_of(11, seed=2)
    write(storage, new, start=COUNT)

    rows, _ = nearest(Index(index.path), "cosine", new[3])
    assert Index(index.path)._storage.snapshot().ids[rows[0]] == str(COUNT + 3)
    assert storage.record.quantized == COUNT

    write(storage, vectors_of(COUNT, seed=3), start=2 * COUNT)
    assert IndexStorage(index.path).record.quantized == 2 * COUNT + 11
    rows, _ = nearest(Index(index.path), "cosine", new[3])
    assert Index(index.path)._storage.snapshot().ids[rows[0]] == str(COUNT + 3)


def test_a_large_index_has_no_copy_for_fast_starts_until_it_shrinks(build):
    index = build("int8")
    index._storage.store_snapshot()
    assert not (index.path / STORED).exists()
    assert Index(index.path)._storage.snapshot().has_vector_index

    index.delete([str(number) for number in range(90, COUNT)])
    expected = index.like("7", k=5, measure="cosine").table()
    index._storage.store_snapshot()
    with_copy = Index(index.path)
    assert_frame_equal(with_copy.like("7", k=5, measure="cosine").table(), expected)
    assert "_table" not in vars(with_copy._storage)


def test_a_small_index_is_compared_as_a_whole(tiny, tmp_path):
    stories = world_texts()[:12]
    index = Index.create(tmp_path / "i", stories, tiny(), vectors="binary")

    assert not stored(index).list_indices()
    assert index.search(stories[4], k=1).table()["id"].tolist() == ["5"]


def test_bits_of_a_dimension_that_lancedb_can_not_quantize_are_refused_before_embedding(tiny, tmp_path):
    encoder = load(tiny(), postprocess="truncate:12")

    with refused("binary_dimension", multiple=8):
        Index.create(tmp_path / "i", ["A fox ran."], encoder, vectors="binary")
    assert not (tmp_path / "i").exists()
    assert Index.create(tmp_path / "i", ["A fox ran."], encoder, vectors="int8").about["dimension"] == 12


def test_an_index_keeps_its_format(tiny, tmp_path):
    Index.create(tmp_path / "i", ["A fox ran."], tiny(), vectors="int8")
    Index.create(tmp_path / "i", ["A fox ran.", "A hen ran."], tiny())
    index = Index.create(tmp_path / "i", ["A fox ran.", "A hen ran.", "A dog ran."], tiny(), vectors="int8")

    assert len(index) == 3
    assert index.about["vectors"] == "int8"
    with refused("format_of_index", path="i", recorded="int8", vectors="float16"):
        Index.create(tmp_path / "i", ["A cat ran."], tiny(), vectors="float16")
