"""Settings of encoders, their heads and the fusion of views as plain data; no torch."""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Literal

from narrlit.errors import OptionError, nearest

Role = Literal["anchor", "candidate", "story"]
Pooling = Literal["mean", "cls", "last"]
Long = Literal["windows", "truncate", "refuse"]
"""Treatment of texts longer than `max_length`."""
Precision = Literal["bf16", "fp32", "auto"]
"""Number format of an encoder's computations; `auto` is bfloat16 if the device has it in hardware, else float32."""
DEFAULT_MODEL = "narrlit-mini"
"""Model that is used if none is named."""
UNLIMITED = 2**31 - 1
"""Maximum length in tokens of a model without a limit."""
CONSENT = "NARRLIT_TRUST_REMOTE_CODE"


def allow_remote_code() -> None:
    """Allow models to run the Python files that come with them, in this process and its child processes.

    Only the command line's `--trust-remote-code` calls this; no config or checkpoint can.
    """
    os.environ[CONSENT] = "1"


def remote_code_allowed() -> bool:
    """Return True if `allow_remote_code` was called."""
    return os.environ.get(CONSENT) == "1"


@dataclass(frozen=True)
class Prompts:
    """Prompts, which are put before stories, by role.

    Attributes:
        story: prompt of a single story (Track B, `embed`); None: the model's own default prompt.
        anchor: prompt of the anchor of a triple; None: the same as `story`.
        candidate: prompt of the candidates of a triple; None: the same as `story`.
    """

    story: str | None = None
    anchor: str | None = None
    candidate: str | None = None


@dataclass(frozen=True)
class LoRA:
    """Low-rank adapters (LoRA): an adapted layer has the weight W + (alpha / rank) BA, where W is frozen.

    Attributes:
        rank: rank of BA.
        alpha: numerator of the scale.
        dropout: dropout probability before each adapter in training; `encoder.dropout` does not change it.
        target_modules: layers to adapt: `all-linear` (every linear layer inside the transformer's layers), or one or
            more endings of their names.
    """

    rank: int = 32
    alpha: float = 64
    dropout: float = 0.1
    target_modules: str | list[str] = "all-linear"

    def __post_init__(self) -> None:
        _require(self.rank >= 1, "encoder.lora.rank", self.rank, "a positive number")
        _require(self.alpha > 0, "encoder.lora.alpha", self.alpha, "a number above 0")
        _require(0 <= self.dropout < 1, "encoder.lora.dropout", self.dropout, "a probability from 0 to below 1")
        if not self.target_modules or not all(self.target_modules):
            raise OptionError("empty_target_modules")


@dataclass(frozen=True)
class EncoderConfig:
    """Settings of an encoder.

    Attributes:
        model: a sentence-transformers folder, a hub id, or `minilm` (packaged, needs no network).
        revision: branch, tag or commit on the hub; None: the newest.
        pooling: pooling of token embeddings; None: the model's own.
        normalize: normalize embeddings to length 1, as cosine objectives need; None: the model's own setting.
        max_length: maximum number of tokens of a story with its prompt, longer ones are truncated; None: the model's
            own.
        prompts: text before a story, by role.
        dropout: probability in every dropout of the model in training; None: the model's own.
        frozen_layers: share of the lower layers (rounded down) that are frozen, 0 to 1; above 0, the embeddings of
            tokens and positions are frozen too. Not allowed with `lora`, which freezes all layers.
        packed: concatenate stories without padding, if the architecture supports it.
        token_budget: tokens per forward pass; None: 8,192 on a CPU (2,048 with gradient caching), 65,536 elsewhere.
        dtype: number format of the weights.
        lora: adapters that are trained instead of the model's own weights; None: train the model's own weights.
        quantization: store the weights of linear layers in 4 bits (`nf4`) or 8 bits (`int8`), frozen; None: in `dtype`.
        gradient_checkpointing: recompute each layer in the backward pass: less memory, about a third slower.
        gradient_caching: recompute each pass of `token_budget` tokens in the backward pass (GradCache, Gao 2021),
            so that memory does not grow with the batch; about a third slower.
    """

    model: str = "minilm"
    revision: str | None = None
    pooling: Pooling | None = None
    normalize: bool | None = True
    max_length: int | None = None
    prompts: Prompts = field(default_factory=Prompts)
    dropout: float | None = None
    frozen_layers: float = 0.0
    packed: bool = True
    token_budget: int | None = None
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    lora: LoRA | None = None
    quantization: Literal["nf4", "int8"] | None = None
    gradient_checkpointing: bool = False
    gradient_caching: bool = False

    def __post_init__(self) -> None:
        _require(0 <= self.frozen_layers <= 1, "encoder.frozen_layers", self.frozen_layers, "a share from 0 to 1")
        if self.dropout is not None:
            _require(0 <= self.dropout < 1, "encoder.dropout", self.dropout, "a probability from 0 to below 1")
        for name in ("max_length", "token_budget"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"encoder.{name}", value, "a positive number")
        if self.lora is not None and self.frozen_layers:
            raise OptionError("frozen_layers_and_lora", frozen_layers=self.frozen_layers)

    def as_dict(self) -> dict[str, Any]:
        """Convert to nested plain data, for hyperparameters and records."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "EncoderConfig":
        """Read the result of `as_dict`; fields that are missing in older files take their defaults."""
        fields = dict(values)
        fields.pop("trust_remote_code", None)  # in files of older releases; a file can't give this consent
        prompts = fields.pop("prompts", None) or {}
        if not isinstance(prompts, Prompts):
            prompts = Prompts(**prompts)
        lora = fields.pop("lora", None)
        if lora is not None and not isinstance(lora, LoRA):
            lora = LoRA(**lora)
        return cls(**fields, prompts=prompts, lora=lora)


@dataclass(frozen=True)
class BiLSTMConfig:
    """Sizes of a BiLSTM over sentence embeddings.

    The defaults are Mendel292's; its paper does not give the dropout.

    Attributes:
        hidden: H, size of the state of one direction.
        layers: number of bidirectional layers.
        dropout: dropout probability between the layers and before the linear map, in training.
        output: dimension of a story's embedding.
    """

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.1
    output: int = 256

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "output"):
            size = getattr(self, name)
            _require(size >= 1, f"bilstm.{name}", size, "a positive number")
        _require(0 <= self.dropout < 1, "bilstm.dropout", self.dropout, "a probability from 0 to below 1")


PARTS = ("full", "theme", "action", "outcome")
"""Texts of a story whose embeddings are fused: the full text, then the views."""


@dataclass(frozen=True)
class Fusion:
    """Weights for the fusion of a story's text and views: its embedding is the normalized weighted sum of unit vectors.

    Source: ttda704, section 4.2 and appendix A.4.

    Attributes:
        full: weight of the full text.
        theme: weight of the theme.
        action: weight of the course of action.
        outcome: weight of the outcome.
    """

    full: float = 0.5
    theme: float = 0.1
    action: float = 0.2
    outcome: float = 0.2

    def __post_init__(self) -> None:
        if not all(math.isfinite(weight) and weight >= 0 for weight in self.weights):
            raise OptionError("fusion_weight_not_finite", fusion=str(self))
        if not sum(self.weights) > 0:
            raise OptionError("fusion_weights_zero", fusion=str(self))

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """The weights in the order of PARTS."""
        return astuple(self)

    def __str__(self) -> str:
        return ",".join(f"{weight:g}" for weight in self.weights)


PRESETS = {
    "submitted": Fusion(),
    "equal": Fusion(0.25, 0.25, 0.25, 0.25),
    "full_only": Fusion(1, 0, 0, 0),
    "higher_theme": Fusion(0.4, 0.3, 0.15, 0.15),
    "action_only": Fusion(0, 0, 1, 0),
}
"""The four settings of ttda704 (Table 2), and the course of action alone, as in COGNAC's system for Track B."""


def parse_fusion(text: str) -> Fusion:
    """Parse a name of PRESETS or four comma-separated weights; raise OptionError for anything else.

    >>> parse_fusion("equal") == parse_fusion("0.25, 0.25,0.25,0.25")
    True
    """
    if text in PRESETS:
        return PRESETS[text]
    try:
        full, theme, action, outcome = map(float, text.split(","))
    except ValueError as error:  # not a number, or not four of them
        raise OptionError("unknown_fusion", fusion=text, known=list(PRESETS), parts=PARTS) from error
    return Fusion(full, theme, action, outcome)


def _require(valid: bool, option: str, value: object, needed: str) -> None:
    """Raise OptionError with the name and the value of an option unless it is valid."""
    if not valid:
        raise OptionError("config_value", option=option, found=value, needed=needed)


STEPS = ("center", "abtt", "whiten", "truncate")
NUMBERED = ("abtt", "truncate")
"""Steps that need a number."""
Steps = Sequence[tuple[str, int]]
"""Post-processing steps: the name of each, and its number or 0."""


def parse_steps(text: str) -> Steps:
    """Parse the comma-separated steps of an option; steps without a number get 0.

    >>> parse_steps("center, abtt:3")
    [('center', 0), ('abtt', 3)]
    """
    steps = []
    for word in text.split(","):
        name, colon, number = word.strip().partition(":")
        if name not in STEPS:
            raise OptionError("unknown_step", steps=text, step=name, known=list(STEPS), near=nearest(name, STEPS))
        if name in NUMBERED:
            is_valid = number.isdecimal() and int(number) > 0
            form = f"{name}:N with a number N above 0"
        else:
            is_valid = not colon
            form = f"{name} without a number"
        if not is_valid:
            raise OptionError("form_of_step", steps=text, form=form)
        steps.append((name, int(number or 0)))
    return steps
