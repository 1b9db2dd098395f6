"""narrlit submit: a valid zip that gives evaluate's answers, and refusals."""

import json
import zipfile

import numpy as np
import pytest

from narrlit.data.readers import read_triples
from narrlit.encoding.loading import load
from narrlit.measures import MeanMaxSimilarity
from narrlit.measures.meanmax import MeanMax
from narrlit.models import capabilities
from narrlit.models.encoder import Encoder
from narrlit.submission import read_submission


def test_a_submission_is_valid_and_gives_the_answers_of_evaluate(narrlit, world_files, tiny, tmp_path):
    tracks = ["--track-a", world_files / "validation.jsonl", "--track-b", world_files / "stories.jsonl"]
    assert narrlit("submit", "--model", tiny(), *tracks, "--out", "s.zip").code == 0

    found = narrlit("submit", "--check", "s.zip", *tracks)
    assert found.code == 0
    assert found.err == "s.zip: valid, Track A 9 rows, Track B 9 rows of 32 dimensions\n"

    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist()) == ["track_a.jsonl", "track_b.npy"]
        answers = [json.loads(line)["text_a_is_closer"] for line in archive.read("track_a.jsonl").splitlines()]

    labels = read_triples(world_files / "validation.jsonl").labels.tolist()
    found = narrlit("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--json")

    [figure] = json.loads(found.out)["figures"]
    assert figure["value"] == np.mean(np.array(answers) == np.array(labels))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give --track-a, --track-b or both"),
        (["--model", "minilm"], "give --track-a, --track-b or both"),
        (["--check", "s.zip", "--model", "minilm"], "--check only reads a zip"),
        (["--check", "s.zip", "--fusion", "equal"], "--check only reads a zip"),
        (["--check", "s.zip", "--answers", "a.jsonl"], "--check only reads a zip"),
        (["--answers", "a.jsonl", "--track-a", "t", "--model", "minilm"], "--answers replace the model"),
        (["--answers", "a.jsonl", "--model", "minilm"], "give --track-a"),
        (["--track-a", "t"], "give --model"),
        (["--model", "minilm", "--track-a", "t", "--windows", "3"], "need --scorer meanmax"),
        (["--check", "none.zip"], "submission none.zip: no such file"),
    ],
)
def test_mistakes_cost_one_line(narrlit, arguments, words):
    found = narrlit("submit", *arguments)
    assert found.code == 2
    assert words in found.err
    assert found.err.count("\n") == 1


def test_answers_and_a_model_make_one_submission(narrlit, world_files, tiny, make, tmp_path):
    tracks = ["--track-a", world_files / "validation.jsonl", "--track-b", world_files / "stories.jsonl"]
    answers = [n % 2 == 0 for n in range(9)]
    make("a.jsonl", [{"text_a_is_closer": answer, "score": 1} for answer in answers])
    found = narrlit("submit", "--answers", "a.jsonl", *tracks, "--model", tiny(), "--out", "s.zip")

    assert found.code == 0, found.err
    assert "Track B: vectors of 9 stories alone, in other batches and in reverse order differ by at most" in found.err
    assert "s.zip: valid, Track A 9 rows, Track B 9 rows of 32 dimensions" in found.err
    assert read_submission(tmp_path / "s.zip")[0] == answers

    found = narrlit("submit", "--answers", "s.zip", *tracks[:2], "--out", "again.zip")
    assert found.code == 0
    assert read_submission(tmp_path / "again.zip") == (answers, None)

    make("few.jsonl", [{"text_a_is_closer": True}] * 8)
    triple = json.loads((world_files / "validation.jsonl").read_text().splitlines()[0])
    make("others.jsonl", [{**triple, "text_a_is_closer": True}] * 9)
    for name, words in (
        ("few.jsonl", "few.jsonl has 8 answers for 9 triples"),
        ("others.jsonl", "others.jsonl:2: anch"),
    ):
        found = narrlit("submit", "--answers", name, *tracks[:2], "--out", "no.zip")
        assert found.code == 2
        assert words in found.err
        assert not (tmp_path / "no.zip").exists()


def test_mean_max_is_used_for_track_a(narrlit, world_files, tiny, tmp_path):
    triples = world_files / "validation.jsonl"
    options = ["--model", tiny(), "--scorer", "meanmax", "--gamma", "0"]
    assert narrlit("submit", "--track-a", triples, *options, "--out", "s.zip").code == 0

    answers, _ = read_submission(tmp_path / "s.zip")
    scores = MeanMaxSimilarity(load(tiny()), MeanMax(gamma=0)).score(read_triples(triples))
    assert answers == [a > b for a, b in scores.tolist()]
    assert narrlit("submit", "--track-a", triples, *options[:2], "--out", "c.zip").code == 0
    assert answers != read_submission(tmp_path / "c.zip")[0]


def test_what_is_fitted_on_the_stories_themselves_is_refused(narrlit, world_files, tiny, tmp_path):
    stories = world_files / "stories.jsonl"
    triples = world_files / "validation.jsonl"
    command = ["submit", "--track-b", stories, "--model", tiny(), "--out", "s.zip", "--postprocess", "whiten"]
    for fit, words in (
        (["--fit-on", stories], "9 of its 9 stories are also embedded; give other stories, or add --transductive"),
        (["--fit-on", triples, "--transductive"], "because of post-processing fitted on the batch"),
        (["--transductive"], "because of post-processing fitted on the batch"),
    ):
        found = narrlit(*command, *fit)
        assert found.code == 2, found.err
        assert words in found.err, found.err
        assert not (tmp_path / "s.zip").exists(), found.err

    found = narrlit(*command, "--fit-on", f"{triples},{world_files / 'train.jsonl'}")

    assert found.code == 0, found.err
    assert "left out 9 that are embedded here" in found.err
    assert read_submission(tmp_path / "s.zip")[1].shape == (9, 32)


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_vectors_may_differ_by_the_rounding_of_the_format_they_are_computed_in(
    narrlit, world_files, tiny, monkeypatch, precision
):
    """Rounding differs between batches only on some processors: here small batches are rounded, others are not."""
    forward = Encoder.forward

    def rounded_in_small_batches(encoder, stories):
        vectors = forward(encoder, stories)
        return vectors.bfloat16().float() if len(vectors) < 9 else vectors

    monkeypatch.setattr(Encoder, "forward", rounded_in_small_batches)
    monkeypatch.setattr(capabilities, "has_bf16", lambda device: True)  # without it as exact, only slow
    command = ["submit", "--track-b", world_files / "stories.jsonl", "--model", tiny(), "--precision", precision]
    found = narrlit(*command, "--out", "s.zip")
    if precision == "bf16":
        assert found.code == 0, found.err
        assert "9 stories alone, in other batches" in found.err, found.err
    else:
        assert found.code == 2
        assert "because of the encoder" in found.err
