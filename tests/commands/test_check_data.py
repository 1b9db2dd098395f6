"""narrlit data check: what it prints and writes, and the files that it takes."""

import pytest
from json_files import read_json_lines
from refusals import assert_refusal
from results import check_result

from narrlit.api import similarity
from narrlit.data.readers import read_triples
from narrlit.encoding.loading import load
from narrlit.experiments.data_check import check_data
from narrlit.results import Result
from narrlit.statistics.diagnostics import similarity_diagnostics


def values(result, code):
    """Values of the notes with a code."""
    return [note.values for note in result.notes if note.code == code]


def test_it_prints_findings_and_tables_and_writes_them(narrlit, world_files, tmp_path):
    found = narrlit("data", "check", world_files / "train.jsonl", world_files / "validation.jsonl", "--out", "out")
    assert found.code == 0, found.err
    assert "validation.jsonl: 9 rows" in found.err
    assert (tmp_path / "out/check_data.md").read_text() == found.out

    result = Result.read(tmp_path / "out/check_data.json")
    assert values(result, "nothing_shared")[0]["of"] == "validation"
    assert [file["rows"] for file in result.settings["files"]] == [12, 9]
    assert [file["stop_words"] for file in values(result, "checked_set")] == ["english", "english"]
    assert set(result.figures["system"][result.figures["subset"] == "validation"]) >= {"always_a", "tfidf", "bm25"}
    assert result.estimate("always_a", subset="validation").n == 9
    check_result(result, tmp_path / "again")


def test_lines_of_shared_stories_and_figures_by_source(world_files, make, tmp_path):
    rows = read_json_lines(world_files / "validation.jsonl")
    sourced = make("sourced.jsonl", [{**row, "source": "ab"[place % 2]} for place, row in enumerate(rows * 2)])
    result = check_data(world_files / "train.jsonl", sourced, world_files / "validation.jsonl")

    lines = result.answers.query("set == 'validation' and other == 'test' and jaccard == 1")
    assert lines["line"].tolist() == lines["other_line"].tolist()
    assert len(lines) == 27
    halves = [result.estimate("always_a", subset=f"validation, source: {name}") for name in "ab"]
    assert sum(half.n for half in halves) == 18
    check_result(result, tmp_path)


def test_files_of_stories_and_triples_without_labels_are_taken(narrlit, world_files, make, tmp_path):
    validation = world_files / "validation.jsonl"
    bare = [
        dict(zip(("anchor_text", "text_a", "text_b"), texts, strict=True)) for texts in read_triples(validation).texts()
    ]
    found = narrlit(
        "data", "check", world_files / "stories.jsonl", validation, make("bare.jsonl", bare), "--out", "out"
    )

    assert found.code == 0, found.err
    result = Result.read(tmp_path / "out/check_data.json")
    alone = values(result, "shared_alone")[0]
    assert [alone[name] for name in ("shared", "stories", "of", "within")] == [9, 27, "validation", "train"]
    pairs = values(result, "shared_pairs")[0]
    assert [pairs[name] for name in ("shared", "stories", "of", "within", "pairs")] == [
        27,
        27,
        "validation",
        "test",
        18,
    ]
    assert set(result.figures["subset"]) == {"validation"}


def test_labels_of_their_own_file_are_the_validation_s(world_files, make):
    labels = make("labels.jsonl", [{"text_a_is_closer": True}] * 9)
    result = check_data(world_files / "train.jsonl", world_files / "validation.jsonl", labels=labels)
    assert values(result, "shortcut")[-1]["probe"] == "always A"
    assert result.estimate("always_a", subset="validation").value == 1


def test_training_rows_are_dropped_as_for_a_fit(narrlit, world_files, make):
    rows = [{"anchor": "x", "positive": "p", "negatives": ["q"]}, {"anchor": "y", "positive": "y", "negatives": ["z"]}]
    found = narrlit("data", "check", make("train.jsonl", rows), world_files / "validation.jsonl")
    assert "train.jsonl: 1 of 2 rows, dropped 1 (1 anchor is its positive)" in found.err


@pytest.mark.parametrize(
    ("arguments", "code", "values"),
    [
        (["none.jsonl"], "no_such_file", {"path": "none.jsonl"}),
        (["{validation}", "--threshold", "0"], "share_above_zero", {"option": "threshold", "found": 0}),
        (["{validation}", "--labels", "{stories}"], "missing_label_column", {"column": "text_a_is_closer"}),
        (["{validation}", "--fusion", "equal"], "options_need_option", {"option": "model", "options": ["fusion"]}),
        ([], "invalid_arguments", {"problem": "VALIDATION is missing"}),
    ],
)
def test_mistakes_cost_one_line(narrlit, world_files, arguments, code, values):
    files = {name: world_files / f"{name}.jsonl" for name in ("validation", "stories")}
    found = narrlit("data", "check", world_files / "train.jsonl", *(word.format(**files) for word in arguments))
    assert found.code == 2
    assert found.out == ""
    assert len(found.err.splitlines()) == 1
    assert_refusal(found.error, code, **values)


def test_training_triples_need_labels(narrlit, world_files, make):
    bare = make("bare.jsonl", [{"anchor_text": "x", "text_a": "a", "text_b": "b"}])
    found = narrlit("data", "check", bare, world_files / "validation.jsonl")
    assert found.code == 2
    assert "bare.jsonl: no row can be used (1 no label); correct them" in found.err


def test_a_model_s_vectors_must_not_depend_on_other_stories(narrlit, world_files, tiny):
    files = [world_files / f"{name}.jsonl" for name in ("train", "validation", "stories")]
    found = narrlit("data", "check", *files, "--model", tiny())
    assert found.code == 0, found.err
    for path, count in ((files[1], 16), (files[2], 9)):
        assert f"{path}: Track B: vectors of {count} stories alone, in other batches and in reverse" in found.out

    found = narrlit("data", "check", *files, "--model", tiny(), "--postprocess", "whiten", "--transductive")
    assert found.code == 2
    assert "because of post-processing fitted on the batch" in found.err


def test_a_model_s_similarities_are_diagnosed(narrlit, world_files, make, tiny, tmp_path):
    files = [world_files / "train.jsonl", world_files / "validation.jsonl"]
    found = narrlit("data", "check", *files, "--model", tiny(), "--out", "out")
    assert found.code == 0, found.err

    encoder = load(tiny())
    texts = list(dict.fromkeys(text for triple in read_triples(files[1]).texts() for text in triple))
    expected = similarity_diagnostics(similarity(texts, encoder))
    result = Result.read(tmp_path / "out/check_data.json")
    hubs = result.estimate(metric="hub skewness", subset="stories: validation")

    assert hubs.n == 27
    assert hubs.value == pytest.approx(expected.hub_skewness, abs=1e-4)  # float32
    assert len(values(result, "hubs")) == len(expected.warnings)
    assert [note["file"] for note in values(result, "independent")] == [str(files[1])]
