"""narrlit check-data: what it prints and writes, and the files that it takes."""

import pytest
from json_files import read_json

from narrlit.api import similarity
from narrlit.data.readers import read_triples
from narrlit.encoding.loading import load
from narrlit.metrics.diagnostics import similarity_diagnostics


def test_it_prints_a_verdict_and_tables_and_writes_them(narrlit, world_files, tmp_path):
    found = narrlit("check-data", world_files / "train.jsonl", world_files / "validation.jsonl", "--out", "out")
    assert found.code == 0, found.err
    assert found.out.startswith("- No validation story is in train.\n")
    assert "validation.jsonl: 9 rows" in found.err
    assert (tmp_path / "out/check_data.md").read_text() == found.out

    check = read_json(tmp_path / "out/check_data.json")
    assert [entry["rows"] for entry in check["files"]] == [12, 9]
    assert {entry["probe"] for entry in check["probes"] if entry["set"] == "validation"} >= {
        "always_a",
        "tfidf",
        "bm25",
    }
    assert [entry["stop_words"] for entry in check["files"]] == ["english", "english"]
    assert check["verdict"][0] in found.out


def test_files_of_stories_and_triples_without_labels_are_taken(narrlit, world_files, make):
    validation = world_files / "validation.jsonl"
    bare = [
        dict(zip(("anchor_text", "text_a", "text_b"), texts, strict=True)) for texts in read_triples(validation).texts()
    ]
    found = narrlit("check-data", world_files / "stories.jsonl", validation, make("bare.jsonl", bare))

    assert found.code == 0, found.err
    assert "9 of 27 validation stories are also in train; a file of stories has no pairs to compare." in found.out
    assert "27 of 27 validation stories are also in test, with 18 pairs of anchor and candidate" in found.out
    assert "| test       | always" not in found.out


def test_labels_of_their_own_file_are_the_validation_s(narrlit, world_files, make):
    validation = world_files / "validation.jsonl"
    labels = make("labels.jsonl", [{"text_a_is_closer": True}] * 9)
    found = narrlit("check-data", world_files / "train.jsonl", validation, "--labels", labels)
    assert found.code == 0, found.err
    assert "- Shortcut: always A alone solves 100.0 % of validation (9 of 9)" in found.out


def test_training_rows_are_dropped_as_for_a_fit(narrlit, world_files, make):
    rows = [{"anchor": "x", "positive": "p", "negatives": ["q"]}, {"anchor": "y", "positive": "y", "negatives": ["z"]}]
    found = narrlit("check-data", make("train.jsonl", rows), world_files / "validation.jsonl")
    assert "train.jsonl: 1 of 2 rows, dropped 1 (1 anchor is its positive)" in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.jsonl"], "none.jsonl does not exist; check the path"),
        (["{validation}", "--threshold", "0"], "--threshold 0.0: must be above 0"),
        (["{validation}", "--labels", "{stories}"], 'column "text_a_is_closer" is missing'),
        (["{validation}", "--fusion", "equal"], "need --model"),
        ([], "VALIDATION is missing"),
    ],
)
def test_mistakes_cost_one_line(narrlit, world_files, arguments, words):
    files = {name: world_files / f"{name}.jsonl" for name in ("validation", "stories")}
    found = narrlit("check-data", world_files / "train.jsonl", *(word.format(**files) for word in arguments))
    assert found.code == 2
    assert found.out == ""
    assert len(found.err.splitlines()) == 1
    assert words in found.err


def test_training_triples_need_labels(narrlit, world_files, make):
    bare = make("bare.jsonl", [{"anchor_text": "x", "text_a": "a", "text_b": "b"}])
    found = narrlit("check-data", bare, world_files / "validation.jsonl")
    assert found.code == 2
    assert "bare.jsonl: no row can be used (1 no label); correct them" in found.err


def test_a_model_s_vectors_must_not_depend_on_other_stories(narrlit, world_files, tiny):
    files = [world_files / f"{name}.jsonl" for name in ("train", "validation", "stories")]
    found = narrlit("check-data", *files, "--model", tiny())
    assert found.code == 0, found.err
    for path, count in ((files[1], 16), (files[2], 9)):
        assert f"{path}: Track B: vectors of {count} stories alone, in other batches and in reverse" in found.out

    found = narrlit("check-data", *files, "--model", tiny(), "--postprocess", "whiten", "--transductive")
    assert found.code == 2
    assert "because of post-processing fitted on the batch" in found.err


def test_a_model_s_similarities_are_diagnosed(narrlit, world_files, make, tiny, tmp_path):
    files = [world_files / "train.jsonl", world_files / "validation.jsonl"]
    found = narrlit("check-data", *files, "--model", tiny(), "--out", "out")
    assert found.code == 0, found.err

    encoder = load(tiny())
    texts = list(dict.fromkeys(text for triple in read_triples(files[1]).texts() for text in triple))
    expected = similarity_diagnostics(similarity(texts, encoder))
    record = read_json(tmp_path / "out/check_data.json")["diagnostics"][str(files[1])]

    assert record["stories"] == 27
    assert record["hub_skewness"] == pytest.approx(expected.hub_skewness, abs=1e-4)  # float32
    assert f"{files[1]}: skewness of hubs {record['hub_skewness']:.1f}" in found.out
