"""What an encoder is, as plain data: what a config file says and a checkpoint keeps."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from narrlit.errors import OptionError

Role = Literal["anchor", "candidate", "story"]
Pooling = Literal["mean", "cls", "last"]


@dataclass(frozen=True)
class Prompts:
    """Text put before a story, by the part it plays.

    Attributes:
        story: before a story that stands for itself (Track B, `embed`); None: the model's own default prompt.
        anchor: before the anchor of a triple; None: the same as `story`.
        candidate: before a triple's other stories; None: the same as `story`.
    """

    story: str | None = None
    anchor: str | None = None
    candidate: str | None = None


@dataclass(frozen=True)
class LoRA:
    """Low-rank adapters beside frozen weights: they alone train.

    Attributes:
        rank: r, the columns of A and B in each adapted layer's W + (alpha / r) BA.
        alpha: the numerator of that factor.
        dropout: probability in front of each adapter while training; `encoder.dropout` leaves it alone.
        target_modules: `all-linear` (every linear layer inside the transformer's layers), or how the names of the
            layers to adapt end: one name or a list.
    """

    rank: int = 32
    alpha: float = 64
    dropout: float = 0.1
    target_modules: str | list[str] = "all-linear"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if self.rank < 1:
            raise OptionError(f"encoder.lora.rank is {self.rank}: a positive number is needed")
        if self.alpha <= 0:
            raise OptionError(f"encoder.lora.alpha is {self.alpha}: a number above 0 is needed")
        if not 0 <= self.dropout < 1:
            raise OptionError(f"encoder.lora.dropout is {self.dropout}: a probability from 0 to below 1 is needed")
        if not self.target_modules or not all(self.target_modules):
            raise OptionError("encoder.lora.target_modules is empty: name layers, or all-linear")


@dataclass(frozen=True)
class EncoderConfig:
    """How stories become vectors.

    Attributes:
        model: a sentence-transformers folder, a model hub's id, or `minilm` (packaged, never asks a network).
        revision: the hub's branch, tag or commit; None: the newest.
        pooling: how token vectors become one; None: as the model's own files say.
        normalize: unit vectors, as cosine objectives need; None: as the model's own files say.
        max_length: tokens of a story with its prompt, the rest is cut off; None: as the model's own files say.
        prompts: text before a story, by role.
        dropout: probability in every dropout of the model while training; None: as the model's own files say.
        frozen_layers: share of the lower layers (rounded down) that don't train, 0 to 1; above 0 the
            embeddings don't train either; not together with `lora`, which freezes all layers.
        packed: stories one after the other without padding, where the architecture can.
        token_budget: tokens of one forward pass; None: 8,192 on a CPU, 65,536 elsewhere.
        dtype: of the weights.
        trust_remote_code: run Python files that come with the model. They can do anything: only for models you trust.
        lora: adapters that train in place of the model's own weights; None: the model itself trains.
        quantization: keep the weights of linear layers in 4 (`nf4`) or 8 bits (`int8`), where they can't train;
            None: in `dtype`.
        gradient_checkpointing: compute each layer a second time on the way back: less memory, about a third slower.
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
    trust_remote_code: bool = False
    lora: LoRA | None = None
    quantization: Literal["nf4", "int8"] | None = None
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if not 0 <= self.frozen_layers <= 1:
            raise OptionError(f"encoder.frozen_layers is {self.frozen_layers}: a share from 0 to 1 is needed")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise OptionError(f"encoder.dropout is {self.dropout}: a probability from 0 to below 1 is needed")
        for name in ("max_length", "token_budget"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"encoder.{name} is {value}: a positive number is needed")
        if self.lora is not None and self.frozen_layers:
            raise OptionError(
                f"encoder.frozen_layers is {self.frozen_layers} beside encoder.lora, which freezes every layer and "
                "trains adapters in all of them: set one of the two"
            )

    def as_dict(self) -> dict[str, Any]:
        """Nested plain data, for hyperparameters and records."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "EncoderConfig":
        """The inverse of `as_dict`; fields that an older release did not have take their defaults.

        Raises:
            TypeError: for a field that there is not.
        """
        prompts, lora = values.get("prompts") or {}, values.get("lora")
        return cls(
            **{
                **values,
                "prompts": prompts if isinstance(prompts, Prompts) else Prompts(**prompts),
                "lora": lora if lora is None or isinstance(lora, LoRA) else LoRA(**lora),
            }
        )
