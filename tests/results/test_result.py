"""A result: its table, what it writes and reads back, its text, its plot."""

import csv
import json
import math
from pathlib import Path
from string import Formatter

import numpy as np
import pytest
from refusals import refused
from results import check_result

import narrlit
from narrlit.results import Estimate, Note, Result
from narrlit.results.notes import NOTE_SENTENCES
from narrlit.statistics.estimates import difference, estimate

RIGHT = np.arange(40) % 3 > 0
BETTER = np.arange(40) % 5 > 0


def two_systems(**others):
    figures = [estimate(RIGHT).row("minilm"), estimate(BETTER).row("mine")]
    for bin, places in (("short", slice(0, 15)), ("long", slice(15, 40))):
        for name, answers in (("minilm", RIGHT), ("mine", BETTER)):
            figures.append(estimate(answers[places]).row(name, subset=f"length: {bin}"))
    compared = [difference(BETTER, RIGHT).row("mine", "minilm")]
    return Result.of("compare", figures, compared, **others)


def of_folds():
    figures = []
    for fold in (0, 1, None):
        for metric in ("last_epoch", "best_epoch"):
            figures.append(estimate(RIGHT).row("trained", metric, fold=fold, epoch=3))
    return Result.of("crossval", figures)


def test_a_result_of_two_systems_is_a_table_with_differences(tmp_path):
    answers = [{"row": 1, "text": "=1+1"}, {"row": 2, "text": "b"}]
    result = two_systems(answers=answers, settings={"triples": "dev.jsonl"}, notes=[Note.of("by_length")])
    check_result(result, tmp_path)

    table = result.table()
    assert table["difference"].tolist()[1] == pytest.approx(BETTER.mean() - RIGHT.mean())
    assert table["p_adjusted"].tolist()[1] == table["p"].tolist()[1]
    assert math.isnan(table["difference"].tolist()[0])
    assert list(result.shown_tables()) == ["", "length"]
    assert result.shown_tables()["length"][0].keys() == {"length", "n", "minilm", "mine"}
    assert [note.code for note in result.notes] == ["by_length", "interval_wilson", "test_mcnemar"]
    assert result.estimate("mine", subset="length: short") == estimate(BETTER[:15])
    with (tmp_path / "answers.csv").open(encoding="utf-8-sig") as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["1", "2"]


def test_a_result_of_folds_has_a_row_for_each(tmp_path):
    result = of_folds()
    check_result(result, tmp_path)

    (rows,) = result.shown_tables().values()
    assert [row["fold"] for row in rows] == ["0", "1", ""]
    assert rows[0].keys() == {"system", "fold", "n", "last_epoch", "best_epoch"}
    assert result.estimate(fold=1, metric="best_epoch") == estimate(RIGHT)


def test_differences_of_several_metrics_are_a_table_of_their_own(tmp_path):
    figures, compared = [], []
    for metric in ("recall@1", "mrr"):
        for name, values in (("a", RIGHT), ("b", BETTER), ("c", ~RIGHT)):
            figures.append(estimate(values).row(name, metric))
        compared += [difference(BETTER, RIGHT).row("b", "a", metric), difference(~RIGHT, RIGHT).row("c", "a", metric)]
    result = Result.of("retrieval", figures, compared)
    check_result(result, tmp_path)

    rows = result.shown_tables()["Differences"]
    assert [(row["system"], row["against"]) for row in rows] == [("b", "a"), ("c", "a")]
    assert rows[0].keys() == {"system", "against", "recall@1", "mrr"}
    assert ["adjusted" in row["mrr"] for row in rows] == [False, True]
    assert result.notes[-1] == Note.of("adjusted_p", n=2)
    assert (result.differences["p_adjusted"] >= result.differences["p"]).all()


@pytest.mark.parametrize(
    "result",
    [
        Result.of("empty", []),
        Result.of("one", [estimate(RIGHT).row("minilm")]),
        Result.of("part", [estimate(RIGHT).row("minilm", subset="task: triples")]),
        Result.of("parts", [estimate(RIGHT).row("minilm", subset=f"task: {number}") for number in range(2)]),
        Result.of("without", [Estimate(math.nan, math.nan, math.nan, 3).row("minilm"), estimate(RIGHT).row("b")]),
        Result.of("escaped", [estimate(RIGHT).row("<b>|"), estimate(RIGHT).row("_&%")]),
    ],
    ids=lambda result: result.name,
)
def test_every_result_is_written_and_read(result, tmp_path):
    check_result(result, tmp_path)


def test_a_system_in_html_is_text():
    html = Result.of("escaped", [estimate(RIGHT).row("<b>x"), estimate(RIGHT).row("y")])._repr_html_()

    assert "&lt;b&gt;x" in html
    assert "<b>" not in html


def test_a_single_figure_is_one_line():
    of_part = Result.of("one", [estimate(RIGHT).row("minilm", subset="task: triples")])
    assert str(of_part).splitlines()[0].endswith("n = 40 (task: triples)")
    assert str(Result.of("one", [estimate(RIGHT).row("minilm")])).startswith("minilm: accuracy 0.650 [")


def test_parts_of_different_size_show_n_in_each_cell():
    figures = [estimate(RIGHT[:5]).row(name, subset="label: A") for name in ("one", "two")]
    figures += [estimate(RIGHT).row("one", subset="label: B"), estimate(RIGHT[:9]).row("two", subset="label: B")]
    first, second = Result.of("judge", figures).shown_tables()["label"]
    assert list(first) == ["label", "one", "two"]
    assert [second[name].partition(", n = ")[2] for name in ("one", "two")] == ["40", "9"]


def test_systems_of_a_named_subset_and_of_folds_are_rows():
    figures = [estimate(RIGHT).row(name, subset="train") for name in ("longer", "jaccard")]
    for name in ("one", "two"):
        figures += [estimate(RIGHT).row(name, subset="folds", weights=[1, 0], fold=fold) for fold in (0, 1)]
    tables = Result.of("fuse", figures).shown_tables()
    assert [row["system"] for row in tables["train"]] == ["longer", "jaccard"]
    assert [(row["system"], row["fold"]) for row in tables["folds"]] == [(n, f) for n in ("one", "two") for f in "01"]
    assert list(tables["folds"][0])[:3] == ["system", "fold", "weights"]


def test_an_unknown_figure_names_those_that_there_are():
    with refused("no_figure", systems=["minilm", "mine"]):
        two_systems().estimate("other")


def test_a_file_that_is_no_result_is_refused(tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"figures": []}), encoding="utf-8")
    with refused("broken_result", path="other.json"):
        Result.read(tmp_path / "other.json")


def test_a_note_names_all_of_its_values():
    with pytest.raises(KeyError):
        Note.of("better", systems=["a"])
    assert str(Note.of("better", systems=["a", "b"], against="c")) == "a, b: better than c."
    assert str(Note.of("adjusted_p", n=1)).count("1 comparison ") == 1


def test_a_deviation_is_shown_with_the_value_of_its_metric(tmp_path):
    figures = [
        estimate(RIGHT).row("trained", "last_epoch", deviation=0.02),
        estimate(RIGHT).row("trained", "best_epoch", deviation=0.03),
        estimate(RIGHT).row("trained", "last_epoch", seed=1),
    ]
    compared = [difference(BETTER, RIGHT).row("trained", "frozen", "last_epoch", deviation=0.01)]
    result = Result.of("seeds", figures, compared)
    check_result(result, tmp_path)
    mean, _ = result.shown_tables()[""]
    value, low, high, _, _ = estimate(RIGHT)
    assert mean["last_epoch"] == f"{value:.3f} ± 0.020 [{low:.3f}, {high:.3f}]"
    assert " ± 0.030 " in mean["best_epoch"]
    assert "deviation" not in mean
    (row,) = result.shown_tables()["Differences"]
    assert " ± 0.010 " in row["last_epoch"]
    assert "adjusted" not in row["last_epoch"]  # the only comparison
    assert [label.get_text() for label in result.plot().get_yticklabels()] == ["trained", "trained, seed 1"]


def test_rows_with_columns_of_their_own_are_not_columns_of_a_facet():
    figures = [estimate(RIGHT).row(f"trial_{n}", subset="trials", scale=n) for n in (1, 2)]
    rows = Result.of("tune", figures).shown_tables()["trials"]
    assert [(row["system"], row["scale"]) for row in rows] == [("trial_1", "1"), ("trial_2", "2")]


def test_every_code_is_used_and_every_sentence_names_its_values():
    files = sorted(Path(narrlit.__file__).parent.rglob("*.py"))
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    for code, sentence in NOTE_SENTENCES.items():
        names = [name for _, name, _, _ in Formatter().parse(sentence) if name is not None]
        assert all(names), code
        stem = code.partition("_")[0]
        is_composed = stem in {"interval", "test", "by"} and f'f"{stem}_' in sources
        assert f'"{code}"' in sources.replace(f'    "{code}": ', "") or is_composed, f"{code} is not used"
