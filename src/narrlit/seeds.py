"""The run's seed, from which the order of batches and each step's dropout are made."""

import os

import torch


def run_seed() -> int:
    """The number last given to Lightning's seed_everything, else torch's initial seed; from 0 to 2^31 - 1.

    Read from where seed_everything leaves it: torch's own seed changes with every step of a fit.
    """
    return int(os.environ.get("PL_GLOBAL_SEED", torch.initial_seed())) % 2**31
