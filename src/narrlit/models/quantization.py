"""Linear layers in 4 or 8 bits by bitsandbytes: in when a model loads, and back to plain layers for a merge."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from narrlit.models.config import EncoderConfig
from narrlit.optional import require

EXTRA = "quant"
_KINDS = {"Params4bit": "nf4", "Int8Params": "int8"}


def loading_options(config: EncoderConfig) -> dict[str, Any]:
    """What transformers must be told to quantise a model as its weights are read; empty where nothing is asked for.

    Raises:
        MissingExtraError: where a package for it is absent.
    """
    if config.quantization is None:
        return {}
    require("accelerate", EXTRA)
    require("bitsandbytes", EXTRA)
    from transformers import BitsAndBytesConfig

    # Without a list of its own, transformers leaves out a model's last part, which may be all of its layers.
    options: dict[str, Any] = {"llm_int8_skip_modules": ["pooler"]}
    if config.quantization == "int8":
        options |= {"load_in_8bit": True}
    else:
        options |= {
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": True,
            "bnb_4bit_compute_dtype": getattr(torch, config.dtype),
        }
    # By itself it would load onto the first GPU, whichever this process works on.
    return {"quantization_config": BitsAndBytesConfig(**options), "device_map": {"": "cpu"}}


def prepare(transformer: Any) -> None:
    """Make a model that was just loaded fit to train adapters: call it once; it leaves plain models as they are."""
    for module in transformer.modules():
        # After a forward in eval mode, bitsandbytes 0.50 would keep weights repacked for such processors, through
        # which no right gradient flows.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def quantised(module: nn.Module) -> str | None:
    """`nf4` or `int8` where this layer's weight is so kept, else None."""
    # Its own weight: a layer with an adapter shows that of the layer inside.
    own = dict(module.named_parameters(recurse=False)).get("weight")
    return _KINDS.get(type(own).__name__)


def dequantised(linear: nn.Linear) -> Tensor:
    """A layer's weight (out, in) in float32, whether it is quantised or not."""
    weight: Any = linear.weight
    kind = quantised(linear)
    if kind is None:
        return cast(Tensor, weight.detach().float())
    functional = require("bitsandbytes", EXTRA).functional
    if kind == "nf4":
        return cast(Tensor, functional.dequantize_4bit(weight.data, weight.quant_state).float())
    # The scales are with the weight until the first forward, and with the layer's state from then on.
    state: Any = linear.state
    scales = state.SCB if weight.SCB is None else weight.SCB
    return cast(Tensor, functional.int8_vectorwise_dequant(weight.data, scales.to(weight.device)).float())


def realign(transformer: nn.Module) -> None:
    """Bring what bitsandbytes keeps beside 8-bit weights to where the weights are, after a model was moved.

    It does so itself only for a layer that is moved alone, not for one inside a larger module.
    """
    for module in transformer.modules():
        if quantised(module) != "int8":
            continue
        weight: Any = module.weight
        state: Any = module.state
        for holder in (weight, state):
            if holder.CB is not None:
                holder.CB = weight.data
            if holder.SCB is not None:
                holder.SCB = holder.SCB.to(weight.device)


def forget(transformer: Any) -> None:
    """Take away what marks a transformers model as quantised, once all its layers are plain: it then saves as such."""
    for name in ("hf_quantizer", "quantization_method", "is_loaded_in_4bit", "is_loaded_in_8bit", "is_quantized"):
        if name in vars(transformer):
            delattr(transformer, name)
    if hasattr(transformer.config, "quantization_config"):
        del transformer.config.quantization_config
