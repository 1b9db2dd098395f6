"""oneDNN's linear layers on an x86 CPU, exact GELU fused in: a tenth faster where no gradient is kept.

torch reaches them by private operators. Where these are missing or compute something else, and for every model that
this was not tested on, torch's ordinary layers stay in place.
"""

import functools
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FUSABLE = frozenset({"bert", "roberta", "xlm-roberta", "camembert"})
"""Architectures (`model_type`) tested to give the same vectors; their layers have the same parts by the same names."""

Forward = Callable[[Tensor], Tensor]
Target = tuple[nn.Module, nn.Linear, str]
"""A module to replace, the linear layer that it computes with, and oneDNN's name of what follows the layer."""


@contextmanager
def fused_linears(transformer: Any) -> Iterator[int]:
    """Compute a transformer's linear layers by oneDNN inside the `with` block, where that is possible.

    Enter it under `torch.inference_mode()` or `torch.no_grad()`: the operators have no gradient. The weights of the
    layers are held twice until the block ends, and a change made to them inside is not seen.

    Args:
        transformer: a transformers model.

    Yields:
        Number of modules that compute by oneDNN.
    """
    patched: list[Any] = []
    try:
        if _applies(transformer):
            for module, linear, activation in _targets(transformer):
                module.forward = _forward(linear, activation)
                patched.append(module)
        yield len(patched)
    finally:
        for module in patched:
            del module.forward


def _applies(transformer: Any) -> bool:
    config = transformer.config
    return (
        config.model_type in FUSABLE
        and config.hidden_act == "gelu"
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and _available()
    )


@functools.cache
def _available() -> bool:
    """Check that this torch has the operators and they compute what is expected."""
    operators = torch.ops.mkldnn
    known = hasattr(operators, "_linear_pointwise") and hasattr(operators, "_reorder_linear_weight")
    # Measured on x86 alone: other processors have other kernels behind the same operators.
    if not known or platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    linear = nn.Linear(4, 3, device="meta").to_empty(device="cpu")  # so made, it draws no random numbers
    x = torch.linspace(-2, 2, 8).view(1, 2, 4)
    try:
        with torch.no_grad():
            linear.weight.copy_(torch.linspace(-1, 1, 12).view(3, 4))
            linear.bias.copy_(torch.linspace(0, 1, 3))
            plain = torch.allclose(_forward(linear, "none")(x), linear(x), atol=1e-6)
            return plain and torch.allclose(_forward(linear, "gelu")(x), F.gelu(linear(x)), atol=1e-6)
    except (RuntimeError, TypeError):
        # Another signature, or a build without oneDNN behind the operators.
        return False


def _targets(transformer: Any) -> list[Target]:
    try:
        return [target for layer in transformer.encoder.layer if _known(layer) for target in _targets_of(layer)]
    except AttributeError:
        # A release of transformers that names the parts otherwise.
        return []


def _targets_of(layer: Any) -> Iterator[Target]:
    attention, intermediate = layer.attention, layer.intermediate
    inside = attention.self
    for linear in (inside.query, inside.key, inside.value, attention.output.dense, layer.output.dense):
        if _plain(linear):
            yield linear, linear, "none"
    if _known(intermediate) and _plain(intermediate.dense) and _exact_gelu(intermediate.intermediate_act_fn):
        yield intermediate, intermediate.dense, "gelu"


def _plain(linear: nn.Module) -> bool:
    # Exactly nn.Linear: LoRA's and quantised layers derive from it and compute something else.
    return (
        type(linear) is nn.Linear
        and linear.weight.dtype == torch.float32
        and linear.weight.device.type == "cpu"
        and not _altered(linear)
    )


def _known(module: nn.Module) -> bool:
    # Code that comes with a model may call itself BERT and put its parts together in another way.
    return type(module).__module__.startswith("transformers.models.") and not _altered(module)


def _altered(module: nn.Module) -> bool:
    # A hook, or a forward of its own, expects the ordinary call.
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def _exact_gelu(activation: Any) -> bool:
    # transformers' "gelu" is a module around the function.
    return getattr(activation, "act", None) is F.gelu and not _altered(activation)


def _forward(linear: nn.Linear, activation: str) -> Forward:
    weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
    bias = linear.bias

    def forward(x: Tensor) -> Tensor:
        # "none" after "gelu" is oneDNN's word for the exact one.
        output: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "none")
        return output

    return forward
