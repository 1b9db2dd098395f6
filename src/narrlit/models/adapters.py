"""Adapters and quantized weights: LoRA is added when a model is loaded, all are merged into plain layers."""

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, inject_adapter_in_model, load_peft_weights, set_peft_model_state_dict
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import AuxiliaryTrainingWrapper
from torch import Tensor, nn
from transformers import BitsAndBytesConfig

from narrlit.compat.transformers import forget_adapter
from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.optional import require
from narrlit.seeds import run_seed

ADAPTER = "default"
"""Name of the adapter in peft; each layer has one."""
_KINDS = {"Params4bit": "nf4", "Int8Params": "int8"}


def transformer_layers(transformer: Any) -> Any:
    """Find the list of a transformer's layers, lowest first; raise OptionError for unsupported architectures."""
    for holder in (getattr(transformer, "encoder", None), transformer, getattr(transformer, "transformer", None)):
        for name in ("layer", "layers"):
            if hasattr(holder, name):
                return getattr(holder, name)
    raise OptionError("unsupported_layers", type=transformer.config.model_type)


def add_adapters(transformer: Any, lora: LoRA) -> None:
    """Add adapters to a transformer's linear layers and freeze all other weights, in place.

    The adapters are float32 and, for one seed, the same in every process; B is 0, so that embeddings do not change at
    first. Set the transformer's own dropout before.
    """
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type,unused-ignore]  # declared int in peft, which accepts any number
        lora_dropout=lora.dropout,
        target_modules=_targets(transformer, lora.target_modules),
        bias="none",
    )
    with torch.device("cpu"), torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it would also seed GPUs, whose generators are not forked here.
        torch.default_generator.manual_seed(run_seed())
        # Not transformer.add_adapter: transformers 5.24 refuses every peft before 0.22 there, but pip installs both.
        inject_adapter_in_model(config, transformer, ADAPTER)
    transformer.eval()
    for name, parameter in transformer.named_parameters():
        if ".lora_" in name:
            parameter.data = parameter.data.float()


def _targets(transformer: Any, names: str | list[str]) -> list[str]:
    """List the full names of the linear layers that `encoder.lora.target_modules` selects."""
    layers = transformer_layers(transformer)
    prefix = next(name for name, module in transformer.named_modules() if module is layers)
    modules = layers.named_modules(prefix=prefix)
    linear_names = [name for name, module in modules if isinstance(module, nn.Linear)]
    if names == "all-linear":
        return linear_names
    endings = [names] if isinstance(names, str) else names
    targets: list[str] = []
    for ending in endings:
        matches = [name for name in linear_names if f".{name}".endswith(f".{ending}")]
        if not matches:
            # Without the number of the layer, which comes after the prefix.
            endings_of_layers = [name.removeprefix(f"{prefix}.").partition(".")[2] for name in linear_names]
            available = ", ".join(dict.fromkeys(endings_of_layers))
            raise OptionError(
                "unknown_target_modules", type=transformer.config.model_type, ending=ending, available=available
            )
        targets += matches
    return list(dict.fromkeys(targets))


def adapted_layers(transformer: nn.Module) -> dict[str, Any]:
    """Return the layers with adapters that are not merged, by name."""
    # Recognized by an attribute, not by their class: models without adapters need not import peft.
    return {name: module for name, module in transformer.named_modules() if hasattr(module, "lora_A")}


def read_adapter(transformer: Any, folder: Path) -> set[str]:
    """Read the weights of the adapter in a model's folder by peft, and return the names of all weights not in its file.

    transformers 5.23 does not read all weights of every kind, such as the magnitudes of DoRA.

    Raises:
        ValueError: if the file has other weights, as of X-LoRA, which is more than a change of weights.
    """
    weights = load_peft_weights(str(folder), device="cpu")
    weights = {name.removeprefix("base_model.model."): weight for name, weight in weights.items()}
    result = set_peft_model_state_dict(transformer, weights, ADAPTER)
    if result.unexpected_keys:
        raise ValueError(f"its adapter has weights that are not used, for example {min(result.unexpected_keys)}")
    # AdaLoRA's ranks, which peft does not save.
    return {name for name in result.missing_keys if not name.endswith("ranknum.default")}


def merge_loaded(transformer: Any) -> None:
    """Merge the adapter with which a model was saved, of any kind that peft can merge, in place.

    Merged weights are computed in float32. All weights can be trained afterwards, as those of a model without adapter.

    Raises:
        Exception: if peft can't merge it; the type depends on the kind of the adapter.
    """
    kinds = (BaseTunerLayer, AuxiliaryTrainingWrapper)
    # One at a time: an adapted module may contain others.
    while adapted := [name for name, module in transformer.named_modules() if isinstance(module, kinds)]:
        module = transformer.get_submodule(adapted[0])
        dtype = next(weight.dtype for weight in module.parameters() if weight.is_floating_point())
        module.float()
        if isinstance(module, BaseTunerLayer):
            module.merge()
            plain = module.get_base_layer()
        else:
            plain = module.unload_and_optionally_merge_module(merge=True, safe_merge=False, adapter_names=None)
        transformer.set_submodule(adapted[0], plain.to(dtype).train(module.training))
    forget_adapter(transformer)
    transformer.requires_grad_(True)


def merge_adapters(transformer: Any) -> None:
    """Replace adapted and quantized linear layers by equivalent plain ones, in place.

    The new weights are frozen and have the dtype of the token embeddings. An 8-bit model also rounds activations, which
    the plain layers do not: its embeddings change slightly.
    """
    dtype = transformer.get_input_embeddings().weight.dtype
    deltas = _remove_adapters(transformer)
    dequantized = _dequantize(transformer)
    for name in deltas.keys() | dequantized:
        linear = transformer.get_submodule(name)
        weight = linear.weight.detach()
        if name in deltas:
            # In float32: half precision would round small changes away.
            weight = weight.float() + deltas[name].to(weight.device)
        linear.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
        if linear.bias is not None:
            linear.bias = nn.Parameter(linear.bias.detach().to(dtype), requires_grad=False)


def _remove_adapters(transformer: Any) -> dict[str, Tensor]:
    """Replace adapted layers by the layers inside, in place; return the adapters' changes of weights by name."""
    deltas: dict[str, Tensor] = {}
    for name, module in adapted_layers(transformer).items():
        deltas[name] = module.get_delta_weight(ADAPTER).detach().float()
        transformer.set_submodule(name, module.get_base_layer().train(module.training))
    if deltas:
        del transformer.peft_config
    return deltas


def _dequantize(transformer: Any) -> set[str]:
    """Replace quantized layers by plain ones in float32, in place; return their names."""
    names = {name for name, module in transformer.named_modules() if quantization_of(module)}
    if names:
        training = transformer.training
        transformer.dequantize(dtype=torch.float32)
        transformer.train(training)
        for attribute in ("is_loaded_in_4bit", "is_loaded_in_8bit"):
            vars(transformer).pop(attribute, None)
    return names


def checkpoint_gradients(transformer: Any) -> None:
    """Recompute each layer in the backward pass; raise OptionError for architectures without this feature."""
    if not transformer.supports_gradient_checkpointing:
        raise OptionError("no_gradient_checkpointing", type=transformer.config.model_type)
    # New releases of transformers have another name, and warn about the old one.
    new_method = getattr(transformer, "activation_checkpointing_enable", None)
    enable = new_method or transformer.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    # Non-reentrant checkpointing does not need gradients of the frozen embeddings.
    transformer.disable_input_require_grads()


def quantization_options(config: EncoderConfig) -> dict[str, Any]:
    """Build the options with which transformers quantizes weights during loading; empty without quantization."""
    if config.quantization is None:
        return {}
    require("accelerate", "quant")
    require("bitsandbytes", "quant")

    # By default transformers skips a model's last module, which may contain all of its layers.
    settings = BitsAndBytesConfig(
        load_in_8bit=config.quantization == "int8",
        load_in_4bit=config.quantization == "nf4",
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, config.dtype),
        llm_int8_skip_modules=["pooler"],
    )
    # By default the weights are loaded to the first GPU, even if this process uses another one.
    return {"quantization_config": settings, "device_map": {"": "cpu"}}


def prepare_quantized(transformer: Any) -> None:
    """Prepare a quantized model for the training of adapters; plain models do not change."""
    for module in transformer.modules():
        # On these processors bitsandbytes 0.50 repacks weights in eval mode, and later gradients are wrong.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def quantization_of(module: nn.Module) -> str | None:
    """Return the format of a layer's weight if it is quantized, `nf4` or `int8`, else None."""
    # Not module.weight: an adapted layer returns the weight of the layer inside.
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    return _KINDS.get(type(weight).__name__)


def is_quantized(transformer: nn.Module) -> bool:
    """Return True if any weight is stored in 4 or 8 bits."""
    return any(quantization_of(module) for module in transformer.modules())


def realign_quantized(transformer: nn.Module) -> None:
    """Move the scales of 8-bit weights to the device of the weights, after a model was moved.

    bitsandbytes does so itself only if a layer is moved alone, not as part of a larger module.
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
