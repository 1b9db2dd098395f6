"""The story encoder: a sentence-transformers model that embeds packed batches, and its heads."""

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer, models
from sentence_transformers.models import Normalize
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint

from narrlit.compat.torch import MovableModule
from narrlit.data.batch import PackedStories
from narrlit.errors import ModelError, OptionError
from narrlit.models import adapters, capabilities, packing
from narrlit.models.config import EncoderConfig, Long, Precision, Role
from narrlit.models.heads import SentenceBiLSTM, ViewFusion, copy_code
from narrlit.models.pretrained import PROMPT_NAMES, SAMPLE, first_position, load_model, quiet
from narrlit.models.text_tokens import EncodedText, encode_by_sentence, split_windows, token_chunks


class Encoder(MovableModule):
    """A sentence-transformers model that reads packed batches; packed and padded embeddings are equal.

    Attributes:
        config: settings of the encoder.
        model: the sentence-transformers model that embeds texts, including projections and MLP heads.
        sentences: head over the embeddings of a story's sentences, if any.
        views: fusion of the embeddings of a story's text and views, if any.
        post: post-processing of story embeddings, if any; applied by `models.embedding.embed_stories`.
        packs: True if stories are concatenated without padding.
        mixes_padding: True if padding would change the embeddings, as in FNet: only texts of one length share a pass.
        sharded: True if each process has a part of the weights.
        long: treatment of texts longer than `max_length` in `models.embedding.embed_stories`; training truncates.
    """

    long: Long = "truncate"
    sharded = False

    def __init__(self, config: EncoderConfig, *, trust_remote_code: bool = False, empty: bool = False) -> None:
        """Load the model.

        Args:
            config: settings of the encoder.
            trust_remote_code: run Python files that come with the model.
            empty: create the weights on the meta device, where they take no memory.
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
        self._first_position = first_position(self.transformer)
        # Otherwise the model skips the positions of other tokens than padding.
        skips_padding = self._first_position in (0, (self.model[0].tokenizer.pad_token_id or 0) + 1)
        self.packs = config.packed and packing.packable(self.transformer.config) and skips_padding
        if self.packs:
            packing.prepare(self.transformer)
        for module in self.transformer.modules():
            if type(module) is nn.Dropout:
                module.__class__ = packing.Dropout
        # After a transformer in half precision, pooling, projections and normalization compute in float32.
        self.model[0].register_forward_hook(_in_float32)
        for module in list(self.model)[2:]:
            module.register_forward_pre_hook(_in_own_dtype)
        self._token_types = self._special_token_types()
        self.mixes_padding = False
        if not (empty or self.packs or self.quantized):
            self.mixes_padding = self._padding_changes_embeddings()

    @property
    def transformer(self) -> Any:
        """The transformers model."""
        return self.model[0].model

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        device: torch.device = next(self.parameters()).device
        return device

    @property
    def reads(self) -> Literal["text", "sentences", "views"]:
        """Input of the encoder: a story's text, its sentences, or its text and views."""
        if self.views is not None:
            return "views"
        return "text" if self.sentences is None else "sentences"

    @property
    def unit(self) -> tuple[str, str]:
        """Name of the unit that is limited by `max_length`, singular and plural."""
        if self.sentences is not None:
            return "sentence", "sentences"
        return ("story", "stories") if self.views is None else ("text or view", "texts and views")

    @property
    def text_dimension(self) -> int:
        """Dimension of the embedding of one text, before a BiLSTM or the fusion of views."""
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
        """Maximum number of tokens of a text, including prompt and special tokens."""
        return int(self.model[0].max_seq_length)

    @property
    def normalized(self) -> bool:
        """True if embeddings have length 1."""
        return self.reads != "text" or self.post is not None or isinstance(self.model[-1], Normalize)

    @property
    def has_adapters(self) -> bool:
        """True if the model has adapters that are not merged into its weights."""
        return bool(adapters.adapted_layers(self.transformer))

    @property
    def quantized(self) -> bool:
        """True if the model's weights are stored in 4 or 8 bits."""
        return adapters.is_quantized(self.transformer)

    @property
    def rounding_error(self) -> float:
        """Relative rounding error of the least precise number format of its weights.

        This refers to the actual weights: `cast` and merged adapters do not change `config.dtype`.
        """
        formats = {weight.dtype for weight in self.parameters() if weight.is_floating_point()}
        return max(torch.finfo(dtype).eps for dtype in formats)

    def attach(self, head: nn.Module) -> None:
        """Add a head after the model: the result of `build_head`, or a `ViewFusion`."""
        dimension = self.dimension if isinstance(head, ViewFusion) else self.text_dimension
        expected: Any = getattr(head, "dimension", None) or next(head.children()).in_features
        if expected != dimension:
            raise ModelError("dimension_of_head", model=self.config.model, found=dimension, needed=expected)
        if isinstance(head, ViewFusion):
            self.views = head
        elif isinstance(head, SentenceBiLSTM):
            self.sentences = head
        else:
            for module in head.children():
                module.register_forward_pre_hook(_in_own_dtype)
                self.model.append(module)

    def postprocess(self, dense: nn.Module) -> None:
        """Add a `Dense` as the last step: an affine map of a story's unit vector, followed by normalization."""
        self.post = nn.Sequential(Normalize(), dense, Normalize()).to(self.device).eval()

    def merge(self) -> None:
        """Merge adapters into the weights and dequantize the weights, in place; the result is frozen."""
        if self.has_adapters or self.quantized:
            adapters.merge_adapters(self.transformer)

    def cast(self, precision: Precision | None) -> "Encoder":
        """Set the number format of computations, on the device where the model is; None: no change.

        With bfloat16 only the weights of linear layers are converted. The residual stream stays in float32, which
        changes cosines half as much as bfloat16 throughout.

        Raises:
            OptionError: for `bf16` on a device without bfloat16 in hardware.
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
        """Return the text that is put before a story in this role."""
        return str(self.model.prompts[PROMPT_NAMES[role]])

    @property
    def symmetric(self) -> bool:
        """True if anchors and candidates have the same prompt."""
        return self.prompt("anchor") == self.prompt("candidate")

    def require_one_prompt(self, purpose: str) -> None:
        """Raise ModelError if prompts differ by role, for a purpose that has one embedding for all roles."""
        if len(set(map(self.prompt, PROMPT_NAMES))) > 1:
            raise ModelError(
                "prompts_by_role",
                model=self.config.model,
                anchor=self.prompt("anchor"),
                candidate=self.prompt("candidate"),
                purpose=purpose,
            )

    def token_ids(self, texts: Sequence[str], role: Role = "story") -> list[list[int]]:
        """Tokenize texts with the role's prompt before them, without truncation."""
        prompt = self.prompt(role)
        prompted = [prompt + text for text in texts]
        options = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
        ids: list[list[int]] = self.model[0].tokenizer(prompted, **options)["input_ids"]
        return ids

    def tokenize(self, texts: Sequence[str], role: Role = "story") -> tuple[list[list[int]], int]:
        """Tokenize texts with the role's prompt, truncated at `max_length`, and count the truncated texts."""
        ids = self.token_ids(texts, role)
        truncated_rows = self.truncate(ids, texts, role)
        return ids, len(truncated_rows)

    def truncate(self, ids: list[list[int]], texts: Sequence[str], role: Role = "story") -> list[int]:
        """Truncate the token ids of texts longer than `max_length`, in place, and return their rows.

        Args:
            ids: result of `token_ids`.
            texts: the texts.
            role: role whose prompt is before them.
        """
        limit = self.max_length
        rows = [row for row, tokens in enumerate(ids) if len(tokens) > limit]
        if rows:
            prompt = self.prompt(role)
            prompted = [prompt + texts[row] for row in rows]
            truncated = self.model[0].tokenizer(prompted, truncation=True, max_length=limit)["input_ids"]
            for row, tokens in zip(rows, truncated, strict=True):
                ids[row] = tokens
        return rows

    def windows(self, text: str, role: Role = "story") -> tuple[list[list[int]], list[int]]:
        """Tokenize a text longer than `max_length` in windows, each with the prompt.

        Returns:
            Token ids of each window, and the number of tokens in each that are not in the previous one.

        Raises:
            OptionError: if the prompt leaves no room for the text.
        """
        prompt = self.prompt(role)
        tokenizer = self.model[0].tokenizer
        if tokenizer.is_fast:
            options = {"return_special_tokens_mask": True, "return_offsets_mapping": True, "verbose": False}
            encoded = tokenizer(prompt + text, **options)
            ends = [end for _, end in encoded["offset_mapping"]]
            tokens = EncodedText(encoded["input_ids"], encoded["special_tokens_mask"], ends)
        else:
            tokens = encode_by_sentence(tokenizer, text, prompt)
        return split_windows(tokens, text, prompt, self.max_length)

    def forward(self, stories: PackedStories) -> Tensor:
        """Embed U texts, (U, text_dimension), in their order, without a BiLSTM or the fusion of views."""
        budget = self.token_budget(stories.token_ids.device)
        chunks = token_chunks(stories.lengths, budget, padded=not self.packs, equal=self.mixes_padding)
        embed: Callable[[PackedStories], Tensor] = self._embed
        if self.config.gradient_caching and torch.is_grad_enabled():
            # Gradient caching is checkpointing of whole passes, which restores the random state for dropout.
            embed = partial(checkpoint, self._embed, use_reentrant=False)
        elif len(chunks) == 1 and self.packs:
            return embed(stories)
        vectors = torch.cat([embed(stories.select(chunk)) for chunk in chunks])
        order = list(chain.from_iterable(chunks))
        return vectors[torch.tensor(order, device=vectors.device).argsort()]

    def token_budget(self, device: torch.device) -> int:
        """Return the number of tokens per forward pass on this device, which depends on whether gradients are on."""
        if self.sharded:  # weights are exchanged in each pass, so every process needs the same number of passes
            return sys.maxsize
        if self.config.token_budget is not None:
            return self.config.token_budget
        if device.type != "cpu":
            return 65536
        if torch.is_grad_enabled():
            return 2048 if self.config.gradient_caching else 8192
        return 4096  # small passes fit into the CPU's cache: a seventh faster

    def _embed(self, stories: PackedStories) -> Tensor:
        """Embed U texts in one pass, (U, text_dimension)."""
        if self.packs:
            features = packing.features(stories.token_ids, stories.lengths, self._first_position)
        else:
            features = self._padded_features(stories)
        vectors: Tensor = self.model(features)["sentence_embedding"]
        return vectors

    def _padded_features(self, stories: PackedStories) -> dict[str, Any]:
        """Build the padded input of a transformer that does not support packed stories."""
        ids = list(torch.split(stories.token_ids, list(stories.lengths)))
        padding = self.model[0].tokenizer.pad_token_id or 0
        input_ids = pad_sequence(ids, batch_first=True, padding_value=padding)
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        lengths = torch.tensor(stories.lengths, device=input_ids.device)
        features: dict[str, Any] = {
            "input_ids": input_ids,
            "attention_mask": (positions < lengths[:, None]).long(),
            "modality": "text",
        }
        if self._token_types:
            token_types = torch.zeros_like(input_ids)
            for token, token_type in self._token_types.items():
                token_types[input_ids == token] = token_type
            features["token_type_ids"] = token_types
        return features

    def _special_token_types(self) -> dict[int, int]:
        """Return the type of each special token whose type is not 0, as of the last token of XLNet."""
        encoded = self.model[0].tokenizer(SAMPLE)
        pairs = zip(encoded["input_ids"], encoded.get("token_type_ids", ()), strict=False)
        return {token: token_type for token, token_type in pairs if token_type}

    def _padding_changes_embeddings(self) -> bool:
        """Compare the embeddings of a few tokens alone and padded.

        Raises:
            ModelError: if sentence-transformers gives another embedding for the same text.
        """
        [whole], _ = self.tokenize([SAMPLE])
        beginning = whole[: max(1, len(whole) // 2)]
        with torch.no_grad(), quiet():
            alone = self._embed(packed([beginning]))[0]
            padded, unpadded = self._embed(packed([beginning, whole]))
            expected = self.model.encode(SAMPLE, convert_to_tensor=True)
        # Sums are in another order: differences are below 1e-6 in float32, and of a rounding error in half precision.
        tolerance = max(1e-5, 4 * self.rounding_error) * float(unpadded.abs().max())
        if not torch.allclose(unpadded, expected.float(), rtol=0, atol=tolerance):
            raise ModelError(
                "unsupported_architecture", model=self.config.model, type=self.transformer.config.model_type
            )
        return not torch.allclose(padded, alone, rtol=0, atol=tolerance)

    def moved(self) -> None:
        """Also move the scales of a quantized model."""
        adapters.realign_quantized(self.transformer)

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder that loads without this package and computes the same embeddings.

        Merge first: adapters or quantized weights need their packages for loading. A projection, MLP head or
        post-processing is converted to the encoder's dtype, in place. With a BiLSTM or the fusion of views, the folder
        contains the code that it needs, and is loaded with `trust_remote_code=True`.
        """
        if self.views is not None and self.sentences is not None:
            raise OptionError("fusion_of_sentences")
        head = self.views or self.sentences
        post = list(self.post or ())
        converted = list(self.model)[2:]
        if head is None:
            converted += post
        dtype = next(self.transformer.parameters()).dtype
        for module in converted:
            module.to(dtype)
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
        for path in folder.rglob("modules.json"):
            _use_lasting_paths(path)
        mode = (folder / "modules.json").stat().st_mode
        for path in folder.rglob("*.safetensors"):  # written with read permission for their owner only
            path.chmod(mode)

    def _of_modules(self, modules: list[nn.Module]) -> SentenceTransformer:
        """Build a sentence-transformers model of these modules, with the prompts of this model."""
        model = SentenceTransformer(modules=modules, device=str(self.device))
        model.prompts, model.default_prompt_name = self.model.prompts, self.model.default_prompt_name
        return model


def packed(ids: Sequence[list[int]]) -> PackedStories:
    """Concatenate the token ids of texts."""
    flat = torch.tensor(list(chain.from_iterable(ids)))
    return PackedStories(flat, tuple(map(len, ids)), torch.arange(len(ids)))


def _use_lasting_paths(path: Path) -> None:
    """Replace the modules' import paths in a modules.json by those that earlier releases have, too."""
    modules = json.loads(path.read_text(encoding="utf-8"))
    for module in modules:
        package, _, name = module["type"].rpartition(".")
        if package.startswith("sentence_transformers.") and hasattr(models, name):
            module["type"] = f"sentence_transformers.models.{name}"
    path.write_text(json.dumps(modules, indent=2) + "\n", encoding="utf-8")


def _cast(module: nn.Module, dtype: torch.dtype) -> None:
    """Convert a module's weights in place."""
    # Not module.to, which also converts buffers: the frequencies of rotary embeddings must stay exact.
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)


def _in_float32(module: nn.Module, arguments: object, features: dict[str, Any]) -> None:
    """Convert the transformer's output to float32."""
    features["token_embeddings"] = features["token_embeddings"].float()


def _in_own_dtype(module: nn.Module, arguments: tuple[dict[str, Any]]) -> None:
    """Convert a head's input to the dtype of its weights, which may differ from that of the encoder."""
    weight = next(module.parameters(), None)
    if weight is not None:
        arguments[0]["sentence_embedding"] = arguments[0]["sentence_embedding"].to(weight.dtype)
