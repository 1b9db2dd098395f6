"""FSDP2: parameters of each layer spread over the processes of a device mesh."""

from typing import Any, TypeVar

from torch import nn

from narrlit.distributed import world_size
from narrlit.errors import OptionError
from narrlit.models.encoder import Encoder
from narrlit.models.loading import transformer_layers

Head = TypeVar("Head", bound=nn.Module)


def shard(encoder: Encoder, mesh: Any | None) -> Encoder:
    """Shard an encoder layer by layer over every process; without a mesh, nothing is done.

    Args:
        encoder: built, on every process alike.
        mesh: the trainer's device mesh, None outside sharded strategies. Its own division is left aside: a node's
            processes would be its tensor-parallel dimension, while here each has a batch of its own.

    Raises:
        OptionError: if the encoder is quantised, whose weights can't be cut into shards.
    """
    if mesh is None:
        return encoder
    if encoder.quantized:
        raise OptionError(
            f"encoder.quantization is {encoder.config.quantization}: quantised weights can't be sharded; "
            "use --trainer.strategy ddp, where each process holds all of them"
        )
    from torch.distributed.fsdp import fully_shard

    every_process = _every_process(mesh)
    for layer in transformer_layers(encoder.transformer):
        fully_shard(layer, mesh=every_process)
    return fully_shard(encoder, mesh=every_process)  # type: ignore[return-value]


def shard_head(head: Head, mesh: Any | None) -> Head:
    """Shard a small module beside the encoder: what is not sharded has no common gradient there."""
    if mesh is None:
        return head
    from torch.distributed.fsdp import fully_shard

    return fully_shard(head, mesh=_every_process(mesh))  # type: ignore[return-value]


def _every_process(mesh: Any) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(mesh.device_type, (world_size(),))
