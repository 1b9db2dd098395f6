"""Public results of SemEval-2026 Task 4, and accuracies measured here among them."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from narrlit.console import counted
from narrlit.data.schema import Track
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.report import Entry, Report
from narrlit.metrics.significance import AccuracySummary, fisher, holm, p_text
from narrlit.tables import markdown_table

TABLE = files("narrlit") / "tables" / "board.csv"
"""The results page as of 30 June 2026, after all system papers were published: 46 teams, 71 submissions."""
LEVEL = 0.05
Verdict = Literal["better", "worse", ""]
"""Whether a system is better or worse than a team; empty if no difference is shown."""


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
    def summary(self) -> AccuracySummary:
        """Accuracy with its interval."""
        return AccuracySummary(self.n, self.correct)


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


@dataclass(frozen=True)
class TeamDifference:
    """Difference of a system to a team.

    Attributes:
        team: result of the team.
        value: accuracy of the system minus that of the team.
        p: p of Fisher's exact test.
        adjusted_p: p, corrected for the number of teams.
    """

    team: TeamResult
    value: float
    p: float
    adjusted_p: float

    @property
    def verdict(self) -> Verdict:
        """`better` or `worse` if the adjusted p is below the level, else empty."""
        if self.adjusted_p >= LEVEL:
            return ""
        return "better" if self.value > 0 else "worse"

    def record(self) -> Entry:
        """Return the values as plain data."""
        return {"difference": self.value, "p": self.p, "adjusted_p": self.adjusted_p, "verdict": self.verdict}

    def __str__(self) -> str:
        """Format difference, p and verdict."""
        cell = f"{self.value:+.3f} ({p_text(self.p)}, adjusted {p_text(self.adjusted_p)}) {self.verdict}"
        return cell.rstrip()


@dataclass(frozen=True)
class Placement:
    """Accuracy of a system, and its difference to each team.

    Attributes:
        name: name of the system.
        accuracy: accuracy of the system.
        differences: differences to the teams, in their order.
    """

    name: str
    accuracy: AccuracySummary
    differences: Sequence[TeamDifference]

    @classmethod
    def of(cls, name: str, accuracy: AccuracySummary, teams: Sequence[TeamResult]) -> "Placement":
        """Compare a system with teams; p is corrected for their number (Holm).

        Raises:
            DataError: if the system has no triples.
        """
        p_values = [fisher(accuracy.correct, accuracy.n, team.correct, team.n) for team in teams]
        differences = []
        for team, p, adjusted_p in zip(teams, p_values, holm(p_values), strict=True):
            differences.append(TeamDifference(team, accuracy.accuracy - team.accuracy, p, adjusted_p))
        return cls(name, accuracy, differences)

    def teams(self, verdict: Verdict) -> list[str]:
        """List the teams than which the system is `better` or `worse`; with an empty verdict, the others."""
        return [difference.team.team for difference in self.differences if difference.verdict == verdict]

    @property
    def conclusion(self) -> str:
        """Accuracy, and the teams to which a difference is shown."""
        parts = []
        if worse := self.teams("worse"):
            parts.append(f"worse than {_named(worse)}")
        if better := self.teams("better"):
            parts.append(f"better than {_named(better)}")
        if others := self.teams(""):
            parts.append(f"no difference is shown to {_named(others)}")
        return f"{self.name}, {self.accuracy}: {'; '.join(parts)}."

    def record(self) -> Entry:
        """Return accuracy and differences as plain data."""
        differences = {difference.team.team: difference.record() for difference in self.differences}
        return {**self.accuracy.as_dict(), "conclusion": self.conclusion, "differences": differences}


def _named(teams: Sequence[str]) -> str:
    """Name the first and the last of some teams."""
    ends = teams[0] if len(teams) == 1 else f"{teams[0]} to {teams[-1]}"
    return f"{counted(len(teams), 'team')} ({ends})"


@dataclass(frozen=True, eq=False)
class Board:
    """Official results of a track, and accuracies measured here among them.

    Attributes:
        track: track of the results.
        teams: results of the teams, best first.
        placements: the systems measured here.
    """

    track: Track
    teams: Sequence[TeamResult]
    placements: Sequence[Placement]

    @property
    def title(self) -> str:
        """Title of the table."""
        return f"SemEval-2026 Task 4, Track {self.track.upper()}"

    @property
    def warning(self) -> str | None:
        """Warning that the systems were not evaluated on the test triples; None if their number is that of the teams.

        Only the numbers are compared: the test triples do not come with the package.
        """
        n = self.teams[0].n
        for placement in self.placements:
            if placement.accuracy.n != n:
                return (
                    f"warning: {placement.name} was evaluated on {counted(placement.accuracy.n, 'triple')}, the teams "
                    f"on the {n} test triples: accuracies on different triples can't be compared"
                )
        return None

    def table(self) -> pd.DataFrame:
        """Tabulate the differences, one row per system and team."""
        rows = []
        for placement in self.placements:
            for difference in placement.differences:
                team = difference.team.model_dump()
                rows.append({"system": placement.name, **team, **difference.record()})
        return pd.DataFrame(rows)

    def rows(self) -> list[Entry]:
        """Format teams and systems in the order of their accuracies; the rank of a system is in parentheses."""
        ranked: list[tuple[float, Entry]] = []
        for number, team in enumerate(self.teams):
            row = self._row(f"{self._rank(team.accuracy)}", team.team, team.summary)
            for placement in self.placements:
                row[f"{placement.name} minus team"] = str(placement.differences[number])
            ranked.append((team.accuracy, row))
        for placement in self.placements:
            accuracy = placement.accuracy
            row = self._row(f"({self._rank(accuracy.accuracy)})", placement.name, accuracy)
            ranked.append((accuracy.accuracy, row))
        ranked.sort(key=lambda pair: -pair[0])
        return [row for _, row in ranked]

    def _rank(self, accuracy: float) -> int:
        """Return the rank of an accuracy among the teams; equal accuracies share a rank."""
        return 1 + sum(team.accuracy > accuracy for team in self.teams)

    def _row(self, rank: str, team: str, accuracy: AccuracySummary) -> Entry:
        """Format the first cells of a row."""
        return {"rank": rank, "team": team, "accuracy, 95 % interval": report.accuracy_cell(accuracy.as_dict())}

    def notes(self) -> list[str]:
        """List conclusions, the warning, the source and the test."""
        notes = [placement.conclusion for placement in self.placements]
        if self.warning is not None:
            notes.append(f"{self.warning}.")
        num_teams = counted(len(self.teams), "team")
        notes.append(f"Teams: official results, {self.teams[0].source}; 95 % intervals (Wilson).")
        notes.append(
            "Minus team: difference of the accuracies. Only the number of a team's right answers is known: this p is "
            "from Fisher's exact test, which takes all answers as independent; a paired test would usually find more "
            f"differences. Adjusted p is corrected for {num_teams} (Holm); below 0.05, the system is better or worse."
        )
        return notes

    def record(self) -> Entry:
        """Return results and placements as plain data."""
        return {
            "track": self.track,
            "warning": self.warning,
            "teams": [{"rank": self._rank(team.accuracy), **team.model_dump()} for team in self.teams],
            "systems": {placement.name: placement.record() for placement in self.placements},
        }

    def added_to(self, comparison: Report) -> Report:
        """Add the board to the report on a comparison."""
        return replace(
            comparison,
            content={**comparison.content, "board": self.record()},
            tables={**comparison.tables, self.title: self.rows()},
            notes=[*comparison.notes, *self.notes()],
        )

    def __str__(self) -> str:
        """Format the table and the notes in Markdown."""
        return "\n".join([markdown_table(self.title, self.rows()), *self.notes()])


def place(accuracies: Mapping[str, AccuracySummary], track: Track) -> Board:
    """Place the accuracies of systems, by name, among the results of a track."""
    teams = read_board(track)
    placements = [Placement.of(name, accuracy, teams) for name, accuracy in accuracies.items()]
    return Board(track, teams, placements)


def board(track: Track, correct: int, n: int = 400, *, name: str = "this system") -> Board:
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
        A `Board`: `.placements[0].conclusion`, `.warning`, `.table()`. It is printed as a table.

    Raises:
        OptionError: if there are no triples, or `correct` is not between 0 and n.

    >>> mine = board("b", correct=240).placements[0]
    >>> print(mine.accuracy, mine.teams("worse"))
    0.600 [0.551, 0.647] (240 of 400) ['COGNAC', 'YNU-HPCC']
    """
    if n < 1:
        raise OptionError(f"`n={n}`: give the number of triples, at least 1")
    if not 0 <= correct <= n:
        raise OptionError(f"`correct` must be between 0 and the number of triples, {n}, not {correct}")
    return place({name: AccuracySummary(n, correct)}, track)
