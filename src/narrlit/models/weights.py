"""Trained weights: copied out of a module, restored, saved beside an encoder's config, and sharded over processes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from narrlit.distributed import world_size
from narrlit.errors import ModelError, OptionError, reading
from narrlit.models.adapters import transformer_layers
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder

CONFIG = "encoder.json"
WEIGHTS = "weights.safetensors"
Module = TypeVar("Module", bound=nn.Module)


def trained_weights(module: nn.Module) -> dict[str, Tensor]:
    """Copy the parameters that train, whole and to the CPU; every process takes part where they are sharded."""
    _reshard(module)
    trained = {name: parameter.detach() for name, parameter in module.named_parameters() if parameter.requires_grad}
    whole = {name: getattr(value, "full_tensor", lambda value=value: value)() for name, value in trained.items()}
    return {name: value.cpu().clone().contiguous() for name, value in whole.items()}


def restore_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy values into the parameters that train; raise ModelError if one is missing or has another shape."""
    _reshard(module)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            value = weights.get(name)
            if value is None or value.shape != parameter.shape:
                actual = "missing" if value is None else f"of shape {tuple(value.shape)}"
                raise ModelError(f"weights of another model: {name} is {actual}, {tuple(parameter.shape)} is needed")
            parameter.copy_(_like(parameter, value))


def save_encoder(folder: Path, config: EncoderConfig, weights: Mapping[str, Tensor]) -> None:
    """Write an encoder's config and trained weights into an existing folder; frozen weights are its model's own."""
    (folder / CONFIG).write_text(json.dumps(config.as_dict(), indent=2) + "\n", encoding="utf-8")
    save_file(dict(weights), folder / WEIGHTS)


def load_saved(folder: Path, *, trust_remote_code: bool = False, max_length: int | None = None) -> Encoder:
    """Load what `save_encoder` wrote; raise ModelError if a file is broken, or the weights do not fit."""
    with reading("encoder's config", folder / CONFIG, "train the model again", ModelError):
        fields = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        changes = {} if max_length is None else {"max_length": max_length}
        config = EncoderConfig.from_dict({**fields, **changes})
    encoder = Encoder(config, trust_remote_code=trust_remote_code)
    try:
        restore_weights(encoder, read_weights(folder / WEIGHTS))
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error
    return encoder


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; raise ModelError if it is missing or broken."""
    with reading("weights", path, "copy or train the model again", ModelError):
        return load_file(path)


def shard(encoder: Encoder, mesh: Any | None) -> Encoder:
    """Shard an encoder layer by layer over every process (FSDP2); without a mesh, nothing is done.

    The mesh's own dimensions are ignored: a node's processes would be its tensor-parallel dimension, while here each
    has a batch of its own.
    """
    if mesh is None:
        return encoder
    if encoder.quantized:
        raise OptionError(
            f"encoder.quantization is {encoder.config.quantization}: quantized weights can't be sharded; "
            "use --trainer.strategy ddp, where each process holds all of them"
        )
    return shard_head(encoder, mesh, [*transformer_layers(encoder.transformer)])


def shard_head(module: Module, mesh: Any | None, layers: Sequence[nn.Module] = ()) -> Module:
    """Shard a module, its layers first: beside a sharded encoder, what is not sharded has no common gradient."""
    if mesh is None:
        return module
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    every_process = init_device_mesh(mesh.device_type, (world_size(),))
    for layer in layers:
        fully_shard(layer, mesh=every_process)
    return fully_shard(module, mesh=every_process)  # type: ignore[return-value]


def _reshard(module: nn.Module) -> None:
    # After a forward pass without a backward one, FSDP2 leaves whole copies where the sharded parameters were: what is
    # written into those is lost.
    for part in module.modules():
        reshard = getattr(part, "reshard", None)
        if callable(reshard):
            reshard()


def _like(parameter: Tensor, value: Tensor) -> Tensor:
    if not hasattr(parameter, "device_mesh"):
        return value
    from torch.distributed.tensor import distribute_tensor

    value = value.to(parameter.device, parameter.dtype)
    return distribute_tensor(value, parameter.device_mesh, parameter.placements)  # type: ignore[attr-defined]
