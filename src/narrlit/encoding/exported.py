"""Encoders exported for ONNX Runtime, which embed texts without torch; written by `exporting.onnx`.

Letters in shapes: N texts, T tokens, D dimension.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from narrlit.data.schema import FloatArray
from narrlit.embedding_cache.space import EmbeddingSpace
from narrlit.errors import ModelError
from narrlit.json_records import read_json
from narrlit.models.config import Long, Role
from narrlit.models.text_tokens import EncodedText, mean_direction, split_windows, token_chunks, tokenize_texts
from narrlit.optional import require

FORMAT = "onnx-1"
"""Folder of the cache for this release's encoders; another one is made if their files change."""
GRAPH, TOKENIZER, RECORD = "model.onnx", "tokenizer.json", "encoder.json"
EMBEDDING = "sentence_embedding"
"""Output of the graph: the embedding of each text."""
TOKENS_PER_PASS = 512
"""Tokens of a forward pass, with padding; with 4,096, stories took 1.4 times as long, and sentences twice."""
RUNTIME = "onnxruntime"


class ExportedRecord(BaseModel):
    """Contents of encoder.json.

    Attributes:
        facts: fields of `EncoderFacts`.
        padding: id of the padding token.
    """

    facts: dict[str, Any]
    padding: int


@dataclass(frozen=True, eq=False)
class ExportedEncoder:
    """Encoder of single texts that computes in ONNX Runtime, on the CPU, in float32.

    Attributes:
        record: properties of the encoder.
        long: treatment of texts longer than `max_length`.
        tokenizer: a `tokenizers.Tokenizer`.
        session: an `onnxruntime.InferenceSession`.
    """

    record: ExportedRecord
    long: Long
    tokenizer: Any
    session: Any

    @classmethod
    def open(cls, folder: Path, long: Long) -> "ExportedEncoder":
        """Load an exported encoder.

        Raises:
            MissingExtraError: if ONNX Runtime is not installed.
            ModelError: if a file is damaged.
        """
        runtime = require(RUNTIME, "onnx")
        from tokenizers import Tokenizer

        record = read_json(folder / RECORD, ExportedRecord, "broken_exported_record", folder=folder)
        try:
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            session = runtime.InferenceSession(str(folder / GRAPH), providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise their own, without a common base
            raise ModelError("broken_exported_encoder", folder=folder) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(record, long, tokenizer, session)

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a text, including prompt and special tokens."""
        return int(self.record.facts["max_length"])

    @property
    def unit(self) -> tuple[str, str]:
        """Name of the unit that is limited by `max_length`, singular and plural."""
        return "story", "stories"

    def embed(self, texts: Sequence[str], role: Role = "story") -> tuple[FloatArray, NDArray[np.float64]]:
        """Embed N texts as the model from which the encoder was exported does.

        Returns:
            (N, D) embeddings, and the coverage (N, 5) of the texts, as in `Coverage.of_rows`.
        """
        tokens = tokenize_texts(self, texts, role)
        vectors = np.empty((len(tokens.ids), self.record.facts["dimension"]), dtype=np.float32)
        for rows in token_chunks(list(map(len, tokens.ids)), TOKENS_PER_PASS, padded=True):
            vectors[rows] = self._computed([tokens.ids[row] for row in rows])
        for row, windows in tokens.windows.items():
            vectors[row] = mean_direction(vectors[windows.rows], windows.added)
        return vectors[: len(texts)], tokens.readings

    def token_ids(self, texts: Sequence[str], role: Role = "story") -> list[list[int]]:
        """Tokenize texts with the role's prompt before them, without truncation."""
        prompt = self._prompt(role)
        encodings = self.tokenizer.encode_batch([prompt + text for text in texts])
        return [encoding.ids for encoding in encodings]

    def windows(self, text: str, role: Role = "story") -> tuple[list[list[int]], list[int]]:
        """Tokenize a text longer than `max_length` in windows; see `split_windows`."""
        prompt = self._prompt(role)
        encoding = self.tokenizer.encode(prompt + text)
        ends = [end for _, end in encoding.offsets]
        tokens = EncodedText(encoding.ids, encoding.special_tokens_mask, ends)
        return split_windows(tokens, text, prompt, self.max_length)

    def truncate(self, ids: list[list[int]], texts: Sequence[str], role: Role = "story") -> list[int]:
        """Truncate the token ids of texts longer than `max_length`, in place, and return their rows."""
        rows = [row for row, tokens in enumerate(ids) if len(tokens) > self.max_length]
        self.tokenizer.enable_truncation(self.max_length)
        for row, tokens in zip(rows, self.token_ids([texts[row] for row in rows], role), strict=True):
            ids[row] = tokens
        self.tokenizer.no_truncation()
        return rows

    def _prompt(self, role: Role) -> str:
        return str(self.record.facts["prompts"][role])

    def _computed(self, ids: Sequence[list[int]]) -> FloatArray:
        """Embed the tokens of texts in one pass, (N, D)."""
        longest = max(map(len, ids))
        input_ids = np.full((len(ids), longest), self.record.padding, dtype=np.int64)
        mask = np.zeros((len(ids), longest), dtype=np.int64)
        for row, tokens in enumerate(ids):
            input_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        [vectors] = self.session.run([EMBEDDING], {"input_ids": input_ids, "attention_mask": mask})
        embeddings: FloatArray = vectors
        return embeddings


def export_folder(space: EmbeddingSpace) -> Path:
    """Return the folder of an exported encoder in the user's cache.

    The cache is `$NARRLIT_CACHE`, by default `$XDG_CACHE_HOME/narrlit` or ~/.cache/narrlit.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    root = os.environ.get("NARRLIT_CACHE") or Path(caches, "narrlit")
    return space.folder(Path(root, FORMAT))


def is_exported(folder: Path) -> bool:
    """Return True if a folder has an exported encoder, and ONNX Runtime is installed."""
    return (folder / RECORD).is_file() and find_spec(RUNTIME) is not None


def can_export() -> bool:
    """Return True if onnx and ONNX Runtime (the extra `onnx`) are installed."""
    return find_spec("onnx") is not None and find_spec(RUNTIME) is not None
