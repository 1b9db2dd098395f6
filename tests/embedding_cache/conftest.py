"""Tiny models with different embeddings of different stories."""

import pytest
from tiny_models import DistinctModels


@pytest.fixture(scope="session")
def distinct(tiny, tmp_path_factory):
    """distinct(seed): the folder of a tiny model whose word embeddings are drawn by the seed; shared and read-only."""
    return DistinctModels(tiny, tmp_path_factory.mktemp("distinct"))
