"""Embeddings of a frozen teacher: every story is embedded once, and looked up by story index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from narrlit.data.batch import TokenizedStories
from narrlit.distributed import rank, world_size
from narrlit.embedding_cache.filling import fill
from narrlit.embedding_cache.space import EmbeddingSpace
from narrlit.embedding_cache.storage import EmbeddingCache
from narrlit.models.config import Role
from narrlit.models.encoder import Encoder
from narrlit.models.onednn import fused_linears
from narrlit.models.text_tokens import token_chunks


@dataclass(frozen=True, eq=False)
class TeacherEmbeddings:
    """A teacher's embeddings of every story.

    Attributes:
        table: (P, D) embeddings, one for each story and each different prompt.
        candidates_from: first row of candidates; 0 if both roles have the same prompt.
    """

    table: Tensor
    candidates_from: int = 0

    def of(self, indices: Tensor, role: Role) -> Tensor:
        """Return unit vectors (..., D) in float32 of story indices (...) in this role."""
        offset = self.candidates_from if role == "candidate" else 0
        # A unit vector rounded to half precision has no longer exactly length 1.
        return F.normalize(self.table[indices + offset].float(), dim=-1)

    def to(self, device: torch.device) -> "TeacherEmbeddings":
        """Copy the table to another device."""
        return replace(self, table=self.table.to(device))


def teacher_keys(space: EmbeddingSpace, prompts: Mapping[str, str], texts: Sequence[str]) -> list[bytes]:
    """Return the content keys of every story, for each different prompt of the two roles.

    Args:
        space: settings that determine the teacher's embeddings, except prompts.
        prompts: prompts by role.
        texts: texts of the stories, by story index.
    """
    different_prompts = dict.fromkeys((prompts["anchor"], prompts["candidate"]))
    keys: list[bytes] = []
    for prompt in different_prompts:
        keys += space.keys(prompt, texts)
    return keys


def fill_teacher(
    cache: EmbeddingCache, keys: Sequence[bytes], encoder: Encoder, tokens: TokenizedStories, progress: bool = True
) -> Tensor:
    """Compute the missing embeddings of a teacher, divided among the processes; an interrupted call resumes.

    Only the first process reads and writes the folder, because others may see its files late, or not at all.

    Args:
        cache: cache in a folder of the first process.
        keys: (P,) keys of the positions of `tokens`.
        encoder: the teacher, in evaluation mode, on its device.
        tokens: the stories.
        progress: show a bar on stderr, in the first process.

    Returns:
        The table (P, D), in every process.
    """
    first_position_of: dict[bytes, int] = {}
    for position, key in enumerate(keys):
        first_position_of.setdefault(key, position)
    positions = list(first_position_of.values())

    def embed(numbers: list[int]) -> tuple[Tensor, None]:
        return embed_in_step(encoder, tokens, [positions[number] for number in numbers]), None

    with torch.no_grad():
        fill(cache, list(first_position_of), embed, in_step=True, progress=progress)
    if world_size() == 1:
        return cache.read(keys)
    table = torch.empty(len(keys), encoder.dimension, dtype=cache.dtype, device=encoder.device)
    if rank() == 0:
        table.copy_(cache.read(keys))
    dist.broadcast(table, 0)
    return table


def embed_in_step(encoder: Encoder, tokens: TokenizedStories, positions: list[int]) -> Tensor:
    """Embed N positions, (N, D) in float32, divided among the processes, with as many forward passes in each."""
    device = encoder.device
    # At most the encoder's own budget: it would split a larger pass, differently in each process.
    budget = encoder.token_budget(device)
    positions_array = np.array(positions, dtype=np.int64)
    passes = token_chunks(tokens.lengths[positions_array].tolist(), budget, padded=True)
    # Half precision may be the default dtype here.
    embeddings = torch.zeros(len(positions), encoder.dimension, device=device, dtype=torch.float32)
    with fused_linears(encoder.transformer):
        for start in range(0, len(passes), world_size()):
            number = start + rank()
            chunk = passes[number if number < len(passes) else 0]  # repeated where there is no pass left
            vectors = encoder(tokens.select(positions_array[chunk]).to(device))
            if number < len(passes):
                embeddings[chunk] = vectors.float()
    if world_size() > 1:
        dist.all_reduce(embeddings)
    return embeddings
