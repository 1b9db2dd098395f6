"""Texts from one language into another: each once, in batches of like length, and none that a log holds already."""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

import torch
from tqdm import tqdm

from narrlit.errors import OptionError
from narrlit.models.encoder import token_chunks
from narrlit.models.pivots import Pivots, Route
from narrlit.models.translation_log import Translation, TranslationLog
from narrlit.models.translation_model import TranslationModel


class Translator:
    """One direction of a model: called with texts, it gives their translations, each made once and kept in a log.

    Attributes:
        divided: different texts so far that were longer than the model reads; each was divided between words.
    """

    def __init__(self, model: TranslationModel, route: Route, options: Pivots, log: TranslationLog) -> None:
        """Args say what decides a translation.

        Args:
            model: the route's, loaded.
            route: from which language into which.
            options: of the search, and of the batches.
            log: where finished translations are found and kept.

        Raises:
            ModelError: if the model doesn't know a language of the route.
        """
        self.model = model
        self.route = route
        self.options = options
        self.log = log
        self.divided = 0
        self._target = None if route.target is None else model.language(route.target)
        if route.source is not None:
            model.language(route.source)

    def __call__(self, texts: Sequence[str]) -> list[Translation]:
        """Translations of N texts, in their order; an empty text's is empty.

        Raises:
            OptionError: if a batch doesn't fit the memory, or the log can't be written.
        """
        if self.route.source is not None:
            self.model.tokenizer.src_lang = self.route.source
        ids: dict[str, list[int]] = {}
        pieces = {text: list(self._pieces(text, ids)) for text in dict.fromkeys(texts)}
        self.divided += sum(len(parts) > 1 for parts in pieces.values())
        self._make({self._key(piece): (piece, found) for piece, found in ids.items()})
        return [self._joined(pieces[text]) for text in texts]

    def _pieces(self, text: str, ids: dict[str, list[int]]) -> Iterable[str]:
        """The text, or where it is too long its parts; the token ids of each go into `ids`."""
        if not text.strip():
            return
        found = self.model.token_ids(text)
        if len(found) <= self.model.longest:
            ids[text] = found
            yield text
            return
        for half in halves(text):
            yield from self._pieces(half, ids)

    def _joined(self, pieces: Sequence[str]) -> Translation:
        found = [self.log[self._key(piece)] for piece in pieces]
        return Translation(" ".join(one.text for one in found), all(one.ended for one in found))

    def _key(self, text: str) -> str:
        decides = [
            self.model.digest,
            self.route.source,
            self.route.target,
            self.options.beams,
            self.model.longest,
            text,
        ]
        return sha256(json.dumps(decides).encode()).hexdigest()

    def _make(self, wanted: dict[str, tuple[str, list[int]]]) -> None:
        """Translate what the log lacks, the longest first, so that a lack of memory shows at once."""
        missing = [(key, *found) for key, found in wanted.items() if key not in self.log]
        told = {"model": self.route.model, "from": self.route.source, "to": self.route.target}
        chunks = token_chunks([len(ids) for _, _, ids in missing], self.options.batch_tokens, padded=True)
        # What a killed job left is counted as done, so that the bar shows the whole work.
        done = len(wanted) - len(missing)
        bar = tqdm(total=len(wanted), initial=done, desc=self.route.model, unit="sentence", delay=0.5)
        with bar:
            for chunk in chunks if missing else ():
                rows = [missing[place] for place in chunk]
                made = self._generated([ids for _, _, ids in rows])
                self.log.add(
                    (key, found, {**told, "text": text}) for (key, text, _), found in zip(rows, made, strict=True)
                )
                bar.update(len(rows))

    def _generated(self, ids: list[list[int]]) -> list[Translation]:
        try:
            return self.model.generate(ids, self.options.beams, self._target)
        except torch.OutOfMemoryError as error:
            raise OptionError(
                f"--batch-tokens {self.options.batch_tokens}: a batch with {self.options.beams} beams does not fit the "
                "memory; give fewer tokens or beams: with the same beams, what is translated is kept"
            ) from error


def halves(text: str) -> tuple[str, str]:
    """A text divided at the white space next to its middle, or in the middle where there is none.

    >>> halves("one two three four"), halves("onetwo")
    (('one two', 'three four'), ('one', 'two'))
    """
    text = text.strip()
    middle = len(text) // 2
    place = min((gap.start() for gap in re.finditer(r"\s+", text)), key=lambda at: abs(at - middle), default=middle)
    return text[:place].rstrip(), text[place:].lstrip()
