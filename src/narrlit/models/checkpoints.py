"""Checkpoints and records of runs: find and read them, without loading the encoder."""

import pickle
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from narrlit.errors import ModelError, reading
from narrlit.models.run_file import RECORD, PseudonymRecord, RunFile

VERSION = re.compile(r"version_\d+")


def find_checkpoint(source: str) -> Path | None:
    """Find a checkpoint: `source` itself, or the one that the record of a run directory recommends; else None."""
    path = Path(source)
    if path.suffix == ".ckpt":
        if not path.exists():
            raise ModelError(f"checkpoint {source}: no such file")
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
        raise ModelError(f"run {run}: it has no checkpoint yet; continue training, or name another model")
    if best is None:  # the run was killed after its first checkpoint, before the record was updated
        return newest_first[0]
    others = " or ".join(map(str, newest_first[:3]))
    raise ModelError(f"run {run}: its best checkpoint, {best}, is gone; restore it, or name another one: {others}")


def _run_directory(path: Path) -> Path:
    """Return the newest version with a record if the path is a folder of versions; else the path unchanged."""
    if (path / RECORD).is_file() or not path.is_dir() or (path / "modules.json").exists():
        return path
    versions = [child for child in path.iterdir() if VERSION.fullmatch(child.name)]
    recorded = [version for version in versions if (version / RECORD).is_file()]
    if recorded:
        return max(recorded, key=lambda version: int(version.name.removeprefix("version_")))
    if versions:
        raise ModelError(f"run {path}: none of its {len(versions)} versions has a {RECORD}; train it again")
    records = path.glob(f"*/version_*/{RECORD}")
    runs = sorted({record.parents[1].name for record in records})
    if runs:
        raise ModelError(f"{path} is a folder of runs: name one of {', '.join(runs[:10])}")
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


def seen_in_training(model: str, sha256: str) -> str | None:
    """Explain why a model's accuracy on triples is no result, if the model was trained on them; else None.

    Args:
        model: path of a run or checkpoint, whose record lists the files that it was trained on; others give None.
        sha256: digest of the file of triples.

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
    if sha256 in files:
        return f"trained on these triples: no result ({path.parent.name} trained on {files[sha256]})"
    if trained_on_validation:
        names = ", ".join(validation_files.values()) or "unnamed"
        return f"trained on its validation triples ({names}): no result if they include these triples"
    return None


def pseudonyms_of(source: str) -> PseudonymRecord | None:
    """Read how names were replaced in a run's training stories; None if they were not replaced."""
    record = read_record(source)
    if record is None:
        return None
    pseudonyms = record.data_of("train").pseudonyms
    return None if pseudonyms is None or pseudonyms.backend == "none" else pseudonyms


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint of tensors and plain data; raise ModelError if it is damaged or contains other objects."""
    with _reading_checkpoint(path):
        content = _read_sharded(path) if path.is_dir() else _read_whole(path)
        for name in ("state_dict", "hyper_parameters"):
            if not isinstance(content.get(name, {}), dict):
                raise ModelError(f"checkpoint {path}: {name} is not a dictionary; name another one")
        return content


def check_shard_table(folder: Path) -> None:
    """Check that the table of a sharded checkpoint contains no code; Lightning reads it without such a check.

    Raises:
        ModelError: if the table is missing or damaged, or contains objects other than descriptions of tensors.
    """
    with _reading_checkpoint(folder):
        _shard_table(folder)


@contextmanager
def _reading_checkpoint(path: Path) -> Iterator[None]:
    """Convert errors of reading a checkpoint to ModelError."""
    with reading("checkpoint", path, "name another one", ModelError):
        try:
            yield
        except (pickle.UnpicklingError, RuntimeError) as error:  # torch's message advises to run the code in the file
            raise ModelError(f"checkpoint {path}: damaged, or contains more than tensors and plain data") from error


def _read_whole(path: Path) -> dict[str, Any]:
    import torch  # checkpoints are found, and records are read, without it

    return dict(torch.load(path, map_location="cpu", weights_only=True, mmap=True))


def _read_sharded(folder: Path) -> dict[str, Any]:
    """Read a sharded checkpoint, a folder: its full weights, without the optimizer's state."""
    import torch
    from torch.distributed.checkpoint.state_dict_loader import load  # a slow import, for few checkpoints

    weights: dict[str, torch.Tensor] = {}
    for name, stored in _shard_table(folder).state_dict_metadata.items():
        if name.startswith("state_dict."):
            weights[name] = torch.empty(stored.size, dtype=stored.properties.dtype)
    with warnings.catch_warnings(action="ignore"):  # torch warns that there is only one process
        load(weights, checkpoint_id=folder, no_dist=True)
    content = dict(torch.load(folder / "meta.pt", map_location="cpu", weights_only=True))
    return content | {"state_dict": without_prefix(weights, "state_dict.")}


def _shard_table(folder: Path) -> Any:
    with (folder / ".metadata").open("rb") as file:
        return _ShardTable(file).load()


class _ShardTable(pickle.Unpickler):
    """Reader of the table of shards that accepts no other classes: torch's own reader would run code."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class with which torch describes shards; refuse others."""
        import torch

        from narrlit.compat.torch import SHARD_CLASSES

        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        from_known_package = module.partition(".")[0] in ("torch", "pathlib")
        if not (from_known_package and (name in SHARD_CLASSES or is_dtype)):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def without_prefix(weights: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Select the weights with a prefix in their names, and remove the prefix."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
