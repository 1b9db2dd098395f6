"""Small batches of frozen vectors, and objectives over them without a trainer."""

import numpy as np
import torch

from narrlit.data.batch import ExampleBatch, PackedVectors
from narrlit.stores.features import FeatureTable
from narrlit.stores.mapped import MappedVectors

D = 12


def packed(lengths, first_row=50, seed=0):
    vectors = torch.randn(sum(lengths), D, generator=torch.Generator().manual_seed(seed))
    return PackedVectors(vectors, tuple(lengths), torch.arange(len(lengths)) + first_row)


def batch_of(lengths=(1,) * 9):
    """Four examples over nine stories: anchors 0 to 3, positives 4 to 7, negative 8 of all but the last."""
    negatives = torch.tensor([[8], [8], [8], [-1]])
    return ExampleBatch(packed(lengths), torch.arange(4), torch.arange(4) + 4, negatives, torch.full((4, 1), -1))


def built(objective):
    torch.manual_seed(0)
    objective.dimension = D
    objective.configure_model()
    return objective


def table_of(count, seed=0, lengths=None):
    lengths = np.ones(count, dtype=np.int64) if lengths is None else np.array(lengths)
    vectors = torch.randn(int(lengths.sum()), D, generator=torch.Generator().manual_seed(seed))
    places = np.arange(len(vectors))
    return FeatureTable(MappedVectors([vectors], np.zeros_like(places), places), places, lengths, count), vectors


class Steps:
    """As much of a trainer as counts its batches."""

    total_batch_idx = 3

    @property
    def fit_loop(self):
        return self

    epoch_loop = fit_loop
