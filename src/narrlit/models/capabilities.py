"""Number formats that a device computes in hardware."""

import platform
from typing import Any, Literal

import torch

from narrlit.compat.torch import mkldnn_has_bf16
from narrlit.errors import OptionError
from narrlit.models.config import Precision


def has_bf16(device: torch.device) -> bool:
    """Return True if the device multiplies bfloat16 matrices in hardware; emulation is many times slower.

    On a CPU this respects oneDNN's limits, such as `ONEDNN_MAX_CPU_ISA=AVX2`.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    if platform.machine().lower() in {"x86_64", "amd64"}:
        # Processors with plain AVX-512 emulate it. Older releases of torch have no get_capabilities.
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        if not (capabilities.get("amx_bf16") or capabilities.get("avx512_bf16")):
            return False
    return mkldnn_has_bf16()


def pick_precision(precision: Precision | None, device: torch.device) -> Literal["bf16", "fp32"] | None:
    """Choose the number format for computations on a device; None: the model's own.

    Raises:
        OptionError: for `bf16` on a CPU or CUDA device without bfloat16 in hardware.
    """
    if precision == "auto":
        return "bf16" if has_bf16(device) else "fp32"
    # Support on Apple's GPUs is unknown, so bf16 is accepted there.
    if precision == "bf16" and device.type in ("cpu", "cuda") and not has_bf16(device):
        raise OptionError("no_bfloat16", reason=no_bf16(device))
    return precision


def no_bf16(device: torch.device) -> str:
    """Describe that a device lacks bfloat16."""
    if device.type == "cpu":
        return "this processor has no bfloat16 instructions (AVX512-BF16 or AMX)"
    return f"this {device.type} device does not compute bfloat16 in hardware"
