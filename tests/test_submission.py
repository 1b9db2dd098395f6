"""Submission archives that unpack to more than they may are refused before the memory is full."""

import zipfile

import numpy as np
import pytest

from narrlit import submission
from narrlit.errors import DataError
from narrlit.submission import check_submission, write_submission


@pytest.mark.parametrize("name", ["track_a.jsonl", "track_b.npy", "track_b.jsonl"])
@pytest.mark.parametrize("honest", [True, False])
def test_a_zip_bomb_is_refused(tmp_path, monkeypatch, name, honest):
    monkeypatch.setattr(submission, "LARGEST_FILE", 2**16)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b"\n" * 2**20)
    if not honest:  # the declared size is a lie in both places where it stands
        content = path.read_bytes()
        path.write_bytes(content.replace((2**20).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.raises(DataError, match=r"bomb\.zip") as caught:
        check_submission(path)
    assert "\n" not in str(caught.value)
    assert ("unpacks to more than" in str(caught.value)) == honest


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as archive, archive.open("track_b.npy", "w") as file:
        np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"track_b\.npy"):
        check_submission(path)


def test_a_submission_is_written_and_read(tmp_path):
    embeddings = np.ones((3, 12), dtype=np.float32)
    contents = write_submission(tmp_path / "s.zip", [True, False], embeddings, rows_a=2, rows_b=3)
    assert (contents.track_a_rows, contents.track_b_rows, contents.dimension) == (2, 3, 12)
    assert check_submission(tmp_path / "s.zip") == contents
    with pytest.raises(DataError, match=r"track_a\.jsonl has 2 rows, the test file has 5"):
        check_submission(tmp_path / "s.zip", rows_a=5)
    with pytest.raises(DataError, match="row 2 is all zeros"):
        write_submission(tmp_path / "s.zip", None, embeddings * [[1], [0], [1]])
    assert check_submission(tmp_path / "s.zip") == contents
