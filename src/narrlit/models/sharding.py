"""FSDP2: parameters of each layer spread over the processes of a device mesh."""

from typing import Any

from narrlit.models.encoder import Encoder
from narrlit.models.loading import transformer_layers


def shard(encoder: Encoder, mesh: Any | None) -> Encoder:
    """Shard an encoder layer by layer over the mesh's data-parallel dimension; without a mesh, nothing is done."""
    if mesh is None:
        return encoder
    from torch.distributed.fsdp import fully_shard

    data = mesh["data_parallel"]
    for layer in transformer_layers(encoder.transformer):
        fully_shard(layer, mesh=data)
    return fully_shard(encoder, mesh=data)  # type: ignore[return-value]
