"""Embedding spaces: the settings that determine embeddings, from which caches, indexes and teachers derive keys.

An embedding depends on the model's files, on how the model is loaded and reads stories, on the prompt, and on the text.
The space consists of everything but prompt and text.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from narrlit.errors import ModelError, reading
from narrlit.models.checkpoints import find_checkpoint, read_record
from narrlit.models.config import EncoderConfig, Fusion, Long, Precision
from narrlit.models.packaged import ADAPTED, PACKAGED, model_folder

CacheDtype = Literal["float32", "float16"]
CONFIG_SETTINGS = ("revision", "pooling", "normalize", "max_length", "dtype", "quantization")
"""Settings of an `EncoderConfig` that change its embeddings; those of training do not."""


@dataclass(frozen=True)
class EmbeddingSpace:
    """Settings that determine an embedding, except its prompt and its text.

    Attributes:
        record: the settings as plain data; `model` names the cache's folder, `stored` the number format there.

    >>> space = EmbeddingSpace({"model": "minilm", "stored": "float32"})
    >>> one, other = space.keys("query: ", ["A knight seeks a grail."]), space.keys("", ["A knight seeks a grail."])
    >>> len(one[0]), one == other
    (32, False)
    """

    record: Mapping[str, Any]

    @classmethod
    def of_model(
        cls,
        model: str,
        files: str | None,
        *,
        max_length: int | None = None,
        long: Long,
        precision: Precision | None = None,
        fusion: Fusion | None = None,
    ) -> "EmbeddingSpace":
        """Describe a trained model, and how it is loaded and reads stories.

        Args:
            model: name of the model, from `model_identity`.
            files: digest of its files, from `model_identity`.
            max_length: maximum length of a text in tokens; None: that of the model's training.
            long: how to handle longer texts.
            precision: floating-point format of the computation; None: the model's own.
            fusion: weights of text and views; None: the model's own.
        """
        return cls(
            {
                "model": model,
                "files": files,
                "max_length": max_length,
                "long": long,
                "precision": precision,
                "fusion": None if fusion is None else str(fusion),
                "stored": "float32",
            }
        )

    @classmethod
    def of_frozen(
        cls, config: EncoderConfig, stored: CacheDtype, parameters: Mapping[str, object] | None = None
    ) -> "EmbeddingSpace":
        """Describe a frozen encoder, on which a head is trained.

        A model in a local folder is identified by the name of the folder, wherever it is, and the digest of its files,
        a model of the hub by its name and revision. If the revision is a branch, embeddings of earlier commits are
        still used.

        Args:
            config: configuration of the encoder.
            stored: number format of stored embeddings.
            parameters: additional fields of the requests to a server, if a server computes the embeddings.
        """
        folder = model_folder(config.model)
        record: dict[str, object] = {
            "model": config.model if folder is None or config.model == "minilm" else folder.name,
            "files": None if folder is None else folder_digest(folder),
        }
        for name in CONFIG_SETTINGS:
            record[name] = getattr(config, name)
        record["stored"] = stored
        if parameters:
            record["parameters"] = dict(parameters)
        return cls(record)

    @classmethod
    def of_teacher(
        cls, model: str, weights: str | None, config: EncoderConfig, *, max_length: int, normalized: bool
    ) -> "EmbeddingSpace":
        """Describe the teacher of a distillation round.

        Args:
            model: name of the teacher.
            weights: digest of its weights, or of its files.
            config: configuration of its encoder.
            max_length: maximum length of a text in tokens.
            normalized: embeddings are scaled to length 1.
        """
        return cls(
            {
                "model": model,
                "files": weights,
                "encoder": config.as_dict(),
                "max_length": max_length,
                "normalized": normalized,
            }
        )

    def keys(self, prompt: str, texts: Sequence[str]) -> list[bytes]:
        """Hash the settings, the prompt and each of N texts to 32 bytes."""
        return content_keys({**self.record, "prompt": prompt}, texts)

    def folder(self, root: Path) -> Path:
        """Return the folder of this space's cache under `root`."""
        _, _, model = str(self.record["model"]).rpartition("/")
        name = re.sub(r"[^\w.-]+", "-", model) or "model"
        described = json.dumps(self.record, sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(described.encode()).hexdigest()
        return root / f"{name}-{digest[:12]}"


def content_keys(settings: Mapping[str, object], texts: Sequence[str]) -> list[bytes]:
    """Hash plain data with each of N texts to 32 bytes.

    >>> content_keys({"model": "m"}, ["a"]) == content_keys({"model": "n"}, ["a"])
    False
    """
    described = json.dumps(settings, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    # The length comes first, so that the end of the settings can't be read as the beginning of a text.
    start = len(described).to_bytes(8, "big") + described
    return [hashlib.sha256(start + text.encode("utf-8", "surrogatepass")).digest() for text in texts]


def model_identity(model: str) -> tuple[str, str | None]:
    """Return the name of a model, and a digest of its checkpoint or folder; for a model of the hub, its commit.

    A checkpoint or run may contain only a head or adapters, so that the digest includes the files of its encoder.
    """
    checkpoint = find_checkpoint(model)
    if checkpoint is not None:
        return _checkpoint_identity(model, checkpoint)
    folder = model_folder(model)
    if folder is None:
        return model, _commit(model)
    name, digest = model if model in PACKAGED else folder.name, folder_digest(folder)
    if not (folder / ADAPTED).is_file():
        return name, digest
    with reading("unreadable_encoder_config", folder / ADAPTED, error=ModelError):
        backbone = json.loads((folder / ADAPTED).read_text(encoding="utf-8"))["model"]
    return name, f"{digest} {model_identity(backbone)[1]}"


def _checkpoint_identity(model: str, checkpoint: Path) -> tuple[str, str]:
    """Return the name of a run, from its folders, and a digest of its checkpoint and its encoder's files."""
    digest = folder_digest(checkpoint) if checkpoint.is_dir() else _file_digest(checkpoint)  # a folder if sharded
    record = read_record(model)
    backbone = None if record is None else record.encoder
    if backbone is None:
        from narrlit.models.checkpoint_files import read_checkpoint  # torch, for runs and checkpoints only

        with reading("unreadable_checkpoint", checkpoint, error=ModelError):
            backbone = read_checkpoint(checkpoint)["hyper_parameters"]["encoder"]["model"]
    _, files = model_identity(backbone)
    run_and_version = checkpoint.absolute().parents[2:0:-1]
    name = "-".join(folder.name for folder in run_and_version)
    return name, f"{digest} {files}"


def _commit(model: str) -> str | None:
    """Return the commit of a model downloaded from the hub; None if it is not downloaded."""
    from huggingface_hub import try_to_load_from_cache  # models in folders, such as the default, need no hub
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(model, "config.json")
    except HFValidationError:  # not a valid hub id; loading the model reports this
        return None
    return Path(config).parent.name if isinstance(config, str) else None


def folder_digest(folder: Path) -> str:
    """Compute the SHA-256 of the names and contents of a folder's files, except hidden files and Markdown."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        if not hidden and path.is_file() and path.suffix != ".md":
            whole.update(f"{name.as_posix()}\0{_file_digest(path)}\0".encode())
    return whole.hexdigest()


def _file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file's contents."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
