"""narrlit index and search at an address: Ray with a killed worker, a killed run, an S3 server."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import boto3
import lancedb
import pytest
from moto.server import ThreadedMotoServer
from ray_workers import KilledWorker

from narrlit.data.storyworld import StoryWorld
from narrlit.library.vector_table import VectorTable


@pytest.fixture
def rows(make):
    """23 stories in rows.jsonl, with ids."""
    texts = [triple.anchor.text for triple in StoryWorld(7).triples(23)]
    rows = [{"id": f"{number:03d}", "plot": text} for number, text in enumerate(texts)]
    make("rows.jsonl", rows)
    return rows


def contents(address, **options):
    """Return row, id, text and vector of all stories, in the order of the rows."""
    table = lancedb.connect(address, **options).open_table("stories")
    return table.search().select(["row", "id", "text", "vector"]).to_arrow().sort_by("row")


def test_the_command_makes_a_table_and_search_reads_it(narrlit, tiny, rows, tmp_path):
    address = f"file://{tmp_path}/plots"
    indexed = narrlit("index", "rows.jsonl", "--model", tiny(), "--out", address, "--part-rows", 5)
    assert indexed.code == 0, indexed.err
    assert f"{address}: 23 stories" in indexed.err

    found = narrlit("search", address, rows[4]["plot"], "--k", 2, "--where", "id != '007'")
    assert found.code == 0, found.err
    assert "004" in found.out.splitlines()[1]
    written = narrlit("search", address, "--like", "011", "--out", "best.csv")
    assert written.code == 0, written.err
    assert "written: best.csv" in written.err


def test_options_that_do_not_apply_are_refused(narrlit, tiny, rows, tmp_path):
    address = f"file://{tmp_path}/plots"
    model = ("--model", tiny())

    parts = narrlit("index", "rows.jsonl", *model, "--out", "folder", "--workers", 2)
    assert "--part-rows, --engine and --workers apply to an address only" in parts.err
    lines = narrlit("index", "rows.jsonl", *model, "--out", address, "--split", "lines")
    assert "--split reads all stories at once" in lines.err
    assert narrlit("index", "rows.jsonl", *model, "--out", address).code == 0
    measure = narrlit("search", address, "A king.", "--measure", "fused")
    assert measure.code == 2
    assert "a vector table is searched by --measure cosine, with --k and --where" in measure.err
    length = narrlit("search", address, "A king.", "--max-length", 64)
    assert "leave out --max-length" in length.err


@pytest.mark.long
@pytest.mark.slow
def test_ray_writes_each_story_once_if_one_of_two_workers_dies(narrlit, tiny, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("RAY_worker_niceness", "0")  # or tests that run at the same time starve the workers
    index = ["index", "rows.jsonl", "--model", tiny(), "--part-rows", 1]
    assert narrlit(*index, "--out", f"file://{tmp_path}/one").code == 0

    worker = KilledWorker(lambda: any(Path("two/stories.lance/data").glob("*")))
    worker.start()
    indexed = narrlit(*index, "--out", f"file://{tmp_path}/two", "--engine", "ray", "--workers", 2)

    assert indexed.code == 0, indexed.err
    assert worker.killed
    two, one = contents(f"file://{tmp_path}/two"), contents(f"file://{tmp_path}/one")
    assert two["row"].to_pylist() == list(range(23))
    assert two.equals(one)


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_run_is_resumed_with_each_story_once(narrlit, tiny, rows, tmp_path):
    address = f"file://{tmp_path}/plots"
    index = ["index", "rows.jsonl", "--model", str(tiny()), "--part-rows", "1", "--out", address]
    data = Path("plots/stories.lance/data")
    process = subprocess.Popen([sys.executable, "-m", "narrlit", *index], stderr=subprocess.DEVNULL)
    while len(list(data.glob("*"))) < 3 and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    committed = len(VectorTable(address))

    assert 0 < committed < 23
    resumed = narrlit(*index)
    assert resumed.code == 0, resumed.err
    assert contents(address)["row"].to_pylist() == list(range(23))


@pytest.fixture
def store(monkeypatch):
    """An S3 server with a bucket, to which the variables of the environment point; its storage options."""
    server = ThreadedMotoServer(port=0, verbose=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server._port = free.getsockname()[1]
    server.start()
    endpoint = f"http://127.0.0.1:{server._port}"
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys).create_bucket(Bucket="bucket")
    options = {**keys, "aws_endpoint": endpoint, "aws_region": "us-east-1", "allow_http": "true"}
    yield options
    server.stop()


@pytest.mark.slow
def test_a_table_in_an_object_store_is_written_resumed_and_searched(narrlit, tiny, rows, store, monkeypatch):
    """The command takes the options of the store from the environment, Python as `storage_options`."""
    for name, value in store.items():
        monkeypatch.setenv(name.upper() if name.startswith("aws") else "AWS_ALLOW_HTTP", value)
    index = ["index", "rows.jsonl", "--model", tiny(), "--out", "s3://bucket/plots", "--part-rows", 5]
    assert narrlit(*index).code == 0
    again = narrlit(*index)
    assert again.code == 0, again.err
    assert "5 parts are already there" in again.err
    found = narrlit("search", "s3://bucket/plots", rows[4]["plot"], "--k", 1)
    assert "004" in found.out, found.err

    for name in [*os.environ]:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    table = VectorTable("s3://bucket/plots", storage_options=store)
    assert len(table) == 23
    assert table.like("004", k=1).table()["id"].tolist() != ["004"]
    assert contents("s3://bucket/plots", storage_options=store)["row"].to_pylist() == list(range(23))
