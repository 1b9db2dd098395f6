"""What `--model M` may be: a folder, a run directory, a checkpoint, a promoted teacher, a hub id or `minilm`."""

import json
import pickle
from pathlib import Path
from typing import Any

from narrlit.errors import ModelError
from narrlit.models.bilstm import BiLSTM
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.fusion import Fusion
from narrlit.models.heads import as_modules, build_head
from narrlit.models.sentence_encoder import SentenceEncoder, is_sentence_encoder, load_sentence_encoder
from narrlit.models.view_encoder import AnyEncoder, ViewEncoder, is_view_encoder, load_view_encoder
from narrlit.models.views import ViewFuser
from narrlit.models.weights import is_saved_encoder, load_saved

RECORD = "run.json"


def load_encoder(source: str, trust_remote_code: bool = False, max_length: int | None = None) -> AnyEncoder:
    """Load the encoder that `source` names, ready to embed: adapters merged, unless their model is quantised.

    Args:
        source: a sentence-transformers folder, a run directory (its best checkpoint, else its last), a checkpoint,
            the folder of a promoted teacher, a model hub's id, or `minilm`, which never asks a network.
        trust_remote_code: run Python files that come with the model.
        max_length: tokens of a story (of a sentence, where the model reads sentences) that are read; None: as trained,
            or as the model's files say.

    Raises:
        ModelError: if there is no such model or it can't be loaded.
    """
    encoder: AnyEncoder
    checkpoint = find_checkpoint(source)
    if checkpoint is not None:
        encoder = _from_checkpoint(checkpoint, trust_remote_code, max_length)
    elif is_saved_encoder(Path(source)):
        encoder = load_saved(Path(source), **_changes(trust_remote_code, max_length))
    elif is_view_encoder(Path(source)):
        encoder = load_view_encoder(Path(source), max_length, trust_remote_code)
    elif is_sentence_encoder(Path(source)):
        encoder = load_sentence_encoder(Path(source), max_length, trust_remote_code)
    else:
        # The folder's own files say whether vectors are normalised: what it gives elsewhere it gives here.
        encoder = Encoder(
            EncoderConfig(source, normalize=None, max_length=max_length, trust_remote_code=trust_remote_code)
        )
    if encoder.has_adapters and not encoder.quantized:
        encoder.merge()
    return encoder.eval()


def _changes(trust_remote_code: bool, max_length: int | None) -> dict[str, Any]:
    """What a command may set of a trained encoder's config: the consent to run code is never read from a file."""
    given = {} if max_length is None else {"max_length": max_length}
    return {"trust_remote_code": trust_remote_code, **given}


def find_checkpoint(source: str) -> Path | None:
    """The checkpoint that `source` is or, if it is a run directory, recommends; None where it is neither.

    Raises:
        ModelError: for a run directory without a checkpoint.
    """
    path = Path(source)
    if path.suffix == ".ckpt":
        if not path.exists():
            raise ModelError(f"checkpoint {source}: no such file")
        return path
    if not (path / RECORD).is_file():
        return None
    kept: dict[str, str] = read_record(path / RECORD).get("checkpoints", {})
    # A run that was killed may have replaced a checkpoint after its last record: then the newest one serves.
    newest = sorted((path / "checkpoints").glob("*.ckpt"), key=lambda file: file.stat().st_mtime, reverse=True)
    for candidate in [path / kept[name] for name in ("best", "last") if name in kept] + newest:
        if candidate.exists():
            return candidate
    raise ModelError(f"run {source}: no checkpoint yet, nor is one left; train on, or name another model")


def find_record(source: str) -> Path | None:
    """The record of the run that `source` is the directory of, or a checkpoint in it; None where there is none."""
    path = Path(source).absolute()
    folders = path.parents[:2] if path.suffix == ".ckpt" else [path]
    return next((folder / RECORD for folder in folders if (folder / RECORD).is_file()), None)


def read_record(record: Path) -> dict[str, Any]:
    """What a run's record says.

    Raises:
        ModelError: if the file is broken.
    """
    try:
        kept = json.loads(record.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{record}: it is no run record ({error}); name a checkpoint kept elsewhere") from error
    if not isinstance(kept, dict):
        raise ModelError(f"{record}: it is no run record (no object); name a checkpoint kept elsewhere")
    return kept


def pseudonyms_of(source: str) -> dict[str, Any] | None:
    """How names were replaced in the stories that a run was trained on; None where they were not, or nothing is known.

    Args:
        source: what `load_encoder` takes; of a run's directory, or a checkpoint in it, the record is read.

    Raises:
        ModelError: if the record is broken.
    """
    record = find_record(source)
    told = {} if record is None else (read_record(record).get("data") or {}).get("train") or {}
    found: dict[str, Any] | None = told.get("pseudonyms")
    return found


def _from_checkpoint(path: Path, trust_remote_code: bool, max_length: int | None) -> AnyEncoder:
    content = read_checkpoint(path)
    kept = content.get("hyper_parameters", {}).get("encoder")
    if kept is None:
        raise ModelError(f"checkpoint {path}: it holds no encoder of narrlit")
    try:
        config = EncoderConfig.from_dict({**kept, **_changes(trust_remote_code, max_length)})
    except TypeError as error:
        raise ModelError(f"checkpoint {path}: its encoder's settings are of another release ({error})") from error
    encoder = Encoder(config)
    head, views = (content["hyper_parameters"].get(name) for name in ("head", "views"))
    weights = content["state_dict"]
    try:
        if head is not None:
            return _with_head(encoder, head, _part(weights, "head."))
        _load_weights(encoder, _part(weights, "encoder."))
        if views is not None:
            return _with_views(encoder, views, _part(weights, "heads."))
    except RuntimeError as error:
        raise ModelError(f"checkpoint {path}: its weights do not fit {kept['model']}; did it change?") from error
    return encoder


def _part(weights: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def _with_head(encoder: Encoder, settings: dict[str, Any], weights: dict[str, Any]) -> AnyEncoder:
    """The frozen encoder with its trained head behind it.

    Raises:
        RuntimeError: if the weights or the encoder do not fit the head.
    """
    if settings["dimension"] != encoder.dimension:
        raise RuntimeError(f"the head takes vectors of {settings['dimension']} numbers, not {encoder.dimension}")
    head = build_head(**settings)
    head.load_state_dict(weights)
    if isinstance(head, BiLSTM):
        return SentenceEncoder(encoder, head)
    encoder.append(as_modules(head))
    return encoder


def _with_views(encoder: Encoder, settings: dict[str, Any], weights: dict[str, Any]) -> ViewEncoder:
    """The trained encoder with its views' heads and their fusion.

    Raises:
        RuntimeError: if the weights do not fit.
    """
    fuser = ViewFuser(encoder.dimension, Fusion(**settings["fusion"]), settings["hidden"])
    if fuser.heads is not None:
        fuser.heads.load_state_dict(weights)
    return ViewEncoder(encoder, fuser)


def _load_weights(encoder: Encoder, weights: dict[str, Any]) -> None:
    """Load a checkpoint's weights: all of them, or where most are frozen as the model's files have them, the others.

    Raises:
        RuntimeError: if one is missing, unknown or of another shape.
    """
    trained = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    if encoder.config.quantization is not None:
        # Quantised weights can't be loaded over others, and are frozen.
        weights = {name: value for name, value in weights.items() if name in trained or ".lora_" in name}
    whole = encoder.config.lora is None and encoder.config.quantization is None
    found = encoder.load_state_dict(weights, strict=whole)
    lost = trained.intersection(found.missing_keys) or found.unexpected_keys
    if lost:
        raise RuntimeError(f"missing or unknown: {min(lost)}")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content: tensors and plain data only, nothing in it is run.

    Raises:
        ModelError: if the file is broken or holds anything else.
    """
    import torch

    if path.is_dir():
        raise ModelError(f"checkpoint {path}: it is sharded; set strategy.save_distributed_checkpoint to false")
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"checkpoint {path}: it can't be read ({reason})") from error
    if not isinstance(content, dict):
        raise ModelError(f"checkpoint {path}: it holds a {type(content).__name__}, not a training state")
    return content
