"""Attention over packed stories: the tokens of a batch are concatenated, and each story attends only to itself.

One attention function is registered with transformers' attention interface; MPNet, which does not use the interface,
gets it through the `forward` of its modules. The input has shape (1, T), and position ids restart at each story.

Letters in shapes: U stories, T tokens of all stories, L tokens of the longest story, H heads, E dimension of a head.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from narrlit.compat.torch import softmax_gradient

PACKED = "narrlit_packed"
PACKABLE = frozenset(
    {
        "bert",
        "camembert",
        "distilbert",
        "gemma3_text",
        "modernbert",
        "mpnet",
        "qwen2",
        "qwen3",
        "roberta",
        "xlm-roberta",
    }
)
"""Architectures (`model_type`) tested to give the same embeddings with packed and padded batches."""


def prepare(transformer: Any) -> None:
    """Enable packed stories in a transformer, in place; padded batches give the same output as before."""
    AttentionInterface.register(PACKED, _attention)
    AttentionMaskInterface.register(PACKED, _mask)
    if transformer.config.model_type != "mpnet":
        transformer.set_attn_implementation(PACKED)
        return
    encoder = transformer.encoder
    transformer.forward = partial(_mpnet_forward, transformer)
    encoder.compute_position_bias = partial(_mpnet_bias, encoder)
    for layer in encoder.layer:
        layer.attention.attn.forward = partial(_mpnet_attention, layer.attention.attn)


def packable(config: Any) -> bool:
    """Return True if a transformers model with this config supports packed stories."""
    layer_types = getattr(config, "layer_types", None) or ()
    return (
        config.model_type in PACKABLE
        and {"full_attention", "sliding_attention"}.issuperset(layer_types)
        and not getattr(config, "is_decoder", False)
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
    )


def features(token_ids: Tensor, lengths: tuple[int, ...], first_position: int) -> dict[str, object]:
    """Build the input of a transformer and of sentence-transformers' pooling for U packed stories.

    Args:
        token_ids: (T,).
        lengths: number of tokens of each story.
        first_position: position id of a story's first token.

    Returns:
        `input_ids` and `position_ids` (1, T), `cu_seq_lens_q` (U + 1,) and `lengths`.
    """
    counts = torch.tensor(lengths)
    ends = counts.cumsum(0)
    starts = ends - counts
    positions = torch.arange(len(token_ids)) - torch.repeat_interleave(starts, counts) + first_position
    return {
        "input_ids": token_ids[None],
        "position_ids": positions[None].to(token_ids.device, non_blocking=True),
        "cu_seq_lens_q": F.pad(ends, (1, 0)).int().to(token_ids.device, non_blocking=True),
        "lengths": lengths,
        "modality": "text",
    }


def _mask(*args: object, attention_mask: Tensor | None = None, **kwargs: object) -> Tensor | None:
    """Build the usual mask of a padded batch; packed stories need no mask."""
    return None if attention_mask is None else sdpa_mask(*args, attention_mask=attention_mask, **kwargs)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Attend within each packed story, or as usual in a padded batch: (1, H, T, E) in, (1, T, H, E) out."""
    lengths = kwargs.pop("lengths", None)
    if lengths is None:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        return output, None
    # Like transformers' own masks: `is_causal: False` in the config makes a causal architecture bidirectional.
    causal = bool(getattr(module, "is_causal", False)) and getattr(module.config, "is_causal", None) is not False
    options = AttentionOptions(
        scaling=kwargs.get("scaling"),
        dropout=kwargs.get("dropout", 0.0),
        causal=causal,
        window=kwargs.get("sliding_window"),
        ends=kwargs.get("cu_seq_lens_q"),
    )
    return _attend((query, key, value), lengths, options).transpose(1, 2), None


class _PackedBias(NamedTuple):
    """MPNet's relative position bias for the longest story, (1, H, L, L), and the lengths of all stories."""

    bias: Tensor
    lengths: tuple[int, ...]


def _mpnet_forward(transformer: Any, *args: Any, lengths: tuple[int, ...] | None = None, **kwargs: Any) -> Any:
    """Store the lengths for `_mpnet_bias`, because MPNet does not pass extra arguments to its layers."""
    transformer.encoder.lengths = lengths
    if lengths is not None:
        # A four-dimensional mask is used unchanged; the usual mask would have T x T elements.
        kwargs["attention_mask"] = torch.empty(1, 1, 1, 1)
    return type(transformer).forward(transformer, *args, **kwargs)


def _mpnet_bias(encoder: Any, hidden_states: Tensor) -> Any:
    """Compute the relative position bias once for all layers; a `_PackedBias` for packed stories."""
    compute_bias = type(encoder).compute_position_bias
    lengths = encoder.lengths
    if lengths is None:
        return compute_bias(encoder, hidden_states)
    return _PackedBias(compute_bias(encoder, hidden_states[:, : max(lengths)]), lengths)


def _mpnet_attention(
    module: Any, hidden_states: Tensor, attention_mask: Tensor | None, position_bias: Any, **kwargs: Any
) -> Any:
    """Attend within each packed story, or as usual in a padded batch: (1, T, D) in and out."""
    if not isinstance(position_bias, _PackedBias):
        return type(module).forward(module, hidden_states, attention_mask, position_bias, **kwargs)
    heads = (module.num_attention_heads, module.attention_head_size)

    def projected(linear: nn.Module) -> Tensor:
        """Project (1, T, D) to (1, H, T, E)."""
        projection: Tensor = linear(hidden_states).unflatten(-1, heads).transpose(1, 2)
        return projection

    inputs = (projected(module.q), projected(module.k), projected(module.v))
    dropout = module.dropout.p if module.training else 0.0
    options = AttentionOptions(None, dropout, causal=False, bias=position_bias.bias)
    output = _attend(inputs, position_bias.lengths, options)
    return (module.o(output.transpose(1, 2).flatten(2)),)


class AttentionOptions(NamedTuple):
    """Settings of one attention call.

    Attributes:
        scaling: factor of the dot products; None: 1 / sqrt(E).
        dropout: dropout probability.
        causal: mask later tokens.
        window: mask tokens at this distance or farther; None: mask none.
        bias: added to the dot products of the longest story, (1, H, L, L); shorter stories use its first rows and
            columns.
        ends: cumulative number of tokens, from 0, (U + 1,); needed by flash attention.
    """

    scaling: float | None
    dropout: float
    causal: bool
    window: int | None = None
    bias: Tensor | None = None
    ends: Tensor | None = None

    def mask(self, length: int, like: Tensor) -> Tensor | None:
        """Compute the term added to the dot products of a story, (1, 1 or H, L, L); None if there is none."""
        if self.bias is not None:
            return self.bias.to(like.dtype)
        window = self.window or length
        if not self.causal and window >= length:
            return None
        positions = torch.arange(length, device=like.device)
        distance = positions[:, None] - positions
        hidden = (distance < 0) | (distance >= window) if self.causal else distance.abs() >= window
        # Not -inf: in rows of padding all tokens may be masked, and their softmax would be NaN.
        return like.new_zeros(1, 1, length, length).masked_fill(hidden, torch.finfo(like.dtype).min)


AttentionInputs = tuple[Tensor, ...]
"""Queries, keys and values (1, H, T, E); keys and values may have fewer heads."""


def _attend(inputs: AttentionInputs, lengths: tuple[int, ...], options: AttentionOptions) -> Tensor:
    """Attend within each story: (1, H, T, E) in and out."""
    query, key, value = inputs
    kind = query.device.type
    # Rotary embeddings may have returned float32; under autocast, torch's attention converts its inputs too.
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else query.dtype
    query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    if _flash_fits(query, options):
        return _attend_flash((query, key, value), lengths, options)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    attend = _attend_padded if query.is_cuda else _attend_each
    return attend((query, key, value), lengths, options)


def _attend_each(inputs: AttentionInputs, lengths: tuple[int, ...], options: AttentionOptions) -> Tensor:
    """Attend story by story, with torch's attention or, if that is slower, with matrix products."""
    query, key, value = inputs
    if _products_are_faster(query, options):
        return _attend_by_products(inputs, lengths, options)
    longest, window = max(lengths), options.window
    # If the window covers every story, torch's own causal attention needs no mask.
    causal = options.causal and (window is None or window >= longest)
    mask = None if causal else options.mask(longest, query)
    attend = partial(F.scaled_dot_product_attention, dropout_p=options.dropout, is_causal=causal, scale=options.scaling)
    # Not slices: the gradient of a split is one concatenation, that of U slices is U full-size tensors.
    sizes = list(lengths)
    queries = torch.split(query, sizes, dim=2)
    keys = torch.split(key, sizes, dim=2)
    values = torch.split(value, sizes, dim=2)
    outputs = []
    for n, story_query, story_key, story_value in zip(sizes, queries, keys, values, strict=True):
        story_mask = None if mask is None else mask[..., :n, :n]
        outputs.append(attend(story_query, story_key, story_value, story_mask))
    return torch.cat(outputs, dim=2)


def _products_are_faster(query: Tensor, options: AttentionOptions) -> bool:
    """Return True on a CPU if torch has no fused attention for these options, or a slow backward pass (bfloat16)."""
    if query.device.type != "cpu":
        return False
    if options.dropout:
        return True
    bias = options.bias
    trains = torch.is_grad_enabled() and (query.requires_grad or (bias is not None and bias.requires_grad))
    return trains and (query.dtype == torch.bfloat16 or bias is not None)


def _attend_by_products(inputs: AttentionInputs, lengths: tuple[int, ...], options: AttentionOptions) -> Tensor:
    """Attend story by story with matrix products: (1, H, T, E) in and out."""
    query, key, value = inputs
    scaling = query.shape[-1] ** -0.5 if options.scaling is None else options.scaling
    mask = options.mask(max(lengths), query)
    if mask is not None:
        mask = mask[0]
    apply: Any = _Products.apply
    output: Tensor = apply(query[0], key[0], value[0], mask, lengths, scaling, options.dropout)
    return output[None]


class _Products(torch.autograd.Function):
    """Attention within each story with matrix products and dropout: (H, T, E) in and out.

    One tensor stores the attention weights of all stories for the backward pass, with a negative sign if dropped. This
    is a third of what torch would store, and avoids fragmentation of the memory.
    """

    @staticmethod
    def forward(
        context: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        lengths: tuple[int, ...],
        scaling: float,
        dropout: float,
    ) -> Tensor:
        """Compute the outputs story by story."""
        query = (query * scaling).contiguous()
        key = key.contiguous()
        value = value.contiguous()
        all_weights = query.new_empty(len(query) * sum(n * n for n in lengths))
        output = torch.empty_like(query)
        context.lengths = lengths
        context.scaling = scaling
        context.dropout = dropout
        context.factor = 1 / (1 - _dropped(dropout) / DRAWS)
        for n, span, weights in _stories(all_weights, len(query), lengths):
            scores = query[:, span] @ key[:, span].mT
            if mask is not None:
                scores += mask[:, :n, :n]
            torch.softmax(scores, -1, out=weights)
            if dropout:
                torch.copysign(weights, _keep(weights.shape, dropout, weights.dtype) - 0.5, out=weights)
            remaining = torch.relu(weights) if dropout else weights
            output[:, span] = remaining @ value[:, span]
        context.save_for_backward(query, key, value, mask, all_weights)
        return output.mul_(context.factor)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of queries, keys, values and mask from the attention weights of the forward pass."""
        query, key, value, mask, all_weights = context.saved_tensors
        grad_output = (gradients[0] * context.factor).contiguous()
        grad_query = torch.empty_like(query)
        grad_key = torch.empty_like(key)
        grad_value = torch.empty_like(value)
        grad_mask = torch.zeros_like(mask) if context.needs_input_grad[3] else None
        for n, span, weights in _stories(all_weights, len(query), context.lengths):
            grad_weights = grad_output[:, span] @ value[:, span].mT
            softmax = remaining = weights
            if context.dropout:
                grad_weights = torch.ops.aten.threshold_backward(grad_weights, weights, 0)
                softmax = weights.abs()
                remaining = torch.relu(weights)
            grad_value[:, span] = remaining.mT @ grad_output[:, span]
            grad_scores = softmax_gradient(grad_weights, softmax)
            grad_query[:, span] = grad_scores @ key[:, span]
            grad_key[:, span] = grad_scores.mT @ query[:, span]
            if grad_mask is not None:
                grad_mask[:, :n, :n] += grad_scores
        return grad_query.mul_(context.scaling), grad_key, grad_value, grad_mask, None, None, None


def _stories(all_weights: Tensor, heads: int, lengths: tuple[int, ...]) -> Iterator[tuple[int, slice, Tensor]]:
    """Yield the length n of each story, the slice of its tokens, and its attention weights (H, n, n)."""
    parts = torch.split(all_weights, [heads * n * n for n in lengths])
    start = 0
    for n, weights in zip(lengths, parts, strict=True):
        yield n, slice(start, start + n), weights.view(heads, n, n)
        start += n


DRAWS = 2**16
"""Number of values of 16 random bits, which is the resolution of the dropout probability."""


def _dropped(dropout: float) -> int:
    """Return how many of the values drop a weight; at least one keeps it, so that the scale is finite."""
    return min(round(dropout * DRAWS), DRAWS - 1)


def _keep(shape: torch.Size, dropout: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw a dropout mask, 1.0 to keep and 0.0 to drop, from 16 bits per value of torch's default generator."""
    count = math.prod(shape)
    integers = torch.empty(math.ceil(count / 4), dtype=torch.int64).random_(-(2**63), None)
    bits = integers.view(torch.int16)[:count].view(shape)
    # Not as booleans: multiplication by them takes five times as long.
    return bits.ge_(_dropped(dropout) - DRAWS // 2).to(dtype)


class Dropout(nn.Dropout):
    """Dropout from 16 random bits per value on a CPU, several times faster than torch's own."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop values in training mode."""
        if not self.training or not self.p or x.device.type != "cpu":
            return super().forward(x)
        return x * _keep(x.shape, self.p, x.dtype).div_(1 - _dropped(self.p) / DRAWS)


def _flash_fits(query: Tensor, options: AttentionOptions) -> bool:
    """Return True if flash attention supports these queries and options on their GPU."""
    dimension = query.shape[-1]
    if not query.is_cuda or query.dtype not in (torch.float16, torch.bfloat16):
        return False
    if dimension % 8 or dimension > 256 or options.dropout or options.ends is None:
        return False
    # Older releases of torch have no such function or another signature; GPUs before Ampere have no kernel.
    return torch.__version__ >= "2.13" and torch.cuda.get_device_capability(query.device) >= (8, 0)


def _attend_flash(inputs: AttentionInputs, lengths: tuple[int, ...], options: AttentionOptions) -> Tensor:
    """Attend within all stories in one call of flash attention, which supports packed sequences."""
    from torch.nn.attention.varlen import varlen_attn  # torch 2.9, the oldest supported release, has none

    reach = -1 if options.window is None else options.window - 1
    query, key, value = inputs
    ends, longest = options.ends, max(lengths)
    attend: Any = varlen_attn  # its types differ between releases
    output: Tensor = attend(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        ends,
        ends,
        longest,
        longest,
        scale=options.scaling,
        window_size=(reach, 0 if options.causal else reach),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return output.transpose(0, 1)[None]


def _attend_padded(inputs: AttentionInputs, lengths: tuple[int, ...], options: AttentionOptions) -> Tensor:
    """Pad the stories and attend in one call, which on a GPU is faster than one call per story."""
    query, key, value = inputs
    device = query.device
    inside = torch.arange(max(lengths), device=device) < torch.tensor(lengths, device=device)[:, None]
    positions = inside.flatten().nonzero().squeeze(1)

    def padded(x: Tensor) -> Tensor:
        """Pad (1, H, T, E) to (U, H, L, E)."""
        heads, dimension = x.shape[1], x.shape[3]
        zeros = x.new_zeros(inside.numel(), heads, dimension)
        wide = zeros.index_copy(0, positions, x[0].transpose(0, 1))
        return wide.view(*inside.shape, heads, dimension).transpose(1, 2)

    mask = inside[:, None, None, :]
    added = options.mask(inside.shape[1], query)
    if added is not None:
        mask = torch.where(mask, added, torch.finfo(added.dtype).min)
    output = F.scaled_dot_product_attention(
        padded(query), padded(key), padded(value), attn_mask=mask, dropout_p=options.dropout, scale=options.scaling
    )
    return output.transpose(1, 2).flatten(0, 1)[positions].transpose(0, 1)[None]
