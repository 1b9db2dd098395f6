"""oneDNN's linear layers on an x86 CPU, exact GELU fused in: a tenth faster where no gradient is kept.

torch reaches them by private operators. Where these are missing or compute something else, and for every model that
this was not tested on, torch's ordinary layers stay in place.
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
"""Architectures (`model_type`) tested to give the same vectors; their layers have the same parts by the same names."""


class Target(NamedTuple):
    """A module to replace.

    Attributes:
        module: its forward pass is replaced.
        linear: the linear layer that it computes with.
        activation: oneDNN's name of what follows that layer.
    """

    module: nn.Module
    linear: nn.Linear
    activation: str


@contextmanager
def fused_linears(transformer: Any) -> Iterator[int]:
    """Compute a transformer's linear layers by oneDNN inside the `with` block, where that is possible.

    Enter it under `torch.inference_mode()` or `torch.no_grad()`: the operators have no gradient. The weights of the
    layers are held twice until the block ends, and a change made to them inside is not seen.

    Yields:
        Number of modules that compute by oneDNN.
    """
    known = transformer.config.model_type in FUSABLE and transformer.config.hidden_act == "gelu"
    needs_torch = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
    targets: list[Target] = []
    if known and not needs_torch:
        with suppress(AttributeError):  # a release of transformers that names the parts otherwise
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
    """Check that this torch has the operators and, on this processor, they compute what is expected in this format."""
    # Measured on x86 alone: other processors have other kernels behind the same operators.
    if not has_linear_pointwise() or platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    linear = nn.Linear(4, 3, device="meta", dtype=dtype).to_empty(device="cpu")  # so made, it draws no random numbers
    x = torch.linspace(-2, 2, 8, dtype=dtype).view(1, 2, 4)
    # Results lie below 8, where bfloat16 has steps of 1/32.
    tolerance = 1 / 16 if dtype == torch.bfloat16 else 1e-6
    try:
        with torch.no_grad():
            linear.weight.copy_(torch.linspace(-1, 1, 12).view(3, 4))
            linear.bias.copy_(torch.linspace(0, 1, 3))
            same = torch.allclose(_forward(linear, "none")(x), linear(x), atol=tolerance)
            return same and torch.allclose(_forward(linear, "gelu")(x), F.gelu(linear(x)), atol=tolerance)
    except (RuntimeError, TypeError):
        # Another signature, a build without oneDNN behind the operators, or bfloat16 on a processor without it.
        return False


def _targets(transformer: Any) -> Iterator[Target]:
    """Yield the modules of a transformer's layers that oneDNN can compute."""
    for layer in transformer.encoder.layer:
        if not _known(layer):
            continue
        inside, intermediate = layer.attention.self, layer.intermediate
        for linear in (inside.query, inside.key, inside.value, layer.attention.output.dense, layer.output.dense):
            if _plain(linear):
                yield Target(linear, linear, "none")
        # transformers' "gelu" is a module around the function.
        exact = getattr(intermediate.intermediate_act_fn, "act", None) is F.gelu
        if exact and _known(intermediate) and _plain(intermediate.dense):
            yield Target(intermediate, intermediate.dense, "gelu")


def _plain(linear: nn.Module) -> bool:
    """Return True for an ordinary linear layer on the CPU, in a format for which oneDNN has the operators."""
    # Exactly nn.Linear: LoRA's and quantized layers derive from it and compute something else.
    if type(linear) is not nn.Linear or _altered(linear) or linear.weight.device.type != "cpu":
        return False
    return linear.weight.dtype in (torch.float32, torch.bfloat16) and _available(linear.weight.dtype)


def _known(module: nn.Module) -> bool:
    """Return True for an unaltered module of transformers."""
    # Code that comes with a model may call itself BERT and put its parts together in another way.
    return type(module).__module__.startswith("transformers.models.") and not _altered(module)


def _altered(module: nn.Module) -> bool:
    """Return True for a module with a hook, or a forward of its own, which expect the ordinary call."""
    return has_hooks(module) or "forward" in vars(module)


def _forward(linear: nn.Linear, activation: str) -> Callable[[Tensor], Tensor]:
    """Make the forward pass by oneDNN of a linear layer and what follows it."""
    weight, bias = reordered_weight(linear.weight.detach()), linear.bias

    def forward(x: Tensor) -> Tensor:
        return linear_pointwise(x.to(weight.dtype), weight, bias, activation)

    return forward
