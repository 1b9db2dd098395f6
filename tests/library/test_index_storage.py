"""Storage of an index: its table and record, without a model."""

import json

import numpy as np
import pandas as pd
import pytest
from json_files import read_json
from refusals import refused

from narrlit.data.schema import Story, Views
from narrlit.encoding.story_encoder import Passages
from narrlit.library import index_storage
from narrlit.library.conditions import check_condition, column_list, quoted
from narrlit.library.index_record import FORMAT, IndexRecord, IndexSettings
from narrlit.library.index_storage import EmbeddedStories, IndexStorage
from narrlit.library.options import index_at
from narrlit.library.story_frame import content_digests
from narrlit.models.coverage import Coverage

PASSAGES = [
    Passages(["A fox", "ran."], np.array([[1, 0], [0.6, 0.8]], np.float32)),
    Passages(["Rain."], np.array([[0, 1]], np.float32)),
]
SETTINGS = IndexSettings(
    model="m", files=None, max_length=64, long="windows", views=False, fusion=None, pseudonyms=None
)


@pytest.fixture
def frame():
    rows = [
        {"id": "a", "title": "", "text": "A fox ran.", "year": 1},
        {"id": "b", "title": "B", "text": "Rain.", "year": 2},
    ]
    result = pd.DataFrame(rows)
    result["content_sha256"] = content_digests(result, [Story("a", "A fox ran."), Story("b", "Rain.")])
    return result


@pytest.fixture
def storage(frame, tmp_path):
    record = IndexRecord(format=FORMAT, model_path="m", settings=SETTINGS, dimension=2, passages=True)
    IndexStorage.create(tmp_path / "i", frame, record)
    storage = IndexStorage(tmp_path / "i")
    storage.set_languages({"en": 2})
    embedded = EmbeddedStories(np.eye(2, dtype=np.float32), PASSAGES, Coverage(10, 9.0, 2, 1, 0.5))
    storage.commit(storage.columns(frame), embedded)
    return storage


def test_stories_and_record_remain_when_it_is_opened_again(storage, frame):
    again = IndexStorage(storage.path)
    assert index_at(storage.path)
    assert len(again) == 2
    assert "a" in again
    assert "c" not in again

    snapshot = again.snapshot()
    stories = snapshot.frame()
    assert stories["text"].tolist() == frame["text"].tolist() == snapshot.texts()
    assert stories.columns.tolist() == ["id", "title", "text", "year"]
    assert snapshot.vectors.tolist() == [[1, 0], [0, 1]]
    assert again.record == storage.record
    assert again.coverage == Coverage(10, 9.0, 2, 1, 0.5)
    assert again.record.languages == {"en": 2}
    assert again.digests() == dict(zip(frame["id"], frame["content_sha256"], strict=True))

    written = read_json(storage.path / "index.json")
    assert written == again.record.as_dict()
    assert "precision" not in written["settings"]  # it was never set
    assert column_list(snapshot.table) == "columns: id (string), title (string), text (string), year (int64)"


def test_a_snapshot_has_rows_in_any_order_and_stays_as_it_is(storage):
    snapshot = storage.snapshot()
    assert storage.snapshot() is snapshot

    order = np.array([1, 0])
    assert snapshot.texts(order) == ["Rain.", "A fox ran."]
    assert snapshot.frame(order)["year"].tolist() == [2, 1]

    rain, fox = snapshot.passages(order)
    assert rain.texts == ["Rain."]
    assert fox.texts == ["A fox", "ran."]
    np.testing.assert_allclose(fox.vectors, [[1, 0], [0.6, 0.8]], atol=1e-3)  # kept in half precision
    assert fox.vectors.dtype == np.float32

    both = snapshot.passage_vectors()
    assert both.starts.tolist() == [0, 2]
    assert both.vectors.dtype == np.float16
    assert len(both.vectors) == 3
    assert snapshot.passage_vectors(np.array([1])).vectors.tolist() == [[0, 1]]

    storage.delete(["b"])
    assert snapshot.texts() == ["A fox ran.", "Rain."]
    assert storage.snapshot().texts() == ["A fox ran."]


def test_an_index_of_another_version_is_refused(storage):
    record = read_json(storage.path / "index.json")
    record["format"] = "narrlit index 1"
    del record["passages"]
    (storage.path / "index.json").write_text(json.dumps(record))

    with refused("index_of_other_version", path="i", found="narrlit index 1"):
        IndexStorage(storage.path)


def test_a_story_replaces_the_one_with_its_id_and_coverage_adds_up(storage, frame):
    changed = frame[:1].assign(text=["A vixen ran."], place=["Oslo"])
    vector = np.array([[0.6, 0.8]], np.float32)
    embedded = EmbeddedStories(vector, [Passages(["A vixen ran."], vector)], Coverage(5, 5.0, 1, 0, 1))
    storage.commit(storage.columns(changed), embedded)

    assert len(storage) == 2

    stories = storage.snapshot().frame().set_index("id")
    assert stories["text"]["a"] == "A vixen ran."
    assert stories["place"]["a"] == "Oslo"
    assert stories["place"]["b"] is None
    assert storage.coverage == Coverage(15, 14.0, 3, 1, 0.5)
    with refused("type_of_column", column="year", type="int64", path="i"):
        storage.columns(frame.assign(year=["1812?", "x"]))


def test_words_and_conditions_find_rows(storage, monkeypatch):
    monkeypatch.setattr(index_storage, "COMPARED_ALL", 1)
    storage.finish(changed=True)
    assert storage.indexed_columns == {"text"}

    snapshot = storage.snapshot()
    assert snapshot.by_words("the rain on a fox and its rain", 2).tolist() in ([1, 0], [0, 1])
    assert snapshot.has_word_index
    assert snapshot.by_words("rain", 2).tolist() == [1]
    assert snapshot.by_words("rain", 2, "year < 2").tolist() == []
    assert snapshot.matching("year < 2").tolist() == [True, False]


def test_stories_are_removed(storage):
    storage.delete(["b"])
    assert list(storage.digests()) == ["a"]
    storage.delete(["a"])
    with refused("empty_index", path="i"):
        storage.require_stories()


def test_conditions_are_checked(storage):
    table = storage.snapshot().table
    check_condition(table, "year > 1 AND title != '?'")
    for where, code in (("age > 1", "invalid_condition"), ("year = ?", "placeholder_in_condition")):
        with refused(code, where=where):
            check_condition(table, where)


def test_another_process_may_make_the_same_index_and_nothing_else(storage, frame, tmp_path):
    IndexStorage.create(storage.path, frame, storage.record)
    assert len(storage) == 2

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with refused("output_not_empty"):
        IndexStorage.create(tmp_path / "other", frame, storage.record)


def test_a_digest_covers_everything_that_is_stored_of_a_story():
    frame = pd.DataFrame([{"id": "a", "text": "t", "year": 1}])
    story = Story("a", "t")
    [digest] = content_digests(frame, [story])
    viewed = content_digests(frame, [Story("a", "t", Views("x", "y", "z"))])
    others = [content_digests(frame.assign(**change), [story]) for change in ({"text": "u"}, {"year": 2}, {"id": "b"})]

    assert len({digest, viewed[0], *(other[0] for other in others)}) == 5
    assert content_digests(frame.assign(place=None), [story]) == [digest]  # an empty column changes nothing


def test_settings_name_the_parameters_of_load():
    assert SETTINGS.parameters == {"model": "m", "long": "windows", "max_length": "64"}
    other = SETTINGS.model_copy(update={"max_length": None, "views": True, "fusion": "1,1,1,1", "pseudonyms": {}})
    assert other.parameters == {"model": "m", "long": "windows", "views": "", "fusion": "1,1,1,1", "pseudonyms": ""}
    assert quoted("it's") == "'it''s'"
