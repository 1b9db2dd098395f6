"""evaluate, embed and submit of stories with views: the same vectors as by hand, and clear refusals."""

import json
import zipfile
from io import BytesIO

import numpy as np
import pytest
from viewed_stories import WEIGHTS, by_hand, parts, view_encoder

from narrlit.data.records import Triple
from narrlit.data.view_rows import positional_views
from narrlit.data.writers import write_triples
from narrlit.models.fusion import PRESETS

FUSION = str(WEIGHTS)


@pytest.fixture
def files(tmp_path):
    """Six stories, two triples of them, and their views."""
    stories = parts(6)
    (tmp_path / "stories.jsonl").write_text(
        "".join(json.dumps({"text": s[0], "id": f"s{i}"}) + "\n" for i, s in enumerate(stories))
    )
    viewed = [{"text": s[0], "theme": s[1], "plot_events": [s[2]], "outcome": s[3]} for s in stories]
    (tmp_path / "views.jsonl").write_text("".join(json.dumps(row) + "\n" for row in viewed))
    texts = [story[0] for story in stories]
    write_triples(tmp_path / "triples.jsonl", [Triple(*texts[:3], True), Triple(*texts[3:], False)])
    return tmp_path


def test_embed_fuses_by_the_weights_and_keeps_the_stories_as_they_are(narrlit, tiny, files):
    done = narrlit(
        "embed", "stories.jsonl", "--model", tiny(), "--views", "views.jsonl", "--fusion", FUSION, "--out", "v.jsonl"
    )
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (files / "v.jsonl").read_text().splitlines()]
    expected = by_hand(view_encoder(tiny()), parts(6))
    assert abs(np.array([row["embedding"] for row in rows]) - expected).max() < 1e-6
    assert [(row["id"], row["text"]) for row in rows] == [(f"s{i}", story[0]) for i, story in enumerate(parts(6))]


def test_evaluate_judges_by_fused_vectors(narrlit, tiny, files):
    given = ("--model", tiny(), "--views", "views.jsonl", "--fusion", FUSION, "--json")
    done = narrlit("evaluate", "triples.jsonl", *given)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    v = by_hand(view_encoder(tiny()), parts(6))
    right = [(v[0] @ v[1] > v[0] @ v[2]), not (v[3] @ v[4] > v[3] @ v[5])]
    assert found["correct"] == sum(map(bool, right))
    assert (found["views"], found["fusion"], found["missing_views"]) == ("views.jsonl", FUSION, "refuse")


def test_submit_writes_fused_vectors(narrlit, tiny, files):
    given = ("--model", tiny(), "--views", "views.jsonl", "--fusion", FUSION)
    done = narrlit("submit", "--track-a", "triples.jsonl", "--track-b", "stories.jsonl", *given, "--out", "s.zip")
    assert done.code == 0, done.err
    with zipfile.ZipFile(files / "s.zip") as archive:
        vectors = np.load(BytesIO(archive.read("track_b.npy")))
    assert abs(vectors - by_hand(view_encoder(tiny()), parts(6))).max() < 1e-6
    assert narrlit("submit", "--check", "s.zip", "--track-b", "stories.jsonl").code == 0


def test_views_may_come_by_position(narrlit, tiny, files):
    given = ("--model", tiny(), "--missing-views", "positional", "--fusion", "equal", "--out", "v.npy")
    done = narrlit("embed", "stories.jsonl", *given)
    assert done.code == 0, done.err
    assert "6 cut by position" in done.err
    stories = [(text, *positional_views(text).texts) for text, *_ in parts(6)]
    expected = by_hand(view_encoder(tiny(), fusion=PRESETS["equal"]), stories)
    assert abs(np.load(files / "v.npy") - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--views", "views.jsonl"), "reads no views: give --fusion"),
        (("--fusion", "equal"), "has no views, which are read beside the text: give --views FILE"),
        (("--fusion", "0,0,0,0"), "the weights sum to 0"),
        (("--fusion", "best"), "--fusion best: give one of submitted"),
        (("--views", "none.jsonl", "--fusion", "equal"), "none.jsonl does not exist"),
        (("--views", "few.jsonl", "--fusion", "equal"), "4 of 6 different stories have no views"),
        (("--scope", "triple"), "need --pseudonymize"),
        (("--pseudonymize", "rules", "--pipeline", "p"), "pipeline p: rules reads none; choose spacy, or"),
    ],
)
def test_what_does_not_fit_is_refused(narrlit, tiny, files, options, told):
    (files / "few.jsonl").write_text("".join((files / "views.jsonl").read_text().splitlines(keepends=True)[:2]))
    done = narrlit("embed", "stories.jsonl", "--model", tiny(), *options, "--out", "v.npy")
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1 or "narrlit: error" in done.err
    assert not (files / "v.npy").exists()


def test_baselines_read_no_views_and_checks_no_model(narrlit, tiny, files):
    done = narrlit("evaluate", "triples.jsonl", "--baseline", "jaccard", "--views", "views.jsonl")
    assert done.code == 2
    assert "need --model" in done.err
    done = narrlit("submit", "--check", "s.zip", "--fusion", "equal")
    assert done.code == 2
    assert "--check reads a zip" in done.err
    assert narrlit("embed", "stories.jsonl", "--out", "v.npy").code == 2


def test_a_run_trained_on_pseudonyms_says_so_where_stories_are_read_otherwise(narrlit, tiny, files, monkeypatch):
    monkeypatch.setattr("narrlit.models.source.load_encoder", lambda *_: view_encoder(tiny()))
    run = files / "run"
    run.mkdir()
    (run / "run.json").write_text(
        json.dumps({"data": {"train": {"pseudonyms": {"backend": "rules", "scope": "triple"}}}})
    )
    given = ("embed", "stories.jsonl", "--model", run, "--views", "views.jsonl", "--out", "v.npy")
    assert "--pseudonymize rules (--scope triple for triples) reads them alike" in narrlit(*given).err
    assert "warning" not in narrlit(*given, "--pseudonymize", "rules").err
