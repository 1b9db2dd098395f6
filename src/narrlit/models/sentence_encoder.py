"""An encoder that reads a story as the sequence of its sentences: an encoder's vector of each, and a BiLSTM over them.

Source: Mendel292 at SemEval-2026 Task 4, sections 2.1 and 2.2.
"""

from pathlib import Path

from narrlit.errors import ModelError
from narrlit.models.bilstm import CONFIG, BiLSTM
from narrlit.models.carried_code import carry_code
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.wrapper import Wrapper

MODULE = "sentence_sequence"
"""The file with the module that sentence-transformers runs."""


class SentenceEncoder(Wrapper):
    """Stands where an `Encoder` stands for use; a story's prompt goes before each of its sentences."""

    pieces = ("sentence", "sentences")
    """What `max_length` cuts, one and several."""

    def __init__(self, inner: Encoder, head: BiLSTM) -> None:
        """Args: encoder of sentences; BiLSTM over their vectors.

        Raises:
            ModelError: if the one's vectors are not of the length that the other reads.
        """
        super().__init__()
        if inner.dimension != head.lstm.input_size:
            raise ModelError(
                f"{inner.config.model} makes vectors of {inner.dimension} numbers, but the BiLSTM reads vectors of "
                f"{head.lstm.input_size}: it was trained over another model"
            )
        self.inner = inner
        self.head = head

    @property
    def dimension(self) -> int:
        """Numbers of a story's vector."""
        return self.head.dimension

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder that loads without this package and gives the same vectors.

        It brings the code that it needs, so loading it takes `trust_remote_code=True`. Merge first.
        """
        from sentence_transformers import SentenceTransformer

        from narrlit.models.sentence_sequence import SentenceSequence

        inner = self.inner.model
        model = SentenceTransformer(modules=[SentenceSequence(inner, self.head)], device=str(inner.device))
        model.prompts, model.default_prompt_name = inner.prompts, inner.default_prompt_name
        model.save(str(folder), create_model_card=False)
        carry_code(folder, MODULE, SentenceSequence.__name__)


TextEncoder = Encoder | SentenceEncoder
"""What makes a vector of one text."""


def is_sentence_encoder(folder: Path) -> bool:
    """Whether `SentenceEncoder.save` wrote this folder."""
    return (folder / CONFIG).is_file()


def load_sentence_encoder(
    folder: Path, max_length: int | None = None, trust_remote_code: bool = False
) -> SentenceEncoder:
    """The encoder that `SentenceEncoder.save` wrote, without running the code that lies in the folder.

    Args:
        folder: as exported.
        max_length: tokens of a sentence that are read; None: as the model's files say.
        trust_remote_code: run Python files that come with the model of sentences.

    Raises:
        ModelError: naming the file that is broken.
    """
    from narrlit.models.inner_model import INNER

    head = BiLSTM.load(folder)
    config = EncoderConfig(
        str(folder / INNER), normalize=None, max_length=max_length, trust_remote_code=trust_remote_code
    )
    return SentenceEncoder(Encoder(config), head)
