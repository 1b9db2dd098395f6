"""Tiny models that distinguish stories: of random ones all embeddings are nearly equal."""

import functools

import pytest
import torch


@pytest.fixture(scope="session")
def distinct(tiny, tmp_path_factory):
    """distinct(seed): the folder of a tiny model whose word embeddings, drawn by the seed, outweigh all else."""

    @functools.cache
    def build(seed=0, kind="bert"):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(tiny(kind), device="cpu")
        words = model[0].model.get_input_embeddings().weight
        with torch.no_grad():
            words.copy_(torch.randn(words.shape, generator=torch.Generator().manual_seed(seed)))
        folder = tmp_path_factory.mktemp(f"distinct-{seed}") / "model"
        model.save(str(folder))
        return str(folder)

    return build
