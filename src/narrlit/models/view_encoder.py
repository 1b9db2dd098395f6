"""An encoder that reads a story's text and its views, and fuses their vectors.

Source: ttda704 at SemEval-2026 Task 4, section 4.2 and appendix A.4.
"""

from collections.abc import Sequence
from pathlib import Path

from narrlit.data.view_tokens import Parts
from narrlit.errors import DataError, ModelError
from narrlit.models.carried_code import carry_code
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.fusion import Fusion
from narrlit.models.sentence_encoder import SentenceEncoder, TextEncoder
from narrlit.models.views import CONFIG, ViewFuser
from narrlit.models.wrapper import Wrapper
from narrlit.text.joined import split

MODULE = "view_fusion"
"""The file with the module that sentence-transformers runs."""

REMEDY = "give --views FILE, or --missing-views positional to take them by position"


class ViewEncoder(Wrapper):
    """Stands where an `Encoder` stands for use; what it embeds are stories joined with their views."""

    def __init__(self, inner: TextEncoder, fuser: ViewFuser) -> None:
        """Args: encoder of texts and views; what makes one vector of theirs.

        Raises:
            ModelError: if the one's vectors are not of the length that the other reads.
        """
        super().__init__()
        if inner.dimension != fuser.dimension:
            raise ModelError(
                f"{inner.config.model} makes vectors of {inner.dimension} numbers, but the views' heads read vectors "
                f"of {fuser.dimension}: they were trained over another model"
            )
        self.inner = inner
        self.fuser = fuser

    @property
    def pieces(self) -> tuple[str, str]:
        """What `max_length` cuts, one and several."""
        return self.inner.pieces if isinstance(self.inner, SentenceEncoder) else ("text or view", "texts and views")

    @property
    def dimension(self) -> int:
        """Numbers of a story's vector."""
        return self.fuser.dimension

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder that loads without this package and gives the same vectors.

        It brings the code that it needs, so loading it takes `trust_remote_code=True`. Merge first.

        Raises:
            ModelError: for views of a model that reads sentences.
        """
        from sentence_transformers import SentenceTransformer

        from narrlit.models.view_fusion import ViewFusion

        if isinstance(self.inner, SentenceEncoder):
            raise ModelError("views of a model that reads sentences can't be exported: export that model alone")
        inner = self.inner.model
        model = SentenceTransformer(modules=[ViewFusion(inner, self.fuser)], device=str(inner.device))
        model.prompts, model.default_prompt_name = inner.prompts, inner.default_prompt_name
        model.save(str(folder), create_model_card=False)
        carry_code(folder, MODULE, ViewFusion.__name__)


AnyEncoder = TextEncoder | ViewEncoder
"""What a model may be that is used, and not trained."""


def fused(encoder: AnyEncoder, fusion: Fusion | None) -> AnyEncoder:
    """The encoder with other weights of its views, or with some where it had none; None: as it is.

    A trained model of views keeps its heads.
    """
    if fusion is None:
        return encoder
    if isinstance(encoder, ViewEncoder):
        encoder.fuser.fusion = fusion
        return encoder
    return ViewEncoder(encoder, ViewFuser(encoder.dimension, fusion)).eval()


def story_parts(texts: Sequence[str], remedy: str = REMEDY) -> list[Parts]:
    """Text, theme, plot and outcome of stories that are joined with their views.

    Args:
        texts: of the stories.
        remedy: what a user does about a story without views.

    Raises:
        DataError: for such a story, or one with some views alone.
    """
    found = []
    for number, text in enumerate(texts, 1):
        try:
            story, views = split(text)
        except ValueError as error:
            raise DataError(f"text {number} of {len(texts)}: {error}") from error
        if views is None:
            raise DataError(f"text {number} of {len(texts)} has no views, which are read beside the text: {remedy}")
        found.append((story, *views.texts))
    return found


def is_view_encoder(folder: Path) -> bool:
    """Whether `ViewEncoder.save` wrote this folder."""
    return (folder / CONFIG).is_file()


def load_view_encoder(folder: Path, max_length: int | None = None, trust_remote_code: bool = False) -> ViewEncoder:
    """The encoder that `ViewEncoder.save` wrote, without running the code that lies in the folder.

    Args:
        folder: as exported.
        max_length: tokens of a text that are read; None: as the model's files say.
        trust_remote_code: run Python files that come with the model inside.

    Raises:
        ModelError: naming the file that is broken.
    """
    from narrlit.models.inner_model import INNER

    fuser = ViewFuser.load(folder)
    config = EncoderConfig(
        str(folder / INNER), normalize=None, max_length=max_length, trust_remote_code=trust_remote_code
    )
    return ViewEncoder(Encoder(config), fuser)
