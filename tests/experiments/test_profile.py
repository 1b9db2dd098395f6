"""narrlit.profile: what a model's similarity depends on, on Twice Told and on other files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from json_files import write_json_lines
from refusals import refused
from results import check_result

import narrlit
from narrlit.data.twice_told import CELLS, TwiceTold
from narrlit.experiments.profile import ASPECTS, estimate_by_plot, profile_figures
from narrlit.exporting import strengths
from narrlit.results import Result
from narrlit.statistics.estimates import estimate
from narrlit.statistics.factorial import VARIANCE_COMPONENTS
from narrlit.statistics.significance import group_intervals

PART = {"split": "test"}


@pytest.fixture(scope="module")
def result(tiny):
    return narrlit.profile({"tiny": tiny()})


def of_subset(result, subset, system="tfidf"):
    return result.estimate(system, subset=subset)


@pytest.mark.long
def test_words_depend_on_worlds_and_not_on_plots(result):
    shares = {component: of_subset(result, f"share: {component}").value for component in VARIANCE_COMPONENTS}
    assert shares["world"] > 1.5 * abs(shares["plot"])
    assert sum(shares.values()) == pytest.approx(1)
    assert of_subset(result, "triples: far, strong").high < 0.5


def test_a_model_that_knows_plots_has_a_large_share_of_plots():
    corpus = TwiceTold.read()
    names = [plot.plot for plot in corpus.plots]
    tellings = [*corpus.tellings, *corpus.changes]
    vectors = np.eye(len(names))[[names.index(telling.plot) for telling in tellings]]
    changed = np.array([telling.changed == "outcome" for telling in tellings])
    vectors[changed] *= 0.5
    noise = np.random.default_rng(0).normal(size=(len(tellings), len(tellings))) * 1e-3
    knows = Result.of("profile", list(profile_figures("plots", vectors @ vectors.T + noise + noise.T, corpus)))

    assert of_subset(knows, "share: plot", "plots").value > 0.99
    for cell in CELLS:
        assert of_subset(knows, f"triples: {cell}", "plots").value == 1
    assert of_subset(knows, "fall: outcome", "plots").low > 100
    for aspect in ("theme", "action"):
        assert abs(of_subset(knows, f"fall: {aspect}", "plots").value) < 1


@pytest.mark.long
def test_every_figure_has_its_interval_and_is_drawn(result, tmp_path):
    check_result(result, tmp_path)
    assert list(dict.fromkeys(result.figures["system"])) == ["tiny", "tfidf"]
    facets = result.figures["subset"].str.partition(": ")[0]
    assert facets.value_counts().to_dict() == {"share": 8, "fall": 6, "triples": 8}
    assert result.figures[["low", "high"]].notna().all().all()
    assert result.settings == {"measure": "cosine", "split": None, "plots": 48, "worlds": 8}

    drawn = result.plot().figure.axes
    assert [len(axes.containers) for axes in drawn] == [len(VARIANCE_COMPONENTS), len(ASPECTS), len(CELLS)]
    assert result.plot("accuracy", "triples: far, strong").get_xlabel() == "accuracy, 95 % interval"


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
    write_json_lines(choices, [question, {**question, "answer": 0}])
    result = narrlit.profile({"tiny": tiny()}, **PART, sets=[sets], choices=[choices])
    added = result.figures[result.figures["subset"].str.startswith("set: ")]

    assert added[["system", "subset", "n"]].to_numpy().tolist() == [
        ["tiny", "set: own: near", 1],
        ["tiny", "set: own: far", 1],
        ["tiny", "set: questions", 2],
        ["tfidf", "set: own: near", 1],
        ["tfidf", "set: own: far", 1],
    ]
    assert of_subset(result, "set: questions", "tiny") == estimate([True, False])
    assert of_subset(result, "set: own: near").value == of_subset(result, "set: own: far").value == 1
    check_result(result, tmp_path / "out")


def test_intervals_of_other_triples_are_by_plot(tiny, tmp_path):
    row = {"anchor_text": "A fox steals bread.", "text_a": "It rains.", "text_b": "A fox steals.", "cell": "far"}
    rows = [{**row, "text_a_is_closer": number < 50, "plot": f"plot {number // 25}"} for number in range(100)]
    write_json_lines(tmp_path / "own.jsonl", rows)
    tfidf = of_subset(narrlit.profile({"tiny": tiny()}, **PART, sets=[tmp_path / "own.jsonl"]), "set: own: far")
    correct = [[0.0]] * 50 + [[1.0]] * 50

    assert tfidf.value == 0.5
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
    stories = [[number // 3, 100 + number, 200 + number] for number in range(12)]

    assert of_subset(result, "set: own: far") == estimate(np.arange(12) > 2, stories)
    assert of_subset(result, "set: own: far").method == "by_story"


def test_two_worlds_give_no_intervals_of_shares_and_a_note_says_so(tiny, tmp_path):
    result = narrlit.profile({"tiny": tiny()}, **PART)
    has_interval = result.figures["low"].notna().groupby(result.figures["subset"].str.partition(": ")[0]).mean()

    assert result.settings["worlds"] == 2
    assert "few_worlds" in {note.code for note in result.notes}
    assert has_interval["share"] == 0
    assert has_interval["triples"] == 1
    # A model card, too.
    result.write(tmp_path / "out")
    assert "plot" in strengths.describe(tmp_path / "out/profile.json", "tiny")


def test_few_plots_or_equal_values_give_no_interval():
    few = estimate_by_plot([0.0, 1.0, 1.0], ["a", "b", "c"])
    assert few.value == pytest.approx(2 / 3)
    unbounded = estimate_by_plot(np.full(8, 0.3), np.arange(8), bounds=(-np.inf, np.inf))
    assert np.isnan([few.low, few.high, unbounded.low, unbounded.high]).all()
    assert few.method == unbounded.method == "none"
    assert str(unbounded) == "0.300, n = 8"


def test_mistakes_are_named(tiny, tmp_path):
    choices = tmp_path / "q.jsonl"
    for line, code, values in (
        ({"anchor_text": "A", "choices": ["B", "C"], "answer": 2}, "no_such_choice", {"answer": 2, "choices": 2}),
        ({"anchor_text": "A", "choices": ["B"], "answer": 0}, "broken_question", {"path": "q.jsonl:1"}),
    ):
        choices.write_text(json.dumps(line) + "\n")
        with refused(code, **values):
            narrlit.profile(tiny(), **PART, choices=[choices])

    with refused("empty_list", option="models"):
        narrlit.profile([])
    with refused("unknown_choice", option="split", found="dev"):
        narrlit.profile(tiny(), split="dev")


@pytest.mark.parametrize("words", [["first", "second"], ["first,second"], ["first,", "second"]])
def test_the_command_writes_what_it_prints_for_models_separated_by_spaces_or_commas(narrlit, tiny, words):
    for name in ("first", "second"):
        shutil.copytree(tiny(), name)

    found = narrlit("profile", *words, "--split", "validation", "--out", "o")

    assert found.code == 0, found.err
    result = Result.read("o/profile.json")
    assert list(dict.fromkeys(result.figures["system"])) == ["first", "second", "tfidf"]
    assert f"{result}\n" == found.out == Path("o/profile.md").read_text()
    assert Path("o/profile.svg").stat().st_size > 0
