"""BERTScore (Zhang et al. 2020), without rescaling and idf weights.

Letters in shapes: N pairs, C tokens of a candidate, R tokens of a reference, D dimension.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from narrlit.errors import ModelError, OptionError, reading
from narrlit.models.config import UNLIMITED
from narrlit.models.packaged import packaged_minilm

PAIRS_PER_PASS = 32
RESERVED_POSITIONS = {"roberta": 2, "xlm-roberta": 2, "mpnet": 2, "camembert": 2}
"""Number of position embeddings that are not used for tokens, by `model_type`."""


class BERTScores(NamedTuple):
    """Scores of N pairs, from -1 to 1, and the number of truncated texts."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    truncated: int


def greedy_matching(candidate: Tensor, reference: Tensor) -> tuple[float, float]:
    """Compute precision and recall of one pair from unit vectors of tokens, (C, D) and (R, D) (section 3, without idf).

    Precision is the mean over the candidate's tokens of the best cosine to a reference token, recall the reverse.

    >>> greedy_matching(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.0], [1.0, 0.0]]))
    (1.0, 0.75)
    """
    if not len(candidate) or not len(reference):
        return 0.0, 0.0
    cosines = candidate @ reference.T
    return float(cosines.amax(1).mean()), float(cosines.amax(0).mean())


class BERTScorer:
    """Scorer of candidates against references, by the token vectors of one layer of a transformer."""

    def __init__(
        self, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, layer: int | None = None
    ) -> None:
        """Use a transformer on its device.

        Args:
            transformer: encoder.
            tokenizer: its tokenizer.
            layer: layer of the token vectors, 0 for the embeddings; None: the last.

        Raises:
            OptionError: if the transformer has no such layer.
        """
        config = transformer.config
        last_layer = config.num_hidden_layers
        if layer is not None and not 0 <= layer <= last_layer:
            raise OptionError("bertscore_layer", layer=layer, last=last_layer)
        self.transformer = transformer.eval()
        self.tokenizer = tokenizer
        self.layer = last_layer if layer is None else layer
        positions = getattr(config, "max_position_embeddings", UNLIMITED) - RESERVED_POSITIONS.get(config.model_type, 0)
        self.max_length = int(min(tokenizer.model_max_length, positions))

    def __call__(self, candidates: Sequence[str], references: Sequence[str], progress: bool = True) -> BERTScores:
        """Score N candidates against the references at the same positions; longer texts are truncated."""
        pairs = list(zip(candidates, references, strict=True))
        longest_first = sorted(range(len(pairs)), key=lambda row: -max(map(len, pairs[row])))
        precision, recall = np.zeros(len(pairs)), np.zeros(len(pairs))
        truncated: set[str] = set()
        with tqdm(total=len(pairs), desc="BERTScore", unit="pair", disable=not progress, delay=0.5) as bar:
            for start in range(0, len(pairs), PAIRS_PER_PASS):
                rows = longest_first[start : start + PAIRS_PER_PASS]
                vectors, truncated_in_pass = self._token_vectors([pairs[row] for row in rows])
                truncated |= truncated_in_pass
                for row in rows:
                    candidate, reference = pairs[row]
                    precision[row], recall[row] = greedy_matching(vectors[candidate], vectors[reference])
                bar.update(len(rows))
        return BERTScores(precision, recall, _f1(precision, recall), len(truncated))

    @torch.inference_mode()
    def _token_vectors(self, pairs: Sequence[tuple[str, str]]) -> tuple[dict[str, Tensor], set[str]]:
        """Compute unit vectors of each text's tokens, without special tokens; also return the truncated texts."""
        texts = list(dict.fromkeys(chain.from_iterable(pairs)))
        truncated = set()
        for text, ids in zip(texts, self.tokenizer(texts, verbose=False)["input_ids"], strict=True):
            if len(ids) > self.max_length:
                truncated.add(text)
        batch = self.tokenizer(
            texts,
            truncation=True,
            max_length=self.max_length,
            padding=True,
            padding_side="right",  # on the left it would shift the positions of a text
            return_special_tokens_mask=True,
            return_tensors="pt",
        ).to(self.transformer.device)
        is_token = (batch.pop("special_tokens_mask") == 0) & (batch["attention_mask"] == 1)
        states = self.transformer(**batch, output_hidden_states=True).hidden_states[self.layer]
        unit = F.normalize(states.float(), dim=-1)
        vectors = {}
        for text, tokens, mask in zip(texts, unit, is_token, strict=True):
            vectors[text] = tokens[mask]
        return vectors, truncated


def _f1(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the harmonic mean of precision and recall, (N,); 0 if both are 0."""
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total != 0)


def load_bertscorer(model: str, layer: int | None, device: torch.device) -> BERTScorer:
    """Load an encoder for BERTScore.

    Args:
        model: a folder, a hub id, or `minilm`.
        layer: layer of the token vectors, 0 for the embeddings; None: the last.
        device: device for computations.

    Raises:
        ModelError: if the model can't be loaded, or is not an encoder.
        OptionError: if the model has no such layer.
    """
    name = str(packaged_minilm()) if model == "minilm" else model
    local = Path(name).is_dir()
    with reading("unloadable_bertscore", model, error=ModelError):
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
        transformer = AutoModel.from_pretrained(name, local_files_only=local, dtype=torch.float32)
    if transformer.config.is_encoder_decoder:
        raise ModelError("bertscore_needs_encoder", model=model, type=transformer.config.model_type)
    return BERTScorer(transformer.to(device), tokenizer, layer)
