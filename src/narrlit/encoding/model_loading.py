"""Loading of a model's weights onto a device, in a number format."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from narrlit.console import say
from narrlit.encoding.options import Device, Loading
from narrlit.errors import ModelError, OptionError, reading
from narrlit.models.capabilities import no_bf16, pick_precision
from narrlit.models.config import Fusion, Precision
from narrlit.models.packaged import PACKAGED

if TYPE_CHECKING:
    from narrlit.models.encoder import Encoder

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def load_module(name: str, loading: Loading, fusion: Fusion | None) -> "Encoder":
    """Load the weights of a model to their device.

    Raises:
        ModelError: if the model does not exist or can't be loaded.
        OptionError: if the machine has no such device, or the device does not support the precision.
    """
    # Imported here, because cached embeddings are read without sentence-transformers, a slow import.
    from narrlit.models.registry import load_encoder, with_fusion

    device = pick_device(loading.device)
    precision = pick_precision(loading.precision, device)
    try:
        with reading("unloadable_model", name, error=ModelError):
            encoder = load_encoder(
                name, trust_remote_code=loading.trust_remote_code, max_length=loading.max_length, long=loading.long
            )
            encoder = encoder.to(device).cast(precision)
    except ModelError as error:
        variable = next((variable for variable in OFFLINE if os.environ.get(variable)), None)
        if variable is None or Path(name).exists() or name in PACKAGED:
            raise
        raise ModelError("downloads_prevented", cause=error, variable=variable) from error
    if loading.precision == "auto" and precision == "fp32":
        say(f"precision auto: float32; {no_bf16(device)}")
    return with_fusion(encoder, fusion)


def pick_device(name: Device) -> torch.device:
    """Return the device with the given name; `auto` is a GPU if there is one.

    Raises:
        OptionError: if the name is unknown, or the machine has no such device.
    """
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, is_available in available.items() if is_available))
    if name not in available:
        raise OptionError("unknown_device", device=name, known=available)
    if not available[name]:
        raise OptionError("missing_device", device=name)
    return torch.device(name)


def chosen_precision(loading: Loading) -> Precision | None:
    """Choose the number format for the chosen device; None: the model's own."""
    return pick_precision(loading.precision, pick_device(loading.device))
