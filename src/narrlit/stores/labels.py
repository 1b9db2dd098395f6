"""Weak labels of stories, from the stored vectors of their slices."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from narrlit.data.table import StoryTable
from narrlit.distributed import world_size
from narrlit.models.weak_labels import ASPECTS, Clusters, WeakLabels, fit_weak_labels
from narrlit.preprocessing.segments import positional_segments as positional_slices
from narrlit.preprocessing.sentences import split_sentences as sentences
from narrlit.stores.frozen import FrozenVectors


def story_labels(frozen: FrozenVectors, texts: Sequence[str], others: Sequence[str], clusters: Clusters) -> WeakLabels:
    """Cluster stories by the vectors of their beginning, middle and end.

    Source: Mendel292, section 2.6.

    Args:
        frozen: gives the slices' vectors.
        texts: training stories.
        others: stories that are labelled and clustered with them; none unless the run is transductive.
        clusters: how many of each aspect.

    Returns:
        Labels of the training stories, then of the others.

    Raises:
        OptionError: if there are fewer stories than clusters.
    """
    before = frozen.made
    slices = [positional_slices(sentences(text)) for text in (*texts, *others)]
    vectors = {aspect: _vectors(frozen, [cut[i] for cut in slices]) for i, aspect in enumerate(ASPECTS)}
    told = {
        "by": "position",
        "transductive": bool(others),
        "store": str(frozen.store.folder),
        "made": frozen.made - before,
    }
    found = fit_weak_labels(vectors, len(slices), clusters, told)
    # K-means adds up in another order on another kind of processor: the first process's labels hold for all.
    agreed = torch.from_numpy(np.ascontiguousarray(found.labels)).to(frozen.device)
    if world_size() > 1:
        dist.broadcast(agreed, 0)
    return WeakLabels(agreed.cpu().numpy(), found.centres, found.provenance)


def _vectors(frozen: FrozenVectors, slices: list[str]) -> NDArray[np.float32]:
    table = StoryTable()
    rows = np.array(table.rows(slices), dtype=np.int64)
    found: NDArray[np.float32] = frozen.store.mapped(frozen.fill(table.texts, "anchor"))[rows].numpy()
    return found
