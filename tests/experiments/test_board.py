"""Accuracies among the public results of the shared task: differences to teams, warnings, and the table of results."""

import re
from pathlib import Path

import pytest
from refusals import refused
from results import check_result

import narrlit
from narrlit.experiments.board import TeamResult, board_rows, parse_results, read_board
from narrlit.results import Note, Result, estimate_count
from narrlit.statistics.significance import difference_interval, fisher

PAGE = Path(__file__).parents[2] / "docs" / "board.md"
HEADER = "team,track,accuracy,n,source,paper"
ROW = "Owls,a,0.7500,400,https://example.org/results,https://example.org/owls"


def team(name, correct, n=400):
    address = "https://example.org"
    return TeamResult(team=name, track="a", accuracy=correct / n, n=n, source=address, paper=address)


TEAMS = [team("Owls", 300), team("Larks", 245), team("Wrens", 245), team("Crows", 180)]


@pytest.fixture
def four_teams(monkeypatch):
    monkeypatch.setattr("narrlit.experiments.board.read_board", lambda track: tuple(TEAMS))


def teams_of(result):
    """Teams by the code of the conclusion that names them."""
    rows = result.differences.to_dict("records")
    named = {"better": [], "worse": [], "": []}
    for row in rows:
        shown = row["p_adjusted"] < 0.05
        named[("worse" if row["value"] > 0 else "better") if shown else ""].append(row["system"])
    return named


@pytest.mark.usefixtures("four_teams")
def test_a_system_is_worse_or_better_than_the_teams_far_from_it(tmp_path):
    found = narrlit.board("a", 240, name="mine")
    check_result(found, tmp_path)

    assert found.differences["value"].tolist() == pytest.approx([0.15, 0.0125, 0.0125, -0.15])
    assert teams_of(found) == {"worse": ["Owls"], "better": ["Crows"], "": ["Larks", "Wrens"]}
    assert found.notes[:3] == [
        Note("worse_than_teams", {"system": "mine", "n": 1, "teams": "Owls"}),
        Note("better_than_teams", {"system": "mine", "n": 1, "teams": "Crows"}),
        Note("undecided_teams", {"system": "mine", "n": 2, "teams": "Larks to Wrens"}),
    ]
    assert [(row["rank"], row["system"]) for row in found.figures.to_dict("records")] == [
        ("1", "Owls"), ("2", "Larks"), ("2", "Wrens"), ("(4)", "mine"), ("4", "Crows"),
    ]  # fmt: skip


def test_p_is_fishers_and_corrected_for_the_number_of_teams(monkeypatch):
    teams = [team("Owls", 300)]
    monkeypatch.setattr("narrlit.experiments.board.read_board", lambda track: tuple(teams))
    one = narrlit.board("a", 270).differences.iloc[0]
    assert one["p"] == pytest.approx(fisher(270, 400, 300, 400))
    assert one["p_adjusted"] == one["p"] < 0.05
    assert (one["low"], one["high"]) == pytest.approx(difference_interval(0.75, 400, 0.675, 400))

    teams += [team(f"Swifts {number}", 270) for number in range(9)]
    many = narrlit.board("a", 270).differences.iloc[0]
    assert many["p_adjusted"] == pytest.approx(10 * one["p"])
    same = narrlit.board("a", 300).differences.iloc[0]
    assert (same["value"], same["p"]) == (0, 1)


@pytest.mark.usefixtures("four_teams")
def test_several_systems_are_placed_in_one_table():
    found = board_rows({"mine": estimate_count(240, 400), "other": estimate_count(320, 400)}, "a")

    assert [row["system"] for row in found.figures] == ["other", "Owls", "Larks", "Wrens", "mine", "Crows"]
    assert [row["against"] for row in found.differences] == ["mine"] * 4 + ["other"] * 4
    result = Result.of("board", found.figures, found.differences)
    (rows,) = result.shown_tables().values()
    assert rows[1].keys() >= {"difference to mine", "difference to other"}


def test_a_warning_says_that_the_triples_are_not_the_test_triples():
    dev = narrlit.board("a", correct=120, n=200, name="mine")
    assert Note("other_triples", {"system": "mine", "n": 200, "of_teams": 400}) in dev.notes
    assert "other_triples" not in [note.code for note in narrlit.board("a", correct=240).notes]


@pytest.mark.parametrize("correct", [-1, 401])
def test_a_number_of_right_answers_that_cannot_be_is_refused(correct):
    with refused("number_of_right_answers", correct=correct, n=400):
        narrlit.board("b", correct)


def test_a_row_of_results_is_read():
    (result,) = parse_results([HEADER, ROW])
    assert (result.team, result.track, result.correct, result.n) == ("Owls", "a", 300, 400)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0.7500", "75.00", "less than or equal to 1"),
        ("0.7500", "0.7510", "not a whole number of 400 answers"),
        ("0.7500", "", "valid number"),
        (",a,", ",c,", "'a' or 'b'"),
        (",400,", ",0,", "greater than 0"),
        ("Owls", "", "at least 1 character"),
        ("https://example.org/results", "the page", "match pattern"),
        ("https://example.org/owls", "https://example.org/owls,more", "Keys should be strings|Extra inputs"),
    ],
)
def test_an_invalid_row_of_results_is_refused(old, new, words):
    assert old in ROW
    with pytest.raises(ValueError, match=words):
        parse_results([HEADER, ROW.replace(old, new)])


def test_a_team_with_two_results_in_a_track_is_refused():
    with pytest.raises(ValueError, match="Owls has two results in track a"):
        parse_results([HEADER, ROW, ROW])
    assert len(parse_results([HEADER, ROW, ROW.replace(",a,", ",b,")])) == 2


def test_the_package_has_the_complete_board():
    """71 submissions of 46 teams, as the abstract of the task's paper says."""
    board_a, board_b = read_board("a"), read_board("b")
    assert (len(board_a), len(board_b)) == (44, 27)
    assert len({result.team for result in (*board_a, *board_b)}) == 46
    assert {result.n for result in (*board_a, *board_b)} == {400}
    assert (board_a[0].team, board_a[0].correct) == ("COGNAC", 312)


def test_the_docs_show_every_result_with_its_rank():
    cells = r"\| \[(.+?)\]\((\S+?)\) \|(.*)\|(.*)\|(.*)\|(.*)\|"
    shown = set()
    for name, paper, *values in re.findall(cells, PAGE.read_text(encoding="utf-8")):
        rank_a, accuracy_a, rank_b, accuracy_b = (value.strip() for value in values)
        shown |= {("a", name, paper, rank_a, accuracy_a), ("b", name, paper, rank_b, accuracy_b)}

    expected = set()
    for track in ("a", "b"):
        results = read_board(track)
        for result in results:
            rank = 1 + sum(other.correct > result.correct for other in results)
            expected.add((track, result.team, result.paper, str(rank), f"{100 * result.accuracy:.2f}"))

    assert {entry for entry in shown if entry[4]} == expected


@pytest.mark.parametrize("n", [0, -1])
def test_a_board_needs_triples(n):
    with refused("at_least", option="n", found=n, least=1):
        narrlit.board("b", 0, n=n)
