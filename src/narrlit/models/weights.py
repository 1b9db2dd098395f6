"""Trained weights: copied from a module, restored, saved with an encoder's config, and sharded over processes."""

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

from narrlit.distributed import from_first, rank, together, world_size
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
    """Copy the trainable parameters to the CPU, unsharded; with sharded parameters, call it in every process."""
    _reshard(module)
    copies: dict[str, Tensor] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            value = parameter.detach()
            whole = value.full_tensor() if isinstance(value, DTensor) else value
            copies[name] = whole.cpu().clone().contiguous()
    return copies


def restore_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Set the trainable parameters; raise ModelError if a value is missing or has another shape."""
    _reshard(module)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            value = weights.get(name)
            if value is None or value.shape != parameter.shape:
                found = "missing" if value is None else tuple(value.shape)
                raise ModelError(
                    "weights_of_other_model", name=name, found=str(found), needed=str(tuple(parameter.shape))
                )
            parameter.copy_(_like(parameter, value))


def save_encoder(folder: Path, config: EncoderConfig, weights: Mapping[str, Tensor]) -> None:
    """Write an encoder's config and trained weights to an existing folder; frozen weights are not written."""
    (folder / CONFIG).write_text(json.dumps(config.as_dict(), indent=2) + "\n", encoding="utf-8")
    save_file(dict(weights), folder / WEIGHTS)


def load_saved(folder: Path, *, trust_remote_code: bool = False, max_length: int | None = None) -> Encoder:
    """Load an encoder that `save_encoder` wrote; raise ModelError if a file is damaged or the weights do not match."""
    with reading("broken_encoder_config", folder / CONFIG, error=ModelError):
        fields = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        changes = {} if max_length is None else {"max_length": max_length}
        config = EncoderConfig.from_dict({**fields, **changes})
    encoder = Encoder(config, trust_remote_code=trust_remote_code)
    try:
        restore_weights(encoder, read_weights(folder / WEIGHTS))
    except ModelError as error:
        raise ModelError("broken_encoder", folder=folder, cause=error) from error
    return encoder


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; raise ModelError if it is missing or damaged."""
    with reading("unreadable_weights", path, error=ModelError):
        return load_file(path)


def build_encoder(config: EncoderConfig, mesh: Any | None) -> Encoder:
    """Build an encoder for training; with a mesh, shard it layer by layer over all processes (FSDP2).

    Only the first process loads the weights, and sends the other processes their shards. The dimensions of the mesh are
    ignored: they could include tensor parallelism, which is not used here.
    """
    # Models are loaded in eval mode, and Lightning does not change it: without train(), there would be no dropout.
    if mesh is None:
        return Encoder(config).train()
    _check_shardable(config)
    encoder = together(lambda: Encoder(config, empty=rank() > 0)).train()
    loaded = {name: parameter.detach() for name, parameter in encoder.named_parameters()}
    if from_first(lambda: encoder.mixes_padding):
        raise OptionError("sharded_padding", model=config.model)
    layers = transformer_layers(encoder.transformer)
    # Adapters are sharded separately from frozen weights, which may have another dtype and have no gradients.
    adapters = list(filter(None, map(_adapter_parts, layers)))
    shard_head(encoder, mesh, [*adapters, *layers])
    if rank() > 0:
        encoder.to_empty(device=mesh.device_type)
    encoder.sharded = True
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            value = loaded.pop(name) if rank() == 0 else torch.empty(parameter.shape)
            parameter.copy_(_like(parameter, value))
        for buffer in encoder.buffers():  # some are not in the state dict, such as rotary frequencies
            dist.broadcast(buffer, 0)
    return encoder


def _check_shardable(config: EncoderConfig) -> None:
    """Raise OptionError for settings that sharded weights do not support."""
    if config.quantization is not None:
        raise OptionError("sharded_quantization", quantization=config.quantization)
    if config.gradient_caching:
        raise OptionError("sharded_gradient_caching")


def _adapter_parts(layer: Module) -> list[nn.Module]:
    """List the modules of a layer that are factors of adapters."""
    return [part for name, part in layer.named_modules() if LORA_FACTOR.search(name)]


def shard_head(module: Module, mesh: Any | None, units: Sequence[nn.Module | list[nn.Module]] = ()) -> Module:
    """Shard a module, its units first: beside a sharded encoder, gradients of other modules are not averaged."""
    if mesh is None:
        return module

    every_process = init_device_mesh(mesh.device_type, (world_size(),))
    for unit in units:
        fully_shard(unit, mesh=every_process)
    return fully_shard(module, mesh=every_process)  # type: ignore[return-value]  # the module itself


def _reshard(module: nn.Module) -> None:
    """Shard the parameters of a module again where a forward pass has left them whole."""
    # After a forward pass without a backward pass, FSDP2 leaves unsharded copies in place of the sharded parameters,
    # and changes of these copies would be lost.
    for part in module.modules():
        reshard = getattr(part, "reshard", None)
        if callable(reshard):
            reshard()


def _like(parameter: Tensor, value: Tensor) -> Tensor:
    """Shard a whole value as its parameter is sharded, on its device and in its dtype; else return it unchanged."""
    if not isinstance(parameter, DTensor):
        return value
    value = value.to(parameter.device, parameter.dtype)
    return distribute_tensor(value, parameter.device_mesh, parameter.placements)
