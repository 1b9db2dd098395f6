"""Attention over packed stories: a batch's tokens are concatenated, and each story attends to itself alone.

One attention function, registered with transformers' attention interface, serves every model that calls it, and MPNet,
which does not, through its modules' `forward`. The batch goes in with shape (1, T) and position ids that start again at
each story.
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
"""Architectures (`model_type`) tested to give the same vectors packed and padded."""


def prepare(transformer: Any) -> None:
    """Make a transformer take packed stories, in place; its output for padded batches stays the same."""
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
    """Return True if a transformers model of this config can take packed stories."""
    layer_types = getattr(config, "layer_types", None) or ()
    return (
        config.model_type in PACKABLE
        and {"full_attention", "sliding_attention"}.issuperset(layer_types)
        and not getattr(config, "is_decoder", False)
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
    )


def features(token_ids: Tensor, lengths: tuple[int, ...], first_position: int) -> dict[str, object]:
    """Build the input of the transformer and of sentence-transformers' pooling from a batch of U packed stories.

    Returns `input_ids` and `position_ids` (1, T), `cu_seq_lens_q` (U + 1,) and `lengths`.
    """
    counts = torch.tensor(lengths)
    ends = counts.cumsum(0)
    positions = torch.arange(len(token_ids)) - torch.repeat_interleave(ends - counts, counts) + first_position
    return {
        "input_ids": token_ids[None],
        "position_ids": positions[None].to(token_ids.device, non_blocking=True),
        "cu_seq_lens_q": F.pad(ends, (1, 0)).int().to(token_ids.device, non_blocking=True),
        "lengths": lengths,
        "modality": "text",
    }


def _mask(*args: object, attention_mask: Tensor | None = None, **kwargs: object) -> Tensor | None:
    """Make transformers' usual mask of a padded batch; packed stories have no mask and need none."""
    return None if attention_mask is None else sdpa_mask(*args, attention_mask=attention_mask, **kwargs)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Attend within each story, or as transformers does in a padded batch: (1, H, T, E) in, (1, T, H, E) out."""
    lengths = kwargs.pop("lengths", None)
    if lengths is None:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        return output, None
    # A causal architecture whose config sets `is_causal` to False reads both ways, as transformers' own masks do.
    causal = bool(getattr(module, "is_causal", False)) and getattr(module.config, "is_causal", None) is not False
    options = Options(
        scaling=kwargs.get("scaling"),
        dropout=kwargs.get("dropout", 0.0),
        causal=causal,
        window=kwargs.get("sliding_window"),
        ends=kwargs.get("cu_seq_lens_q"),
    )
    return _attend((query, key, value), lengths, options).transpose(1, 2), None


class _PackedBias(NamedTuple):
    """MPNet's bias of relative positions in the longest story, (1, H, L, L), and the lengths of all stories."""

    bias: Tensor
    lengths: tuple[int, ...]


def _mpnet_forward(transformer: Any, *args: Any, lengths: tuple[int, ...] | None = None, **kwargs: Any) -> Any:
    """Leave the lengths where `_mpnet_bias` finds them: MPNet passes no further arguments on to its layers."""
    transformer.encoder.lengths = lengths
    if lengths is not None:
        # A mask of four dimensions is taken as it is; the usual one would have the square of all tokens.
        kwargs["attention_mask"] = torch.empty(1, 1, 1, 1)
    return type(transformer).forward(transformer, *args, **kwargs)


def _mpnet_bias(encoder: Any, hidden_states: Tensor) -> Any:
    """Compute the bias of relative positions once for all layers; of packed stories, a `_PackedBias`."""
    compute_bias = type(encoder).compute_position_bias
    lengths = encoder.lengths
    if lengths is None:
        return compute_bias(encoder, hidden_states)
    return _PackedBias(compute_bias(encoder, hidden_states[:, : max(lengths)]), lengths)


def _mpnet_attention(
    module: Any, hidden_states: Tensor, attention_mask: Tensor | None, position_bias: Any, **kwargs: Any
) -> Any:
    """Attend within each story, or as MPNet does in a padded batch: (1, T, D) in and out."""
    if not isinstance(position_bias, _PackedBias):
        return type(module).forward(module, hidden_states, attention_mask, position_bias, **kwargs)
    heads = (module.num_attention_heads, module.attention_head_size)
    inputs = tuple(
        linear(hidden_states).unflatten(-1, heads).transpose(1, 2) for linear in (module.q, module.k, module.v)
    )
    dropout = module.dropout.p if module.training else 0.0
    options = Options(None, dropout, causal=False, bias=position_bias.bias)
    output = _attend(inputs, position_bias.lengths, options)
    return (module.o(output.transpose(1, 2).flatten(2)),)


class Options(NamedTuple):
    """Settings of one attention call.

    Attributes:
        scaling: factor of the dot products; None: 1 / sqrt(E).
        dropout: probability.
        causal: later tokens are hidden.
        window: tokens at this distance and farther are hidden; None: none are.
        bias: added to the dot products of the longest story, (1, H, L, L); other stories take its beginning.
        ends: tokens before each story and in all, (U + 1,), which flash attention needs.
    """

    scaling: float | None
    dropout: float
    causal: bool
    window: int | None = None
    bias: Tensor | None = None
    ends: Tensor | None = None

    def mask(self, length: int, like: Tensor) -> Tensor | None:
        """Compute what is added to the dot products of a story, (1, 1 or H, L, L); None for nothing."""
        if self.bias is not None:
            return self.bias.to(like.dtype)
        positions = torch.arange(length, device=like.device)
        distance = positions[:, None] - positions
        if self.causal:
            hidden = (distance < 0) | (distance >= (self.window or length))
        elif self.window is not None and self.window < length:
            hidden = distance.abs() >= self.window
        else:
            return None
        # Not infinity: rows of padding may have all tokens hidden, and would become NaN.
        return like.new_zeros(1, 1, length, length).masked_fill(hidden, torch.finfo(like.dtype).min)


Inputs = tuple[Tensor, ...]
"""Queries, keys and values (1, H, T, E); keys and values may have fewer heads."""


def _attend(inputs: Inputs, lengths: tuple[int, ...], options: Options) -> Tensor:
    """Attend within each story: (1, H, T, E) in and out."""
    query = inputs[0]
    kind = query.device.type
    # As torch's attention does under autocast: rotating queries and keys may have made them float32 again.
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else query.dtype
    query, key, value = (x.to(dtype) for x in inputs)
    if _flash_fits(query, options):
        return _attend_flash((query, key, value), lengths, options)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    attend = _attend_padded if query.is_cuda else _attend_each
    return attend((query, key, value), lengths, options)


def _attend_each(inputs: Inputs, lengths: tuple[int, ...], options: Options) -> Tensor:
    """Attend story by story, by torch's attention or, where that is slow, by products of matrices."""
    if _products_are_faster(inputs[0], options):
        return _attend_by_products(inputs, lengths, options)
    longest, window = max(lengths), options.window
    # torch's own causal attention, if the window is no narrower than the stories, needs no mask.
    causal = options.causal and (window is None or window >= longest)
    mask = None if causal else options.mask(longest, inputs[0])
    attend = partial(F.scaled_dot_product_attention, dropout_p=options.dropout, is_causal=causal, scale=options.scaling)
    # split and not slices: the gradient of a split is one concatenation, that of U slices is U full-size tensors.
    queries, keys, values = (torch.split(x, list(lengths), dim=2) for x in inputs)
    outputs = []
    for n, query, key, value in zip(lengths, queries, keys, values, strict=True):
        outputs.append(attend(query, key, value, None if mask is None else mask[..., :n, :n]))
    return torch.cat(outputs, dim=2)


def _products_are_faster(query: Tensor, options: Options) -> bool:
    """Return True where torch has no fused attention on a CPU, or in bfloat16 a slow backward pass."""
    if query.device.type != "cpu":
        return False
    if options.dropout:
        return True
    bias = options.bias
    trains = torch.is_grad_enabled() and (query.requires_grad or (bias is not None and bias.requires_grad))
    return trains and (query.dtype == torch.bfloat16 or bias is not None)


def _attend_by_products(inputs: Inputs, lengths: tuple[int, ...], options: Options) -> Tensor:
    """Attend story by story as `_Products` does: (1, H, T, E) in and out."""
    query, key, value = (x[0] for x in inputs)
    scaling = query.shape[-1] ** -0.5 if options.scaling is None else options.scaling
    mask = options.mask(max(lengths), query)
    if mask is not None:
        mask = mask[0]
    apply: Any = _Products.apply
    output: Tensor = apply(query, key, value, mask, lengths, scaling, options.dropout)
    return output[None]


class _Products(torch.autograd.Function):
    """Attention within each story by products of matrices, with dropout: (H, T, E) in and out.

    One tensor keeps the weights of all stories for the backward pass, negative where they are dropped: a third of what
    torch would keep, and in one piece, since the C library hardly uses a freed piece again for one of the same size.
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
        """Attend story by story."""
        query, key, value = (query * scaling).contiguous(), key.contiguous(), value.contiguous()
        all_weights = query.new_empty(len(query) * sum(n * n for n in lengths))
        output = torch.empty_like(query)
        context.lengths, context.scaling, context.dropout = lengths, scaling, dropout
        context.factor = 1 / (1 - _dropped(dropout) / DRAWS)
        for n, span, weights in _stories(all_weights, len(query), lengths):
            scores = query[:, span] @ key[:, span].mT
            if mask is not None:
                scores += mask[:, :n, :n]
            torch.softmax(scores, -1, out=weights)
            if dropout:
                torch.copysign(weights, _keep(weights.shape, dropout, weights.dtype) - 0.5, out=weights)
            output[:, span] = (torch.relu(weights) if dropout else weights) @ value[:, span]
        context.save_for_backward(query, key, value, mask, all_weights)
        return output.mul_(context.factor)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of queries, keys, values and mask from the weights of the forward pass."""
        query, key, value, mask, all_weights = context.saved_tensors
        gradient = (gradients[0] * context.factor).contiguous()
        of_query, of_key, of_value = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
        of_mask = torch.zeros_like(mask) if context.needs_input_grad[3] else None
        for n, span, weights in _stories(all_weights, len(query), context.lengths):
            of_weights = gradient[:, span] @ value[:, span].mT
            softmax, dropped = weights, weights
            if context.dropout:
                of_weights = torch.ops.aten.threshold_backward(of_weights, weights, 0)
                softmax, dropped = weights.abs(), torch.relu(weights)
            of_value[:, span] = dropped.mT @ gradient[:, span]
            of_scores = softmax_gradient(of_weights, softmax)
            of_query[:, span] = of_scores @ key[:, span]
            of_key[:, span] = of_scores.mT @ query[:, span]
            if of_mask is not None:
                of_mask[:, :n, :n] += of_scores
        return of_query.mul_(context.scaling), of_key, of_value, of_mask, None, None, None


def _stories(all_weights: Tensor, heads: int, lengths: tuple[int, ...]) -> Iterator[tuple[int, slice, Tensor]]:
    """Yield the length n of each story, its tokens, and its part (H, n, n) of the weights."""
    parts = torch.split(all_weights, [heads * n * n for n in lengths])
    start = 0
    for n, weights in zip(lengths, parts, strict=True):
        yield n, slice(start, start + n), weights.view(heads, n, n)
        start += n


DRAWS = 2**16
"""Resolution of the dropout probability: values of 16 random bits."""


def _dropped(dropout: float) -> int:
    """Count the draws that drop a weight; never all of them, which would leave nothing to scale up."""
    return min(round(dropout * DRAWS), DRAWS - 1)


def _keep(shape: torch.Size, dropout: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw 1.0 where a weight stays and 0.0 where it is dropped, by 16 bits each of torch's default generator."""
    count = math.prod(shape)
    wide = torch.empty(math.ceil(count / 4), dtype=torch.int64).random_(-(2**63), None)
    bits = wide.view(torch.int16)[:count].view(shape)
    # Never as booleans: multiplying by them costs five times as much.
    return bits.ge_(_dropped(dropout) - DRAWS // 2).to(dtype)


class Dropout(nn.Dropout):
    """Dropout that draws 16 bits a value on a CPU, where torch's own takes several times as long."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop values while training."""
        if not self.training or not self.p or x.device.type != "cpu":
            return super().forward(x)
        return x * _keep(x.shape, self.p, x.dtype).div_(1 - _dropped(self.p) / DRAWS)


def _flash_fits(query: Tensor, options: Options) -> bool:
    """Return True if flash attention takes these queries and options on their GPU."""
    half = query.dtype in (torch.float16, torch.bfloat16) and query.shape[-1] % 8 == 0 and query.shape[-1] <= 256
    if not (query.is_cuda and half) or options.dropout or options.ends is None:
        return False
    # Older releases of torch have another signature or none, GPUs before Ampere no such kernel.
    return torch.__version__ >= "2.13" and torch.cuda.get_device_capability(query.device) >= (8, 0)


def _attend_flash(inputs: Inputs, lengths: tuple[int, ...], options: Options) -> Tensor:
    """Attend within all stories by one call of flash attention, which takes them packed."""
    from torch.nn.attention.varlen import varlen_attn  # not in torch 2.7, the oldest that is supported

    reach = -1 if options.window is None else options.window - 1
    query, key, value = (x[0].transpose(0, 1) for x in inputs)
    ends, longest = options.ends, max(lengths)
    attend: Any = varlen_attn  # its types differ between releases
    output: Tensor = attend(
        query,
        key,
        value,
        ends,
        ends,
        longest,
        longest,
        scale=options.scaling,
        window_size=(reach, 0 if options.causal else reach),
        enable_gqa=inputs[0].shape[1] != inputs[1].shape[1],
    )
    return output.transpose(0, 1)[None]


def _attend_padded(inputs: Inputs, lengths: tuple[int, ...], options: Options) -> Tensor:
    """Attend within all stories by one call over padded ones: on a GPU it beats a call for each story."""
    device = inputs[0].device
    inside = torch.arange(max(lengths), device=device) < torch.tensor(lengths, device=device)[:, None]
    positions = inside.flatten().nonzero().squeeze(1)

    def padded(x: Tensor) -> Tensor:
        """Pad (1, H, T, E) to (U, H, L, E)."""
        wide = x.new_zeros(inside.numel(), x.shape[1], x.shape[3])
        wide = wide.index_copy(0, positions, x[0].transpose(0, 1))
        return wide.view(*inside.shape, *wide.shape[1:]).transpose(1, 2)

    mask = inside[:, None, None, :]
    added = options.mask(inside.shape[1], inputs[0])
    if added is not None:
        mask = torch.where(mask, added, torch.finfo(added.dtype).min)
    query, key, value = map(padded, inputs)
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=options.dropout, scale=options.scaling
    )
    return output.transpose(1, 2).flatten(0, 1)[positions].transpose(0, 1)[None]
