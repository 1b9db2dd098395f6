"""Files on disk: complete, synchronized before they get their name, and unchanged if that fails."""

import errno
import os
from pathlib import Path

import pytest
from refusals import refused

from narrlit.data.writers import write_rows
from narrlit.files import atomic_folder


@pytest.fixture
def synced(monkeypatch):
    """Numbers (inodes) of what was synchronized, each with the names in the folder at that time."""
    calls, sync = [], os.fsync

    def fsync(descriptor):
        calls.append((os.fstat(descriptor).st_ino, {path.name for path in Path().iterdir()}))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return calls


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def names_when_synced(synced, path):
    return [names for number, names in synced if number == Path(path).stat().st_ino]


def test_a_file_is_on_disk_before_it_gets_its_name(synced):
    write_rows("rows.jsonl", [1, 2])
    (before,) = names_when_synced(synced, "rows.jsonl")
    assert "rows.jsonl" not in before
    assert "rows.jsonl" in names_when_synced(synced, ".")[-1]


def test_a_folder_is_on_disk_with_its_content_before_it_gets_its_name(synced):
    with atomic_folder("model") as temporary:
        (temporary / "1_Pooling").mkdir()
        (temporary / "1_Pooling/config.json").write_text("{}")
        (temporary / "weights").write_bytes(b"0")

    for name in ("model", "model/1_Pooling", "model/1_Pooling/config.json", "model/weights"):
        assert names_when_synced(synced, name)[0].isdisjoint({"model"})
    assert "model" in names_when_synced(synced, ".")[-1]


def test_a_disk_that_is_full_when_a_file_is_synchronized_leaves_the_earlier_file(monkeypatch):
    write_rows("rows.jsonl", [1])

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    with refused("cannot_write", path="rows.jsonl", reason="no space left on device"):
        write_rows("rows.jsonl", [2])
    assert [path.name for path in Path().iterdir()] == ["rows.jsonl"]
    assert Path("rows.jsonl").read_text() == "1\n"


def test_files_are_written_if_the_system_cannot_open_folders(monkeypatch):
    open_file = os.open

    def refusing(path, flags, *rest, **options):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_file(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refusing)
    write_rows("rows.jsonl", [1])

    assert Path("rows.jsonl").read_text() == "1\n"
