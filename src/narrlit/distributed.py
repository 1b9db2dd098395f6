"""Communication between the processes of a fit: world size, rank, and collectives for tensors and Python objects."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from socket import gethostname
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from narrlit.errors import ModelError, NarrlitError, OptionError

T = TypeVar("T")
PATIENCE = timedelta(days=2)
"""Maximum wait for another process on the CPU; GPU back-ends time out after 10 minutes."""
LAG = 10.0
"""Seconds after which a new file is visible in a shared network folder."""


def world_size() -> int:
    """Return the number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the rank of this process; 0 without distributed training."""
    return dist.get_rank() if world_size() > 1 else 0


def gather(x: Tensor) -> Tensor:
    """Concatenate the rows of all processes: (B, ...) to (W B, ...), differentiable for each process.

    A loss of this process's anchors over gathered candidates needs no correction factor: averaged by DDP or FSDP, its
    gradient equals that of a single process with the whole batch.
    """
    return x if world_size() == 1 else _Gathered.apply(x)  # type: ignore[no-untyped-call]  # torch leaves it without types


class _Gathered(torch.autograd.Function):
    """Gather rows in the forward pass, and sum the gradients of each process's rows in the backward pass."""

    @staticmethod
    def forward(_context: object, x: Tensor) -> Tensor:
        """Concatenate the rows (B, ...) of all processes."""
        pieces = [torch.empty_like(x) for _ in range(world_size())]
        dist.all_gather(pieces, x.contiguous())
        return torch.cat(pieces)

    @staticmethod
    def backward(_context: object, *gradients: Tensor) -> Tensor:
        """Sum all processes' gradients of this process's rows."""
        return summed(gradients[0]).chunk(world_size())[rank()]


def summed(x: Tensor) -> Tensor:
    """Sum a tensor over the processes, without gradients."""
    x = x.detach().clone()
    if world_size() > 1:
        dist.all_reduce(x)
    return x


def joint_mean(x: Tensor) -> Tensor:
    """Compute this process's term of the mean over the rows of all processes, which may differ in number.

    (n, ...) to (...): the sum of this process's n rows, times W / N, with W processes and N rows in total. After DDP or
    FSDP averages over the processes, value and gradient equal those of a single process with all rows; 0 if no process
    has rows.
    """
    rows = summed(torch.tensor(float(len(x)), device=x.device))
    return x.sum(0) * (world_size() / rows.clamp(min=1))


def averages(terms: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Average named scalars over the processes in one exchange, without gradients."""
    device = next(iter(terms.values())).device
    stacked = torch.stack([value.detach().to(device, torch.float32) for value in terms.values()])
    return dict(zip(terms, summed(stacked) / world_size(), strict=True))


def together(compute: Callable[[], T]) -> T:
    """Run `compute` in every process and wait for all; an error in one process is raised in all."""
    if world_size() == 1:
        return compute()
    fault: Exception | None = None
    try:
        result = compute()
    except Exception as error:  # noqa: BLE001 (the other processes must learn of any error)
        fault = error
    faults: list[NarrlitError | None] = [None] * world_size()
    known = isinstance(fault, NarrlitError) or fault is None
    reported = (
        fault if known else ModelError("process_failed", process=rank(), reason=str(fault) or type(fault).__name__)
    )
    dist.all_gather_object(faults, reported, _patient_group(dist.group.WORLD))
    if fault is not None:
        raise fault
    for failure in filter(None, faults):
        raise failure
    return result


def from_first(compute: Callable[[], T]) -> T:
    """Run `compute` in the first process only; return its result, or raise its error, in all processes."""
    results = [together(lambda: compute() if rank() == 0 else None)]
    if world_size() > 1:
        dist.broadcast_object_list(results, 0, _patient_group(dist.group.WORLD))
    return results[0]  # type: ignore[return-value]  # no None after the broadcast


def check_shared(folder: Path, option: str) -> None:
    """Check that all processes share a folder: the first writes a file there, and all others must see it.

    Raises:
        OptionError: in every process, if one does not see the file within LAG seconds; the message names the `option`
            that sets the folder.
    """
    if world_size() == 1:
        return

    def write_file() -> str:
        folder.mkdir(parents=True, exist_ok=True)
        # The name is new, because network folders cache the absence of files.
        file = folder / f".shared-{token_hex(8)}"
        file.touch()
        return file.name

    def wait_for_file() -> None:
        deadline = time.monotonic() + LAG
        while not (folder / name).exists():
            if time.monotonic() > deadline:
                raise OptionError(
                    "folder_not_shared", folder=folder.absolute(), process=rank(), node=gethostname(), option=option
                )
            time.sleep(0.1)

    name = from_first(write_file)
    try:
        together(wait_for_file)
    finally:
        if rank() == 0:
            (folder / name).unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _patient_group(_world: object) -> Any:
    """Create a process group for objects on the CPU, with a long time-out, once per default group."""
    return dist.new_group(backend="gloo", timeout=PATIENCE)
