"""Seed of a run, which decides the order of batches and each step's dropout."""

import os

import torch


def run_seed() -> int:
    """Return the seed last given to Lightning's seed_everything, else torch's initial seed; from 0 to 2^31 - 1.

    Lightning keeps it in an environment variable; torch's seed changes with every step of a fit.
    """
    return int(os.environ.get("PL_GLOBAL_SEED", torch.initial_seed())) % 2**31


def seed_step(number: int, device: torch.device) -> None:
    """Seed the generators of a step's dropout, on the CPU and on this device.

    torch.manual_seed seeds every kind of device, and where one is absent keeps a trace of each call: on a CPU alone
    that takes longer than a small head's step.
    """
    if device.type in ("cpu", "cuda"):
        torch.default_generator.manual_seed(number)
        if device.type == "cuda":
            torch.cuda.manual_seed(number)
    else:
        torch.manual_seed(number)
