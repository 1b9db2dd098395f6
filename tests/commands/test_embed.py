"""narrlit embed and export: files of embeddings, refusals, and folders for sentence-transformers."""

import csv
import json
import os
import signal

import numpy as np
import pytest

from narrlit.data.readers import read_stories
from narrlit.errors import ModelError, OptionError
from narrlit.files import check_writable


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
        assert "'query: '" in found.err
        assert ("--role anchor or --role candidate" in found.err) == (arguments[0] == "embed")
    assert not list(tmp_path.glob("*.npy")) + list(tmp_path.glob("*.zip"))
    by_role = {}
    for role in ("anchor", "candidate"):
        found = narrlit("embed", world_files / "stories.jsonl", "--model", "m", "--role", role, "--out", "v.npy")
        assert found.code == 0, found.err
        by_role[role] = np.load("v.npy")
    assert abs(by_role["anchor"] - by_role["candidate"]).max() > 1e-3
    assert narrlit("evaluate", world_files / "validation.jsonl", "--model", "m").code == 0


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


def test_export_gives_the_same_vectors_and_never_overwrites(narrlit, tiny, tmp_path):
    assert narrlit("export", tiny(), "--out", "out").code == 0
    texts = ["One story.", "Another, longer story about a ship."]
    assert abs(peer_vectors("out", texts) - peer_vectors(tiny(), texts)).max() < 1e-6
    assert "SentenceTransformer" in (tmp_path / "out/README.md").read_text()
    found = narrlit("export", tiny(), "--out", "out")
    assert found.code == 2
    assert "not empty" in found.err


def test_embed_keeps_all_columns_in_every_table(narrlit, tiny, tmp_path):
    rows = [
        {"title": "One", "text": "A b.", "year": 1890, "tags": ["x"]},
        {"text": "C d.", "title": "Two", "lang": None},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [rows[0], {"text": " "}, rows[1]]))
    for suffix in ("npy", "jsonl", "csv", "tsv", "parquet"):
        found = narrlit("embed", "s.jsonl", "--model", tiny(), "--drop-invalid", "--out", f"v.{suffix}")
        assert found.code == 0, found.err
    kept = [json.loads(line) for line in (tmp_path / "v.jsonl").open()]
    assert [{**row, "row": n} for n, row in enumerate(rows)] == [
        {name: value for name, value in row.items() if name != "embedding"} for row in kept
    ]
    for suffix, delimiter in (("csv", ","), ("tsv", "\t")):
        with (tmp_path / f"v.{suffix}").open(newline="") as file:
            table = list(csv.DictReader(file, delimiter=delimiter))
        assert [(row["title"], row["year"], row["tags"]) for row in table] == [
            ("One", "1890", '["x"]'),
            ("Two", "", ""),
        ]
        assert np.allclose([json.loads(row["embedding"]) for row in table], np.load("v.npy"))
    from pyarrow.parquet import read_table

    table = read_table("v.parquet").to_pydict()
    assert (table["title"], table["year"]) == (["One", "Two"], [1890, None])
    assert np.allclose(table["embedding"], np.load("v.npy"))
    found = narrlit("embed", "v.jsonl", "--model", tiny(), "--out", "w.jsonl")
    assert (found.code, "rename its column embedding" in found.err) == (2, True)


@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN or infinite"), (0.0, "all zeros")])
def test_embeddings_without_a_cosine_are_refused(narrlit, world_files, tiny, monkeypatch, tmp_path, value, words):
    def broken(encoder, texts, *_):
        embeddings = np.ones((len(texts), 4), np.float32)
        embeddings[2] = value
        return embeddings, 0

    monkeypatch.setattr("narrlit.models.embedding.embed", broken)
    for command in (
        ["embed", world_files / "stories.jsonl", "--out", "v.npy"],
        ["submit", "--track-b", world_files / "stories.jsonl", "--out", "s.zip"],
    ):
        found = narrlit(*command, "--model", tiny())
        assert (found.code, f"story 3 (1 of 9) is {words}; its weights are broken" in found.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_says_that_nothing_is_kept(narrlit, world_files, tiny, monkeypatch):
    monkeypatch.setattr("narrlit.models.embedding.embed", lambda *_: signal.raise_signal(signal.SIGINT))
    found = narrlit("embed", world_files / "stories.jsonl", "--model", tiny(), "--out", "v.npy")
    assert (found.code, found.err.splitlines()[-1]) == (
        130,
        "narrlit: interrupted: nothing is kept; v.npy is as it was",
    )


def test_a_model_name_is_resolved_or_refused_at_once(narrlit, world_files, monkeypatch, tmp_path):
    def load(source, *_):
        raise ModelError(f"loaded {source}")

    monkeypatch.setattr("narrlit.models.source.load_encoder", load)
    for version in ("version_0", "version_1"):
        (tmp_path / "runs/hits" / version).mkdir(parents=True)
        (tmp_path / "runs/hits" / version / "run.json").write_text("{}")
    os.utime(tmp_path / "runs/hits/version_0/run.json", (1, 1))
    (tmp_path / "runs/empty").mkdir()
    embed = ["embed", world_files / "stories.jsonl", "--out", "v.npy", "--model"]
    found = narrlit(*embed, "runs/hits")
    assert "--model runs/hits: version_1, the newest of 2" in found.err
    assert "error: loaded runs/hits/version_1" in found.err
    assert "does not exist (did you mean hits?); runs holds empty, hits" in narrlit(*embed, "runs/hist").err
    assert "--model runs/empty: the folder is empty" in narrlit(*embed, "runs/empty").err
    found = narrlit(*embed, "org/name")
    assert "loaded org/name; HF_HUB_OFFLINE is set, so that nothing is downloaded: unset it" in found.err
    assert "HF_HUB" not in narrlit(*embed, "minilm").err
