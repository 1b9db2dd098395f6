"""A bidirectional LSTM over the vectors of a story's sentences: one vector a story.

Source: Mendel292 at SemEval-2026 Task 4, section 2.2 and appendix B, items 3 and 4. Letters of shapes: U stories, T
sentences of all of them, D dimension of a sentence, H hidden.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from narrlit.errors import OptionError
from narrlit.models.described import Described

CONFIG = "bilstm.json"


@dataclass(frozen=True)
class BiLSTMConfig:
    """What stands over the vectors of sentences; the defaults are Mendel292's, whose dropout the paper does not give.

    Attributes:
        hidden: H, numbers of a direction's state.
        layers: bidirectional layers, each over the one before.
        dropout: probability between the layers and in front of the linear map, while training.
        output: numbers of a story's vector.
    """

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.1
    output: int = 256

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        for name in ("hidden", "layers", "output"):
            value = getattr(self, name)
            if value < 1:
                raise OptionError(f"bilstm.{name} is {value}: a positive number is needed")
        if not 0 <= self.dropout < 1:
            raise OptionError(f"bilstm.dropout is {self.dropout}: a probability from 0 to below 1 is needed")


class BiLSTM(Described):
    """h = [the forward direction's last state; the backward's first] -> dropout -> linear -> length 1."""

    called = "BiLSTM"
    files = (CONFIG, "bilstm.safetensors")

    def __init__(self, dimension: int, config: BiLSTMConfig) -> None:
        """Args: dimension of a sentence's vector; config."""
        super().__init__()
        self.config = config
        # torch warns of dropout between layers where there is one layer alone.
        between = config.dropout if config.layers > 1 else 0.0
        self.lstm = nn.LSTM(dimension, config.hidden, config.layers, dropout=between, bidirectional=True)
        self.dropout = nn.Dropout(config.dropout)
        self.linear = nn.Linear(2 * config.hidden, config.output)

    @property
    def dimension(self) -> int:
        """Numbers of a story's vector."""
        return self.config.output

    def forward(self, vectors: Tensor, lengths: Sequence[int]) -> Tensor:
        """Vectors of stories.

        Args:
            vectors: (T, D), a story's sentences in order, one story after the other.
            lengths: sentences of each of the U stories, 1 or more; their sum is T.

        Returns:
            (U, output), each of length 1; a story's does not depend on the others.

        Raises:
            ValueError: for a story without a sentence, or lengths of another sum.
        """
        if min(lengths, default=0) < 1:
            raise ValueError("a story without a sentence")
        if sum(lengths) != len(vectors):
            raise ValueError(f"{len(vectors)} vectors for stories of {sum(lengths)} sentences")
        _, (states, _) = self.lstm(_packed(vectors, lengths))
        last = torch.cat([states[-2], states[-1]], dim=1)
        return F.normalize(self.linear(self.dropout(last)), dim=1)

    def description(self) -> dict[str, Any]:
        """Dimension and config."""
        return {"dimension": self.lstm.input_size, **asdict(self.config)}

    @classmethod
    def build(cls, described: dict[str, Any]) -> "BiLSTM":
        """Of dimension and config."""
        config = {name: value for name, value in described.items() if name != "dimension"}
        return cls(described["dimension"], BiLSTMConfig(**config))


def _packed(vectors: Tensor, lengths: Sequence[int]) -> PackedSequence:
    """First sentences of all stories, then second ones and so on, longest story first, as torch's LSTMs read them.

    Taken straight from the flat tensor, for padding it only to pack it again is a tenth slower.
    """
    counts = torch.tensor(lengths)
    descending, order = counts.sort(descending=True, stable=True)
    begin = (counts.cumsum(0) - counts)[order]
    place = torch.arange(int(descending[0]))[:, None]
    there = place < descending
    rows = (begin + place)[there].to(vectors.device)
    order = order.to(vectors.device)
    return PackedSequence(vectors.index_select(0, rows), there.sum(1), order, order.argsort())
