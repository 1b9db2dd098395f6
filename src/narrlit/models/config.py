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
            embeddings don't train either.
        packed: stories one after the other without padding, where the architecture can.
        token_budget: tokens of one forward pass; None: 8,192 on a CPU, 65,536 elsewhere.
        dtype: of the weights.
        trust_remote_code: run Python files that come with the model. They can do anything: only for models you trust.
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

    def as_dict(self) -> dict[str, Any]:
        """Nested plain data, for hyperparameters and records."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "EncoderConfig":
        """The inverse of `as_dict`."""
        prompts = values.get("prompts") or {}
        return cls(**{**values, "prompts": prompts if isinstance(prompts, Prompts) else Prompts(**prompts)})
