"""Trained weights alone: copied out of a module, put back, and kept on disk beside what the encoder is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder

CONFIG = "encoder.json"
WEIGHTS = "weights.safetensors"


def trained_weights(module: nn.Module) -> dict[str, Tensor]:
    """Copies of the parameters that train, whole and on the CPU; every process takes part where they are sharded."""
    _reshard(module)
    return {name: _whole(p).cpu().clone().contiguous() for name, p in module.named_parameters() if p.requires_grad}


def restore_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy values into the parameters that train, in place.

    Raises:
        ModelError: if one is missing or has another shape.
    """
    _reshard(module)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            value = weights.get(name)
            if value is None or value.shape != parameter.shape:
                found = "missing" if value is None else f"of shape {tuple(value.shape)}"
                raise ModelError(f"weights of another model: {name} is {found}, {tuple(parameter.shape)} is needed")
            parameter.copy_(_like(parameter, value))


def save_encoder(folder: Path, config: EncoderConfig, weights: Mapping[str, Tensor]) -> None:
    """Write what an encoder is and its trained weights into a folder that is there; the frozen ones are its model's."""
    (folder / CONFIG).write_text(json.dumps(config.as_dict(), indent=2) + "\n", encoding="utf-8")
    save_file(dict(weights), folder / WEIGHTS)


def is_saved_encoder(folder: Path) -> bool:
    """Whether `save_encoder` wrote this folder."""
    return (folder / CONFIG).is_file()


def load_saved(folder: Path, **changes: Any) -> Encoder:
    """The encoder that `save_encoder` wrote, with some of its config's fields changed.

    Raises:
        ModelError: if a file is broken or of another release, or the weights do not fit.
    """
    try:
        kept = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        config = EncoderConfig.from_dict({**kept, **changes})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{folder / CONFIG}: it does not describe an encoder ({error})") from error
    encoder = Encoder(config)
    try:
        restore_weights(encoder, read_weights(folder / WEIGHTS))
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error
    return encoder


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file.

    Raises:
        ModelError: if it is missing or broken.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"{path}: it can't be read ({reason})") from error


def _reshard(module: nn.Module) -> None:
    # After a forward pass without a backward one, FSDP2 leaves whole copies where the sharded parameters were: what is
    # written into those is lost.
    for part in module.modules():
        reshard = getattr(part, "reshard", None)
        if callable(reshard):
            reshard()


def _whole(parameter: Tensor) -> Tensor:
    value = parameter.detach()
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _like(parameter: Tensor, value: Tensor) -> Tensor:
    if not hasattr(parameter, "device_mesh"):
        return value
    from torch.distributed.tensor import distribute_tensor

    value = value.to(parameter.device, parameter.dtype)
    return distribute_tensor(value, parameter.device_mesh, parameter.placements)  # type: ignore[attr-defined]
