"""Public results of SemEval-2026 Task 4, and accuracies measured here among them."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from narrlit.data.schema import Track
from narrlit.errors import OptionError
from narrlit.results import Difference, Estimate, Note, Result, Row, adjusted, estimate_count
from narrlit.statistics.significance import LEVEL, difference_interval, fisher

TABLE = files("narrlit") / "published" / "board.csv"
"""The results page as of 30 June 2026, after all system papers were published: 46 teams, 71 submissions."""
TASK = "SemEval-2026 Task 4"


class TeamResult(BaseModel):
    """Official result of a team in a track.

    Attributes:
        team: name of the team.
        track: track of the submission.
        accuracy: share of right answers, from 0 to 1.
        n: number of test triples.
        source: address of the page with the result.
        paper: address of the team's paper.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    team: str = Field(min_length=1)
    track: Track
    accuracy: float = Field(ge=0, le=1)
    n: int = Field(gt=0)
    source: str = Field(pattern="^https://")
    paper: str = Field(pattern="^https://")

    @model_validator(mode="after")
    def _check_count(self) -> "TeamResult":
        """Check that the accuracy is a whole number of right answers."""
        if abs(self.accuracy * self.n - self.correct) > 1e-6:
            raise ValueError(f"an accuracy of {self.accuracy} is not a whole number of {self.n} answers")
        return self

    @property
    def correct(self) -> int:
        """Number of right answers."""
        return round(self.accuracy * self.n)

    @property
    def estimate(self) -> Estimate:
        """Accuracy with its interval."""
        return estimate_count(self.correct, self.n)


def parse_results(lines: Iterable[str]) -> list[TeamResult]:
    """Parse results in CSV.

    Raises:
        ValueError: if a row is invalid, or a team has two results in a track.
    """
    results = []
    seen = set()
    for row in csv.DictReader(lines):
        result = TeamResult.model_validate(row)
        key = (result.team, result.track)
        if key in seen:
            raise ValueError(f"{result.team} has two results in track {result.track}")
        seen.add(key)
        results.append(result)
    return results


@cache
def read_board(track: Track) -> tuple[TeamResult, ...]:
    """Read the official results of all teams in a track, best first.

    Source: the results page of the task, https://narrative-similarity-task.github.io/results/; Hatzel, Artemova,
    Stiemer, Gius and Biemann (2026), SemEval-2026 Task 4.

    >>> [(result.team, result.accuracy) for result in read_board("b")[:2]]
    [('COGNAC', 0.72), ('YNU-HPCC', 0.7125)]
    """
    with TABLE.open(encoding="utf-8") as file:
        results = [result for result in parse_results(file) if result.track == track]
    return tuple(sorted(results, key=lambda result: -result.accuracy))


class BoardRows(NamedTuple):
    """Rows of a board: figures of teams and systems, best first; differences of the teams to the systems; notes."""

    figures: list[Row]
    differences: list[Row]
    notes: list[Note]


def board_rows(accuracies: Mapping[str, Estimate], track: Track) -> BoardRows:
    """Place the accuracies of systems, by name, among the results of a track.

    Only the number of a team's right answers is known, so that the answers can't be paired.
    """
    teams = read_board(track)
    subset = f"{TASK}, Track {track.upper()}"
    all_accuracies = {team.team: team.estimate for team in teams} | dict(accuracies)
    figures = []
    for name, accuracy in sorted(all_accuracies.items(), key=lambda pair: -pair[1].value):
        rank = 1 + sum(team.accuracy > accuracy.value for team in teams)
        figures.append(accuracy.row(name, subset=subset, rank=f"({rank})" if name in accuracies else str(rank)))
    differences: list[Row] = []
    notes = []
    for name, accuracy in accuracies.items():
        right = round(accuracy.value * accuracy.n)
        rows = []
        for team in teams:
            interval = difference_interval(team.accuracy, team.n, accuracy.value, accuracy.n)
            p = fisher(team.correct, team.n, right, accuracy.n)
            found = Difference(team.accuracy - accuracy.value, *interval, p, "fisher", team.n)
            rows.append(found.row(team.team, name, subset=subset))
        differences += rows
        notes += _conclusions(name, rows)
        if accuracy.n != teams[0].n:
            notes.append(Note.of("other_triples", system=name, n=accuracy.n, of_teams=teams[0].n))
    notes.append(Note.of("board", source=teams[0].source))
    return BoardRows(figures, differences, notes)


def _conclusions(name: str, differences: Sequence[Row]) -> list[Note]:
    """List the teams than which a system is better or worse; a team's difference is that to the system."""
    teams: dict[str, list[str]] = {"worse_than_teams": [], "better_than_teams": [], "undecided_teams": []}
    for row in adjusted(differences):
        shown = row["p_adjusted"] < LEVEL
        code = ("worse_than_teams" if row["value"] > 0 else "better_than_teams") if shown else "undecided_teams"
        teams[code].append(row["system"])
    return [Note.of(code, system=name, n=len(names), teams=_ends(names)) for code, names in teams.items() if names]


def _ends(names: Sequence[str]) -> str:
    """Name the first and the last of some teams."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def board(track: Track, correct: int, n: int = 400, *, name: str = "this system") -> Result:
    """Place a number of right answers among the public results of SemEval-2026 Task 4.

    Only the number of a team's right answers is known, so that the answers can't be paired. The difference to a team is
    tested by Fisher's exact test, corrected for the number of teams (Holm). It is conservative: the same triples are
    hard for most systems, and a paired test would usually find more differences.

    Args:
        track: track of the results, `a` or `b`.
        correct: number of right answers.
        n: number of triples; the teams were evaluated on 400.
        name: name of the system.

    Returns:
        A `Result`: accuracies of the teams and the system, differences of the teams to it, and the conclusion as notes.

    Raises:
        OptionError: if there are no triples, or `correct` is not between 0 and n.

    >>> print(board("b", correct=240).notes[0])
    this system: worse than 2 teams (COGNAC to YNU-HPCC).
    """
    if n < 1:
        raise OptionError("at_least", option="n", found=n, least=1)
    if not 0 <= correct <= n:
        raise OptionError("number_of_right_answers", correct=correct, n=n)
    placed = board_rows({name: estimate_count(correct, n)}, track)
    return Result.of("board", placed.figures, placed.differences, settings={"track": track}, notes=placed.notes)
