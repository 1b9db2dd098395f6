"""narrlit embed --out FOLDER: complete or missing parts, resumed, shared by processes and by Ray."""

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.dataset
import pytest
from json_files import read_json
from pyarrow import parquet

from narrlit.data.storyworld import StoryWorld
from narrlit.models import embedding

PROCESS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    for name in PROCESS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rows(make):
    """23 stories in rows.jsonl, every third without a year, one with a text for it."""
    texts = [triple.anchor.text for triple in StoryWorld(7).triples(23)]
    rows = [{"id": f"{n:03d}", "plot": text, **({"year": 1900 + n} if n % 3 else {})} for n, text in enumerate(texts)]
    rows[11]["year"] = "about 1911"
    make("rows.jsonl", rows)
    return rows


def manifest(folder):
    return read_json(Path(folder) / "manifest.json")


def table(folder):
    files = [f"{folder}/{part['file']}" for part in manifest(folder)["parts"]]
    return pa.dataset.dataset(files).to_table(["row", "id", "plot", "embedding"])


def vectors(folder):
    column = table(folder)["embedding"]
    return column.combine_chunks().flatten().to_numpy().reshape(len(column), -1)


def test_parts_are_the_rows_of_one_run(narrlit, tiny, rows):
    model = ("--model", tiny(), "--long", "truncate")
    assert narrlit("embed", "rows.jsonl", *model, "--out", "all.npy").code == 0

    found = narrlit("embed", "rows.jsonl", *model, "--out", "out", "--part-rows", 5)
    assert found.code == 0, found.err
    assert "out: 23 embeddings of 32 dimensions in 5 parts" in found.err, found.err
    assert "23 of 23 stories were cut at 96 tokens" in found.err

    record = manifest("out")
    assert record["complete"] is True
    assert record["rows"] == 23
    assert [part["rows"] for part in record["parts"]] == [5, 5, 5, 5, 3]

    written = table("out").to_pydict()
    assert written["row"] == [*range(23)]
    assert written["id"] == [row["id"] for row in rows]
    assert written["plot"] == [row["plot"] for row in rows]
    assert abs(vectors("out") - np.load("all.npy")).max() < 1e-6

    year = [parquet.read_table(f"out/part-{part:05d}.parquet")["year"].to_pylist() for part in (0, 2)]
    assert year == [[None, 1901, 1902, None, 1904], ["1910", "about 1911", None, "1913", "1914"]]
    assert (
        "complete, 5 parts; nothing to do"
        in narrlit("embed", "rows.jsonl", *model, "--out", "out", "--part-rows", 5).err
    )


@pytest.fixture
def folder(rows, make, tmp_path):
    """The stories in files of three kinds, with three rows without a text, and a file that is none of stories."""
    stories = pandas.DataFrame(rows)[["id", "plot"]]
    stories.loc[7:11, "plot"] += "\n\u00e9"
    (tmp_path / "in").mkdir()
    empty = pandas.DataFrame([{"id": "x", "plot": " "}])
    pandas.concat([stories[:7], empty]).to_json(tmp_path / "in/a.jsonl", orient="records", lines=True)
    stories[7:12].to_csv(tmp_path / "in/b.csv", sep=";", encoding="cp1252", index=False)
    missing = pandas.DataFrame([{"plot": None}] * 2)
    pandas.concat([stories[12:], missing]).to_parquet(tmp_path / "in/c.parquet", row_group_size=3, index=False)
    make("in/notes.txt", "not read")
    return stories


def test_a_row_without_a_text_is_refused_by_its_file_and_line(narrlit, tiny, folder):
    result = narrlit("embed", "in", "--model", tiny(), "--part-rows", 8, "--strict", "--out", "strict")

    assert result.code == 2, result.err
    assert "in/a.jsonl:8: empty plot" in result.err, result.err


@pytest.mark.parametrize("source", ["in", "file://{folder}/in", "in/[abc].*"])
def test_files_of_a_folder_are_one_input(narrlit, tiny, folder, make, tmp_path, source):
    """Parts span files; rows without a text leave a gap, or a part without rows."""
    model = ("--model", tiny())
    options = ("--part-rows", 8, "--format", "npy", "--out", "out")
    result = narrlit("embed", source.format(folder=tmp_path), *model, *options)
    parts = manifest("out")["parts"]

    assert "in 4 parts; left out 3 rows without a text" in result.err, result.err
    assert [part["rows"] for part in parts] == [7, 8, 8, 0]

    columns = pandas.concat([pandas.read_csv(f"out/part-{n:05d}.columns.csv", dtype={"id": str}) for n in range(3)])
    assert columns["id"].tolist() == folder["id"].tolist()
    assert columns["row"].tolist() == [n for n in range(24) if n != 7]

    make("all.jsonl", folder[["plot"]].to_dict("records"))
    assert narrlit("embed", "all.jsonl", *model, "--out", "all.npy").code == 0

    embeddings = np.concatenate([np.load(f"out/{part['file']}") for part in parts])
    assert abs(embeddings - np.load("all.npy")).max() < 1e-6


def test_another_model_input_or_setting_is_refused(narrlit, tiny, rows, make):
    embed = ["embed", "rows.jsonl", "--model", tiny(), "--out", "out", "--part-rows", 9]
    assert narrlit(*embed).code == 0

    for changed in (["--model", tiny("roberta")], ["--role", "anchor"], ["--part-rows", 8], ["--long", "truncate"]):
        words = {**dict(zip(embed[2::2], embed[3::2], strict=True)), **dict([changed])}
        found = narrlit("embed", "rows.jsonl", *(word for pair in words.items() for word in pair))
        assert found.code == 2, changed
        assert "out contains embeddings with other" in found.err, changed

    make("rows.jsonl", rows[1:])

    assert "with other settings (inputs: " in narrlit(*embed).err

    Path("full").mkdir()
    Path("full/x.txt").write_text("x")
    assert "full is not empty and has no manifest.json" in narrlit(*embed[:4], "--out", "full").err
    assert (
        "--part-rows, --format, --engine and --workers apply to a folder only"
        in narrlit(*embed[:4], "--out", "a.npy", "--part-rows", 3).err
    )
    assert "no .jsonl" in narrlit("embed", "full", "--model", tiny(), "--out", "new").err


def test_two_processes_share_the_parts(narrlit, tiny, rows, monkeypatch):
    embed = ["embed", "rows.jsonl", "--model", tiny(), "--part-rows", 5]
    assert narrlit(*embed, "--out", "one").code == 0

    places = []
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setattr("torch.cuda.set_device", places.append)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    found = narrlit(*embed, "--out", "two", "--device", "cpu")

    assert "3 of 5 parts are missing: other processes write them" in found.err
    assert sorted(path.name for path in Path("two").glob("part*")) == ["part-00001.parquet", "part-00003.parquet"]
    assert manifest("two")["complete"] is False
    assert places == [1]

    for name, value in (("WORLD_SIZE", None), ("RANK", None), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "0")):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert narrlit(*embed, "--out", "two", "--device", "cpu").code == 0
    assert table("two").equals(table("one"))
    assert manifest("two")["complete"]


def test_a_killed_run_goes_on(narrlit, tiny, rows, monkeypatch):
    """kill -9 while a part is embedded; finished parts are not embedded again."""
    embed = ["embed", "rows.jsonl", "--model", tiny(), "--part-rows", "2"]
    assert narrlit(*embed, "--out", "one").code == 0

    process = multiprocessing.get_context("fork").Process(target=narrlit, args=(*embed, "--out", "two"))
    process.start()
    while not (kept := sorted(Path("two").glob("part-0000[3-9].parquet"))) and process.is_alive():
        time.sleep(0.001)
    process.kill()
    process.join()
    Path("two/.part-00009-rest.parquet").write_text("half")
    before = {path: path.stat().st_mtime_ns for path in Path("two").glob("part*")}

    assert kept
    assert len(before) < 12
    assert not manifest("two")["complete"]
    assert narrlit(*embed, "--out", "two").code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert table("two").equals(table("one"))
    assert not [*Path("two").glob(".*")]

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(embedding, "embed_stories", interrupt)
    found = narrlit(*embed, "--out", "three")

    assert found.code == 130
    assert "finished parts are kept in three: repeat the command to resume" in found.err


@pytest.mark.long
@pytest.mark.slow
def test_ray_loses_nothing_if_a_worker_dies(narrlit, tiny, rows, make, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("RAY_worker_niceness", "0")  # or tests that run at the same time starve the workers
    embed = ["embed", "rows.jsonl", "--model", tiny(), "--part-rows", 1]

    assert narrlit(*embed, "--out", "one").code == 0

    killed = []

    def kill():
        """Kill a worker of Ray once it has written."""
        while not killed and not [*Path("two").glob("part-*")]:
            time.sleep(0.005)
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            name = line.read_bytes() if line.exists() else b""
            if name.startswith(b"ray::") and b"_Worker" in name and not killed:
                killed.append(int(line.parent.name))
                os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    found = narrlit(*embed, "--out", "two", "--engine", "ray", "--workers", 1)

    assert found.code == 0, found.err

    thread.join()
    assert killed
    assert manifest("two")["complete"] is True
    assert table("two").equals(table("one"))


@pytest.mark.parametrize("format", ["parquet", "npy"])
def test_a_damaged_part_is_reported_and_embedded_again(narrlit, tiny, rows, format):
    embed = ["embed", "rows.jsonl", "--model", tiny(), "--part-rows", 5, "--format", format]
    assert narrlit(*embed, "--out", "out").code == 0

    before = {path: path.read_bytes() for path in Path("out").glob("part-*")}
    cut = Path(f"out/part-00001.{format}")
    changed = Path(f"out/part-00003.{format}")
    for complete in (True, False):
        cut.write_bytes(before[cut][:-50])
        changed.write_bytes(before[changed][:200] + bytes([before[changed][200] ^ 1]) + before[changed][201:])
        if not complete:  # as a killed run leaves it
            Path("out/manifest.json").write_text(json.dumps(manifest("out") | {"complete": False, "parts": []}))
        found = narrlit(*embed, "--out", "out")
        assert found.code == 0, found.err
        lines = [line for line in found.err.splitlines() if "damaged" in line]
        assert [line.split()[0] for line in lines] == [str(cut), str(changed)]
        assert {path: path.read_bytes() for path in Path("out").glob("part-*")} == before
        assert manifest("out")["complete"]

    assert "nothing to do" in narrlit(*embed, "--out", "out").err


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"complete": true, "settings": [], "parts": 3}'])
def test_a_damaged_manifest_costs_one_line(narrlit, tiny, rows, content):
    Path("out").mkdir()
    Path("out/manifest.json").write_text(content)
    found = narrlit("embed", "rows.jsonl", "--model", tiny(), "--out", "out")

    assert found.code == 2
    assert "manifest out/manifest.json: " in found.err
    assert len(found.err.splitlines()) == 1
    assert "name a new folder" in found.err


def test_names_that_are_no_utf8_and_models_that_no_hub_has(narrlit, tiny, rows):
    name = os.fsdecode(b"caf\xe9")
    for _ in range(2):
        assert narrlit("embed", "rows.jsonl", "--model", tiny(), "--out", name).code == 0
    assert narrlit("embed", "rows.jsonl", "--model", tiny(), "--out", f"{name}.parquet").code == 0

    found = narrlit("embed", "rows.jsonl", "--model", "my model", "--out", "out")
    assert found.code == 2, found.err
    assert "model my model: " in found.err, found.err
