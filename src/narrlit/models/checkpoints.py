"""Checkpoints and records of runs: find checkpoints, and read records, without loading torch."""

import re
from pathlib import Path

from narrlit.console import counted
from narrlit.data.readers import read_examples, read_triples
from narrlit.data.rows import file_digest
from narrlit.data.splits import overlap
from narrlit.errors import DataError, ModelError
from narrlit.models.run_file import RECORD, PseudonymRecord, RunFile

VERSION = re.compile(r"version_\d+")


def find_checkpoint(source: str) -> Path | None:
    """Find a checkpoint: `source` itself, or the one that the record of a run directory recommends; else None."""
    path = Path(source)
    if path.suffix == ".ckpt":
        if not path.exists():
            raise ModelError("no_such_checkpoint", path=source)
        return path
    run = _run_directory(path)
    return _run_checkpoint(run) if (run / RECORD).is_file() else None


def _run_checkpoint(run: Path) -> Path:
    """Find a run's best checkpoint, else its last; raise ModelError if it has none."""
    recommended = RunFile.read(run / RECORD).checkpoints
    name = recommended.get("best", recommended.get("last"))
    best = None if name is None else run / name
    if best is not None and best.exists():
        return best
    newest_first = sorted((run / "checkpoints").glob("*.ckpt"), key=lambda file: file.stat().st_mtime, reverse=True)
    if not newest_first:
        raise ModelError("run_without_checkpoint", run=run)
    if best is None:  # the run was killed after its first checkpoint, before the record was updated
        return newest_first[0]
    others = " or ".join(map(str, newest_first[:3]))
    raise ModelError("best_checkpoint_gone", run=run, best=best, others=others)


def _run_directory(path: Path) -> Path:
    """Return the newest version with a record if the path is a folder of versions; else the path unchanged."""
    if (path / RECORD).is_file() or not path.is_dir() or (path / "modules.json").exists():
        return path
    versions = [child for child in path.iterdir() if VERSION.fullmatch(child.name)]
    recorded = [version for version in versions if (version / RECORD).is_file()]
    if recorded:
        return max(recorded, key=lambda version: int(version.name.removeprefix("version_")))
    if versions:
        raise ModelError("run_without_record", run=path, versions=len(versions), record=RECORD)
    records = path.glob(f"*/version_*/{RECORD}")
    runs = sorted({record.parents[1].name for record in records})
    if runs:
        raise ModelError("folder_of_runs", path=path, runs=runs[:10])
    return path


def find_record(source: str) -> Path | None:
    """Find the record of a run, from its directory or one of its checkpoints; None if there is none."""
    path = Path(source).absolute()
    folders = path.parents[:2] if path.suffix == ".ckpt" else [_run_directory(path)]
    for folder in folders:
        record = folder / RECORD
        if record.is_file():
            return record
    return None


def read_record(source: str) -> RunFile | None:
    """Read the record of a run, from its directory or one of its checkpoints; None if there is none.

    Raises:
        ModelError: if the record is damaged, or was written by a later version of narrlit.
    """
    path = find_record(source)
    return None if path is None else RunFile.read(path)


def seen_in_training(model: str, triples: str | Path) -> str | None:
    """Explain why a model's accuracy on triples is no result, if the model was trained on them; else None.

    Texts are compared by `normal_text` with the files of the training that are still there.

    Args:
        model: path of a run or checkpoint, whose record lists the files that it was trained on; others give None.
        triples: file of the triples.

    Raises:
        ModelError: if the record is damaged.
    """
    path = find_record(model)
    if path is None:
        return None
    record = RunFile.read(path)
    files = record.data_of("train").paths_by_digest
    validation_files = record.data_of("validation").paths_by_digest
    trained_on_validation = record.flags.trained_on_validation
    if trained_on_validation:
        files = validation_files | files
    sha256 = file_digest(triples)
    if sha256 in files:
        return f"trained on these triples: no result ({path.parent.name} trained on {files[sha256]})"
    for digest, file in files.items():
        shared = _shared_pairs(file, digest, triples)
        if shared:
            pairs = counted(shared, "pair")
            return f"trained on {pairs} of these triples: no result ({path.parent.name} trained on {file})"
    if trained_on_validation:
        names = ", ".join(validation_files.values()) or "unnamed"
        return f"trained on its validation triples ({names}): no result if they include these triples"
    return None


def _shared_pairs(file: str, digest: str, triples: str | Path) -> int:
    """Count the pairs of anchor and candidate that a training file shares with triples; 0 if it is gone or changed."""
    if not Path(file).is_file() or file_digest(file) != digest:
        return 0
    try:
        trained = read_examples(file).texts()
    except DataError:  # stories alone have no pairs
        return 0
    return overlap(trained, read_triples(triples).texts()).shared_pairs


def pseudonyms_of(source: str) -> PseudonymRecord | None:
    """Read how names were replaced in a run's training stories; None if they were not replaced."""
    record = read_record(source)
    if record is None:
        return None
    pseudonyms = record.data_of("train").pseudonyms
    return None if pseudonyms is None or pseudonyms.backend == "none" else pseudonyms
