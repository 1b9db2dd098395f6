"""BERTScore (Zhang et al. 2020): similarity of two texts' meaning, token by token, not rescaled, without idf weights.

Shapes: N pairs, C tokens of a candidate, R of a reference, D dimension.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from narrlit.errors import ModelError, OptionError, reading

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PAIRS_PER_PASS = 32


class BERTScores(NamedTuple):
    """Scores of N pairs, from -1 to 1, and the number of texts that were longer than the model reads."""

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
    """Scores of candidates against references by the token vectors of one layer of a transformer."""

    def __init__(
        self, transformer: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", layer: int | None = None
    ) -> None:
        """Take an encoder on its device; `layer` 0 is the embeddings, None the last."""
        layers = transformer.config.num_hidden_layers
        if layer is not None and not 0 <= layer <= layers:
            raise OptionError(f"`bertscore_layer={layer}`: the model has layers 0 (the embeddings) to {layers}")
        self.transformer = transformer.eval()
        self.tokenizer = tokenizer
        self.layer = layers if layer is None else layer
        offset = 2 if transformer.config.model_type in ("roberta", "xlm-roberta", "mpnet", "camembert") else 0
        positions = transformer.config.max_position_embeddings - offset
        self.max_length = int(min(tokenizer.model_max_length, positions))

    def __call__(self, candidates: Sequence[str], references: Sequence[str], progress: bool = True) -> BERTScores:
        """Score N candidates against the references at the same positions; longer texts are truncated."""
        from tqdm import tqdm

        pairs = list(zip(candidates, references, strict=True))
        order = sorted(range(len(pairs)), key=lambda row: -max(map(len, pairs[row])))
        scores = np.zeros((2, len(pairs)))
        truncated: set[str] = set()
        with tqdm(total=len(pairs), desc="BERTScore", unit="pair", disable=not progress, delay=0.5) as bar:
            for start in range(0, len(order), PAIRS_PER_PASS):
                rows = order[start : start + PAIRS_PER_PASS]
                texts = list(dict.fromkeys(text for row in rows for text in pairs[row]))
                vectors, cut = self._token_vectors(texts)
                truncated |= cut
                for row in rows:
                    scores[:, row] = greedy_matching(*(vectors[text] for text in pairs[row]))
                bar.update(len(rows))
        precision, recall = scores
        total = precision + recall
        f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total != 0)
        return BERTScores(precision, recall, f1, len(truncated))

    @torch.inference_mode()
    def _token_vectors(self, texts: list[str]) -> tuple[dict[str, Tensor], set[str]]:
        """Unit vectors of each text's tokens without special ones, and the texts that were truncated."""
        whole = self.tokenizer(texts, verbose=False)["input_ids"]
        options = {"truncation": True, "max_length": self.max_length, "padding": True, "return_tensors": "pt"}
        batch = self.tokenizer(texts, return_special_tokens_mask=True, **options).to(self.transformer.device)
        own = (batch.pop("special_tokens_mask") == 0) & (batch["attention_mask"] == 1)
        states = self.transformer(**batch, output_hidden_states=True).hidden_states[self.layer]
        unit = F.normalize(states.float(), dim=-1)
        vectors = {text: row[mask] for text, row, mask in zip(texts, unit, own, strict=True)}
        return vectors, {text for text, ids in zip(texts, whole, strict=True) if len(ids) > self.max_length}


def load_bertscorer(model: str, layer: int | None, device: torch.device) -> BERTScorer:
    """Load an encoder: a folder, a hub id, or `minilm`; ModelError if it can't be loaded, or is no encoder."""
    from transformers import AutoModel, AutoTokenizer

    from narrlit.models.pretrained import packaged_minilm

    name = str(packaged_minilm()) if model == "minilm" else model
    local = Path(name).is_dir()
    with reading("`bertscore`", model, "give an encoder's folder or hub id, narrlit-mini or minilm", ModelError):
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
        transformer = AutoModel.from_pretrained(name, local_files_only=local, dtype=torch.float32)
    if transformer.config.is_encoder_decoder:
        raise ModelError(f"`bertscore={model}`: it is a {transformer.config.model_type}; an encoder is needed")
    return BERTScorer(transformer.to(device), tokenizer, layer)
