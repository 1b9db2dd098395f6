"""BERTScore (Zhang et al. 2020): how much of one text's meaning another has, token by token.

Letters of the shapes: N pairs, C tokens of the longest candidate, R of the longest reference, D dimension.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from narrlit.data.table import StoryTable
from narrlit.errors import ModelError, OptionError
from narrlit.models.embedding import TOKENS_A_PASS
from narrlit.models.encoder import token_chunks
from narrlit.models.loading import first_position, packaged_minilm, quiet

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class BERTScores(NamedTuple):
    """Scores of N pairs, each -1 to 1, not rescaled."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    truncated: int
    """How many different texts were longer than the model reads."""


def greedy_matching(
    candidates: Tensor, candidate_mask: Tensor, references: Tensor, reference_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Precision and recall (N,) of N pairs; without weights by rarity. Equations: section 3 there.

    Precision is the mean over a candidate's tokens of the best cosine to a token of its reference, recall the other
    way round; 0 where one side has no token.

    Args:
        candidates: (N, C, D) unit vectors of tokens.
        candidate_mask: (N, C) bool, which of them are tokens and not padding.
        references: (N, R, D) unit vectors of tokens.
        reference_mask: (N, R) bool.

    >>> one, other = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.6, 0.8], [1.0, 0.0], [9.0, 9.0]]])
    >>> greedy_matching(one, torch.tensor([[True]]), other, torch.tensor([[True, True, False]]))
    (tensor([1.]), tensor([0.8000]))
    """
    cosines = candidates @ references.transpose(1, 2)
    cosines = cosines.masked_fill(~(candidate_mask[:, :, None] & reference_mask[:, None, :]), -torch.inf)
    return _mean_best(cosines, candidate_mask), _mean_best(cosines.transpose(1, 2), reference_mask)


def _mean_best(cosines: Tensor, mask: Tensor) -> Tensor:
    best = cosines.amax(2).masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)
    return best.masked_fill(best.isinf(), 0)


class BERTScorer:
    """A transformer whose token vectors are compared."""

    def __init__(
        self, transformer: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", layer: int | None = None
    ) -> None:
        """Args say what a token's vector is.

        Args:
            transformer: on the device where it shall work.
            tokenizer: its own.
            layer: whose output is taken, 0 the embeddings; None: the last.

        Raises:
            OptionError: if there is no such layer.
        """
        layers = transformer.config.num_hidden_layers
        if layer is not None and not 0 <= layer <= layers:
            raise OptionError(f"--bertscore-layer {layer}: the model has 0, the embeddings, to {layers}")
        self.transformer = transformer.eval()
        self.tokenizer = tokenizer
        self.layer = layers if layer is None else layer
        positions = transformer.config.max_position_embeddings - first_position(transformer)
        self.max_length = int(min(tokenizer.model_max_length, positions))

    def __call__(self, candidates: Sequence[str], references: Sequence[str], progress: bool = True) -> BERTScores:
        """Scores of N candidates, each with the reference in its place; the end of a longer text is not read.

        Args:
            candidates: N texts that are judged.
            references: N texts whose meaning they should have.
            progress: show a bar on stderr.
        """
        table = StoryTable()
        pairs = list(zip(table.rows(candidates), table.rows(references), strict=True))
        ids, kept, truncated = self._tokenized(table.texts)
        device = self.transformer.device
        # A pair's reference and candidate are of about one length: the longer counts.
        lengths = [max(len(ids[one]), len(ids[other])) for one, other in pairs]
        found = np.zeros((2, len(pairs)))
        chunks = token_chunks(lengths, TOKENS_A_PASS.get(device.type, 8192) // 2, padded=True) if pairs else []
        bar = tqdm(total=len(pairs), desc="BERTScore", unit="pair", disable=not progress, delay=0.5)
        with bar, torch.inference_mode():
            for chunk in chunks:
                rows = sorted({row for place in chunk for row in pairs[place]})
                vectors = dict(
                    zip(rows, self._vectors([ids[row] for row in rows], [kept[row] for row in rows]), strict=True)
                )
                sides = [_padded([vectors[pairs[place][side]] for place in chunk]) for side in (0, 1)]
                found[:, chunk] = torch.stack(greedy_matching(*sides[0], *sides[1])).double().cpu().numpy()
                bar.update(len(chunk))
        precision, recall = found
        whole = precision + recall
        f1 = np.divide(2 * precision * recall, whole, out=np.zeros_like(whole), where=whole != 0)
        return BERTScores(precision, recall, f1, truncated)

    def _tokenized(self, texts: Sequence[str]) -> tuple[list[list[int]], list[list[bool]], int]:
        """Of each text its token ids, which of these are its own and not special; and how many texts were cut."""
        if not texts:
            return [], [], 0
        whole = self.tokenizer(list(texts), verbose=False)["input_ids"]
        cut = self.tokenizer(list(texts), truncation=True, max_length=self.max_length, return_special_tokens_mask=True)
        kept = [[not special for special in mask] for mask in cut["special_tokens_mask"]]
        truncated = sum(len(one) > len(other) for one, other in zip(whole, cut["input_ids"], strict=True))
        return cut["input_ids"], kept, truncated

    def _vectors(self, ids: list[list[int]], kept: list[list[bool]]) -> list[Tensor]:
        """Unit vectors of each text's own tokens."""
        batch = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt", padding_side="right")
        inputs = {name: batch[name].to(self.transformer.device) for name in ("input_ids", "attention_mask")}
        states = self.transformer(**inputs, output_hidden_states=True).hidden_states[self.layer]
        unit = F.normalize(states.float(), dim=-1)
        return [row[: len(own)][torch.tensor(own, device=row.device)] for row, own in zip(unit, kept, strict=True)]


def _padded(vectors: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Vectors of N texts as (N, T, D), and which of them are no padding, (N, T)."""
    lengths = torch.tensor([len(one) for one in vectors], device=vectors[0].device)
    # One row more, so that T is at least 1 where no text has a token.
    padded = pad_sequence([*vectors, vectors[0].new_zeros(1, vectors[0].shape[1])], batch_first=True)[:-1]
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


def load_bertscorer(model: str, layer: int | None, device: torch.device) -> BERTScorer:
    """Load an encoder.

    Args:
        model: a transformers or sentence-transformers folder, a hub's id, or `minilm`.
        layer: as BERTScorer has it.
        device: where it shall work.

    Raises:
        ModelError: if there is no such model, or it is no encoder.
        OptionError: if it has no such layer.
    """
    folder = packaged_minilm() if model == "minilm" else Path(model)
    local = folder.is_dir()
    name = str(folder) if local else model
    with quiet():
        from transformers import AutoModel, AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
            transformer = AutoModel.from_pretrained(name, local_files_only=local, dtype=torch.float32)
        except (OSError, ValueError, RuntimeError) as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            place = "the folder can't be loaded" if local else "there is no such folder, and the hub did not give it"
            raise ModelError(f"--bertscore {model}: {place} ({reason})") from error
    if transformer.config.is_encoder_decoder:
        raise ModelError(f"--bertscore {model}: it is a {transformer.config.model_type}; an encoder is needed")
    return BERTScorer(transformer.to(device), tokenizer, layer)
