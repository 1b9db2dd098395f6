"""Fits of measures that an index stores: their content, when they are repeated, and how hubs are found."""

import numpy as np
import pandas as pd
import pytest
from measured import fitted
from random_contents import WORDS, random_contents

import narrlit
from narrlit.library import stories_fit
from narrlit.library.stories_fit import StoriesFit
from narrlit.library.story_store import StoryStore
from narrlit.measures import MEASURES
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.corrections import centered
from narrlit.measures.fit import reference_rows
from narrlit.measures.names import READ_PASSAGES


class Stories(StoryStore):
    """Stories in memory, with what a fit reads of a store."""

    table, has_passages = None, True

    def __init__(self, contents, digests, path):
        self.stories, self.digests, self.path = contents, digests, path
        self.ids = digests
        self.was_read = set()

    @property
    def vectors(self):
        return self.stories.vectors

    def frame(self, rows=None):
        return pd.DataFrame({"text": self.texts(rows)})

    def texts(self, rows=None):
        return self.stories.take(rows).texts

    def passages(self, rows=None):
        raise NotImplementedError

    def passage_vectors(self, rows=None):
        self.was_read.update(rows.tolist())
        return self.stories.take(rows).passages

    def take(self, rows):
        rows = np.array(rows)
        return Stories(self.stories.take(rows), [self.digests[row] for row in rows], self.path)


@pytest.fixture
def snapshot(tmp_path):
    """25 stories, whose digests are in no order."""
    order = np.random.default_rng(1).permutation(25)
    return Stories(random_contents(25), [f"{number:064d}" for number in order], tmp_path)


@pytest.mark.parametrize("measure", [name for name in MEASURES if name != "cosine"])
def test_a_fit_on_all_stories_is_that_of_a_collection_and_is_kept(snapshot, measure):
    expected = fitted(measure, snapshot.stories)
    fit = StoriesFit.current(measure, snapshot)
    again = StoriesFit.read(snapshot.path / "fits" / f"{measure}.npz", measure)
    for each in (fit, again):
        np.testing.assert_allclose(each.hubs_of(snapshot.digests), expected.hubs, atol=1e-6)
        similarity = CollectionSimilarity(each.measure, snapshot.stories, each.hubs_of(snapshot.digests))
        np.testing.assert_allclose(similarity.matrix(), expected.matrix(), atol=1e-5)
        assert each.record == expected.record
        assert (each.passages is not None) == (measure in READ_PASSAGES)

    if fit.passages is not None:
        kept = [each.passages_of(snapshot.digests).vectors for each in (fit, again)]
        assert np.array_equal(*kept)

    assert sorted(again.references) == sorted(snapshot.digests)

    snapshot.was_read.clear()
    assert StoriesFit.current(measure, snapshot).hubs == again.hubs
    assert snapshot.was_read == set()


def test_a_small_index_is_fitted_again_whenever_stories_change(snapshot):
    fewer = snapshot.take(range(20))
    before = StoriesFit.updated("passages", fewer)
    after = StoriesFit.updated("passages", snapshot, before)
    fresh = StoriesFit.updated("passages", snapshot)

    assert after.hubs == fresh.hubs
    assert before.hubs != StoriesFit.updated("passages", fewer, fresh)
    assert StoriesFit.updated("passages", fewer, fresh).hubs == before.hubs


def test_a_large_index_keeps_its_references_and_compares_new_stories_with_them(snapshot, monkeypatch):
    monkeypatch.setattr("narrlit.measures.fit.REFERENCES", 10)
    monkeypatch.setattr(stories_fit, "REFERENCES", 10)
    fewer = snapshot.take(range(15))
    before = StoriesFit.updated("passages", fewer)

    assert set(before.references) == set(sorted(fewer.digests)[:10])

    snapshot.was_read.clear()
    after = StoriesFit.updated("passages", snapshot, before)
    rows = [row for row, digest in enumerate(snapshot.digests) if digest in before.references]

    assert snapshot.was_read == {*rows, *range(15, 25)}
    assert after.measure is before.measure

    along = after.passages_of(snapshot.digests)
    reduced = after.measure.reader.reduce(snapshot.stories)
    np.testing.assert_allclose(along.vectors, reduced.vectors, atol=2e-3)  # half precision
    assert along.starts.tolist() == reduced.starts.tolist()
    assert {digest: after.hubs[digest] for digest in fewer.digests} == dict(before.hubs)

    moved = after.measure.reader.represent(snapshot.stories)
    similarities = moved.similarities(moved.take(np.array(rows)))
    for row, digest in enumerate(snapshot.digests):
        others = [similarities[row, place] for place, reference in enumerate(rows) if reference != row]
        assert after.hubs[digest] == pytest.approx(np.mean(sorted(others)[-10:]), abs=1e-5)  # float32


def test_a_large_index_is_fitted_again_if_references_are_removed_or_it_has_doubled(snapshot, monkeypatch):
    monkeypatch.setattr("narrlit.measures.fit.REFERENCES", 10)
    monkeypatch.setattr(stories_fit, "REFERENCES", 10)
    fit = StoriesFit.updated("csls", snapshot.take(range(12)))
    assert not fit.is_outdated([*fit.references[1:], *"abcdefghij"])
    assert fit.is_outdated([*fit.references[2:], *"abcdefghij"])

    others = [f"other {number}" for number in range(15)]
    assert not fit.is_outdated([*fit.references, *others[:14]])
    assert fit.is_outdated([*fit.references, *others])
    assert fit.is_outdated(fit.references)  # few enough to be fitted on all


def test_hubs_are_looked_for_among_the_nearest_references(snapshot, monkeypatch):
    monkeypatch.setattr("narrlit.measures.fit.HUB_CANDIDATES", 12)
    fit = StoriesFit.updated("passages", snapshot)
    represented = fit.measure.reader.represent(snapshot.stories)
    scores = represented.similarities(represented)
    moved = centered(snapshot.vectors, snapshot.vectors.mean(axis=0))
    for row, digest in enumerate(snapshot.digests):
        others = [other for other in np.argsort(-(moved @ moved[row])) if other != row][:12]
        assert fit.hubs[digest] == pytest.approx(np.mean(sorted(scores[row, others])[-10:]), abs=1e-5)  # float32


def test_references_do_not_depend_on_the_order_of_stories(monkeypatch):
    monkeypatch.setattr("narrlit.measures.fit.REFERENCES", 3)
    digests = ["d", "a", "e", "c", "b"]
    assert reference_rows(digests).tolist() == [1, 3, 4]
    assert reference_rows(digests[::-1]).tolist() == [0, 1, 3]


def test_one_story_has_no_hubs(snapshot):
    assert set(StoriesFit.updated("passages", snapshot.take([3])).hubs.values()) == {0.0}


@pytest.mark.parametrize("measure", ["csls", "passages"])
def test_a_broken_file_and_one_of_an_earlier_version_are_computed_again(snapshot, capsys, measure):
    fit = StoriesFit.current(measure, snapshot)
    path = snapshot.path / "fits" / f"{measure}.npz"
    whole = path.read_bytes()
    with np.load(path) as arrays:
        earlier = {name: arrays[name] for name in arrays if name not in ("components", "hubs")}
    np.savez(path, **earlier)
    for _ in range(2):
        assert StoriesFit.current(measure, snapshot).hubs == fit.hubs
        assert f"{measure}.npz: " in (line := capsys.readouterr().err)
        assert "it is computed again" in line
        assert path.read_bytes() == whole
        path.write_bytes(b"x")


@pytest.mark.parametrize("measure", ["fused", "lexical"])
def test_words_that_an_earlier_version_weighted_in_another_way_are_weighted_again(snapshot, capsys, measure):
    fit = StoriesFit.current(measure, snapshot)
    path = snapshot.path / "fits" / f"{measure}.npz"
    whole = path.read_bytes()
    with np.load(path) as arrays:
        earlier = {name: arrays[name] for name in arrays if name not in ("words", "stop_words")}
    earlier["rarity"] = np.ones(2**18)
    np.savez(path, **earlier)

    assert StoriesFit.current(measure, snapshot).hubs == fit.hubs
    assert capsys.readouterr().err.count("it is computed again") == 1
    assert path.read_bytes() == whole


def test_the_cosine_stores_nothing_and_a_read_only_folder_costs_only_time(snapshot):
    StoriesFit.current("cosine", snapshot)
    assert not (snapshot.path / "fits").exists()

    (snapshot.path / "fits").write_text("a file where a folder should be made")
    expected = fitted("csls", snapshot.stories)
    fit = StoriesFit.current("csls", snapshot)

    np.testing.assert_allclose(fit.hubs_of(snapshot.digests), expected.hubs, atol=1e-6)


def synthetic(count):
    """Short stories of random words, each of two or three passages."""
    generator = np.random.default_rng(5)
    texts = []
    for _ in range(count):
        sentences = [" ".join(generator.choice(WORDS, 24)) for _ in range(int(generator.integers(2, 4)))]
        texts.append(". ".join(sentences) + ".")
    return texts


@pytest.fixture(scope="module")
def many(tiny, tmp_path_factory):
    """A file of 1,500 stories, and an index that lists them in another order: collections, and rows of the index."""
    folder = tmp_path_factory.mktemp("many")
    frame = pd.DataFrame({"id": [f"t{number}" for number in range(1500)], "text": synthetic(1500), "year": range(1500)})
    frame.to_json(folder / "stories.jsonl", orient="records", lines=True)
    encoder = narrlit.load(tiny())
    index = narrlit.Index.create(folder / "i", frame[::-1], encoder).collection()
    rows = index.frame.reset_index().set_index("id")["index"].loc[frame["id"]].to_numpy()
    return narrlit.Collection.read(folder / "stories.jsonl", encoder), index, rows


@pytest.mark.long
@pytest.mark.parametrize("measure", MEASURES)
def test_a_file_and_an_index_of_the_same_stories_have_the_same_similarities(many, measure):
    of_file, of_index, rows = many
    in_memory, stored = of_file.similarities_by(measure), of_index.similarities_by(measure)
    assert in_memory.record == stored.record
    assert in_memory.record["fitted_on"] == 1000

    np.testing.assert_allclose(stored.hubs[rows], in_memory.hubs, atol=1e-6)
    some = np.arange(0, 1500, 50)
    every = np.arange(1500)
    np.testing.assert_allclose(stored.between(rows[some], rows), in_memory.between(some, every), atol=1e-6)

    if measure == "lexical":  # only an index chooses candidates by their words
        return
    query = of_file.frame["text"][7]
    results, same_results = (stories.search(query, 5, measure=measure).table() for stories in many[:2])
    assert results["id"].tolist() == same_results["id"].tolist()
    np.testing.assert_allclose(results["similarity"], same_results["similarity"], atol=1e-6)
