"""Routes of a reader's work on a collection: lists, notes, settings, history, and all of it as one file."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from narrlit.errors import printable
from narrlit.explore.analysis_answers import NamedStory
from narrlit.explore.pair_decisions import ANONYMOUS
from narrlit.explore.project import (
    SUFFIX,
    Change,
    EditChange,
    ListChange,
    NoteChange,
    PairChange,
    Project,
    SettingChange,
    ValueChange,
)
from narrlit.library.story_frame import is_reserved
from narrlit.serving.checking_models import LONGEST_NAME
from narrlit.serving.files import file_answer
from narrlit.serving.problems import RefusedError
from narrlit.serving.project_models import (
    ChangeBody,
    DecidedPair,
    DecidedValue,
    HistoryAnswer,
    ImportedAnswer,
    ListAnswer,
    NoteAnswer,
    ProjectAnswer,
)
from narrlit.serving.requests_in_flight import while_connected
from narrlit.serving.shelf import ServedCollection, Snapshot
from narrlit.serving.state import ServerOf

router = APIRouter(tags=["project"])
MOST_CHANGES = 1000


@router.get("/collections/{name}/project")
async def read_project(name: str, request: Request, server: ServerOf) -> ProjectAnswer:
    """Return the lists, notes and settings of a collection."""
    return await while_connected(request, server.workers.run(_project, server.shelf.get(name)))


@router.post("/collections/{name}/project/changes", status_code=204)
async def change_project(name: str, body: ChangeBody, server: ServerOf) -> None:
    """Change a list, a note, values of columns or a setting; the change is on the disk when this is answered."""
    await server.workers.run(_change, server.shelf.get(name), body.root)


@router.post("/collections/{name}/project/undo")
async def undo_change(name: str, server: ServerOf) -> ProjectAnswer:
    """Undo the last change of any kind; without one, nothing happens."""
    collection = server.shelf.get(name)
    await server.workers.run(collection.project.undo)
    return await server.workers.run(_project, collection)


@router.post("/collections/{name}/project/redo")
async def redo_change(name: str, server: ServerOf) -> ProjectAnswer:
    """Do again what was undone last."""
    collection = server.shelf.get(name)
    await server.workers.run(collection.project.redo)
    return await server.workers.run(_project, collection)


@router.get("/collections/{name}/project/history")
async def read_history(
    name: str,
    request: Request,
    server: ServerOf,
    limit: Annotated[int, Query(ge=1, le=MOST_CHANGES)] = 100,
) -> HistoryAnswer:
    """List the last changes, newest first."""
    return await while_connected(request, server.workers.run(_history, server.shelf.get(name), limit))


@router.get("/collections/{name}/project/file", response_class=Response)
async def save_project(name: str, server: ServerOf) -> Response:
    """Return the project as a file, with its whole history."""
    content = await server.workers.run(_content, server.shelf.get(name).project)
    return file_answer(content, f"{name}{SUFFIX.removesuffix('.jsonl')}", "jsonl")


@router.post("/collections/{name}/project/file")
async def load_project(name: str, request: Request, server: ServerOf) -> ImportedAnswer:
    """Add the changes of a project file, the body of the request; they are undone together."""
    collection = server.shelf.get(name)
    content = await request.body()
    return ImportedAnswer(changes=await server.workers.run(_merge, collection.project, content))


@router.get("/collections/{name}/pairs/decided")
async def list_decided_pairs(
    name: str,
    request: Request,
    server: ServerOf,
    reader: Annotated[str, Query(max_length=LONGEST_NAME)] = ANONYMOUS,
) -> list[DecidedPair]:
    """List the pairs that a reader has decided, the last one first."""
    return await while_connected(request, server.workers.run(_decided_pairs, server.shelf.get(name), reader))


@router.get("/collections/{name}/catalog/decided")
async def list_decided_values(name: str, column: str, request: Request, server: ServerOf) -> list[DecidedValue]:
    """List the stories whose value in a column was accepted or rejected."""
    return await while_connected(request, server.workers.run(_decided_values, server.shelf.get(name), column))


def _project(collection: ServedCollection) -> ProjectAnswer:
    snapshot, project = collection.snapshot(), collection.project
    lists = []
    for name, ids in project.lists().items():
        lists.append(ListAnswer(name=name, stories=[_named(snapshot, id) for id in ids]))
    notes = []
    for note in project.notes():
        values = note.model_dump(include={"start", "end", "passage", "text", "tags", "at"})
        notes.append(NoteAnswer(story=_named(snapshot, note.id), **values))
    return ProjectAnswer(
        lists=lists,
        notes=notes,
        settings=project.settings(),
        changes=len(project.history()),
        can_redo=project.can_redo,
    )


def _named(snapshot: Snapshot, id: str) -> NamedStory:
    """Name a story, which may no longer be in the collection."""
    row = snapshot.stories.store.row_of.get(id)
    if row is None:
        return NamedStory(id=id, title=id, metadata={})
    return snapshot.named(row)


def _change(collection: ServedCollection, change: ListChange | NoteChange | EditChange | SettingChange) -> None:
    snapshot = collection.snapshot()
    if isinstance(change, NoteChange):
        snapshot.row_of(change.id)
    if isinstance(change, EditChange):
        _check_edit(snapshot, change)
    for id in change.add if isinstance(change, ListChange) else ():
        snapshot.row_of(id)
    collection.project.add(change)


def _check_edit(snapshot: Snapshot, change: EditChange) -> None:
    for id in change.ids:
        snapshot.row_of(id)
    columns = {column.name: column for column in snapshot.columns}
    for name, value in change.values.items():
        if name in columns and value:
            columns[name].parse(value)
        elif name != "title" and is_reserved(name):
            shown = printable(name, 60)
            message = f"values: {shown!r} can't be the name of a column"
            raise RefusedError(400, message, "values", code="column_name", values={"column": shown})


def _history(collection: ServedCollection, limit: int) -> HistoryAnswer:
    snapshot = collection.snapshot()
    changes = collection.project.history()[: -limit - 1 : -1]
    ids = dict.fromkeys(id for change in changes for id in _ids(change))
    return HistoryAnswer(changes=changes, stories=[_named(snapshot, id) for id in ids])


def _ids(change: Change) -> list[str]:
    """Return the ids that a change names; of a list, those that are put on it or taken off."""
    match change:
        case PairChange():
            return [change.id_a, change.id_b]
        case ListChange():
            return [*change.add, *change.remove]
        case ValueChange() | NoteChange():
            return [change.id]
        case EditChange():
            return change.ids
    return []


def _content(project: Project) -> bytes:
    return project.path.read_bytes() if project.path.exists() else b""


def _merge(project: Project, content: bytes) -> int:
    """Add the changes of a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"uploaded{SUFFIX}")
        path.write_bytes(content)
        return project.merge(path)


def _decided_pairs(collection: ServedCollection, reader: str) -> list[DecidedPair]:
    snapshot = collection.snapshot()
    decided = []
    for made in collection.project.pairs:
        if made.reader == (reader.strip() or ANONYMOUS):
            left, right = _named(snapshot, made.pair.a), _named(snapshot, made.pair.b)
            decided.append(DecidedPair(left=left, right=right, decision=made.decision, reader=made.reader))
    return decided[::-1]


def _decided_values(collection: ServedCollection, column: str) -> list[DecidedValue]:
    snapshot, values = collection.snapshot(), collection.project.values
    accepted = collection.project.accepted().get(column, {})
    return [DecidedValue(story=_named(snapshot, id), value=accepted.get(id)) for id in sorted(values.decided(column))]
