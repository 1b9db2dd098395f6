"""LoRA adapters and quantized weights: added when a model loads, merged into plain layers for export."""

from typing import Any

import torch
from peft import LoraConfig
from torch import Tensor, nn
from transformers import BitsAndBytesConfig

from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.optional import require
from narrlit.seeds import run_seed

ADAPTER = "default"
"""peft's name of the one adapter that a layer has."""
_KINDS = {"Params4bit": "nf4", "Int8Params": "int8"}


def transformer_layers(transformer: Any) -> Any:
    """Find the list of a transformer's layers, lowest first; raise OptionError if the architecture has none known."""
    for holder in (getattr(transformer, "encoder", None), transformer, getattr(transformer, "transformer", None)):
        for name in ("layer", "layers"):
            if hasattr(holder, name):
                return getattr(holder, name)
    needed = "encoder.frozen_layers, encoder.lora and sharding"
    raise OptionError(f"{transformer.config.model_type} has no list of layers, which {needed} need")


def add_adapters(transformer: Any, lora: LoRA) -> None:
    """Add adapters to a transformer's linear layers and freeze all else, in place.

    Their weights are float32, and the same in every process with the run's seed; B is 0, so embeddings don't change.
    The transformer's own dropout must be set before.
    """
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type,unused-ignore]  # peft declares int, and takes any number
        lora_dropout=lora.dropout,
        target_modules=_targets(transformer, lora.target_modules),
        bias="none",
    )
    with torch.device("cpu"), torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed GPUs too, and these are not forked.
        torch.default_generator.manual_seed(run_seed())
        transformer.add_adapter(config, ADAPTER)
    transformer.eval()
    for name, parameter in transformer.named_parameters():
        if ".lora_" in name:
            parameter.data = parameter.data.float()


def _targets(transformer: Any, names: str | list[str]) -> list[str]:
    """Full names of the linear layers, inside the transformer's layers, that `names` mean."""
    layers = transformer_layers(transformer)
    prefix = next(name for name, module in transformer.named_modules() if module is layers)
    inside = [f"{prefix}.{name}" for name, module in layers.named_modules() if isinstance(module, nn.Linear)]
    if names == "all-linear":
        return inside
    endings = [names] if isinstance(names, str) else names
    targets: list[str] = []
    for ending in endings:
        fitting = [name for name in inside if f".{name}".endswith(f".{ending}")]
        if not fitting:
            # A layer's names without its number, each once.
            known = dict.fromkeys(name.removeprefix(f"{prefix}.").partition(".")[2] for name in inside)
            raise OptionError(
                f"encoder.lora.target_modules: no linear layer of this {transformer.config.model_type} has a name that "
                f"ends in {ending!r}; available: {', '.join(known)}"
            )
        targets += fitting
    return list(dict.fromkeys(targets))


def adapted_layers(transformer: nn.Module) -> dict[str, Any]:
    """Return the layers with adapters that are not merged, by name."""
    # By a part and not by the class: models without adapters need not wait for peft's import.
    return {name: module for name, module in transformer.named_modules() if hasattr(module, "lora_A")}


def merge_adapters(transformer: Any) -> None:
    """Make every adapted or quantized linear layer a plain one that computes the same, in place.

    Merged and dequantized weights do not train, and take the token embeddings' dtype. What 8 bits round while computing
    is not carried over: there embeddings come out slightly different.
    """
    dtype = transformer.get_input_embeddings().weight.dtype
    deltas: dict[str, Tensor] = {}
    for name, module in adapted_layers(transformer).items():
        deltas[name] = module.get_delta_weight(ADAPTER).detach().float()
        transformer.set_submodule(name, module.get_base_layer().train(module.training))
    if deltas:
        transformer.delete_adapter(ADAPTER)
    changed = set(deltas)
    if is_quantized(transformer):
        changed |= {name for name, module in transformer.named_modules() if quantization_of(module)}
        training = transformer.training
        transformer.dequantize(dtype=torch.float32)
        transformer.train(training)
        for name in ("is_loaded_in_4bit", "is_loaded_in_8bit"):
            vars(transformer).pop(name, None)
    for name in changed:
        linear = transformer.get_submodule(name)
        # Added in float32: half precision would round the product of the adapter's factors away.
        weight = linear.weight.data.float() + deltas[name].to(linear.weight.device) if name in deltas else linear.weight
        linear.weight = nn.Parameter(weight.detach().to(dtype), requires_grad=False)
        if linear.bias is not None:
            linear.bias = nn.Parameter(linear.bias.detach().to(dtype), requires_grad=False)


def checkpoint_gradients(transformer: Any) -> None:
    """Recompute each layer in the backward pass; raise OptionError if the architecture can't."""
    if not transformer.supports_gradient_checkpointing:
        raise OptionError(f"encoder.gradient_checkpointing: {transformer.config.model_type} can't; set it to false")
    # transformers renamed it, and warns of the old name.
    newer = getattr(transformer, "activation_checkpointing_enable", None)
    (newer or transformer.gradient_checkpointing_enable)({"use_reentrant": False})
    # Without re-entry the gradients of adapters need no gradient of frozen embeddings.
    transformer.disable_input_require_grads()


def quantization_options(config: EncoderConfig) -> dict[str, Any]:
    """Options with which transformers quantizes a model as its weights are read; empty without quantization."""
    if config.quantization is None:
        return {}
    require("accelerate", "quant")
    require("bitsandbytes", "quant")

    # Without a list of its own, transformers leaves out a model's last part, which may be all of its layers.
    settings = BitsAndBytesConfig(
        load_in_8bit=config.quantization == "int8",
        load_in_4bit=config.quantization == "nf4",
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, config.dtype),
        llm_int8_skip_modules=["pooler"],
    )
    # By default it would load onto the first GPU, whichever this process works on.
    return {"quantization_config": settings, "device_map": {"": "cpu"}}


def prepare_quantized(transformer: Any) -> None:
    """Prepare a quantized model for training adapters; plain models don't change."""
    for module in transformer.modules():
        # After a forward pass in eval mode, bitsandbytes 0.50 would keep weights repacked for such processors, through
        # which no right gradient flows.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def quantization_of(module: nn.Module) -> str | None:
    """Return `nf4` or `int8` if a layer's weight is stored so, else None."""
    # Its own weight: a layer with an adapter shows that of the layer inside.
    own = dict(module.named_parameters(recurse=False)).get("weight")
    return _KINDS.get(type(own).__name__)


def is_quantized(transformer: nn.Module) -> bool:
    """Return True if any weight is stored in 4 or 8 bits."""
    return any(quantization_of(module) for module in transformer.modules())


def realign_quantized(transformer: nn.Module) -> None:
    """Move what bitsandbytes stores beside 8-bit weights to where the weights are, after a model was moved.

    It does so itself only for a layer that is moved alone, not for one inside a larger module.
    """
    for module in transformer.modules():
        if quantization_of(module) != "int8":
            continue
        weight: Any = module.weight
        state: Any = module.state
        for holder in (weight, state):
            if holder.CB is not None:
                holder.CB = weight.data
            if holder.SCB is not None:
                holder.SCB = holder.SCB.to(weight.device)
