"""narrlit submit: what it writes, and what a check finds."""

import io
import json
import zipfile

import numpy as np
import pytest

from narrlit.data.readers import read_triples
from narrlit.errors import DataError
from narrlit.submission import write_submission


def test_a_submission_is_valid_and_says_what_evaluate_says(narrlit, world_files, tiny, tmp_path):
    tracks = ["--track-a", world_files / "validation.jsonl", "--track-b", world_files / "stories.jsonl"]
    assert narrlit("submit", "--model", tiny(), *tracks, "--out", "s.zip").code == 0
    assert narrlit("submit", "--check", "s.zip", *tracks).code == 0
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist()) == ["track_a.jsonl", "track_b.npy"]
        answers = [json.loads(line)["text_a_is_closer"] for line in archive.read("track_a.jsonl").splitlines()]
    labels = [t.a_is_closer for t in read_triples(world_files / "validation.jsonl").records]
    found = narrlit("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--json")
    assert sum(map(lambda a, b: a == b, answers, labels)) == json.loads(found.out)["correct"]


def write_zip(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"track_c__jsonl": "x"}, "track_c.jsonl"),
        ({"track_a__jsonl": '{"text_a_is_closer": 1}\n'}, "track_a.jsonl:1"),
        ({"track_a__jsonl": '{"text_a_is_closer": true}\n{"te\n'}, "track_a.jsonl:2"),
        ({"track_b__jsonl": lines([{"embeddings": [0.5] * 9}])}, "10 to 8192"),
        ({"track_b__jsonl": lines([{"embeddings": [0.5] * 12}, {"embeddings": [0.5] * 11}])}, "equally many"),
        ({"track_b__jsonl": '{"embeddings": [NaN' + ", 1" * 11 + "]}\n"}, "row 1 holds NaN"),
        ({"track_b__jsonl": lines([{"embeddings": [0.0] * 12}])}, "all zeros"),
        ({"track_b__npy": "nothing"}, "track_b.npy"),
        ({"track_a__jsonl": lines([{"text_a_is_closer": True}] * 8)}, "8 rows, the test file has 9"),
    ],
)
def test_a_check_finds_what_the_task_would_refuse(narrlit, world_files, tmp_path, files, words):
    write_zip(tmp_path / "s.zip", **files)
    found = narrlit("submit", "--check", "s.zip", "--track-a", world_files / "validation.jsonl")
    if "track_a__jsonl" not in files:
        found = narrlit("submit", "--check", "s.zip")
    assert found.code == 2
    assert words in found.err


def broken_zip(how):
    """A zip of Track A, packed, with one thing wrong that shows only when the member is read."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("track_a.jsonl", lines([{"text_a_is_closer": True}] * 50))
    found = bytearray(content.getvalue())
    entry = found.index(b"PK\x01\x02")
    if how == "damaged":
        data = 30 + len("track_a.jsonl")
        found[data : data + 8] = b"\xff" * 8
    elif how == "encrypted":
        found[6] |= 1
        found[entry + 8] |= 1
    else:
        found[8] = found[entry + 10] = 99
    return bytes(found)


@pytest.mark.parametrize("how", ["damaged", "encrypted", "strangely packed"])
def test_a_check_says_in_one_line_that_a_zip_cannot_be_read(narrlit, tmp_path, how):
    (tmp_path / "s.zip").write_bytes(broken_zip(how))
    found = narrlit("submit", "--check", "s.zip")
    assert found.code == 2
    assert "submission s.zip: " in found.err
    assert "it is no zip file, or damaged or encrypted" in found.err
    assert len(found.err.splitlines()) == 1


def test_a_check_refuses_an_archive_of_arrays(narrlit, tmp_path):
    arrays = io.BytesIO()
    np.savez(arrays, a=np.ones((2, 12)))
    write_zip(tmp_path / "s.zip", track_b__npy=arrays.getvalue())
    found = narrlit("submit", "--check", "s.zip")
    assert found.code == 2
    assert "archive of arrays" in found.err


def test_an_invalid_submission_never_replaces_a_good_one(tmp_path):
    path = tmp_path / "s.zip"
    found = write_submission(path, [True, False], np.ones((3, 12), np.float32), 2, 3)
    assert (found.track_a_rows, found.track_b_rows, found.dimension) == (2, 3, 12)
    good = path.read_bytes()
    with pytest.raises(DataError, match=r"/s\.zip/track_b\.npy: row 1 holds NaN"):
        write_submission(path, None, np.full((3, 12), np.nan, np.float32))
    with pytest.raises(DataError, match="1 rows, the test file has 2"):
        write_submission(path, [True], None, rows_a=2)
    assert path.read_bytes() == good
    assert list(tmp_path.iterdir()) == [path]
