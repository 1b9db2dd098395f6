"""Stories without triples, a few of which join each training step."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from narrlit.data.batch import PackedVectors
from narrlit.stores.features import FeatureTable


@dataclass(frozen=True)
class Drawn:
    """Stories of one step, and their labels (N, 3)."""

    stories: PackedVectors
    labels: Tensor


@dataclass(frozen=True, eq=False)
class UnlabelledStories:
    """M stories with labels that nobody gave.

    Attributes:
        table: their vectors.
        labels: (M, 3).
    """

    table: FeatureTable
    labels: Tensor

    def draw(self, count: int, seeds: list[int], device: torch.device) -> Drawn:
        """As many different stories, or all where there are fewer; the same for the same seeds."""
        total = len(self.labels)
        rows = np.random.default_rng(seeds).choice(total, min(count, total), replace=False)
        stories = self.table.stories(self.table.places(rows, "anchor")).to(device)
        return Drawn(stories, self.labels[torch.from_numpy(rows)].to(device))
