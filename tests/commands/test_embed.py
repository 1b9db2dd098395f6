"""narrlit embed and export: files of embeddings, refusals, and folders for sentence-transformers."""

import io
import json
import signal
from pathlib import Path

import numpy as np
import pandas
import pytest
from json_files import read_json_lines, write_json_lines
from pyarrow import parquet
from sentence_transformers import SentenceTransformer

from narrlit.data.rows import read_rows
from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.encoder import Encoder


def peer_embeddings(folder, texts):
    return SentenceTransformer(folder, device="cpu").encode(texts)


@pytest.fixture
def embedded(narrlit, tiny, tmp_path):
    """(embed, expected): the command for two stories between which an empty one is left out, and their embeddings."""
    rows = [
        {"title": "One", "plot": "A b.", "year": 1890, "tags": ["x"], "id": 7},
        {"plot": " "},
        {"plot": "C d.", "title": "Two", "lang": None, "id": 8},
    ]
    write_json_lines(tmp_path / "s.jsonl", rows)

    def embed(out):
        options = ("--model", tiny(), "--text-column", "plot")
        result = narrlit("embed", "s.jsonl", *options, "--out", out)
        assert result.code == 0, result.err

    return embed, peer_embeddings(tiny(), ["A b.", "C d."])


def test_npy_holds_the_embeddings_beside_a_table_of_the_columns(embedded):
    embed, expected = embedded
    embed("v.npy")

    assert abs(np.load("v.npy", allow_pickle=False) - expected).max() < 1e-5

    columns = pandas.read_csv("v.columns.csv", dtype=str, keep_default_na=False)
    assert columns.loc[0].to_dict() == {
        "row": "0",
        "title": "One",
        "year": "1890",
        "tags": '["x"]',
        "id": "7",
        "lang": "",
    }


def test_json_lines_hold_the_embeddings_and_all_columns(embedded):
    embed, expected = embedded
    embed("v.jsonl")
    rows = read_json_lines("v.jsonl")

    assert np.allclose([row.pop("embedding") for row in rows], expected, atol=1e-5)
    assert rows == [
        {"row": 0, "title": "One", "plot": "A b.", "year": 1890, "tags": ["x"], "id": 7},
        {"row": 1, "plot": "C d.", "title": "Two", "lang": None, "id": 8},
    ]


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_tables_of_text_hold_the_embeddings_and_all_columns(embedded, suffix, delimiter):
    embed, expected = embedded
    embed(f"v.{suffix}")
    table = pandas.read_csv(f"v.{suffix}", sep=delimiter, dtype=str, keep_default_na=False)

    assert table[["id", "title", "year", "tags"]].values.tolist() == [
        ["7", "One", "1890", '["x"]'],
        ["8", "Two", "", ""],
    ]
    assert np.allclose([*table["embedding"].map(json.loads)], expected, atol=1e-5)


def test_parquet_holds_the_embeddings_and_all_columns(embedded):
    embed, expected = embedded
    embed("v.parquet")
    table = parquet.read_table("v.parquet").to_pydict()

    assert table["title"] == ["One", "Two"]
    assert table["year"] == [1890, None]
    assert table["row"] == [0, 1]
    assert np.allclose(table["embedding"], expected, atol=1e-5)


def test_a_sheet_holds_the_embeddings_and_all_columns(embedded):
    embed, expected = embedded
    embed("v.xlsx")
    table = pandas.read_excel("v.xlsx", keep_default_na=False)

    assert table[["plot", "year", "tags"]].values.tolist() == [["A b.", 1890, '["x"]'], ["C d.", "", ""]]
    assert np.allclose(table[[f"embedding_{number}" for number in range(1, 33)]], expected, atol=1e-5)


def test_a_column_that_the_file_of_embeddings_needs_is_refused(embedded, narrlit, tiny):
    Path("v.jsonl").write_text('{"plot": "A b.", "row": 7}\n')
    result = narrlit("embed", "v.jsonl", "--model", tiny(), "--text-column", "plot", "--out", "w.jsonl")

    assert result.code == 2
    assert "rename column row" in result.err


def test_embed_reads_a_folder_and_standard_input(narrlit, tiny, tmp_path, monkeypatch):
    (tmp_path / "tales").mkdir()
    for name, text in (("a.txt", "A b.\n\nC d."), ("b.md", "# Title\nE f.")):
        (tmp_path / "tales" / name).write_text(text)

    assert narrlit("embed", "tales", "--model", tiny(), "--out", "v.npy").code == 0
    assert abs(np.load("v.npy") - peer_embeddings(tiny(), ["A b.\n\nC d.", "E f."])).max() < 1e-5
    assert [row.value["title"] for row in read_rows("v.columns.csv").rows] == ["", "Title"]

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"A b.\nC d.\n")))
    found = narrlit("embed", "-", "--split", "lines", "--model", tiny(), "--out", "w.npy")
    assert found.code == 0
    assert "standard input: 2 rows" in found.err
    assert not (tmp_path / "w.columns.csv").exists()
    assert abs(np.load("w.npy") - peer_embeddings(tiny(), ["A b.", "C d."])).max() < 1e-5


def test_embed_checks_the_limits_of_a_workbook_before_embedding(narrlit, tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps({"text": "a" * 40_000}))
    found = narrlit("embed", "s.jsonl", "--model", "none", "--out", "v.xlsx")
    assert found.code == 2
    assert "row 1 has a text of 40,000 characters" in found.err


def test_stories_in_other_languages_are_reported_for_a_model_of_one(narrlit, tiny, tmp_path, monkeypatch):
    german = "Als der Winter kam, zog der Schmied mit seiner Tochter in die Stadt, denn er hatte das Haus verloren."
    english = "A young cellist found that her scholarship came from the man who had ruined her grandfather."
    (tmp_path / "s.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in [german, english, english]))
    embed = ["embed", "s.jsonl", "--model", tiny(), "--out", "v.npy", "--overwrite"]

    assert "warning: 33 % of the stories are not in English (de), and the model has" in narrlit(*embed).err

    monkeypatch.setattr("narrlit.models.coverage.MULTILINGUAL", 1)
    assert "warning: the stories are in several languages (67 % en, 33 % de)" in narrlit(*embed).err

    (tmp_path / "s.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in [german, german]))
    assert "warning" not in narrlit(*embed).err

    monkeypatch.undo()
    (tmp_path / "s.jsonl").write_text(json.dumps({"text": english}))
    assert "warning" not in narrlit(*embed).err


def test_embed_leaves_out_an_invalid_row_or_stops_at_it(narrlit, tiny, tmp_path):
    (tmp_path / "s.jsonl").write_text('{"text": "A b."}\n{"text": " "}\n')
    found = narrlit("embed", "s.jsonl", "--model", tiny(), "--out", "v.npy", "--strict")
    assert found.code == 2
    assert "s.jsonl:2" in found.err
    assert not (tmp_path / "v.npy").exists()
    assert narrlit("embed", "s.jsonl", "--model", tiny(), "--out", "v.npy").code == 0
    assert np.load("v.npy").shape == (1, 32)


def test_a_model_with_role_prompts_embeds_one_role_and_evaluates_both(narrlit, world_files, tiny, tmp_path):
    Encoder(EncoderConfig(tiny(), prompts=Prompts(anchor="query: ", candidate="passage: "))).save(tmp_path / "m")
    stories = world_files / "stories.jsonl"
    for arguments, role in (
        (["embed", stories, "--model", "m", "--out", "v.npy"], "give a --role,"),
        (["submit", "--model", "m", "--track-b", stories], "give a `role`,"),  # which it has not
    ):
        found = narrlit(*arguments)
        assert found.code == 2
        assert "'query: '" in found.err
        assert role in found.err

    assert not list(tmp_path.glob("*.npy")) + list(tmp_path.glob("*.zip"))

    by_role = {}
    for role in ("anchor", "candidate"):
        assert narrlit("embed", stories, "--model", "m", "--role", role, "--out", f"{role}.npy").code == 0
        by_role[role] = np.load(f"{role}.npy")

    assert abs(by_role["anchor"] - by_role["candidate"]).max() > 1e-3
    assert narrlit("evaluate", world_files / "validation.jsonl", "--model", "m").code == 0


@pytest.mark.parametrize("command", ["embed", "submit", "export"])
def test_the_output_is_checked_before_embedding(narrlit, tmp_path, command):
    (tmp_path / "file").write_text("x")
    # Neither the stories nor the model is there: a search for them would fail first.
    arguments = {
        "embed": ["none.jsonl", "--model", "none", "--out", "file/v.npy"],
        "submit": ["--track-b", "none.jsonl", "--model", "none", "--out", "file/s.zip"],
        "export": ["none", "--out", "file"],
    }
    found = narrlit(command, *arguments[command])

    assert found.code == 2
    assert ("file exists and is not empty" if command == "export" else "cannot write file/") in found.err


def test_export_gives_the_same_embeddings_and_never_overwrites(narrlit, tiny, tmp_path):
    assert narrlit("export", tiny(), "--out", "out").code == 0

    texts = ["One story.", "Another, longer story about a ship."]
    assert abs(peer_embeddings("out", texts) - peer_embeddings(tiny(), texts)).max() < 1e-6

    card = (tmp_path / "out/README.md").read_text()
    assert "SentenceTransformer(" in card
    assert "not trained on stories" in card
    assert (tmp_path / "out/model.safetensors").stat().st_mode & 0o044

    found = narrlit("export", tiny(), "--out", "out")
    assert found.code == 2
    assert "--overwrite" in found.err


def test_an_interrupt_prints_that_nothing_is_kept(narrlit, world_files, tiny, monkeypatch):
    monkeypatch.setattr("narrlit.models.embedding.embed_stories", lambda *_: signal.raise_signal(signal.SIGINT))
    found = narrlit("embed", world_files / "stories.jsonl", "--model", tiny(), "--out", "v.npy")
    kept = "finished embeddings are kept in runs/embeddings: repeat the command to resume"
    last = f"narrlit: interrupted: {kept}; v.npy is unchanged"

    assert found.code == 130
    assert found.err.splitlines()[-1] == last


def test_for_a_missing_model_similar_names_or_the_offline_variable_are_printed(narrlit, world_files, monkeypatch):
    def load(source, **_):
        raise ModelError("unloadable_model", path=source, reason="not reached")

    monkeypatch.setattr("narrlit.models.registry.load_encoder", load)
    embed = ["embed", world_files / "stories.jsonl", "--out", "v.npy", "--model"]

    assert "does not exist (did you mean stories.jsonl?)" in narrlit(*embed, world_files / "storys.jsonl").err

    found = narrlit(*embed, "org/name")
    assert "not reached; see --model; HF_HUB_OFFLINE is set, which prevents downloads: unset it" in found.err
    assert "HF_HUB" not in narrlit(*embed, "minilm").err


@pytest.mark.parametrize(("word", "count"), [("--by-blank-line", 2), ("--one-per-line", 3)])
def test_a_former_option_is_read_as_the_new_one(narrlit, tiny, tmp_path, word, count):
    tales, vectors = tmp_path / "tales.txt", tmp_path / "v.npy"
    tales.write_text("A fox saw grapes.\n\nA hare\nlost a race.\n", encoding="utf-8")
    found = narrlit("embed", str(tales), word, "--model", str(tiny()), "--out", str(vectors))
    assert found.code == 0, found.err
    assert f"{word} is --split=" in found.err
    assert len(np.load(vectors)) == count
