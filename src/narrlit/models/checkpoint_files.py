"""Contents of checkpoints: whole files and sharded folders, of tensors and plain data only."""

import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.state_dict_loader import load

from narrlit.compat.torch import SHARD_CLASSES
from narrlit.errors import ModelError, reading

SETTINGS = "meta.pt"
"""File of a sharded checkpoint with everything except the tensors."""


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint of tensors and plain data; raise ModelError if it is damaged or contains other objects."""
    with _reading_checkpoint(path):
        content = _read_sharded(path) if path.is_dir() else _read_whole(path)
        for name in ("state_dict", "hyper_parameters"):
            if not isinstance(content.get(name, {}), dict):
                raise ModelError("broken_checkpoint_entry", path=path, name=name)
        return content


def read_checkpoint_settings(path: Path) -> dict[str, Any]:
    """Read a checkpoint without loading its weights; raise ModelError if it is damaged."""
    with _reading_checkpoint(path):
        return _read_whole(path / SETTINGS if path.is_dir() else path)


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
    with reading("broken_checkpoint", path, error=ModelError):
        try:
            yield
        except (pickle.UnpicklingError, RuntimeError) as error:  # torch's message advises to run the code in the file
            raise ModelError("unsafe_checkpoint", path=path) from error


def _read_whole(path: Path) -> dict[str, Any]:
    return dict(torch.load(path, map_location="cpu", weights_only=True, mmap=True))


def _read_sharded(folder: Path) -> dict[str, Any]:
    """Read a sharded checkpoint, a folder: its full weights, without the optimizer's state."""
    weights: dict[str, torch.Tensor] = {}
    for name, stored in _shard_table(folder).state_dict_metadata.items():
        if name.startswith("state_dict."):
            weights[name] = torch.empty(stored.size, dtype=stored.properties.dtype)
    with warnings.catch_warnings(action="ignore"):  # torch warns that there is only one process
        load(weights, checkpoint_id=folder, no_dist=True)
    return _read_whole(folder / SETTINGS) | {"state_dict": without_prefix(weights, "state_dict.")}


def _shard_table(folder: Path) -> Any:
    with (folder / ".metadata").open("rb") as file:
        return _ShardTable(file).load()


class _ShardTable(pickle.Unpickler):
    """Reader of the table of shards that accepts no other classes: torch's own reader would run code."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class with which torch describes shards; refuse others."""
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        from_known_package = module.partition(".")[0] in ("torch", "pathlib")
        if not (from_known_package and (name in SHARD_CLASSES or is_dtype)):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def without_prefix(weights: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Select the weights with a prefix in their names, and remove the prefix."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
