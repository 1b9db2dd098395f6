"""Private names of torch, checked with 2.7 to 2.13."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

SHARD_CLASSES = (
    *("Metadata", "MetadataIndex", "StorageMeta", "BytesStorageMetadata", "ChunkStorageMetadata"),
    *("TensorProperties", "TensorStorageMetadata", "_MEM_FORMAT_ENCODING", "_StorageInfo", "_get_layout"),
    *("Size", "PosixPath", "WindowsPath"),
)
"""Classes that the table of a sharded checkpoint may use.

The public `FileSystemReader.read_metadata` unpickles any class; one with an allowlist would replace this.
"""


def has_hooks(module: nn.Module) -> bool:
    """Return True if functions run before or after a module's forward pass; no public method lists them."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


class MovableModule(nn.Module):
    """Module with a method that runs after its tensors were moved or cast, also as a part of a larger module.

    `to`, `cuda`, `half` and the like of a larger module call no public method of its parts; a hook would replace this.
    """

    def moved(self) -> None:
        """Follow the move; by default, nothing."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "MovableModule":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it without types
        self.moved()
        return self


def has_linear_pointwise() -> bool:
    """Return True if this torch has the operators of `linear_pointwise` and `reordered_weight`."""
    operators = torch.ops.mkldnn
    return hasattr(operators, "_linear_pointwise") and hasattr(operators, "_reorder_linear_weight")


def reordered_weight(weight: Tensor) -> Tensor:
    """Return a linear layer's weight (O, I) in the order in which oneDNN reads it, for `linear_pointwise`.

    torch offers these operators to compiled models only; `torch.compile` would replace both, if it took less than the
    minutes that it takes for a model of changing shapes.
    """
    reordered: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
    return reordered


def linear_pointwise(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    """Compute a linear layer and what follows it by one call of oneDNN: (..., I) in, (..., O) out; without gradient.

    Args:
        x: input.
        weight: from `reordered_weight`.
        bias: (O,).
        activation: `none` or `gelu`, the exact one.
    """
    # "none" after "gelu" is oneDNN's word for the exact one.
    output: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "none")
    return output


def mkldnn_has_bf16() -> bool:
    """Return True if oneDNN may compute bfloat16 by this processor's instructions.

    It follows oneDNN's limits, such as `ONEDNN_MAX_CPU_ISA`, which the public `torch.cpu.get_capabilities` does not. A
    build without oneDNN lacks the operator.
    """
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    return bool(supported())


def softmax_gradient(gradient: Tensor, softmax: Tensor) -> Tensor:
    """Compute the gradient of a softmax's input over the last dimension from its output and that one's gradient.

    `softmax * (gradient - (gradient * softmax).sum(-1, keepdim=True))` is the same in several passes over memory;
    torch has no public function with one.
    """
    result: Tensor = torch.ops.aten._softmax_backward_data(gradient, softmax, -1, softmax.dtype)
    return result


def allow_clipping(optimizer: torch.optim.Optimizer) -> None:
    """Let Lightning clip the gradients of a fused optimizer in bfloat16.

    By this mark a fused optimizer tells that it unscales gradients itself, and Lightning refuses to clip those; with
    bfloat16 nothing is scaled. A check of Lightning's for a scale would replace this.
    """
    vars(optimizer)["_step_supports_amp_scaling"] = False
