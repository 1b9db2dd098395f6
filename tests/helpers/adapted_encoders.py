"""Tiny encoders with adapters; packed batches, embeddings and gradients of any encoder."""

import torch

from narrlit.data.batch import PackedStories
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.encoder import Encoder


def packed(encoder, texts, role="story", indices=None):
    """A batch of texts on the encoder's device; their story indices count from 0 unless given."""
    ids, _ = encoder.tokenize(texts, role)
    token_ids = torch.tensor([token for text in ids for token in text], device=encoder.device)
    indices = torch.arange(len(ids), device=encoder.device) if indices is None else indices
    return PackedStories(token_ids, tuple(len(text) for text in ids), indices)


def vectors(encoder, texts):
    """Vectors of texts in evaluation mode, without gradients."""
    with torch.no_grad():
        return encoder.eval()(packed(encoder, texts))


def gradients(encoder, texts):
    """Gradients of all parameters that get one, in training mode, for a fixed random loss."""
    encoder.train().zero_grad()
    target = torch.randn(len(texts), encoder.dimension, generator=torch.Generator().manual_seed(1))
    embeddings = encoder(packed(encoder, texts))
    (embeddings * target.to(embeddings.device)).sum().backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


def adapted(tiny, kind="qwen3", pooling="lasttoken", **fields):
    """A tiny encoder with adapters of rank 4, which leave vectors as they are until `move`."""
    return Encoder(EncoderConfig(tiny(kind, pooling), **{"lora": LoRA(rank=4, alpha=8, dropout=0.0), **fields}))


def move(encoder, scale=0.1):
    """Take B off zero: from here on adapters change vectors, and A gets gradients."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if ".lora_B." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    return encoder
