"""embed, export, submit, storyworld and the front door."""

import io
import json
import zipfile

import numpy as np
import pytest

from narrlit.data.readers import read_examples, read_stories, read_triples
from narrlit.errors import DataError, OptionError
from narrlit.files import check_writable
from narrlit.submission import write_submission


def peer_vectors(folder, texts):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, device="cpu").encode(texts)


def test_embed_writes_the_same_vectors_in_every_format(narrlit, world_files, tiny, tmp_path):
    for suffix in ("npy", "jsonl", "parquet"):
        found = narrlit("embed", world_files / "stories.jsonl", "--model", tiny(), "--out", f"v.{suffix}")
        assert found.code == 0, found.err
    stories = read_stories(world_files / "stories.jsonl").records
    vectors = np.load("v.npy", allow_pickle=False)
    assert abs(vectors - peer_vectors(tiny(), [story.text for story in stories])).max() < 1e-5
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").open()]
    assert [row["text"] for row in rows] == [story.text for story in stories]
    assert np.allclose([row["embedding"] for row in rows], vectors)
    from pyarrow.parquet import read_table

    table = read_table("v.parquet").to_pydict()
    assert np.allclose(table["embedding"], vectors)
    assert table["row"] == list(range(9))


def test_embed_keeps_ids_of_a_csv(narrlit, tiny, tmp_path):
    (tmp_path / "s.csv").write_text('id,text\nx1,"A, b."\nx2,C d.\n')
    assert narrlit("embed", "s.csv", "--model", tiny(), "--out", "v.jsonl").code == 0
    assert [json.loads(line)["id"] for line in (tmp_path / "v.jsonl").open()] == ["x1", "x2"]


def test_embed_stops_at_an_invalid_row_unless_told_to_drop_it(narrlit, tiny, tmp_path):
    (tmp_path / "s.jsonl").write_text('{"text": "A b."}\n{"text": " "}\n')
    found = narrlit("embed", "s.jsonl", "--model", tiny(), "--out", "v.npy")
    assert found.code == 2
    assert "s.jsonl:2" in found.err
    assert not (tmp_path / "v.npy").exists()
    assert narrlit("embed", "s.jsonl", "--model", tiny(), "--out", "v.npy", "--drop-invalid").code == 0
    assert np.load("v.npy").shape == (1, 32)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--out", "v.txt"], ".npy"), (["--out", "v.npy", "--device", "cuda"], "--device cuda"), ([], "out")],
)
def test_embed_refuses_what_it_cannot_do(narrlit, world_files, tiny, arguments, words):
    found = narrlit("embed", world_files / "stories.jsonl", "--model", tiny(), *arguments)
    assert found.code == 2
    assert words in found.err
    assert "Traceback" not in found.err


def test_a_folder_of_role_prompts_cannot_embed_but_can_judge(narrlit, world_files, tiny, tmp_path):
    from narrlit.models.config import EncoderConfig, Prompts
    from narrlit.models.encoder import Encoder

    Encoder(EncoderConfig(tiny(), prompts=Prompts(anchor="query: ", candidate="passage: "))).save(tmp_path / "m")
    for arguments in (
        ["embed", world_files / "stories.jsonl", "--model", "m", "--out", "v.npy"],
        ["submit", "--model", "m", "--track-b", world_files / "stories.jsonl"],
    ):
        found = narrlit(*arguments)
        assert found.code == 2
        assert "query: " in found.err
    assert not list(tmp_path.glob("*.npy")) + list(tmp_path.glob("*.zip"))
    by_role = {}
    for role in ("anchor", "candidate"):
        found = narrlit("embed", world_files / "stories.jsonl", "--model", "m", "--role", role, "--out", "v.npy")
        assert found.code == 0, found.err
        by_role[role] = np.load("v.npy")
    assert abs(by_role["anchor"] - by_role["candidate"]).max() > 1e-3
    assert narrlit("evaluate", world_files / "validation.jsonl", "--model", "m").code == 0


def test_export_gives_the_same_vectors_and_never_overwrites(narrlit, tiny, tmp_path):
    assert narrlit("export", tiny(), "--out", "out").code == 0
    texts = ["One story.", "Another, longer story about a ship."]
    assert abs(peer_vectors("out", texts) - peer_vectors(tiny(), texts)).max() < 1e-6
    assert "SentenceTransformer" in (tmp_path / "out/README.md").read_text()
    found = narrlit("export", tiny(), "--out", "out")
    assert found.code == 2
    assert "not empty" in found.err


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
    assert "s.zip: it is no zip file, or damaged or encrypted" in found.err
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


def test_a_place_is_checked_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for target in ("new.npy", "new/er/v.npy", "file"):
        check_writable(tmp_path / target)
    for target in ("empty", "new/er"):
        check_writable(tmp_path / target, folder=True)
    for target, folder in (("empty", False), ("file/v.npy", False), ("file", True), (".", True), ("file/m", True)):
        with pytest.raises(OptionError, match=r"cannot write|is not empty|is a folder"):
            check_writable(tmp_path / target, folder=folder)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", ["embed", "submit", "export"])
def test_the_place_is_checked_before_any_work(narrlit, tmp_path, command):
    (tmp_path / "file").write_text("x")
    # Neither the stories nor the model is there: whoever looks for them first says so.
    arguments = {
        "embed": ["none.jsonl", "--model", "none", "--out", "file/v.npy"],
        "submit": ["--track-b", "none.jsonl", "--model", "none", "--out", "file/s.zip"],
        "export": ["none", "--out", "file"],
    }
    found = narrlit(command, *arguments[command])
    assert found.code == 2
    assert ("file exists and is not empty" if command == "export" else "cannot write file/") in found.err


@pytest.mark.parametrize(
    ("option", "count", "least"),
    [("train", 0, 1), ("validation", 0, 1), ("test", -1, 1), ("negatives-per-dimension", -1, 0)],
)
def test_storyworld_checks_its_counts_before_it_writes(narrlit, tmp_path, option, count, least):
    found = narrlit("storyworld", "--out", "w", f"--{option}", count)
    assert found.code == 2
    assert f"--{option} {count}: at least {least} is needed" in found.err
    assert not (tmp_path / "w").exists()


def test_storyworld_writes_files_that_the_readers_take(narrlit, tmp_path):
    assert narrlit("storyworld", "--out", "w", "--train", 3, "--validation", 2, "--test", 2).code == 0
    assert len(read_examples(tmp_path / "w/train.jsonl", strict=True).records) == 3
    assert len(read_triples(tmp_path / "w/test.jsonl", strict=True).records) == 2
    stories = {story.text for story in read_stories(tmp_path / "w/test_stories.jsonl").records}
    views = [json.loads(line) for line in (tmp_path / "w/test_views.jsonl").open()]
    assert {view["text"] for view in views} == stories
    assert all(view["theme"] and view["plot_events"] and view["outcome"] for view in views)
