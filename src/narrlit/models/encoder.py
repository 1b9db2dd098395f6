"""The story encoder: a sentence-transformers model, packed batches in, one embedding per text out, and its heads."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from narrlit.compat.torch import MovableModule
from narrlit.data.batch import PackedStories
from narrlit.errors import ModelError, OptionError
from narrlit.models import adapters, capabilities, packing
from narrlit.models.config import EncoderConfig, Long, Precision, Role
from narrlit.models.heads import SentenceBiLSTM, ViewFusion, copy_code
from narrlit.models.pretrained import PROMPT_NAMES, first_position, load_model, quiet
from narrlit.preprocessing.sentences import split_sentences


class Encoder(MovableModule):
    """A sentence-transformers model behind packed batches; packed and padded embeddings are the same.

    Attributes:
        config: its settings.
        model: the sentence-transformers model that embeds texts, projections and MLP heads included.
        sentences: head over the embeddings of a story's sentences, if any.
        views: fusion of the embeddings of a story's text and views, if any.
        post: post-processing of story embeddings, if any; `models.embedding.embed` applies it.
        packs: stories are concatenated without padding.
        sharded: each process holds a part of the weights.
        long: how `models.embedding.embed` reads texts longer than `max_length`; training truncates.
    """

    long: Long = "truncate"
    sharded = False

    def __init__(self, config: EncoderConfig, *, trust_remote_code: bool = False, empty: bool = False) -> None:
        """Load the model; `trust_remote_code` runs Python files that come with it.

        An `empty` one has its weights on the meta device, where they take no memory.
        """
        super().__init__()
        self.config = config
        self.model = load_model(config, trust_remote_code, empty)
        self.sentences: SentenceBiLSTM | None = None
        self.views: ViewFusion | None = None
        self.post: nn.Sequential | None = None
        if config.lora is not None:
            adapters.add_adapters(self.transformer, config.lora)
        if config.gradient_checkpointing:
            adapters.checkpoint_gradients(self.transformer)
        self.packs = config.packed and packing.packable(self.transformer.config)
        if self.packs:
            packing.prepare(self.transformer)
        for module in self.transformer.modules():
            if type(module) is nn.Dropout:
                module.__class__ = packing.Dropout
        # What the transformer computes in half precision is pooled, projected and normalized in float32.
        self.model[0].register_forward_hook(_in_float32)
        for module in list(self.model)[2:]:
            module.register_forward_pre_hook(_in_own_dtype)
        self._first_position = first_position(self.transformer)

    @property
    def transformer(self) -> Any:
        """The transformers model inside."""
        return self.model[0].model

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        device: torch.device = next(self.parameters()).device
        return device

    @property
    def reads(self) -> Literal["text", "sentences", "views"]:
        """Part of a story that is embedded: its text, each sentence, or its text and views."""
        if self.views is not None:
            return "views"
        return "text" if self.sentences is None else "sentences"

    @property
    def unit(self) -> tuple[str, str]:
        """Name of the unit that `max_length` cuts, singular and plural."""
        if self.sentences is not None:
            return "sentence", "sentences"
        return ("story", "stories") if self.views is None else ("text or view", "texts and views")

    @property
    def text_dimension(self) -> int:
        """Dimension of the embedding of one text, before a BiLSTM or a fusion of views."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def dimension(self) -> int:
        """Dimension of a story's embedding."""
        if self.post is not None:
            dense: Any = self.post[1]
            return int(dense.out_features)
        return self.text_dimension if self.sentences is None else self.sentences.output

    @property
    def max_length(self) -> int:
        """Tokens of a text that are read, prompt and special tokens included."""
        return int(self.model[0].max_seq_length)

    @property
    def normalized(self) -> bool:
        """Embeddings have length 1."""
        return self.reads != "text" or self.post is not None or isinstance(self.model[-1], Normalize)

    @property
    def has_adapters(self) -> bool:
        """The model has adapters that are not merged into its weights."""
        return bool(adapters.adapted_layers(self.transformer))

    @property
    def quantized(self) -> bool:
        """Weights of the model are stored in 4 or 8 bits."""
        return adapters.is_quantized(self.transformer)

    @property
    def rounding_error(self) -> float:
        """Relative rounding error of the coarsest number format that its weights have, which it computes in.

        It is that of the weights as they are now: `cast` and merged adapters leave `config.dtype` as it was.
        """
        formats = {weight.dtype for weight in self.parameters() if weight.is_floating_point()}
        return max(torch.finfo(dtype).eps for dtype in formats)

    def attach(self, head: nn.Module) -> None:
        """Put a head behind the model: what `build_head` built, or a `ViewFusion`."""
        dimension = self.dimension if isinstance(head, ViewFusion) else self.text_dimension
        expected: Any = getattr(head, "dimension", None) or next(head.children()).in_features
        if expected != dimension:
            raise ModelError(
                f"{self.config.model} has embeddings of dimension {dimension}, but the head reads dimension "
                f"{expected}: it was trained on another model"
            )
        if isinstance(head, ViewFusion):
            self.views = head
        elif isinstance(head, SentenceBiLSTM):
            self.sentences = head
        else:
            for module in head.children():
                module.register_forward_pre_hook(_in_own_dtype)
                self.model.append(module)

    def postprocess(self, dense: nn.Module) -> None:
        """Put a `Dense` behind everything else: an affine map of a story's unit vector, normalized again."""
        self.post = nn.Sequential(Normalize(), dense, Normalize()).to(self.device).eval()

    def merge(self) -> None:
        """Merge adapters into the weights and dequantize these, in place; merged weights no longer train."""
        if self.has_adapters or self.quantized:
            adapters.merge_adapters(self.transformer)

    def cast(self, precision: Precision | None) -> "Encoder":
        """Set the number format to embed in, on the device where the model is; None: no change.

        In bfloat16 the linear layers' weights are cast once. What is added up from layer to layer stays float32:
        cosines then change half as much as in a model that is bfloat16 throughout.

        Raises:
            OptionError: for `bf16` on a device without it.
        """
        chosen = capabilities.pick_precision(precision, self.device)
        if chosen == "bf16":
            for module in self.transformer.modules():
                if isinstance(module, nn.Linear):
                    _cast(module, torch.bfloat16)
            autocast: Any = torch.autocast(self.device.type, torch.bfloat16)
            self.transformer.forward = autocast(self.transformer.forward)
        elif chosen == "fp32":
            _cast(self.transformer, torch.float32)
        return self

    def prompt(self, role: Role) -> str:
        """Return the text put before a story in this role."""
        return str(self.model.prompts[PROMPT_NAMES[role]])

    @property
    def symmetric(self) -> bool:
        """Anchors and candidates have the same prompt."""
        return self.prompt("anchor") == self.prompt("candidate")

    def require_one_prompt(self, purpose: str) -> None:
        """Raise ModelError for prompts that differ by role, where one embedding serves all roles."""
        if len({self.prompt(role) for role in ("anchor", "candidate", "story")}) > 1:
            raise ModelError(
                f"{self.config.model} puts {self.prompt('anchor')!r} before anchors and {self.prompt('candidate')!r} "
                f"before candidates, but {purpose} makes one embedding for both: give a `role`, where there is one, or "
                "train with one prompt (encoder.prompts.story alone)"
            )

    def token_ids(self, texts: Sequence[str], role: Role = "story") -> list[list[int]]:
        """Tokenize texts, with the role's prompt before them, whatever their length."""
        prompt = self.prompt(role)
        options = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
        ids: list[list[int]] = self.model[0].tokenizer([prompt + text for text in texts], **options)["input_ids"]
        return ids

    def tokenize(self, texts: Sequence[str], role: Role = "story") -> tuple[list[list[int]], int]:
        """Tokenize texts as `token_ids` does, cut at `max_length`; also count those that were cut."""
        encoded = self.token_ids(texts, role)
        long = [i for i, ids in enumerate(encoded) if len(ids) > self.max_length]
        if long:
            for i, ids in zip(long, self.truncated([texts[i] for i in long], role), strict=True):
                encoded[i] = ids
        return encoded, len(long)

    def truncated(self, texts: Sequence[str], role: Role = "story") -> list[list[int]]:
        """Tokenize texts as `token_ids` does, cut at `max_length`."""
        prompted, options = [self.prompt(role) + text for text in texts], {"max_length": self.max_length}
        ids: list[list[int]] = self.model[0].tokenizer(prompted, truncation=True, **options)["input_ids"]
        return ids

    def windows(self, text: str, role: Role = "story") -> tuple[list[list[int]], list[int]]:
        """Tokenize a text longer than `max_length` in windows, each with the prompt; also count the tokens each adds.

        Raises:
            OptionError: if the prompt leaves no room for the text.
        """
        prompt = self.prompt(role)
        options = {"return_special_tokens_mask": True, "return_offsets_mapping": True, "verbose": False}
        encoded = self.model[0].tokenizer(prompt + text, **options)
        ids = encoded["input_ids"]
        # Where each token ends, in characters of the text: 0 or below for tokens of the prompt.
        ends = np.array(encoded["offset_mapping"])[:, 1] - len(prompt)
        ordinary = np.flatnonzero(np.array(encoded["special_tokens_mask"]) == 0)
        begin = int(ordinary[ends[ordinary] > 0][0])
        end = int(ordinary[-1]) + 1
        room = self.max_length - begin - (len(ids) - end)
        if room < 1:
            raise OptionError(f"{self.max_length} tokens are too few behind the prompt {prompt!r}: raise `max_length`")
        edges = np.searchsorted(ends[begin:end], _sentence_starts(text), side="right") + begin
        bounds = window_bounds([begin, *edges.tolist(), end], room)
        windows = [ids[:begin] + ids[start:stop] + ids[end:] for start, stop in bounds]
        stops = [begin, *(stop for _, stop in bounds)]
        return windows, [stop - before for before, stop in pairwise(stops)]

    def forward(self, stories: PackedStories) -> Tensor:
        """Embed U texts, (U, text_dimension), in their order; a BiLSTM or a fusion of views is not applied."""
        chunks = token_chunks(stories.lengths, self.token_budget(stories.token_ids.device), padded=not self.packs)
        embed: Callable[[PackedStories], Tensor] = self._embed
        if self.config.gradient_caching and torch.is_grad_enabled():
            # Checkpointing a whole pass is gradient caching, and draws its dropout again.
            embed = partial(checkpoint, self._embed, use_reentrant=False)
        elif len(chunks) == 1 and self.packs:
            return embed(stories)
        vectors = torch.cat([embed(stories.select(chunk)) for chunk in chunks])
        order = list(chain.from_iterable(chunks))
        return vectors[torch.tensor(order, device=vectors.device).argsort()]

    def token_budget(self, device: torch.device) -> int:
        """Return the tokens per forward pass on this device, with or without gradients as they are now."""
        if self.sharded:  # weights are exchanged in each pass: every process must have as many
            return sys.maxsize
        if self.config.token_budget is not None:
            return self.config.token_budget
        if device.type != "cpu":
            return 65536
        if torch.is_grad_enabled():
            return 2048 if self.config.gradient_caching else 8192
        return 4096  # small pieces stay in the cache: a seventh faster

    def _embed(self, stories: PackedStories) -> Tensor:
        """Embed U texts in one pass, (U, text_dimension)."""
        if self.packs:
            features = packing.features(stories.token_ids, stories.lengths, self._first_position)
        else:
            features = self._padded_features(stories)
        vectors: Tensor = self.model(features)["sentence_embedding"]
        return vectors

    def _padded_features(self, stories: PackedStories) -> dict[str, Any]:
        """Build the input of a transformer that can't take packed stories."""
        device = stories.token_ids.device
        ids = [tokens.tolist() for tokens in torch.split(stories.token_ids, list(stories.lengths))]
        padded = self.model[0].tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        return {
            "input_ids": padded["input_ids"].to(device),
            "attention_mask": padded["attention_mask"].to(device),
            "modality": "text",
        }

    def moved(self) -> None:
        """Move what a quantized model stores beside its weights, too."""
        adapters.realign_quantized(self.transformer)

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder that loads without this package and gives the same embeddings.

        Merge first: an encoder with adapters or quantized weights would need their packages to load. A projection, MLP
        head or post-processing is rounded to the encoder's dtype, in place. With a BiLSTM or a fusion of views the
        folder holds the code that it needs, and loading it takes `trust_remote_code=True`.
        """
        if self.views is not None and self.sentences is not None:
            raise OptionError("views of a model that reads sentences can't be exported: export that model alone")
        head = self.views or self.sentences
        post = list(self.post or ())
        rounded = list(self.model)[2:]
        if head is None:
            rounded += post
        for module in rounded:
            module.to(next(self.transformer.parameters()).dtype)
        with quiet():
            if head is not None:
                model = self._of_modules([head, *post])
                head.inner = self.model
                model.save(str(folder), create_model_card=False)
                head.inner = None
                copy_code(folder, head)
            else:
                model = self._of_modules([*self.model, *post]) if post else self.model
                model.save(str(folder), create_model_card=False)
        mode = (folder / "modules.json").stat().st_mode
        for path in folder.rglob("*.safetensors"):  # written so that only their owner can read them
            path.chmod(mode)

    def _of_modules(self, modules: list[nn.Module]) -> SentenceTransformer:
        """Make a sentence-transformers model of these modules with the prompts of this one."""
        model = SentenceTransformer(modules=modules, device=str(self.device))
        model.prompts, model.default_prompt_name = self.model.prompts, self.model.default_prompt_name
        return model


def _cast(module: nn.Module, dtype: torch.dtype) -> None:
    """Convert a module's weights in place."""
    # Not module.to, which would round the buffers too: the frequencies of rotations must stay exact.
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)


def _in_float32(module: nn.Module, arguments: object, features: dict[str, Any]) -> None:
    """Convert the transformer's output."""
    features["token_embeddings"] = features["token_embeddings"].float()


def _in_own_dtype(module: nn.Module, arguments: tuple[dict[str, Any]]) -> None:
    """Convert a head's input: one trained in float32 reads float32, whatever its encoder computes in."""
    weight = next(module.parameters(), None)
    if weight is not None:
        arguments[0]["sentence_embedding"] = arguments[0]["sentence_embedding"].to(weight.dtype)


def _sentence_starts(text: str) -> list[int]:
    """Find where each sentence of a text begins, in characters."""
    starts: list[int] = []
    end = 0
    for sentence in split_sentences(text):
        starts.append(text.index(sentence, end))
        end = starts[-1] + len(sentence)
    return starts


def window_bounds(edges: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Cover tokens from the first edge to the last by windows of at most `room` tokens that begin and end at edges.

    A window begins where about an eighth of `room` overlaps with the one before. Edges farther apart than `room` get
    others between them.

    >>> window_bounds([0, 7, 9, 14, 16], 10)
    [(0, 9), (7, 16)]
    """
    step = max(1, room // 8)
    inner: list[int] = []
    for a, b in pairwise(np.unique(edges).tolist()):
        inner += range(a, b, step if b - a > room else b - a)
    places = np.array([*inner, max(edges)])
    bounds: list[tuple[int, int]] = []
    start = int(places[0])
    while True:
        end = int(places[places <= start + room][-1])
        bounds.append((start, end))
        if end == places[-1]:
            return bounds
        beyond = places[places > end][0]
        starts = places[(places > start) & (places <= end) & (places >= beyond - room)]
        start = int(starts[np.abs(starts - (end - step)).argmin()])


def token_chunks(lengths: Sequence[int], budget: int, padded: bool) -> list[list[int]]:
    """Divide positions 0 to U - 1 into forward passes of at most `budget` tokens, or of one longer text.

    Where texts are `padded`, they are sorted by length first, so that there is little padding, which counts.

    >>> token_chunks([5, 9, 4], 10, padded=False)
    [[0], [1], [2]]
    >>> token_chunks([5, 9, 4], 10, padded=True)
    [[1], [0, 2]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i]) if padded else range(len(lengths))
    chunks: list[list[int]] = []
    used = widest = 0
    for position in order:
        widest = max(widest, lengths[position])
        used = widest * (len(chunks[-1]) + 1) if padded and chunks else used + lengths[position]
        if not chunks or used > budget:
            chunks.append([])
            used = widest = lengths[position]
        chunks[-1].append(position)
    return chunks
