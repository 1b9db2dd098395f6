"""Heads over embeddings; each is a sentence-transformers module in training, checkpoints and exported folders.

This file is copied into exported folders that need it (`copy_code`), and works there without the package.

Letters in shapes: U stories, T sentences of all stories, D dimension, H hidden.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, InputModule, Normalize
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from narrlit.preprocessing.sentences import split_sentences

HeadKind = Literal["projection", "mlp", "bilstm"]
VIEWS = ("theme", "action", "outcome")
INNER = "inner"
"""Subfolder with the inner model of a head that reads sentences or views, itself a sentence-transformers folder."""
HUB_OPTIONS = ("token", "cache_folder", "revision", "local_files_only")
INNER_OPTIONS = ("trust_remote_code", "model_kwargs", "processor_kwargs", "config_kwargs", "backend")
"""Options for loading that are passed to the inner model."""


def build_head(kind: HeadKind, dimension: int, **settings: Any) -> nn.Module:
    """Build a trainable head for embeddings of dimension D, with its initial weights.

    - `projection` (setting `noise`): square linear map without bias, initialized as the identity plus noise; `noise` is
      the expected length of the random part of We for a unit vector e. Source: Comhis, Eq. 1.
    - `mlp` (settings `hidden`, `output`): linear layers with ReLU between them; without hidden layers, a linear map.
      Source: Mendel292, appendix B, item 2: 384 -> 256, and 384 -> 512 -> 512 -> 256; the paper names no activation.
    - `bilstm` (settings of `BiLSTMConfig`): see `SentenceBiLSTM`.
    """
    if kind == "bilstm":
        return SentenceBiLSTM(dimension, **settings)
    if kind == "projection":
        # Divided by the square root, so that the noise has the same effect in every dimension.
        noise = settings.get("noise", 0.0) * torch.randn(dimension, dimension) / dimension**0.5
        initial_weights = torch.eye(dimension) + noise
        dense = Dense(dimension, dimension, False, nn.Identity(), init_weight=initial_weights)
        return nn.Sequential(dense, Normalize())
    sizes = [dimension, *settings.get("hidden", ()), settings.get("output", 256)]
    layers = [Dense(inputs, outputs, activation_function=nn.ReLU()) for inputs, outputs in pairwise(sizes)]
    layers[-1].activation_function = nn.Identity()
    return nn.Sequential(*layers, Normalize())


def apply_head(head: nn.Module, features: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """Apply a head to embeddings of stories (U, D), or of sentences (T, D) with the number of sentences per story.

    Returns story embeddings (U, output).
    """
    embeddings: Tensor = head({"sentence_embedding": features, "lengths": lengths})["sentence_embedding"]
    return embeddings


class InnerModel(InputModule):
    """Base class of heads that read several texts of a story, each embedded by the same frozen inner model.

    In training there is no inner model, and the features are embeddings of the texts. In an exported folder, the inner
    model is in a subfolder, and the features are texts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inner: SentenceTransformer | None = None

    def texts_of(self, story: str, number: int) -> Sequence[str]:
        """Split a story, the `number`-th of the input, into the texts that are embedded."""
        raise NotImplementedError

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_: object) -> dict[str, Any]:
        """Split U stories into texts, put the prompt before each text, and count the texts of each story."""
        prefix = prompt or ""
        texts: list[str] = []
        lengths: list[int] = []
        for number, story in enumerate(inputs, 1):
            texts_of_story = self.texts_of(story, number)
            texts += [prefix + text for text in texts_of_story]
            lengths.append(len(texts_of_story))
        return {"texts": texts, "lengths": lengths}

    def embed_texts(self, features: dict[str, Any]) -> Tensor:
        """Return precomputed embeddings, or embed the texts with the inner model."""
        vectors: Tensor
        if self.inner is None:
            vectors = features["sentence_embedding"]
            return vectors
        encoded = self.inner.encode(features["texts"], prompt="", convert_to_tensor=True, show_progress_bar=False)
        # `encode` returns inference tensors, which autograd does not accept: copy them.
        vectors = encoded.clone()
        head_weights = [weight for name, weight in self.named_parameters() if not name.startswith("inner.")]
        return vectors.to(head_weights[0]) if head_weights else vectors

    @property
    def max_seq_length(self) -> int | None:
        """Maximum number of tokens of a text for the inner model."""
        return None if self.inner is None else self.inner.max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        if self.inner is not None:
            self.inner.max_seq_length = value

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Write settings, weights and, in a subfolder, the inner model if there is one."""
        inner = self.inner
        self.inner = None
        try:
            self.save_config(output_path, filename=self.config_file_name)
            if self.state_dict():
                self.save_torch_weights(output_path)
        finally:
            self.inner = inner
        if inner is not None:
            inner.save(str(Path(output_path) / INNER), create_model_card=False)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> "InnerModel":
        """Load a head and its inner model from a folder or a hub; the options of transformers go to the inner model."""
        hub_options = _selected(options, HUB_OPTIONS)
        inner_options = _selected(options, INNER_OPTIONS)
        folder = Path(cls.load_dir_path(model_name_or_path, subfolder, **hub_options))
        head = cls.load_head(folder)
        head.inner = SentenceTransformer(str(folder / INNER), device="cpu", local_files_only=True, **inner_options)
        return head

    @classmethod
    def load_head(cls, folder: Path) -> "InnerModel":
        """Load a head without its inner model."""
        head = cls(**cls.load_config(str(folder), config_filename=cls.config_file_name))
        if head.state_dict():
            cls.load_torch_weights(str(folder), model=head)
        return head


def _selected(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Select the options with these names that are given."""
    return {name: options[name] for name in names if name in options}


class SentenceBiLSTM(InnerModel):
    """BiLSTM over the embeddings of a story's sentences.

    The last states of the forward and the backward direction are concatenated, followed by dropout, a linear layer and
    normalization.

    Source: Mendel292 at SemEval-2026 Task 4, sections 2.1 and 2.2, appendix B, items 3 and 4.
    """

    config_file_name = "bilstm.json"
    config_keys: ClassVar[list[str]] = ["dimension", "hidden", "layers", "dropout", "output"]

    def __init__(
        self, dimension: int, hidden: int = 128, layers: int = 2, dropout: float = 0.1, output: int = 256
    ) -> None:
        """Build the layers for sentence embeddings of a dimension; the other settings are those of `BiLSTMConfig`."""
        super().__init__()
        self.dimension = dimension
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.output = output
        # With a single layer torch warns about dropout between layers.
        dropout_between_layers = dropout if layers > 1 else 0.0
        self.lstm = nn.LSTM(dimension, hidden, layers, dropout=dropout_between_layers, bidirectional=True)
        self.drop = nn.Dropout(dropout)
        self.linear = nn.Linear(2 * hidden, output)

    def get_embedding_dimension(self) -> int:
        """Return the dimension of a story's embedding."""
        return self.output

    def texts_of(self, story: str, number: int) -> Sequence[str]:
        """Split a story into its sentences."""
        texts: list[str] = split_sentences(story)
        if not texts:
            raise ValueError(f"story {number} has no sentence, and can't be embedded")
        return texts

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Replace the embeddings (T, D) of all sentences, in order, by unit vectors (U, output) of stories."""
        vectors, lengths = self.embed_texts(features), features["lengths"]
        if min(lengths, default=0) < 1 or sum(lengths) != len(vectors):
            raise ValueError(f"{len(vectors)} embeddings do not match stories of {list(lengths)} sentences")
        _, (states, _) = self.lstm(_packed_sequence(vectors, lengths))
        last = torch.cat([states[-2], states[-1]], dim=1)
        stories = self.linear(self.drop(last))
        return {**features, "sentence_embedding": F.normalize(stories, dim=1)}


def _packed_sequence(vectors: Tensor, lengths: Sequence[int]) -> PackedSequence:
    """Build a PackedSequence: the first sentences of all stories, then the second ones and so on, longest story first.

    This is a tenth faster than padding the sentences and `pack_padded_sequence`.
    """
    counts = torch.tensor(lengths)
    descending, order = counts.sort(descending=True, stable=True)
    starts = (counts.cumsum(0) - counts)[order]
    position = torch.arange(int(descending[0]))[:, None]
    exists = position < descending
    rows = (starts + position)[exists].to(vectors.device)
    order = order.to(vectors.device)
    return PackedSequence(vectors.index_select(0, rows), exists.sum(1), order, order.argsort())


class ViewFusion(InnerModel):
    """Fusion of a story's text and views: the normalized weighted sum of their unit vectors.

    Each view has a head of two linear layers with ReLU between them; without heads, the encoder's embeddings are used.

    Source: ttda704 at SemEval-2026 Task 4, section 4.2 and appendix A.4: 768 -> 512 -> 768. The paper names no
    activation; ReLU is from the published code.
    """

    config_file_name = "views.json"
    config_keys: ClassVar[list[str]] = ["dimension", "fusion", "hidden"]

    def __init__(self, dimension: int, fusion: Mapping[str, float], hidden: int | None = None) -> None:
        """Build heads of `hidden` units (None: no heads); `fusion` is `dataclasses.asdict` of a `Fusion`."""
        super().__init__()
        self.dimension = dimension
        self.fusion = dict(fusion)
        self.hidden = hidden
        self.heads = None if hidden is None else ViewHeads(dimension, hidden)

    def get_embedding_dimension(self) -> int:
        """Return the dimension of a story's embedding."""
        return self.dimension

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the full text, theme, action and outcome."""
        return tuple(self.fusion[name] for name in ("full", *VIEWS))

    def texts_of(self, story: str, number: int) -> Sequence[str]:
        """Split a text that contains a story and its views."""
        try:
            return split_views(story)
        except ValueError as error:
            raise ValueError(f"story {number}: {error}") from error

    def parts(self, vectors: Tensor) -> Tensor:
        """Compute unit vectors (U, 4, D) of text and views, in float32, from an encoder's embeddings (U, 4, D)."""
        unit = F.normalize(vectors.float(), dim=-1)
        if self.heads is None:
            return unit
        text, views = unit[:, :1], unit[:, 1:]
        return torch.cat([text, self.heads(views).float()], dim=1)

    def fuse(self, parts: Tensor) -> Tensor:
        """Fuse unit vectors (U, 4, D) of text and views to unit vectors (U, D) of stories.

        >>> parts = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
        >>> ViewFusion(2, {"full": 0.6, "theme": 0.2, "action": 0.4, "outcome": 0.2}).fuse(parts)
        tensor([[0.6000, 0.8000]])
        """
        weights = torch.tensor(self.weights, dtype=parts.dtype, device=parts.device)
        # A sum, not a matrix product, which autocast would compute in half precision.
        weighted = parts * weights[:, None]
        return F.normalize(weighted.sum(1), dim=-1)

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Replace the embeddings (U, 4, D) of texts and views by embeddings (U, D) of stories."""
        vectors = self.embed_texts(features).reshape(-1, 4, self.dimension)
        return {**features, "sentence_embedding": self.fuse(self.parts(vectors))}


class ViewHeads(nn.Module):
    """One head for each view: theme, action and outcome."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.heads = nn.ModuleDict()
        for view in VIEWS:
            self.heads[view] = nn.Sequential(nn.Linear(dimension, hidden), nn.ReLU(), nn.Linear(hidden, dimension))

    def forward(self, vectors: Tensor) -> Tensor:
        """Compute unit vectors (U, 3, D) of the views (U, 3, D), or of one vector (U, 1, D) by every head."""
        # In float32: half precision would round cosines near 1 to steps of 1/256.
        with torch.autocast(vectors.device.type, enabled=False):
            dtype = next(self.parameters()).dtype
            views = vectors.to(dtype).expand(-1, len(self.heads), -1).unbind(1)
            outputs = []
            for head, view in zip(self.heads.values(), views, strict=True):
                outputs.append(head(view))
            return F.normalize(torch.stack(outputs, 1), dim=-1)


_MARKERS = tuple(f"\n[{view}]\n" for view in VIEWS)


def split_views(joined: str) -> tuple[str, str, str, str]:
    r"""Split one text that contains a story and its views into text, theme, action and outcome.

    >>> split_views("A knight rode out.\n[theme]\nA quest.\n[action]\nHe rides.\n[outcome]\nHe rests.")[2]
    'He rides.'
    """
    marker = re.compile("|".join(map(re.escape, _MARKERS)))
    if tuple(marker.findall(joined)) != _MARKERS:
        raise ValueError("views are missing: add lines [theme], [action] and [outcome], in this order, each once")
    text, theme, action, outcome = marker.split(joined)
    return text, theme, action, outcome


def copy_code(folder: Path, head: InnerModel) -> None:
    """Copy this file, and the files of this package that it imports, into an exported folder."""
    package_import = re.compile(r"^from (narrlit\.(?:\w+\.)*(\w+)) import", re.MULTILINE)
    modules = [type(head).__module__]
    for module in modules:  # grows while it is read
        path = Path(str(sys.modules[module].__file__))
        code = path.read_text(encoding="utf-8")
        for name, _ in package_import.findall(code):
            if name not in modules:
                modules.append(name)
        (folder / path.name).write_text(package_import.sub(r"from .\2 import", code), encoding="utf-8")
    description = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    description[0] = {"idx": 0, "name": "0", "path": "", "type": f"heads.{type(head).__name__}"}
    (folder / "modules.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
