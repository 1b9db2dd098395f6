"""narrlit compare: tables and files of a mixture of systems, the real development set, and mistakes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from json_files import read_json_lines
from refusals import assert_refusal

from narrlit.data.readers import read_triples
from narrlit.results import Result
from narrlit.statistics.significance import mcnemar

REAL = Path(__file__).parents[2].parent / "shared/data/nsnrl"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the task's data is not here")


@pytest.fixture
def triples(world_files, make):
    """Nine triples with a column of their own."""
    rows = read_json_lines(world_files / "validation.jsonl")
    return make("triples.jsonl", [{**row, "kind": "film" if n % 3 else "book"} for n, row in enumerate(rows)])


def test_a_mixture_is_compared_and_written(narrlit, triples, tiny, make, tmp_path):
    labels = [triple.a_is_closer for triple in read_triples(triples)]
    make("oracle.jsonl", [{"text_a_is_closer": label} for label in labels])
    options = ["--answers", "oracle.jsonl", "--baselines", "all", "--by", "overlap,kind,margin", "--out", "o"]
    found = narrlit("compare", triples, "--models", f"{tiny()},meanmax:{tiny()}", *options)

    assert found.code == 0, found.err

    names = [tiny(), f"meanmax:{tiny()}", "oracle.jsonl", "random", "jaccard", "tfidf", "bm25", "longer"]
    result = Result.read(tmp_path / "o/compare.json")
    everything = result.figures[result.figures["subset"] == "all"]
    assert everything["system"].tolist() == names

    with (tmp_path / "o/answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    right = {name: [row[f"{name}.right"] == "true" for row in rows] for name in names}

    for name in names:
        assert result.estimate(name).value == np.mean(right[name])
    compared = result.differences[result.differences["subset"] == "all"].set_index("system")["p"]
    for name in names[1:]:
        assert compared[name] == pytest.approx(mcnemar(right[name], right[names[0]]))
    assert result.estimate("oracle.jsonl").value == 1
    (stop_words,) = (note for note in result.notes if note.code == "stop_words")
    assert "English" in stop_words.values["words"]
    subsets = dict.fromkeys(result.figures["subset"])
    assert [subset for subset in subsets if subset.startswith("kind: ")] == ["kind: film", "kind: book"]
    assert (tmp_path / "o/compare.md").read_text() == found.out
    assert r"\toprule" in (tmp_path / "o/compare.tex").read_text()

    again = narrlit("compare", triples, "--models", f"{tiny()},meanmax:{tiny()}", *options, "--overwrite")
    assert again.out == found.out
    assert "none computed" in again.err


def test_systems_are_placed_among_the_teams_of_the_task(narrlit, triples, tmp_path):
    found = narrlit("compare", triples, "--baselines", "jaccard,longer", "--board", "b", "--out", "o")
    assert found.code == 0, found.err

    result = Result.read(tmp_path / "o/compare.json")
    board = "SemEval-2026 Task 4, Track B"
    assert board in result.shown_tables()
    assert result.estimate("COGNAC", subset=board).value == 0.72
    warned = [note.values["system"] for note in result.notes if note.code == "other_triples"]
    assert warned == ["jaccard", "longer"]
    for name in warned:
        assert result.estimate(name, subset=board) == result.estimate(name)
        (row,) = result.differences.query("system == 'COGNAC' and against == @name").to_dict("records")
        assert row["value"] == pytest.approx(0.72 - result.estimate(name).value)


def test_without_a_board_no_team_is_named(narrlit, triples, tmp_path):
    found = narrlit("compare", triples, "--baselines", "jaccard", "--out", "o")
    assert found.code == 0, found.err
    assert "COGNAC" not in found.out
    assert "COGNAC" not in (tmp_path / "o/compare.json").read_text(encoding="utf-8")


@pytest.fixture
def two_tracks(narrlit, triples, tiny, make):
    """The nine triples' stories, and a zip of their vectors by a model and of answers to nine other triples."""
    texts = dict.fromkeys(text for triple in read_triples(triples).texts() for text in triple)
    make("stories.jsonl", [{"text": text} for text in reversed(texts)])
    evaluated = json.loads(narrlit("evaluate", triples, "--model", tiny(), "--json", "--out", "e").out)
    with Path("e/answers.csv").open() as file:
        of_model = [row[f"{tiny()}.answers_a"] == "true" for row in csv.DictReader(file)]
    make("others.jsonl", [{"text_a_is_closer": not answer} for answer in of_model])
    parts = ["--answers", "others.jsonl", "--track-a", triples, "--track-b", "stories.jsonl", "--model", tiny()]
    assert narrlit("submit", *parts, "--out", "two.zip").code == 0
    assert narrlit("submit", *parts[:4], "--out", "a.zip").code == 0
    assert narrlit("submit", *parts[4:], "--out", "b.zip").code == 0
    return round(9 * evaluated["figures"][0]["value"])


@pytest.mark.parametrize("option", ["--models", "--answers"])
def test_a_submission_is_scored_on_the_track_of_the_triples(narrlit, triples, make, two_tracks, option):
    def scored(*arguments):
        found = narrlit("compare", triples, option, *arguments, "--out", "o", "--overwrite")
        assert found.code == 0, found.err
        result = Result.read("o/compare.json")
        assert result.figures["flags"].tolist() == [f"track {flag}"]
        return round(9 * result.estimate().value)

    flag = "B"

    assert scored("two.zip", "--stories", "stories.jsonl") == two_tracks
    assert scored("two.zip", "--stories", "stories.jsonl", "--track", "b") == two_tracks
    assert scored("b.zip", "--stories", "stories.jsonl") == two_tracks

    flag = "A"
    assert scored("two.zip", "--stories", "stories.jsonl", "--track", "a") == 9 - two_tracks

    make("fewer.jsonl", Path("stories.jsonl").read_text().partition("\n")[2])  # Track B of other triples
    assert scored("two.zip", "--stories", "fewer.jsonl") == 9 - two_tracks
    assert scored("a.zip") == 9 - two_tracks


@pytest.mark.parametrize(
    ("arguments", "code", "values"),
    [
        (["two.zip"], "track_needed", {"name": "two.zip"}),
        (["b.zip"], "embeddings_need_stories", {"name": "b.zip"}),
        (["two.zip", "--track", "b"], "embeddings_need_stories", {"name": "two.zip"}),
        (["b.zip", "--track", "a"], "submission_without_track", {"contained": "B", "needed": "A", "track": "b"}),
        (["a.zip", "--stories", "stories.jsonl"], "submission_without_embeddings", {"stories": "stories.jsonl"}),
        (
            ["two.zip", "--stories", "double.jsonl"],
            "number_of_embeddings",
            {"embeddings": 27, "path": "double.jsonl", "stories": 28},
        ),
    ],
)
def test_a_submission_that_cannot_belong_to_the_triples_is_refused(
    narrlit, triples, make, two_tracks, arguments, code, values
):
    lines = Path("stories.jsonl").read_text().splitlines(keepends=True)
    assert len(lines) == 27
    make("double.jsonl", "".join([*lines, lines[0]]))
    found = narrlit("compare", triples, "--models", *arguments)
    assert found.code == 2, found.err
    assert found.out == "", found.err
    assert_refusal(found.error, code, **values)


@pytest.mark.parametrize(
    ("arguments", "code", "values"),
    [
        ([], "no_systems", {}),
        (["--baselines", "jaccard,tfidf,jaccard"], "system_twice", {"name": "jaccard"}),
        (["--baselines", "guess"], "unknown_baselines", {"baseline": "guess"}),
        (["--answers", "run"], "not_answers", {"path": "run"}),
        (["--models", "meanmax:"], "model_after_prefix", {"prefix": "meanmax:"}),
        (["--models", "minilm", "--windows", "3"], "options_need_meanmax", {}),
        (["--answers", "nan.jsonl"], "broken_answer", {"path": "nan.jsonl:1", "reason": "nan is not a finite number"}),
        (["--models", "runs/none"], "missing_model", {"model": "runs/none"}),
        (["--baselines", "all", "--by", "knd"], "unknown_facet", {"column": "knd", "near": "kind"}),
        (["--answers", "none.jsonl"], "no_such_file", {"path": "none.jsonl"}),
        (["--answers", "{triples}", "--labels", "short.jsonl"], "number_of_labels", {"n": 1, "rows": 9}),
        (["--baselines", "all", "--out", "short.jsonl"], "cannot_write", {"path": "short.jsonl/compare.json"}),
    ],
)
def test_mistakes_cost_one_line_and_exit_code_2(narrlit, triples, make, arguments, code, values):
    make("short.jsonl", [{"text_a_is_closer": True}])
    make("nan.jsonl", [{"text_a_is_closer": True, "score_a": float("nan"), "score_b": 1.0}])
    found = narrlit("compare", triples, *(word.format(triples=triples) for word in arguments))

    assert found.code == 2
    assert found.out == ""
    assert "Traceback" not in found.err
    assert_refusal(found.error, code, **values)


def test_an_error_names_options_of_the_command(narrlit, triples):
    found = narrlit("compare", triples, "--baselines", "all", "--by", "knd")
    assert found.err.splitlines()[-1].startswith("narrlit: error: --by knd: ")


@pytest.mark.long
@needs_real
def test_minilm_and_the_baselines_on_triples_of_the_task(narrlit, make, tmp_path):
    """The first 30 triples of the development set, whose whole is in docs/figures.json."""
    lines = (REAL / "dev/dev_track_a.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    triples = make("dev.jsonl", "".join(lines[:30]))
    options = ["--baselines", "all", "--by", "overlap,margin", "--out", "o", "--long", "truncate"]

    assert narrlit("compare", triples, "--models", "minilm,meanmax:minilm", *options).code == 0

    result = Result.read(tmp_path / "o/compare.json")
    everything = result.figures[result.figures["subset"] == "all"].set_index("system")["value"]
    correct = (30 * everything).round().astype(int).to_dict()
    # One triple may be decided by the last bits of a processor's sums.
    assert (correct.pop("minilm"), correct.pop("meanmax:minilm")) == pytest.approx((20, 20), abs=1)
    assert correct == {"random": 14, "jaccard": 15, "tfidf": 17, "bm25": 19, "longer": 17}

    quartiles = [result.estimate("minilm", subset=f"margin: quartile {number}") for number in range(1, 5)]
    assert [quartile.value * quartile.n for quartile in quartiles] == pytest.approx([5, 4, 4, 7], abs=1)
