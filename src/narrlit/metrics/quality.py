"""Settings of the scores that judge generated texts; no torch, so that a command line knows them at once."""

from dataclasses import dataclass

from narrlit.errors import OptionError


@dataclass(frozen=True)
class Quality:
    """How near a version must be taken to be to its source: BERTScore.

    Attributes:
        bertscore: encoder whose token vectors are compared, a transformers folder, a hub's id or minilm; or none.
            Figures of different encoders can't be compared.
        bertscore_layer: whose output is compared, 0 the embeddings; not given: the last.

    Raises:
        OptionError: if the layer has no use.
    """

    bertscore: str = "minilm"
    bertscore_layer: int | None = None

    def __post_init__(self) -> None:
        if self.bertscore_layer is None:
            return
        if not self.wanted:
            raise OptionError("--bertscore-layer has no use with --bertscore none: leave it out")
        if self.bertscore_layer < 0:
            raise OptionError(f"--bertscore-layer {self.bertscore_layer}: 0 is the embeddings, 1 the first layer")

    @property
    def wanted(self) -> bool:
        """Whether there shall be a score."""
        return self.bertscore != "none"
