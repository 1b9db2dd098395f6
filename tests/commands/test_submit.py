"""narrlit submit: a valid zip that gives evaluate's answers, and refusals."""

import json
import zipfile

import pytest

from narrlit.data.readers import read_triples


def test_a_submission_is_valid_and_gives_the_answers_of_evaluate(narrlit, world_files, tiny, tmp_path):
    tracks = ["--track-a", world_files / "validation.jsonl", "--track-b", world_files / "stories.jsonl"]
    assert narrlit("submit", "--model", tiny(), *tracks, "--out", "s.zip").code == 0
    found = narrlit("submit", "--check", "s.zip", *tracks)
    assert (found.code, found.err) == (0, "s.zip: valid, Track A 9 rows, Track B 9 rows of 32 dimensions\n")
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist()) == ["track_a.jsonl", "track_b.npy"]
        answers = [json.loads(line)["text_a_is_closer"] for line in archive.read("track_a.jsonl").splitlines()]
    labels = read_triples(world_files / "validation.jsonl").labels.tolist()
    found = narrlit("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--json")
    assert sum(map(lambda a, b: a == b, answers, labels)) == json.loads(found.out)["correct"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give --model M, or --check ZIP"),
        (["--model", "minilm"], "give --track-a FILE, --track-b FILE or both"),
        (["--check", "s.zip", "--model", "minilm"], "--check reads a zip alone"),
        (["--check", "s.zip", "--fusion", "equal"], "--check reads a zip alone"),
        (["--check", "none.zip"], "submission none.zip: no such file"),
    ],
)
def test_mistakes_cost_one_line(narrlit, arguments, words):
    found = narrlit("submit", *arguments)
    assert (found.code, words in found.err, found.err.count("\n")) == (2, True, 1)
