"""Average the weights of several trainings, and bring them back toward the frozen encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.weights import trained_weights

LORA_A = ".lora_A."
"""Part of the name of an adapter's first factor, (rank, inputs); the second is (outputs, rank)."""


def average_weights(encoders: Sequence[Encoder], trained_share: float = 1.0) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Compute `base + trained_share * (mean of the trained weights - base)`.

    The averages of adapters are adapters again, exactly: the rows of A and the columns of B of all of them side by
    side, so that their ranks add up.

    Args:
        encoders: trainings of one model, 1 or more, with adapters that are not merged, or with trained weights of
            their own.
        trained_share: 1 for the mean of the trained weights, 0 for the weights before training.

    Returns:
        The config of an encoder, and its weights, as `models.weights.save_encoder` takes them.

    Raises:
        OptionError: if the share is not from 0 to 1, or the encoders differ in more than their weights.

    Source: of the mean, Wortsman et al. 2022, Model soups; of the share, Wortsman et al. 2022, WiSE-FT.
    """
    if not 0 <= trained_share <= 1:
        raise OptionError(f"`trained_share={trained_share}`: a share from 0 to 1 is needed")
    config = encoders[0].config
    weights = [trained_weights(encoder) for encoder in encoders]
    for encoder, other in zip(encoders, weights, strict=True):
        if encoder.reads != "text" or not other or len(encoder.model) != len(encoders[0].model):
            raise OptionError("heads over a frozen encoder can't be averaged: name trainings of whole encoders")
        if encoder.config.model != config.model or other.keys() != weights[0].keys():
            raise OptionError(
                f"trainings of {config.model} and of {encoder.config.model} can't be averaged: other weights train"
            )
    if config.lora is not None:
        return _averaged_adapters([encoder.config for encoder in encoders], weights, trained_share)
    base = trained_weights(Encoder(config))
    averaged = {}
    for name, value in base.items():
        mean = torch.stack([other[name] for other in weights]).mean(0)
        averaged[name] = torch.lerp(value, mean, trained_share)
    return config, averaged


def _averaged_adapters(
    configs: Sequence[EncoderConfig], weights: Sequence[Mapping[str, Tensor]], trained_share: float
) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Put adapters side by side; the factors of all, and the share, go into B."""
    settings = [config.lora for config in configs if config.lora is not None]
    rank = sum(lora.rank for lora in settings)
    factors = [trained_share / len(settings) * lora.alpha / lora.rank for lora in settings]
    joint: dict[str, Tensor] = {}
    for name in weights[0]:
        if LORA_A in name:
            joint[name] = torch.cat([other[name] for other in weights])
        else:
            scaled = [factor * other[name] for factor, other in zip(factors, weights, strict=True)]
            joint[name] = torch.cat(scaled, dim=1)
    lora = replace(settings[0], rank=rank, alpha=rank)
    return replace(configs[0], lora=lora), joint
