"""Trained weights: copied out of a module, restored, saved beside an encoder's config, and sharded over processes."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from narrlit.distributed import rank, together, world_size
from narrlit.errors import ModelError, OptionError, reading
from narrlit.models.adapters import transformer_layers
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.packaged import ADAPTED

CONFIG = ADAPTED
WEIGHTS = "weights.safetensors"
LORA_FACTOR = re.compile(r"lora_[AB]\.\w+$")
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


def build_encoder(config: EncoderConfig, mesh: Any | None) -> Encoder:
    """Build an encoder to train: with a mesh, sharded layer by layer over every process (FSDP2).

    The first process alone loads the weights, and each receives its shards from there. The mesh's own dimensions are
    ignored: a node's processes would be its tensor-parallel dimension, while here each has a batch of its own.
    """
    # Models load in eval mode, and Lightning keeps the mode it finds: without train(), dropout would stay off.
    if mesh is None:
        return Encoder(config).train()
    if config.quantization is not None:
        raise OptionError(
            f"encoder.quantization is {config.quantization}: quantized weights can't be sharded; "
            "use trainer.strategy ddp, where each process holds all of them"
        )
    if config.gradient_caching:
        raise OptionError(
            "encoder.gradient_caching can't be used with sharded weights, of which every process needs as many passes: "
            "use trainer.strategy ddp, or encoder.gradient_checkpointing"
        )
    encoder = together(lambda: Encoder(config, empty=rank() > 0)).train()
    loaded = {name: parameter.detach() for name, parameter in encoder.named_parameters()}
    layers = transformer_layers(encoder.transformer)
    # Adapters apart from the frozen weights, which may be of another precision and have no gradients to reduce.
    adapters = list(filter(None, map(_adapter_parts, layers)))
    shard_head(encoder, mesh, [*adapters, *layers])
    if rank() > 0:
        encoder.to_empty(device=mesh.device_type)
    encoder.sharded = True
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            parameter.copy_(_like(parameter, loaded.pop(name) if rank() == 0 else torch.empty(parameter.shape)))
        for buffer in encoder.buffers():  # some are in no state dict, such as rotary frequencies
            dist.broadcast(buffer, 0)
    return encoder


def _adapter_parts(layer: Module) -> list[nn.Module]:
    """Return the modules of a layer that are factors of adapters."""
    return [part for name, part in layer.named_modules() if LORA_FACTOR.search(name)]


def shard_head(module: Module, mesh: Any | None, units: Sequence[nn.Module | list[nn.Module]] = ()) -> Module:
    """Shard a module, its units first: beside a sharded encoder, what is not sharded has no common gradient."""
    if mesh is None:
        return module

    every_process = init_device_mesh(mesh.device_type, (world_size(),))
    for unit in units:
        fully_shard(unit, mesh=every_process)
    return fully_shard(module, mesh=every_process)  # type: ignore[return-value]  # the module itself


def _reshard(module: nn.Module) -> None:
    # After a forward pass without a backward one, FSDP2 leaves whole copies where the sharded parameters were: what is
    # written into those is lost.
    for part in module.modules():
        reshard = getattr(part, "reshard", None)
        if callable(reshard):
            reshard()


def _like(parameter: Tensor, value: Tensor) -> Tensor:
    if not isinstance(parameter, DTensor):
        return value
    value = value.to(parameter.device, parameter.dtype)
    return distribute_tensor(value, parameter.device_mesh, parameter.placements)
