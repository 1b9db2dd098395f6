"""Averages of trained weights, and interpolation between trained and frozen weights."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.weights import trained_weights

LORA_A = ".lora_A."
"""Part of the name of an adapter's factor A, (rank, inputs); factor B is (outputs, rank)."""


def average_weights(encoders: Sequence[Encoder], trained_share: float = 1.0) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Compute `base + trained_share * (mean of the trained weights - base)`.

    The average of adapters is exactly another adapter: it concatenates the rows of every A and the columns of every B,
    and its rank is the sum of their ranks.

    Args:
        encoders: one or more trainings of the same model, of its own weights or of adapters that are not merged.
        trained_share: 1 for the mean of the trained weights, 0 for the weights before training.

    Returns:
        An encoder's config and weights, as arguments of `models.weights.save_encoder`.

    Raises:
        OptionError: if the share is not from 0 to 1, or the encoders differ in more than their weights.

    Source: Wortsman et al. 2022, Model soups, for the mean; Wortsman et al. 2022, WiSE-FT, for the share.
    """
    if not 0 <= trained_share <= 1:
        raise OptionError(f"`trained_share={trained_share}`: must be between 0 and 1")
    config = encoders[0].config
    weights = [trained_weights(encoder) for encoder in encoders]
    _check_comparable(encoders, weights)
    if config.lora is not None:
        return _averaged_adapters([encoder.config for encoder in encoders], weights, trained_share)
    averaged = {}
    for name, base in trained_weights(Encoder(config)).items():
        mean = torch.stack([trained[name] for trained in weights]).mean(0)
        averaged[name] = torch.lerp(base, mean, trained_share)
    return config, averaged


def _check_comparable(encoders: Sequence[Encoder], weights: Sequence[Mapping[str, Tensor]]) -> None:
    """Raise OptionError unless all encoders trained the same weights of the same model."""
    first = encoders[0]
    for encoder, trained in zip(encoders, weights, strict=True):
        if encoder.reads != "text" or not trained or len(encoder.model) != len(first.model):
            raise OptionError("heads on a frozen encoder can't be averaged: name runs that train the encoder")
        model, other_model = first.config.model, encoder.config.model
        if other_model != model or trained.keys() != weights[0].keys():
            raise OptionError(
                f"trainings of {model} and of {other_model} can't be averaged: they did not train the same weights"
            )


def _averaged_adapters(
    configs: Sequence[EncoderConfig], weights: Sequence[Mapping[str, Tensor]], trained_share: float
) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Concatenate adapters: the rows of all A, and the columns of all B, scaled by their share of the average."""
    settings = [config.lora for config in configs if config.lora is not None]
    share = trained_share / len(settings)
    factors: dict[str, list[Tensor]] = defaultdict(list)
    rank = 0
    for lora, trained in zip(settings, weights, strict=True):
        rank += lora.rank
        scale = share * lora.alpha / lora.rank
        for name, factor in trained.items():
            factors[name].append(factor if LORA_A in name else scale * factor)
    averaged: dict[str, Tensor] = {}
    for name, factors_of_layer in factors.items():
        averaged[name] = torch.cat(factors_of_layer, dim=0 if LORA_A in name else 1)
    lora = replace(settings[0], rank=rank, alpha=rank)
    return replace(configs[0], lora=lora), averaged
