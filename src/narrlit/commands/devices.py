"""Where a command computes, and how it says so."""

import sys
from typing import TYPE_CHECKING, Literal

from narrlit.errors import OptionError

if TYPE_CHECKING:
    import torch

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


def say(message: str) -> None:
    """Tell the person at the screen, on stderr: stdout is for results."""
    print(message, file=sys.stderr, flush=True)


def say_truncated(count: int, limit: int, one: str = "story", several: str = "stories") -> None:
    """Tell how many texts were cut, if any were; `one` and `several` say what they are."""
    if count:
        say(f"{count} {f'{one} was' if count == 1 else f'{several} were'} longer than {limit} tokens and cut")
