"""Routes of analyses of collections, which are computed in the background."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from narrlit.explore.analysis_answers import ColumnAgreementAnswer, RetellingsAnswer
from narrlit.explore.map_answer import Value
from narrlit.serving.analysis import concordance
from narrlit.serving.analysis_models import (
    ConcordanceAnswer,
    ConfoundsAnswer,
    RankingAnswer,
)
from narrlit.serving.bodies import RequestBody
from narrlit.serving.collection_models import Computing
from narrlit.serving.requests_in_flight import while_connected
from narrlit.serving.results import computing_answer
from narrlit.serving.state import ServerOf

router = APIRouter(tags=["analyses"])
LONGEST_PHRASE = 200
MOST_LINES = 2000


class ConcordanceBody(RequestBody):
    """Exact words to find, in stories with some values in their columns."""

    phrase: Annotated[str, Field(max_length=LONGEST_PHRASE)]
    filters: dict[str, list[Value]] = Field(default_factory=dict)
    limit: Annotated[int, Field(ge=1, le=MOST_LINES)] = MOST_LINES


@router.get("/collections/{name}/retellings", response_model=RetellingsAnswer, responses={202: {"model": Computing}})
async def group_retellings(
    name: str,
    request: Request,
    server: ServerOf,
    threshold: Annotated[float | None, Query(ge=-1, le=1, allow_inf_nan=False)] = None,
) -> Response | RetellingsAnswer:
    """Group stories that are probably versions of one story, or answer 202 while they are computed."""
    snapshot = await while_connected(request, server.workers.run(server.shelf.get(name).snapshot))
    answer = server.analyses.retellings(name, snapshot, threshold)
    return computing_answer() if answer is None else answer


@router.get(
    "/collections/{name}/agreement", response_model=ColumnAgreementAnswer, responses={202: {"model": Computing}}
)
async def compare_column(
    name: str, column: str, request: Request, server: ServerOf
) -> Response | ColumnAgreementAnswer:
    """Compare nearest neighbors with a column, or answer 202 while they are compared."""
    snapshot = await while_connected(request, server.workers.run(server.shelf.get(name).snapshot))
    snapshot.column(column, "column", "column")
    answer = server.analyses.agreement(name, snapshot, column)
    return computing_answer() if answer is None else answer


@router.get("/collections/{name}/confounds", response_model=ConfoundsAnswer, responses={202: {"model": Computing}})
async def find_confounds(name: str, request: Request, server: ServerOf) -> Response | ConfoundsAnswer:
    """Compare nearest neighbors with lengths, languages and columns, or answer 202 while they are compared."""
    snapshot = await while_connected(request, server.workers.run(server.shelf.get(name).snapshot))
    answer = server.analyses.confounds(name, snapshot)
    return computing_answer() if answer is None else answer


@router.get("/collections/{name}/ranking", response_model=RankingAnswer, responses={202: {"model": Computing}})
async def evaluate_ranking(
    name: str, column: str, request: Request, server: ServerOf, control: str | None = None
) -> Response | RankingAnswer:
    """Evaluate how high versions, stories with the same value in a column, are ranked, or answer 202 meanwhile."""
    snapshot = await while_connected(request, server.workers.run(server.shelf.get(name).snapshot))
    for chosen in (column, control):
        if chosen is not None:
            snapshot.column(chosen, "column", "column")
    answer = server.analyses.ranking(name, snapshot, column, control)
    return computing_answer() if answer is None else answer


@router.post("/collections/{name}/concordance")
async def find_words(name: str, body: ConcordanceBody, request: Request, server: ServerOf) -> ConcordanceAnswer:
    """Find exact words and phrases, with the words before and after them."""
    collection = server.shelf.get(name)
    snapshot = await while_connected(request, server.workers.run(collection.snapshot))
    finding = server.workers.run(concordance, snapshot, body.phrase, body.filters, body.limit)
    return await while_connected(request, finding)
