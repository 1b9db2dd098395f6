"""Analyses of collections: groups of retellings, agreement with a column, ranking of versions, exact words."""

from collections.abc import Hashable, Mapping, Sequence
from math import isfinite

from narrlit.experiments.retrieval import retrieval
from narrlit.explore.agreement import neighbor_agreement
from narrlit.explore.analysis_answers import (
    ColumnAgreementAnswer,
    RetellingsAnswer,
    agreement_answer,
    retellings_answer,
)
from narrlit.explore.concordance import occurrences
from narrlit.explore.confounds import confounds
from narrlit.explore.map_answer import Value
from narrlit.serving.analysis_models import (
    ConcordanceAnswer,
    ConcordanceLine,
    ConfoundAnswer,
    ConfoundsAnswer,
    RankingAnswer,
    RankingDifference,
    RankingFigure,
)
from narrlit.serving.results import ResultKey, Results
from narrlit.serving.shelf import Snapshot
from narrlit.serving.workers import Workers

NEIGHBORS = 10
"""Nearest neighbors of a story that are compared with a column."""


class Analyses:
    """Analyses of a server's collections, each kept until its collection changes."""

    def __init__(self, workers: Workers) -> None:
        """Take the threads that compute the analyses."""
        self._retellings: Results[RetellingsAnswer] = Results(workers)
        self._agreements: Results[ColumnAgreementAnswer] = Results(workers)
        self._rankings: Results[RankingAnswer] = Results(workers)
        self._confounds: Results[ConfoundsAnswer] = Results(workers)

    def retellings(self, collection: str, snapshot: Snapshot, threshold: float | None) -> RetellingsAnswer | None:
        """Return the groups of retellings of a collection; None while they are computed."""
        option = None if threshold is None else str(threshold)
        return self._retellings.get(ResultKey(collection, snapshot.version, option), retellings, snapshot, threshold)

    def agreement(self, collection: str, snapshot: Snapshot, column: str) -> ColumnAgreementAnswer | None:
        """Return the agreement of nearest neighbors with a column; None while it is computed."""
        key = ResultKey(collection, snapshot.version, _option(snapshot, column))
        return self._agreements.get(key, column_agreement, snapshot, column)

    def ranking(self, collection: str, snapshot: Snapshot, column: str, control: str | None) -> RankingAnswer | None:
        """Return how high versions are ranked; None while it is computed."""
        key = ResultKey(collection, snapshot.version, _option(snapshot, column, control))
        return self._rankings.get(key, version_ranking, snapshot, column, control)

    def confounds(self, collection: str, snapshot: Snapshot) -> ConfoundsAnswer | None:
        """Return what nearest neighbors share; None while it is computed."""
        option = _option(snapshot, *(column.name for column in snapshot.columns))
        return self._confounds.get(ResultKey(collection, snapshot.version, option), neighbor_confounds, snapshot)

    def forget(self, collection: str) -> None:
        """Forget the analyses of a collection that is deleted."""
        for results in (self._retellings, self._agreements, self._rankings, self._confounds):
            results.forget(collection)


def _option(snapshot: Snapshot, *columns: str | None) -> str:
    """Name the columns of an analysis with the values that readers gave them: others give another result."""
    return repr((columns, [snapshot.written(column or "") for column in columns]))


def retellings(snapshot: Snapshot, threshold: float | None = None) -> RetellingsAnswer:
    """Group stories that are joined by mutual nearest neighbors with a similarity above a threshold.

    Raises:
        DataError: if there is only one story.
    """
    return retellings_answer(snapshot.stories, threshold, snapshot.named)


def column_agreement(snapshot: Snapshot, column: str) -> ColumnAgreementAnswer:
    """Compare the nearest neighbors of stories with a column.

    Raises:
        DataError: if fewer than two values occur, or no value is shared by two stories.
    """
    labels = _labels(snapshot, column)
    agreement = neighbor_agreement(snapshot.stories.similarities, column, labels, NEIGHBORS)
    return agreement_answer(agreement, labels, snapshot.named)


def neighbor_confounds(snapshot: Snapshot) -> ConfoundsAnswer:
    """Compare nearest neighbors with lengths, languages and all columns."""
    columns = {column.name: _labels(snapshot, column.name) for column in snapshot.columns}
    texts = [snapshot.text(row) for row in range(len(snapshot))]
    answers = []
    for found in confounds(snapshot.stories.similarities, texts, columns):
        answers.append(
            ConfoundAnswer(
                kind=found.kind,
                name=found.name,
                share=found.agreement.share,
                chance=found.agreement.chance,
                p=found.p_adjusted,
                is_warning=found.is_warning,
            )
        )
    return ConfoundsAnswer(confounds=answers)


def _labels(snapshot: Snapshot, column: str) -> list[str]:
    """Return the value of each story in a column as text; empty if it has none."""
    cells = [snapshot.cell(row, column) for row in range(len(snapshot))]
    return ["" if cell is None else str(cell) for cell in cells]


def version_ranking(snapshot: Snapshot, column: str, control: str | None) -> RankingAnswer:
    """Evaluate how high the other versions of each story are ranked.

    Raises:
        DataError: if no two stories have the same value.
    """
    result = retrieval(snapshot.collection, same=column, control=control)
    figures = [RankingFigure.model_validate(_finite(row)) for row in result.figures.to_dict("records")]
    differences = [RankingDifference.model_validate(_finite(row)) for row in result.differences.to_dict("records")]
    return RankingAnswer(
        column=column,
        control=control,
        queries=result.settings["queries"],
        stories=result.settings["stories"],
        figures=figures,
        differences=differences,
    )


def concordance(
    snapshot: Snapshot, phrase: str, filters: Mapping[str, Sequence[Value]], limit: int
) -> ConcordanceAnswer:
    """Find exact words in the stories of a collection.

    Raises:
        OptionError: if the phrase has no word.
        RefusedError: if there is no such column.
    """
    rows = snapshot.rows_with(filters)
    found = list(occurrences([snapshot.text(row) for row in rows], phrase))
    lines = []
    for place in found[:limit]:
        context = snapshot.named(rows[place.row]).model_dump() | place._asdict()
        lines.append(ConcordanceLine.model_validate(context))
    return ConcordanceAnswer(total=len(found), stories=len({place.row for place in found}), lines=lines)


def _finite(row: Mapping[Hashable, object]) -> dict[Hashable, object]:
    """Replace numbers that are not finite by None."""
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}
