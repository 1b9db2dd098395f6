"""Back-translation of stories, sentence by sentence, with Marian or NLLB models.

Sources: Mendel292, section 2.5; Marian: Junczys-Dowmunt et al. 2018; OPUS-MT: Tiedemann and Thottingal 2020; NLLB:
Costa-jussà et al. 2022.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from narrlit.errors import ModelError, reading
from narrlit.optional import require
from narrlit.preprocessing.pivots import Route
from narrlit.preprocessing.sentences import split_sentences

EMPTY, UNFINISHED, IDENTICAL = "empty translation", "unfinished translation", "identical to its source"
LONGEST = 512
"""Maximum number of tokens of an input or output, even if the model accepts more."""
TIMES, MORE = 3, 20
"""Limits of the output: TIMES the number of input tokens plus MORE, because longer output is repetitive."""


class Translation(NamedTuple):
    """Translation of a text; `ended` is False if the output was truncated at its limit."""

    text: str
    ended: bool = True

    @classmethod
    def join(cls, parts: Sequence["Translation"]) -> "Translation":
        """Join the translations of a text's pieces."""
        text = " ".join(part.text for part in parts)
        return cls(text, all(part.ended for part in parts))


class BackTranslation(NamedTuple):
    """Back-translation of a story; `fault` is the reason why it can't be used, if any."""

    text: str
    fault: str | None = None


Translate = Callable[[Sequence[str]], list[Translation]]
"""Function that translates texts."""


def back_translate(texts: Sequence[str], there: Translate, back: Translate) -> list[BackTranslation]:
    """Translate N English stories to another language and back, sentence by sentence.

    Args:
        texts: stories.
        there: function that translates sentences to the other language.
        back: function that translates sentences back to English.

    Returns:
        N back-translations, with sentences joined by spaces.
    """
    stories = [split_sentences(text) for text in texts]
    translated = there(list(chain.from_iterable(stories)))
    returned = back([translation.text for translation in translated])
    results = []
    start = 0
    for text, sentences in zip(texts, stories, strict=True):
        end = start + len(sentences)
        results.append(_joined(text, translated[start:end], returned[start:end]))
        start = end
    return results


def _joined(text: str, translated: Sequence[Translation], returned: Sequence[Translation]) -> BackTranslation:
    """Join the back-translated sentences of a story, and check them.

    Args:
        text: original text of the story.
        translated: sentences in the other language.
        returned: sentences translated back to English.
    """
    sentences = [translation.text for translation in returned]
    version = " ".join(filter(None, sentences))
    fault = None
    if not all(sentences):
        fault = EMPTY
    elif not all(translation.ended for translation in (*translated, *returned)):
        fault = UNFINISHED
    elif version.casefold().split() == text.casefold().split():
        fault = IDENTICAL
    return BackTranslation(version, fault)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Piece of a text that is short enough for the model, with its token ids and the key of its translation."""

    text: str
    ids: list[int]
    key: str


class TranslationModel:
    """Marian or NLLB model with its tokenizer; translations are written to a log, and never computed twice."""

    def __init__(self, name: str, device: torch.device, log: Path) -> None:
        """Load the model and the log.

        Args:
            name: folder or hub id of the model.
            device: device of the model.
            log: JSON Lines file of finished translations, created if it is missing.

        Raises:
            DataError: if the log can't be read.
            ModelError: if the model can't be loaded, or is not a Marian or NLLB model.
        """
        local = {"local_files_only": Path(name).is_dir()}
        with reading("unloadable_translator", name, error=ModelError):
            kind = AutoConfig.from_pretrained(name, **local).model_type
            if kind == "marian":
                require("sentencepiece", "translate")
                require("sacremoses", "translate")
            elif kind not in ("m2m_100", "nllb-moe"):
                raise ModelError("not_a_translator", model=name, kind=kind)
            self.tokenizer: Any = AutoTokenizer.from_pretrained(name, **local)
            # In float32: half precision changes the results of beam search.
            self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(name, dtype="float32", **local).eval().to(device)
        self.name = name
        self.log = log
        self.marian = kind == "marian"
        if self.marian and len(self.tokenizer.supported_language_codes) > 1:
            raise ModelError("several_target_languages", model=name)
        positions = (LONGEST, self.model.config.max_position_embeddings, self.tokenizer.model_max_length)
        self.longest = int(min(positions))
        self.digest = _digest(self.model)
        log.parent.mkdir(parents=True, exist_ok=True)
        self.done = _read_log(log)

    def translate(self, texts: Sequence[str], route: Route, beams: int, batch_tokens: int) -> list[Translation]:
        """Translate texts, and log the translations.

        Texts that are too long for the model are split at spaces. Texts in the log are not translated again.

        Args:
            texts: texts to translate.
            route: languages.
            beams: number of beams.
            batch_tokens: maximum number of tokens in a batch, including padding.

        Raises:
            ModelError: if the model does not know a language.
        """
        target = self._set_languages(route)
        settings = [self.digest, route.source, route.target, beams, self.longest]
        pieces_of = {text: list(self._pieces(text, settings)) for text in dict.fromkeys(texts)}
        pieces = {piece.key: piece for piece in chain.from_iterable(pieces_of.values())}
        missing = [piece for key, piece in pieces.items() if key not in self.done]
        missing.sort(key=lambda piece: len(piece.ids), reverse=True)  # batches of similar length
        bar = tqdm(total=len(pieces), initial=len(pieces) - len(missing), desc=self.name, unit="sentence", delay=0.5)
        with bar, self.log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            for batch in _batches(missing, batch_tokens):
                translations = self._generate([piece.ids for piece in batch], beams, target)
                for piece, translation in zip(batch, translations, strict=True):
                    self.done[piece.key] = translation
                    file.write(self._log_line(piece, route, translation))
                file.flush()
                bar.update(len(batch))
        return [self._translation(pieces_of[text]) for text in texts]

    def _translation(self, pieces: Sequence[TextPiece]) -> Translation:
        """Return the translation of a text from those of its pieces, which are in the log."""
        return Translation.join([self.done[piece.key] for piece in pieces])

    def _set_languages(self, route: Route) -> int | None:
        """Set the source language, and return the token id of the target language; None for Marian models."""
        for code in (route.source, route.target):
            if code is None:
                continue
            if self.tokenizer.convert_tokens_to_ids(code) == self.tokenizer.unk_token_id:
                raise ModelError("unknown_language", model=self.name, language=code)
            self.tokenizer.src_lang = route.source
        return None if route.target is None else int(self.tokenizer.convert_tokens_to_ids(route.target))

    def _log_line(self, piece: TextPiece, route: Route, translation: Translation) -> str:
        """Format a line of the log."""
        row = {
            "key": piece.key,
            "model": self.name,
            "from": route.source,
            "to": route.target,
            "text": piece.text,
            "translation": translation.text,
            "ended": translation.ended,
        }
        return json.dumps(row, ensure_ascii=False) + "\n"

    def _pieces(self, text: str, settings: Sequence[object]) -> Iterator[TextPiece]:
        """Yield pieces of a text that are short enough for the model; `settings` become part of their keys."""
        if not text.strip():
            return
        # OPUS-MT was trained with normalized quotes and dashes, but its tokenizer does not normalize by itself.
        normalized = self.tokenizer.normalize(text) if self.marian else text
        tokens = self.tokenizer(normalized, verbose=False)["input_ids"]
        if len(tokens) <= self.longest:
            key = sha256(json.dumps([*settings, text]).encode()).hexdigest()
            yield TextPiece(text, tokens, key)
            return
        middle = len(text) // 2
        gaps = [gap.start() for gap in re.finditer(r"(?<=\S)\s+(?=\S)", text)]
        cut = min(gaps, key=lambda gap: abs(gap - middle), default=middle)
        for half in (text[:cut], text[cut:]):
            yield from self._pieces(half.strip(), settings)

    def _generate(self, ids: list[list[int]], beams: int, target: int | None) -> list[Translation]:
        """Translate a batch of token ids; `target` is the first token of the translations, if any."""
        batch = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self.model.device)
        longest_input = max(map(len, ids))
        limit = min(self.longest, TIMES * longest_input + MORE)
        options = {"num_beams": beams, "do_sample": False, "max_length": limit, "forced_bos_token_id": target}
        with torch.inference_mode():
            rows = self.model.generate(**batch, **options).tolist()
        texts = self.tokenizer.batch_decode(rows, skip_special_tokens=True)
        translations = []
        for text, row in zip(texts, rows, strict=True):
            # Not the first token, an end token in NLLB, and not the last position, where Marian forces an end token.
            ended = self.tokenizer.eos_token_id in row[1 : limit - 1]
            translations.append(Translation(text.strip(), ended))
        return translations


def _batches(pieces: Sequence[TextPiece], max_tokens: int) -> Iterator[Sequence[TextPiece]]:
    """Divide pieces, the longest first, into batches of at most `max_tokens` tokens with padding, or a single piece."""
    start = 0
    while start < len(pieces):
        end = start + max(1, max_tokens // len(pieces[start].ids))
        yield pieces[start:end]
        start = end


def _digest(model: Any) -> str:
    """Compute the SHA-256 (hex) of a model's weights and settings; its name can later refer to another model."""
    digest = sha256()
    for key, tensor in model.state_dict().items():
        digest.update(key.encode() + tensor.cpu().contiguous().numpy().tobytes())
    digest.update(json.dumps(model.generation_config.to_dict(), sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _read_log(log: Path) -> dict[str, Translation]:
    """Read the translations of a log by their keys, and remove an incomplete last line of a killed process."""
    with reading("broken_translation_log", log), log.open("a+b") as file:
        file.seek(0)
        *lines, incomplete = file.read().split(b"\n")
        file.truncate(file.tell() - len(incomplete))
        rows = map(json.loads, lines)
        return {row["key"]: Translation(row["translation"], row["ended"]) for row in rows}
