"""Options of experiments, and the files of answers that they read."""

from dataclasses import dataclass
from typing import Literal

from narrlit.data.row_file import JSON_SUFFIXES
from narrlit.errors import OptionError

ROWS = (*JSON_SUFFIXES, ".csv", ".tsv")
ANSWER_SUFFIXES = (*ROWS, ".npy", ".zip")
ProjectionMethod = Literal["auto", "umap", "pca"]


@dataclass(frozen=True)
class Quality:
    """Settings of BERTScore.

    Attributes:
        bertscore: encoder of the token vectors: a transformers folder, a hub id or minilm; or none. Scores of different
            encoders can't be compared.
        bertscore_layer: layer of the token vectors, 0 for the token embeddings; default: the last.
    """

    bertscore: str = "minilm"
    bertscore_layer: int | None = None

    def __post_init__(self) -> None:
        if self.bertscore_layer is not None and (self.bertscore == "none" or self.bertscore_layer < 0):
            raise OptionError("bertscore_layer_alone", layer=self.bertscore_layer)
