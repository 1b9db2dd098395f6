"""Whether a model was trained on the triples that it is to be judged by, as far as its run's record tells."""

from typing import Any

from narrlit.models.source import find_record, read_record


def seen_in_training(model: str, sha256: str) -> str | None:
    """Why a model's accuracy on triples is no result; None where no record of a run says so.

    Args:
        model: as a user names it; of a run's directory, or a checkpoint in it, the run's record is read.
        sha256: of the file of triples.

    Raises:
        ModelError: if the record is broken.
    """
    found = find_record(model)
    if found is None:
        return None
    record = read_record(found)
    trained, validated = (_files(record, stage) for stage in ("train", "validation"))
    marked = (record.get("marks") or {}).get("trained_on_validation", False)
    if sha256 in trained:
        return f"trained on these triples: no result ({found.parent.name} trained on {trained[sha256]})"
    if marked and sha256 in validated:
        return f"trained on these triples: no result ({found.parent.name} is marked trained_on_validation)"
    if marked:
        names = ", ".join(validated.values()) or "unnamed"
        return f"trained on triples that it was validated by ({names}): no result where these are among them"
    return None


def _files(record: dict[str, Any], stage: str) -> dict[str, str]:
    """Paths of a stage's files by their digests."""
    told = (record.get("data") or {}).get(stage) or {}
    return {file["sha256"]: file["path"] for file in told.get("files", [])}
