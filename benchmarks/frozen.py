"""An epoch over cached embeddings against one that encodes its stories again: Comhis' projection, Mendel292's BiLSTM.

Both draw the same batches and train the same head by the same objective, in a plain loop. The cache is filled before
the time measured: over a whole run of E epochs the gain is E times at most.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from measure import Row, Setting, interleave, minilm, peer_model, timed
from training import Examples, config, ours

from narrlit.datamodules import PseudoLabels
from narrlit.embedding_cache.sources import EmbeddingSource
from narrlit.models.embedding import embed_stories
from narrlit.objectives import AspectBiLSTM, Optimization, Projection
from narrlit.preprocessing.sentences import split_sentences

EPOCHS = 5
"""Over the cache, at a time: one alone is too short to be measured."""


def epochs(setting: Setting) -> Iterator[Row]:
    """Epochs from the cache, against those that encode by narrlit and by the peer."""
    device = setting.device
    texts = setting.texts(12 if setting.quick else 3 * 128)[-1]
    encoders: dict[str, Callable[[list[str]], object] | None] = {
        "sentence-transformers'": partial(peer_model(device).encode, show_progress_bar=False),
        "narrlit's": partial(embed_stories, minilm(device), progress=False),
        "cached": None,
    }
    kinds: dict[str, Any] = {"projection": Projection, "BiLSTM": AspectBiLSTM}
    for name, kind in kinds.items():
        sentences = name == "BiLSTM"
        with tempfile.TemporaryDirectory() as folder:
            optimization = Optimization(learning_rate=1e-4, warmup=0.0, decay="none")
            objective = kind(config(None), optimization, EmbeddingSource(folder=folder))
            data = Examples(
                texts.texts, 64 if sentences else 32, pseudo_labels=PseudoLabels("positional" if sentences else "none")
            )
            ours(objective, data, device, "fp32")  # fills the cache
            pieces = [split_sentences(text) if sentences else [text] for text in data.stories.texts]
            loops = {how: partial(_epoch, objective, data, device, pieces, e) for how, e in encoders.items()}
            seconds = interleave(loops, setting.rounds)
        for how in list(encoders)[:2]:
            row = Row(f"frozen {name}, an epoch", texts.name, "fp32", seconds[how], seconds["cached"])
            row.note = f"from the cache against {how} encoding"
            yield row


def _epoch(objective: Any, data: Examples, device: str, pieces: list[list[str]], encode: Any) -> float:
    """Seconds of an epoch as a plain loop: batches, loss, gradients, optimizer; with `encode`, of each batch's texts.

    What is encoded is what the cache holds, so that the loss may go on reading that.
    """
    loader: Any = data.train_dataloader()
    objective.to(device)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=1e-4, fused=True)
    count = EPOCHS if encode is None else 1

    def run() -> None:
        """Train."""
        for epoch in range(count):
            loader.batch_sampler.set_epoch(epoch)
            for batch in loader:
                if encode is not None:
                    encode([piece for story in batch.stories.indices.tolist() for piece in pieces[story]])
                moved = batch.to(device)
                loss = objective.loss(objective(moved.stories), moved)["loss"]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    return timed(run, device) / count
