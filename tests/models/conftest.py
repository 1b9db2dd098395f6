"""The seed of a run."""

import pytest


@pytest.fixture
def run_seed(monkeypatch):
    """Set the seed from which a run draws its adapters."""
    monkeypatch.setenv("PL_GLOBAL_SEED", "11")
