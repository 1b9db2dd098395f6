"""LoRA adapters: in beside a transformer's linear layers, and merged into them again."""

from typing import Any

import torch
from torch import Tensor, nn

from narrlit.errors import OptionError
from narrlit.models import quantization
from narrlit.models.config import LoRA
from narrlit.models.loading import transformer_layers
from narrlit.seeds import run_seed

NAME = "default"
"""peft's name of the one adapter that a layer has."""


def add_adapters(transformer: Any, lora: LoRA) -> None:
    """Put adapters beside a transformer's linear layers and freeze all else, in place.

    Their weights are float32, and the same in every process with the run's seed; B is 0, so that vectors stay the same.

    Args:
        transformer: a transformers model; its dropout must be set by now, the adapters have one of their own.
        lora: which adapters.

    Raises:
        OptionError: if a name in `lora.target_modules` fits no linear layer, naming those there are.
    """
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type,unused-ignore]
        lora_dropout=lora.dropout,
        target_modules=targets(transformer, lora.target_modules),
        bias="none",
    )
    with torch.device("cpu"), torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed GPUs too, and these are not forked.
        torch.default_generator.manual_seed(run_seed())
        inject_adapter_in_model(config, transformer, adapter_name=NAME)
    for name, parameter in transformer.named_parameters():
        if ".lora_" in name:
            parameter.data = parameter.data.float()


def targets(transformer: Any, names: str | list[str]) -> list[str]:
    """Full names of the linear layers, inside the transformer's layers, that `names` means.

    Args:
        transformer: a transformers model.
        names: `all-linear`, or how the names end: one or a list.

    Raises:
        OptionError: if a name fits none, naming those there are.
    """
    layers = transformer_layers(transformer)
    place = next(name for name, module in transformer.named_modules() if module is layers)
    inside = [f"{place}.{name}" for name, module in layers.named_modules() if isinstance(module, nn.Linear)]
    if names == "all-linear":
        return inside
    found = {name: [x for x in inside if f".{x}".endswith(f".{name}")] for name in _listed(names)}
    unknown = [name for name, fitting in found.items() if not fitting]
    if unknown:
        # A layer's names without its number, each once.
        there = dict.fromkeys(name.removeprefix(f"{place}.").partition(".")[2] for name in inside)
        raise OptionError(
            f"encoder.lora.target_modules: no linear layer of this {transformer.config.model_type} has a name that "
            f"ends in {unknown[0]!r}; there are {', '.join(there)}"
        )
    return list(dict.fromkeys(x for fitting in found.values() for x in fitting))


def _listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def has_adapters(transformer: nn.Module) -> bool:
    """Whether a transformer has adapters that are not merged."""
    return any(_adapted(module) for module in transformer.modules())


def merge_adapters(transformer: Any) -> None:
    """Make every adapted or quantised linear layer a plain one that computes the same, in place.

    Its weights do not train, and those that were quantised take the embeddings' dtype; other layers stay as they are.
    What 8 bits round while computing is not carried over: there the vectors come out slightly different.
    """
    dtype = transformer.get_input_embeddings().weight.dtype
    modules = dict(transformer.named_modules())
    adapted = [name for name, module in modules.items() if _adapted(module)]
    inside = tuple(f"{name}." for name in adapted)
    quantised = [name for name, m in modules.items() if quantization.quantised(m) and not name.startswith(inside)]
    for name in adapted + quantised:
        transformer.set_submodule(name, _plain(modules[name], dtype))
    for name in ("peft_config", "_hf_peft_config_loaded"):
        if name in vars(transformer):
            delattr(transformer, name)
    quantization.forget(transformer)


def _adapted(module: nn.Module) -> bool:
    # By its parts and not by its class: models without adapters need not wait for peft's import.
    return hasattr(module, "lora_A") and hasattr(module, "base_layer")


def _plain(module: Any, dtype: torch.dtype) -> nn.Linear:
    """A layer as nn.Linear, with its adapter in it; of `dtype` where the layer was quantised."""
    base = module.base_layer if _adapted(module) else module
    dtype = dtype if quantization.quantised(base) else base.weight.dtype
    weight = quantization.dequantised(base)
    if _adapted(module):
        weight = weight + _delta(module).to(weight.device)
    with torch.device("meta"):
        linear = nn.Linear(base.in_features, base.out_features, bias=base.bias is not None)
    linear.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
    if base.bias is not None:
        linear.bias = nn.Parameter(base.bias.detach().to(dtype), requires_grad=False)
    return linear.train(module.training)


def _delta(module: Any) -> Tensor:
    """B A times its factor, (out, in), in float32: half precision would round the product away."""
    a, b = module.lora_A[NAME].weight.detach(), module.lora_B[NAME].weight.detach()
    factor: float = module.scaling[NAME]
    delta: Tensor = b.float() @ a.float() * factor
    return delta


def checkpoint_gradients(transformer: Any) -> None:
    """Compute each layer anew on the way back, in training mode, and keep only what goes into it.

    Raises:
        OptionError: where the architecture can't.
    """
    if not transformer.supports_gradient_checkpointing:
        raise OptionError(f"encoder.gradient_checkpointing: {transformer.config.model_type} can't; set it to false")
    # transformers renamed it, and warns of the old name.
    newer = getattr(transformer, "activation_checkpointing_enable", None)
    (newer or transformer.gradient_checkpointing_enable)({"use_reentrant": False})
    # Without re-entry the gradients of adapters need no gradient of frozen embeddings.
    transformer.disable_input_require_grads()
