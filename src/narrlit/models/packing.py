"""Attention over packed stories: a batch's tokens are concatenated, and each story attends to itself alone.

One attention function, registered with transformers' attention interface, serves every model that calls it; models
are neither copied nor patched. The batch goes in with shape (1, T) and position ids that start again at each story.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PACKED = "narrlit_packed"
PACKABLE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "qwen2", "qwen3"})
"""Architectures (`model_type`) tested to give the same vectors packed and padded."""


def register() -> None:
    """Make the packed attention known to transformers; calling it again does no harm."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(PACKED, _attention)
    AttentionMaskInterface.register(PACKED, _mask)


def packable(config: Any) -> bool:
    """Return whether a transformers model of this config can take packed stories."""
    layer_types = getattr(config, "layer_types", None) or ["full_attention"]
    return (
        config.model_type in PACKABLE
        and set(layer_types) == {"full_attention"}
        and not getattr(config, "is_decoder", False)
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
    )


def features(token_ids: Tensor, lengths: tuple[int, ...], first_position: int) -> dict[str, Any]:
    """Build the input of the transformer and of sentence-transformers' pooling from a batch of U packed stories.

    Returns `input_ids` and `position_ids` (1, T), `cu_seq_lens_q` (U + 1,) and `lengths`.
    """
    counts = torch.tensor(lengths)
    ends = counts.cumsum(0)
    positions = torch.arange(len(token_ids)) - torch.repeat_interleave(ends - counts, counts) + first_position
    return {
        "input_ids": token_ids[None],
        "position_ids": positions[None].to(token_ids.device, non_blocking=True),
        "cu_seq_lens_q": F.pad(ends, (1, 0)).to(token_ids.device, non_blocking=True),
        "lengths": lengths,
        "modality": "text",
    }


def _mask(*args: Any, attention_mask: Tensor | None = None, **kwargs: Any) -> Tensor | None:
    from transformers.masking_utils import sdpa_mask

    # Packed batches bring no mask and need none; padded ones, through the same model, get the usual one.
    return None if attention_mask is None else sdpa_mask(*args, attention_mask=attention_mask, **kwargs)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Attend within each story: (1, H, T, E) in, (1, T, H, E) out."""
    from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

    lengths = kwargs.pop("lengths", None)
    if lengths is None:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        return output, None
    groups = getattr(module, "num_key_value_groups", 1)
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    attend = _attend_padded if query.is_cuda else _attend_each
    options = Options(kwargs.get("scaling"), kwargs.get("dropout", 0.0), bool(getattr(module, "is_causal", False)))
    output = attend((query, key, value), lengths, options)
    return output.transpose(1, 2), None


class Options(NamedTuple):
    """Settings of one attention call: factor of the dot products, dropout, and whether later tokens are hidden."""

    scaling: float | None
    dropout: float
    causal: bool


def _attend_each(inputs: tuple[Tensor, Tensor, Tensor], lengths: tuple[int, ...], options: Options) -> Tensor:
    scaling, dropout, causal = options
    attend = partial(F.scaled_dot_product_attention, dropout_p=dropout, is_causal=causal, scale=scaling)
    query = inputs[0]
    if dropout and not causal and query.device.type == "cpu" and query.dtype == torch.float32:
        attend = partial(_attend_with_dropout, dropout=dropout, scaling=scaling)
    # split and not slices: the gradient of a split is one concatenation, that of U slices is U full-size tensors.
    pieces = zip(*(torch.split(x, list(lengths), dim=2) for x in inputs), strict=True)
    return torch.cat([attend(*qkv) for qkv in pieces], dim=2)


def _attend_with_dropout(query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None) -> Tensor:
    """Compute attention with dropout of one story.

    With dropout torch has no fused attention for a CPU, and drawing its mask takes as long as all the rest.
    """
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    weights = torch.softmax((query * scaling) @ key.transpose(-2, -1), dim=-1)
    return (weights * _keep(weights.shape, dropout)) @ value / (1 - _dropped(dropout) / DRAWS)


DRAWS = 2**16
"""Resolution of the dropout probability: values of 16 random bits."""


def _dropped(dropout: float) -> int:
    """Count the draws that drop a weight; never all of them, which would leave nothing to scale up."""
    return min(round(dropout * DRAWS), DRAWS - 1)


def _keep(shape: torch.Size, dropout: float) -> Tensor:
    """Draw 1.0 where a weight stays and 0.0 where it is dropped, by 16 bits each of torch's default generator."""
    wide = torch.empty(-(-math.prod(shape) // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = wide.view(torch.int16)[: math.prod(shape)].view(shape)
    # Straight to numbers: multiplying by booleans costs five times as much.
    return torch.ge(bits, _dropped(dropout) - DRAWS // 2, out=torch.empty(shape))


def _attend_padded(inputs: tuple[Tensor, Tensor, Tensor], lengths: tuple[int, ...], options: Options) -> Tensor:
    # On a GPU one call over padded stories beats a call a story; everything but attention stays packed.
    device = inputs[0].device
    inside = torch.arange(max(lengths), device=device) < torch.tensor(lengths, device=device)[:, None]
    positions = inside.flatten().nonzero().squeeze(1)

    def padded(x: Tensor) -> Tensor:
        wide = x.new_zeros(inside.numel(), x.shape[1], x.shape[3])
        return wide.index_copy(0, positions, x[0].transpose(0, 1)).view(*inside.shape, *wide.shape[1:]).transpose(1, 2)

    mask = inside[:, None, None, :]
    if options.causal:
        mask = mask & torch.ones(2 * inside.shape[1:], dtype=torch.bool, device=device).tril()
    query, key, value = map(padded, inputs)
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=options.dropout, scale=options.scaling
    )
    return output.transpose(1, 2).flatten(0, 1)[positions].transpose(0, 1)[None]
