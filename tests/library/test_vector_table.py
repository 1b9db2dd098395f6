"""Vector tables: every row once whatever is interrupted, exact cosines, and clear refusals."""

import itertools

import numpy as np
import pytest
from refusals import refused

import narrlit
from narrlit.data.rows import Layout
from narrlit.data.storyworld import StoryWorld
from narrlit.library import part_source, vector_table, vector_table_writing
from narrlit.library.options import TableOptions
from narrlit.library.vector_table import VectorTable
from narrlit.library.vector_table_writing import TableWriter

TEXTS = [triple.anchor.text for triple in StoryWorld(7).triples(10)]
PARTS = TableOptions(part_rows=3)


@pytest.fixture
def stories(make):
    """Ten stories, four of them with an id, and every other one with a year."""
    rows = [{"text": text} for text in TEXTS]
    for number in range(4):
        rows[number]["id"] = f"s{number}"
    for row in rows[::2]:
        row["year"] = 1900
    return make("s.jsonl", rows)


@pytest.fixture
def address(tmp_path):
    return f"file://{tmp_path}/plots"


@pytest.fixture
def encoder(tiny):
    return narrlit.load(tiny())


def columns(table, *names):
    return table._table.search().select(list(names)).to_arrow().sort_by(names[0]).to_pydict()


def interrupt_after(monkeypatch, commits):
    """Raise KeyboardInterrupt instead of the commit after some number of them."""
    commit, done = TableWriter.commit, []

    def limited(self, number, rows):
        if len(done) == commits:
            raise KeyboardInterrupt
        done.append(number)
        commit(self, number, rows)

    monkeypatch.setattr(TableWriter, "commit", limited)


def test_the_table_has_each_story_with_its_unit_embedding(stories, address, encoder):
    table = VectorTable.create(address, stories, encoder, options=PARTS)

    expected = encoder.embed(TEXTS)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    written = columns(table, "row", "id", "text", "year", "vector")
    assert len(table) == 10
    assert written["row"] == list(range(10))
    assert written["id"] == ["s0", "s1", "s2", "s3", "5", "6", "7", "8", "9", "10"]
    assert written["text"] == TEXTS
    assert written["year"] == [1900, None] * 5
    assert abs(np.array(written["vector"]) - expected).max() < 1e-6  # float32


def test_results_are_those_of_comparing_all_stories(stories, address, encoder):
    table = VectorTable.create(address, stories, encoder, options=PARTS)
    query = "A whale found a ring in the harbor."

    vectors = encoder.embed([*TEXTS, query])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors[:-1] @ vectors[-1]
    results = table.search(query, k=4).table()
    assert results["rank"].tolist() == [1, 2, 3, 4]
    assert abs(results["similarity"] - np.sort(cosines)[:-5:-1]).max() < 1e-5  # float32, by another library
    assert abs(results["similarity"] - cosines[results["row"].astype(int)]).max() < 1e-5
    dated = table.search(query, k=10, where="year = 1900").table()
    assert sorted(dated["row"]) == [0, 2, 4, 6, 8]


def test_several_queries_are_numbered(stories, address, encoder):
    table = VectorTable.create(address, stories, encoder)
    results = table.search([TEXTS[7], TEXTS[2]], k=1).table()

    assert results[["query", "row"]].values.tolist() == [[0, 7], [1, 2]]


def test_a_story_is_not_its_own_neighbor(stories, address, encoder):
    table = VectorTable.create(address, stories, encoder)

    assert sorted(table.like("s2", k=10).table()["row"]) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert sorted(table.like("s2", k=10, where="year = 1900 OR id = 's1'").table()["row"]) == [0, 1, 4, 6, 8]
    with refused("unknown_story", id="s11"):
        table.like("s11").table()


@pytest.mark.parametrize("commits", [0, 1, 3])
def test_an_interrupted_run_is_resumed_without_loss_or_repetition(stories, address, encoder, monkeypatch, commits):
    with monkeypatch.context() as patched:
        interrupt_after(patched, commits)
        with pytest.raises(KeyboardInterrupt, match="repeat the command to resume"):
            VectorTable.create(address, stories, encoder, options=PARTS)
    assert len(VectorTable(address)) == 3 * commits

    embedded = []
    monkeypatch.setattr(type(encoder), "read", _recording(type(encoder).read, embedded))
    table = VectorTable.create(address, stories, encoder, options=PARTS)

    assert columns(table, "row", "text") == {"row": list(range(10)), "text": TEXTS}
    assert embedded == TEXTS[3 * commits :]


def _recording(read, texts):
    """Wrap StoryEncoder.read, and collect the texts that it embeds."""

    def recorded(self, items, *args, **options):
        texts.extend(item.text for item in items)
        return read(self, items, *args, **options)

    return recorded


def test_a_complete_table_is_left_as_it_is(stories, address, encoder, capsys):
    version = VectorTable.create(address, stories, encoder, options=PARTS)._table.version
    table = VectorTable.create(address, stories, encoder, options=PARTS)

    assert "4 parts are already there" in capsys.readouterr().err
    assert len(table) == 10
    assert table._table.version == version


def test_rows_without_a_text_are_dropped_and_counted(make, address, encoder, capsys):
    path = make("s.jsonl", [{"plot": text} for text in ("A king fell ill.", " ", "A bank lent.", None, "")])
    table = VectorTable.create(address, path, encoder, options=TableOptions(part_rows=2))

    assert columns(table, "row", "id") == {"row": [0, 2], "id": ["1", "3"]}
    assert "left out 3 rows without a text" in capsys.readouterr().err


def test_a_second_writer_is_refused_before_it_can_write_a_part_twice(stories, address, encoder, monkeypatch):
    def intrude(self, number, rows):
        """Commit as a second run does, then go on."""
        monkeypatch.setattr(TableWriter, "commit", commit)
        TableWriter(address, VectorTable(address)._table, 3).commit(number, rows)
        commit(self, number, rows)

    commit = TableWriter.commit
    monkeypatch.setattr(TableWriter, "commit", intrude)
    with refused("table_in_use"):
        VectorTable.create(address, stories, encoder, options=PARTS)

    table = VectorTable.create(address, stories, encoder, options=PARTS)
    assert columns(table, "row") == {"row": list(range(10))}


def test_a_part_that_two_writers_commit_at_once_is_written_once_in_the_end(stories, address, encoder, monkeypatch):
    """The second writer commits between the check of the version and the commit."""
    fitted = vector_table_writing.fitted_columns
    with monkeypatch.context() as patched:

        def intrude(table, arrays, path):
            rows = fitted(table, arrays, path)
            stale = table.version
            VectorTable(address)._table.add(rows.select(table.schema.names))
            patched.setattr(type(table), "version", property(lambda _: stale))
            return rows

        patched.setattr(vector_table_writing, "fitted_columns", intrude)
        with refused("table_in_use"):
            VectorTable.create(address, stories, encoder, options=PARTS)

    table = VectorTable.create(address, stories, encoder, options=PARTS)
    assert columns(table, "row") == {"row": list(range(10))}


def test_columns_that_appear_after_the_sample_are_added(make, address, encoder, monkeypatch):
    monkeypatch.setattr(part_source, "SAMPLE", 2)
    path = make("s.jsonl", [{"text": TEXTS[0]}, {"text": TEXTS[1]}, {"text": TEXTS[2], "author": "Anon"}])
    table = VectorTable.create(address, path, encoder, options=TableOptions(part_rows=2))

    assert columns(table, "row", "author") == {"row": [0, 1, 2], "author": [None, None, "Anon"]}


@pytest.mark.parametrize(
    ("change", "difference"),
    [({"model": "roberta"}, "model files"), ({"part_rows": 4}, "part_rows"), ({"rows": 9}, "inputs")],
)
def test_other_stories_or_settings_are_refused(stories, address, tiny, make, change, difference):
    VectorTable.create(address, stories, tiny(), options=PARTS)
    model = tiny(change["model"]) if "model" in change else tiny()
    if "rows" in change:
        make("s.jsonl", [{"text": text} for text in TEXTS[: change["rows"]]])

    with refused("other_stories_in_table"):
        VectorTable.create(address, stories, model, options=TableOptions(part_rows=change.get("part_rows", 3)))


@pytest.mark.parametrize(("dimension", "kind"), [(16, "IvfRq"), (12, "IvfSq")])
def test_a_large_table_gets_a_vector_index_that_finds_the_same(
    make, address, tiny, tmp_path, monkeypatch, dimension, kind
):
    narrlit.export(narrlit.load(tiny(), postprocess=f"truncate:{dimension}"), tmp_path / "model")
    encoder = narrlit.load(tmp_path / "model")
    monkeypatch.setattr(vector_table_writing, "INDEXED_FROM", 256)  # the fewest from which LanceDB can train one
    monkeypatch.setattr(vector_table, "REFINED", 100)  # 5 * 100 candidates: all stories
    words = ["king", "diver", "bank", "ship", "thief", "wolf", "miller"]
    texts = [f"A {one} met a {other} and a {third}." for one, other, third in itertools.product(words, repeat=3)]
    path = make("s.jsonl", [{"text": text} for text in texts])
    table = VectorTable.create(address, path, encoder, options=TableOptions(part_rows=200))

    [index] = table._table.list_indices()
    assert (index.columns, index.index_type) == (["vector"], kind)
    vectors = encoder.embed(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors[41]
    nearest = np.argsort(-cosines)[1:6]
    results = table.like("42", k=5).table()
    assert set(results["row"]) & set(nearest)
    assert (
        abs(results["similarity"] - cosines[results["row"].astype(int)]).max() < 1e-5
    )  # exact, not of rounded vectors


def test_the_table_is_plain_lancedb(stories, address, encoder):
    import lancedb

    VectorTable.create(address, stories, encoder)
    table = lancedb.connect(address).open_table("stories")

    assert table.schema.names == ["id", "title", "text", "row", "vector", "year"]
    assert table.count_rows("year IS NULL") == 5


def test_narrlit_search_takes_a_table_or_its_address(stories, address, encoder):
    table = VectorTable.create(address, stories, encoder)

    assert narrlit.search(address, TEXTS[4], k=1).frame["row"].tolist() == [4]
    assert narrlit.search(table, like="s1", k=1).queries == ["s1"]
    with refused("options_of_index"):
        narrlit.search(table, TEXTS[4], measure="passages")


def test_what_is_no_vector_table_is_refused(stories, address, encoder, tmp_path):
    import lancedb

    with refused("no_vector_table"):
        VectorTable(address)
    with refused("not_an_address"):
        VectorTable(str(tmp_path / "plots"))
    with refused("vector_table_failed", path="foo://plots"):
        VectorTable("foo://plots")
    with refused("whole_files_in_table"):
        VectorTable.create(address, stories, encoder, layout=Layout(split="lines"))
    lancedb.connect(address).create_table("stories", [{"id": "1"}])
    with refused("foreign_table"):
        VectorTable.create(address, stories, encoder)


@pytest.mark.parametrize(
    ("where", "code"), [("yeer = 1", "invalid_condition"), ("year = $1", "placeholder_in_condition")]
)
def test_an_invalid_condition_is_refused_with_the_columns(stories, address, encoder, where, code):
    table = VectorTable.create(address, stories, encoder)
    with refused(code):
        table.search(TEXTS[0], where=where).table()
