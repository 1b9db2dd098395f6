"""A fit over two processes whose embeddings differ; a module apart, so that spawning can import it."""

import numpy as np
from fake_reader import FakeReader, trainer

from narrlit.datamodules import Clusters, PseudoLabels, StoryWorldData


class NoisyReader(FakeReader):
    """Embeds otherwise in each process, as other processors do."""

    def text_embeddings(self, texts, role="anchor"):
        return np.random.default_rng(self.global_rank).normal(size=(len(texts), 4)).astype(np.float32)


class RecordedData(StoryWorldData):
    """Writes its pseudo-labels to a file a process."""

    def __init__(self, folder):
        super().__init__(10, 2, pseudo_labels=PseudoLabels("positional", Clusters(4, 3, 2)))
        self.folder = folder

    def teardown(self, stage):
        np.save(f"{self.folder}/{self.trainer.global_rank}.npy", self._labels)


def fit_over_two(folder):
    """Fit; forked from a fresh process, since a thread pool does not survive a fork."""
    settings = {"devices": 2, "strategy": "ddp_fork", "use_distributed_sampler": False}
    trainer(**settings).fit(NoisyReader(), datamodule=RecordedData(folder))
