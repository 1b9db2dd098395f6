"""Linear layers of oneDNN with fused GELU, for inference on x86 CPUs: a tenth faster.

They are private operators of torch. If they are missing or compute something else, and for architectures that were not
tested, torch's ordinary layers are used.
"""

import functools
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from narrlit.compat.torch import has_hooks, has_linear_pointwise, linear_pointwise, reordered_weight

FUSABLE = frozenset({"bert", "roberta", "xlm-roberta", "camembert"})
"""Architectures (`model_type`) tested to give the same embeddings; the modules of their layers have the same names."""


class Target(NamedTuple):
    """Module whose forward pass is replaced.

    Attributes:
        module: the module.
        linear: its linear layer.
        activation: oneDNN's name of the activation that follows the layer.
    """

    module: nn.Module
    linear: nn.Linear
    activation: str


@contextmanager
def fused_linears(transformer: Any) -> Iterator[int]:
    """Compute a transformer's linear layers with oneDNN inside the `with` block, if possible.

    Use it with `torch.inference_mode()` or `torch.no_grad()`: the operators have no gradient. Until the block ends,
    the weights are in memory twice, and changes of the weights have no effect.

    Yields:
        Number of modules that use oneDNN.
    """
    supported = transformer.config.model_type in FUSABLE and transformer.config.hidden_act == "gelu"
    needs_torch = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
    targets: list[Target] = []
    if supported and not needs_torch:
        with suppress(AttributeError):  # a release of transformers with other names of modules
            targets = list(_targets(transformer))
    try:
        for target in targets:
            target.module.forward = _forward(target.linear, target.activation)
        yield len(targets)
    finally:
        for target in targets:
            vars(target.module).pop("forward", None)


@functools.cache
def _available(dtype: torch.dtype) -> bool:
    """Check that torch has the operators, and that they compute correct results on this processor in this format."""
    # Tested on x86 only: other processors have other kernels for the same operators.
    if not has_linear_pointwise() or platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    linear = nn.Linear(4, 3, device="meta", dtype=dtype).to_empty(device="cpu")  # draws no random numbers
    x = torch.linspace(-2, 2, 8, dtype=dtype).view(1, 2, 4)
    # Results are below 8, where bfloat16 has steps of 1/32.
    tolerance = 1 / 16 if dtype == torch.bfloat16 else 1e-6
    try:
        with torch.no_grad():
            linear.weight.copy_(torch.linspace(-1, 1, 12).view(3, 4))
            linear.bias.copy_(torch.linspace(0, 1, 3))
            linear_is_correct = torch.allclose(_forward(linear, "none")(x), linear(x), atol=tolerance)
            gelu_is_correct = torch.allclose(_forward(linear, "gelu")(x), F.gelu(linear(x)), atol=tolerance)
            return linear_is_correct and gelu_is_correct
    except (RuntimeError, TypeError):
        # Another signature, a build without oneDNN, or bfloat16 on a processor without it.
        return False


def _targets(transformer: Any) -> Iterator[Target]:
    """Yield the modules of a transformer's layers that oneDNN can compute."""
    for layer in transformer.encoder.layer:
        if not _is_standard(layer):
            continue
        attention, intermediate = layer.attention.self, layer.intermediate
        projections = (attention.query, attention.key, attention.value)
        for linear in (*projections, layer.attention.output.dense, layer.output.dense):
            if _is_plain(linear):
                yield Target(linear, linear, "none")
        # The activation "gelu" of transformers is a module with the function in `act`.
        exact_gelu = getattr(intermediate.intermediate_act_fn, "act", None) is F.gelu
        if exact_gelu and _is_standard(intermediate) and _is_plain(intermediate.dense):
            yield Target(intermediate, intermediate.dense, "gelu")


def _is_plain(linear: nn.Module) -> bool:
    """Return True for an ordinary linear layer on the CPU, in a format that oneDNN supports."""
    # Exactly nn.Linear: adapted and quantized layers derive from it and compute something else.
    if type(linear) is not nn.Linear or _is_modified(linear) or linear.weight.device.type != "cpu":
        return False
    return linear.weight.dtype in (torch.float32, torch.bfloat16) and _available(linear.weight.dtype)


def _is_standard(module: nn.Module) -> bool:
    """Return True for an unmodified module of transformers."""
    # A model's own code may use the same `model_type`, with other modules.
    return type(module).__module__.startswith("transformers.models.") and not _is_modified(module)


def _is_modified(module: nn.Module) -> bool:
    """Return True for a module with hooks or a replaced `forward`, which a fused layer would skip."""
    return has_hooks(module) or "forward" in vars(module)


def _forward(linear: nn.Linear, activation: str) -> Callable[[Tensor], Tensor]:
    """Build the forward pass, with oneDNN, of a linear layer and its activation."""
    weight, bias = reordered_weight(linear.weight.detach()), linear.bias

    def forward(x: Tensor) -> Tensor:
        return linear_pointwise(x.to(weight.dtype), weight, bias, activation)

    return forward
