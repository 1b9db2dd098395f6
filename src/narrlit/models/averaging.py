"""Averages and sums of trained weights, and interpolation between trained and frozen weights."""

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


Shares = float | Sequence[float]
"""Share of the mean of all trainings, or one share of each training, which are added up."""


def average_weights(
    encoders: Sequence[Encoder], trained_share: Shares = 1.0
) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Compute `base + trained_share * (mean of the trained weights - base)`.

    With a share for each training, compute `base + sum(share * (trained weights - base))`.

    The sum of adapters is exactly another adapter: it concatenates the rows of every A and the columns of every B,
    and its rank is the sum of their ranks.

    Args:
        encoders: one or more trainings of the same model, of its own weights or of adapters that are not merged.
        trained_share: 1 for the mean of the trained weights, 0 for the weights before training; or one share for each
            training.

    Returns:
        An encoder's config and weights, as arguments of `models.weights.save_encoder`.

    Raises:
        OptionError: if a share is not from 0 to 1, their number is not that of the encoders, or the encoders differ in
            more than their weights.

    Source: Wortsman et al. 2022, Model soups, for the mean; Wortsman et al. 2022, WiSE-FT, for the share; Ilharco et
    al. 2023, Editing models with task arithmetic, for the sum.
    """
    shares = shares_of_each(trained_share, len(encoders))
    config = encoders[0].config
    weights = [trained_weights(encoder) for encoder in encoders]
    _check_comparable(encoders, weights)
    if config.lora is not None:
        return _summed_adapters([encoder.config for encoder in encoders], weights, shares)
    summed = {}
    for name, base in trained_weights(Encoder(config)).items():
        changes = [share * (trained[name] - base) for share, trained in zip(shares, weights, strict=True)]
        summed[name] = base + torch.stack(changes).sum(0)
    return config, summed


def shares_of_each(trained_share: Shares, count: int) -> list[float]:
    """Return the share of each of `count` trainings: a single one is divided evenly.

    Raises:
        OptionError: if a share is not from 0 to 1, or there is not one for each training.

    >>> shares_of_each(0.5, 2), shares_of_each([1.0, 0.5], 2)
    ([0.25, 0.25], [1.0, 0.5])
    """
    given = [trained_share] if isinstance(trained_share, float | int) else list(trained_share)
    for share in given:
        if not 0 <= share <= 1:
            raise OptionError("share", option="trained_share", found=share)
    if isinstance(trained_share, float | int):
        return [trained_share / count] * count
    if len(given) != count:
        raise OptionError("number_of_shares", shares=len(given), trainings=count)
    return given


def _check_comparable(encoders: Sequence[Encoder], weights: Sequence[Mapping[str, Tensor]]) -> None:
    """Raise OptionError unless all encoders trained the same weights of the same model."""
    first = encoders[0]
    for encoder, trained in zip(encoders, weights, strict=True):
        if encoder.reads != "text" or not trained or len(encoder.model) != len(first.model):
            raise OptionError("averaged_heads")
        model, other_model = first.config.model, encoder.config.model
        if other_model != model or trained.keys() != weights[0].keys():
            raise OptionError("other_weights_averaged", model=model, other_model=other_model)


def _summed_adapters(
    configs: Sequence[EncoderConfig], weights: Sequence[Mapping[str, Tensor]], shares: Sequence[float]
) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Concatenate adapters: the rows of all A, and the columns of all B, each scaled by its share."""
    settings = [config.lora for config in configs if config.lora is not None]
    factors: dict[str, list[Tensor]] = defaultdict(list)
    rank = 0
    for lora, trained, share in zip(settings, weights, shares, strict=True):
        rank += lora.rank
        scale = share * lora.alpha / lora.rank
        for name, factor in trained.items():
            factors[name].append(factor if LORA_A in name else scale * factor)
    summed: dict[str, Tensor] = {}
    for name, factors_of_layer in factors.items():
        summed[name] = torch.cat(factors_of_layer, dim=0 if LORA_A in name else 1)
    lora = replace(settings[0], rank=rank, alpha=rank)
    return replace(configs[0], lora=lora), summed
