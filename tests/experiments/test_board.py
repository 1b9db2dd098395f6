"""Accuracies among the public results of the shared task: differences to teams, warnings, and the table of results."""

import re
from pathlib import Path

import pytest

import narrlit
from narrlit.errors import DataError, OptionError
from narrlit.experiments.board import Board, Placement, TeamResult, parse_results, read_board
from narrlit.metrics.significance import AccuracySummary, fisher

PAGE = Path(__file__).parents[2] / "docs" / "board.md"
HEADER = "team,track,accuracy,n,source,paper"
ROW = "Owls,a,0.7500,400,https://example.org/results,https://example.org/owls"


def team(name, correct, n=400):
    address = "https://example.org"
    return TeamResult(team=name, track="a", accuracy=correct / n, n=n, source=address, paper=address)


TEAMS = [team("Owls", 300), team("Larks", 245), team("Wrens", 245), team("Crows", 180)]


def placed(correct, n=400, teams=TEAMS):
    return Placement.of("mine", AccuracySummary(n, correct), teams)


def test_a_system_is_worse_or_better_than_the_teams_far_from_it():
    mine = placed(240)

    assert [difference.value for difference in mine.differences] == pytest.approx([-0.15, -0.0125, -0.0125, 0.15])
    assert mine.teams("worse") == ["Owls"]
    assert mine.teams("better") == ["Crows"]
    assert mine.teams("") == ["Larks", "Wrens"]
    assert mine.conclusion == (
        "mine, 0.600 [0.551, 0.647] (240 of 400): worse than 1 team (Owls); better than 1 team (Crows); "
        "no difference is shown to 2 teams (Larks to Wrens)."
    )


def test_no_difference_is_shown_to_a_team_with_the_same_accuracy():
    difference = placed(300).differences[0]
    assert difference.value == 0
    assert difference.p == 1
    assert difference.verdict == ""


def test_p_is_fishers_and_corrected_for_the_number_of_teams():
    one = placed(270, teams=[team("Owls", 300)]).differences[0]
    assert one.p == pytest.approx(fisher(270, 400, 300, 400))
    assert one.adjusted_p == one.p < 0.05
    assert one.verdict == "worse"

    others = [team(f"Swifts {number}", 270) for number in range(9)]
    many = placed(270, teams=[team("Owls", 300), *others]).differences[0]
    assert many.adjusted_p == pytest.approx(10 * one.p)
    assert many.verdict == ""


def test_the_table_ranks_teams_and_puts_systems_between_them():
    board = Board("a", TEAMS, [placed(240), Placement.of("other", AccuracySummary(400, 320), TEAMS)])

    assert [(row["rank"], row["team"]) for row in board.rows()] == [
        ("(1)", "other"), ("1", "Owls"), ("2", "Larks"), ("2", "Wrens"), ("(4)", "mine"), ("4", "Crows"),
    ]  # fmt: skip

    row = board.rows()[1]
    assert row["mine minus team"].startswith("-0.150 (p < 0.001, adjusted p < 0.001) worse")
    assert row["other minus team"].startswith("+0.050 (p = 0.")
    assert list(board.table()["system"]) == ["mine"] * 4 + ["other"] * 4
    assert list(board.table()["verdict"])[:4] == ["worse", "", "", "better"]


def test_a_warning_says_that_the_triples_are_not_the_test_triples():
    dev = narrlit.board("a", correct=120, n=200, name="mine")
    assert dev.warning is not None
    assert "mine was evaluated on 200 triples, the teams on the 400 test triples" in dev.warning
    assert dev.warning in str(dev)

    test = narrlit.board("a", correct=240)
    assert test.warning is None
    assert "warning" not in str(test)


@pytest.mark.parametrize("correct", [-1, 401])
def test_a_number_of_right_answers_that_cannot_be_is_refused(correct):
    with pytest.raises(OptionError, match="`correct` must be between 0 and the number of triples, 400"):
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
    with pytest.raises(OptionError, match=f"`n={n}`"):
        narrlit.board("b", 0, n=n)
    with pytest.raises(DataError):
        placed(0, n=n)
