"""What decides a frozen vector, and the folder in which vectors of one kind are kept."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from narrlit.errors import ModelError
from narrlit.files import atomic_path
from narrlit.models.config import EncoderConfig
from narrlit.models.loading import packaged_minilm
from narrlit.stores.vectors import StoreDtype, VectorStore

SPACE = "space.json"
BLOCK = 2**20


def vector_space(config: EncoderConfig, stored: StoreDtype) -> dict[str, Any]:
    """All that decides an encoder's vectors but for the prompt and the text, as plain data.

    A model in a local folder is known by its name and its files' digest, wherever it lies; one of a hub by its name and
    revision: of a branch that moves, vectors made before would be taken for those of today.
    """
    folder = packaged_minilm() if config.model == "minilm" else Path(config.model)
    local = folder.is_dir()
    return {
        "model": folder.name if local and config.model != "minilm" else config.model,
        "files": folder_digest(folder) if local else None,
        "revision": config.revision,
        "pooling": config.pooling,
        "normalize": config.normalize,
        "max_length": config.max_length,
        "dtype": config.dtype,
        "quantization": config.quantization,
        "stored": stored,
    }


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of a folder's files; hidden ones and Markdown do not count."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        if hidden or not path.is_file() or path.suffix == ".md":
            continue
        whole.update(f"{name.as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                whole.update(block)
    return whole.hexdigest()


def open_space(root: Path, space: Mapping[str, Any], maker: str = "encoder") -> VectorStore:
    """The store of a space: its own folder under `root`, made where there is none, and told in `space.json`.

    Args:
        root: of all stores.
        space: what decides its vectors.
        maker: what will make those that are added.

    Raises:
        ModelError: if the folder holds vectors of another space, or a shard is broken.
    """
    described = json.dumps(space, sort_keys=True, ensure_ascii=False)
    name = re.sub(r"[^\w.-]+", "-", str(space["model"]).rpartition("/")[2]) or "model"
    folder = root / f"{name}-{hashlib.sha256(described.encode()).hexdigest()[:12]}"
    if root.exists() and not root.is_dir():
        raise ModelError(f"vectors.folder: {root} is a file, a folder is needed")
    kept = read_space(folder)
    if kept is None:
        with atomic_path(folder / SPACE) as temporary:
            temporary.write_text(json.dumps(space, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    elif kept != dict(space):
        different = next(key for key in {**kept, **space} if kept.get(key) != space.get(key))
        raise ModelError(
            f"{folder} holds vectors of another space ({different}: {kept.get(different)} there, "
            f"{space.get(different)} here): remove it, or name another folder by vectors.folder"
        )
    return VectorStore(folder, space["stored"], maker)


def read_space(folder: Path) -> dict[str, Any] | None:
    """What a store's folder says of its vectors; None where it says nothing.

    Raises:
        ModelError: if its file is broken.
    """
    try:
        found = json.loads((folder / SPACE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder / SPACE}: it can't be read ({error}); remove it") from error
    if not isinstance(found, dict):
        raise ModelError(f"{folder / SPACE}: an object is needed, it holds a {type(found).__name__}; remove it")
    return found
