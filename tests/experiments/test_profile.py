"""narrlit.profile: what a model's similarity depends on, on Twice Told and on other files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from json_files import write_json_lines

import narrlit
from narrlit.data.twice_told import CELLS, TwiceTold
from narrlit.errors import DataError, OptionError
from narrlit.experiments import profile as module
from narrlit.exporting import strengths
from narrlit.metrics.factorial import FEWEST
from narrlit.metrics.significance import AccuracySummary, group_intervals

PART = {"split": "test"}


@pytest.fixture(scope="module")
def result(tiny):
    return narrlit.profile({"tiny": tiny()})


@pytest.mark.long
def test_words_depend_on_worlds_and_not_on_plots(result):
    tfidf = result.models[-1]
    assert tfidf.name == "tfidf"
    assert tfidf.shares["world"].share > 1.5 * abs(tfidf.shares["plot"].share)
    assert tfidf.cells["far, strong"].high < 0.5
    assert sum(share.share for share in tfidf.shares.values()) == pytest.approx(1)


def test_a_model_that_knows_plots_has_a_large_share_of_plots():
    corpus = TwiceTold.read()
    names = [plot.plot for plot in corpus.plots]
    tellings = [*corpus.tellings, *corpus.changes]
    vectors = np.eye(len(names))[[names.index(telling.plot) for telling in tellings]]
    changed = np.array([telling.changed == "outcome" for telling in tellings])
    vectors[changed] *= 0.5
    noise = np.random.default_rng(0).normal(size=(len(tellings), len(tellings))) * 1e-3
    knows = module._profile("plots", vectors @ vectors.T + noise + noise.T, corpus)

    assert knows.shares["plot"].share > 0.99
    assert {cell: knows.cells[cell].mean for cell in CELLS} == dict.fromkeys(CELLS, 1.0)
    assert knows.falls["outcome"].low > 100
    assert abs(knows.falls["theme"].mean) < 1 > abs(knows.falls["action"].mean)


@pytest.mark.long
def test_tables_have_every_figure_with_its_interval(result):
    frame = result.table()
    assert set(frame["model"]) == {"tiny", "tfidf"}
    assert frame.groupby("group")["name"].nunique().to_dict() == {"cell": 4, "fall": 3, "share": 4}
    assert (frame["low"] <= frame["value"] + 1e-9).all()
    assert (frame["value"] <= frame["high"] + 1e-9).all()

    text = str(result)
    assert "Twice Told: 48 plots in 8 worlds; measure cosine" in text
    assert "| far, strong" in text


def test_other_triples_and_questions_are_added(tiny, tmp_path):
    triples = [
        {"anchor_text": "A king falls ill.", "text_a": "A queen falls ill.", "text_b": "A fox steals.", "cell": "near"},
        {"anchor_text": "A fox steals bread.", "text_a": "It rains.", "text_b": "A fox steals.", "cell": "far"},
    ]
    rows = [{**row, "text_a_is_closer": number == 0} for number, row in enumerate(triples)]
    sets = tmp_path / "own.jsonl"
    choices = tmp_path / "questions.jsonl"
    write_json_lines(sets, rows)
    question = {"anchor_text": "A fox steals bread.", "choices": ["It rains.", "A fox steals bread."], "answer": 1}
    choices.write_text(json.dumps(question) + "\n")
    result = narrlit.profile({"tiny": tiny()}, **PART, sets=[sets], choices=[choices])
    accuracies = result.models[0].accuracies

    assert list(accuracies) == ["own: near", "own: far", "questions"]
    assert [accuracy.n for accuracy in accuracies.values()] == [1, 1, 1]
    assert accuracies["questions"].mean == 1

    tfidf = result.models[-1].accuracies
    assert {name: accuracy.mean for name, accuracy in tfidf.items()} == {"own: near": 1, "own: far": 1}
    assert "Other sets" in str(result)


def test_intervals_of_other_triples_are_by_plot(tiny, tmp_path):
    row = {"anchor_text": "A fox steals bread.", "text_a": "It rains.", "text_b": "A fox steals.", "cell": "far"}
    rows = [{**row, "text_a_is_closer": number < 50, "plot": f"plot {number // 25}"} for number in range(100)]
    write_json_lines(tmp_path / "own.jsonl", rows)
    result = narrlit.profile({"tiny": tiny()}, **PART, sets=[tmp_path / "own.jsonl"])
    [tfidf] = result.models[-1].accuracies.values()
    correct = [[0.0]] * 50 + [[1.0]] * 50

    assert tfidf.mean == 0.5
    assert [(tfidf.low, tfidf.high)] == group_intervals(correct, np.repeat(np.arange(4), 25))
    assert tfidf.high - tfidf.low > 0.5
    assert tfidf.n == 100


def test_without_plots_intervals_account_for_shared_stories(tiny, tmp_path):
    rows = []
    for number in range(12):
        candidates = {"text_a": f"It rains {number}.", "text_b": f"A fox steals {number}."}
        anchor = {"anchor_text": f"A fox {number // 3} steals.", "cell": "far"}
        rows.append({**anchor, **candidates, "text_a_is_closer": number < 3})
    write_json_lines(tmp_path / "own.jsonl", rows)
    result = narrlit.profile({"tiny": tiny()}, **PART, sets=[tmp_path / "own.jsonl"])
    [tfidf] = result.models[-1].accuracies.values()
    stories = [[number // 3, 100 + number, 200 + number] for number in range(12)]

    assert tfidf.mean == 0.75
    assert (tfidf.low, tfidf.high) == AccuracySummary.of(np.arange(12) > 2, stories).interval


def test_two_worlds_give_no_intervals_of_shares_and_the_report_says_why(tiny, tmp_path):
    result = narrlit.profile({"tiny": tiny()}, **PART)
    assert result.num_worlds == 2 < FEWEST
    result.write(tmp_path / "out")
    content = json.loads((tmp_path / "out/profile.json").read_text())
    for model in content["models"]:
        assert {(share["low"], share["high"]) for share in model["shares"].values()} == {(None, None)}
        assert all(cell["low"] < cell["high"] for cell in model["cells"].values())
    assert content["intervals"] == result.interval_note
    assert "worlds" in result.interval_note
    shares = result.table().query("group == 'share'")
    assert shares["low"].isna().all()
    # A model card, too.
    assert "plot" in strengths.describe(tmp_path / "out/profile.json", "tiny")


def test_few_plots_or_equal_values_give_no_interval():
    few = module._estimate_by_group(np.array([0.0, 1.0, 1.0]), ["a", "b", "c"])
    assert (few.mean, few.low, few.high, few.interval) == (pytest.approx(2 / 3), None, None, None)
    unbounded = module._estimate_by_group(np.full(8, 0.3), np.arange(8), bounds=(-np.inf, np.inf))
    assert unbounded.interval is None
    assert str(unbounded) == "0.300"


def test_mistakes_are_named(tiny, tmp_path):
    choices = tmp_path / "q.jsonl"
    for line, words in (
        ({"anchor_text": "A", "choices": ["B", "C"], "answer": 2}, "q.jsonl:1: answer 2: there are 2 choices, from 0"),
        ({"anchor_text": "A", "choices": ["B"], "answer": 0}, "q.jsonl:1"),
    ):
        choices.write_text(json.dumps(line) + "\n")
        with pytest.raises(DataError, match=words):
            narrlit.profile(tiny(), **PART, choices=[choices])

    with pytest.raises(OptionError, match="at least one"):
        narrlit.profile([])
    with pytest.raises(OptionError, match="split=dev"):
        narrlit.profile(tiny(), split="dev")


def test_the_command_prints_and_writes_what_python_returns(narrlit, tiny, tmp_path):
    found = narrlit("profile", tiny(), "--split", "validation", "--out", "o")
    assert found.code == 0, found.err

    content = json.loads(Path("o/profile.json").read_text())
    assert [model["model"] for model in content["models"]][-1] == "tfidf"
    assert Path("o/profile.md").read_text().strip() == found.out.strip()
    assert {path.name for path in Path("o").iterdir()} >= {"profile.csv", "profile.svg"}


@pytest.mark.parametrize("words", [["first", "second"], ["first,second"], ["first,", "second"]])
def test_models_are_separated_by_spaces_or_commas(narrlit, tiny, words):
    for name in ("first", "second"):
        shutil.copytree(tiny(), name)

    found = narrlit("profile", *words, "--split", "validation", "--out", "o")

    assert found.code == 0, found.err
    content = json.loads(Path("o/profile.json").read_text())
    assert [model["model"] for model in content["models"]] == ["first", "second", "tfidf"]
