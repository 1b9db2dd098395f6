"""Small batches of frozen embeddings, and objectives over them without a trainer."""

import torch

from narrlit.data.batch import ExampleBatch, PackedFeatures

D = 12


def packed(lengths, first_index=50, seed=0):
    """Stories of so many random vectors of D dimensions each."""
    features = torch.randn(sum(lengths), D, generator=torch.Generator().manual_seed(seed))
    return PackedFeatures(features, tuple(lengths), torch.arange(len(lengths)) + first_index)


def batch_of(lengths=(1,) * 9):
    """Four examples over nine stories: anchors 0 to 3, positives 4 to 7, negative 8 of all but the last."""
    negatives = torch.tensor([[8], [8], [8], [-1]])
    stories = packed(lengths)
    return ExampleBatch(
        stories, torch.arange(4), torch.arange(4) + 4, negatives, torch.full((4, 1), -1), groups=stories.indices
    )


def triplet_loss_of_cosines(vectors, margin):
    """The triplet loss of `batch_of`, example by example; the last has no negative."""
    terms = []
    for anchor in range(3):
        gap = vectors[anchor] @ vectors[anchor + 4] - vectors[anchor] @ vectors[8]
        terms.append(torch.relu(margin - gap))
    return torch.stack(terms).mean()


def built(objective):
    """The objective with its head, as a fit builds it."""
    torch.manual_seed(0)
    objective.dimension = D
    objective.configure_model()
    return objective
