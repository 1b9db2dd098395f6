"""Number of processes, rank, and gathering over them."""

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """Return the number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return this process's number, 0 where there is one only."""
    return dist.get_rank() if world_size() > 1 else 0


def gather(x: Tensor) -> Tensor:
    """Concatenate every process's rows: (B, ...) in, (W B, ...) out, with gradients back to each process.

    The loss of own anchors over gathered candidates needs no factor: averaged by DDP or FSDP, its gradient is that of
    one process with the whole batch.
    """
    if world_size() == 1:
        return x
    if not x.requires_grad:
        constant = [torch.empty_like(x) for _ in range(world_size())]
        dist.all_gather(constant, x.contiguous())
        return torch.cat(constant)
    from torch.distributed.nn.functional import all_gather

    pieces: tuple[Tensor, ...] = all_gather(x.contiguous())  # type: ignore[no-untyped-call]
    return torch.cat(pieces)
