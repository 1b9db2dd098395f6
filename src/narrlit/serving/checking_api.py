"""Routes of pairs to check and catalogs: readers decide, and their decisions become data."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from narrlit.errors import printable
from narrlit.explore.catalog import Catalog, FilledCatalog
from narrlit.explore.labeled_pairs import label_pairs
from narrlit.explore.matched_pair import likeness
from narrlit.explore.pair_checking import PairsToCheck
from narrlit.explore.pair_decisions import ANONYMOUS
from narrlit.explore.reader_agreement import reader_agreement
from narrlit.serving.checking_models import (
    LONGEST_NAME,
    MOST_PAIRS,
    AccuracyAnswer,
    AgreementAnswer,
    CatalogAnswer,
    DecisionBody,
    PairAnswer,
    PairsAnswer,
    PairSide,
    ProposalAnswer,
    ReliabilityAnswer,
    StoryColumn,
    UndoBody,
    ValueBody,
)
from narrlit.serving.collection_models import Computing
from narrlit.serving.files import content_of, file_answer
from narrlit.serving.problems import RefusedError
from narrlit.serving.requests_in_flight import while_connected
from narrlit.serving.results import computing_answer
from narrlit.serving.shelf import ServedCollection, Snapshot
from narrlit.serving.standing import num_closer, num_others
from narrlit.serving.state import Server, ServerOf

router = APIRouter(tags=["checking"])
TableFormat = Literal["csv", "jsonl"]
TableKind = Literal["groups", "triples", "decisions"]


# Pairs ---------------------------------------------------------------------------------------------------------------


@router.get("/collections/{name}/pairs")
async def list_pairs(
    name: str,
    request: Request,
    server: ServerOf,
    reader: Annotated[str, Query(max_length=LONGEST_NAME)] = ANONYMOUS,
    limit: Annotated[int, Query(ge=1, le=MOST_PAIRS)] = 20,
) -> PairsAnswer:
    """List likely versions of one story that a reader has not decided, the most similar first."""
    collection = server.shelf.get(name)
    return await while_connected(request, _pairs_for(server, collection, reader.strip() or ANONYMOUS, limit))


@router.put("/collections/{name}/pairs/decisions", status_code=204)
async def decide_pair(name: str, body: DecisionBody, server: ServerOf) -> None:
    """Save the decision of a reader on a pair; it is on the disk when this is answered."""
    await server.workers.run(_decide_pair, server.shelf.get(name), body)


@router.delete("/collections/{name}/pairs/decisions", status_code=204)
async def undo_pair(name: str, body: UndoBody, server: ServerOf) -> None:
    """Withdraw the decision of a reader on a pair."""
    decisions = server.shelf.get(name).project.pairs
    await server.workers.run(decisions.delete, body.left, body.right, body.reader)


@router.get("/collections/{name}/pairs/table", response_class=Response)
async def pair_table(
    name: str,
    request: Request,
    server: ServerOf,
    format: TableFormat = "csv",
    kind: TableKind | None = None,
) -> Response:
    """Return what readers decided as a file.

    `groups` (default of csv): all stories with the column version_of, for `narrlit fit` and `narrlit retrieval`.
    `triples` (default of jsonl): labeled triples, for `narrlit evaluate` and `narrlit fit`. `decisions`: each decision.
    """
    collection = server.shelf.get(name)
    chosen = kind or ("groups" if format == "csv" else "triples")
    writing = server.workers.run(_pair_table, collection, chosen, format)
    return file_answer(await while_connected(request, writing), f"{name}-{chosen}", format)


@router.get("/collections/{name}/pairs/agreement")
async def agreement(name: str, request: Request, server: ServerOf) -> AgreementAnswer:
    """Measure the agreement of readers who decided on the same pairs."""
    decisions = server.shelf.get(name).project.pairs
    result = await while_connected(request, server.workers.run(reader_agreement, decisions))
    return AgreementAnswer.model_validate(result.record)


async def _pairs_for(server: Server, collection: ServedCollection, reader: str, limit: int) -> PairsAnswer:
    snapshot = await server.workers.run(collection.snapshot)
    pairs = await server.checking.pairs(collection.name, snapshot)
    return await server.workers.run(_undecided, collection, snapshot, pairs, reader, limit)


def _undecided(
    collection: ServedCollection, snapshot: Snapshot, pairs: PairsToCheck, reader: str, limit: int
) -> PairsAnswer:
    undecided = pairs.undecided(collection.project.pairs, reader)
    table = undecided.first(limit).table()
    sides = []
    for id, text in (("id_a", "text_a"), ("id_b", "text_b")):
        sides.append(_pair_sides(snapshot, table[id].tolist(), table[text].tolist(), table["similarity"].tolist()))
    others = num_others(snapshot)
    answers = []
    for left, right, similarity in zip(*sides, table["similarity"], strict=True):
        alike = likeness((left.closer, right.closer), others)
        answers.append(PairAnswer(left=left, right=right, similarity=similarity, alike=alike, others=others))
    return PairsAnswer(pairs=answers, decided=undecided.decided, remaining=len(undecided))


def _pair_sides(
    snapshot: Snapshot, ids: Sequence[str], texts: Sequence[str], similarities: Sequence[float]
) -> list[PairSide]:
    """Describe one story of each pair."""
    rows = [snapshot.row_of(id) for id in ids]
    sides = []
    for id, row, text, closer in zip(ids, rows, texts, num_closer(snapshot, rows, similarities), strict=True):
        title, metadata = snapshot.title(row), snapshot.metadata(row)
        sides.append(PairSide(id=id, title=title, text=text, metadata=metadata, closer=closer))
    return sides


def _decide_pair(collection: ServedCollection, body: DecisionBody) -> None:
    snapshot = collection.snapshot()
    for id in (body.left, body.right):
        snapshot.row_of(id)
    collection.project.pairs.add(body.left, body.right, body.decision, body.reader)


def _pair_table(collection: ServedCollection, kind: TableKind, format: TableFormat) -> bytes:
    decisions = collection.project.pairs
    if kind == "decisions":
        return content_of(decisions.write, format)
    labeled = label_pairs(collection.snapshot().collection, decisions)
    return content_of(labeled.write_groups if kind == "groups" else labeled.write_triples, format)


# Catalog -------------------------------------------------------------------------------------------------------------


@router.get("/collections/{name}/catalog", response_model=CatalogAnswer, responses={202: {"model": Computing}})
async def propose_values(name: str, column: str, request: Request, server: ServerOf) -> Response | CatalogAnswer:
    """Propose values of a column for stories that lack it, or answer 202 while they are computed."""
    collection = server.shelf.get(name)
    snapshot = await while_connected(request, server.workers.run(collection.snapshot))
    _check_column(snapshot, column)
    catalog = server.checking.catalog(name, snapshot, column)
    if catalog is None:
        return computing_answer()
    return await while_connected(request, server.workers.run(_catalog_answer, collection, catalog))


@router.put("/collections/{name}/catalog/decisions", status_code=204)
async def decide_value(name: str, body: ValueBody, server: ServerOf) -> None:
    """Save the decision on a proposed value; it is on the disk when this is answered."""
    await server.workers.run(_decide_value, server.shelf.get(name), body)


@router.delete("/collections/{name}/catalog/decisions", status_code=204)
async def undo_value(name: str, body: StoryColumn, server: ServerOf) -> None:
    """Withdraw the decision on a proposed value."""
    decisions = server.shelf.get(name).project.values
    await server.workers.run(decisions.delete, body.id, body.column)


@router.get("/collections/{name}/catalog/table", response_class=Response)
async def catalog_table(
    name: str, column: str, request: Request, server: ServerOf, format: Literal["csv", "xlsx", "jsonl"] = "csv"
) -> Response:
    """Return all stories with the accepted values filled in, as a file."""
    collection = server.shelf.get(name)
    writing = server.workers.run(_filled_table, collection, column, format)
    return file_answer(await while_connected(request, writing), f"{name}-{column}", format)


def _check_column(snapshot: Snapshot, column: str) -> None:
    """Refuse a column that a collection lacks."""
    snapshot.column(column, option="column", parameter="column")


def _catalog_answer(collection: ServedCollection, catalog: Catalog) -> CatalogAnswer:
    """Leave out the stories whose values have been decided."""
    decided = collection.project.values.decided(catalog.column)
    open_proposals = [proposal for proposal in catalog.proposals if proposal.id not in decided]
    snapshot = collection.snapshot()
    proposals = []
    for proposal in open_proposals:
        answer = ProposalAnswer.model_validate(proposal, from_attributes=True)
        row = snapshot.row_of(answer.id)
        answer.title, answer.metadata = snapshot.title(row), snapshot.metadata(row)
        for value in answer.values:
            for story in value.stories:
                row = snapshot.row_of(story.id)
                story.title, story.metadata = snapshot.title(row), snapshot.metadata(row)
        proposals.append(answer)
    reliability = []
    for part in catalog.reliability:
        right = AccuracyAnswer.of(part.right)
        reliability.append(ReliabilityAnswer(low=part.low, high=part.high, mean=part.mean, right=right))
    return CatalogAnswer(
        column=catalog.column,
        accuracy=AccuracyAnswer.of(catalog.accuracy),
        baseline=catalog.baseline.value,
        most_frequent=catalog.most_frequent,
        reliability=reliability,
        proposals=proposals,
        decided=len(catalog.proposals) - len(open_proposals),
    )


def _decide_value(collection: ServedCollection, body: ValueBody) -> None:
    snapshot = collection.snapshot()
    _check_column(snapshot, body.column)
    row = snapshot.row_of(body.id)
    if snapshot.cell(row, body.column) is not None and row not in snapshot.accepted.get(body.column, {}):
        id = printable(body.id, 60)
        message = f"id: {id} has a value in the column already"
        raise RefusedError(409, message, "id", code="value_exists", values={"id": id, "column": body.column})
    collection.project.values.add(body.id, body.column, body.value, accepted=body.accepted)


def _filled_table(collection: ServedCollection, column: str, format: str) -> bytes:
    snapshot = collection.snapshot()
    _check_column(snapshot, column)
    accepted = collection.project.accepted().get(column, {})
    return content_of(FilledCatalog(snapshot.edited_collection, column, accepted).write, format)
