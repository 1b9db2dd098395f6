"""Routes of imports: upload, corrections, start, pause and resume."""

from typing import Annotated

from fastapi import APIRouter, Body, Header, Request

from narrlit.serving.import_models import ImportAnswer, ImportChanges, StartBody
from narrlit.serving.state import ServerOf

router = APIRouter(tags=["imports"])
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            }
        },
    }
}


@router.post("/imports", status_code=201, openapi_extra=UPLOAD)
async def upload(
    request: Request, server: ServerOf, content_type: Annotated[str, Header(include_in_schema=False)] = ""
) -> ImportAnswer:
    """Upload files; their names may have folders. They are read in the background."""
    return await server.imports.receive(content_type, request.stream())


@router.get("/imports")
async def list_imports(server: ServerOf) -> list[ImportAnswer]:
    """List the imports, the newest first."""
    return server.imports.all()


@router.get("/imports/{id}")
async def describe_import(id: str, server: ServerOf) -> ImportAnswer:
    """Describe an import: its files as they were understood, and its progress."""
    return server.imports.get(id)


@router.patch("/imports/{id}")
async def correct_import(id: str, changes: ImportChanges, server: ServerOf) -> ImportAnswer:
    """Correct the columns, the files that are left out, or the name."""
    return await server.imports.correct(id, changes)


@router.post("/imports/{id}/start")
async def start_import(id: str, server: ServerOf, body: Annotated[StartBody | None, Body()] = None) -> ImportAnswer:
    """Begin to embed the stories."""
    return await server.imports.begin(id, None if body is None else body.collection)


@router.post("/imports/{id}/pause")
async def pause_import(id: str, server: ServerOf) -> ImportAnswer:
    """Stop to embed; what is embedded is kept."""
    return await server.imports.pause(id)


@router.post("/imports/{id}/resume")
async def resume_import(id: str, server: ServerOf) -> ImportAnswer:
    """Go on to embed."""
    return await server.imports.resume(id)


@router.delete("/imports/{id}", status_code=204)
async def remove_import(id: str, server: ServerOf) -> None:
    """Remove an import and its files; stories that are in a collection stay there."""
    await server.imports.remove(id)
