"""Seed of a run, which determines the order of batches and the dropout of each step."""

import os

import torch


def run_seed() -> int:
    """Return the last seed given to Lightning's seed_everything, or torch's initial seed; from 0 to 2^31 - 1.

    Lightning stores its seed in an environment variable; the seed of torch changes at every step of a fit.
    """
    return int(os.environ.get("PL_GLOBAL_SEED", torch.initial_seed())) % 2**31


def seed_step(number: int, device: torch.device) -> None:
    """Seed the random number generators of the CPU and the given device for the dropout of a step.

    torch.manual_seed seeds every type of device, and records a traceback for each absent one: without a GPU that takes
    longer than a training step of a small head.
    """
    if device.type in ("cpu", "cuda"):
        torch.default_generator.manual_seed(number)
        if device.type == "cuda":
            torch.cuda.manual_seed(number)
    else:
        torch.manual_seed(number)
