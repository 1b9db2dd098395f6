"""The story encoder: token ids in, one vector a story out, by the packed path or the padded one."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from narrlit.data.batch import PackedStories
from narrlit.errors import ModelError
from narrlit.models import adapters, packing, quantization
from narrlit.models.config import EncoderConfig, Role
from narrlit.models.loading import PROMPT_NAMES, first_position, load_model


class Encoder(nn.Module):
    """A sentence-transformers model behind packed batches.

    Both paths run the same modules (transformer, pooling, whatever follows, normalisation) and give the same vectors;
    `model` is the sentence-transformers model itself, so saving it is the export.
    """

    pieces = ("story", "stories")
    """What `max_length` cuts, one and several."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = load_model(config)
        if config.lora is not None:
            adapters.add_adapters(self.transformer, config.lora)
        if config.gradient_checkpointing:
            adapters.checkpoint_gradients(self.transformer)
        self.packs = config.packed and packing.packable(self.transformer.config)
        if self.packs:
            packing.register()
            self.transformer.set_attn_implementation(packing.PACKED)
        self._first_position = first_position(self.transformer)

    @property
    def transformer(self) -> Any:
        """The transformers model inside."""
        return self.model[0].model

    @property
    def dimension(self) -> int:
        """D, the numbers of one vector."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def max_length(self) -> int:
        """Tokens of a story that are read, prompt and special tokens included."""
        return int(self.model[0].max_seq_length)

    @property
    def normalized(self) -> bool:
        """Whether vectors have length 1."""
        from sentence_transformers.models import Normalize

        return isinstance(self.model[-1], Normalize)

    @property
    def has_adapters(self) -> bool:
        """Whether adapters stand beside the model's own weights, not merged into them."""
        return adapters.has_adapters(self.transformer)

    @property
    def quantized(self) -> bool:
        """Whether weights of the model are kept in fewer bits."""
        return any(quantization.quantised(module) for module in self.transformer.modules())

    def append(self, modules: Iterable[nn.Module]) -> None:
        """Put sentence-transformers modules behind the others; they keep their own weights' type."""
        for module in modules:
            module.register_forward_pre_hook(_in_own_type)
            self.model.append(module)

    def merge(self) -> None:
        """Merge adapters into the weights and take these out of their 4 or 8 bits, in place; plain ones stay.

        What is merged no longer trains.
        """
        adapters.merge_adapters(self.transformer)

    def prompt(self, role: Role) -> str:
        """The text put before a story in this role."""
        return str(self.model.prompts[PROMPT_NAMES[role]])

    def require_one_prompt(self, purpose: str) -> None:
        """Refuse role prompts where one vector serves both roles.

        Raises:
            ModelError: if the anchor's, the candidate's and the story's prompts differ.
        """
        if len({self.prompt(role) for role in ("anchor", "candidate", "story")}) > 1:
            raise ModelError(
                f"{self.config.model} puts {self.prompt('anchor')!r} before anchors and {self.prompt('candidate')!r} "
                f"before candidates, but {purpose} makes one vector that serves both: train with one prompt "
                "(encoder.prompts.story alone)"
            )

    def tokenize(self, texts: Sequence[str], role: Role = "story") -> tuple[list[list[int]], int]:
        """Token ids of texts with the role's prompt before them, cut at `max_length`.

        Returns:
            The ids of each text, special tokens included, and how many texts were cut.
        """
        prompt = self.prompt(role)
        tokenizer = self.model[0].tokenizer
        options = {"return_attention_mask": False, "return_token_type_ids": False}
        encoded = tokenizer([prompt + text for text in texts], verbose=False, **options)["input_ids"]
        whole = [len(ids) <= self.max_length for ids in encoded]
        long = [i for i, fits in enumerate(whole) if not fits]
        if long:
            cut = tokenizer([prompt + texts[i] for i in long], truncation=True, max_length=self.max_length)["input_ids"]
            for i, ids in zip(long, cut, strict=True):
                encoded[i] = ids
        return encoded, len(long)

    def forward(self, stories: PackedStories) -> Tensor:
        """Vectors of U stories, (U, D), in their order."""
        chunks = token_chunks(stories.lengths, self.token_budget(stories.token_ids.device), padded=not self.packs)
        embed = self._embed_packed if self.packs else self._embed_padded
        if len(chunks) == 1 and self.packs:
            return embed(stories)
        vectors = torch.cat([embed(stories.select(chunk)) for chunk in chunks])
        order = torch.tensor([place for chunk in chunks for place in chunk], device=vectors.device)
        return vectors[order.argsort()]

    def token_budget(self, device: torch.device) -> int:
        """Tokens of one forward pass on this device, with or without gradients as they are on now."""
        if self.config.token_budget is not None:
            return self.config.token_budget
        if device.type != "cpu":
            return 65536
        # Without a graph to keep, small pieces stay in the cache: a seventh faster (benchmarks/embed.py).
        return 8192 if torch.is_grad_enabled() else 2048

    def _embed_packed(self, stories: PackedStories) -> Tensor:
        features = packing.features(stories.token_ids, stories.lengths, self._first_position)
        return self._vectors(features)

    def _embed_padded(self, stories: PackedStories) -> Tensor:
        ids = [piece.tolist() for piece in torch.split(stories.token_ids, list(stories.lengths))]
        padded = self.model[0].tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        device = stories.token_ids.device
        features = {name: padded[name].to(device) for name in ("input_ids", "attention_mask")}
        return self._vectors({**features, "modality": "text"})

    def _vectors(self, features: dict[str, Any]) -> Tensor:
        vectors: Tensor = self.model(features)["sentence_embedding"]
        return vectors

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Encoder":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        quantization.realign(self.transformer)
        return self

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder that loads without this package and gives the same vectors.

        Merge first: an encoder with adapters or quantised weights would need their packages to load. A head behind an
        encoder in half precision is rounded to it, in place, since sentence-transformers computes all in one type.
        """
        for module in list(self.model)[2:]:
            module.to(next(self.transformer.parameters()).dtype)
        self.model.save(str(folder), create_model_card=False)


def _in_own_type(module: nn.Module, arguments: tuple[dict[str, Any]]) -> None:
    """A head trained in float32 reads vectors in float32, whatever its encoder computes in."""
    weight = next(module.parameters(), None)
    if weight is not None:
        arguments[0]["sentence_embedding"] = arguments[0]["sentence_embedding"].to(weight.dtype)


def token_chunks(lengths: Sequence[int], budget: int, padded: bool) -> list[list[int]]:
    """Cut places 0 to U - 1 into forward passes of at most `budget` tokens, or of one story where it alone has more.

    Args:
        lengths: tokens of each story.
        budget: tokens of a pass, padding counted in.
        padded: sort by length first, so that little is padding; otherwise the order stays.

    >>> token_chunks([5, 9, 4], 10, padded=False)
    [[0], [1], [2]]
    >>> token_chunks([5, 9, 4], 10, padded=True)
    [[1], [0, 2]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i]) if padded else range(len(lengths))
    chunks: list[list[int]] = []
    used = widest = 0
    for place in order:
        widest = max(widest, lengths[place])
        used = widest * (len(chunks[-1]) + 1) if padded and chunks else used + lengths[place]
        if not chunks or used > budget:
            chunks.append([])
            used = widest = lengths[place]
        chunks[-1].append(place)
    return chunks
