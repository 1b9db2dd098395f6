"""An encoder that reads a story as the sequence of its sentences: an encoder's vector of each, and a BiLSTM over them.

Source: Mendel292 at SemEval-2026 Task 4, sections 2.1 and 2.2.
"""

import json
import re
from pathlib import Path

from torch import nn

from narrlit.errors import ModelError
from narrlit.models.bilstm import CONFIG, BiLSTM
from narrlit.models.config import EncoderConfig, Role
from narrlit.models.encoder import Encoder

MODULE = "sentence_sequence"
"""The file with the module that sentence-transformers runs."""


class SentenceEncoder(nn.Module):
    """Stands where an `Encoder` stands for use; `narrlit.models.embedding.embed` computes its vectors.

    A story's prompt goes before each of its sentences.
    """

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
    def config(self) -> EncoderConfig:
        """What the encoder of sentences is."""
        return self.inner.config

    @property
    def dimension(self) -> int:
        """Numbers of a story's vector."""
        return self.head.dimension

    @property
    def max_length(self) -> int:
        """Tokens of a sentence that are read, prompt and special tokens included."""
        return self.inner.max_length

    @property
    def normalized(self) -> bool:
        """Whether vectors have length 1: always."""
        return True

    @property
    def has_adapters(self) -> bool:
        """Whether adapters stand beside the weights of the encoder of sentences."""
        return self.inner.has_adapters

    @property
    def quantized(self) -> bool:
        """Whether weights of the encoder of sentences are kept in fewer bits."""
        return self.inner.quantized

    def merge(self) -> None:
        """Make the encoder of sentences a plain one, in place."""
        self.inner.merge()

    def prompt(self, role: Role) -> str:
        """The text put before each sentence of a story in this role."""
        return self.inner.prompt(role)

    def require_one_prompt(self, purpose: str) -> None:
        """Refuse role prompts where one vector serves both roles.

        Raises:
            ModelError: if the anchor's, the candidate's and the story's prompts differ.
        """
        self.inner.require_one_prompt(purpose)

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
        module = {"idx": 0, "name": "0", "path": "", "type": f"{MODULE}.{SentenceSequence.__name__}"}
        (folder / "modules.json").write_text(json.dumps([module], indent=2) + "\n", encoding="utf-8")
        _copy_code(folder)


AnyEncoder = Encoder | SentenceEncoder
"""What a model may be that is used, and not trained."""


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
    from narrlit.models.sentence_sequence import INNER

    head = BiLSTM.load(folder)
    config = EncoderConfig(
        str(folder / INNER), normalize=None, max_length=max_length, trust_remote_code=trust_remote_code
    )
    return SentenceEncoder(Encoder(config), head)


_OWN_IMPORT = re.compile(r"^from narrlit\.((?:\w+\.)*(\w+)) import", re.MULTILINE)


def _copy_code(folder: Path) -> None:
    """Copy the module's file, and all that it imports of this package, side by side."""
    package = Path(__file__).parent.parent
    names = [f"models.{MODULE}"]
    for name in names:
        path = package.joinpath(*name.split(".")).with_suffix(".py")
        code = path.read_text(encoding="utf-8")
        names += [needed for needed, _ in _OWN_IMPORT.findall(code) if needed not in names]
        (folder / path.name).write_text(_OWN_IMPORT.sub(r"from .\2 import", code), encoding="utf-8")
