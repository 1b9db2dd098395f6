"""Index: what it stores, finds, embeds again and refuses."""

import json
import shutil
import sys
import unicodedata
from unittest import mock

import lancedb
import numpy as np
import pandas as pd
import pytest
from deferred import deferred
from json_files import read_json
from refusals import refused

from narrlit.commands import opening
from narrlit.data.schema import Story
from narrlit.data.storyworld import StoryWorld
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.library import index_storage, index_writing, ranking
from narrlit.library.collection import Collection
from narrlit.library.index import Index
from narrlit.library.index_storage import IndexStorage
from narrlit.library.index_writing import Changes
from narrlit.library.search import search as narrlit_search
from narrlit.measures import MEASURES
from narrlit.measures.corrections import centered
from narrlit.measures.matching import PassageVectors, matches
from narrlit.measures.representations import Contents
from narrlit.models.embedding import embed_stories
from narrlit.models.registry import load_encoder

COUNTRIES = ("France", "China", None)


@pytest.fixture(scope="module")
def tales():
    """30 stories with ids, titles and metadata."""
    stories = [
        story.text
        for triple in StoryWorld(3).triples(10)
        for story in (triple.anchor, triple.positive, triple.negative)
    ]
    rows = [
        {"id": f"s{n}", "title": f"Tale {n}", "text": text, "country": COUNTRIES[n % 3], "year": 1800 + n}
        for n, text in enumerate(stories)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def made(tales, tiny, tmp_path_factory):
    """An index of them; tests that write copy it."""
    return Index.create(tmp_path_factory.mktemp("index") / "tales.index", tales, tiny())


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made.path, tmp_path / "i")


@pytest.fixture
def embedded(monkeypatch):
    """Texts of the stories that are embedded, in order; passages are no stories."""
    texts = []

    def noting(encoder, stories, *options):
        texts.extend(story.text for story in stories if isinstance(story, Story))
        return embed_stories(encoder, stories, *options)

    monkeypatch.setattr("narrlit.models.embedding.embed_stories", noting)
    return texts


def test_any_lancedb_client_reads_texts_metadata_and_vectors(made, tales, tiny):
    table = lancedb.connect(str(made.path)).open_table("stories").to_arrow()
    assert table["text"].to_pylist() == tales["text"].tolist()
    assert table["year"].to_pylist() == tales["year"].tolist()
    assert table["country"].to_pylist()[:3] == list(COUNTRIES)

    vectors = np.array(table["vector"].to_pylist())
    assert np.allclose(vectors, embed_stories(load_encoder(tiny()), tales["text"].tolist()).embeddings, atol=1e-6)
    assert table.schema.field("vector").type.list_size == 32


@pytest.fixture(scope="module")
def memory(tales, tiny):
    """The same stories in memory."""
    return Collection.of(tales, tiny())


def queried(memory, measure, text):
    """Similarities of a text with the stories in memory (N,)."""
    passages = PassageVectors.of([memory.encoder.passages([text])[0].vectors])
    vectors = unit_vectors(memory.encoder.embed([text]))
    return memory.similarities_by(measure).of_queries(Contents(vectors, [text], passages))[0]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("measure", MEASURES)
def test_an_index_ranks_as_a_collection_in_memory_by_each_measure(made, memory, tales, monkeypatch, measure, large):
    if large:  # every story is a candidate, and compared without the others
        monkeypatch.setattr(ranking, "COMPARED_ALL", 0)
    index = Index(made.path)
    text = "They argued about the money. " + tales["text"][4]
    for similarities, results in (
        (queried(memory, measure, text), index.search(text, k=30, measure=measure).table()),
        (memory.similarities_by(measure).matrix()[4], index.like("s4", k=29, measure=measure).table()),
    ):
        rows = [int(id[1:]) for id in results["id"]]
        assert len(set(rows)) == len(results)
        np.testing.assert_allclose(results["similarity"], similarities[rows], atol=0.01)  # passages in half precision
        assert sorted(results["similarity"], reverse=True) == results["similarity"].tolist()

    assert 4 not in rows

    collected = made.collection().similarities_by(measure).matrix()
    np.testing.assert_allclose(collected, memory.similarities_by(measure).matrix(), atol=0.01)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("measure", [None, "csls", "cosine"])
def test_a_collection_in_memory_is_searched_as_an_index(made, memory, tales, monkeypatch, measure, large):
    if large:
        monkeypatch.setattr(ranking, "COMPARED_ALL", 5)
    index, text = Index(made.path), "They argued about the money. " + tales["text"][4]
    for options in ({}, {"where": "year < 1820"}, {"distinct": 0.9}):
        found, expected = (stories.search(text, 7, measure=measure, **options).frame for stories in (memory, index))
        pd.testing.assert_frame_equal(found, expected, atol=1e-5, check_dtype=False)
    for options in ({"where": "country = 'France'"}, {"exclude_same": "country"}):
        found, expected = (stories.like("s4", 7, measure=measure, **options).frame for stories in (memory, index))
        pd.testing.assert_frame_equal(found, expected, atol=1e-5, check_dtype=False)

    found = memory.search([text, "A fox."], 2, measure=measure).frame
    pd.testing.assert_frame_equal(found, index.search([text, "A fox."], 2, measure=measure).frame, atol=1e-5)
    assert narrlit_search(memory, text, k=2, measure=measure).frame["id"].tolist() == found["id"].tolist()[:2]


def test_a_collection_in_memory_refuses_what_an_index_refuses(memory):
    for code, options in (("invalid_condition", {"where": "age > 1"}), ("unknown_measure", {"measure": "passage"})):
        with refused(code):
            memory.search("A fox.", **options)
    with refused("empty_query"):
        memory.search(" ")
    with refused("unknown_story", id="s44", near="s4"):
        memory.like("s44")
    with refused("unknown_column_of_index", column="author"):
        memory.like("s4", exclude_same="author")
    assert "s4" in memory
    assert "s44" not in memory


def test_results_have_ranks_and_metadata_and_like_leaves_the_story_out(made, memory, tales):
    results = made.search(tales["text"][4], k=5).table()
    assert results.columns.tolist() == ["rank", "id", "title", "similarity", "snippet", "country", "year"]
    assert results["rank"].tolist() == [1, 2, 3, 4, 5]
    assert results["id"][0] == "s4"
    assert results["title"][0] == "Tale 4"
    assert results["year"][0] == 1804
    assert made.like("s4", k=4).table()["id"].tolist() == results["id"].tolist()[1:]
    assert made.search(tales["text"][4], k=4, leave_out_text=True).table()["id"].tolist() == results["id"].tolist()[1:]
    with refused("unknown_measure", measure="passage", near="passages"):
        made.search("A fox.", measure="passage").table()


def test_the_snippet_is_the_passage_that_matches_best(made, memory):
    query = "They argued about the money. Nobody came to the feast."
    (own,) = memory.encoder.passages([query])
    mean = memory.contents("passages").passages.vectors.mean(axis=0)
    stories = dict(zip(memory.frame["id"], memory.passages, strict=True))
    for measure, moved in (("passages", mean), ("cosine", 0 * mean)):
        results = made.search(query, k=5, measure=measure).table()
        assert len(set(results["snippet"])) > 1
        for id, snippet in zip(results["id"], results["snippet"], strict=True):
            weights = matches(centered(own.vectors, moved), centered(stories[id].vectors, moved))
            assert snippet == stories[id].texts[int(weights.max(axis=0).argmax())]


def test_conditions_and_columns_leave_stories_out(made):
    found = made.like("s4", k=30, where="year < 1815").table()
    assert len(found) == 14
    assert found["year"].max() == 1814
    assert "s4" in made
    assert "s40" not in made

    others = made.like("s4", k=30, exclude_same="country").table()
    assert "China" not in others["country"].tolist()
    assert len(others) == 20  # those without a country stay

    both = made.like("s4", k=30, exclude_same="country", where="year < 1815 OR year > 1828").table()
    assert set(both["country"]) <= {"France", None}
    assert len(both) == 11
    with refused("invalid_condition"):
        made.search("x", where="land = 'France'").table()
    with refused("invalid_condition"):
        made.search("x", where="country = 3").table()
    with refused("unknown_column_of_index"):
        made.like("s4", exclude_same="author").table()


def test_distinct_leaves_out_near_copies_of_the_story_and_of_results(tales, tiny, tmp_path):
    texts = [
        tales["text"][0],
        f"{tales['text'][0]} Yes.",
        tales["text"][1],
        f"{tales['text'][1]} Yes.",
        "Bread was sold.",
    ]
    index = Index.create(tmp_path / "i", texts, tiny())
    vectors = index.collection().vectors
    copies = [vectors[0] @ vectors[1], vectors[2] @ vectors[3]]
    others = vectors[:4:2] @ vectors[2:5:2].T
    between = float(min(copies) + max(others[0, 0], *others[:, 1])) / 2

    assert max(others[0, 0], *others[:, 1]) < between < min(copies)

    found = index.like("1", k=5, distinct=between).table()["id"].tolist()
    assert "2" not in found
    assert len({*found} & {"3", "4"}) == 1
    assert "5" in found
    assert set(index.like("1", k=5).table()["id"]) == {"2", "3", "4", "5"}
    assert len({*index.search(texts[0], k=5, distinct=between).table()["id"]} & {"1", "2"}) == 1  # a query is no story


def test_words_choose_candidates_of_a_large_index(made, tales, tiny, tmp_path, monkeypatch):
    for module in (ranking, index_storage):
        monkeypatch.setattr(module, "COMPARED_ALL", 5)
    monkeypatch.setattr(ranking, "CANDIDATES", 2)
    monkeypatch.setattr(ranking, "CANDIDATES_BY_WORDS", 1)
    index = Index.create(tmp_path / "i", tales, tiny())

    assert IndexStorage(index.path).indexed_columns == {"text"}

    query = "Trumpets blared in the ring"
    vectors = index.collection().vectors
    mean = vectors.mean(axis=0)
    moved = centered(vectors, mean)
    (by_words,) = index.collection().store.by_words(query, 1).tolist()

    assert "Trumpets" in tales["text"][by_words]

    by_vectors = np.argsort(-(moved @ centered(index.encode(query), mean)))[:2].tolist()
    assert by_words not in by_vectors

    candidates = {f"s{row}" for row in (by_words, *by_vectors)}
    assert len(Index(made.path).search(query, k=1).table()) == 1  # without an index of words

    everything = made.search(query, k=30, measure="lexical").table()["id"]
    assert index.search(query, k=1, measure="lexical").table()["id"][0] == next(
        id for id in everything if id in candidates
    )
    # All components of the small model's passages are kept: the nearest are among the candidates.
    assert index.search(query, k=1).table()["id"][0] == made.search(query, k=1).table()["id"][0]
    assert index.like("s4", k=1).table()["id"][0] == made.like("s4", k=1).table()["id"][0]
    assert len(index.search(query, k=30).table()) == 30

    cosines = vectors @ vectors[4]  # the farthest story alone is no copy: candidates are widened until it is there
    farthest = index.like("s4", k=1, distinct=float(np.sort(cosines)[:2].mean())).table()["id"]
    assert farthest.tolist() == [f"s{cosines.argmin()}"]


def test_only_new_and_changed_stories_are_embedded(copied, tales, tiny, embedded):
    changed = tales.copy()
    changed.loc[2, "text"] = "Nobody came to the feast."
    changed.loc[3, "country"] = "Peru"
    more = pd.concat([changed, pd.DataFrame([{"id": "new", "text": "A fox ran.", "year": 1, "atu": "510A"}])])
    index = Index.create(copied, more, tiny())

    assert embedded == ["Nobody came to the feast.", tales["text"][3], "A fox ran."]

    frame = index.collection().frame.set_index("id")
    assert len(frame) == 31
    assert frame["text"]["s2"] == "Nobody came to the feast."
    assert frame["country"]["s3"] == "Peru"
    assert frame["atu"]["new"] == "510A"
    assert frame["text"]["s5"] == tales["text"][5]
    assert index.like("new", k=1, where="id = 's2'").table()["id"].tolist() == ["s2"]

    embedded.clear()
    Index.create(copied, more, tiny())
    assert embedded == []


def test_an_interrupted_index_keeps_its_batches_and_resumes(tales, tiny, tmp_path, embedded, monkeypatch):
    monkeypatch.setattr(index_writing, "span_end", lambda words, start, size: min(start + 8, len(words)))
    commit, batches = IndexStorage.commit, []

    def dying(self, *batch, **replaces):
        if len(batches) == 2:
            raise KeyboardInterrupt
        batches.append(batch)
        commit(self, *batch, **replaces)

    with monkeypatch.context() as patched:
        patched.setattr(IndexStorage, "commit", dying)
        with pytest.raises(KeyboardInterrupt, match="repeat the command to resume"):
            Index.create(tmp_path / "i", tales, tiny())

    begun = Index(tmp_path / "i")

    assert begun.collection().frame["id"].tolist() == [f"s{n}" for n in range(16)]
    assert len(begun.like("s3", k=30).table()) == 15  # a measure is fitted on what is there

    embedded.clear()
    index = Index.create(tmp_path / "i", tales, tiny())
    assert embedded == tales["text"].tolist()[16:]
    assert index.coverage.texts == 30
    assert len(index) == 30


def test_an_index_that_was_killed_before_its_first_batch_is_empty_not_broken(tales, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(IndexStorage, "commit", lambda *batch, **replaces: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Index.create(tmp_path / "i", tales, tiny())
    for use in (Index.collection, lambda index: index.search("A knight.").table()):
        with refused("empty_index", path="i"):
            use(Index(tmp_path / "i"))


def test_a_collection_has_the_passages_of_the_index(made, copied, memory):
    stored = made.collection()
    assert stored.measure == "passages"
    assert memory.measure == "passages"
    for one, other in zip(stored.passages, memory.passages, strict=True):
        assert one.texts == other.texts
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-3)  # kept in half precision

    before = Index(copied).collection()
    Index(copied).delete("s0")
    assert len(before.passages) == len(before) == 30

    with mock.patch.object(StoryEncoder, "passages", side_effect=AssertionError("embedded again")):
        matrix = stored.similarities.matrix()
    np.testing.assert_allclose(matrix, memory.similarities.matrix(), atol=2e-3)


def test_a_story_of_one_passage_is_embedded_once(tiny, tmp_path, monkeypatch):
    items = []

    def noting(encoder, stories, *options):
        items.extend(stories)
        return embed_stories(encoder, stories, *options)

    monkeypatch.setattr("narrlit.models.embedding.embed_stories", noting)
    index = Index.create(tmp_path / "i", ["A fox seeks a crown.", "A well is dry."], load(tiny()))
    assert len(items) == index.coverage.texts == 2
    texts = [passages.texts for passages in index.collection().passages]
    assert texts == [["A fox seeks a crown."], ["A well is dry."]]


def test_a_model_of_sentences_has_no_passages(tales, tiny, tmp_path):
    index = Index.create(tmp_path / "i", tales[:3], load(tiny(), missing_views="positional", fusion="equal"))
    assert index.collection().measure == "csls"
    assert index.like("s0", k=2).table()["id"].nunique() == 2
    with refused("model_without_passages"):
        index.collection().passages  # noqa: B018


def test_another_model_and_other_settings_are_refused(made, copied, tales, tiny):
    for options, refusal in (
        (load(tiny(pooling="cls")), {"code": "other_files"}),
        ("minilm", {"code": "other_setting", "option": "model", "recorded": "model", "found": "minilm"}),
        (load(tiny(), max_length=20), {"code": "not_the_default", "option": "max_length", "found": 20}),
        (load(tiny(), missing_views="positional", fusion="equal"), {"code": "not_the_default", "option": "views"}),
    ):
        with refused(**refusal):
            Index.create(copied, tales, options)

    with refused("other_setting", path="i"):
        Index(copied, encoder="minilm")

    record = read_json(copied / "index.json")
    record["settings"]["files"] = "0" * 64
    (copied / "index.json").write_text(json.dumps(record))

    with refused("other_files", path="i"):
        Index(copied).search("a fox").table()
    assert len(Index(copied).like("s1", k=2).table()) == 2  # needs no model


def test_queries_are_encoded_as_the_stories_were(tales, tiny, tmp_path):
    encoder = load(tiny(), missing_views="positional", fusion="equal", max_length=20)
    index = Index.create(tmp_path / "i", tales, encoder)
    again = Index(tmp_path / "i")
    assert again.encoder.facts.max_length == 20
    assert np.allclose(again.encode(tales["text"][1]), index.collection().vectors[1], atol=1e-5)


def test_an_index_of_truncated_embeddings_truncates_queries(tales, tiny, tmp_path):
    index = Index.create(tmp_path / "i", tales, load(tiny(), postprocess="truncate:8"))
    again = Index(tmp_path / "i")
    whole = unit_vectors(load(tiny()).embed(["A fox ran."]))[0, :8]

    assert index.about["dimension"] == 8
    assert index.collection().vectors.shape == (30, 8)
    assert index.collection().passages[0].vectors.shape[1] == 8
    np.testing.assert_allclose(again.encode("A fox ran."), whole / np.linalg.norm(whole), atol=1e-6)
    assert again.search(tales["text"][3], k=1).table()["id"].tolist() == ["s3"]
    for other, code in ((load(tiny()), "default_of_other"), (load(tiny(), postprocess="truncate:4"), "other_setting")):
        with refused(code, option="postprocess", recorded="truncate:8"):
            Index.create(tmp_path / "i", tales, other)


def test_fitted_postprocessing_needs_an_export(tales, tiny, tmp_path):
    encoder = load(tiny(), postprocess="center,truncate:8", transductive=True)
    with refused("postprocessed_index", steps="center,truncate:8"):
        Index.create(tmp_path / "i", tales, encoder)


@pytest.mark.parametrize(
    ("name", "code"),
    [("a\nb", "folder_name_controls"), ("a\tb", "folder_name_controls"), ("\udce9", "folder_name_encoding")],
)
def test_a_name_that_lancedb_cannot_take_is_refused(tiny, tmp_path, name, code):
    with refused(code):
        Index.create(tmp_path / name, ["A fox ran."], tiny())
    assert not list(tmp_path.iterdir())


def test_broken_folders_are_refused_with_a_remedy(copied, tmp_path, tiny):
    with refused("not_an_index"):
        Index(tmp_path / "absent")

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    with refused("output_not_empty"):
        Index.create(tmp_path / "other", ["A fox ran."], tiny())

    for file in (copied / "stories.lance" / "data").iterdir():
        file.write_bytes(b"x" * 10)
    with refused("damaged_index", path="i"):
        Index(copied).like("s1").table()

    (copied / "index.json").write_text("{")
    with refused("unreadable_index"):
        Index(copied)


def test_a_refused_first_run_leaves_no_index_that_refuses_the_remedy(tiny, tmp_path):
    texts = ["A knight seeks a grail in a far country. " * 40]
    with refused("text_over_max_length"):
        Index.create(tmp_path / "i", texts, load(tiny(), max_length=32, long="refuse"))
    assert len(Index.create(tmp_path / "i", texts, load(tiny(), max_length=32))) == 1


def test_stories_are_added_replaced_and_removed(copied, tales, embedded):
    index = Index(copied)
    count = len(Index(copied))
    new = pd.DataFrame({"id": ["new", "other"], "text": ["A knight seeks a grail in vain.", "A diver seeks a pearl."]})
    read = index.coverage.texts
    languages = index.about["languages"]

    assert languages["en"] > 20
    assert index.add(new) == 2
    assert embedded == new["text"].tolist()
    assert index.coverage.texts == Index(copied).coverage.texts == read + 2
    assert index.about["languages"] == Index(copied).about["languages"] == languages
    assert "new" in index
    with refused("id_in_index", path="i", id="new"):
        index.add(new)

    changed = new.assign(text=["A knight finds the grail at home.", "A diver seeks a pearl."])
    embedded.clear()
    assert index.upsert(changed) == 0
    assert embedded == ["A knight finds the grail at home."]
    assert index.search("A knight finds the grail at home.", k=1).table()["id"].tolist() == ["new"]
    with refused("no_story_to_remove", path="i", id="othr", near="other"):
        index.delete(["new", "othr"])
    assert index.delete(["new", "other"]) == 2
    assert len(index) == len(Index(copied)) == count
    assert "new" not in index
    assert index.search("A knight finds the grail at home.", k=30).table()["id"].tolist().count("new") == 0


def test_an_update_adds_replaces_and_removes_and_embeds_no_unchanged_story(copied, tales, embedded, capfd):
    index = Index(copied)
    stories = tales.drop(index=[0, 12]).reset_index(drop=True)
    stories.loc[0, "text"] = "A knight finds the grail at home."
    stories.loc[len(stories)] = ["new", "Pearl", "A diver seeks a pearl.", "France", 1900]

    changes = index.update(stories, progress=True)
    assert changes == Changes(added=1, replaced=1, removed=2, unchanged=27)
    assert embedded == ["A knight finds the grail at home.", "A diver seeks a pearl."]
    assert sorted(Index(copied).collection().frame["id"]) == sorted(stories["id"])
    assert "i: 1 added, 1 replaced, 2 removed, 27 unchanged" in capfd.readouterr().err
    assert index.search("A knight finds the grail at home.", k=29).table().id.tolist()[0] == stories["id"][0]
    assert index.update(stories) == Changes(added=0, replaced=0, removed=0, unchanged=29)

    fresh = index.update(["Bread was sold.", "A ship sank."])  # numbers are no ids of stories that remain
    assert fresh == Changes(added=2, replaced=0, removed=29, unchanged=0)
    assert index.update(["A boat sank.", "A house burned."]) == Changes(added=0, replaced=2, removed=0, unchanged=0)


def test_an_interrupted_update_has_removed_nothing_and_is_repeated(copied, tales, monkeypatch):
    stories = tales[1:].assign(text=[f"{text} Yes." for text in tales["text"][1:]])
    committed = []

    def interrupted(storage, rows, *options, **named):
        if committed:
            raise KeyboardInterrupt
        committed.extend(rows["id"].to_pylist())
        commit(storage, rows, *options, **named)

    commit = IndexStorage.commit
    monkeypatch.setattr(IndexStorage, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Index(copied).update(stories)
    assert 0 < len(committed) < 29
    assert "s0" in Index(copied)

    monkeypatch.undo()
    left = 29 - len(committed)
    assert Index(copied).update(stories) == Changes(added=0, replaced=left, removed=1, unchanged=len(committed))


def test_stories_whose_files_are_gone_are_named_and_removed_by_an_option(narrlit, make, tmp_path):
    folder = tmp_path / "tales"
    folder.mkdir()
    for name in ("fox", "ring", "shoe"):
        (folder / f"{name}.txt").write_text(f"A {name} was lost, and a girl found it.", encoding="utf-8")
    narrlit("index", folder, "--out", "i", "--model", "minilm")
    (folder / "fox.txt").unlink()
    (folder / "ring.txt").rename(folder / "gold_ring.txt")

    again = narrlit("index", folder, "--out", "i", "--model", "minilm")
    assert "2 stories of the index are not in tales; --update removes them" in again.err
    updated = narrlit("index", folder, "--out", "i", "--model", "minilm", "--update")
    assert "i: 0 added, 0 replaced, 2 removed, 2 unchanged" in updated.err
    assert sorted(Index(tmp_path / "i").collection().frame["id"]) == ["gold_ring", "shoe"]

    other = make("other.jsonl", [{"id": "sea", "text": "A ship sank in the sea."}])
    assert "--update" not in narrlit("index", other, "--out", "i", "--model", "minilm").err


def test_an_index_that_grew_and_shrank_ranks_as_a_fresh_one(tales, tiny, tmp_path):
    left = tales.drop(index=[0, 12]).reset_index(drop=True)
    fresh = Index.create(tmp_path / "fresh", left, tiny())
    grown = Index.create(
        tmp_path / "grown", tales[:20].assign(text=[f"{text} Yes." for text in tales["text"][:20]]), tiny()
    )
    grown.search("A fox.", measure="fused").table()  # a second fit is kept, too
    grown.upsert(tales)
    grown.delete(["s0", "s12"])
    for measure in ("passages", "fused", "csls"):
        results, expected = (index.like("s4", k=30, measure=measure).table() for index in (Index(grown.path), fresh))
        assert results["id"].tolist() == expected["id"].tolist()
        np.testing.assert_allclose(results["similarity"], expected["similarity"], atol=1e-5)  # sums of float32

    assert grown.about["fit"] == fresh.about["fit"] == Index(grown.path).about["fit"]
    assert grown.about["fit"]["fitted_on"] == 28


def test_progress_is_in_words(tales, tiny, tmp_path, capfd):
    Index.create(tmp_path / "i", tales[:4], tiny())
    with mock.patch.object(index_writing, "tqdm", wraps=index_writing.tqdm) as bar:
        Index.create(tmp_path / "i", tales, tiny(), progress=True)
    words = sum(len(text.split()) for text in tales["text"][4:])

    assert bar.call_args.kwargs["total"] == words
    assert bar.call_args.kwargs["unit"] == "word"
    assert "4 of 30 stories are unchanged" in capfd.readouterr().err


def test_several_texts_are_searched_at_once(made, embedded):
    texts = ["They argued about the money.", "A boat sank in the storm."]
    found = made.search(texts, k=3).table()
    assert embedded[:2] == texts
    assert found["query"].tolist() == [0, 0, 0, 1, 1, 1]

    for number, text in enumerate(texts):
        own = found[found["query"] == number].drop(columns="query").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, made.search(text, k=3).table())

    with refused("empty_query"):
        made.search(["A knight.", " "]).table()


def test_stories_like_one_need_no_model_and_a_search_names_it(made, copied):
    record = read_json(copied / "index.json")
    record["model_path"] = str(copied / "gone")
    (copied / "index.json").write_text(json.dumps(record))
    index = Index(copied)

    assert index.like("s4", k=2).table()["id"].tolist() == made.like("s4", k=2).table()["id"].tolist()
    assert len(index.collection()) == len(made)
    with refused("not_a_model"):
        index.search("A knight.").table()


def test_a_missing_package_is_named_with_its_extra(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with refused("missing_extra", module="lancedb", commands="pip install 'narrlit[explore]'"):
        Index.create(tmp_path / "index", ["A fox seeks a crown."], load(tiny()))


def test_empty_cells_are_missing_values(tiny, tmp_path):
    rows = [{"text": f"A knight seeks grail {year}.", "year": year} for year in ("1900", "", "")]
    index = Index.create(tmp_path / "i", pd.DataFrame(rows), tiny())
    assert index.search("A grail.", where="CAST(year AS INT) < 1950").table().id.tolist() == ["1"]
    assert sorted(index.like("2", exclude_same="year").table().id) == ["1", "3"]


def test_row_numbers_of_another_file_replace_nothing(tiny, tmp_path):
    Index.create(tmp_path / "i", ["A fox ran.", "A king fell ill."], tiny())
    with refused("no_ids"):
        Index.create(tmp_path / "i", ["Bread was sold."], tiny())
    index = Index.create(tmp_path / "i", ["A fox ran.", "A queen fell ill."], tiny())  # one story was corrected
    assert index.collection().frame.set_index("id")["text"].to_dict() == {"1": "A fox ran.", "2": "A queen fell ill."}


def test_results_of_several_texts_need_a_name_that_no_column_has(tiny, tmp_path):
    stories = pd.DataFrame([{"text": "A fox ran.", "query": "fox"}, {"text": "A king fell ill.", "query": "king"}])
    index = Index.create(tmp_path / "i", stories, tiny())

    assert index.search("A fox.", k=2).table()["query"].tolist() in (["fox", "king"], ["king", "fox"])
    with refused("reserved_query_column", path="i"):
        index.search(["A fox.", "A king."]).table()


def test_columns_that_an_index_cannot_store_are_refused(tiny, tmp_path, copied):
    for name in ("vector", "similarity", "a.b", "_x"):
        with refused("reserved_column"):
            Index.create(tmp_path / "i", pd.DataFrame([{"text": "A fox ran.", name: 1}]), tiny())

    with refused("repeated_id", first=1, id="s1"):
        Index.create(tmp_path / "i", pd.DataFrame({"id": ["s1", "s1"], "text": ["A.", "B."]}), tiny())
    with refused("type_of_column", column="year", type="int64", path="i"):
        Index.create(copied, pd.DataFrame([{"id": "x", "text": "A fox ran.", "year": "1812?"}]), tiny())

    index = Index.create(
        tmp_path / "j",
        pd.DataFrame([{"text": "A fox.", "tags": ["a"], "mixed": 1}, {"text": "B.", "mixed": "x"}]),
        tiny(),
    )
    frame = index.collection().frame

    assert frame["tags"][0] == '["a"]'
    assert frame["mixed"].tolist() == ["1", "x"]


def test_a_collection_is_loaded_from_an_index_or_from_stories(made, tales, tiny, tmp_path):
    tales.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    one = opening.collection(str(made.path), encoder=deferred())
    other = Collection.read(tmp_path / "t.jsonl", tiny())

    assert np.allclose(one.vectors, other.vectors, atol=1e-6)
    pd.testing.assert_frame_equal(one.frame, other.frame, check_dtype=False)
    assert {name: value for name, value in one.about.items() if name not in ("source", "model")} == {
        name: value for name, value in other.about.items() if name not in ("source", "model")
    }
    with refused("other_setting"):
        opening.collection(str(made.path), encoder=deferred(model="minilm"))


LOADING = ["--max-length 64", "--long truncate", "--precision fp32"]
READING = ["--missing-views positional", "--text-column plot"]
OF_AN_INDEX = [
    *[("search", option) for option in LOADING],
    *[("explain", option) for option in LOADING],  # its columns are those of files given together with the index
    *[(name, option) for name in ("map", "pairs", "data diversity", "retrieval") for option in LOADING + READING],
]


@pytest.mark.parametrize(("command", "option"), OF_AN_INDEX)
def test_options_that_cannot_change_an_index_are_refused(made, narrlit, make, command, option):
    make("q.tsv", "s0\ts1\t1\n")
    arguments = {
        "search": [made.path, "a pact with the devil"],
        "map": [made.path, "--out", "map.html"],
        "retrieval": [made.path, "--qrels", "q.tsv"],
        "explain": ["s0", "s1", "--stories", made.path],
    }
    found = narrlit(*command.split(), *arguments.get(command, [made.path]), *option.split())
    words = f"{made.path} is an index, made with --model model --long windows: leave out {option.split()[0]}, or make"

    assert found.code == 2, found.err
    assert found.out == "", found.err
    assert words in found.err, found.err


def test_columns_of_the_queries_of_an_index_are_named(made, narrlit, make, tales):
    make("q.tsv", "x\ts1\t1\n")
    make("queries.jsonl", [{"id": "x", "plot": tales["text"][1], "summary": "another"}])
    command = ["retrieval", made.path, "--qrels", "q.tsv", "--queries", "queries.jsonl", "--json"]
    found = narrlit(*command, "--text-column", "plot")
    figure = json.loads(found.out)["figures"][0]
    assert (figure["system"], figure["metric"], figure["value"]) == ("passages", "recall@1", 1)


@pytest.mark.parametrize(
    "change",
    [
        {"coverage": 3},
        {"coverage": {"a": 1}},
        {"coverage": {"words": 10**400, "read": 1.0, "texts": 1, "long": 0, "least": 1.0}},
        {"languages": [1]},
        {"settings": {}},
        {"settings": None},
        {"model_path": 3},
        {"dimension": "x"},
    ],
)
def test_a_damaged_record_is_named_with_its_field(copied, change):
    record = read_json(copied / "index.json")
    (copied / "index.json").write_text(json.dumps(record | change))
    with refused("unreadable_index", path="index.json"):
        Index(copied)


@pytest.mark.parametrize("where", ["text = $1", "id IN (?)", "id = :name", "$1"])
def test_a_condition_with_a_parameter_is_refused(made, where):
    with refused("placeholder_in_condition"):
        made.search("x", where=where).table()
    assert made.search("x", where="title != '$1 ? :a'", k=3).table().shape[0] == 3


def test_values_that_are_not_text_are_refused(made, tiny, tmp_path):
    with refused("unknown_story"):
        made.like("\udce9").table()
    with refused("text_not_unicode"):
        made.search("K\udcf6nig")
    with refused("folder_name_encoding"):
        Index.create(tmp_path / "caf\udce9", ["A king."], tiny())

    rows = pd.DataFrame({"text": ["A king."], "place": pd.Series(["\udce9"], dtype=object)})
    with refused("column_without_text"):
        Index.create(tmp_path / "i", rows, tiny())


def decomposed(text):
    return unicodedata.normalize("NFD", text)


@pytest.fixture(scope="module")
def mac(tiny, tmp_path_factory):
    """An index whose second story is decomposed, as on a Mac, with integers that have gaps."""
    rows = [
        {"id": "Bär", "text": "Ein Bär fand Honig im Wald.", "Ort": "Köln", "post": 1234567890123456789},
        {"id": decomposed("König"), "text": decomposed("Der König weinte."), "Ort": decomposed("Köln"), "post": None},
        {"id": "fox", "text": "A fox saw ripe grapes.", "Ort": "Rom\u00a01", "post": 1234567890123456790},
        {"id": "bank", "text": "A bank lowered its rates.", "Ort": None, "post": 2**128},
    ]
    folder = tmp_path_factory.mktemp("mac")
    typed = Index.create(folder / "typed", rows[:3], tiny())
    mixed = Index.create(folder / "mixed", rows, tiny())
    return typed, mixed


def test_decomposed_ids_columns_and_words_are_found(mac, tiny, tmp_path):
    index, _ = mac
    assert index.like("König", k=1).table().id.tolist() == index.like(decomposed("König"), k=1).table().id.tolist()
    assert "König" in index
    assert decomposed("König") in index
    assert "könig" not in index
    for where in ("Ort = 'Köln'", decomposed("Ort = 'Köln'")):
        assert sorted(index.search("x", where=where).table().id) == ["Bär", "König"]
    assert index.search("x", where="Ort = 'Rom 1'").table().id.tolist() == ["fox"]
    assert index.like("Bär", exclude_same="Ort").table().id.tolist() == ["fox"]
    for query in ("König", decomposed("König")):
        found = index.search(query, measure="lexical", k=1).table()
        assert (found.id[0], found.similarity[0] > 0.1) == ("König", True)
    left_out = index.search("DER\u00a0KÖNIG  weinte.", leave_out_text=True).table().id
    assert "König" not in left_out.tolist()
    assert index.collection()["König"].text == "Der König weinte."


def test_a_story_whose_id_is_decomposed_replaces_the_same_story(mac, tiny, tmp_path):
    index = Index(shutil.copytree(mac[0].path, tmp_path / "i"), encoder=tiny())
    changed = pd.DataFrame({"id": [decomposed("Bär")], "text": ["Ein Bär schlief."]})
    assert index.upsert(changed) == 0
    assert index.collection()["Bär"].text == "Ein Bär schlief."
    with refused("id_in_index"):
        index.add(changed)
    assert index.delete([decomposed("Bär")]) == 1
    assert "Bär" not in index


def test_an_index_of_an_earlier_release_with_decomposed_ids_is_found_and_updated(mac, tiny, tmp_path, monkeypatch):
    stories = [{"id": decomposed("Bär"), "text": "Ein Bär fand Honig."}, {"id": "fox", "text": "A fox ran."}]
    monkeypatch.setattr("narrlit.data.readers.normal_form", str)
    path = Index.create(tmp_path / "i", stories, tiny()).path
    monkeypatch.undo()

    index = Index(path, encoder=tiny())
    assert index.like("Bär", k=1).table().id.tolist() == ["fox"]
    assert index.upsert([{"id": "Bär", "text": "Ein Bär schlief."}]) == 0
    assert len(index) == 2
    assert index.delete("Bär") == 1


def test_words_that_are_decomposed_are_found_in_a_large_index(mac, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(index_storage, "COMPARED_ALL", 1)
    monkeypatch.setattr(ranking, "COMPARED_ALL", 1)
    monkeypatch.setattr(ranking, "CANDIDATES", 1)
    index = Index.create(tmp_path / "i", mac[0].collection().frame, tiny())
    for query in ("Königs König", decomposed("König")):
        rows = index._storage.snapshot().by_words(query, 1)
        assert [index._storage.snapshot().ids[row] for row in rows] == ["König"]


def test_words_without_spaces_are_found_in_a_large_index(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(index_storage, "COMPARED_ALL", 1)
    texts = {
        "鸦": "有一天乌鸦在山上的树上看见一块肉，就飞下来吃。",
        "狐": "有一天狐狸在山下的路上看见一个农夫，就跑进树林。",
    }
    stories = [{"id": id, "text": 5 * text} for id, text in texts.items()]
    snapshot = Index.create(tmp_path / "i", stories, tiny())._storage.snapshot()
    for query, id in (("狐", "狐"), ("农夫", "狐"), ("飞下来", "鸦")):
        assert [snapshot.ids[row] for row in snapshot.by_words(query, 1)] == [id]


def test_integers_with_gaps_keep_their_digits(mac, tmp_path):
    typed, mixed = mac
    posts = dict(zip(typed.search("x").table().id, typed.search("x").table().post, strict=True))
    assert posts == {"Bär": 1234567890123456789, "König": None, "fox": 1234567890123456790}
    assert typed.search("x", where="post = 1234567890123456790").table().id.tolist() == ["fox"]
    table = lancedb.connect(str(typed.path)).open_table("stories").to_arrow()
    assert str(table.schema.field("post").type) == "int64"
    assert repr(typed.collection().frame["post"].tolist()) == "[1234567890123456789, None, 1234567890123456790]"

    texts = dict(zip(mixed.search("x").table().id, mixed.search("x").table().post, strict=True))
    assert texts == {"Bär": "1234567890123456789", "König": None, "fox": "1234567890123456790", "bank": str(2**128)}


def test_whole_numbers_of_which_pandas_makes_floats_are_integers_again(tiny):
    frame = pd.DataFrame({"text": ["A king.", "A fox.", "A bank."], "year": [1890, None, 1812], "id": [7, None, 9]})
    frame["share"], frame["length"] = [0.5, None, 1.0], [2.0, 3.0, 4.0]
    frame["flag"], frame["count"] = pd.array([True, None, False], "boolean"), pd.array([2**60 + 1, None, 1], "Int64")
    collection = Collection.of(frame, tiny())
    columns = {name: collection.frame[name].tolist() for name in ("id", "year", "share", "length", "flag", "count")}
    assert repr(columns) == repr(
        {
            "id": ["7", "2", "9"],
            "year": [1890, None, 1812],
            "share": [0.5, None, 1.0],
            "length": [2.0, 3.0, 4.0],
            "flag": [True, None, False],
            "count": [2**60 + 1, None, 1],
        }
    )
