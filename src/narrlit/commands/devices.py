"""Where a command computes, and how it says so."""

from typing import TYPE_CHECKING, Literal

from narrlit.console import say, say_truncated
from narrlit.errors import OptionError

if TYPE_CHECKING:
    import torch

__all__ = ["Device", "pick_device", "say", "say_truncated"]
Device = Literal["auto", "cpu", "cuda", "mps"]


def pick_device(name: Device) -> "torch.device":
    """The device of this name; `auto`: a GPU where there is one.

    Raises:
        OptionError: if the device is not there.
    """
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, found in there.items() if found))
    if not there[name]:
        raise OptionError(f"--device {name}: this machine has none; use auto or cpu")
    return torch.device(name)
