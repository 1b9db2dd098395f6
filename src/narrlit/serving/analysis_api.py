"""Routes of analyses of collections, which are computed in the background."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from narrlit.serving.analysis_models import RetellingsAnswer
from narrlit.serving.collection_models import Computing
from narrlit.serving.requests_in_flight import while_connected
from narrlit.serving.results import computing_answer
from narrlit.serving.state import ServerOf

router = APIRouter(tags=["analyses"])


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
