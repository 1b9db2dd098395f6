"""The ranking loss over part of a batch, in a process of its own; a module apart, so that spawning can import it."""

import torch
import torch.distributed as dist
from torch import nn

from narrlit.data.batch import ExampleBatch, PackedStories
from narrlit.models.config import EncoderConfig
from narrlit.objectives import MultipleNegativesRanking

ANCHORS, POSITIVES = [0, 1, 2, 3], [4, 5, 6, 7]
NEGATIVES = [[8, 9], [10, -1], [9, 8], [11, 4]]


class Lookup(nn.Module):
    """Stands for the encoder: one trained vector a story, so that gradients can be compared story by story."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(12, 8, generator=torch.Generator().manual_seed(3)).double())

    def forward(self, stories):
        return nn.functional.normalize(self.table[stories.indices], dim=1)


def gradient(chosen):
    """Of the ranking loss over the chosen examples, in this process."""
    rows = sorted({r for i in chosen for r in (ANCHORS[i], POSITIVES[i], *NEGATIVES[i]) if r >= 0})
    place = {row: i for i, row in enumerate(rows)} | {-1: -1}
    stories = PackedStories(torch.zeros(len(rows)), (1,) * len(rows), torch.tensor(rows))
    columns = [torch.tensor([place[c[i]] for i in chosen]) for c in (ANCHORS, POSITIVES)]
    negatives = torch.tensor([[place[n] for n in NEGATIVES[i]] for i in chosen])
    objective = MultipleNegativesRanking(EncoderConfig("unused"), scale=5.0)
    objective.encoder = Lookup()
    batch = ExampleBatch(stories, *columns, negatives, torch.full_like(negatives, -1))
    loss = objective.loss(objective(stories), batch)["loss"]
    loss.backward()
    return loss.detach(), objective.encoder.table.grad


def work(rank, port, out):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    loss, found = gradient([0, 1] if rank == 0 else [2, 3])
    dist.all_reduce(found)
    dist.all_reduce(loss)
    if rank == 0:
        torch.save((loss / 2, found / 2), out)  # what DDP makes of both processes' gradients
    dist.barrier()
    dist.destroy_process_group()
