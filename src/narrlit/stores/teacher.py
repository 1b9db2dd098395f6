"""A frozen teacher as vectors: every training story embedded once, a batch's teacher vectors gathered by row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from narrlit.data.places import ROLES
from narrlit.data.tokens import TokenTable
from narrlit.distributed import rank, world_size
from narrlit.errors import ModelError
from narrlit.models.config import Role
from narrlit.models.encoder import Encoder, token_chunks
from narrlit.models.onednn import fused_linears
from narrlit.stores.vectors import VectorStore, content_keys

STORIES_A_SHARD = 8192


@dataclass(frozen=True, eq=False)
class TeacherVectors:
    """What a teacher says of every training story.

    Attributes:
        table: (P, D), a vector for each story and each different prompt.
        candidates_from: where the candidates' part begins: 0 where one prompt serves all roles.
    """

    table: Tensor
    candidates_from: int = 0

    def of(self, rows: Tensor, role: Role) -> Tensor:
        """Unit vectors (..., D) in float32 of story rows (...) in this role."""
        offset = self.candidates_from if role == "candidate" else 0
        # Rounded to half precision, a unit vector is not quite one any more.
        return F.normalize(self.table[rows + offset].float(), dim=-1)

    def to(self, device: torch.device) -> "TeacherVectors":
        """The same on another device."""
        return replace(self, table=self.table.to(device))


def teacher_keys(space: Mapping[str, Any], encoder_prompts: Mapping[str, str], texts: list[str]) -> list[bytes]:
    """Content keys of every place of a token table: of each story, for each different prompt of the two roles.

    Args:
        space: what the teacher is, without its prompts.
        encoder_prompts: its prompts by role.
        texts: the training stories by row.
    """
    prompts = dict.fromkeys(encoder_prompts[role] for role in ROLES)
    return [key for prompt in prompts for key in content_keys({**space, "prompt": prompt}, texts)]


def fill(store: VectorStore, keys: list[bytes], encoder: Encoder, tokens: TokenTable, progress: bool = True) -> None:
    """Embed what the store lacks, each process its share; the first one writes, shard by shard.

    An interrupted filling goes on where it was. Sharded encoders need every process in every pass, so all make
    equally many.

    Args:
        store: in a folder that every process sees.
        keys: (P,) of the token table's places.
        encoder: the teacher, in evaluation mode, on its device.
        tokens: the training stories.
        progress: show a bar on stderr, in the first process.
    """
    lacking = store.missing(keys)
    bar = tqdm(total=len(lacking), desc="teacher vectors", unit="story", disable=not progress or rank() > 0, delay=0.5)
    with bar, torch.no_grad():
        for start in range(0, len(lacking), STORIES_A_SHARD):
            places = lacking[start : start + STORIES_A_SHARD]
            vectors = embed_places(encoder, tokens, places, bar)
            # Asked by every process: an error in one alone would leave the others waiting.
            if not torch.isfinite(vectors).all():
                raise ModelError(f"the teacher for {store.folder} makes vectors that are not finite: it is broken")
            if rank() == 0:
                store.add([keys[place] for place in places], vectors)
            _wait()
            store.refresh()


def embed_places(encoder: Encoder, tokens: TokenTable, places: list[int], bar: Any = None) -> Tensor:
    """Vectors (N, D), float32, of N places of a token table, made by all processes together."""
    device = next(encoder.parameters()).device
    # Not more than the encoder itself takes at once: it would cut a pass further, and not alike in every process.
    budget = encoder.token_budget(device)
    passes = token_chunks([int(tokens.lengths[place]) for place in places], budget, padded=True)
    mine = passes[rank() :: world_size()]
    mine += passes[:1] * (-(-len(passes) // world_size()) - len(mine))
    # Half precision may be the default dtype here.
    vectors = torch.zeros(len(places), encoder.dimension, device=device, dtype=torch.float32)
    with fused_linears(encoder.transformer):
        for chosen in mine:
            stories = tokens.stories(np.array([places[i] for i in chosen], dtype=np.int64)).to(device)
            vectors[chosen] = encoder(stories).float()
            if bar is not None:
                bar.update(len(chosen) * world_size())
    return _together(vectors, passes)


def _together(vectors: Tensor, passes: list[list[int]]) -> Tensor:
    """Every process's own passes, summed; the first pass may have been made by several and counts once."""
    if world_size() == 1:
        return vectors
    own = torch.zeros_like(vectors[:, :1])
    for chosen in passes[rank() :: world_size()]:
        own[chosen] = 1
    whole = vectors * own
    dist.all_reduce(whole)
    return whole


def _wait() -> None:
    if world_size() > 1:
        dist.barrier()
