"""Heads over embeddings, each a sentence-transformers module in training, checkpoint and export.

This file lies in exported folders whose model needs it (`copy_code`), and works there without the package.

Letters in shapes: U stories, T sentences of all of them, D dimension, H hidden.
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

Kind = Literal["projection", "mlp", "bilstm"]
VIEWS = ("theme", "action", "outcome")
INNER = "inner"
"""Subfolder of the model under a head that reads sentences or views, itself a sentence-transformers folder."""
HUB_OPTIONS = ("token", "cache_folder", "revision", "local_files_only")
INNER_OPTIONS = ("trust_remote_code", "model_kwargs", "processor_kwargs", "config_kwargs", "backend")
"""Options of loading that go to the inner model."""


def build_head(kind: Kind, dimension: int, **settings: Any) -> nn.Module:
    """Build a trainable head for embeddings of D numbers, with its first weights.

    - `projection` (noise): one square linear map without bias that begins as the identity plus noise, the length of
      the random part of We for a unit vector e. Source: Comhis, Eq. 1.
    - `mlp` (hidden, output): linear layers with ReLU between them; without hidden layers a linear head.
      Source: Mendel292, appendix B, item 2: 384 -> 256, and 384 -> 512 -> 512 -> 256; it names no activation.
    - `bilstm` (fields of `BiLSTMConfig`): see `SentenceBiLSTM`.
    """
    if kind == "bilstm":
        return SentenceBiLSTM(dimension, **settings)
    if kind == "projection":
        # Divided by the root, so that the same noise turns vectors alike in any dimension.
        noise = settings.get("noise", 0.0) * torch.randn(dimension, dimension) / dimension**0.5
        first_weights = torch.eye(dimension) + noise
        dense = Dense(dimension, dimension, False, nn.Identity(), init_weight=first_weights)
        return nn.Sequential(dense, Normalize())
    sizes = [dimension, *settings.get("hidden", ()), settings.get("output", 256)]
    layers = [Dense(i, o, activation_function=nn.ReLU()) for i, o in pairwise(sizes)]
    layers[-1].activation_function = nn.Identity()
    return nn.Sequential(*layers, Normalize())


def apply_head(head: nn.Module, features: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """Compute story embeddings (U, output) from those of stories (U, D), or of sentences (T, D) with their lengths."""
    embeddings: Tensor = head({"sentence_embedding": features, "lengths": lengths})["sentence_embedding"]
    return embeddings


class InnerModel(InputModule):
    """Base of heads that read several texts of a story, each embedded by one frozen inner model.

    In training the inner model is absent, and the embeddings of the texts come with the features. An exported folder
    has the inner model in a subfolder, and its features are texts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inner: SentenceTransformer | None = None

    def texts_of(self, story: str, number: int) -> Sequence[str]:
        """Split a story, the `number`-th of the input, into the texts that are embedded."""
        raise NotImplementedError

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_: object) -> dict[str, Any]:
        """Split U stories into texts, the prompt before each; count each story's."""
        texts: list[str] = []
        lengths: list[int] = []
        for number, story in enumerate(inputs, 1):
            parts = self.texts_of(story, number)
            texts += [(prompt or "") + part for part in parts]
            lengths.append(len(parts))
        return {"texts": texts, "lengths": lengths}

    def embed_texts(self, features: dict[str, Any]) -> Tensor:
        """Return precomputed embeddings, or embed the features' texts by the frozen inner model."""
        vectors: Tensor
        if self.inner is None:
            vectors = features["sentence_embedding"]
            return vectors
        encoded = self.inner.encode(features["texts"], prompt="", convert_to_tensor=True, show_progress_bar=False)
        # A copy, because no gradient can be computed through what encode's inference mode returns.
        vectors = encoded.clone()
        own = [weight for name, weight in self.named_parameters() if not name.startswith("inner.")]
        return vectors.to(own[0]) if own else vectors

    @property
    def max_seq_length(self) -> int | None:
        """Tokens of a text that the inner model reads."""
        return None if self.inner is None else self.inner.max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        if self.inner is not None:
            self.inner.max_seq_length = value

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Write settings, weights and, where there is one, the inner model in its subfolder."""
        inner, self.inner = self.inner, None
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
        """Read what `save` wrote, from a folder or a model hub; transformers' options go to the inner model."""
        hub = {name: options[name] for name in HUB_OPTIONS if name in options}
        inner = {name: options[name] for name in INNER_OPTIONS if name in options}
        folder = Path(cls.load_dir_path(model_name_or_path, subfolder, **hub))
        head = cls.load_head(folder)
        head.inner = SentenceTransformer(str(folder / INNER), device="cpu", local_files_only=True, **inner)
        return head

    @classmethod
    def load_head(cls, folder: Path) -> "InnerModel":
        """Read a saved head without its inner model."""
        head = cls(**cls.load_config(str(folder), config_filename=cls.config_file_name))
        if head.state_dict():
            cls.load_torch_weights(str(folder), model=head)
        return head


class SentenceBiLSTM(InnerModel):
    """h = [the forward direction's last state; the backward's first] -> dropout -> linear -> length 1.

    A story is the sequence of its sentences' embeddings.

    Source: Mendel292 at SemEval-2026 Task 4, sections 2.1 and 2.2, appendix B, items 3 and 4.
    """

    config_file_name = "bilstm.json"
    config_keys: ClassVar[list[str]] = ["dimension", "hidden", "layers", "dropout", "output"]

    def __init__(
        self, dimension: int, hidden: int = 128, layers: int = 2, dropout: float = 0.1, output: int = 256
    ) -> None:
        """Build it for sentence embeddings of a dimension; the other settings are those of `BiLSTMConfig`."""
        super().__init__()
        self.dimension, self.hidden, self.layers, self.dropout, self.output = dimension, hidden, layers, dropout, output
        # torch warns of dropout between layers where there is one layer alone.
        between = dropout if layers > 1 else 0.0
        self.lstm = nn.LSTM(dimension, hidden, layers, dropout=between, bidirectional=True)
        self.drop = nn.Dropout(dropout)
        self.linear = nn.Linear(2 * hidden, output)

    def get_embedding_dimension(self) -> int:
        """Return the dimension of a story's embedding."""
        return self.output

    def texts_of(self, story: str, number: int) -> Sequence[str]:
        """Split a story into its sentences."""
        texts: list[str] = split_sentences(story)
        if not texts:
            raise ValueError(f"story {number} has no sentence: a story without a sentence can't be embedded")
        return texts

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Replace the embeddings (T, D) of all stories' sentences, in order, by unit vectors (U, output) of stories."""
        vectors, lengths = self.embed_texts(features), features["lengths"]
        if min(lengths, default=0) < 1 or sum(lengths) != len(vectors):
            raise ValueError(f"{len(vectors)} embeddings do not fit stories of {list(lengths)} sentences")
        _, (states, _) = self.lstm(_packed_sequence(vectors, lengths))
        last = torch.cat([states[-2], states[-1]], dim=1)
        stories = self.linear(self.drop(last))
        return {**features, "sentence_embedding": F.normalize(stories, dim=1)}


def _packed_sequence(vectors: Tensor, lengths: Sequence[int]) -> PackedSequence:
    """Arrange first sentences of all stories, then second ones and so on, longest story first, as torch's LSTMs read.

    The flat tensor is indexed: padding it only to pack it again takes a tenth more time.
    """
    counts = torch.tensor(lengths)
    descending, order = counts.sort(descending=True, stable=True)
    begin = (counts.cumsum(0) - counts)[order]
    position = torch.arange(int(descending[0]))[:, None]
    inside = position < descending
    rows = (begin + position)[inside].to(vectors.device)
    order = order.to(vectors.device)
    return PackedSequence(vectors.index_select(0, rows), inside.sum(1), order, order.argsort())


class ViewFusion(InnerModel):
    """Story embedding fused from those of its text and its views: the normalized weighted sum of unit vectors.

    Each view has a head of two linear layers with ReLU between them; without heads the views keep the encoder's
    embeddings.

    Source: ttda704 at SemEval-2026 Task 4, section 4.2 and appendix A.4: 768 -> 512 -> 768. The paper names no
    activation; ReLU is the published code's.
    """

    config_file_name = "views.json"
    config_keys: ClassVar[list[str]] = ["dimension", "fusion", "hidden"]

    def __init__(self, dimension: int, fusion: Mapping[str, float], hidden: int | None = None) -> None:
        """Build heads of `hidden` units (None: no heads); `fusion` is `dataclasses.asdict` of a `Fusion`."""
        super().__init__()
        self.dimension, self.fusion, self.hidden = dimension, dict(fusion), hidden
        self.heads = None if hidden is None else ViewHeads(dimension, hidden)

    def get_embedding_dimension(self) -> int:
        """Return the dimension of a story's embedding."""
        return self.dimension

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the full text, theme, action and outcome."""
        return tuple(self.fusion[name] for name in ("full", *VIEWS))

    def texts_of(self, story: str, number: int) -> Sequence[str]:
        """Split a story that is joined with its views."""
        try:
            return split_views(story)
        except ValueError as error:
            raise ValueError(f"story {number}: {error}") from error

    def parts(self, vectors: Tensor) -> Tensor:
        """Compute the unit vectors (U, 4, D), in float32, that are fused, from an encoder's embeddings (U, 4, D)."""
        vectors = F.normalize(vectors.float(), dim=-1)
        if self.heads is None:
            return vectors
        return torch.cat([vectors[:, :1], self.heads(vectors[:, 1:]).float()], dim=1)

    def fuse(self, parts: Tensor) -> Tensor:
        """Fuse unit vectors (U, 4, D) to unit vectors (U, D).

        >>> parts = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
        >>> ViewFusion(2, {"full": 0.6, "theme": 0.2, "action": 0.4, "outcome": 0.2}).fuse(parts)
        tensor([[0.6000, 0.8000]])
        """
        weights = torch.tensor(self.weights, dtype=parts.dtype, device=parts.device)
        # A sum and no product of matrices: mixed precision would round that.
        weighted = parts * weights[:, None]
        return F.normalize(weighted.sum(1), dim=-1)

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Replace the embeddings (U, 4, D) of texts and views by the stories' (U, D)."""
        vectors = self.embed_texts(features).reshape(-1, 4, self.dimension)
        return {**features, "sentence_embedding": self.fuse(self.parts(vectors))}


class ViewHeads(nn.Module):
    """A head for each of theme, action and outcome."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.heads = nn.ModuleDict()
        for view in VIEWS:
            self.heads[view] = nn.Sequential(nn.Linear(dimension, hidden), nn.ReLU(), nn.Linear(hidden, dimension))

    def forward(self, vectors: Tensor) -> Tensor:
        """Return unit vectors (U, 3, D) of each story's views (U, 3, D), or of one vector (U, 1, D) for all heads."""
        # Float32 whatever the encoder computes in: half precision would round unit vectors' cosines to steps of 1/256.
        with torch.autocast(vectors.device.type, enabled=False):
            dtype = next(self.parameters()).dtype
            views = vectors.to(dtype).expand(-1, len(self.heads), -1).unbind(1)
            outputs = [head(view) for head, view in zip(self.heads.values(), views, strict=True)]
            return F.normalize(torch.stack(outputs, 1), dim=-1)


_MARKERS = tuple(f"\n[{view}]\n" for view in VIEWS)


def split_views(joined: str) -> tuple[str, str, str, str]:
    r"""Split a story and its views, given as one text: text, theme, action, outcome.

    >>> split_views("A knight rode out.\n[theme]\nA quest.\n[action]\nHe rides.\n[outcome]\nHe rests.")[2]
    'He rides.'
    """
    marker = re.compile("|".join(map(re.escape, _MARKERS)))
    if tuple(marker.findall(joined)) != _MARKERS:
        raise ValueError("it needs views, once each and in order, after lines [theme], [action] and [outcome]")
    text, theme, action, outcome = marker.split(joined)
    return text, theme, action, outcome


def copy_code(folder: Path, head: InnerModel) -> None:
    """Put this file, and the package's files that it imports, into an exported folder that needs them."""
    package_import = re.compile(r"^from (narrlit\.(?:\w+\.)*(\w+)) import", re.MULTILINE)
    modules = [type(head).__module__]
    for module in modules:  # grows as it is read
        path = Path(str(sys.modules[module].__file__))
        code = path.read_text(encoding="utf-8")
        modules += [name for name, _ in package_import.findall(code) if name not in modules]
        (folder / path.name).write_text(package_import.sub(r"from .\2 import", code), encoding="utf-8")
    entries = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    entries[0] = {"idx": 0, "name": "0", "path": "", "type": f"heads.{type(head).__name__}"}
    (folder / "modules.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
