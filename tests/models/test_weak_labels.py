"""Weak labels of vectors whose clusters are planted: far apart, of different sizes."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from narrlit.errors import ModelError, OptionError
from narrlit.models.weak_labels import (
    ASPECTS,
    CENTRES,
    LABELS,
    Clusters,
    fit_weak_labels,
    read_weak_labels,
    truth_labels,
    write_weak_labels,
)

FEW = Clusters(theme=4, action=3, outcome=2)
# Sizes fall from cluster to cluster, so that the largest is 0 and so on.
SIZES = {"theme": (14, 9, 5, 2), "action": (15, 10, 5), "outcome": (20, 10)}
N = 30
TEXTS = [f"Story {i} – a tale." for i in range(N)]


def planted(seed=0, spread=0.1):
    """Vectors of N stories for each aspect, and the clusters (N, 3) that they were drawn from."""
    generator = np.random.default_rng(seed)
    vectors, truth = {}, []
    for aspect, sizes in SIZES.items():
        own = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
        middles = 10 * np.eye(len(sizes), 6)
        vectors[aspect] = (middles[own] + spread * generator.normal(size=(N, 6))).astype(np.float32)
        truth.append(own)
    return vectors, np.stack(truth, axis=1)


def taken(vectors, rows):
    return {aspect: found[rows] for aspect, found in vectors.items()}


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_found_and_named_by_size(seed):
    vectors, truth = planted(seed)
    found = fit_weak_labels(vectors, N, Clusters(4, 3, 2, seed=seed), {})
    assert found.labels.dtype == np.int64
    assert found.labels.tolist() == truth.tolist()
    for column, aspect in enumerate(ASPECTS):
        for k, centre in enumerate(found.centres[aspect]):
            members = vectors[aspect][truth[:, column] == k]
            assert centre == pytest.approx(members.astype(np.float64).mean(0), abs=1e-5)


def test_clusters_of_one_size_are_named_by_their_first_story():
    own = [1, 0, 1, 2, 0, 2]
    line = (np.array(own)[:, None] * 10 + np.linspace(0, 0.1, 6)[:, None]).astype(np.float32)
    for seed in range(4):
        found = fit_weak_labels(dict.fromkeys(ASPECTS, line), 6, Clusters(3, 3, 3, seed=seed), {})
        assert found.labels[:, 0].tolist() == [0, 1, 0, 2, 1, 2]


def test_the_same_input_gives_the_same_labels_to_the_last_bit():
    noise = {aspect: np.random.default_rng(1).normal(size=(200, 16)) for aspect in ASPECTS}
    first, second = (fit_weak_labels(noise, 150, Clusters(), {"model": "m"}) for _ in range(2))
    assert np.array_equal(first.labels, second.labels)
    assert all(np.array_equal(first.centres[aspect], second.centres[aspect]) for aspect in ASPECTS)
    assert first.provenance == second.provenance
    other = fit_weak_labels(noise, 150, Clusters(seed=5), {})
    assert not np.array_equal(first.labels, other.labels)


def test_applied_stories_do_not_move_the_clusters_and_fitted_ones_do():
    vectors, _ = planted()
    moved = {aspect: np.concatenate([found[:20], found[20:] + 3]) for aspect, found in vectors.items()}
    before, after = (fit_weak_labels(which, 20, FEW, {}) for which in (vectors, moved))
    assert all(np.array_equal(before.centres[aspect], after.centres[aspect]) for aspect in ASPECTS)
    assert np.array_equal(before.labels[:20], after.labels[:20])
    transductive = fit_weak_labels(moved, N, FEW, {})
    assert any(np.abs(before.centres[aspect] - transductive.centres[aspect]).max() > 0.5 for aspect in ASPECTS)


def test_rows_to_fit_on_may_be_named():
    vectors, _ = planted()
    chosen = np.arange(N)[::-1][:20].copy()
    found = fit_weak_labels(vectors, chosen, FEW, {})
    same = fit_weak_labels(taken(vectors, chosen), 20, FEW, {})
    assert all(np.array_equal(found.centres[aspect], same.centres[aspect]) for aspect in ASPECTS)
    assert np.array_equal(found.labels[chosen], same.labels)


def test_each_story_gets_the_nearest_of_the_kept_centres():
    noise = {aspect: np.random.default_rng(2).normal(size=(120, 16)).astype(np.float32) for aspect in ASPECTS}
    found = fit_weak_labels(noise, 100, Clusters(), {})
    for column, aspect in enumerate(ASPECTS):
        apart = np.linalg.norm(noise[aspect][:, None].astype(np.float64) - found.centres[aspect], axis=2)
        assert np.array_equal(apart.argmin(1), found.labels[:, column])


def test_it_is_told_what_the_labels_were_made_of():
    import sklearn

    vectors, truth = planted()
    told = fit_weak_labels(vectors, 25, FEW, {"model": "minilm", "files": ["a.jsonl"]}).provenance
    assert json.loads(json.dumps(told)) == told
    assert (told["model"], told["files"], told["fitted_on"], told["seed"]) == ("minilm", ["a.jsonl"], 25, 0)
    assert told["scikit_learn"] == sklearn.__version__
    for column, aspect in enumerate(ASPECTS):
        own = truth[:25, column]
        k = len(SIZES[aspect])
        assert told["clusters"][aspect]["k"] == k
        assert told["clusters"][aspect]["sizes"] == sorted(np.bincount(own, minlength=k), reverse=True)
        fitted = vectors[aspect][:25].astype(np.float64)
        spread = sum(np.square(fitted[own == i] - fitted[own == i].mean(0)).sum() for i in range(k))
        assert told["clusters"][aspect]["inertia"] == pytest.approx(spread)


def test_more_clusters_than_different_stories_are_refused():
    vectors, _ = planted()
    vectors["theme"] = vectors["theme"][[0, 1, 2, 3, 4] * 6]
    with pytest.raises(OptionError, match=r"clusters\.theme is 8, but there are only 5 different stories"):
        fit_weak_labels(vectors, N, Clusters(), {})
    with pytest.raises(OptionError, match=r"clusters\.theme is 6"):
        fit_weak_labels(vectors, N, Clusters(theme=6), {})
    assert fit_weak_labels(vectors, N, Clusters(theme=5), {}).labels[:, 0].max() == 4
    with pytest.raises(OptionError, match=r"clusters\.theme is 4, but there are only 0"):
        fit_weak_labels(vectors, 0, FEW, {})


@pytest.mark.parametrize("wrong", [{"theme": 1}, {"action": 0}, {"outcome": -3}, {"seed": -1}, {"seed": 2**32}])
def test_clusters_out_of_range_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(OptionError, match=rf"clusters\.{name} is {wrong[name]}: "):
        Clusters(**wrong)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, N - 1])
def test_vectors_that_are_not_finite_are_refused(row, number):
    vectors, _ = planted()
    vectors["action"][row, 2] = number
    with pytest.raises(ModelError, match=r"action: .* no finite numbers"):
        fit_weak_labels(vectors, 20, FEW, {})


def kept(folder):
    vectors, _ = planted()
    found = fit_weak_labels(vectors, 25, FEW, {"model": "m"})
    write_weak_labels(folder, found, TEXTS)
    return found


def test_what_is_written_is_read(tmp_path):
    found = kept(tmp_path / "new")
    order = [29, 3, 17, 3]
    back = read_weak_labels(tmp_path / "new", [TEXTS[i] for i in order])
    assert back.labels.tolist() == found.labels[order].tolist()
    assert back.labels.dtype == np.int64
    assert back.provenance == found.provenance
    assert all(np.array_equal(back.centres[aspect], found.centres[aspect]) for aspect in ASPECTS)
    assert read_weak_labels(tmp_path / "new", []).labels.shape == (0, 3)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [LABELS, CENTRES]


def test_no_text_is_written_and_older_labels_are_replaced(tmp_path):
    first = kept(tmp_path)
    again = fit_weak_labels(planted(4)[0], N, FEW, {})
    write_weak_labels(tmp_path, again, TEXTS)
    assert not np.array_equal(first.labels, again.labels)
    assert np.array_equal(read_weak_labels(tmp_path, TEXTS).labels, again.labels)
    assert "tale" not in (tmp_path / LABELS).read_text(encoding="utf-8")


@pytest.mark.parametrize("texts", [TEXTS[:-1], [*TEXTS[:-1], TEXTS[0]]])
def test_labels_are_written_for_different_texts_one_a_row(texts, tmp_path):
    found = kept(tmp_path)
    with pytest.raises(ValueError, match="as many different texts"):
        write_weak_labels(tmp_path, found, texts)


def test_a_story_without_labels_is_named(tmp_path):
    kept(tmp_path)
    with pytest.raises(ModelError, match=r"weak_labels\.json: 1 of 2 stories .* 'Another tale'"):
        read_weak_labels(tmp_path, [TEXTS[0], "Another tale"])


def broken_json(change):
    def spoil(folder):
        content = json.loads((folder / LABELS).read_text(encoding="utf-8"))
        change(content)
        (folder / LABELS).write_text(json.dumps(content), encoding="utf-8")

    return spoil


def other_centres(folder):
    save_file({name: x + 1 for name, x in load_file(folder / CENTRES).items()}, folder / CENTRES)


BREAKS = {
    "no file": lambda folder: (folder / LABELS).unlink(),
    "half a file": lambda folder: (folder / LABELS).write_text('{"format": "narr'),
    "no text": lambda folder: (folder / LABELS).write_bytes(b"\xff\xfe\x00"),
    "a list": lambda folder: (folder / LABELS).write_text("[1]"),
    "another format": broken_json(lambda content: content.update(format="narrlit weak labels 9")),
    "no stories": broken_json(lambda content: content.pop("stories")),
    "no provenance": broken_json(lambda content: content.update(provenance=3)),
    "a story without an aspect": broken_json(lambda content: content["stories"][4].pop("action")),
    "a cluster too many": broken_json(lambda content: content["stories"][4].update(action=3)),
    "a label below 0": broken_json(lambda content: content["stories"][4].update(theme=-1)),
    "a label that is no whole number": broken_json(lambda content: content["stories"][4].update(theme=1.5)),
    "no centres": lambda folder: (folder / CENTRES).unlink(),
    "broken centres": lambda folder: (folder / CENTRES).write_bytes(b"12345678910"),
    "centres of another fit": other_centres,
}


@pytest.mark.parametrize("case", BREAKS)
def test_broken_files_are_named_in_one_line(case, tmp_path):
    kept(tmp_path)
    BREAKS[case](tmp_path)
    with pytest.raises(ModelError, match=re.escape(str(tmp_path / "weak_labels."))) as caught:
        read_weak_labels(tmp_path, TEXTS)
    assert "\n" not in str(caught.value)


def test_a_write_that_fails_leaves_the_old_files(tmp_path):
    found = kept(tmp_path)
    no_json = fit_weak_labels(planted(4)[0], N, FEW, {"model": object()})
    with pytest.raises(TypeError, match="not JSON"):
        write_weak_labels(tmp_path, no_json, TEXTS)
    assert np.array_equal(read_weak_labels(tmp_path, TEXTS).labels, found.labels)
    assert sorted(path.name for path in tmp_path.iterdir()) == [LABELS, CENTRES]


def test_true_labels_are_numbered_by_name_aspect_by_aspect():
    truths = [("war", "trip", "win"), None, ("love", "trip", "loss"), ("art", "heist", "win")]
    assert truth_labels(truths).tolist() == [[2, 1, 1], [-1, -1, -1], [1, 1, 0], [0, 0, 1]]
    assert truth_labels([None, None]).tolist() == [[-1] * 3] * 2
    assert truth_labels([]).shape == (0, 3)
    assert truth_labels(truths).dtype == np.int64
