"""Routes of collections: lists, stories, search, explanations, maps and exports."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from narrlit.data.schema import normal_form
from narrlit.explore.map_answer import MapAnswer, Value
from narrlit.explore.selection import select
from narrlit.preprocessing.words import num_characters
from narrlit.serving import searching
from narrlit.serving.collection_models import (
    MOST_LISTED,
    CollectionAnswer,
    ColumnAnswer,
    Computing,
    ExplainAnswer,
    ExplainBody,
    ExportBody,
    SearchAnswer,
    SearchBody,
    SettingsAnswer,
    StoryAnswer,
    StoryList,
    StorySummary,
)
from narrlit.serving.files import content_of, file_answer
from narrlit.serving.maps import map_of, with_metadata
from narrlit.serving.problems import RefusedError
from narrlit.serving.requests_in_flight import while_connected
from narrlit.serving.results import ResultKey, computing_answer
from narrlit.serving.shelf import ServedCollection, Snapshot
from narrlit.serving.state import Server, ServerOf
from narrlit.serving.uploads import UPLOAD_SUFFIXES

router = APIRouter(tags=["collections"])


@router.get("/settings")
async def settings(server: ServerOf) -> SettingsAnswer:
    """Return what the page needs to know of the server."""
    limits = server.settings.limits
    return SettingsAnswer(
        version=server.version,
        model=server.model,
        writable=True,
        extensions=list(UPLOAD_SUFFIXES),
        limits={"upload_bytes": limits.upload_bytes, "stories": limits.stories},
    )


@router.get("/collections")
async def list_collections(request: Request, server: ServerOf) -> list[CollectionAnswer]:
    """List the collections."""
    return await while_connected(request, server.workers.run(_describe_all, server))


@router.get("/collections/{name}")
async def describe_collection(name: str, request: Request, server: ServerOf) -> CollectionAnswer:
    """Describe a collection and its columns."""
    return await while_connected(request, server.workers.run(_describe, server, server.shelf.get(name)))


@router.delete("/collections/{name}", status_code=204)
async def delete_collection(name: str, server: ServerOf) -> None:
    """Delete a collection of the data folder."""
    await server.workers.run(server.shelf.delete, name)
    server.maps.forget(name)
    server.checking.forget(name)
    server.analyses.forget(name)


@router.get("/collections/{name}/stories")
async def list_stories(
    name: str,
    request: Request,
    server: ServerOf,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
    ids: str | None = None,
    filter: Annotated[Sequence[str], Query()] = (),
    sort: str | None = None,
) -> StoryList:
    """List stories: all, those with the comma-separated ids, or those whose columns have the values COLUMN:VALUE.

    `sort` is `title`, `words` or a column, with a hyphen before it for the largest first; empty cells come last.
    """
    collection = server.shelf.get(name)
    wanted = None if ids is None else ids.split(",")
    listing = server.workers.run(_list_stories, collection, wanted, filter, sort, offset, limit)
    return await while_connected(request, listing)


@router.get("/collections/{name}/stories/{id:path}")
async def read_story(name: str, id: str, request: Request, server: ServerOf) -> StoryAnswer:
    """Return a story in full, with its nearest stories."""
    return await while_connected(request, server.workers.run(searching.read, server.shelf.get(name), id))


@router.post("/collections/{name}/search")
async def search_stories(name: str, body: SearchBody, request: Request, server: ServerOf) -> SearchAnswer:
    """Find the stories most similar to a text, or to a story of the collection."""
    collection = server.shelf.get(name)
    server.check_length(body.query, "query")
    return await while_connected(request, server.workers.run(searching.search_collection, collection, body))


@router.post("/collections/{name}/explain")
async def explain_stories(name: str, body: ExplainBody, request: Request, server: ServerOf) -> ExplainAnswer:
    """Explain the similarity of two stories by the links between their passages."""
    collection = server.shelf.get(name)
    server.check_length(body.left.text, "left.text")
    server.check_length(body.right.text, "right.text")
    return await while_connected(request, server.workers.run(searching.explain_pair, collection, body))


@router.post("/collections/{name}/alignment", response_class=Response)
async def align_stories(name: str, body: ExplainBody, request: Request, server: ServerOf) -> Response:
    """Return two stories of a collection with the links between their passages as a TEI file."""
    collection = server.shelf.get(name)
    content = await while_connected(request, server.workers.run(searching.align_pair, collection, body))
    return file_answer(content, f"{body.left.id}-{body.right.id}", "xml")


@router.get("/collections/{name}/map", response_model=MapAnswer, responses={202: {"model": Computing}})
async def draw_map(
    name: str, request: Request, server: ServerOf, groups: Annotated[int | None, Query(ge=2, le=500)] = None
) -> Response | MapAnswer:
    """Return the map of a collection, or 202 while it is computed."""
    collection = server.shelf.get(name)
    snapshot = await while_connected(request, server.workers.run(collection.snapshot))
    story_map = server.maps.get(ResultKey(name, snapshot.version, groups), map_of, snapshot, groups)
    return computing_answer() if story_map is None else with_metadata(story_map, snapshot)


@router.post("/collections/{name}/export", response_class=Response)
async def export_stories(name: str, body: ExportBody, request: Request, server: ServerOf) -> Response:
    """Export stories of a collection as a file."""
    collection = server.shelf.get(name)
    suffix = {"bibtex": "bib", "csl": "csl.json", "palladio": "palladio.csv"}.get(body.format, body.format)
    content = await while_connected(request, server.workers.run(_exported, collection, body.ids, suffix))
    return file_answer(content, body.name or name, suffix)


def _describe_all(server: Server) -> list[CollectionAnswer]:
    return [_describe(server, server.shelf.get(name)) for name in server.shelf.names()]


def _describe(server: Server, collection: ServedCollection) -> CollectionAnswer:
    writing = server.imports.writing_to(collection.name)
    with collection.lock:
        if not len(collection.index):  # an import has just begun
            return CollectionAnswer(
                name=collection.name, stories=0, model=server.model, measure="", columns=[], import_id=writing
            )
        snapshot = collection.snapshot()
    columns = []
    for column in snapshot.columns:
        kind: Literal["text", "number"] = "number" if column.is_number else "text"
        columns.append(ColumnAnswer(name=column.name, kind=kind, values=column.values, distinct=column.distinct))
    return CollectionAnswer(
        name=collection.name,
        stories=len(snapshot),
        model=str(snapshot.stories.about["model"]).rstrip("/").rpartition("/")[2],
        measure=snapshot.stories.measure,
        columns=columns,
        label=snapshot.label,
        import_id=writing,
    )


def _list_stories(
    collection: ServedCollection,
    ids: Sequence[str] | None,
    filters: Sequence[str],
    sort: str | None,
    offset: int,
    limit: int,
) -> StoryList:
    """List stories of a collection; ids that do not exist are left out."""
    snapshot = collection.snapshot()
    wanted: dict[str, list[Value]] = {}
    for text in filters:
        column, separator, value = text.partition(":")
        if not separator:
            raise RefusedError(400, "filter: write COLUMN:VALUE", "filter")
        wanted.setdefault(column, []).append(value)
    rows = snapshot.rows_with(wanted)
    if ids is not None:
        row_of = snapshot.stories.store.row_of
        allowed = set(rows)
        rows = []
        for id in ids:
            row = row_of.get(normal_form(id))
            if row is not None and row in allowed:
                rows.append(row)
    if sort is not None:
        rows = _sorted_rows(snapshot, rows, sort.removeprefix("-"), sort.startswith("-"))
    stories = []
    for row in rows[offset : offset + limit]:
        id = str(snapshot.cell(row, "id"))
        stories.append(
            StorySummary(
                id=id,
                title=snapshot.title(row),
                words=snapshot.words[row],
                characters=num_characters(snapshot.text(row)),
                metadata=snapshot.metadata(row),
            )
        )
    return StoryList(total=len(rows), stories=stories)


def _sorted_rows(snapshot: Snapshot, rows: Sequence[int], name: str, descending: bool) -> list[int]:
    """Sort stories by their titles, lengths or values in a column; those without a value come last."""
    if name not in ("title", "words"):
        snapshot.column(name, "sort", "sort")
    keys: dict[int, tuple[float, str]] = {}
    for row in rows:
        value: Value = snapshot.title(row)
        if name != "title":
            value = snapshot.words[row] if name == "words" else snapshot.cell(row, name)
        if isinstance(value, int | float):
            keys[row] = value, ""
        elif value is not None:
            keys[row] = 0.0, value.casefold()
    missing = [row for row in rows if row not in keys]
    return [*sorted(keys, key=keys.__getitem__, reverse=descending), *missing]


def _exported(collection: ServedCollection, ids: Sequence[str] | None, suffix: str) -> bytes:
    """Write stories, with the tags and notes of readers, to a file, and return its content."""
    snapshot = collection.snapshot()
    for id in ids or ():
        snapshot.row_of(id)
    return content_of(select(snapshot.with_notes(collection.project.notes()), ids).write, suffix)
