"""Checkpoints and records of runs: where they are, and what they hold, without the encoder."""

import pickle
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from narrlit.compat.torch import SHARD_CLASSES
from narrlit.errors import ModelError, reading
from narrlit.models.run_file import RECORD, PseudonymRecord, RunFile

VERSION = re.compile(r"version_\d+")


def find_checkpoint(source: str) -> Path | None:
    """Find the checkpoint that `source` is or, if it is a run directory, recommends; None where it is neither."""
    path = Path(source)
    if path.suffix == ".ckpt":
        if not path.exists():
            raise ModelError(f"checkpoint {source}: no such file")
        return path
    run = _run_directory(path)
    return _run_checkpoint(run) if (run / RECORD).is_file() else None


def _run_checkpoint(run: Path) -> Path:
    """Find the checkpoint that a run's record recommends: the best, else the last; raise ModelError without any."""
    recommended = RunFile.read(run / RECORD).checkpoints
    name = recommended.get("best", recommended.get("last"))
    best = None if name is None else run / name
    if best is not None and best.exists():
        return best
    newest_first = sorted((run / "checkpoints").glob("*.ckpt"), key=lambda file: file.stat().st_mtime, reverse=True)
    if not newest_first:
        raise ModelError(f"run {run}: it has no checkpoint yet; continue training, or name another model")
    if best is None:  # killed between its first checkpoint and the next record
        return newest_first[0]
    others = " or ".join(str(file) for file in newest_first[:3])
    raise ModelError(f"run {run}: its best checkpoint, {best}, is gone; restore it, or name another one: {others}")


def _run_directory(path: Path) -> Path:
    """Return a run's directory, for a folder of versions the newest one with a record; else the path as it is."""
    if (path / RECORD).is_file() or not path.is_dir() or (path / "modules.json").exists():
        return path
    versions = [child for child in path.iterdir() if VERSION.fullmatch(child.name)]
    recorded = [version for version in versions if (version / RECORD).is_file()]
    if recorded:
        return max(recorded, key=lambda version: int(version.name.removeprefix("version_")))
    if versions:
        raise ModelError(f"run {path}: none of its {len(versions)} versions has a {RECORD}; train it again")
    runs = sorted(child.name for child in path.iterdir() if any(child.glob(f"version_*/{RECORD}")))
    if runs:
        raise ModelError(f"{path} is a folder of runs: name one of {', '.join(runs[:10])}")
    return path


def find_record(source: str) -> Path | None:
    """Find the record of the run that `source` is the directory of, or a checkpoint in it; None where there is none."""
    path = Path(source).absolute()
    folders = path.parents[:2] if path.suffix == ".ckpt" else [_run_directory(path)]
    return next((folder / RECORD for folder in folders if (folder / RECORD).is_file()), None)


def read_record(source: str) -> RunFile | None:
    """Read the record of the run that `source` is the directory of, or a checkpoint in it; None where there is none.

    Raises:
        ModelError: if the record is damaged, or of a later version of narrlit.
    """
    path = find_record(source)
    return None if path is None else RunFile.read(path)


def seen_in_training(model: str, sha256: str) -> str | None:
    """Describe why a model's accuracy on triples is no result; None if it is one.

    Args:
        model: name of the model; the record of its run names the files that it was trained on.
        sha256: of the file of triples.

    Raises:
        ModelError: if the record is broken.
    """
    path = find_record(model)
    if path is None:
        return None
    record = RunFile.read(path)
    trained = {file.sha256: file.path for file in record.data_of("train").files}
    validated = {file.sha256: file.path for file in record.data_of("validation").files}
    trained_on_validation = record.flags.trained_on_validation
    file = trained.get(sha256)
    if file is None and trained_on_validation:
        file = validated.get(sha256)
    if file is not None:
        return f"trained on these triples: no result ({path.parent.name} trained on {file})"
    if trained_on_validation:
        names = ", ".join(validated.values()) or "unnamed"
        return f"trained on triples that it was validated by ({names}): no result where these are among them"
    return None


def pseudonyms_of(source: str) -> PseudonymRecord | None:
    """Read how names were replaced in the stories that a run was trained on; None if they were not."""
    record = read_record(source)
    if record is None:
        return None
    pseudonyms = record.data_of("train").pseudonyms
    return None if pseudonyms is None or pseudonyms.backend == "none" else pseudonyms


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, tensors and plain data only; raise ModelError if it is broken or holds anything else."""
    with _reading_checkpoint(path):
        content = _read_sharded(path) if path.is_dir() else _read_whole(path)
        for name in ("state_dict", "hyper_parameters"):
            if not isinstance(content.get(name, {}), dict):
                raise ModelError(f"checkpoint {path}: {name} is no mapping; name another one")
        return content


def check_shard_table(folder: Path) -> None:
    """Check that the table of a sharded checkpoint holds nothing else; Lightning reads it without such a check.

    Raises:
        ModelError: if it is missing or broken, or holds anything else.
    """
    with _reading_checkpoint(folder):
        _shard_table(folder)


@contextmanager
def _reading_checkpoint(path: Path) -> Iterator[None]:
    with reading("checkpoint", path, "name another one", ModelError):
        try:
            yield
        except (pickle.UnpicklingError, RuntimeError) as error:  # torch's own message advises to run whatever is in it
            raise ModelError(f"checkpoint {path}: it is broken, or holds more than tensors and plain data") from error


def _read_whole(path: Path) -> dict[str, Any]:
    return dict(torch.load(path, map_location="cpu", weights_only=True, mmap=True))


def _read_sharded(folder: Path) -> dict[str, Any]:
    """Read a sharded checkpoint, which is a folder: its weights in one piece, without the optimizer's state."""
    from torch.distributed.checkpoint.state_dict_loader import load  # takes a second, and few checkpoints are sharded

    stored = _shard_table(folder).state_dict_metadata
    names = [name for name in stored if name.startswith("state_dict.")]
    weights = {name: torch.empty(stored[name].size, dtype=stored[name].properties.dtype) for name in names}
    with warnings.catch_warnings(action="ignore"):  # of there being one process only
        load(weights, checkpoint_id=folder, no_dist=True)
    content = dict(torch.load(folder / "meta.pt", map_location="cpu", weights_only=True))
    return content | {"state_dict": without_prefix(weights, "state_dict.")}


def _shard_table(folder: Path) -> Any:
    with (folder / ".metadata").open("rb") as file:
        return _ShardTable(file).load()


class _ShardTable(pickle.Unpickler):
    """Reader of the table of shards that refuses any other class: torch's own reader would run code."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class by which torch describes shards."""
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        from_known_package = module.partition(".")[0] in ("torch", "pathlib")
        if not (from_known_package and (name in SHARD_CLASSES or is_dtype)):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def without_prefix(weights: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the weights whose names begin with a prefix, by their names without it."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
